package plan_test

import (
	"testing"

	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/syncpass/syncpass/pass/kinds"
	"github.com/syncpass/syncpass/pass/plan"
	"github.com/syncpass/syncpass/record"
)

// interrupted is a pass over one pair that stored its intent and then ended before it recorded anything: w.history
// holds the intent, and step is the write that may or may not have been sent.
func interrupted(t *testing.T, w *world) plan.Step {
	t.Helper()
	step := one(t, w.compute())
	require.NotNil(t, step.Intent)
	state := step.State
	state.Intent = step.Intent
	w.history.Set(step.Key, state)
	w.tenants, w.hosts = nil, nil
	return step
}

// landed is what the API server makes of a step's write.
func landed(w *world, step plan.Step) *unstructured.Unstructured {
	object := w.edited(step.Want, managedBy(kinds.FieldManager))
	if step.Action == record.Create {
		object.SetUID("h-app")
	}
	return object
}

func TestAnInterruptedWriteIsRecognised(t *testing.T) {
	for _, test := range []struct {
		name string
		// before is the world in which the write is planned; after is the world that the next pass finds.
		before func(w *world, tenant, host *unstructured.Unstructured)
		after  func(w *world, step plan.Step)
		want   string
	}{
		{
			"a push that landed is an agreement, and the tenant's next change is pushed",
			func(w *world, tenant, host *unstructured.Unstructured) { w.see(w.edited(tenant, a2), host) },
			func(w *world, step plan.Step) { w.see(w.edited(step.Source, a3), landed(w, step)) },
			"update host TenantChanged",
		},
		{
			"a push that landed and after which nothing changed is only learned",
			func(w *world, tenant, host *unstructured.Unstructured) { w.see(w.edited(tenant, a2), host) },
			func(w *world, step plan.Step) { w.see(step.Source, landed(w, step)) },
			"-, learn",
		},
		{
			"a push that landed, and then the host changed, is pulled",
			func(w *world, tenant, host *unstructured.Unstructured) { w.see(w.edited(tenant, a2), host) },
			func(w *world, step plan.Step) { w.see(step.Source, w.edited(landed(w, step), a3)) },
			// The mirror no longer has the intended content, and nothing tells what it was when the host wrote it.
			"skip host Conflict",
		},
		{
			"a push that did not land is made again",
			func(w *world, tenant, host *unstructured.Unstructured) { w.see(w.edited(tenant, a2), host) },
			func(w *world, step plan.Step) { w.see(step.Source, step.Have) },
			"update host TenantChanged",
		},
		{
			"a push that did not land, and then the tenant changed it back, is nothing",
			func(w *world, tenant, host *unstructured.Unstructured) { w.see(w.edited(tenant, a2), host) },
			func(w *world, step plan.Step) { w.see(w.edited(step.Source, data("a", "1")), step.Have) },
			"-, learn",
		},
		{
			"somebody else who wrote the same on the host is not taken for us",
			func(w *world, tenant, host *unstructured.Unstructured) { w.see(w.edited(tenant, a2), host) },
			func(w *world, step plan.Step) {
				w.see(w.edited(step.Source, a3), w.edited(step.Have, a2, managedBy("kubectl-edit")))
			},
			"skip host Conflict",
		},
		{
			"somebody else who wrote the same on the host while the tenant stands still is an agreement all the same",
			func(w *world, tenant, host *unstructured.Unstructured) { w.see(w.edited(tenant, a2), host) },
			func(w *world, step plan.Step) {
				w.see(step.Source, w.edited(step.Have, a2, managedBy("kubectl-edit")))
			},
			"-, learn",
		},
		{
			"a push that only removes and landed is an agreement",
			func(w *world, tenant, host *unstructured.Unstructured) { w.see(w.edited(tenant, without("a")), host) },
			func(w *world, step plan.Step) { w.see(w.edited(step.Source, data("b", "1")), landed(w, step)) },
			"update host TenantChanged",
		},
		{
			"a push that only removes and did not land is made again",
			func(w *world, tenant, host *unstructured.Unstructured) { w.see(w.edited(tenant, without("a")), host) },
			func(w *world, step plan.Step) { w.see(step.Source, step.Have) },
			"update host TenantChanged",
		},
		{
			"a pull that landed is an agreement, and the host's next change is pulled",
			func(w *world, tenant, host *unstructured.Unstructured) { w.see(tenant, w.edited(host, a2)) },
			func(w *world, step plan.Step) { w.see(landed(w, step), w.edited(step.Source, a3)) },
			"update tenant HostChanged",
		},
		{
			"a pull that did not land is made again",
			func(w *world, tenant, host *unstructured.Unstructured) { w.see(tenant, w.edited(host, a2)) },
			func(w *world, step plan.Step) { w.see(step.Have, step.Source) },
			"update tenant HostChanged",
		},
		{
			"a pull of which nobody knows whether it landed before the tenant object was deleted is held",
			func(w *world, tenant, host *unstructured.Unstructured) { w.see(tenant, w.edited(host, a2)) },
			func(w *world, step plan.Step) { w.see(nil, w.edited(step.Source, data("a", "1"))) },
			"skip host Conflict",
		},
		{
			"marks that may have been put right or not leave a change of the host's what it is",
			func(w *world, tenant, host *unstructured.Unstructured) {
				w.history = record.NewHistory(hasher.KeyID())
				w.see(w.edited(tenant, uid("t-again")), host)
			},
			func(w *world, step plan.Step) { w.see(step.Source, w.edited(step.Have, a2)) },
			"update tenant HostChanged",
		},
		{
			"a push that landed and that somebody took back is held",
			func(w *world, tenant, host *unstructured.Unstructured) { w.see(w.edited(tenant, a2), host) },
			func(w *world, step plan.Step) {
				w.see(step.Source, w.edited(landed(w, step), data("a", "1"), managedBy("kubectl-edit")))
			},
			"skip host Conflict",
		},
		{
			"somebody else who wrote the same in the tenant is not taken for us",
			func(w *world, tenant, host *unstructured.Unstructured) { w.see(tenant, w.edited(host, a2)) },
			func(w *world, step plan.Step) {
				w.see(w.edited(step.Have, a2, managedBy("kubectl-edit")), w.edited(step.Source, a3))
			},
			"skip host Conflict",
		},
		{
			"a create that landed is an agreement, and the tenant's next change is pushed",
			func(w *world, tenant, _ *unstructured.Unstructured) {
				w.history = record.NewHistory(hasher.KeyID())
				w.see(tenant, nil)
			},
			func(w *world, step plan.Step) { w.see(w.edited(step.Source, a2), landed(w, step)) },
			"update host TenantChanged",
		},
		{
			"a create that landed and was then changed on the host is a change of the host's, since only we make mirrors",
			func(w *world, tenant, _ *unstructured.Unstructured) {
				w.history = record.NewHistory(hasher.KeyID())
				w.see(tenant, nil)
			},
			func(w *world, step plan.Step) { w.see(step.Source, w.edited(landed(w, step), a3)) },
			"update tenant HostChanged",
		},
		{
			"a create that did not land is made again",
			func(w *world, tenant, _ *unstructured.Unstructured) {
				w.history = record.NewHistory(hasher.KeyID())
				w.see(tenant, nil)
			},
			func(w *world, step plan.Step) { w.see(step.Source, nil) },
			"create host NoMirror",
		},
		{
			"a create that landed, and then the tenant deleted its object, is deleted",
			func(w *world, tenant, _ *unstructured.Unstructured) {
				w.history = record.NewHistory(hasher.KeyID())
				w.see(tenant, nil)
			},
			func(w *world, step plan.Step) { w.see(nil, landed(w, step)) },
			"delete host TenantDeleted",
		},
		{
			"a push that landed, and then the tenant deleted its object, is deleted",
			func(w *world, tenant, host *unstructured.Unstructured) { w.see(w.edited(tenant, a2), host) },
			func(w *world, step plan.Step) { w.see(nil, landed(w, step)) },
			"delete host TenantDeleted",
		},
		{
			"a push whose mirror is gone is made as a new mirror",
			func(w *world, tenant, host *unstructured.Unstructured) { w.see(w.edited(tenant, a2), host) },
			func(w *world, step plan.Step) { w.see(step.Source, nil) },
			"create host MirrorDeleted",
		},
		{
			"a replacement that ended between its delete and its create is finished",
			func(w *world, tenant, host *unstructured.Unstructured) {
				sealed := w.edited(tenant, immutable)
				mirror := w.edited(host, immutable)
				w.agreed(sealed, mirror)
				w.see(w.edited(sealed, uid("t-again"), a2), mirror)
			},
			func(w *world, step plan.Step) { w.see(step.Source, nil) },
			"create host NoMirror",
		},
		{
			"an intent is forgotten with its pair",
			func(w *world, tenant, host *unstructured.Unstructured) { w.see(w.edited(tenant, a2), host) },
			func(*world, plan.Step) {},
			"forget",
		},
	} {
		t.Run(test.name, func(t *testing.T) {
			w := manual()
			tenant := w.object("app")
			host := w.mirror(tenant)
			w.agreed(tenant, host)
			test.before(w, tenant, host)
			test.after(w, interrupted(t, w))
			result := w.compute()
			require.Equal(t, test.want, outcome(result))
			for _, step := range result.Steps {
				require.Nil(t, step.State.Intent, "an intent is looked into once")
			}
			remember(w.history, result.History)
			for _, step := range result.Steps {
				w.history.Set(step.Key, step.State)
			}
			require.Nil(t, w.history.Get(w.key("app")).Intent)
		})
	}
}

