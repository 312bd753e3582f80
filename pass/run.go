package pass

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	utilrand "k8s.io/apimachinery/pkg/util/rand"
	"k8s.io/client-go/dynamic"

	"github.com/syncpass/syncpass/pass/access"
	"github.com/syncpass/syncpass/pass/apply"
	"github.com/syncpass/syncpass/pass/kinds"
	"github.com/syncpass/syncpass/pass/lease"
	"github.com/syncpass/syncpass/pass/plan"
	"github.com/syncpass/syncpass/pass/snapshot"
	"github.com/syncpass/syncpass/record"
	"github.com/syncpass/syncpass/record/store"
)

// run is one pass on its way.
type run struct {
	Options
	result    Result
	target    *target
	tenant    *access.Cluster
	hasher    record.Hasher
	store     *store.Store
	loaded    *store.Loaded // nil where nothing is recorded
	lease     *lease.Lease  // nil in a dry run
	epoch     atomic.Pointer[store.Epoch]
	recording *recording // nil where nothing is recorded
	readAll   bool       // read also what is certainly unchanged
	verdict   *Verdict   // nil in a pass over all pairs
	// files are what is read in place of the two API servers; nil in a pass.
	files *snapshot.FileSides
	// explain says why the pass ended early: a request that fails because the pass was stopped or its time was over is no
	// failure of its own.
	explain func(error) error
}

// Run makes one pass over one tenant. It returns when all that it began has ended; cancelling ctx, with a cause that
// is a context.Canceled, makes it finish the write in flight, record what it did, and return. Every failure is in the result.
func Run(ctx context.Context, o Options) Result { return through(ctx, o, (*run).load) }

// through is Run with the given way to the configuration and the tenant.
func through(ctx context.Context, o Options, load func(*run, context.Context) error) Result {
	started := time.Now()
	o.Host = o.Host.ForPass()
	r := &run{Options: o, result: Result{
		ID: started.UTC().Format("20060102T150405Z-") + utilrand.String(5), Tenant: o.Tenant, Namespace: o.Namespace,
		StartTime: metav1.NewMicroTime(started), Decisions: []record.Decision{},
	}}
	r.Log = o.Log.With("passID", r.result.ID)

	limited, cancel := context.WithTimeout(ctx, o.PassTimeout)
	defer cancel()
	r.explain = func(err error) error {
		switch {
		case err == nil:
			return nil
		case ctx.Err() != nil:
			return context.Cause(ctx)
		case limited.Err() != nil:
			return fmt.Errorf("the pass did not end within SYNCPASS_PASS_TIMEOUT (%s): %w", r.PassTimeout, err)
		}
		return err
	}
	err := r.phase(limited, PhaseLoad, func(ctx context.Context) error { return load(r, ctx) })
	if err == nil {
		err = r.underLease(limited, r.pass)
	}
	if r.tenant != nil {
		r.tenant.Close()
	}
	r.finish(r.explain(err))
	return r.result
}

// load reads the configuration of the pass.
func (r *run) load(ctx context.Context) (err error) {
	if r.target, err = loadTarget(ctx, r.Options); err != nil {
		return err
	}
	schedule := r.target.policy.Schedule()
	r.result.Schedule = &schedule
	if r.tenant, err = connectTenant(ctx, r.Options); err != nil {
		return err
	}
	r.hasher = record.NewHasher(r.tenant.Credential())
	r.target.mapping.Workloads, err = workloads(r.Options, r.target.cluster, r.tenant.Server())
	return err
}

// underLease runs a function while the tenant's Lease is held; a dry run needs none, since it writes nothing.
func (r *run) underLease(ctx context.Context, f func(context.Context) error) (err error) {
	if r.DryRun {
		return f(ctx)
	}
	err = r.phase(ctx, PhaseLease, func(ctx context.Context) (err error) {
		r.lease, err = lease.Acquire(ctx, r.Host.Coordination().Leases(r.Namespace), lease.Options{
			Name: lease.Name(r.Tenant), Identity: r.Identity + "/" + r.result.ID, Duration: r.LeaseDuration, Owner: &r.target.mapping.Owner,
		})
		return err
	})
	if err != nil {
		return err
	}
	held := r.lease.Keep(ctx, r.checkEpoch)
	releasing, cancel := outliving(ctx, releaseWithin)
	defer func() {
		defer cancel()
		if releaseErr := r.lease.Release(releasing); releaseErr != nil {
			r.Log.Warn("The lease was not released", "error", releaseErr)
		}
	}()
	return f(held)
}

