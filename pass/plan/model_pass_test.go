package plan_test

import (
	"bytes"
	"cmp"
	"slices"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/syncpass/syncpass/pass/kinds"
	"github.com/syncpass/syncpass/pass/modeltest"
	"github.com/syncpass/syncpass/pass/plan"
	"github.com/syncpass/syncpass/policy"
	"github.com/syncpass/syncpass/record"
)

// stored is the SyncDecision: packed, and replaced only by whoever has read it.
type stored struct {
	pages []record.Page
	epoch int64
}

// modelPass is one pass, as package pass makes it, around the planner.
type modelPass struct {
	m       *modeltest.Model
	p       *modeltest.Pass
	history *record.History // nil where nothing is recorded
	loaded  *stored         // as last read or written; nil where there is none
	held    bool            // this pass has raised the epoch
	plan    *plan.Plan
	report  modeltest.Report
}

// runPass makes one pass of the model.
func runPass(m *modeltest.Model, p *modeltest.Pass) modeltest.Report {
	r := &modelPass{m: m, p: p}
	if !p.Policy.Silent {
		r.load()
	}
	r.compute()
	r.report = modeltest.Report{Decided: true, Unchanged: r.plan.Unchanged, GuardID: r.plan.GuardID}
	for i := range r.plan.Steps {
		r.report.Decisions = append(r.report.Decisions, r.plan.Steps[i].Decision)
	}
	if r.history != nil {
		remember(r.history, r.plan.History)
	}
	if r.plan.Writes() > 0 && r.history != nil {
		r.intend()
		if !r.swap() {
			return r.report
		}
	}
	if r.write(); p.Dead() || r.history == nil || !r.news() {
		return r.report
	}
	remember(r.history, r.plan.Refreshed)
	r.swap()
	return r.report
}

func (r *modelPass) load() {
	r.loaded, _ = r.m.State().(*stored)
	r.history = record.NewHistory("")
	if r.loaded != nil {
		var err error
		if r.history, err = record.Decode(r.loaded.pages); err != nil {
			r.m.Breaks("what is stored can be read", "%v", err)
		}
	}
	r.history.Rekey(r.m.Hasher.KeyID())
}

func (r *modelPass) compute() {
	in := plan.Input{
		ConflictPolicy: r.p.Policy.Conflict, History: r.history, Recording: r.history != nil, Hasher: r.m.Hasher, Mapping: r.m.Mapping,
		Snapshot: plan.Snapshot{TenantUID: r.p.TenantUID()}, MaxDeletePercent: modeltest.MaxDeletePercent, Confirmed: r.p.Confirmed, Now: now,
	}
	if r.history != nil {
		in.RecordedTenantUID = r.m.Identity()
	}
	version, kind := modeltest.ConfigMaps.ToAPIVersionAndKind()
	seen := plan.KindSnapshot{Resource: policy.Resource{APIVersion: version, Kind: kind, Direction: r.p.Policy.Direction, Selector: r.p.Policy.Selector()}}
	if r.p.Policy.Absent {
		seen.Retired = true
		seen.Resource.Direction, seen.Resource.Selector = policy.ToHost, nil
	}
	if !r.p.Policy.Absent || r.p.Policy.Retire && r.history != nil && len(r.history.Keys("", kind)) > 0 {
		seen.Host, _ = r.m.List(r.p, record.Host)
		if !seen.Retired {
			seen.Tenant, seen.TenantVersion = r.m.List(r.p, record.Tenant)
			if r.p.ListFails() {
				seen.Host, seen.Tenant, seen.TenantVersion = nil, nil, ""
				seen.Unavailable = "listing it on the tenant failed"
			}
		}
		in.Snapshot.Kinds = []plan.KindSnapshot{seen}
	}
	r.plan = plan.Compute(in)
	if r.m.Count.Passes%2 > 0 {
		return
	}
	for i := range in.Snapshot.Kinds {
		slices.Reverse(in.Snapshot.Kinds[i].Host)
		slices.Reverse(in.Snapshot.Kinds[i].Tenant)
		if again := plan.Compute(in); outcome(again) != outcome(r.plan) || again.GuardID != r.plan.GuardID {
			r.m.Breaks("the order of its input changes nothing in a plan", "%s, and the other way round %s", outcome(r.plan), outcome(again))
		}
	}
}

func (r *modelPass) intend() {
	for i := range r.plan.Steps {
		if step := &r.plan.Steps[i]; step.Writes() {
			state := step.State
			if state.Intent = cmp.Or(step.Intent, state.Intent); r.m.Without.Intents {
				state.Intent = nil
			}
			r.history.Set(step.Key, state)
		}
	}
}

// news says whether there is anything to record.
func (r *modelPass) news() bool {
	if r.held || r.loaded == nil {
		return true
	}
	pages, err := r.history.Encode()
	return err != nil || len(pages) != len(r.loaded.pages) || !bytes.Equal(pages[0].Data, r.loaded.pages[0].Data)
}

