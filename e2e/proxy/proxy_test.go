package proxy

import (
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"k8s.io/client-go/rest"
)

// fixture is a proxy in front of a server that answers with the request's
// Authorization header, and a client that trusts the proxy alone.
func fixture(t *testing.T, status int) (*Proxy, *Log, *http.Client, func() int) {
	t.Helper()
	seen := make(chan struct{}, 100)
	upstream := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		seen <- struct{}{}
		body, _ := io.ReadAll(r.Body)
		w.WriteHeader(status)
		_, _ = io.WriteString(w, r.Proto+" "+r.Header.Get("Authorization")+" "+r.URL.RequestURI()+" "+string(body))
	}))
	upstream.EnableHTTP2 = true
	upstream.StartTLS()
	t.Cleanup(upstream.Close)
	ca := upstream.TLS.Certificates[0].Certificate[0]

	log := &Log{}
	config := &rest.Config{Host: upstream.URL, BearerToken: "the proxy's own",
		TLSClientConfig: rest.TLSClientConfig{CAData: pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: ca})}}
	p, err := Start("host", config, log)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, p.Close()) })

	roots := x509.NewCertPool()
	require.True(t, roots.AppendCertsFromPEM(p.CA()))
	client := &http.Client{
		Transport: &http.Transport{TLSClientConfig: &tls.Config{RootCAs: roots}, ForceAttemptHTTP2: true},
		Timeout:   10 * time.Second,
	}
	t.Cleanup(client.CloseIdleConnections)
	return p, log, client, func() int { return len(seen) }
}

func send(t *testing.T, client *http.Client, method, url, body string) (*http.Response, string, error) {
	t.Helper()
	request, err := http.NewRequestWithContext(t.Context(), method, url, strings.NewReader(body))
	require.NoError(t, err)
	request.Header.Set("Authorization", "Bearer the client's")
	request.Header.Set("User-Agent", "tester")
	response, err := client.Do(request)
	if err != nil {
		return nil, "", err
	}
	defer func() { _ = response.Body.Close() }()
	data, err := io.ReadAll(response.Body)
	return response, string(data), err
}

const configMaps = "/api/v1/namespaces/team-dev/configmaps"

func TestARequestIsForwardedWithItsOwnCredentialsAndWrittenDown(t *testing.T) {
	p, log, client, _ := fixture(t, http.StatusCreated)
	response, body, err := send(t, client, http.MethodPost, p.URL()+configMaps+"?fieldManager=x", "payload")
	require.NoError(t, err)
	require.Equal(t, 2, response.ProtoMajor)
	require.Equal(t, "HTTP/2.0 Bearer the client's "+configMaps+"?fieldManager=x payload", body)

	requests, err := log.Settled(t.Context(), 0)
	require.NoError(t, err)
	require.Len(t, requests, 1)
	got := requests[0]
	require.False(t, got.Start.IsZero())
	got.Start = time.Time{}
	require.Equal(t, Request{Server: "host", Method: "POST", Path: configMaps, Query: "fieldManager=x",
		UserAgent: "tester", Status: http.StatusCreated, Sent: int64(len("payload")), Received: int64(len(body)), Write: true, Done: true}, got)
	require.Equal(t, "W host   201 POST   "+configMaps+"?fieldManager=x", got.String())
}

func TestARefusedRequestIsNoWrite(t *testing.T) {
	p, log, client, _ := fixture(t, http.StatusConflict)
	_, _, err := send(t, client, http.MethodPut, p.URL()+configMaps+"/a", "")
	require.NoError(t, err)
	require.Zero(t, Writes(log.Since(0)))
}

func TestADeleteWhoseBodyAsksForADryRunIsNoWriteAndKeepsItsBody(t *testing.T) {
	p, log, client, _ := fixture(t, http.StatusOK)
	options := `{"dryRun":["All"]}`
	_, body, err := send(t, client, http.MethodDelete, p.URL()+configMaps+"/a", options)
	require.NoError(t, err)
	require.Contains(t, body, options)
	require.Zero(t, Writes(log.Since(0)))

	mark := log.Mark()
	_, _, err = send(t, client, http.MethodDelete, p.URL()+configMaps+"/a", `{}`)
	require.NoError(t, err)
	require.Equal(t, 1, Writes(log.Since(mark)))
}

