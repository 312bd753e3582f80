package main

import (
	"context"
	"fmt"
	"log/slog"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/syncpass/syncpass/cmd/runner/metrics"
	"github.com/syncpass/syncpass/cmd/runner/progress"
	"github.com/syncpass/syncpass/cmd/runner/tracing"
	"github.com/syncpass/syncpass/pass"
	"github.com/syncpass/syncpass/pass/access"
	"github.com/syncpass/syncpass/record"
)

// Telling others what happened must not keep a run from ending: these bound it. After a signal the whole process has five
// seconds, of which a pass may need nearly all.
const (
	pushWithin       = 5 * time.Second
	flushWithin      = 5 * time.Second
	flushAfterSignal = 150 * time.Millisecond
)

// telemetry is who is told of passes: while they run, and when they end.
type telemetry struct {
	metrics *metrics.Metrics // nil where nothing is counted
	tracer  *tracing.Tracer  // nil where nobody asked for traces
	screen  *progress.Screen // nil where nobody watches a terminal
}

// observe is told of the requests to a side's API server; it is nil where nobody wants to know.
func (t telemetry) observe(side record.Side) access.Observe {
	if t.metrics == nil && t.tracer == nil {
		return nil
	}
	return func(ctx context.Context, r access.Request) func(int) {
		sent, traced := time.Now(), func(int) {}
		if t.tracer != nil {
			traced = t.tracer.Request(ctx, side, r)
		}
		return func(status int) {
			traced(status)
			if t.metrics != nil {
				t.metrics.Request(side, r, status, time.Since(sent))
			}
		}
	}
}

// begin begins to follow one pass, which goes on under the context returned.
func (t telemetry) begin(ctx context.Context, tenant types.NamespacedName, dryRun bool, log *slog.Logger) (context.Context, *followed) {
	p := &followed{telemetry: t, dryRun: dryRun, progress: progress.Follow(t.screen, log, tenant.String()), traced: func(pass.Result) {}}
	if t.tracer != nil {
		ctx, p.traced = t.tracer.Pass(ctx, tenant.Namespace, tenant.Name, dryRun)
	}
	return ctx, p
}

// followed is one pass that is followed.
type followed struct {
	telemetry
	dryRun   bool
	progress *progress.Pass
	traced   func(pass.Result)
}

// options are what makes the pass tell.
func (p *followed) options(o *pass.Options) {
	o.Begin, o.Progress, o.ObserveTenant = p.phase, p.progress.Writes, p.observe(record.Tenant)
}

func (p *followed) phase(ctx context.Context, phase pass.Phase) (context.Context, func(error)) {
	p.progress.Phase(phase)
	if p.tracer == nil {
		return ctx, func(error) {}
	}
	return p.tracer.Phase(ctx, phase)
}

// end tells what the pass came to. A dry run is not counted: it has done nothing.
func (p *followed) end(result pass.Result) {
	p.progress.End()
	p.traced(result)
	if p.metrics != nil && !p.dryRun {
		p.metrics.Pass(result)
	}
}

// audience is who a verb tells its metrics.
type audience int

const (
	// nobody: the verb makes no passes.
	nobody audience = iota
	// gateway is the Pushgateway, where one is configured.
	gateway
	// scrapers ask for /metrics.
	scrapers
)

// newTelemetry makes what the environment asks for, and metrics where they are counted.
func (a *app) newTelemetry(ctx context.Context, version string, counted bool) telemetry {
	t := telemetry{screen: a.screen}
	if counted {
		t.metrics = metrics.New()
	}
	wanted, err := tracing.Wanted(a.env.Lookup)
	if err != nil {
		a.log.Warn("There are no traces", "error", err)
	}
	if !wanted {
		return t
	}
	log := a.log
	provider, err := tracing.Provider(ctx, a.env.Lookup, version, log)
	if err != nil {
		log.Warn("There are no traces", "error", err)
		return t
	}
	t.tracer = tracing.New(provider)
	a.flush = func(ctx context.Context) {
		within := flushWithin
		if ctx.Err() != nil {
			within = flushAfterSignal
		}
		limited, cancel := context.WithTimeout(context.WithoutCancel(ctx), within)
		defer cancel()
		if err := provider.Shutdown(limited); err != nil {
			log.Warn("Traces were lost", "error", fmt.Errorf("sending what was left, for %s: %w", within, err))
		}
	}
	return t
}

// push sends the metrics of tenants to the Pushgateway, if there is one. That it fails is a warning; a run that is to
// stop leaves it.
func (s *session) push(ctx context.Context, tenants []types.NamespacedName) {
	if s.config.Pushgateway == "" || ctx.Err() != nil {
		return
	}
	gateway, err := metrics.ParseGateway(s.config.Pushgateway)
	if err == nil {
		limited, cancel := context.WithTimeout(ctx, pushWithin)
		defer cancel()
		err = s.telemetry.metrics.Push(limited, gateway, tenants)
	}
	for _, line := range errorLines(err) {
		s.log.Warn("Metrics were not pushed", "error", printable(line))
	}
}

// tenantsOf are the tenants that had a pass.
func tenantsOf(results []pass.Result) []types.NamespacedName {
	var tenants []types.NamespacedName
	for _, r := range results {
		tenants = append(tenants, types.NamespacedName{Namespace: r.Namespace, Name: r.Tenant})
	}
	return tenants
}
