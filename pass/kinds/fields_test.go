package kinds

import (
	"testing"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

func TestPathsAreWrittenTheWayPeopleReadThem(t *testing.T) {
	for _, test := range []struct {
		path Path
		want string
	}{
		{nil, ""},
		{Path{"data"}, "data"},
		{Path{"data", "a"}, "data.a"},
		{Path{"spec", "ports"}, "spec.ports"},
		{Path{"data", "app.properties"}, `data["app.properties"]`},
		{Path{"data", "app.properties", "a"}, `data["app.properties"].a`},
		{Path{"metadata", "labels", "app.kubernetes.io/name"}, `metadata.labels["app.kubernetes.io/name"]`},
		{Path{"data", "a-b_C9"}, "data.a-b_C9"},
		{Path{"data", ""}, `data[""]`},
		{Path{"data", `a"b`}, `data["a\"b"]`},
		{Path{"data", "a\nb"}, `data["a\nb"]`},
		{Path{"data", "\x1b[31m"}, `data["\x1b[31m"]`},
		{Path{"a.b"}, `["a.b"]`},
	} {
		require.Equal(t, test.want, test.path.String())
	}
}

func TestDifferences(t *testing.T) {
	for _, test := range []struct {
		name     string
		from, to Content
		want     []string
	}{
		{"nothing", Content{"data": Content{"a": "1"}}, Content{"data": Content{"a": "1"}}, nil},
		{"a value", Content{"data": Content{"a": "1"}}, Content{"data": Content{"a": "2"}}, []string{"data.a"}},
		{"a key more", Content{"data": Content{"a": "1"}}, Content{"data": Content{"a": "1", "b": "2"}}, []string{"data.b"}},
		{"a key less", Content{"data": Content{"a": "1", "b": "2"}}, Content{"data": Content{"a": "1"}}, []string{"data.b"}},
		{"a map that is new is named key by key", Content{}, Content{"data": Content{"b": "1", "a": "1"}}, []string{"data.a", "data.b"}},
		{"a map that is gone is named key by key", Content{"data": Content{"b": "1", "a": "1"}}, Content{}, []string{"data.a", "data.b"}},
		{"a map in a map that is new", Content{}, Content{"spec": Content{"a": Content{"b": "1"}}}, []string{"spec.a.b"}},
		{"an empty map that is new", Content{}, Content{"spec": Content{}}, []string{"spec"}},
		{"a list is one value", Content{"l": []any{"a", "b"}}, Content{"l": []any{"b", "a"}}, []string{"l"}},
		{"a map that becomes a value", Content{"a": Content{"b": "1"}}, Content{"a": "1"}, []string{"a"}},
		{"a value that becomes a map", Content{"a": "1"}, Content{"a": Content{"b": "1"}}, []string{"a"}},
		{"false is not absent", Content{"a": false}, Content{}, []string{"a"}},
		{"a number is not its text", Content{"a": int64(1)}, Content{"a": "1"}, []string{"a"}},
		{"several, sorted by key and not by text", Content{"b": "1", "a": Content{"x": "1"}}, Content{"b": "2", "a": Content{"x": "2", "a.b": "3"}}, []string{`a["a.b"]`, "a.x", "b"}},
	} {
		t.Run(test.name, func(t *testing.T) {
			var got []string
			for _, path := range Difference(test.from, test.to) {
				got = append(got, path.String())
			}
			require.Equal(t, test.want, got)
			require.Equal(t, len(test.want) == 0, Equal(test.from, test.to))
		})
	}
}

func TestAPathLeadsToItsValue(t *testing.T) {
	content := Content{"data": Content{"a.b": "1"}, "list": []any{"x"}}
	require.Equal(t, "1", Path{"data", "a.b"}.At(content))
	require.Nil(t, Path{"data", "c"}.At(content))
	require.Nil(t, Path{"list", "x"}.At(content))
	require.Nil(t, Path{"nowhere", "a", "b"}.At(content))
	require.Equal(t, any(content), Path{}.At(content))
}

// The managedFields of a ConfigMap and a Service as kube-apiserver 1.37 writes them, after a create by us, an edit of
// data.b and of a label by kubectl, and a controller's status.
const (
	configMapOfSyncpass = `{"f:data":{".":{},"f:a":{},"f:app.properties":{}},"f:metadata":{"f:annotations":{".":{},"f:tenantplane.io/virtual-uid":{}},"f:labels":{".":{},"f:app":{},"f:app.kubernetes.io/managed-by":{}},"f:ownerReferences":{".":{},"k:{\"uid\":\"owner\"}":{}}}}`
	configMapOfKubectl  = `{"f:data":{"f:b":{}},"f:metadata":{"f:labels":{"f:team":{}}}}`
	serviceOfSyncpass   = `{"f:spec":{"f:internalTrafficPolicy":{},"f:ports":{".":{},"k:{\"port\":80,\"protocol\":\"TCP\"}":{".":{},"f:port":{},"f:protocol":{},"f:targetPort":{}}},"f:selector":{},"f:sessionAffinity":{},"f:type":{}}}`
)

func TestManagedFieldsTellWhoWroteAField(t *testing.T) {
	entry := func(manager, subresource, fields string) metav1.ManagedFieldsEntry {
		raw := &metav1.FieldsV1{}
		require.NoError(t, raw.UnmarshalJSON([]byte(fields)))
		return metav1.ManagedFieldsEntry{
			Manager: manager, Operation: metav1.ManagedFieldsOperationUpdate, APIVersion: "v1", FieldsType: "FieldsV1", FieldsV1: raw, Subresource: subresource,
		}
	}
	two := []metav1.ManagedFieldsEntry{entry(FieldManager, "", configMapOfSyncpass), entry("kubectl-edit", "", configMapOfKubectl)}
	service := []metav1.ManagedFieldsEntry{entry(FieldManager, "", serviceOfSyncpass)}
	for _, test := range []struct {
		name    string
		entries []metav1.ManagedFieldsEntry
		path    []string
		ours    bool
	}{
		{"a field that we set", two, []string{"data", "a"}, true},
		{"a field with dots that we set", two, []string{"data", "app.properties"}, true},
		{"a field that kubectl set", two, []string{"data", "b"}, false},
		{"a field that nobody set", two, []string{"data", "c"}, false},
		{"a map below which something is ours", two, []string{"data"}, true},
		{"a label of ours", two, []string{"metadata", "labels", "app"}, true},
		{"a label of somebody else", two, []string{"metadata", "labels", "team"}, false},
		{"nothing of the spec", two, []string{"spec"}, false},
		{"no path", two, nil, false},
		{"no managedFields", nil, []string{"data", "a"}, false},
		{"a list with an element of ours", service, []string{"spec", "ports"}, true},
		{"a key within a field that is a whole", service, []string{"spec", "selector", "app"}, true},
		{"a key within a whole that somebody else wrote", []metav1.ManagedFieldsEntry{
			entry(FieldManager, "", `{"f:spec":{"f:type":{}}}`), entry("kubectl-edit", "", `{"f:spec":{"f:selector":{}}}`),
		}, []string{"spec", "selector", "app"}, false},
		{"a key that somebody else set in a map that we wrote empty", []metav1.ManagedFieldsEntry{
			entry(FieldManager, "", `{"f:data":{}}`), entry("kubectl-edit", "", `{"f:data":{"f:a":{}}}`),
		}, []string{"data", "a"}, false},
		{"what we own of a subresource", []metav1.ManagedFieldsEntry{entry(FieldManager, "status", `{"f:data":{"f:a":{}}}`)}, []string{"data", "a"}, false},
		{"a manager whose name begins like ours", []metav1.ManagedFieldsEntry{entry("syncpass-2", "", `{"f:data":{"f:a":{}}}`)}, []string{"data", "a"}, false},
		{"managedFields that cannot be read", []metav1.ManagedFieldsEntry{entry(FieldManager, "", `{"x":1}`), entry(FieldManager, "", `{"f:data":{"f:a":{}}}`)}, []string{"data", "a"}, true},
		{"an entry without fields", []metav1.ManagedFieldsEntry{{Manager: FieldManager}}, []string{"data", "a"}, false},
	} {
		t.Run(test.name, func(t *testing.T) {
			o := &unstructured.Unstructured{Object: Content{"metadata": Content{}}}
			o.SetManagedFields(test.entries)
			require.Equal(t, test.ours, ManagedByUs(o, test.path...))
		})
	}
}

func TestWhatTheAPIDoesNotLetChange(t *testing.T) {
	sealed := func(data Content, seal any) Content { return Content{"data": data, "immutable": seal} }
	one, two := Content{"a": "1"}, Content{"a": "2"}
	spec := func(fields Content) Content { return Content{"spec": fields} }
	for _, test := range []struct {
		name          string
		kind          Kind
		content, want Content
		immutable     bool
	}{
		{"an open ConfigMap changes", configMaps, sealed(one, nil), sealed(two, nil), false},
		{"an open ConfigMap is sealed", configMaps, sealed(one, nil), sealed(one, true), false},
		{"a sealed ConfigMap does not change", configMaps, sealed(one, true), sealed(two, true), true},
		{"a sealed ConfigMap is not opened", configMaps, sealed(one, true), sealed(one, nil), true},
		{"a sealed ConfigMap is not opened by false", configMaps, sealed(one, true), sealed(one, false), true},
		{"a sealed ConfigMap with the same data stays", configMaps, sealed(one, true), sealed(one, true), false},
		{"a sealed ConfigMap's binaryData does not change", configMaps, Content{"immutable": true, "binaryData": one}, Content{"immutable": true, "binaryData": two}, true},
		{"immutable: false is open", configMaps, sealed(one, false), sealed(two, nil), false},
		{"a Secret's data changes", secrets, Content{"type": "Opaque", "data": one}, Content{"type": "Opaque", "data": two}, false},
		{"a Secret's type does not", secrets, Content{"type": "Opaque"}, Content{"type": "kubernetes.io/tls"}, true},
		{"a sealed Secret does not change", secrets, Content{"type": "Opaque", "immutable": true, "data": one}, Content{"type": "Opaque", "immutable": true, "data": two}, true},
		{"a Secret's type that is no text", secrets, Content{"type": Content{}}, Content{"type": Content{}}, false},
		{"a Service's type changes", services, spec(Content{"type": "ClusterIP", "clusterIP": "10.0.0.1"}), spec(Content{"type": "NodePort", "clusterIP": "10.0.0.1"}), false},
		{"a Service does not become headless", services, spec(Content{"clusterIP": "10.0.0.1"}), spec(Content{"clusterIP": "None"}), true},
		{"a headless Service does not get an address", services, spec(Content{"clusterIP": "None"}), spec(Content{}), true},
		{"a headless Service stays headless", services, spec(Content{"clusterIP": "None"}), spec(Content{"clusterIP": "None"}), false},
		{"a headless Service becomes an ExternalName", services, spec(Content{"clusterIP": "None"}), spec(Content{"type": "ExternalName"}), false},
		{"an ExternalName becomes headless", services, spec(Content{"type": "ExternalName"}), spec(Content{"clusterIP": "None"}), false},
		{"a Service without a spec", services, Content{}, Content{}, false},
		{"anything of a kind that we do not know", widgets, spec(one), spec(two), false},
	} {
		t.Run(test.name, func(t *testing.T) {
			require.Equal(t, test.immutable, test.kind.Immutable(test.content, test.want) != "", test.kind.Immutable(test.content, test.want))
		})
	}
}
