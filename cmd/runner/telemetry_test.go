package main

import (
	"bytes"
	"context"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	tracev1 "go.opentelemetry.io/proto/otlp/trace/v1"
	"google.golang.org/protobuf/proto"

	"github.com/syncpass/syncpass/cmd/runner/metrics"
	"github.com/syncpass/syncpass/cmd/runner/progress"
	"github.com/syncpass/syncpass/pass"
	"github.com/syncpass/syncpass/pass/access"
	"github.com/syncpass/syncpass/record"
)

func TestPassesAreCountedAndDryRunsAreNot(t *testing.T) {
	counted := metrics.New()
	s := sessionWith(config{TenantConcurrency: 2}, slog.New(slog.DiscardHandler), func(_ context.Context, o pass.Options) pass.Result {
		if o.Tenant == "b" {
			panic("index out of range")
		}
		return pass.Result{Outcome: record.Completed}
	})
	s.telemetry.metrics = counted
	s.passes(t.Context(), tenantNames("n/a", "n/b"), false)
	s.passes(t.Context(), tenantNames("n/a", "n/b"), true)

	answer := httptest.NewRecorder()
	counted.Handler(s.log).ServeHTTP(answer, httptest.NewRequest(http.MethodGet, "/metrics", nil))
	assert.Contains(t, answer.Body.String(), `syncpass_passes_total{namespace="n",outcome="Completed",tenant="a"} 1`)
	assert.Contains(t, answer.Body.String(), `syncpass_passes_total{namespace="n",outcome="Failed",tenant="b"} 1`)
}

func TestOnATerminalEachPassHasALineWhileItRuns(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var terminal bytes.Buffer
		screen := progress.NewScreen(&terminal, func() int { return 80 })
		s := sessionWith(config{TenantConcurrency: 2}, slog.New(slog.NewTextHandler(screen, nil)), func(ctx context.Context, o pass.Options) pass.Result {
			_, end := o.Begin(ctx, pass.PhaseApply)
			o.Progress(0, 10)
			time.Sleep(time.Second)
			o.Progress(5, 10)
			time.Sleep(time.Second)
			end(nil)
			return pass.Result{Outcome: record.Completed}
		})
		s.telemetry.screen = screen
		s.passes(t.Context(), tenantNames("n/a", "n/b"), false)
		drawn := terminal.String()
		assert.Contains(t, drawn, "n/a: apply 5/10, ")
		assert.Contains(t, drawn, "n/b: apply 5/10, ")
		assert.True(t, strings.HasSuffix(drawn, "\x1b[1A\x1b[J"), "the last line is taken away: %q", drawn)
	})
}

func TestWithoutATerminalAndTracesAPassHasNothingAddedToItsContext(t *testing.T) {
	ctx, followed := telemetry{}.begin(t.Context(), tenantNames("n/a")[0], false, slog.New(slog.DiscardHandler))
	defer followed.end(pass.Result{})
	assert.Equal(t, t.Context(), ctx)
	inPhase, _ := followed.phase(ctx, pass.PhaseLoad)
	assert.Equal(t, t.Context(), inPhase)
	assert.Nil(t, telemetry{}.observe(record.Host))
}

// sink is a server that takes what it is sent, and answers with code.
type sink struct {
	code int
	lock sync.Mutex
	sent map[string][]byte // by path
}

func (s *sink) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, _ := io.ReadAll(r.Body)
	s.lock.Lock()
	defer s.lock.Unlock()
	s.sent[r.URL.Path] = append(s.sent[r.URL.Path], body...)
	w.WriteHeader(s.code)
}

func newSink(t *testing.T, code int) (*sink, string) {
	s := &sink{code: code, sent: map[string][]byte{}}
	server := httptest.NewServer(s)
	t.Cleanup(server.Close)
	return s, server.URL
}

