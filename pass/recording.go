package pass

import (
	"cmp"
	"regexp"
	"slices"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/syncpass/syncpass/pass/apply"
	"github.com/syncpass/syncpass/pass/kinds"
	"github.com/syncpass/syncpass/pass/plan"
	"github.com/syncpass/syncpass/record"
)

// refreshFrom is how many moved resourceVersions are reason enough to write the history: below that, looking at a few
// objects again in the next pass is cheaper than a write.
const refreshFrom = 64

// recording is what a pass has to write down.
type recording struct {
	history *record.History
	hasher  record.Hasher
	mapping kinds.Mapping
	passID  string
	now     time.Time

	// trail are the entries of earlier passes; abandoned those of them that a pass wrote ahead which ended without a
	// record, as this pass found them.
	trail, abandoned []record.Entry
	// guardID is the plan that a guard withheld, so that another plan is other news.
	guardID string
	// otherTenant says that the tenant in doubt is not the one that the history is about.
	otherTenant bool
	// added are decisions new to the trail; refreshed are standing skips seen again after a while. Each is an Event.
	added     []record.Decision
	refreshed map[record.Key]record.Standing
	// waiting counts the pairs that wait for a person.
	waiting int32
	// news says whether anything is worth a write.
	news bool
}

// learn takes what the plan found out without writing.
func (r *recording) learn(p *plan.Plan) {
	for _, change := range p.History {
		r.history.Set(change.Key, change.State)
		r.news = true
	}
}

// resume takes over the trail from a pass that may have been killed, and says of what it was about to write whether this
// pass found anything left to do about it.
func (r *recording) resume(trail []record.Entry, p *plan.Plan, taken plan.Snapshot) {
	read, due := map[schema.GroupKind]bool{}, map[record.Key]bool{}
	for _, kind := range taken.Kinds {
		read[kind.GroupKind()] = kind.Unavailable == ""
	}
	for i := range p.Steps {
		due[p.Steps[i].Key] = true
	}
	r.trail, r.abandoned = record.Abandoned(trail, func(key record.Key) bool {
		return read[key.GroupKind()] && !due[key]
	})
}

// ahead is the trail with the writes to come.
func (r *recording) ahead(p *plan.Plan, retain int) []record.Entry {
	var entries []record.Entry
	left := p.Writes()
	for i := range p.Steps {
		if !p.Steps[i].Writes() {
			continue
		}
		if left--; left < retain { // of more than the trail may have, the newest are kept
			entries = append(entries, record.Ahead(p.Steps[i].Decision, r.passID, r.now))
		}
	}
	return record.Append(r.trail, retain, entries...)
}

// refresh takes the resourceVersions that moved without a change, if there is a write anyway or they are many.
func (r *recording) refresh(p *plan.Plan) {
	if r.news = r.news || len(p.Refreshed) >= refreshFrom; !r.news {
		return
	}
	for _, change := range p.Refreshed {
		r.history.Set(change.Key, change.State)
	}
}

// intend stores what is about to be written where both sides may change. Elsewhere it forgets what an earlier pass intended:
// the write to come would be taken for it.
func (r *recording) intend(p *plan.Plan) {
	for i := range p.Steps {
		step := &p.Steps[i]
		if !step.Writes() || step.Intent == nil && r.history.Get(step.Key).Intent == nil {
			continue
		}
		state := step.State // with an earlier intent where this pass could not settle it
		state.Intent = cmp.Or(step.Intent, state.Intent)
		r.history.Set(step.Key, state)
	}
}

// conclude takes what became of each step.
func (r *recording) conclude(p *plan.Plan, results []apply.Result) {
	if !slices.ContainsFunc(results, func(result apply.Result) bool { return result.Decision.Reason == record.NotAttempted }) {
		for _, change := range p.Kinds {
			r.history.Set(change.Key, change.State)
			r.news = true
		}
	}
	for i := range results {
		if results[i].Decision.Action == record.Skip {
			r.stand(&results[i])
			continue
		}
		r.added = append(r.added, results[i].Decision)
		r.history.Set(results[i].Step.Key, record.State{Baseline: results[i].Agreed})
		r.news = true
	}
}

