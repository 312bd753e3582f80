package pass

import (
	"context"
	"sync/atomic"

	"github.com/syncpass/syncpass/pass/apply"
	"github.com/syncpass/syncpass/pass/plan"
)

// Phase is a part of a pass that others are told of while it goes on.
type Phase string

// The phases, in their order. A dry run has no lease, and ends with the plan; a pass that has nothing to write does not
// reserve.
const (
	// PhaseLoad reads the TenantCluster, its policy, and the tenant's kubeconfig.
	PhaseLoad Phase = "load"
	// PhaseLease takes the tenant's Lease.
	PhaseLease Phase = "lease"
	// PhaseSnapshot reads the record and both sides.
	PhaseSnapshot Phase = "snapshot"
	// PhasePlan computes what to do, and asks the host for dry runs where its defaults may be all that differs.
	PhasePlan Phase = "plan"
	// PhaseReserve stores, by a compare-and-swap, that the pass is about to write.
	PhaseReserve Phase = "reserve"
	// PhaseApply writes the pairs.
	PhaseApply Phase = "apply"
	// PhaseRecord writes down what was done, by a second compare-and-swap.
	PhaseRecord Phase = "record"
	// PhaseEvents tells it in Events on the TenantCluster, side by side with PhaseRecord.
	PhaseEvents Phase = "events"
)

// phase carries out one phase, and tells of it.
func (r *run) phase(ctx context.Context, phase Phase, f func(context.Context) error) (err error) {
	if r.Begin == nil {
		return f(ctx)
	}
	ctx, end := r.Begin(ctx, phase)
	defer func() { end(err) }() // also where it panics
	return f(ctx)
}

// apply carries out the plan.
func (r *run) apply(ctx context.Context, planned *plan.Plan, writer *apply.Writer) (results []apply.Result, stopped error) {
	stopped = r.phase(ctx, PhaseApply, func(ctx context.Context) (stopped error) {
		if err := writer.RenewLeases(ctx, planned.Leases); err != nil {
			r.Log.Warn("Nodes of the tenant have missed a heartbeat", "error", err)
		}
		r.tellWrites(planned, writer)
		results, stopped = writer.Execute(ctx, planned.Steps)
		return stopped
	})
	return results, stopped
}

// tellWrites makes the writer tell how far it has got.
func (r *run) tellWrites(planned *plan.Plan, writer *apply.Writer) {
	if r.Progress == nil {
		return
	}
	var done atomic.Int64
	total := planned.Writes()
	r.Progress(0, total)
	writer.Done = func(apply.Result) { r.Progress(int(done.Add(1)), total) }
}
