package plan_test

import (
	"testing"

	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/syncpass/syncpass/pass/kinds"
	"github.com/syncpass/syncpass/pass/plan"
	"github.com/syncpass/syncpass/policy"
	"github.com/syncpass/syncpass/record"
)

// column is one authority: a direction, and a conflict policy where that matters.
type column struct {
	name      string
	direction policy.Direction
	conflicts []policy.ConflictPolicy
}

var (
	anyConflict = []policy.ConflictPolicy{policy.Manual, policy.TenantWins, policy.HostWins}
	columns     = []column{
		{"toHost", policy.ToHost, anyConflict},
		{"fromHost", policy.FromHost, anyConflict},
		{"manual", policy.Bidirectional, []policy.ConflictPolicy{policy.Manual}},
		{"tenant-wins", policy.Bidirectional, []policy.ConflictPolicy{policy.TenantWins}},
		{"host-wins", policy.Bidirectional, []policy.ConflictPolicy{policy.HostWins}},
	}
)

// row is one row of the decision table: what both sides look like now, given the pair as it was at the last agreement,
// and what each column makes of it.
type row struct {
	name string
	// now lays the world out; tenant and host are the pair as both sides last agreed on.
	now func(w *world, tenant, host *unstructured.Unstructured)
	// want is by column, in the order of columns; one element stands for all of them.
	want []string
}

// everywhere is a row that no direction and no conflict policy changes.
func everywhere(want string) []string { return []string{want} }

// a2 and a3 are two different edits, of which the side that makes them is the writer.
var (
	a2 = data("a", "2")
	a3 = data("a", "3")
)

