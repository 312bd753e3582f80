package snapshot

import (
	"testing"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
)

// FuzzPage: whatever a server answers, it is a list or none; and of a list each object is known by a name of its own, in
// the namespace that was asked for, and has all that a plan relies on.
func FuzzPage(f *testing.F) {
	f.Add([]byte(`{"kind":"ConfigMapList","apiVersion":"v1","metadata":{"resourceVersion":"9"},"items":[{"metadata":{"namespace":"team-dev","name":"a","uid":"u","resourceVersion":"5"},"data":{"a":"1"}}]}`))
	f.Add([]byte(`{"kind":"Status","apiVersion":"v1","status":"Success"}`))
	f.Fuzz(func(t *testing.T, body []byte) {
		kind := corev1.SchemeGroupVersion.WithKind("ConfigMap")
		page, err := decodePage(body, kind)
		if err != nil {
			require.ErrorIs(t, err, errNotAList)
			return
		}
		found, asked := newList(), collection{resource: corev1.SchemeGroupVersion.WithResource("configmaps"), kind: kind.Kind, namespace: "team-dev"}
		for _, raw := range *page.Items {
			if err := found.add(raw, asked); err != nil {
				require.ErrorIs(t, err, errNotAList)
				return
			}
		}
		names := map[string]bool{}
		for _, object := range found.objects {
			require.NotEmpty(t, object.GetName())
			require.NotEmpty(t, object.GetUID())
			require.NotEmpty(t, object.GetResourceVersion())
			require.Equal(t, "team-dev", object.GetNamespace())
			require.Equal(t, kind, object.GroupVersionKind())
			require.False(t, names[object.GetName()], "two objects named %q", object.GetName())
			names[object.GetName()] = true
			_ = object.DeepCopy()
		}
	})
}

// FuzzFile: whatever a file holds, it is refused by its name, or each object in it is known by kind and name, once.
func FuzzFile(f *testing.F) {
	f.Add([]byte("{apiVersion: v1, kind: ConfigMap, metadata: {name: a}}\n---\n{apiVersion: v1, kind: List, items: []}"))
	f.Add([]byte("{apiVersion: v1, kind: List, items: [{metadata: {name: x}}, 7]}"))
	f.Add([]byte("...\n---\n--- x\n..."))
	f.Fuzz(func(t *testing.T, data []byte) {
		files := &Files{}
		for _, fault := range append(files.read("a.yaml", data), files.place()...) {
			require.ErrorContains(t, fault, "a.yaml: document ")
		}
		for _, object := range files.All() {
			require.NotEmpty(t, object.GetName())
			require.NotEmpty(t, object.GetKind())
			require.Contains(t, object.Where, "a.yaml: document ")
			_ = object.DeepCopy()
		}
	})
}
