package plan_test

import (
	"testing"

	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"pgregory.net/rapid"

	"github.com/syncpass/syncpass/pass/kinds"
	"github.com/syncpass/syncpass/pass/plan"
	"github.com/syncpass/syncpass/policy"
	"github.com/syncpass/syncpass/record"
)

// surveyed is an input of which only that was read that a survey asks for; false where it asks for everything.
func surveyed(in plan.Input) (plan.Input, bool) {
	snapshot := in.Snapshot.Kinds[0]
	survey := plan.NewSurvey(in, snapshot)
	if survey == nil {
		return in, false
	}
	for _, object := range snapshot.Host {
		survey.See(record.Host, object)
	}
	for _, object := range snapshot.Tenant {
		survey.See(record.Tenant, object)
	}
	found := survey.Result()
	snapshot.Quiet, snapshot.Apart, snapshot.Others = found.Quiet, found.Apart, found.Others
	snapshot.Tenant, snapshot.Host = only(snapshot.Tenant, found.Tenant), only(snapshot.Host, found.Host)
	for i, mirror := range snapshot.Host {
		if found.Orphans[types.NamespacedName{Namespace: mirror.GetNamespace(), Name: mirror.GetName()}] {
			snapshot.Host[i] = mirror.DeepCopy()
			snapshot.Host[i].SetManagedFields(nil)
		}
	}
	in.Snapshot.Kinds = append([]plan.KindSnapshot{snapshot}, in.Snapshot.Kinds[1:]...)
	return in, true
}

func only(objects []*unstructured.Unstructured, names []types.NamespacedName) (kept []*unstructured.Unstructured) {
	wanted := map[types.NamespacedName]bool{}
	for _, name := range names {
		wanted[name] = true
	}
	for _, object := range objects {
		if wanted[types.NamespacedName{Namespace: object.GetNamespace(), Name: object.GetName()}] {
			kept = append(kept, object)
		}
	}
	return kept
}

// withoutWriters is a plan that does not say who set which field of what it overwrites and deletes.
func withoutWriters(p *plan.Plan) *plan.Plan {
	for i := range p.Steps {
		if have := p.Steps[i].Have; have != nil {
			p.Steps[i].Have = have.DeepCopy()
			p.Steps[i].Have.SetManagedFields(nil)
		}
	}
	return p
}

// TestReadingLessChangesNoDecision is what a survey must not break: the plan from what it lets be read is the plan from
// everything.
func TestReadingLessChangesNoDecision(t *testing.T) {
	quiet := 0
	rapid.Check(t, func(t *rapid.T) {
		_, in := drawWorld(t)
		in.Snapshot.Kinds[0].Malformed = nil // a server whose metadata is malformed is read as a whole
		less, surveys := surveyed(in)
		if !surveys {
			return
		}
		quiet += len(less.Snapshot.Kinds[0].Quiet)
		require.Equal(t, withoutWriters(plan.Compute(in)), withoutWriters(plan.Compute(less)))
	})
	if !testing.Short() { // which draws a few worlds only
		require.NotZero(t, quiet, "no pair was ever quiet")
	}
}

