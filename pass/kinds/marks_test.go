package kinds

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
)

var (
	isTrue  = true
	isFalse = false
	mapping = Mapping{
		Tenant: "dev", HostNamespace: "team-dev",
		Owner: metav1.OwnerReference{
			APIVersion: "tenantplane.io/v1alpha1", Kind: "TenantCluster", Name: "dev", UID: "owner", Controller: &isTrue, BlockOwnerDeletion: &isFalse,
		},
	}
)

// object is a tenant object default/app.
func object(apiVersion, kind string, content Content) *unstructured.Unstructured {
	o := &unstructured.Unstructured{Object: Content{}}
	for field, value := range content {
		o.Object[field] = value
	}
	o.SetAPIVersion(apiVersion)
	o.SetKind(kind)
	o.SetNamespace("default")
	o.SetName("app")
	o.SetUID("t-app")
	o.SetResourceVersion("7")
	return o
}

func configMap1(data Content) *unstructured.Unstructured {
	return object("v1", "ConfigMap", Content{"data": data})
}

// stored is a mirror as the host API server keeps it, all of it written by us.
func stored(mirror *unstructured.Unstructured) *unstructured.Unstructured {
	o := mirror.DeepCopy()
	o.SetUID("h-app")
	o.SetResourceVersion("21")
	return o
}

func TestOwnershipIsDecidedByEveryMarkTogether(t *testing.T) {
	for _, test := range []struct {
		name   string
		change func(o *unstructured.Unstructured)
		want   Owned
	}{
		{"a mirror as we made it", func(*unstructured.Unstructured) {}, Ours},
		{"a mirror with more labels and annotations", func(o *unstructured.Unstructured) { setLabel(o, "app", "web"); setAnnotation(o, "note", "x") }, Ours},
		{"no marks at all", func(o *unstructured.Unstructured) { o.SetLabels(nil); o.SetAnnotations(nil) }, Foreign},
		{"no managed-by", func(o *unstructured.Unstructured) { setLabel(o, LabelManagedBy, "") }, Foreign},
		{"managed by Helm", func(o *unstructured.Unstructured) { setLabel(o, LabelManagedBy, "Helm") }, Foreign},
		{"the annotations alone", func(o *unstructured.Unstructured) { o.SetLabels(nil) }, Foreign},
		{"the labels alone", func(o *unstructured.Unstructured) { o.SetAnnotations(nil) }, Other},
		{"no tenant", func(o *unstructured.Unstructured) { setLabel(o, LabelTenant, "") }, Other},
		{"another tenant", func(o *unstructured.Unstructured) { setLabel(o, LabelTenant, "prod") }, Other},
		{"a tenant whose name continues ours", func(o *unstructured.Unstructured) { setLabel(o, LabelTenant, "dev-2") }, Other},
		{"a tenant whose name is the beginning of ours", func(o *unstructured.Unstructured) { setLabel(o, LabelTenant, "de") }, Other},
		{"no kind", func(o *unstructured.Unstructured) { setLabel(o, LabelKind, "") }, Other},
		{"another kind", func(o *unstructured.Unstructured) { setLabel(o, LabelKind, "secret") }, Other},
		{"the kind as it is written in the API", func(o *unstructured.Unstructured) { setLabel(o, LabelKind, "ConfigMap") }, Other},
		{"no virtual namespace in the labels", func(o *unstructured.Unstructured) { setLabel(o, LabelVirtualNamespace, "") }, Other},
		{"another virtual namespace in the labels", func(o *unstructured.Unstructured) { setLabel(o, LabelVirtualNamespace, "other") }, Other},
		{"no virtual namespace in the annotations", func(o *unstructured.Unstructured) { setAnnotation(o, AnnotationVirtualNamespace, "") }, Other},
		{"another virtual namespace in the annotations", func(o *unstructured.Unstructured) { setAnnotation(o, AnnotationVirtualNamespace, "other") }, Other},
		{"no virtual name", func(o *unstructured.Unstructured) { setAnnotation(o, AnnotationVirtualName, "") }, Other},
		{"another virtual name", func(o *unstructured.Unstructured) { setAnnotation(o, AnnotationVirtualName, "victim") }, Other},
		{"a consistent mark of another object, in our place", func(o *unstructured.Unstructured) {
			setAnnotation(o, AnnotationVirtualName, "victim")
			setAnnotation(o, AnnotationVirtualNamespace, "other")
			setLabel(o, LabelVirtualNamespace, "other")
		}, Other},
		{"a copy under another name", func(o *unstructured.Unstructured) { o.SetName("copy") }, Other},
		{"a copy in another namespace", func(o *unstructured.Unstructured) { o.SetNamespace("team-prod") }, Other},
		{"another UID, which a recreated tenant object has", func(o *unstructured.Unstructured) { setAnnotation(o, AnnotationVirtualUID, "forged") }, Ours},
	} {
		t.Run(test.name, func(t *testing.T) {
			mirror := stored(mapping.Project(configMaps, configMap1(Content{"a": "1"}), nil, KeepNone))
			test.change(mirror)
			id, owned := mapping.Identify(configMaps, "ConfigMap", mirror)
			require.Equal(t, test.want, owned)
			if owned == Ours {
				require.Equal(t, types.NamespacedName{Namespace: "default", Name: "app"}, id)
			} else {
				require.Empty(t, id)
			}
		})
	}
}