// checkEpoch ends the pass when another one has taken over the SyncDecision.
func (r *run) checkEpoch(ctx context.Context) error {
	known := r.epoch.Load()
	if known == nil {
		return nil
	}
	now, err := r.store.CurrentEpoch(ctx)
	if err != nil || now == *known {
		return nil // an unanswered question takes nothing away: the Lease itself runs out soon enough
	}
	return fmt.Errorf("%w: the SyncDecision is at epoch %d, raised by pass %q", store.ErrSuperseded, now.Number, now.PassID)
}

// pass does everything between taking the Lease and giving it back.
func (r *run) pass(ctx context.Context) error {
	recording, cancel := outliving(ctx, recordWithin)
	defer cancel()
	telling, stop := outliving(ctx, eventsWithin)
	defer stop()
	var taken plan.Snapshot
	var resources snapshot.Resources
	err := r.phase(ctx, PhaseSnapshot, func(ctx context.Context) (err error) {
		taken, resources, err = r.read(ctx)
		return err
	})
	if err != nil {
		return err
	}
	writer := r.writer(resources)
	var planned *plan.Plan
	_ = r.phase(ctx, PhasePlan, func(ctx context.Context) error { // fails at nothing
		planned = r.plan(ctx, taken, writer)
		return nil
	})
	taken.Forget()
	r.compareSchedule(planned)
	r.result.PlanID = planned.GuardID
	r.result.Message = planned.GuardMessage
	if r.DryRun || r.verdict != nil && planned.Writes() == 0 {
		r.report(planned)
		return nil
	}
	if r.recording != nil {
		r.recording.learn(planned)
		if r.verdict == nil {
			r.recording.resume(r.loaded.Status.Entries, planned, taken)
		} else {
			r.recording.trail = r.loaded.Status.Entries // what became of other pairs a pass over all of them says
		}
	}
	if err := r.reserve(ctx, planned, taken); err != nil {
		return err
	}
	results, stopped := r.apply(ctx, planned, writer)
	for i := range results {
		r.result.Decisions = append(r.result.Decisions, results[i].Decision)
		r.Log.Debug("Decided", "decision", results[i].Decision)
	}
	r.settle(planned, stopped)
	return errors.Join(stopped, r.record(recording, telling, planned, results, taken))
}

// read reads the record and both sides. What the sides serve is asked while the record is read; where both fail, the
// record's failure is told.
func (r *run) read(ctx context.Context) (plan.Snapshot, snapshot.Resources, error) {
	beside, stop := context.WithCancel(ctx)
	defer stop()
	request := r.request()
	var met *snapshot.Sides
	var metErr error
	var group sync.WaitGroup
	group.Go(func() { met, metErr = snapshot.Meet(beside, request) })
	err := r.loadRecord(ctx)
	if err != nil {
		stop()
	}
	group.Wait()
	if err = cmp.Or(err, metErr); err != nil {
		return plan.Snapshot{}, nil, err
	}
	return r.take(ctx, met)
}

// request says what to read, as far as it is known without the record.
func (r *run) request() snapshot.Request {
	return snapshot.Request{
		Host: r.Host, Tenant: r.tenant, Namespace: r.Namespace, Mapping: r.target.mapping, Resources: r.target.policy.Spec.Resources,
	}
}

// take reads both sides, whose answers to Meet are nil where files are read.
func (r *run) take(ctx context.Context, met *snapshot.Sides) (plan.Snapshot, snapshot.Resources, error) {
	request := r.request()
	request.Retired, request.Sides = r.retired(), met
	if !r.readAll {
		known := r.input(plan.Snapshot{})
		request.Known = &known
	}
	if r.files != nil {
		return r.files.Take(ctx, request)
	}
	return snapshot.Take(ctx, request)
}

// writer writes to both sides, and asks the host for dry runs.
func (r *run) writer(resources snapshot.Resources) *apply.Writer {
	return &apply.Writer{
		Clients:   map[record.Side]dynamic.Interface{record.Host: r.Host.Dynamic(), record.Tenant: r.tenant.Dynamic()},
		Resources: resources, Concurrency: r.Concurrency, Fence: r.fence,
		Host: r.Host.Core(), Tenant: r.tenant.Core(), TenantCA: r.tenant.CA(), Leases: r.tenant.Coordination(),
		Agree: r.agree,
	}
}

// agree is what to remember of a write that has landed.
func (r *run) agree(result *apply.Result) *record.Baseline {
	if r.recording == nil {
		return nil
	}
	return r.recording.baseline(result)
}

