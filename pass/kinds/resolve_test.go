package kinds

import (
	"testing"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/syncpass/syncpass/record"
)

func TestAWordOnAMirror(t *testing.T) {
	for _, test := range []struct {
		name, value, unknown string
		keep                 record.Side
	}{
		{"the tenant's content", "tenant", "", record.Tenant},
		{"the host's content", "host", "", record.Host},
		{"neither", "both", "both", ""},
		{"other letters", "Tenant", "Tenant", ""},
		{"none", "", "", ""},
	} {
		t.Run(test.name, func(t *testing.T) {
			mirror := object("v1", "ConfigMap", Content{})
			mirror.SetAnnotations(map[string]string{AnnotationResolve: test.value, "kept": "yes"})
			keep, unknown := Word(mirror)
			require.Equal(t, test.keep, keep)
			require.Equal(t, test.unknown, unknown)

			without := WithoutWord(mirror)
			require.Equal(t, test.value, mirror.GetAnnotations()[AnnotationResolve], "the original stays as it is")
			_, left := without.GetAnnotations()[AnnotationResolve]
			require.Equal(t, test.keep == "", left, "what nobody understands stays to be seen")
			require.Equal(t, "yes", without.GetAnnotations()["kept"])
		})
	}
}

func TestWhoPutAWordOnAMirror(t *testing.T) {
	mirror := object("v1", "ConfigMap", Content{})
	require.Empty(t, WordBy(mirror))
	fields := func(manager, raw string) metav1.ManagedFieldsEntry {
		f := &metav1.FieldsV1{}
		require.NoError(t, f.UnmarshalJSON([]byte(raw)))
		return metav1.ManagedFieldsEntry{Manager: manager, FieldsV1: f}
	}
	mirror.SetManagedFields([]metav1.ManagedFieldsEntry{
		{Manager: "nothing"}, fields("syncpass", `{"f:metadata":{"f:annotations":{"f:other":{}}}}`),
		fields("kubectl-annotate", `{"f:metadata":{"f:annotations":{"f:tenantplane.io/resolve":{}}}}`),
	})
	require.Equal(t, "kubectl-annotate", WordBy(mirror))
}

// A word is the host's to say: what a tenant writes under the same key stays with the tenant, and no write of a pass leaves
// one on a mirror.
func TestAWordCrossesNeitherWay(t *testing.T) {
	kind := configMaps
	tenant := object("v1", "ConfigMap", Content{"data": Content{"a": "1"}})
	plain := mapping.Project(kind, tenant, nil, KeepNone)
	tenant.SetAnnotations(map[string]string{AnnotationResolve: "tenant"})
	require.Equal(t, plain.Object, mapping.Project(kind, tenant, nil, KeepNone).Object)
	require.Equal(t, ContentOf(kind, record.Tenant, object("v1", "ConfigMap", Content{"data": Content{"a": "1"}})), ContentOf(kind, record.Tenant, tenant))

	mirror := plain.DeepCopy()
	annotations := mirror.GetAnnotations()
	annotations[AnnotationResolve] = "host"
	mirror.SetAnnotations(annotations)
	require.Equal(t, ContentOf(kind, record.Host, plain), ContentOf(kind, record.Host, mirror), "it is no content")
	require.False(t, mapping.Stamped(mirror, tenant), "a pass has to take it off")
	for _, keep := range []Keep{KeepNone, KeepForeign} {
		require.NotContains(t, mapping.Project(kind, tenant, mirror, keep).GetAnnotations(), AnnotationResolve)
	}
	require.NotContains(t, mapping.Restamp(kind, mirror, tenant).GetAnnotations(), AnnotationResolve)
	require.Equal(t, "tenant", mapping.Reflect(kind, mirror, tenant).GetAnnotations()[AnnotationResolve], "the tenant's own stays as it is")
}
