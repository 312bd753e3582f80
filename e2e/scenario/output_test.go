package scenario

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// made are the decisions of a pass for the tests.
var made = []madeDecision{
	{Action: "Create", Side: "host", Kind: "ConfigMap", TenantNamespace: "default", TenantName: "app",
		HostName: "app-x-default-x-dev", Reason: "NoMirror", Message: "there is no mirror"},
	{Action: "Skip", Kind: "Secret", TenantNamespace: "default", TenantName: "db", Reason: "Rejected",
		Error: "exceeded quota: few", Fields: []string{"data.a", "data.b"}},
}

func TestADecisionIsMatchedOnTheKeysGiven(t *testing.T) {
	for _, test := range []struct {
		name string
		want Decision
		hits []bool
	}{
		{"nothing given", Decision{}, []bool{true, true}},
		{"action", Decision{Action: "Create"}, []bool{true, false}},
		{"side", Decision{Side: "host"}, []bool{true, false}},
		{"kind", Decision{Kind: "Secret"}, []bool{false, true}},
		{"reason", Decision{Reason: "Rejected"}, []bool{false, true}},
		{"object", Decision{Object: "default/app"}, []bool{true, false}},
		{"a part of the object is not enough", Decision{Object: "app"}, []bool{false, false}},
		{"host", Decision{Host: "app-x-default-x-dev"}, []bool{true, false}},
		{"a substring of the error", Decision{Error: "quota"}, []bool{false, true}},
		{"a substring of the message", Decision{Message: "no mirror"}, []bool{true, false}},
		{"a subset of the fields", Decision{Fields: []string{"data.b"}}, []bool{false, true}},
		{"a field too many", Decision{Fields: []string{"data.b", "data.c"}}, []bool{false, false}},
		{"one of two differs", Decision{Kind: "Secret", Reason: "NoMirror"}, []bool{false, false}},
	} {
		t.Run(test.name, func(t *testing.T) {
			for i, hit := range test.hits {
				assert.Equal(t, hit, test.want.matches(made[i]), "decision %d", i)
			}
		})
	}
}

func TestWhatAPassMustComeTo(t *testing.T) {
	got := passResult{Outcome: "Completed", Message: "fine", Counts: map[string]int{"create": 1, "update": 0}, Decisions: made}
	one := 1
	for _, test := range []struct {
		name string
		want Pass
		says []string
	}{
		{"nothing said", Pass{}, nil},
		{"all as it is", Pass{Outcome: "Completed", Counts: map[string]int{"create": 1, "update": 0}, Writes: &one, Only: true,
			Decisions: []Decision{{Action: "Create"}, {Action: "Skip"}}}, nil},
		{"another outcome", Pass{Outcome: "Guarded"}, []string{"outcome: want Guarded, got Completed (fine)"}},
		{"other counts", Pass{Counts: map[string]int{"update": 2, "create": 0}},
			[]string{"counts.create: want 0, got 1", "counts.update: want 2, got 0"}},
		{"a count that was not printed", Pass{Counts: map[string]int{"skip": 0}}, []string{"counts.skip: want 0, it was not printed"}},
		{"other writes", Pass{Writes: new(int)}, []string{"writes: want 0, got 1 (marked W in the request log)"}},
		{"a decision that was not made", Pass{Decisions: []Decision{{Action: "Delete"}}},
			[]string{`decisions[0]: want exactly one decision like {"action":"Delete"}, got 0`}},
		{"a decision that matches two", Pass{Decisions: []Decision{{}}}, []string{"decisions[0]: want exactly one decision like {}, got 2"}},
		{"two that match one", Pass{Decisions: []Decision{{Action: "Create"}, {Kind: "ConfigMap"}}},
			[]string{"decisions: entries [0 1] all match Create ConfigMap default/app (NoMirror)"}},
		{"no others but one", Pass{Only: true, Decisions: []Decision{{Action: "Create"}}},
			[]string{"decisions: nobody asked for Skip Secret default/db (Rejected)"}},
		{"none at all", Pass{Only: true}, []string{"decisions: nobody asked for Create ConfigMap default/app (NoMirror)",
			"decisions: nobody asked for Skip Secret default/db (Rejected)"}},
	} {
		t.Run(test.name, func(t *testing.T) {
			assert.Equal(t, test.says, test.want.check(got, one))
		})
	}
}

func TestOutputIsOneDocumentOverOneTenant(t *testing.T) {
	const good = `{"formatVersion":"1.7","dryRun":true,"new":1,"passes":[{"tenant":"dev","namespace":"team-dev","planID":"x"}]}`
	pass, err := parseOutput([]byte(good+"\n"), true)
	require.NoError(t, err)
	assert.Equal(t, "x", pass.PlanID)
	for want, text := range map[string]string{
		"not one JSON document": good + good,
		"formatVersion":         `{"formatVersion":"2.0","dryRun":true}`,
		"there are 0 passes":    `{"formatVersion":"1.0","dryRun":true,"passes":[]}`,
		"the pass is over":      `{"formatVersion":"1.0","dryRun":true,"passes":[{"tenant":"other","namespace":"team-dev"}]}`,
	} {
		_, err := parseOutput([]byte(text), true)
		assert.ErrorContains(t, err, want)
	}
	_, err = parseOutput([]byte(good), false)
	assert.ErrorContains(t, err, "dryRun is true")
}

func TestDecisionsAreShownAsATable(t *testing.T) {
	assert.Equal(t, `ACTION  SIDE  KIND       OBJECT       HOST                 REASON    FIELDS         MESSAGE             ERROR
Create  host  ConfigMap  default/app  app-x-default-x-dev  NoMirror                 there is no mirror  
Skip          Secret     default/db                        Rejected  data.a,data.b                      exceeded quota: few
`, table(made))
	assert.Equal(t, "none\n", table(nil))
}