var withHistory = []row{
	{"a new tenant object gets a mirror", func(w *world, tenant, _ *unstructured.Unstructured) {
		w.history = record.NewHistory(hasher.KeyID())
		w.see(tenant, nil)
	}, everywhere("create host NoMirror")},
	{"a pair that nobody touched is left alone", func(w *world, tenant, host *unstructured.Unstructured) {
		w.see(tenant, host)
	}, everywhere("-")},
	{"a touch that changes no content is no change", func(w *world, tenant, host *unstructured.Unstructured) {
		w.see(w.edited(tenant), w.edited(host))
	}, everywhere("-")},
	{"a status is no content", func(w *world, tenant, host *unstructured.Unstructured) {
		w.see(tenant, w.edited(host, func(o *unstructured.Unstructured) { o.Object["status"] = map[string]any{"phase": "Running"} }))
	}, everywhere("-")},
	{"a change in the tenant", func(w *world, tenant, host *unstructured.Unstructured) {
		w.see(w.edited(tenant, a2), host)
	}, []string{"update host TenantChanged", "update tenant HostWins", "update host TenantChanged", "update host TenantChanged", "update tenant HostWins"}},
	{"a change on the host", func(w *world, tenant, host *unstructured.Unstructured) {
		w.see(tenant, w.edited(host, a2, managedBy("kubectl-edit")))
	}, []string{"update host HostDrifted", "update tenant HostChanged", "update tenant HostChanged", "update host TenantWins", "update tenant HostChanged"}},
	{"the same change on both sides is a new agreement", func(w *world, tenant, host *unstructured.Unstructured) {
		w.see(w.edited(tenant, a2), w.edited(host, a2))
	}, everywhere("-, learn")},
	{"different changes on both sides", func(w *world, tenant, host *unstructured.Unstructured) {
		w.see(w.edited(tenant, a2), w.edited(host, a3))
	}, []string{"update host TenantChanged", "update tenant HostChanged", "skip host Conflict", "update host TenantWins", "update tenant HostWins"}},
	{"no agreement is recorded and the sides agree", func(w *world, tenant, host *unstructured.Unstructured) {
		w.history = record.NewHistory(hasher.KeyID())
		w.see(tenant, host)
	}, everywhere("-, learn")},
	{"no agreement is recorded and the sides differ, the mirror as we wrote it", func(w *world, tenant, host *unstructured.Unstructured) {
		w.history = record.NewHistory(hasher.KeyID())
		w.see(w.edited(tenant, a2), host)
	}, []string{"update host TenantChanged", "update tenant HostWins", "skip host NoHistory", "update host TenantWins", "update tenant HostWins"}},
	{"no agreement is recorded and the sides differ, the mirror as somebody else wrote it", func(w *world, tenant, host *unstructured.Unstructured) {
		w.history = record.NewHistory(hasher.KeyID())
		w.see(tenant, w.edited(host, a2, managedBy("kubectl-edit")))
	}, []string{"update host HostDrifted", "update tenant HostWins", "skip host NoHistory", "update host TenantWins", "update tenant HostWins"}},
	{"no agreement is recorded and the tenant added a field", func(w *world, tenant, host *unstructured.Unstructured) {
		w.history = record.NewHistory(hasher.KeyID())
		w.see(w.edited(tenant, data("b", "1")), host)
	}, []string{"update host TenantChanged", "update tenant HostWins", "skip host NoHistory", "update host TenantWins", "update tenant HostWins"}},
	{"the mirror was deleted", func(w *world, tenant, _ *unstructured.Unstructured) {
		w.see(tenant, nil)
	}, everywhere("create host MirrorDeleted")},
	{"the mirror was deleted while the tenant changed", func(w *world, tenant, _ *unstructured.Unstructured) {
		w.see(w.edited(tenant, a2), nil)
	}, everywhere("create host MirrorDeleted")},
	{"the tenant object was deleted", func(w *world, _, host *unstructured.Unstructured) {
		w.see(nil, host)
	}, everywhere("delete host TenantDeleted")},
	{"the tenant object was deleted and no agreement is recorded", func(w *world, _, host *unstructured.Unstructured) {
		w.history = record.NewHistory(hasher.KeyID())
		w.see(nil, host)
	}, everywhere("delete host TenantDeleted")},
	{"the tenant object was deleted while the mirror changed", func(w *world, _, host *unstructured.Unstructured) {
		w.see(nil, w.edited(host, a2))
	}, []string{"delete host TenantDeleted", "delete host TenantDeleted", "skip host Conflict", "delete host TenantDeleted", "delete host TenantDeleted"}},
	{"the tenant object was made again with the same content", func(w *world, tenant, host *unstructured.Unstructured) {
		w.see(w.edited(tenant, uid("t-again")), host)
	}, everywhere("update host TenantChanged")},
	{"the tenant object was made again with other content", func(w *world, tenant, host *unstructured.Unstructured) {
		w.see(w.edited(tenant, uid("t-again"), a2), host)
	}, []string{"update host TenantChanged", "update tenant HostWins", "update host TenantChanged", "update host TenantChanged", "update tenant HostWins"}},
	{"the tenant object was made again with other content while the mirror changed", func(w *world, tenant, host *unstructured.Unstructured) {
		w.see(w.edited(tenant, uid("t-again"), a2), w.edited(host, a3))
	}, []string{"update host TenantChanged", "update tenant HostChanged", "skip host Conflict", "update host TenantWins", "update tenant HostWins"}},
	{"the tenant object was made again while the mirror was deleted", func(w *world, tenant, _ *unstructured.Unstructured) {
		w.see(w.edited(tenant, uid("t-again")), nil)
	}, everywhere("create host NoMirror")},
	{"both were deleted", func(*world, *unstructured.Unstructured, *unstructured.Unstructured) {},
		everywhere("forget")},
	{"the tenant object is terminating", func(w *world, tenant, host *unstructured.Unstructured) {
		w.see(w.edited(tenant, terminating), host)
	}, everywhere("delete host TenantDeleted")},
	{"the tenant object is terminating and has no mirror", func(w *world, tenant, _ *unstructured.Unstructured) {
		w.see(w.edited(tenant, terminating), nil)
	}, everywhere("-")},
	{"both are terminating", func(w *world, tenant, host *unstructured.Unstructured) {
		w.see(w.edited(tenant, terminating), w.edited(host, terminating))
	}, everywhere("-")},
	{"the tenant object is gone and the mirror is terminating", func(w *world, _, host *unstructured.Unstructured) {
		w.see(nil, w.edited(host, terminating))
	}, everywhere("-")},
	{"the mirror is terminating", func(w *world, tenant, host *unstructured.Unstructured) {
		w.see(w.edited(tenant, a2), w.edited(host, terminating))
	}, everywhere("skip host Terminating")},
	{"an object that is not ours stands in the mirror's place", func(w *world, tenant, host *unstructured.Unstructured) {
		w.see(tenant, w.edited(host, func(o *unstructured.Unstructured) { o.SetLabels(nil) }))
	}, everywhere("skip host NotOwned")},
	{"a mirror of another object stands in the mirror's place", func(w *world, tenant, host *unstructured.Unstructured) {
		w.see(tenant, w.edited(host, label(kinds.LabelTenant, "dev-2")))
	}, everywhere("skip host NameCollision")},
	{"an object that is not ours stands in the place of a deleted object's mirror", func(w *world, _, host *unstructured.Unstructured) {
		w.see(nil, w.edited(host, func(o *unstructured.Unstructured) { o.SetLabels(nil) }))
	}, everywhere("forget")},
}