// baseline is what both sides look like after a write; nil after a delete. It is asked for by many goroutines at once.
func (r *recording) baseline(result *apply.Result) *record.Baseline {
	step := result.Step
	if step.Action == record.Update && step.Want == nil {
		return step.State.Baseline // what crosses was not written
	}
	tenant, host := step.Source, step.Have
	if step.Side == record.Tenant {
		tenant, host = step.Have, step.Source
	}
	if written := result.Written[record.Tenant]; written != nil {
		tenant = written
	}
	if written := result.Written[record.Host]; written != nil {
		host = written
	}
	if step.Action == record.Delete || tenant == nil || host == nil {
		return nil
	}
	kind := kinds.For(step.Key.GroupKind())
	agreed := step.Agreement(r.hasher, kind, tenant, host)
	if !plan.Settled(r.mapping, kind, tenant, host) {
		agreed.Host.ResourceVersion = ""
	}
	return agreed
}

// stand keeps a skip: as news, or as the one entry that it has. What was not attempted is no skip of the pair's own, and
// stays as it was.
func (r *recording) stand(result *apply.Result) {
	step, d := result.Step, result.Decision
	state := step.State
	switch {
	case r.otherTenant:
		// The history is another tenant's than the one that answers: what it knows stays as it was, also of a pair that is
		// held for a reason of its own.
		state = r.history.Get(step.Key)
	case result.Unknown:
		state.Intent = cmp.Or(step.Intent, state.Intent)
	}
	if d.Reason == record.NotAttempted {
		r.set(step.Key, state)
		return
	}
	if waits(d.Reason) {
		r.waiting++
	}
	next, verdict := record.Stand(state.Standing, d.Reason, r.digest(d), r.now)
	state.Standing = &next
	switch verdict {
	case record.New:
		r.added = append(r.added, d)
		r.news = true
	case record.Refresh:
		r.refreshed[step.Key] = next
		r.news = true
	case record.Silent:
	}
	r.set(step.Key, state)
}

func (r *recording) set(key record.Key, state record.State) {
	before := r.history.Get(key)
	r.history.Set(key, state)
	r.news = r.news || (before.Intent == nil) != (state.Intent == nil)
}

// digest tells one disagreement of a pair from the next: by its reason, its fields, and the cause that an API server
// gave, without the figures in it, which may be other ones each time (`used: 3, limited: 3`). One schedule that does not
// fit is told from the next by the message, which has both.
func (r *recording) digest(d record.Decision) record.Hash {
	fields := make([]any, len(d.Fields))
	for i, field := range d.Fields {
		fields[i] = field
	}
	about := map[string]any{
		"reason": string(d.Reason), "fields": fields, "guard": r.guardID, "error": figures().ReplaceAllString(d.Error, "#"),
	}
	if d.Reason == record.ScheduleMismatch {
		about["message"] = d.Message
	}
	return r.hasher.Hash(about)
}

var figures = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`[0-9]+`) })

// entries is the trail with what is new in it, and the entries that Events are due for.
func (r *recording) entries(trail []record.Entry, retain int) (all, told []record.Entry) {
	all, told = slices.Clone(trail), slices.Clone(r.abandoned)
	for key, standing := range r.refreshed {
		if entry, found := record.RefreshEntry(all, key, standing); found {
			told = append(told, entry)
		}
	}
	slices.SortFunc(told, func(a, b record.Entry) int { return a.Key().Compare(b.Key()) })
	added := make([]record.Entry, 0, len(r.added))
	for _, d := range r.added {
		added = append(added, record.EntryOf(d, r.passID, r.now))
	}
	return record.Append(all, retain, added...), append(told, added...)
}
