package plan_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/syncpass/syncpass/pass/plan"
	"github.com/syncpass/syncpass/record"
)

// restored is a tenant that has agreed with the host on two objects, at resourceVersions above 1000, and was then put
// back to a state at which one of them was not there yet, and the other had the same content at version 5.
func restored() (*world, plan.Input) {
	w := manual()
	kept, lost := w.object("kept"), w.object("lost")
	keptMirror, lostMirror := w.mirror(kept), w.mirror(lost)
	w.agreed(kept, keptMirror)
	w.agreed(lost, lostMirror)
	before := kept.DeepCopy()
	before.SetResourceVersion("5")
	w.see(before, keptMirror)
	w.see(nil, lostMirror)
	in := w.input()
	in.Snapshot.Kinds[0].TenantVersion = "7"
	return w, in
}

func TestATenantThatWentBackInTimeIsHeld(t *testing.T) {
	_, in := restored()
	held := plan.Compute(in)
	require.Equal(t, 1, count(held, record.Skip, record.GuardTenantIdentity), outcome(held))
	require.Zero(t, held.Writes())
	require.Empty(t, held.History, "an earlier state says nothing about the pairs")
	require.Empty(t, held.Refreshed, "or the next pass would not notice")
	for _, text := range []string{"went back in time", "ConfigMap", "resourceVersion 7", "seen at 1", "restored from a backup", "tenantplane.io/confirm-deletes=" + held.GuardID} {
		require.Contains(t, held.GuardMessage, text)
	}
}

func TestATenantIsWhereItWas(t *testing.T) {
	for name, version := range map[string]string{
		"at the very version": "1002", "later": "99999999999999999999999", "no number": "abc", "none": "",
	} {
		t.Run(name, func(t *testing.T) {
			_, in := restored()
			in.Snapshot.Kinds[0].TenantVersion = version
			require.Equal(t, 1, count(plan.Compute(in), record.Delete, record.TenantDeleted))
		})
	}
	t.Run("a kind that was not read", func(t *testing.T) {
		_, in := restored()
		in.Snapshot.Kinds[0].Unavailable = "listing it on the tenant failed"
		require.Empty(t, plan.Compute(in).GuardID)
	})
}

// Once it is confirmed, the state that the tenant is in is the one to go on from, also for what could not be written.
func TestAConfirmedRestoreIsNotHeldAgain(t *testing.T) {
	w, in := restored()
	in.Confirmed = plan.Compute(in).GuardID
	let := plan.Compute(in)
	require.Equal(t, 1, count(let, record.Delete, record.TenantDeleted), outcome(let))
	for _, change := range let.History {
		w.history.Set(change.Key, change.State)
	}
	in.Confirmed = ""
	again := plan.Compute(in)
	require.Empty(t, again.GuardID, again.GuardMessage)
	require.Equal(t, 1, again.Unchanged)
	require.Equal(t, 1, count(again, record.Delete, record.TenantDeleted), "it is still known what was there")
}

// Where nothing differs there is nothing to ask for, and the next change is not held up by what is past.
func TestARestoreThatChangesNothingIsTakenUp(t *testing.T) {
	w := manual()
	object := w.object("kept")
	mirror := w.mirror(object)
	w.agreed(object, mirror)
	before := object.DeepCopy()
	before.SetResourceVersion("5")
	w.see(before, mirror)
	in := w.input()
	in.Snapshot.Kinds[0].TenantVersion = "7"
	first := plan.Compute(in)
	require.Empty(t, first.Steps)
	require.Empty(t, first.GuardID)
	require.Len(t, first.History, 1)
	w.history.Set(first.History[0].Key, first.History[0].State)
	require.Equal(t, "5", w.history.Get(first.History[0].Key).Baseline.Tenant.ResourceVersion)
	require.Empty(t, plan.Compute(in).History)
}
