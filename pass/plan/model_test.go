package plan_test

import (
	"flag"
	"slices"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/syncpass/syncpass/e2e/tally"
	"github.com/syncpass/syncpass/pass/modeltest"
	"github.com/syncpass/syncpass/policy"
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

// Histories that the model found, in which a rule was too strict, or a pass took too much for granted.
func TestHistoriesThatOnceBrokeARule(t *testing.T) {
	x := func(what modeltest.What, side record.Side, text string) modeltest.Command {
		return modeltest.Command{What: what, Side: side, Pair: "x", Text: text}
	}
	edits := func(side record.Side, text string) modeltest.Command { return x(modeltest.Edits, side, text) }
	says := func(side record.Side, text string) modeltest.Command { return x(modeltest.Resolves, side, text) }
	tenantDeletes := x(modeltest.Deletes, record.Tenant, "")
	pass := modeltest.Command{What: modeltest.APass}
	killedAfter := func(write int) modeltest.Command {
		return modeltest.Command{What: modeltest.APass, Fault: modeltest.Fault{Kind: modeltest.CrashAfter, At: write}}
	}
	hostIs := func(what modeltest.What) modeltest.Command { return modeltest.Command{What: what, Side: record.Host} }
	policyIs := func(p modeltest.Policy) modeltest.Command {
		return modeltest.Command{What: modeltest.ChangesPolicy, Policy: p}
	}
	begin := []modeltest.Command{edits(record.Tenant, "1"), pass}

	for name, then := range map[string][]modeltest.Command{
		"a tenant object that a word was to make again was made by somebody else, and what the mirror was changed to is not lost to it": {
			edits(record.Host, "2"), says(record.Host, ""), tenantDeletes, killedAfter(0), edits(record.Tenant, "1"), pass, pass,
		},
		"somebody else made it with the content that the mirror had, once the mirror was gone": {
			edits(record.Host, "2"), says(record.Host, ""), tenantDeletes, killedAfter(1), x(modeltest.Deletes, record.Host, ""), edits(record.Tenant, "2"),
		},
		"somebody else made it with the content that the mirror had, once the mirror had another": {
			edits(record.Host, "2"), says(record.Host, ""), tenantDeletes, killedAfter(1), edits(record.Host, "3"), edits(record.Tenant, "2"),
		},
		"nobody can tell whether it was made and deleted, and so the host's way back to what was agreed on is a conflict, too": {
			edits(record.Host, "2"), says(record.Host, ""), tenantDeletes, killedAfter(1), edits(record.Host, "1"),
		},
		"that is still so for a later pass, and a word settles it": {
			edits(record.Host, "2"), says(record.Host, ""), tenantDeletes, killedAfter(1), pass, says(record.Host, "1"),
		},
		"without a record, nobody can tell whether a word was carried out whose mirror was changed since": {
			{What: modeltest.LosesRecord}, edits(record.Tenant, "2"), says(record.Tenant, ""), killedAfter(1), edits(record.Host, "1"),
		},
		"nor whether one was whose tenant object was changed since": {
			{What: modeltest.LosesRecord}, says(record.Host, "2"), killedAfter(2), edits(record.Tenant, "3"),
		},
		"the host is restored to before a write in the tenant that was intended then, and has landed": {
			edits(record.Host, "2"), killedAfter(0), hostIs(modeltest.BacksUp), pass, hostIs(modeltest.RestoresAhead), edits(record.Host, "1"),
		},
		"a kind leaves the policy and comes back with a write in the tenant open, which nobody could look at meanwhile": {
			edits(record.Host, "3"), {What: modeltest.Edits, Side: record.Tenant, Pair: "y", Text: "1"},
			{What: modeltest.APass, Fault: modeltest.Fault{Kind: modeltest.CrashBefore, At: 3}},
			policyIs(modeltest.Policy{Direction: policy.Bidirectional, Conflict: policy.Manual, Absent: true, Retire: true, Selecting: true}),
			{What: modeltest.APass, Fault: modeltest.Fault{Kind: modeltest.PeopleBetween, At: 1, Before: []modeltest.Command{edits(record.Host, "2")}}},
			policyIs(modeltest.Policy{Direction: policy.Bidirectional, Conflict: policy.Manual}),
		},
		"both sides are restored, the host to a record that has a write in the tenant open which that no longer has": {
			edits(record.Host, "2"), x(modeltest.BacksUp, record.Tenant, ""), killedAfter(1), hostIs(modeltest.BacksUp),
			x(modeltest.Restores, record.Tenant, ""), edits(record.Host, "3"), hostIs(modeltest.RestoresAhead),
		},
		"the policy leaves out an object whose write in the tenant is open, and nobody can tell whether it landed": {
			x(modeltest.LabelsOut, record.Tenant, ""), pass, edits(record.Host, "2"), killedAfter(1),
			policyIs(modeltest.Policy{Direction: policy.Bidirectional, Conflict: policy.Manual, Selecting: true}),
		},
		"a pass that records nothing takes back a write of which nobody has recorded whether it landed": {
			x(modeltest.LabelsOut, record.Tenant, ""), {What: modeltest.APass, Fault: modeltest.Fault{Kind: modeltest.AnswerLost, At: 1}},
			policyIs(modeltest.Policy{Direction: policy.Bidirectional, Conflict: policy.TenantWins, Silent: true}),
			x(modeltest.LabelsOut, record.Tenant, ""), pass,
			policyIs(modeltest.Policy{Direction: policy.Bidirectional, Conflict: policy.Manual}),
			edits(record.Tenant, "3"), {What: modeltest.Edits, Side: record.Tenant, Pair: "y", Text: "2"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			m := modeltest.Live(runPass, modeltest.Without{}, slices.Concat(begin, then))
			require.Empty(t, m.Broken, m.Trace())
		})
	}
}
