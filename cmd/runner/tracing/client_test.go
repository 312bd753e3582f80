package tracing

import (
	"compress/gzip"
	"context"
	"encoding/pem"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	tracev1 "go.opentelemetry.io/proto/otlp/trace/v1"
	"google.golang.org/protobuf/proto"
)

func environment(pairs ...string) func(string) (string, bool) {
	return func(name string) (string, bool) {
		for _, pair := range pairs {
			if key, value, _ := strings.Cut(pair, "="); key == name {
				return value, true
			}
		}
		return "", false
	}
}

var spans = []*tracev1.ResourceSpans{{ScopeSpans: []*tracev1.ScopeSpans{{Spans: []*tracev1.Span{{Name: "pass"}}}}}}

func TestWhereSpansGo(t *testing.T) {
	for _, tt := range []struct {
		name      string
		variables []string
		url       string
	}{
		{"by default", nil, "http://localhost:4318/v1/traces"},
		{"an endpoint for all signals", []string{"OTEL_EXPORTER_OTLP_ENDPOINT=https://collector:4318"}, "https://collector:4318/v1/traces"},
		{"one with a path", []string{"OTEL_EXPORTER_OTLP_ENDPOINT=http://collector:4318/otlp/"}, "http://collector:4318/otlp/v1/traces"},
		{"one for traces, as it is", []string{"OTEL_EXPORTER_OTLP_ENDPOINT=http://a", "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT=http://b:4318/api/traces"}, "http://b:4318/api/traces"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			c, err := newClient(environment(tt.variables...))
			require.NoError(t, err)
			assert.Equal(t, tt.url, c.url)
		})
	}
}

func TestSpansAreSentAsTheVariablesSay(t *testing.T) {
	var got *http.Request
	var body []byte
	server := httptest.NewTLSServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		got = r
		unzipped, err := gzip.NewReader(r.Body)
		assert.NoError(t, err)
		body, err = io.ReadAll(unzipped)
		assert.NoError(t, err)
	}))
	defer server.Close()
	ca := filepath.Join(t.TempDir(), "ca.pem")
	require.NoError(t, os.WriteFile(ca, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw}), 0o600))
	c, err := newClient(environment("OTEL_EXPORTER_OTLP_ENDPOINT="+server.URL, "OTEL_EXPORTER_OTLP_CERTIFICATE="+ca,
		"OTEL_EXPORTER_OTLP_HEADERS=authorization=Bearer%20s3cret, x-scope=eu", "OTEL_EXPORTER_OTLP_COMPRESSION=gzip", "OTEL_EXPORTER_OTLP_TIMEOUT=5000"))
	require.NoError(t, err)
	assert.Equal(t, 5*time.Second, c.timeout)
	require.NoError(t, c.UploadTraces(t.Context(), spans))
	require.NoError(t, c.Stop(t.Context()))
	assert.Equal(t, "/v1/traces", got.URL.Path)
	assert.Equal(t, "application/x-protobuf", got.Header.Get("Content-Type"))
	assert.Equal(t, "Bearer s3cret", got.Header.Get("Authorization"))
	assert.Equal(t, "eu", got.Header.Get("X-Scope"))
	var sent tracev1.TracesData
	require.NoError(t, proto.Unmarshal(body, &sent))
	assert.Equal(t, "pass", sent.ResourceSpans[0].ScopeSpans[0].Spans[0].Name)
}

func TestEveryFaultyVariableIsNamedAndNoSecretRepeated(t *testing.T) {
	_, err := newClient(environment("OTEL_EXPORTER_OTLP_ENDPOINT=me:s3cret@collector", "OTEL_EXPORTER_OTLP_TRACES_HEADERS=s3cret",
		"OTEL_EXPORTER_OTLP_TIMEOUT=10s", "OTEL_EXPORTER_OTLP_COMPRESSION=zstd", "OTEL_EXPORTER_OTLP_CERTIFICATE=/does/not/exist"))
	for _, part := range []string{
		"OTEL_EXPORTER_OTLP_ENDPOINT: is no http or https URL", "OTEL_EXPORTER_OTLP_TRACES_HEADERS: is no list of key=value",
		"OTEL_EXPORTER_OTLP_TIMEOUT: is no number of milliseconds", "OTEL_EXPORTER_OTLP_COMPRESSION: there are gzip and none",
		"OTEL_EXPORTER_OTLP_CERTIFICATE: open /does/not/exist",
	} {
		require.ErrorContains(t, err, part)
	}
	assert.NotContains(t, err.Error(), "s3cret")
}

// answers is a transport that gives these status codes, one after the other, the last for ever.
type answers struct {
	codes []int
	asked int
}

func (a *answers) RoundTrip(r *http.Request) (*http.Response, error) {
	code := a.codes[min(a.asked, len(a.codes)-1)]
	a.asked++
	return &http.Response{StatusCode: code, Status: http.StatusText(code), Body: io.NopCloser(strings.NewReader("no")), Request: r}, nil
}

func TestWhatIsTriedAgain(t *testing.T) {
	for _, tt := range []struct {
		name  string
		codes []int
		asked int
		fault string
	}{
		{"taken", []int{200}, 1, ""},
		{"busy for a moment", []int{503, 429, 200}, 3, ""},
		{"busy for ever", []int{503}, 4, "Service Unavailable"},
		{"refused", []int{400}, 1, "Bad Request"},
		{"sent elsewhere", []int{307}, 1, "Temporary Redirect"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				c, err := newClient(environment("OTEL_EXPORTER_OTLP_ENDPOINT=http://me:s3cret@collector:4318"))
				require.NoError(t, err)
				transport := &answers{codes: tt.codes}
				c.http.Transport = transport
				err = c.UploadTraces(t.Context(), spans)
				assert.Equal(t, tt.asked, transport.asked)
				if tt.fault == "" {
					require.NoError(t, err)
					return
				}
				require.ErrorContains(t, err, tt.fault)
				assert.NotContains(t, err.Error(), "s3cret")
			})
		})
	}
}

func TestAnExportEndsWithItsContext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, err := newClient(environment())
		require.NoError(t, err)
		c.http.Transport = &answers{codes: []int{503}}
		ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
		defer cancel()
		began := time.Now()
		require.Error(t, c.UploadTraces(ctx, spans))
		assert.Equal(t, 100*time.Millisecond, time.Since(began))
	})
}