// What an intent says is what tells the write from anybody else's.
func TestAnIntentNamesWhatItWrites(t *testing.T) {
	w := manual()
	tenant := w.object("app")
	host := w.mirror(tenant)
	w.agreed(tenant, host)
	changed := w.edited(tenant, without("a"), data("b", "1"))
	w.see(changed, host)
	intent := one(t, w.compute()).Intent
	want := w.mirror(changed)
	require.Equal(t, record.Host, intent.Side)
	require.Equal(t, plan.Version(hasher, w.kind(), record.Host, host), intent.Target)
	require.Equal(t, plan.Version(hasher, w.kind(), record.Tenant, changed), intent.Source)
	require.Equal(t, plan.Version(hasher, w.kind(), record.Host, want).Hash, intent.Want)
	require.Equal(t, "data\nb", intent.Path, "the path of something set, not of something removed")
}

// A Service's selector is one field to the API server, which owns it as a whole.
func TestAnInterruptedWriteOfAnAtomicFieldIsRecognised(t *testing.T) {
	w := manual()
	w.group = widgets.GroupVersion().WithKind("Service")
	w.group.Group, w.group.Version = "", "v1"
	selector := func(text string) edit {
		return func(o *unstructured.Unstructured) {
			o.Object["spec"] = map[string]any{"selector": map[string]any{"app": text}}
		}
	}
	tenant := w.object("app", without("a"), selector("one"))
	host := w.mirror(tenant)
	w.agreed(tenant, host)
	w.see(w.edited(tenant, selector("two")), host)
	step := interrupted(t, w)
	atomic := landed(w, step)
	entries := atomic.GetManagedFields()
	entries[0].FieldsV1 = fieldsV1([]byte(`{"f:spec":{"f:selector":{}}}`))
	atomic.SetManagedFields(entries)
	w.see(w.edited(step.Source, selector("three")), atomic)
	require.Equal(t, "update host TenantChanged", outcome(w.compute()))
}
