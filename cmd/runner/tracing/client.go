package tracing

import (
	"bytes"
	"cmp"
	"compress/gzip"
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"strconv"
	"strings"
	"time"

	tracev1 "go.opentelemetry.io/proto/otlp/trace/v1"
	"google.golang.org/protobuf/proto"
	"k8s.io/apimachinery/pkg/util/wait"
)

const (
	defaultEndpoint = "http://localhost:4318"
	defaultTimeout  = 10 * time.Second
	// maxAnswer bounds what is read of a collector's answer, and maxQuoted what of it ends up in a message, in bytes.
	maxAnswer, maxQuoted = 64 << 10, 200
)

// tries spaces the tries of one export whose answer asks for another.
var tries = wait.Backoff{Duration: 500 * time.Millisecond, Factor: 2, Jitter: 0.5, Steps: 4}

// client sends spans by OTLP over HTTP, http/protobuf. OpenTelemetry's own client brings gRPC along, which makes the
// binary half as large again, and slower to start. It implements otlptrace.Client.
// https://opentelemetry.io/docs/specs/otel/protocol/exporter/
type client struct {
	url     string
	headers http.Header
	zip     bool
	timeout time.Duration
	http    *http.Client
}

// newClient makes the client that the variables OTEL_EXPORTER_OTLP_… describe; of those, the ones for traces come first.
func newClient(lookup func(name string) (string, bool)) (*client, error) {
	var faults []error
	setting := func(name string) (value, variable string) {
		for _, variable := range []string{"OTEL_EXPORTER_OTLP_TRACES_" + name, "OTEL_EXPORTER_OTLP_" + name} {
			if value, _ := lookup(variable); strings.TrimSpace(value) != "" {
				return strings.TrimSpace(value), variable
			}
		}
		return "", "OTEL_EXPORTER_OTLP_" + name
	}
	fault := func(variable string, err error) { faults = append(faults, fmt.Errorf("%s: %w", variable, err)) }

	c := &client{headers: http.Header{}, timeout: defaultTimeout}
	endpoint, variable := setting("ENDPOINT")
	address, err := url.Parse(cmp.Or(endpoint, defaultEndpoint))
	switch {
	case err != nil || address.Scheme != "http" && address.Scheme != "https" || address.Hostname() == "":
		fault(variable, errors.New("is no http or https URL")) // not repeated: it may have a password in it
	case variable == "OTEL_EXPORTER_OTLP_ENDPOINT":
		c.url = address.JoinPath("v1", "traces").String()
	default:
		c.url = address.String() // as it is
	}
	headers, variable := setting("HEADERS")
	if err := c.addHeaders(headers); err != nil {
		fault(variable, err)
	}
	if text, variable := setting("TIMEOUT"); text != "" {
		milliseconds, err := strconv.Atoi(text)
		if err != nil || milliseconds <= 0 {
			fault(variable, errors.New("is no number of milliseconds"))
		}
		c.timeout = time.Duration(milliseconds) * time.Millisecond
	}
	switch compression, variable := setting("COMPRESSION"); compression {
	case "gzip":
		c.zip = true
	case "", "none":
	default:
		fault(variable, errors.New("there are gzip and none"))
	}
	transport := http.DefaultTransport.(*http.Transport).Clone()
	transport.TLSClientConfig, err = tlsConfig(setting)
	if err != nil {
		faults = append(faults, err)
	}
	c.http = &http.Client{
		Transport: transport,
		// The headers may hold a token, which is for the collector alone.
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
	return c, errors.Join(faults...)
}

// addHeaders takes a list as W3C baggage has it: key=value,key=value, with values percent-encoded.
func (c *client) addHeaders(list string) error {
	for _, pair := range strings.Split(list, ",") {
		if strings.TrimSpace(pair) == "" {
			continue
		}
		key, value, found := strings.Cut(pair, "=")
		decoded, err := url.PathUnescape(strings.TrimSpace(value))
		if !found || err != nil || strings.TrimSpace(key) == "" {
			return errors.New("is no list of key=value with commas between them") // not repeated: it may be a token
		}
		c.headers.Set(strings.TrimSpace(key), decoded)
	}
	return nil
}

// tlsConfig is for an https endpoint; nil where nothing is set, for the system's certificates.
func tlsConfig(setting func(name string) (value, variable string)) (*tls.Config, error) {
	authority, variable := setting("CERTIFICATE")
	certificate, ofClient := setting("CLIENT_CERTIFICATE")
	key, _ := setting("CLIENT_KEY")
	if authority == "" && certificate == "" {
		return nil, nil
	}
	config := &tls.Config{MinVersion: tls.VersionTLS12}
	if authority != "" {
		pem, err := os.ReadFile(authority)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", variable, err)
		}
		config.RootCAs = x509.NewCertPool()
		if !config.RootCAs.AppendCertsFromPEM(pem) {
			return nil, fmt.Errorf("%s: %s holds no certificate", variable, authority)
		}
	}
	if certificate != "" {
		pair, err := tls.LoadX509KeyPair(certificate, key)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", ofClient, err)
		}
		config.Certificates = []tls.Certificate{pair}
	}
	return config, nil
}

// Start implements otlptrace.Client.
func (c *client) Start(context.Context) error { return nil }

// Stop implements otlptrace.Client.
func (c *client) Stop(context.Context) error {
	c.http.CloseIdleConnections()
	return nil
}

// UploadTraces implements otlptrace.Client.
func (c *client) UploadTraces(ctx context.Context, spans []*tracev1.ResourceSpans) error {
	// On the wire this is the request of the trace service, whose own type brings gRPC along.
	body, err := proto.Marshal(&tracev1.TracesData{ResourceSpans: spans})
	if err != nil {
		return fmt.Errorf("encoding spans: %w", err)
	}
	if c.zip {
		var zipped bytes.Buffer
		writer := gzip.NewWriter(&zipped)
		_, _ = writer.Write(body) // a buffer takes all
		_ = writer.Close()
		body = zipped.Bytes()
	}
	ctx, cancel := context.WithTimeout(ctx, c.timeout)
	defer cancel()
	var failed error
	waited := wait.ExponentialBackoffWithContext(ctx, tries, func(ctx context.Context) (done bool, err error) {
		again := false
		again, failed = c.post(ctx, body)
		return !again, nil
	})
	if failed == nil {
		failed = waited
	}
	return failed
}

// post tries once. again says that another try may succeed.
func (c *client) post(ctx context.Context, body []byte) (again bool, err error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, c.url, bytes.NewReader(body))
	if err != nil {
		return false, err
	}
	request.Header = c.headers.Clone()
	request.Header.Set("Content-Type", "application/x-protobuf")
	if c.zip {
		request.Header.Set("Content-Encoding", "gzip")
	}
	response, err := c.http.Do(request)
	if err != nil {
		return false, fmt.Errorf("sending spans: %w", err) // its text has the address without a password
	}
	defer response.Body.Close()
	answer, _ := io.ReadAll(io.LimitReader(response.Body, maxAnswer))
	switch response.StatusCode {
	case http.StatusOK, http.StatusAccepted, http.StatusNoContent:
		return false, nil
	case http.StatusTooManyRequests, http.StatusBadGateway, http.StatusServiceUnavailable, http.StatusGatewayTimeout:
		again = true
	}
	return again, fmt.Errorf("sending spans: the collector at %s answers %s: %.*q", request.URL.Redacted(), response.Status, maxQuoted, answer)
}
