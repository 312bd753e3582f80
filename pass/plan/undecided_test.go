package plan_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/syncpass/syncpass/policy"
	"github.com/syncpass/syncpass/record"
)

// Where nobody can be asked what the host's defaults are, what hangs on them is neither written nor passed over.
func TestWhatHangsOnADryRunThatCannotBeAskedIsHeld(t *testing.T) {
	for _, test := range []struct {
		name      string
		direction policy.Direction
		agreed    bool
		want      string
		says      string
	}{
		{"a write becomes a skip", policy.ToHost, false, "skip host NoHistory", "if not: Update (HostDrifted) on the host"},
		{"a write to the tenant does, too", policy.FromHost, false, "skip tenant NoHistory", "if not: Update (HostWins) on the tenant"},
		{"a skip for want of a history says so", policy.Bidirectional, false, "skip host NoHistory", "no agreement is recorded"},
		{"a conflict says so", policy.Bidirectional, true, "skip host Conflict", "both sides changed"},
	} {
		t.Run(test.name, func(t *testing.T) {
			w := newWorld(test.direction, policy.Manual)
			w.group = widgets
			tenant := w.object("app")
			host := w.mirror(tenant)
			if test.agreed {
				w.agreed(tenant, host)
			}
			w.see(w.edited(tenant, a2), w.edited(host, a3, managedBy("somebody")))
			p := w.compute()
			require.Equal(t, 1, p.HoldUndecided())
			require.Equal(t, test.want, outcome(p))
			step := one(t, p)
			require.Contains(t, step.Message, "undecided")
			require.Contains(t, step.Message, test.says)
			require.Equal(t, record.Skip, step.Action)
			require.Nil(t, step.Want)
			require.Zero(t, p.Writes())
		})
	}
}

func TestWhatHangsOnNothingIsNotHeld(t *testing.T) {
	w := newWorld(policy.ToHost, policy.Manual)
	w.group = widgets
	tenant := w.object("app")
	host := w.mirror(tenant)
	w.agreed(tenant, host)
	w.see(w.edited(tenant, a2), host)
	p := w.compute()
	require.Zero(t, p.HoldUndecided())
	require.Equal(t, "update host TenantChanged", outcome(p))
}