// swap replaces the SyncDecision, unless somebody else has meanwhile. A request or an answer that gets lost is repeated.
func (r *modelPass) swap() bool {
	r.p.Turn()
	verdict := r.p.Arrives()
	now, _ := r.m.State().(*stored)
	if verdict == modeltest.Dies || verdict == modeltest.Denied || now != r.loaded {
		return false
	}
	pages, err := r.history.Encode()
	if err != nil {
		r.m.Breaks("the history can be packed", "%v", err)
		return false
	}
	next := &stored{pages: pages, epoch: 1}
	switch {
	case now != nil && r.held:
		next.epoch = now.epoch
	case now != nil:
		next.epoch = now.epoch + 1
	}
	tenant := r.m.Identity()
	if !r.plan.OtherTenant {
		tenant = r.p.TenantUID()
	}
	r.m.Recorded(r.p, r.history, next.epoch, tenant, next)
	r.loaded, r.held = next, true
	return !r.p.Dead()
}

// write carries the steps out, deletes last.
func (r *modelPass) write() {
	var order []int
	for _, deletes := range []bool{false, true} {
		for i := range r.plan.Steps {
			if step := &r.plan.Steps[i]; (step.Action == record.Delete) == deletes && step.Writes() {
				order = append(order, i)
			}
		}
	}
	results := make([]record.State, len(r.plan.Steps))
	for i := range r.plan.Steps {
		results[i] = record.State{Baseline: r.plan.Steps[i].State.Baseline}
		if r.history != nil && r.plan.OtherTenant {
			results[i] = r.history.Get(r.plan.Steps[i].Key)
		}
	}
	fenced := false
	for _, i := range order {
		step := &r.plan.Steps[i]
		stalls := r.p.Stalls()
		r.p.Turn()
		if fenced = fenced || stalls && !r.m.Without.Fence; fenced {
			r.skips(i, record.NotAttempted)
			continue
		}
		results[i] = r.carryOut(i)
		if r.p.Dead() {
			return
		}
		if step.Action == record.Skip {
			results[i].Baseline = step.State.Baseline
		}
	}
	if r.history == nil {
		return
	}
	for i := range results {
		r.history.Set(r.plan.Steps[i].Key, results[i])
	}
}

func (r *modelPass) skips(i int, reason record.Reason) {
	r.report.Decisions[i].Action, r.report.Decisions[i].Reason = record.Skip, reason
}

// carryOut sends the write of one step, and says what there is to remember then.
func (r *modelPass) carryOut(i int) record.State {
	step := &r.plan.Steps[i]
	before := record.State{Baseline: step.State.Baseline, Intent: step.State.Intent}
	unknown := record.State{Baseline: step.State.Baseline, Intent: cmp.Or(step.Intent, step.State.Intent)}
	host := step.Source
	if step.Before != nil {
		taken, goes := r.takeWord(i)
		if !goes {
			return before
		}
		host = taken
	}
	verdict := r.p.Arrives()
	switch verdict {
	case modeltest.Dies:
		return before
	case modeltest.Lost:
		r.skips(i, record.Rejected)
		return unknown
	case modeltest.Denied:
		r.skips(i, record.Rejected)
		return before
	}
	var written *unstructured.Unstructured
	var err error
	switch step.Action {
	case record.Create:
		written, err = r.m.Create(r.p, step.Side, step.Want)
	case record.Update:
		written, err = r.m.Update(r.p, step.Side, step.Want)
	default:
		if step.Reason != record.KindRetired && r.crosses(step) {
			r.skips(i, record.Raced)
			return before
		}
		err = r.m.Delete(r.p, step.Side, step.Have.GetName(), step.Have.GetUID(), step.Have.GetResourceVersion())
	}
	switch {
	case verdict == modeltest.Unanswered:
		r.skips(i, record.Rejected)
		return unknown
	case err != nil:
		r.skips(i, record.Raced)
		return before
	case written == nil:
		return record.State{}
	}
	tenant := written
	if step.Side == record.Host {
		tenant, host = step.Source, written
	}
	kind := kinds.For(modeltest.ConfigMaps.GroupKind())
	return record.State{Baseline: step.Agreement(r.m.Hasher, kind, tenant, host)}
}

// takeWord makes the write that comes before a step's own, and says whether the pass may go on to that.
func (r *modelPass) takeWord(i int) (taken *unstructured.Unstructured, goes bool) {
	step := &r.plan.Steps[i]
	verdict := r.p.Arrives()
	switch verdict {
	case modeltest.Dies:
		return nil, false
	case modeltest.Lost, modeltest.Denied:
		r.skips(i, record.Rejected)
		return nil, false
	}
	taken, err := r.m.Update(r.p, step.Before.Side, step.Before.Object)
	switch {
	case r.p.Dead():
		return nil, false
	case verdict == modeltest.Unanswered:
		r.skips(i, record.Rejected)
		return nil, false
	case err != nil:
		r.skips(i, record.Raced)
		return nil, false
	}
	stalls := r.p.Stalls()
	r.p.Turn()
	if stalls && !r.m.Without.Fence {
		r.skips(i, record.NotAttempted)
		return nil, false
	}
	return taken, true
}

// crosses asks the tenant once more for the object whose mirror is to go.
func (r *modelPass) crosses(step *plan.Step) bool {
	object := r.m.Get(r.p, record.Tenant, step.TenantName)
	return object != nil && kinds.Crosses(kinds.With(modeltest.ConfigMaps.GroupKind(), step.Rules), object)
}
