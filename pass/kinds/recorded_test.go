package kinds

import (
	"encoding/json"
	"maps"
	"os"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

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
