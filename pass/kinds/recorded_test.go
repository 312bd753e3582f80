package kinds

import (
	"encoding/json"
	"maps"
	"os"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"
	"sigs.k8s.io/structured-merge-diff/v6/value"

	"github.com/syncpass/syncpass/record"
)

// recordedPair is a tenant object and its mirror as two kube-apiservers returned them, defaulted, allocated and admitted.
// TestEveryBuiltInKindCrossesAndComesBack in e2e records and checks them.
type recordedPair struct {
	Tenant, Host *unstructured.Unstructured
}

// recordedMapping is the mapping that the mirrors were made by.
func recordedMapping() Mapping {
	m := mapping
	m.Workloads.ServiceAccount = "default"
	return m
}

func recordedPairs(t *testing.T) map[string]recordedPair {
	t.Helper()
	text, err := os.ReadFile("testdata/recorded.json")
	require.NoError(t, err)
	pairs := map[string]recordedPair{}
	require.NoError(t, json.Unmarshal(text, &pairs))
	return pairs
}

func TestEveryKindWithRulesIsRecorded(t *testing.T) {
	recorded := map[schema.GroupKind]bool{}
	for _, pair := range recordedPairs(t) {
		recorded[pair.Tenant.GroupVersionKind().GroupKind()] = true
	}
	for _, kind := range BuiltIn() {
		_, refused := For(kind).(Refuses)
		require.NotEqual(t, refused, recorded[kind], "%s: a kind that crosses has rows in e2e/testdata/kinds", kind)
	}
}

// A kind that asks who set a field of a tenant object must say so, since a snapshot does not have it otherwise.
func TestKindsThatDoNotAskForWritersDoWithoutThem(t *testing.T) {
	mapping := recordedMapping()
	for name, pair := range recordedPairs(t) {
		t.Run(name, func(t *testing.T) {
			kind := kindOf(pair.Tenant)
			if _, asks := kind.(AsksWriters); asks {
				return
			}
			for field, managers := range map[string][]string{"status": {"another"}, "spec": {"another"}, "both": {FieldManager, "another"}} {
				tenant := pair.Tenant.DeepCopy()
				var entries []metav1.ManagedFieldsEntry
				for _, manager := range managers {
					entries = append(entries, accountOf(t, tenant, manager, field))
				}
				tenant.SetManagedFields(entries)
				bare := pair.Tenant.DeepCopy()
				bare.SetManagedFields(nil)

				for _, host := range []*unstructured.Unstructured{nil, pair.Host} {
					require.Equal(t, mapping.Project(kind, bare, host, KeepForeign), mapping.Project(kind, tenant, host, KeepForeign))
				}
				require.Equal(t, mapping.Reflect(kind, pair.Host, bare), mapping.Reflect(kind, pair.Host, tenant))
				if reports, ok := kind.(Reports); ok {
					host := pair.Host.DeepCopy()
					host.Object["status"] = reportable()
					require.Equal(t, reports.ReflectStatus(mapping, host, bare), reports.ReflectStatus(mapping, host, tenant))
				}
				if partial, ok := kind.(Partial); ok {
					require.Equal(t, partial.Owed(bare, pair.Host), partial.Owed(tenant, pair.Host))
					require.Equal(t, len(partial.Parts(mapping, bare, pair.Host, true)), len(partial.Parts(mapping, tenant, pair.Host, true)))
				}
			}
		})
	}
}

// reportable is a status with what any kind may report.
func reportable() Content {
	return Content{
		"phase": "Other", "conditions": []any{Content{"type": "New", "status": "True"}},
		"loadBalancer": Content{"ingress": []any{Content{"ip": "192.0.2.7"}}},
	}
}

// accountOf is the account of a manager that set all fields of an object, or all below one of them.
func accountOf(t *testing.T, object *unstructured.Unstructured, manager, field string) metav1.ManagedFieldsEntry {
	t.Helper()
	set, content := &fieldpath.Set{}, runtime.DeepCopyJSON(object.Object)
	content["status"] = reportable()
	delete(content, "metadata")
	if field != "both" {
		content = Content{field: content[field]}
	}
	fieldpath.SetFromValue(value.NewValueInterface(content)).Iterate(func(path fieldpath.Path) { set.Insert(path.Copy()) })
	text, err := set.ToJSON()
	require.NoError(t, err)
	return metav1.ManagedFieldsEntry{
		Manager: manager, Operation: metav1.ManagedFieldsOperationUpdate, APIVersion: object.GetAPIVersion(),
		FieldsType: "FieldsV1", FieldsV1: metav1.NewFieldsV1(string(text)),
	}
}

func TestRecordedObjectsCrossAndComeBack(t *testing.T) {
	pairs, mapping := recordedPairs(t), recordedMapping()
	for _, name := range slices.Sorted(maps.Keys(pairs)) {
		t.Run(name, func(t *testing.T) {
			tenant, host := pairs[name].Tenant, pairs[name].Host
			kind := kindOf(tenant)
			id, owned := mapping.Identify(kind, kind.Name(), host)
			require.Equal(t, Ours, owned)
			require.Equal(t, tenant.GetName(), id.Name)

			for _, keep := range []Keep{KeepForeign, KeepNone} {
				want := mapping.Project(kind, tenant, host, keep)
				require.Empty(t, Difference(ContentOf(kind, record.Host, host), ContentOf(kind, record.Host, want)))
				require.Empty(t, kind.Immutable(host.Object, want.Object))
			}
			require.Equal(t, bare(tenant), bare(mapping.Reflect(kind, host, tenant)), "the way back changes nothing")
			if marks, ok := kind.(Marks); ok {
				require.True(t, marks.Marked(mapping, tenant, host))
			}
			if reports, ok := kind.(Reports); ok {
				if status := reports.ReflectStatus(mapping, host, tenant); status != nil {
					require.Equal(t, tenant.Object["status"], any(status), "the status has been reported")
				}
			}
			if partial, ok := kind.(Partial); ok {
				require.Empty(t, partial.Parts(mapping, tenant, host, true), "no part waits for a subresource")
			}
		})
	}
}

// A label that the tenant adds, and one that it takes away again, is all that an update changes of what the host has.
func TestAnUpdateOfARecordedObjectChangesWhatTheTenantChanged(t *testing.T) {
	pairs, mapping := recordedPairs(t), recordedMapping()
	for _, name := range slices.Sorted(maps.Keys(pairs)) {
		t.Run(name, func(t *testing.T) {
			tenant, host := pairs[name].Tenant, pairs[name].Host
			kind := kindOf(tenant)
			setLabel(tenant, "added", "yes")
			want := mapping.Project(kind, tenant, host, KeepForeign)
			require.Equal(t, []Path{{"metadata", "labels", "added"}}, Difference(ContentOf(kind, record.Host, host), ContentOf(kind, record.Host, want)))
			require.Equal(t, host.GetUID(), want.GetUID())
			require.Equal(t, host.GetResourceVersion(), want.GetResourceVersion())
			require.Equal(t, host.GetFinalizers(), want.GetFinalizers())
		})
	}
}