var withoutHistory = []row{
	{"a new tenant object gets a mirror", func(w *world, tenant, _ *unstructured.Unstructured) {
		w.see(tenant, nil)
	}, everywhere("create host NoMirror")},
	{"the sides agree", func(w *world, tenant, host *unstructured.Unstructured) {
		w.see(tenant, host)
	}, everywhere("-")},
	{"the sides differ, the mirror as we wrote it", func(w *world, tenant, host *unstructured.Unstructured) {
		w.see(w.edited(tenant, a2), host)
	}, []string{"update host TenantChanged", "update tenant HostWins", "skip host HistoryOff", "update host TenantWins", "update tenant HostWins"}},
	{"the sides differ, the mirror as somebody else wrote it", func(w *world, tenant, host *unstructured.Unstructured) {
		w.see(tenant, w.edited(host, a2, managedBy("kubectl-edit")))
	}, []string{"update host HostDrifted", "update tenant HostWins", "skip host HistoryOff", "update host TenantWins", "update tenant HostWins"}},
	{"the tenant object was deleted", func(w *world, _, host *unstructured.Unstructured) {
		w.see(nil, host)
	}, everywhere("delete host TenantDeleted")},
	{"the tenant object is terminating", func(w *world, tenant, host *unstructured.Unstructured) {
		w.see(w.edited(tenant, terminating), host)
	}, everywhere("delete host TenantDeleted")},
	{"the tenant object was made again with the same content", func(w *world, tenant, host *unstructured.Unstructured) {
		w.see(w.edited(tenant, uid("t-again")), host)
	}, everywhere("update host TenantChanged")},
	{"the mirror is terminating", func(w *world, tenant, host *unstructured.Unstructured) {
		w.see(tenant, w.edited(host, terminating))
	}, everywhere("skip host Terminating")},
	{"an object that is not ours stands in the mirror's place", func(w *world, tenant, host *unstructured.Unstructured) {
		w.see(tenant, w.edited(host, func(o *unstructured.Unstructured) { o.SetLabels(nil) }))
	}, everywhere("skip host NotOwned")},
}

// The whole decision table of the planner: every row for three directions and three conflict policies, with history and
// without.
func TestTheDecisionTable(t *testing.T) {
	for _, history := range []struct {
		name string
		off  bool
		rows []row
	}{{"recording", false, withHistory}, {"with recordDecisions off", true, withoutHistory}} {
		for _, row := range history.rows {
			for i, column := range columns {
				for _, conflict := range column.conflicts {
					t.Run(history.name+"/"+row.name+"/"+column.name+" under "+string(conflict), func(t *testing.T) {
						w := newWorld(column.direction, conflict)
						w.off = history.off
						tenant := w.object("app")
						host := w.mirror(tenant)
						w.agreed(tenant, host)
						row.now(w, tenant, host)
						want := row.want[0]
						if len(row.want) > 1 {
							want = row.want[i]
						}
						result := w.compute()
						require.Equal(t, want, outcome(result))
						for _, step := range result.Steps {
							checkStep(t, w, step)
						}
					})
				}
			}
		}
	}
}

// checkStep holds a step to what every step must carry.
func checkStep(t *testing.T, w *world, step plan.Step) {
	t.Helper()
	require.Equal(t, w.key("app"), step.Key)
	require.Equal(t, "default", step.TenantNamespace)
	require.Equal(t, "app", step.TenantName)
	require.Equal(t, "team-dev", step.HostNamespace)
	require.Equal(t, "app-x-default-x-dev", step.HostName)
	require.NotEmpty(t, step.Message)
	require.NotNil(t, step.Fields)
	twoWay := w.direction == policy.Bidirectional && w.conflict == policy.Manual && !w.off
	switch step.Action {
	case record.Create:
		require.Nil(t, step.Have)
		require.Empty(t, step.Want.GetResourceVersion())
		require.Empty(t, step.Want.GetUID())
		require.Equal(t, "team-dev", step.Want.GetNamespace())
		require.Equal(t, "app-x-default-x-dev", step.Want.GetName())
		require.Equal(t, twoWay, step.Intent != nil, "an intent is stored exactly where both sides may change")
	case record.Update:
		require.Equal(t, step.Have.GetUID(), step.Want.GetUID(), "the write is conditional on what was read")
		require.Equal(t, step.Have.GetResourceVersion(), step.Want.GetResourceVersion())
		require.NotEmpty(t, step.Want.GetResourceVersion())
		require.Equal(t, twoWay, step.Intent != nil, "an intent is stored exactly where both sides may change")
		require.NotEmpty(t, step.Fields)
	case record.Delete:
		require.Nil(t, step.Want)
		require.NotNil(t, step.Have)
	case record.Skip:
		require.Nil(t, step.Want)
		require.Nil(t, step.Intent)
	}
}