func TestAHookBeforeKeepsARequestFromTheServer(t *testing.T) {
	p, log, client, seen := fixture(t, http.StatusOK)
	p.SetHook(func(m Moment, r Request) http.Handler {
		if m != Before || r.Method != http.MethodPost {
			return nil
		}
		return http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusGatewayTimeout) })
	})
	response, _, err := send(t, client, http.MethodPost, p.URL()+configMaps, "")
	require.NoError(t, err)
	require.Equal(t, http.StatusGatewayTimeout, response.StatusCode)
	require.Zero(t, seen())
	requests := log.Since(0)
	require.Equal(t, http.StatusGatewayTimeout, requests[0].Status)
	require.Zero(t, Writes(requests), "the server never saw it")

	p.SetHook(nil)
	response, _, err = send(t, client, http.MethodPost, p.URL()+configMaps, "")
	require.NoError(t, err)
	require.Equal(t, http.StatusOK, response.StatusCode)
}

func TestAHookAfterTakesTheAnswerAwayOfAWriteThatWasMade(t *testing.T) {
	p, log, client, seen := fixture(t, http.StatusOK)
	p.SetHook(func(m Moment, r Request) http.Handler {
		if m == After && r.Status == http.StatusOK {
			return Drop
		}
		return nil
	})
	// A POST: the standard library sends requests of other methods again.
	_, _, err := send(t, client, http.MethodPost, p.URL()+configMaps, "x")
	require.Error(t, err)
	require.Equal(t, 1, seen())
	requests, err := log.Settled(t.Context(), 0)
	require.NoError(t, err)
	require.Len(t, requests, 1)
	require.Zero(t, requests[0].Status)
	require.Equal(t, 1, Writes(requests))
}

func TestWhatCountsAsAWrite(t *testing.T) {
	for _, test := range []struct {
		name, method, path string
		dryRun             bool
		status             int
		want               bool
	}{
		{"a create", "POST", "/api/v1/namespaces/a/configmaps", false, 201, true},
		{"a create whose answer was lost", "POST", "/api/v1/namespaces/a/configmaps", false, 0, true},
		{"a create that the server failed in", "POST", "/api/v1/namespaces/a/configmaps", false, 504, true},
		{"a create that was refused", "POST", "/api/v1/namespaces/a/configmaps", false, 403, false},
		{"a dry run", "POST", "/api/v1/namespaces/a/configmaps", true, 201, false},
		{"a read", "GET", "/api/v1/namespaces/a/configmaps", false, 200, false},
		{"a patch of a status", "PATCH", "/api/v1/namespaces/a/pods/p/status", false, 200, true},
		{"a delete of a collection", "DELETE", "/apis/apps/v1/namespaces/a/deployments", false, 200, true},
		{"the deletion of a namespace", "DELETE", "/api/v1/namespaces/events", false, 200, true},
		{"the status of a namespace", "PUT", "/api/v1/namespaces/events/status", false, 200, true},
		{"a custom resource called leases", "POST", "/apis/example.com/v1/namespaces/a/leases", false, 201, true},
		{"a TenantCluster", "PATCH", "/apis/tenantplane.io/v1alpha1/namespaces/a/tenantclusters/dev", false, 200, true},
		{"a SyncDecision's status", "PUT", "/apis/tenantplane.io/v1alpha1/namespaces/a/syncdecisions/dev/status", false, 200, false},
		{"a Lease", "PUT", "/apis/coordination.k8s.io/v1/namespaces/a/leases/l", false, 200, false},
		{"an Event", "POST", "/api/v1/namespaces/a/events", false, 201, false},
		{"an Event of the newer API", "POST", "/apis/events.k8s.io/v1/namespaces/a/events", false, 201, false},
		{"a question about one's own rights", "POST", "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews", false, 201, false},
		{"a namespaced question about rights", "POST", "/apis/authorization.k8s.io/v1/namespaces/a/localsubjectaccessreviews", false, 201, false},
		{"a question about a token", "POST", "/apis/authentication.k8s.io/v1/tokenreviews", false, 201, false},
		{"a request for a token", "POST", "/api/v1/namespaces/a/serviceaccounts/robot/token", false, 201, false},
		{"a ServiceAccount", "POST", "/api/v1/namespaces/a/serviceaccounts", false, 201, true},
		{"a binding", "POST", "/api/v1/namespaces/a/pods/p/binding", false, 201, true},
	} {
		t.Run(test.name, func(t *testing.T) {
			require.Equal(t, test.want, isWrite(mayWrite(test.method, test.path, test.dryRun), test.status))
		})
	}
}