func TestASurveyAsksForWhatMayHaveChanged(t *testing.T) {
	for name, test := range map[string]struct {
		given func(w *world, tenant, host *unstructured.Unstructured)
		quiet bool
	}{
		"as it was":                {func(w *world, tenant, host *unstructured.Unstructured) { w.see(tenant, host) }, true},
		"the tenant's was touched": {func(w *world, tenant, host *unstructured.Unstructured) { w.see(w.edited(tenant), host) }, false},
		"the host's was touched":   {func(w *world, tenant, host *unstructured.Unstructured) { w.see(tenant, w.edited(host)) }, false},
		"the tenant's came to the same version another way": {func(w *world, tenant, host *unstructured.Unstructured) {
			restored := w.edited(tenant, data("a", "2"))
			restored.SetResourceVersion(tenant.GetResourceVersion())
			w.see(restored, host)
		}, false},
		"nobody knows when the tenant's was written": {func(w *world, tenant, host *unstructured.Unstructured) {
			tenant.SetManagedFields(nil)
			w.agreed(tenant, host)
			w.see(tenant, host)
		}, false},
		"the tenant's is gone": {func(w *world, _, host *unstructured.Unstructured) { w.see(nil, host) }, false},
		"the host's is gone":   {func(w *world, tenant, _ *unstructured.Unstructured) { w.see(tenant, nil) }, false},
		"a skip stands": {func(w *world, tenant, host *unstructured.Unstructured) {
			state := w.history.Get(w.key("app"))
			state.Standing = &record.Standing{Reason: record.Rejected, Since: now, LastTime: now, Count: 1}
			w.history.Set(w.key("app"), state)
			w.see(tenant, host)
		}, false},
		"a write was intended": {func(w *world, tenant, host *unstructured.Unstructured) {
			state := w.history.Get(w.key("app"))
			state.Intent = &record.Intent{Side: record.Host}
			w.history.Set(w.key("app"), state)
			w.see(tenant, host)
		}, false},
		"the credentials were rotated": {func(w *world, tenant, host *unstructured.Unstructured) {
			w.history.Rekey("another")
			w.see(tenant, host)
		}, false},
		"a mark is missing": {func(w *world, tenant, host *unstructured.Unstructured) {
			host.SetOwnerReferences(nil)
			w.see(tenant, host)
		}, false},
	} {
		t.Run(name, func(t *testing.T) {
			w := manual()
			tenant := w.object("app")
			host := w.mirror(tenant)
			w.agreed(tenant, host)
			test.given(w, tenant, host)
			less, surveys := surveyed(w.input())
			require.True(t, surveys)
			quiet := less.Snapshot.Kinds[0].Quiet[types.NamespacedName{Namespace: "default", Name: "app"}]
			require.Equal(t, test.quiet, quiet)
			require.Equal(t, withoutWriters(plan.Compute(w.input())), withoutWriters(plan.Compute(less)))
		})
	}
}

func TestNoSurveyWhereMetadataTellsNothing(t *testing.T) {
	w := manual()
	require.Nil(t, plan.NewSurvey(w.input(), w.input().Snapshot.Kinds[0]), "without a history there is nothing to compare with")
	tenant := w.object("app")
	w.agreed(tenant, w.mirror(tenant))
	in := w.input()
	require.NotNil(t, plan.NewSurvey(in, in.Snapshot.Kinds[0]))
	in.Recording = false
	require.Nil(t, plan.NewSurvey(in, in.Snapshot.Kinds[0]))
}

// TestAPolicyThatListsAReferenceIsALookAtEveryMirror: the name in that place is content, and has to be renamed.
func TestAPolicyThatListsAReferenceIsALookAtEveryMirror(t *testing.T) {
	w := newWorld(policy.ToHost, policy.Manual)
	w.group = widgets
	tenant := w.object("app")
	w.agreed(tenant, w.mirror(tenant))
	w.says = func(r *policy.Resource) {
		r.References = []policy.Reference{{Path: "spec.secretName", APIVersion: "v1", Kind: "Secret"}}
	}
	in := w.input()
	require.Nil(t, plan.NewSurvey(in, in.Snapshot.Kinds[0]))
	learned := plan.Compute(in).Kinds
	require.Len(t, learned, 1)
	w.history.Set(learned[0].Key, learned[0].State)
	in = w.input()
	require.NotNil(t, plan.NewSurvey(in, in.Snapshot.Kinds[0]), "once all of it was looked at")
	require.Empty(t, plan.Compute(in).Kinds)
	w.says = nil
	in = w.input()
	require.Nil(t, plan.NewSurvey(in, in.Snapshot.Kinds[0]), "and again where it is taken out")
}

func TestAWriteThatLeavesSomethingToDoIsLookedAtAgain(t *testing.T) {
	w := manual()
	tenant := w.object("app")
	host := w.mirror(tenant)
	require.True(t, plan.Settled(mapping, w.kind(), tenant, host))
	host.SetAnnotations(map[string]string{kinds.AnnotationVirtualUID: "of an earlier one"})
	require.False(t, plan.Settled(mapping, w.kind(), tenant, host))
}