func TestARunThatEndsPushesItsMetrics(t *testing.T) {
	host := "SYNCPASS_HOST_KUBECONFIG=" + (&fakeHost{tenants: tenantNames("team-dev/dev", "team-b/guarded", "team-p/paused")}).serve(t)
	for _, tt := range []struct {
		name      string
		args      []string
		variables []string
		answer    int
		code      int
		pushed    int
		stderr    string
	}{
		{name: "a pass", args: []string{"pass"}, answer: 200, pushed: 1},
		{name: "passes over several tenants, one of them guarded", args: []string{"pass"}, variables: []string{"SYNCPASS_ALL_NAMESPACES=true"}, answer: 200, code: 4, pushed: 3},
		{name: "a window", args: []string{"schedule"}, variables: []string{"SYNCPASS_WINDOW=5s", "SYNCPASS_METRICS_ADDR=127.0.0.1:0"}, answer: 200, pushed: 1},
		{name: "a window of a tenant that is paused", args: []string{"schedule"}, answer: 200, pushed: 1,
			variables: []string{"SYNCPASS_WINDOW=5s", "SYNCPASS_METRICS_ADDR=127.0.0.1:0", "SYNCPASS_NAMESPACE=team-p"}},
		{name: "a dry run has nothing to push", args: []string{"plan"}, answer: 200},
		{name: "a Pushgateway that refuses changes no exit code", args: []string{"pass"}, answer: 500, pushed: 1,
			stderr: `"level":"WARN","msg":"Metrics were not pushed","error":"pushing the metrics of team-dev/dev: unexpected status code 500`},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			gateway, address := newSink(t, tt.answer)
			address = strings.Replace(address, "http://", "http://me:s3cret@", 1)
			code, _, stderr := exited(t, runner(t, append(tt.variables, host, "SYNCPASS_PUSHGATEWAY="+address), tt.args...))
			assert.Equal(t, tt.code, code, stderr)
			assert.Len(t, gateway.sent, tt.pushed)
			assert.Contains(t, stderr, tt.stderr)
			assert.NotContains(t, stderr, "s3cret")
		})
	}
}

func TestTracesGoWhereTheStandardVariablesSay(t *testing.T) {
	host := "SYNCPASS_HOST_KUBECONFIG=" + (&fakeHost{tenants: tenantNames("team-dev/traced")}).serve(t)
	received, address := newSink(t, 200)
	endpoint := "OTEL_EXPORTER_OTLP_ENDPOINT=" + address
	code, _, stderr := exited(t, runner(t, []string{host, endpoint, "OTEL_SERVICE_NAME=sync-of-europe", "OTEL_RESOURCE_ATTRIBUTES=region=eu"}, "pass"))
	require.Zero(t, code, stderr)
	var export tracev1.TracesData
	require.NoError(t, proto.Unmarshal(received.sent["/v1/traces"], &export))
	require.Len(t, export.ResourceSpans, 1)
	about := map[string]string{}
	for _, attribute := range export.ResourceSpans[0].Resource.Attributes {
		about[attribute.Key] = attribute.Value.GetStringValue()
	}
	assert.Equal(t, "sync-of-europe", about["service.name"])
	assert.Equal(t, "eu", about["region"])
	var names []string
	for _, span := range export.ResourceSpans[0].ScopeSpans[0].Spans {
		names = append(names, span.Name)
	}
	assert.Equal(t, []string{"list secrets", "apply", "pass"}, names)

	for name, tt := range map[string]struct {
		variables []string
		stderr    string
	}{
		"without an endpoint there are none": {[]string{"OTEL_SERVICE_NAME=x"}, ""},
		"they can be turned off":             {[]string{endpoint, "OTEL_SDK_DISABLED=true"}, ""},
		"another exporter is none":           {[]string{endpoint, "OTEL_TRACES_EXPORTER=zipkin"}, `"msg":"There are no traces","error":"OTEL_TRACES_EXPORTER=\"zipkin\": no such exporter`},
	} {
		t.Run(name, func(t *testing.T) {
			clear(received.sent)
			code, _, stderr := exited(t, runner(t, append(tt.variables, host), "pass"))
			assert.Zero(t, code)
			assert.Empty(t, received.sent)
			assert.Contains(t, stderr, tt.stderr)
		})
	}
}

func TestACollectorThatRefusesIsAWarning(t *testing.T) {
	host := "SYNCPASS_HOST_KUBECONFIG=" + (&fakeHost{tenants: tenantNames("team-dev/traced")}).serve(t)
	received, address := newSink(t, http.StatusBadRequest)
	code, stdout, stderr := exited(t, runner(t, []string{host, "OTEL_EXPORTER_OTLP_ENDPOINT=" + address}, "pass"))
	assert.Zero(t, code)
	assert.Contains(t, stdout, "(Completed)")
	assert.Contains(t, stderr, `"level":"WARN","msg":"Traces were lost"`)
	assert.Len(t, received.sent, 1)
}

// traced is a pass that does what is traced.
func traced(ctx context.Context, o pass.Options) {
	ctx, end := o.Begin(ctx, pass.PhaseApply)
	if o.ObserveTenant != nil {
		o.ObserveTenant(ctx, access.Request{Verb: "list", Resource: "secrets"})(http.StatusOK)
	}
	end(nil)
}
