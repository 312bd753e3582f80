package kinds

import (
	"maps"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"pgregory.net/rapid"

	"github.com/syncpass/syncpass/record"
)

// crossing is one object as it stands in the tenant, as it is created on the host, and as the host's API server and
// controllers have it afterwards, with defaults and allocations.
type crossing struct {
	apiVersion, kind      string
	tenant, created, host Content
}

// crossings are what the tables of the built-in kinds hold, by sentence.
func crossings() map[string]crossing {
	all := map[string]crossing{}
	for _, table := range []map[string]crossing{
		ingressCrossings, networkPolicyCrossings, budgetCrossings, claimCrossings, endpointCrossings, accountCrossings, serviceCrossings,
	} {
		for name, row := range table {
			all[row.kind+": "+name] = row
		}
	}
	return all
}

func (c crossing) object(content Content) *unstructured.Unstructured {
	return object(c.apiVersion, c.kind, runtime.DeepCopyJSON(content))
}

func kindOf(o *unstructured.Unstructured) Kind { return For(o.GroupVersionKind().GroupKind()) }

func TestBuiltInKindsCrossAndComeBack(t *testing.T) {
	for name, row := range crossings() {
		t.Run(name, func(t *testing.T) {
			tenant := row.object(row.tenant)
			kind := kindOf(tenant)
			created := mapping.Project(kind, tenant, nil, KeepForeign)
			require.Equal(t, row.created, bare(created))

			host := stored(created)
			for field, value := range runtime.DeepCopyJSON(row.host) {
				host.Object[field] = value
			}
			for _, keep := range []Keep{KeepForeign, KeepNone} {
				want := mapping.Project(kind, tenant, host, keep)
				require.Equal(t, row.host, bare(want), "what the host has made of it is no drift")
				require.Empty(t, Difference(ContentOf(kind, record.Host, host), ContentOf(kind, record.Host, want)))
				require.Empty(t, kind.Immutable(host.Object, want.Object))
			}
			back := mapping.Reflect(kind, host, tenant)
			require.Equal(t, row.tenant, bare(back), "and the way back changes nothing in the tenant")
			require.Equal(t, ContentOf(kind, record.Tenant, tenant), ContentOf(kind, record.Tenant, back))
			require.Equal(t, row.host, bare(mapping.Project(kind, back, host, KeepForeign)))
		})
	}
}

// What only a hostile or broken server sends: anything at any place of an object.
func TestBuiltInKindsOfAnUnlikelyShape(t *testing.T) {
	rows := crossings()
	names := slices.Sorted(maps.Keys(rows))
	rapid.Check(t, func(t *rapid.T) {
		row := rows[rapid.SampledFrom(names).Draw(t, "row")]
		tenant, host := row.object(row.tenant), stored(mapping.Project(kindOf(row.object(row.tenant)), row.object(row.tenant), nil, KeepNone))
		for field, value := range runtime.DeepCopyJSON(row.host) {
			host.Object[field] = value
		}
		kind := kindOf(tenant)
		for _, side := range []*unstructured.Unstructured{tenant, host} {
			side.Object["status"] = Content{"phase": "Bound", "loadBalancer": Content{}, "conditions": []any{Content{"type": "Resizing"}}, "desiredHealthy": int64(1), "expectedPods": int64(1)}
			side.SetManagedFields([]metav1.ManagedFieldsEntry{entryOf("other", "status", `{"f:status":{"f:phase":{}}}`)})
			for range rapid.IntRange(0, 3).Draw(t, "breaks") {
				breakSomewhere(t, side.Object)
			}
		}
		before := [2]*unstructured.Unstructured{tenant.DeepCopy(), host.DeepCopy()}
		mapping.Project(kind, tenant, nil, KeepNone)
		want := mapping.Project(kind, tenant, host, KeepForeign)
		back := mapping.Reflect(kind, host, tenant)
		kind.Immutable(host.Object, want.Object)
		kind.Immutable(tenant.Object, back.Object)
		Crosses(kind, tenant)
		ContentOf(kind, record.Host, want)
		if reports, ok := kind.(Reports); ok {
			reports.ReflectStatus(mapping, host, tenant)
		}
		if yields, ok := kind.(Yields); ok {
			yields.Yield(want, []string{"spec.ports[0].nodePort"})
		}
		require.Equal(t, before, [2]*unstructured.Unstructured{tenant, host}, "nobody's object is changed in place")
	})
}

// breakSomewhere puts any value in the place of one that is somewhere in the content, but for the object's metadata.
func breakSomewhere(t *rapid.T, content Content) {
	keys := slices.DeleteFunc(slices.Sorted(maps.Keys(content)), func(key string) bool {
		return key == "metadata" || key == "apiVersion" || key == "kind"
	})
	if len(keys) == 0 {
		return
	}
	key := rapid.SampledFrom(keys).Draw(t, "key")
	deeper := rapid.IntRange(0, 3).Draw(t, "deeper") > 0
	switch value := content[key].(type) {
	case Content:
		if deeper {
			breakSomewhere(t, value)
			return
		}
	case []any:
		if deeper && len(value) > 0 {
			at := rapid.IntRange(0, len(value)-1).Draw(t, "at")
			if entry, ok := value[at].(Content); ok {
				breakSomewhere(t, entry)
				return
			}
			value[at] = drawJSON(t, 2)
			return
		}
	}
	content[key] = drawJSON(t, 2)
}

// entryOf is an entry of managedFields.
func entryOf(manager, subresource, fields string) metav1.ManagedFieldsEntry {
	raw := &metav1.FieldsV1{}
	if err := raw.UnmarshalJSON([]byte(fields)); err != nil {
		panic(err)
	}
	return metav1.ManagedFieldsEntry{
		Manager: manager, Operation: metav1.ManagedFieldsOperationUpdate, APIVersion: "v1", FieldsType: "FieldsV1", FieldsV1: raw, Subresource: subresource,
	}
}

func TestAnAutoscalerIsRefused(t *testing.T) {
	kind := kindOf(object("autoscaling/v2", "HorizontalPodAutoscaler", nil))
	require.Contains(t, kind.(Refuses).Refused(), "take the kind out of the policy")
}