// Marks that a label cannot hold are hashed, and still recognised; names that go into annotations are kept verbatim.
func TestOwnershipOfLongAndOddNames(t *testing.T) {
	m := mapping
	m.Tenant = strings.Repeat("tenant.", 12) + "end"
	tenant := configMap1(nil)
	tenant.SetName(strings.Repeat("name.", 40) + "end")
	mirror := stored(m.Project(configMaps, tenant, nil, KeepNone))
	id, owned := m.Identify(configMaps, "ConfigMap", mirror)
	require.Equal(t, Ours, owned)
	require.Equal(t, tenant.GetName(), id.Name)
	require.LessOrEqual(t, len(mirror.GetLabels()[LabelTenant]), 63)
	require.Equal(t, tenant.GetName(), mirror.GetAnnotations()[AnnotationVirtualName])
}

// Kinds of the same lower-case name and the same object name are told apart by the kind mark.
func TestAMirrorIsOfOneKindOnly(t *testing.T) {
	mirror := stored(mapping.Project(configMaps, configMap1(nil), nil, KeepNone))
	_, owned := mapping.Identify(secrets, "Secret", mirror)
	require.Equal(t, Other, owned)
}

func TestTheMarksOfAMirror(t *testing.T) {
	mirror := mapping.Project(configMaps, configMap1(nil), nil, KeepNone)
	require.Equal(t, map[string]string{
		"app.kubernetes.io/managed-by":     "tenantplane",
		"tenantplane.io/tenant":            "dev",
		"tenantplane.io/virtual-namespace": "default",
		"tenantplane.io/kind":              "configmap",
	}, mirror.GetLabels())
	require.Equal(t, map[string]string{
		"tenantplane.io/virtual-namespace": "default",
		"tenantplane.io/virtual-name":      "app",
		"tenantplane.io/virtual-uid":       "t-app",
	}, mirror.GetAnnotations())
	require.Equal(t, []metav1.OwnerReference{mapping.Owner}, mirror.GetOwnerReferences())
}

