package main

import (
	"context"
	"fmt"
	"log/slog"
	"os"
	"runtime/debug"
	"time"

	"golang.org/x/sync/errgroup"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/syncpass/syncpass/pass"
	"github.com/syncpass/syncpass/policy"
	"github.com/syncpass/syncpass/record"
)

// session is one run of a verb that works on tenants: its configuration, its log, and the way to the host.
type session struct {
	config config
	log    *slog.Logger
	host   host
	// identity names this process in Leases and Events, userAgent this program to API servers.
	identity, userAgent string
	telemetry           telemetry
	// changes asks dry runs for what their decisions would change.
	changes bool
	passFuncs
}

// passFuncs are what package pass does for the verbs.
type passFuncs struct {
	// run carries out one pass.
	run func(context.Context, pass.Options) pass.Result
	// loadSchedule reads a tenant's policy and says when passes are due, without running one.
	loadSchedule func(context.Context, pass.Options) (policy.Schedule, error)
	// findConflicts and resolve are the two halves of settling conflicts: before a person is asked, and after.
	findConflicts func(context.Context, pass.Options, string, types.NamespacedName) ([]pass.Conflict, error)
	resolve       func(context.Context, pass.Options, pass.Verdict) pass.Result
}

// passes runs one pass, or one dry run, for each tenant, and returns the results in the order of the tenants.
func (s *session) passes(ctx context.Context, tenants []types.NamespacedName, dryRun bool) []pass.Result {
	results := make([]pass.Result, len(tenants))
	var group errgroup.Group
	group.SetLimit(s.config.TenantConcurrency)
	for i, tenant := range tenants {
		group.Go(func() error {
			results[i] = s.pass(ctx, tenant, dryRun)
			return nil
		})
	}
	_ = group.Wait() // no pass returns an error: it is in its result
	return results
}

// pass runs one pass for one tenant. It always returns a result, also where the pass panics, so that one tenant cannot
// take the passes of the others down.
func (s *session) pass(ctx context.Context, tenant types.NamespacedName, dryRun bool) (result pass.Result) {
	started := time.Now()
	log := s.log.With("namespace", tenant.Namespace, "tenant", tenant.Name)
	ctx, followed := s.telemetry.begin(ctx, tenant, dryRun, log)
	defer func() {
		if p := recover(); p != nil {
			log.Error("Pass panicked", "panic", fmt.Sprint(p), "stack", string(debug.Stack()))
			result = ended(started, outcomeFailed, fmt.Errorf("the pass panicked: %v: this is a fault of the runner, its log has the stack", p))
		}
		result.Namespace, result.Tenant = tenant.Namespace, tenant.Name
		followed.end(result)
	}()
	if ctx.Err() != nil {
		return ended(started, record.Stopped, fmt.Errorf("not started: %w", context.Cause(ctx)))
	}
	options, err := s.options(tenant)
	if err != nil {
		return ended(started, record.Invalid, err)
	}
	options.DryRun, options.Changes, options.Log = dryRun, dryRun && s.changes, log
	followed.options(&options)
	return s.run(ctx, options)
}

// ended is the result of a pass that never came to the point of making one.
func ended(started time.Time, outcome record.Outcome, err error) pass.Result {
	return pass.Result{
		Outcome: outcome, Message: err.Error(), Err: err,
		StartTime: metav1.NewMicroTime(started), EndTime: metav1.NewMicroTime(time.Now()),
	}
}

// schedule says when passes over the tenant are due. Like pass, it keeps a panic from the other tenants.
func (s *session) schedule(ctx context.Context, tenant types.NamespacedName) (_ policy.Schedule, err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("reading the policy panicked: %v: this is a fault of the runner", p)
		}
	}()
	options, err := s.options(tenant)
	if err != nil {
		return policy.Schedule{}, err
	}
	options.Log = s.log.With("namespace", tenant.Namespace, "tenant", tenant.Name)
	return s.loadSchedule(ctx, options)
}

// options reads the policy file anew each time: a schedule outlives edits of the ConfigMap it is mounted from.
func (s *session) options(tenant types.NamespacedName) (pass.Options, error) {
	c := s.config
	fromFile, err := policyFile(c.Policy)
	return pass.Options{
		Host:                   s.host.cluster,
		Namespace:              tenant.Namespace,
		Tenant:                 tenant.Name,
		TenantKubeconfigFile:   c.TenantKubeconfig,
		TenantKubeconfigSecret: c.TenantKubeconfigSecret,
		Policy:                 fromFile,
		RenderedInterval:       c.Rendered,
		RenderedForAll:         c.AllNamespaces,
		PassTimeout:            c.PassTimeout,
		LeaseDuration:          c.LeaseDuration,
		RequestTimeout:         c.RequestTimeout,
		Concurrency:            c.Concurrency,
		MaxDeletePercent:       c.MaxDeletePercent,
		RetireKinds:            c.RetireKinds,
		WorkloadServiceAccount: c.WorkloadServiceAccount,
		TenantAPIEndpoint:      c.TenantAPIEndpoint,
		TenantDNS:              c.TenantDNS,
		PodSecurity:            c.PodSecurity,
		PriorityClasses:        c.PriorityClasses,
		UserAgent:              s.userAgent,
		Identity:               s.identity,
	}, err
}

// policyFile reads the SyncPolicy in the file that SYNCPASS_POLICY names; nil without a path.
func policyFile(path string) (*policy.SyncPolicy, error) { return policyFrom("SYNCPASS_POLICY", path) }

// policyFrom reads the SyncPolicy in a file, which this variable or flag names; nil without a path.
func policyFrom(name, path string) (*policy.SyncPolicy, error) {
	if path == "" {
		return nil, nil
	}
	data, err := os.ReadFile(path)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	p, err := policy.Parse(data)
	if err != nil {
		return nil, fmt.Errorf("%s=%s: %w", name, mask(path), err)
	}
	return p, nil
}
