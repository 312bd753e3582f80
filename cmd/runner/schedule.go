package main

import (
	"context"
	"errors"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/syncpass/syncpass/pass"
	"github.com/syncpass/syncpass/policy"
)

// schedule runs the verb schedule: passes at each policy's interval, until a signal comes or the window closes.
func (a *app) schedule(ctx context.Context) error {
	s, err := a.start(ctx, scrapers)
	if err != nil {
		return err
	}
	defer s.host.cluster.Close()
	scheduler := newScheduler(s.log)
	var listed []types.NamespacedName // a paused tenant has no result, and its interval is to be pushed all the same
	scheduler.list = func(ctx context.Context) ([]types.NamespacedName, error) {
		tenants, err := s.host.tenants(ctx, s.config)
		if err == nil {
			listed = tenants
			s.telemetry.metrics.Keep(tenants)
		}
		return tenants, err
	}
	scheduler.load = func(ctx context.Context, t types.NamespacedName) (policy.Schedule, error) {
		schedule, err := s.schedule(ctx, t)
		if err == nil {
			s.telemetry.metrics.Scheduled(t, schedule)
		}
		return schedule, err
	}
	scheduler.pass = func(ctx context.Context, t types.NamespacedName) pass.Result { return s.pass(ctx, t, false) }
	scheduler.window, scheduler.concurrency = s.config.Window, s.config.TenantConcurrency
	// A pass has a short deadline of its own for recording, after its timeout; far beyond both it hangs.
	scheduler.hung = 2*s.config.PassTimeout + time.Minute

	stop, err := a.serveHealth(s, scheduler)
	if err != nil {
		return err
	}
	defer stop()
	a.results, err = scheduler.run(ctx)
	if err != nil {
		return err
	}
	if s.config.Window > 0 { // a run that ends, as a Job's does: nobody may have had the time to scrape it
		tenants := append(tenantsOf(a.results), listed...)
		slices.SortFunc(tenants, compareNames)
		s.push(ctx, slices.Compact(tenants))
	}
	if stopped := (stopSignal{}); errors.As(context.Cause(ctx), &stopped) {
		return &failure{code: stopped.exitCode(), err: stopped}
	}
	return nil
}
