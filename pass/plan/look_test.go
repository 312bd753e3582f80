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

func TestHowASideStands(t *testing.T) {
	for _, test := range []struct {
		name         string
		now          func(w *world, tenant, host *unstructured.Unstructured)
		tenant, host plan.SideState
	}{
		{"nobody touched it", func(w *world, tenant, host *unstructured.Unstructured) { w.see(w.edited(tenant), w.edited(host)) }, plan.Unchanged, plan.Unchanged},
		{"both changed", func(w *world, tenant, host *unstructured.Unstructured) {
			w.see(w.edited(tenant, a2), w.edited(host, a3))
		}, plan.Changed, plan.Changed},
		{"it is new", func(w *world, tenant, _ *unstructured.Unstructured) {
			w.history = record.NewHistory(hasher.KeyID())
			w.see(tenant, nil)
		}, plan.New, plan.Absent},
		{"the tenant deleted it", func(w *world, _, host *unstructured.Unstructured) { w.see(nil, host) }, plan.Deleted, plan.Unchanged},
		{"the host deleted it", func(w *world, tenant, _ *unstructured.Unstructured) { w.see(tenant, nil) }, plan.Unchanged, plan.Deleted},
		{"the tenant made it again", func(w *world, tenant, host *unstructured.Unstructured) {
			w.see(w.edited(tenant, uid("t-again")), host)
		}, plan.Recreated, plan.Unchanged},
		{"it goes", func(w *world, tenant, host *unstructured.Unstructured) {
			w.see(w.edited(tenant, terminating), w.edited(host, terminating))
		}, plan.Terminating, plan.Terminating},
	} {
		t.Run(test.name, func(t *testing.T) {
			view, found := plan.Look(dispute(test.now).input(), manual().key("app"))
			require.True(t, found)
			require.Equal(t, test.tenant, view.TenantState)
			require.Equal(t, test.host, view.HostState)
		})
	}
}

func TestAViewSaysWhyAnObjectIsLeftOut(t *testing.T) {
	w := newWorld(policy.ToHost, policy.Manual)
	system := w.object("app")
	system.SetNamespace("kube-system")
	root := w.object(kinds.RootCA)
	w.see(system, nil)
	w.see(root, nil)
	w.see(w.object("app"), nil)
	view := func(namespace, name string) plan.View {
		found, ok := plan.Look(w.input(), record.Key{Kind: "ConfigMap", Namespace: namespace, Name: name})
		require.True(t, ok)
		return found
	}
	require.Contains(t, view("kube-system", "app").LeftOut, "namespace kube-system")
	require.Contains(t, view("default", kinds.RootCA).LeftOut, "never crosses")
	require.Empty(t, view("default", "app").LeftOut)
	w.says = selecting
	require.Contains(t, view("default", "app").LeftOut, `its selector, "sync=yes"`)
	w.says = from("team-a")
	require.Contains(t, view("default", "app").LeftOut, `namespaces ["team-a"]`)
	require.Nil(t, view("default", "app").Projected)
}
