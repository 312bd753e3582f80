package plan_test

import (
	"testing"

	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/syncpass/syncpass/pass/kinds"
)

// A Service whose marks somebody took out of its selector selects other tenants' Pods; nothing of that can be carried to
// the tenant, so it is put right, whoever is the authority for the rest.
func TestTheMarksOfASelectorAreNeverLeftMissing(t *testing.T) {
	kind := kinds.For(schema.GroupKind{Kind: "Service"})
	tenant := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "v1", "kind": "Service",
		"metadata": map[string]any{"namespace": "default", "name": "web", "uid": "t", "resourceVersion": "1"},
		"spec":     map[string]any{"selector": map[string]any{"app": "web"}, "ports": []any{map[string]any{"port": int64(80)}}},
	}}
	mirror := mapping.Project(kind, tenant, nil, kinds.KeepNone)
	marks, ok := kind.(kinds.Marks)
	require.True(t, ok)
	require.True(t, marks.Marked(mapping, tenant, mirror))

	selector, _, _ := unstructured.NestedFieldNoCopy(mirror.Object, "spec", "selector")
	delete(selector.(map[string]any), kinds.LabelTenant)
	require.False(t, marks.Marked(mapping, tenant, mirror))
	require.True(t, marks.Marked(mapping, tenant, mapping.Restamp(kind, mirror, tenant)))
	require.False(t, marks.Marked(mapping, tenant, mirror), "Restamp changes a copy")
}
