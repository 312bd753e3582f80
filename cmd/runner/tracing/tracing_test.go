package tracing

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/otel/codes"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"

	"github.com/syncpass/syncpass/pass"
	"github.com/syncpass/syncpass/pass/access"
	"github.com/syncpass/syncpass/record"
)

// recorder returns a Tracer, and what it has traced: one line a span, in the order of their ends.
func recorder(t *testing.T) (*Tracer, func() []string) {
	spans := tracetest.NewInMemoryExporter()
	provider := sdktrace.NewTracerProvider(sdktrace.WithSyncer(spans))
	t.Cleanup(func() { assert.NoError(t, provider.Shutdown(context.WithoutCancel(t.Context()))) })
	return New(provider), func() []string {
		var lines []string
		names := map[string]string{}
		all := spans.GetSpans()
		for _, span := range all {
			names[span.SpanContext.SpanID().String()] = span.Name
		}
		for _, span := range all {
			line := span.Name
			if parent, known := names[span.Parent.SpanID().String()]; known {
				line += " in " + parent
			}
			if span.Status.Code == codes.Error {
				line += " failed: " + span.Status.Description
			}
			for _, attribute := range span.Attributes {
				line += fmt.Sprintf(" %s=%s", attribute.Key, attribute.Value.String())
			}
			lines = append(lines, line)
		}
		return lines
	}
}

func request(verb, resource, path string) access.Request {
	return access.Request{Verb: verb, Resource: resource, Method: "GET", Server: "host:6443", Path: path}
}

func TestAPassItsPhasesAndTheirRequestsAreSpansOfOneTrace(t *testing.T) {
	tracer, spans := recorder(t)
	ctx, ended := tracer.Pass(t.Context(), "team-dev", "dev", false)
	loading, loaded := tracer.Phase(ctx, pass.PhaseLoad)
	tracer.Request(loading, record.Host, request("get", "secrets", "/api/v1/namespaces/team-dev/secrets/dev-kubeconfig"))(200)
	loaded(nil)
	reading, read := tracer.Phase(ctx, pass.PhaseSnapshot)
	tracer.Request(reading, record.Tenant, request("get", "", "/apis"))(503)
	tracer.Request(reading, record.Tenant, request("list", "pods", "/api/v1/pods"))(0)
	read(errors.New("reading the tenant: the answer holds s3cret"))
	tracer.Request(ctx, record.Host, request("update", "leases", "/apis/coordination.k8s.io/v1/namespaces/team-dev/leases/syncpass-dev"))(200)
	ended(pass.Result{ID: "p1", Outcome: record.Unreachable, Message: "reading the tenant: the answer holds s3cret",
		Counts: record.Counts{Create: 1, Update: 2, Delete: 3, Skip: 4, Unchanged: 5, Error: 6, Requests: 7}})

	http := " server.address=host:6443 http.request.method=GET url.path="
	assert.Equal(t, []string{
		"get secrets in load syncpass.side=host" + http + "/api/v1/namespaces/team-dev/secrets/dev-kubeconfig http.response.status_code=200",
		"load in pass",
		"get in snapshot failed: status 503 syncpass.side=tenant" + http + "/apis http.response.status_code=503",
		"list pods in snapshot failed: no answer syncpass.side=tenant" + http + "/api/v1/pods",
		"snapshot in pass failed: Unreachable",
		"update leases in pass syncpass.side=host" + http + "/apis/coordination.k8s.io/v1/namespaces/team-dev/leases/syncpass-dev http.response.status_code=200",
		"pass failed: Unreachable syncpass.namespace=team-dev syncpass.tenant=dev syncpass.dry_run=false syncpass.pass.id=p1 syncpass.outcome=Unreachable " +
			"syncpass.create=1 syncpass.update=2 syncpass.delete=3 syncpass.skip=4 syncpass.unchanged=5 syncpass.error=6 syncpass.requests=7",
	}, spans())
	assert.NotContains(t, strings.Join(spans(), "\n"), "s3cret")
}

func TestARequestOfNoPassIsNoTraceOfItsOwn(t *testing.T) {
	tracer, spans := recorder(t)
	tracer.Request(t.Context(), record.Host, request("list", "tenantclusters", "/apis/tenantplane.io/v1alpha1/tenantclusters"))(200)
	assert.Empty(t, spans())
}

func TestWanted(t *testing.T) {
	endpoint := "OTEL_EXPORTER_OTLP_ENDPOINT=http://collector:4318"
	for _, tt := range []struct {
		name   string
		env    []string
		wanted bool
		fault  string
	}{
		{"nothing set", nil, false, ""},
		{"an endpoint", []string{endpoint}, true, ""},
		{"an endpoint for traces", []string{"OTEL_EXPORTER_OTLP_TRACES_ENDPOINT=http://collector:4318/v1/traces"}, true, ""},
		{"the exporter alone, to the usual endpoint", []string{"OTEL_TRACES_EXPORTER=otlp"}, true, ""},
		{"an endpoint for others, and no traces", []string{endpoint, "OTEL_TRACES_EXPORTER=none"}, false, ""},
		{"turned off", []string{endpoint, "OTEL_SDK_DISABLED=true"}, false, ""},
		{"not turned off", []string{endpoint, "OTEL_SDK_DISABLED=false"}, true, ""},
		{"a service name alone", []string{"OTEL_SERVICE_NAME=syncpass"}, false, ""},
		{"another exporter", []string{endpoint, "OTEL_TRACES_EXPORTER=zipkin"}, false, `OTEL_TRACES_EXPORTER="zipkin": no such exporter; there are otlp and none`},
		{"the protocol there is", []string{endpoint, "OTEL_EXPORTER_OTLP_PROTOCOL=http/protobuf"}, true, ""},
		{"another protocol", []string{endpoint, "OTEL_EXPORTER_OTLP_PROTOCOL=grpc"}, false,
			`OTEL_EXPORTER_OTLP_PROTOCOL="grpc": no such protocol; there is http/protobuf, which collectors take on port 4318`},
		{"another protocol, but not for traces", []string{endpoint, "OTEL_EXPORTER_OTLP_PROTOCOL=grpc", "OTEL_EXPORTER_OTLP_TRACES_PROTOCOL=http/protobuf"}, true, ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			wanted, err := Wanted(func(name string) (string, bool) {
				for _, pair := range tt.env {
					if key, value, _ := strings.Cut(pair, "="); key == name {
						return value, true
					}
				}
				return "", false
			})
			assert.Equal(t, tt.wanted, wanted)
			if tt.fault == "" {
				require.NoError(t, err)
			} else {
				require.EqualError(t, err, tt.fault)
			}
		})
	}
}