// loadRecord reads the SyncDecision where the policy keeps one.
func (r *run) loadRecord(ctx context.Context) (err error) {
	r.store = store.New(r.Host.Dynamic(), r.Host.Terse(), r.Namespace, r.Tenant, r.target.mapping.Owner)
	if !*r.target.policy.Spec.Explain.RecordDecisions {
		return nil
	}
	if r.loaded, err = r.store.Load(ctx); err != nil {
		return err
	}
	for _, problem := range r.loaded.Problems {
		r.Log.Warn("Part of the record cannot be used", "error", problem)
	}
	if known := r.loaded.History.KeyID(); known != "" && known != r.hasher.KeyID() {
		r.Log.Info("The tenant's credentials have changed; the history is keyed anew")
	}
	r.useRecord()
	return nil
}

// useRecord makes the loaded SyncDecision what this pass goes on from.
func (r *run) useRecord() {
	r.setEpoch()
	r.loaded.History.Rekey(r.hasher.KeyID())
	r.recording = &recording{
		history: r.loaded.History, hasher: r.hasher, mapping: r.target.mapping, passID: r.result.ID, now: r.result.StartTime.Time,
		refreshed: map[record.Key]record.Standing{},
	}
}

func (r *run) setEpoch() {
	epoch := r.loaded.Epoch()
	r.epoch.Store(&epoch)
}

// retired are the kinds that the history knows and the policy does not name any more, where their mirrors are to go.
func (r *run) retired() []schema.GroupKind {
	if !r.RetireKinds || r.loaded == nil {
		return nil
	}
	named := map[schema.GroupKind]bool{scheduleKey.GroupKind(): true} // which history knows, and never crosses
	for _, resource := range r.target.policy.Spec.Resources {
		named[schema.FromAPIVersionAndKind(resource.APIVersion, resource.Kind).GroupKind()] = true
	}
	var gone []schema.GroupKind
	for key := range r.loaded.History.All() {
		if kind := key.GroupKind(); !named[kind] {
			named[kind] = true
			gone = append(gone, kind)
		}
	}
	return gone
}

// input is what a plan is computed from.
func (r *run) input(taken plan.Snapshot) plan.Input {
	input := plan.Input{
		ConflictPolicy: r.target.policy.Spec.ConflictPolicy,
		Recording:      r.recording != nil,
		Hasher:         r.hasher,
		Mapping:        r.target.mapping,
		Snapshot:       taken, MaxDeletePercent: r.MaxDeletePercent,
		Confirmed: r.target.cluster.Annotations[kinds.AnnotationConfirmDeletes],
		Now:       time.Now(), Later: !r.DryRun,
	}
	if r.verdict != nil {
		input.Resolutions, input.OnlyResolutions = r.verdict.resolutions(), true
	}
	if r.recording != nil {
		input.History = r.recording.history
		if known := r.loaded.Status.Tenant; known != nil {
			input.RecordedTenantUID = known.UID
		}
	}
	return input
}

// plan computes the plan, a second time where a dry run on the host has to tell what its defaults make of a mirror.
func (r *run) plan(ctx context.Context, taken plan.Snapshot, writer *apply.Writer) *plan.Plan {
	_, planned := r.planFrom(ctx, r.input(taken), writer)
	return planned
}

// planFrom is plan, from an input that it completes.
func (r *run) planFrom(ctx context.Context, input plan.Input, writer *apply.Writer) (plan.Input, *plan.Plan) {
	planned := plan.Compute(input)
	if len(planned.Undecided) > 0 {
		input.Probes = writer.Probe(ctx, planned.Undecided)
		planned = plan.Compute(input)
	}
	return input, planned
}

// fence is asked before every write.
func (r *run) fence() error {
	if !r.lease.Valid() {
		return lease.ErrLost
	}
	return nil
}

// reserve stores, before anything is written, that this pass is about to write.
func (r *run) reserve(ctx context.Context, planned *plan.Plan, taken plan.Snapshot) error {
	if r.recording == nil || planned.Writes() == 0 {
		return nil
	}
	r.recording.intend(planned)
	r.epoch.Store(nil)
	err := r.phase(ctx, PhaseReserve, func(ctx context.Context) error {
		return r.store.Reserve(ctx, r.loaded, store.Reservation{
			PassID: r.result.ID, Tenant: identity(planned, taken), History: r.recording.history,
			Entries: r.recording.ahead(planned, r.retain()),
		})
	})
	if err != nil {
		return err
	}
	r.setEpoch()
	return nil
}

// retain is how many entries the trail may have.
func (r *run) retain() int { return int(*r.target.policy.Spec.Explain.Retain) }
