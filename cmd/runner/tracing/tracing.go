package tracing

import (
	"context"
	"fmt"
	"net/http"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/trace"

	"github.com/syncpass/syncpass/pass"
	"github.com/syncpass/syncpass/pass/access"
	"github.com/syncpass/syncpass/record"
)

// scope names this program's spans among those of other libraries.
const scope = "github.com/syncpass/syncpass"

// Tracer makes the spans of passes. Safe for concurrent use.
type Tracer struct{ tracer trace.Tracer }

// New returns a Tracer whose spans go to the provider.
func New(provider trace.TracerProvider) *Tracer { return &Tracer{tracer: provider.Tracer(scope)} }

// Pass begins the span of one pass over the tenant that namespace and name say. The function returned ends it with the
// pass's result.
func (t *Tracer) Pass(ctx context.Context, namespace, tenant string, dryRun bool) (context.Context, func(pass.Result)) {
	ctx, span := t.tracer.Start(ctx, "pass", trace.WithAttributes(
		attribute.String("syncpass.namespace", namespace), attribute.String("syncpass.tenant", tenant), attribute.Bool("syncpass.dry_run", dryRun)))
	return ctx, func(r pass.Result) {
		span.SetAttributes(
			attribute.String("syncpass.pass.id", r.ID), attribute.String("syncpass.outcome", string(r.Outcome)),
			attribute.Int("syncpass.create", r.Counts.Create), attribute.Int("syncpass.update", r.Counts.Update),
			attribute.Int("syncpass.delete", r.Counts.Delete), attribute.Int("syncpass.skip", r.Counts.Skip),
			attribute.Int("syncpass.unchanged", r.Counts.Unchanged), attribute.Int("syncpass.error", r.Counts.Error),
			attribute.Int("syncpass.requests", r.Counts.Requests))
		if r.Outcome != record.Completed {
			span.SetStatus(codes.Error, string(r.Outcome))
		}
		span.End()
	}
}

// Phase begins the span of a phase. It has the form of pass.Options.Begin.
func (t *Tracer) Phase(ctx context.Context, phase pass.Phase) (context.Context, func(error)) {
	ctx, span := t.tracer.Start(ctx, string(phase))
	return ctx, func(err error) {
		if err != nil {
			// Not the error's text, into which a server may have written what an object holds.
			span.SetStatus(codes.Error, string(pass.OutcomeOf(err)))
		}
		span.End()
	}
}

// Request begins the span of a request to an API server of a side; the function returned ends it with the status code of
// the answer, 0 where none came. A request of no pass, such as listing the tenants, would be a trace of its own, and has
// none.
func (t *Tracer) Request(ctx context.Context, side record.Side, r access.Request) (answered func(status int)) {
	if !trace.SpanContextFromContext(ctx).IsValid() {
		return func(int) {}
	}
	name := r.Verb
	if r.Resource != "" {
		name += " " + r.Resource
	}
	_, span := t.tracer.Start(ctx, name, trace.WithSpanKind(trace.SpanKindClient), trace.WithAttributes(
		attribute.String("syncpass.side", string(side)), attribute.String("server.address", r.Server),
		attribute.String("http.request.method", r.Method), attribute.String("url.path", r.Path)))
	return func(status int) {
		if status == 0 {
			span.SetStatus(codes.Error, "no answer")
		} else {
			span.SetAttributes(attribute.Int("http.response.status_code", status))
		}
		if status >= http.StatusBadRequest { // https://opentelemetry.io/docs/specs/semconv/http/http-spans/#status
			span.SetStatus(codes.Error, fmt.Sprintf("status %d", status))
		}
		span.End()
	}
}
