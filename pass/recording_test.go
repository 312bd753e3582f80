package pass

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/syncpass/syncpass/pass/apply"
	"github.com/syncpass/syncpass/pass/plan"
	"github.com/syncpass/syncpass/policy"
	"github.com/syncpass/syncpass/record"
)

var (
	pairKey = record.Key{Kind: "ConfigMap", Namespace: "default", Name: "app"}
	known   = &record.Baseline{
		Tenant: record.Version{UID: "t", ResourceVersion: "1", Hash: record.Hash{1}},
		Host:   record.Version{UID: "h", ResourceVersion: "1", Hash: record.Hash{2}},
	}
	pending = &record.Intent{Side: record.Host, Want: record.Hash{3}}
)

func newRecording(history *record.History, at time.Time) *recording {
	return &recording{
		history: history, hasher: record.NewHasher([]byte("credential")), passID: "p", now: at,
		refreshed: map[record.Key]record.Standing{},
	}
}

func skip(reason record.Reason, state record.State) apply.Result {
	d := record.Decision{Action: record.Skip, Side: record.Host, APIVersion: "v1", Kind: "ConfigMap", TenantNamespace: "default", TenantName: "app", Reason: reason}
	return apply.Result{Step: &plan.Step{Decision: d, Key: pairKey, State: state}, Decision: d}
}

func TestASkipThatStandsIsOneEntryHoweverManyPassesSeeIt(t *testing.T) {
	history := record.NewHistory("k")
	start := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	entries := []record.Entry{}
	for pass, want := range []struct {
		after time.Duration
		added int
		told  int
		news  bool
	}{
		{0, 1, 1, true},
		{time.Minute, 0, 0, false},
		{record.StandingRefresh + time.Minute, 0, 1, true},
	} {
		r := newRecording(history, start.Add(want.after))
		r.conclude(&plan.Plan{}, []apply.Result{skip(record.Conflict, record.State{Baseline: known, Standing: history.Get(pairKey).Standing})})
		var told []record.Entry
		entries, told = r.entries(entries, 10)
		require.Len(t, r.added, want.added, "pass %d", pass)
		require.Len(t, told, want.told, "pass %d: Events", pass)
		require.Equal(t, want.news, r.news, "pass %d", pass)
		require.Len(t, entries, 1, "pass %d", pass)
		require.EqualValues(t, 1, r.waiting)
		require.Equal(t, known, history.Get(pairKey).Baseline, "a skip leaves the last agreement as it was")
	}
	require.EqualValues(t, 2, entries[0].Count)
}

func TestAnotherWithheldPlanIsOtherNews(t *testing.T) {
	history := record.NewHistory("k")
	for _, want := range []struct {
		id    string
		added int
	}{{"a", 1}, {"a", 0}, {"b", 1}} {
		r := newRecording(history, time.Unix(0, 0))
		r.guardID = want.id
		r.conclude(&plan.Plan{}, []apply.Result{skip(record.GuardMaxDeletes, record.State{Standing: history.Get(pairKey).Standing})})
		require.Len(t, r.added, want.added, "plan %s", want.id)
	}
}

func TestADoubtedTenantLeavesTheHistoryOfTheRecordedOneAlone(t *testing.T) {
	for _, reason := range []record.Reason{record.GuardTenantIdentity, record.Conflict} {
		history := record.NewHistory("k")
		history.Set(pairKey, record.State{Baseline: known, Intent: pending})
		r := newRecording(history, time.Unix(0, 0))
		r.otherTenant = true
		r.conclude(&plan.Plan{}, []apply.Result{skip(reason, record.State{})})
		require.Equal(t, known, history.Get(pairKey).Baseline)
		require.Equal(t, pending, history.Get(pairKey).Intent, "held for %s", reason)
	}
}

// A pass that has no intent of its own, since its policy names the winner, must not leave an earlier one to be taken for it.
func TestAWriteWithoutIntentForgetsTheEarlierOne(t *testing.T) {
	history := record.NewHistory("k")
	history.Set(pairKey, record.State{Baseline: known, Intent: pending})
	r := newRecording(history, time.Unix(0, 0))
	r.intend(&plan.Plan{Steps: []plan.Step{{Decision: record.Decision{Action: record.Create}, Key: pairKey, State: record.State{Baseline: known}}}})
	require.Nil(t, history.Get(pairKey).Intent)
	require.Equal(t, known, history.Get(pairKey).Baseline)
}

