package pass

import (
	"context"
	"fmt"
	"log/slog"
	"sync"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/syncpass/syncpass/pass/apply"
	"github.com/syncpass/syncpass/pass/plan"
	"github.com/syncpass/syncpass/record"
	"github.com/syncpass/syncpass/record/store"
)

// record writes down what the pass did, also where its own time is over, and tells it.
func (r *run) record(recording, tell context.Context, planned *plan.Plan, results []apply.Result, taken plan.Snapshot) error {
	if r.recording == nil {
		return nil
	}
	r.recording.guardID, r.recording.otherTenant = planned.GuardID, planned.OtherTenant
	r.recording.conclude(planned, results)
	r.recording.refresh(planned)
	entries, told := r.recording.entries(r.recording.trail, r.retain())
	r.epoch.Store(nil)
	last, waiting := r.recordLast()
	var telling sync.WaitGroup
	telling.Go(func() { r.tell(tell, told) }) // what was done was done, whether it can be recorded or not
	err := r.phase(recording, PhaseRecord, func(ctx context.Context) error {
		_, err := r.store.Record(ctx, r.loaded, store.Result{
			LastPass: last, Conflicts: waiting, Entries: entries, Tenant: identity(planned, taken), History: r.recording.history,
		})
		return err
	})
	telling.Wait()
	if err != nil {
		return fmt.Errorf("the pass did its work but could not record it: %w", err)
	}
	return nil
}

// tell writes Events.
func (r *run) tell(ctx context.Context, told []record.Entry) {
	if len(told) == 0 {
		return
	}
	events := store.NewRecorder(r.Host.Core(), r.Namespace, r.target.mapping.Owner, r.Identity, r.Concurrency)
	if err := r.phase(ctx, PhaseEvents, func(ctx context.Context) error { return events.Record(ctx, told...) }); err != nil {
		r.Log.Warn("Some Events were not written; the SyncDecision has the decisions", "error", err)
	}
}

// identity is the tenant to be recorded; nil keeps the recorded one, where a guard doubts the one that answers.
func identity(planned *plan.Plan, taken plan.Snapshot) *record.TenantIdentity {
	if planned.OtherTenant || taken.TenantUID == "" {
		return nil
	}
	return &record.TenantIdentity{UID: taken.TenantUID}
}

// report fills in the result of a dry run.
func (r *run) report(planned *plan.Plan) {
	for i := range planned.Steps {
		r.result.Decisions = append(r.result.Decisions, planned.Steps[i].Decision)
		if r.Changes {
			r.result.Changes = append(r.result.Changes, changesOf(&planned.Steps[i]))
		}
	}
	r.settle(planned, nil)
}

// settle fills in the result of a pass that came to its end.
func (r *run) settle(planned *plan.Plan, stopped error) {
	r.result.Counts = count(r.result.Decisions, planned.Unchanged)
	r.countRequests()
	r.result.Outcome = outcome(r.explain(stopped), planned.GuardID != "", r.result.Counts)
}

func (r *run) countRequests() {
	if r.files != nil {
		return
	}
	r.result.Counts.Requests = int(r.Host.Requests())
	if r.tenant != nil {
		r.result.Counts.Requests += int(r.tenant.Requests())
	}
}

// finish fills in how the pass ended, and says it in one line of the log.
func (r *run) finish(err error) {
	if err != nil {
		r.result.Outcome = OutcomeOf(err)
		r.result.Err = err
		r.result.Message = record.Plain(err.Error(), record.MaxCause)
	}
	r.countRequests()
	r.result.EndTime = metav1.NewMicroTime(time.Now())
	counts := r.result.Counts
	log := r.Log
	if r.DryRun {
		log = log.With("dryRun", true)
	}
	log.Info("Pass ended", "outcome", r.result.Outcome, "message", r.result.Message, "seconds", r.result.EndTime.Sub(r.result.StartTime.Time).Seconds(),
		slog.Group("counts", "create", counts.Create, "update", counts.Update, "delete", counts.Delete, "skip", counts.Skip,
			"unchanged", counts.Unchanged, "error", counts.Error, "requests", counts.Requests))
}
