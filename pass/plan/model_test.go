package plan_test

import (
	"flag"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/syncpass/syncpass/e2e/tally"
	"github.com/syncpass/syncpass/pass/modeltest"
	"github.com/syncpass/syncpass/record"
)

var histories = flag.Int("histories", 10_000, "how many random histories TestModel lives through")

// TestModel lives through random histories of edits, deletes, restores, policy changes, passes, crashes, lost answers,
// overlapping passes and lost records, with the planner in each pass, and holds them to the rules of package modeltest,
// and to these:
//
//	the order of its input changes nothing in a plan
//	the same history gives the same trace
//
// For more of them: make model HISTORIES=200000
func TestModel(t *testing.T) {
	var lives atomic.Int64
	lived, count := modeltest.Check(t, *histories, func(_ *testing.T, history []modeltest.Command) *modeltest.Model {
		m := modeltest.Live(runPass, modeltest.Without{}, history)
		if len(m.Broken) > 0 || lives.Add(1)%10 > 0 {
			return m
		}
		if again := modeltest.Live(runPass, modeltest.Without{}, history); m.Trace() != again.Trace() {
			m.Breaks("the same history gives the same trace", "there are two, and the other is\n%s", again.Trace())
		}
		return m
	})
	tally.Line(t, "model of the planner: %d histories, %d steps, %d passes, %d crashes, %d writes, 0 rules broken", lived, count.Steps, count.Passes, count.Crashes, count.Writes)
}

// TestModelMissesWhatIsTakenAway: without any one of the safeguards, histories break rules; so the rules would notice if
// it did not work. The safeguards of the model's own making (the fence, the preconditions) are taken away in the model,
// the others in what the planner is given or what is made of its plan.
func TestModelMissesWhatIsTakenAway(t *testing.T) {
	const within = 20_000
	for name, without := range map[string]modeltest.Without{
		"the fence": {Fence: true}, "the intents": {Intents: true}, "the preconditions": {Preconditions: true}, "the owner check": {OwnerCheck: true},
		"the word of a person": {Word: true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			for seed := range within {
				if m := modeltest.Live(runPass, without, modeltest.Histories().Example(seed)); len(m.Broken) > 0 {
					t.Logf("without %s, history %d is the first that breaks a rule: %v\n%s", name, seed+1, m.Broken[0], m.Trace())
					return
				}
			}
			t.Fatalf("without %s, no rule is broken in %d histories", name, within)
		})
	}
}

// A tenant restored from a backup goes through the same resourceVersions once more, with other content.
func TestResourceVersionsThatComeAgain(t *testing.T) {
	edit := func(text string) modeltest.Command {
		return modeltest.Command{What: modeltest.Edits, Side: record.Tenant, Pair: "x", Text: text}
	}
	m := modeltest.Live(runPass, modeltest.Without{}, []modeltest.Command{
		edit("1"), {What: modeltest.BacksUp, Side: record.Tenant}, edit("2"), {What: modeltest.APass},
		{What: modeltest.Restores, Side: record.Tenant}, edit("3"),
	})
	require.Empty(t, m.Broken, m.Trace())
}

// What a pass saw to be equal it may record, also where the tenant's list was an old one.
func TestAnAgreementInAnOldList(t *testing.T) {
	edit := func(side record.Side, text string) modeltest.Command {
		return modeltest.Command{What: modeltest.Edits, Side: side, Pair: "x", Text: text}
	}
	m := modeltest.Live(runPass, modeltest.Without{}, []modeltest.Command{
		edit(record.Tenant, "1"), {What: modeltest.APass},
		edit(record.Tenant, "3"), {What: modeltest.APass, Fault: modeltest.Fault{Kind: modeltest.CrashAfter}},
		edit(record.Tenant, "1"), edit(record.Host, "3"), {What: modeltest.APass, Fault: modeltest.Fault{Kind: modeltest.ListOld}},
	})
	require.Empty(t, m.Broken, m.Trace())
}

// A tenant object that a person's word was about to make again is not ours because there is one now: anybody makes objects
// in a tenant, and what the mirror was changed to must not be lost to another one's.
func TestATenantObjectMadeAgainBySomebodyElse(t *testing.T) {
	m := modeltest.Live(runPass, modeltest.Without{}, []modeltest.Command{
		{What: modeltest.Edits, Side: record.Tenant, Pair: "x", Text: "1"}, {What: modeltest.APass},
		{What: modeltest.Edits, Side: record.Host, Pair: "x", Text: "2"},
		{What: modeltest.Resolves, Side: record.Host, Pair: "x"},
		{What: modeltest.Deletes, Side: record.Tenant, Pair: "x"},
		{What: modeltest.APass, Fault: modeltest.Fault{Kind: modeltest.CrashAfter}},
		{What: modeltest.Edits, Side: record.Tenant, Pair: "x", Text: "1"},
		{What: modeltest.APass}, {What: modeltest.APass},
	})
	require.Empty(t, m.Broken, m.Trace())
}