func TestAWriteWithoutAnAnswerKeepsItsIntent(t *testing.T) {
	for _, unknown := range []bool{true, false} {
		history := record.NewHistory("k")
		result := skip(record.Rejected, record.State{Baseline: known})
		result.Step.Intent, result.Unknown = pending, unknown
		r := newRecording(history, time.Unix(0, 0))
		r.conclude(&plan.Plan{}, []apply.Result{result})
		require.Equal(t, unknown, history.Get(pairKey).Intent != nil)
		require.Equal(t, known, history.Get(pairKey).Baseline)
	}
}

func TestWhatWasNotAttemptedIsNoNews(t *testing.T) {
	history := record.NewHistory("k")
	r := newRecording(history, time.Unix(0, 0))
	r.conclude(&plan.Plan{}, []apply.Result{skip(record.NotAttempted, record.State{Baseline: known})})
	require.Empty(t, r.added)
	require.False(t, r.news)
	require.Equal(t, known, history.Get(pairKey).Baseline)
}

func TestFiguresInARefusalAreNoOtherRefusal(t *testing.T) {
	r := newRecording(record.NewHistory("k"), time.Unix(0, 0))
	refusal := func(text string) record.Decision { return record.Decision{Reason: record.Rejected, Error: text} }
	require.Equal(t, r.digest(refusal("quota: used 3, limited 3")), r.digest(refusal("quota: used 4, limited 3")))
	require.NotEqual(t, r.digest(refusal("quota")), r.digest(refusal("webhook")))
}

func TestMovedVersionsAloneAreWrittenWhenTheyAreMany(t *testing.T) {
	for _, test := range []struct {
		moved   int
		news    bool
		written bool
	}{{1, false, false}, {refreshFrom, false, true}, {1, true, true}} {
		history := record.NewHistory("k")
		r := newRecording(history, time.Unix(0, 0))
		r.news = test.news
		planned := &plan.Plan{}
		for i := range test.moved {
			key := pairKey
			key.Name += string(rune('a' + i))
			planned.Refreshed = append(planned.Refreshed, plan.Change{Key: key, State: record.State{Baseline: known}})
		}
		r.refresh(planned)
		require.Equal(t, test.written, history.Pairs() > 0)
		require.Equal(t, test.written, r.news)
	}
}

func TestWhatADeadPassWasAboutToWriteIsTakenOver(t *testing.T) {
	step := func(name string) plan.Step {
		d := record.Decision{Action: record.Create, APIVersion: "v1", Kind: "ConfigMap", TenantNamespace: "default", TenantName: name, Message: name}
		return plan.Step{Decision: d, Key: d.Key()}
	}
	dead := newRecording(record.NewHistory("k"), time.Unix(0, 0))
	dead.passID = "dead"
	trail := dead.ahead(&plan.Plan{Steps: []plan.Step{step("there"), step("due")}}, 10)
	require.Len(t, trail, 2)

	kind := plan.KindSnapshot{Resource: policy.Resource{APIVersion: "v1", Kind: "ConfigMap"}}
	for _, test := range []struct {
		name, unavailable string
		there             string
	}{
		{"read", "", "the next one found nothing left to do about it"},
		{"not read", "the server is down", "before it could record whether this was done"},
	} {
		t.Run(test.name, func(t *testing.T) {
			kind.Unavailable = test.unavailable
			r := newRecording(record.NewHistory("k"), time.Unix(60, 0))
			r.resume(trail, &plan.Plan{Steps: []plan.Step{step("due")}}, plan.Snapshot{Kinds: []plan.KindSnapshot{kind}})
			r.conclude(&plan.Plan{}, []apply.Result{{Step: &plan.Step{Decision: step("due").Decision, Key: step("due").Key}, Decision: step("due").Decision}})
			entries, told := r.entries(r.trail, 10)
			require.ElementsMatch(t, entries, told, "all three are news")
			require.Len(t, entries, 3)
			require.Contains(t, entries[0].Message, test.there)
			require.Contains(t, entries[1].Message, "before it could record whether this was done")
			require.Equal(t, []string{"dead", "dead", "p"}, []string{entries[0].PassID, entries[1].PassID, entries[2].PassID})
			require.Equal(t, "due", entries[2].Message)
		})
	}
}