func TestAMirrorHasOneReferenceToItsTenantCluster(t *testing.T) {
	tenant := configMap1(nil)
	mirror := stored(mapping.Project(configMaps, tenant, nil, KeepNone))
	require.True(t, mapping.Stamped(mirror, tenant))
	old := mapping.Owner
	old.UID = "a-tenant-cluster-of-old"
	other := metav1.OwnerReference{APIVersion: "v1", Kind: "ConfigMap", Name: "parent", UID: "parent"}
	mirror.SetOwnerReferences([]metav1.OwnerReference{old, other})
	require.False(t, mapping.Stamped(mirror, tenant))
	again := mapping.Restamp(configMaps, mirror, tenant)
	require.Equal(t, []metav1.OwnerReference{other, mapping.Owner}, again.GetOwnerReferences())
	require.True(t, mapping.Stamped(again, tenant))
	require.Equal(t, mirror.Object["data"], again.Object["data"])
	require.Equal(t, mirror.GetResourceVersion(), again.GetResourceVersion())

	again.SetAnnotations(map[string]string{AnnotationVirtualUID: "of an earlier object"})
	require.False(t, mapping.Stamped(again, tenant))
}

func TestWhatEveryClusterMakesForItselfDoesNotCross(t *testing.T) {
	for _, test := range []struct {
		kind            schema.GroupKind
		namespace, name string
		typeOf          string
		crosses         bool
	}{
		{schema.GroupKind{Kind: "ConfigMap"}, "default", "app", "", true},
		{schema.GroupKind{Kind: "ConfigMap"}, "default", "kube-root-ca.crt", "", false},
		{schema.GroupKind{Kind: "ConfigMap"}, "kube-system", "app", "", false},
		{schema.GroupKind{Kind: "ConfigMap"}, "kube-public", "app", "", false},
		{schema.GroupKind{Kind: "ConfigMap"}, "kube-node-lease", "app", "", false},
		{schema.GroupKind{Kind: "ConfigMap"}, "kube-systems", "app", "", true},
		{schema.GroupKind{Kind: "Secret"}, "default", "app", "Opaque", true},
		{schema.GroupKind{Kind: "Secret"}, "default", "app", "kubernetes.io/tls", true},
		{schema.GroupKind{Kind: "Secret"}, "default", "app", "kubernetes.io/service-account-token", false},
		{schema.GroupKind{Kind: "Secret"}, "default", "app", "bootstrap.kubernetes.io/token", false},
		{schema.GroupKind{Kind: "Secret"}, "default", "app", "helm.sh/release.v1", false},
		{schema.GroupKind{Kind: "Secret"}, "kube-system", "app", "Opaque", false},
		{schema.GroupKind{Kind: "Service"}, "default", "kubernetes", "", false},
		{schema.GroupKind{Kind: "Service"}, "other", "kubernetes", "", true},
		{schema.GroupKind{Kind: "Service"}, "kube-system", "kube-dns", "", false},
		{schema.GroupKind{Kind: "Endpoints"}, "default", "kubernetes", "", false},
		{schema.GroupKind{Group: "discovery.k8s.io", Kind: "EndpointSlice"}, "default", "kubernetes", "", false},
		{schema.GroupKind{Kind: "ServiceAccount"}, "default", "default", "", false},
		{schema.GroupKind{Kind: "ServiceAccount"}, "other", "default", "", false},
		{schema.GroupKind{Kind: "ServiceAccount"}, "other", "app", "", true},
		{schema.GroupKind{Group: "example.com", Kind: "Secret"}, "default", "default", "helm.sh/release.v1", true},
		{schema.GroupKind{Group: "example.com", Kind: "Widget"}, "kube-system", "app", "", false},
	} {
		o := &unstructured.Unstructured{Object: Content{}}
		o.SetNamespace(test.namespace)
		o.SetName(test.name)
		if test.typeOf != "" {
			o.Object["type"] = test.typeOf
		}
		require.Equal(t, test.crosses, Crosses(For(test.kind), o), "%+v", test)
	}
}

func setLabel(o *unstructured.Unstructured, key, value string) {
	o.SetLabels(set(o.GetLabels(), key, value))
}

func setAnnotation(o *unstructured.Unstructured, key, value string) {
	o.SetAnnotations(set(o.GetAnnotations(), key, value))
}

// set sets a key, or removes it where the value is empty.
func set(m map[string]string, key, value string) map[string]string {
	if m == nil {
		m = map[string]string{}
	}
	m[key] = value
	if value == "" {
		delete(m, key)
	}
	return m
}
