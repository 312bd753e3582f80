package kinds

import (
	"testing"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/syncpass/syncpass/record"
)

// foreignMetadata is what no object takes with it to the other side.
func foreignMetadata(o *unstructured.Unstructured) *unstructured.Unstructured {
	o.SetOwnerReferences([]metav1.OwnerReference{{APIVersion: "v1", Kind: "ConfigMap", Name: "parent", UID: "parent"}})
	o.SetFinalizers([]string{"example.com/never"})
	o.SetGenerateName("app-")
	o.SetGeneration(4)
	o.SetSelfLink("/api")
	o.SetCreationTimestamp(metav1.Now())
	stamp := metav1.Now()
	o.SetDeletionTimestamp(&stamp)
	o.SetManagedFields([]metav1.ManagedFieldsEntry{{Manager: "kubectl"}})
	o.Object["status"] = Content{"phase": "Running"}
	return o
}

func TestACreateCarriesContentAndMarksAndNothingElse(t *testing.T) {
	tenant := foreignMetadata(configMap1(Content{"a": "1"}))
	setLabel(tenant, "app", "web")
	setLabel(tenant, LabelTenant, "forged")
	setLabel(tenant, LabelManagedBy, "Helm")
	setAnnotation(tenant, "note", "kept")
	setAnnotation(tenant, AnnotationVirtualName, "forged")
	setAnnotation(tenant, "kubectl.kubernetes.io/last-applied-configuration", "{}")
	mirror := mapping.Project(configMaps, tenant, nil, KeepForeign)
	require.Equal(t, map[string]any{
		"apiVersion": "v1", "kind": "ConfigMap", "data": Content{"a": "1"},
		"metadata": Content{
			"name": "app-x-default-x-dev", "namespace": "team-dev",
			"labels": Content{
				"app": "web", "alias.tenantplane.io/tenant": "forged", "app-kubernetes-io.tenantplane.io/managed-by": "Helm",
				LabelManagedBy: "tenantplane", LabelTenant: "dev", LabelVirtualNamespace: "default", LabelKind: "configmap",
			},
			"annotations": Content{
				"note": "kept", AnnotationVirtualName: "app", AnnotationVirtualNamespace: "default", AnnotationVirtualUID: "t-app",
			},
			"ownerReferences": []any{Content{
				"apiVersion": "tenantplane.io/v1alpha1", "kind": "TenantCluster", "name": "dev", "uid": "owner",
				"controller": true, "blockOwnerDeletion": false,
			}},
		},
	}, mirror.Object)
}

func TestAnUpdateKeepsWhatTheHostOwnsAndRemovesWhatTheTenantRemoved(t *testing.T) {
	tenant := configMap1(Content{"a": "1", "b": "1"})
	setLabel(tenant, "removed", "later")
	setAnnotation(tenant, "removed", "later")
	host := stored(mapping.Project(configMaps, tenant, nil, KeepNone))
	fields := &metav1.FieldsV1{}
	require.NoError(t, fields.UnmarshalJSON([]byte(`{"f:metadata":{"f:labels":{"f:removed":{}},"f:annotations":{"f:removed":{}}}}`)))
	host.SetManagedFields([]metav1.ManagedFieldsEntry{{Manager: FieldManager, FieldsType: "FieldsV1", FieldsV1: fields}})
	host.SetFinalizers([]string{"host.example.com/keep"})
	other := metav1.OwnerReference{APIVersion: "v1", Kind: "ConfigMap", Name: "parent", UID: "parent"}
	host.SetOwnerReferences(append(host.GetOwnerReferences(), other))
	setLabel(host, "host", "only")
	setLabel(host, "tenantplane.io/note", "of an admin")
	setAnnotation(host, "host", "only")
	host.Object["status"] = Content{"phase": "Running"}
	host.Object["hostOnly"] = "content that the tenant does not have"

	changed := configMap1(Content{"a": "2"})
	for _, keep := range []Keep{KeepForeign, KeepNone} {
		mirror := mapping.Project(configMaps, changed, host, keep)
		require.Equal(t, Content{"a": "2"}, mirror.Object["data"])
		require.NotContains(t, mirror.Object, "hostOnly")
		require.Equal(t, Content{"phase": "Running"}, mirror.Object["status"])
		require.Equal(t, host.GetUID(), mirror.GetUID())
		require.Equal(t, host.GetResourceVersion(), mirror.GetResourceVersion())
		require.Equal(t, []string{"host.example.com/keep"}, mirror.GetFinalizers())
		require.ElementsMatch(t, []metav1.OwnerReference{mapping.Owner, other}, mirror.GetOwnerReferences())
		require.Empty(t, mirror.GetManagedFields())
		require.NotContains(t, mirror.GetLabels(), "removed")
		require.NotContains(t, mirror.GetAnnotations(), "removed")
		require.Equal(t, "of an admin", mirror.GetLabels()["tenantplane.io/note"], "reserved labels are no content, and so nobody's to remove")
		require.Equal(t, keep == KeepForeign, mirror.GetLabels()["host"] == "only")
		require.Equal(t, keep == KeepForeign, mirror.GetAnnotations()["host"] == "only")
	}
}

// A label that both we and somebody else set is ours to remove; one whose value somebody else changed is overwritten.
func TestATenantsLabelWinsOverTheHosts(t *testing.T) {
	tenant := configMap1(nil)
	setLabel(tenant, "app", "web")
	host := stored(mapping.Project(configMaps, tenant, nil, KeepNone))
	setLabel(host, "app", "changed on the host")
	require.Equal(t, "web", mapping.Project(configMaps, tenant, host, KeepForeign).GetLabels()["app"])
}

func TestReflectingKeepsWhatTheTenantOwns(t *testing.T) {
	tenant := configMap1(Content{"a": "1", "removed": "on the host"})
	setLabel(tenant, LabelTenant, "the tenant's own")
	setLabel(tenant, LabelManagedBy, "Helm")
	setLabel(tenant, "removed", "on the host")
	setAnnotation(tenant, "kubectl.kubernetes.io/last-applied-configuration", "{}")
	setAnnotation(tenant, "removed", "on the host")
	tenant.SetFinalizers([]string{"tenant.example.com/keep"})
	tenant.SetOwnerReferences([]metav1.OwnerReference{{APIVersion: "v1", Kind: "ConfigMap", Name: "parent", UID: "parent"}})
	tenant.Object["status"] = Content{"phase": "Pending"}

	host := foreignMetadata(stored(mapping.Project(configMaps, tenant, nil, KeepNone)))
	host.Object["data"] = Content{"a": "2"}
	setLabel(host, "removed", "")
	setLabel(host, "new", "on the host")
	setLabel(host, "isolation.tenantplane.io/exempt", "true")
	setAnnotation(host, "removed", "")
	setAnnotation(host, "new", "on the host")
	object := mapping.Reflect(configMaps, host, tenant)

	require.Equal(t, Content{"a": "2"}, object.Object["data"])
	require.Equal(t, Content{"phase": "Pending"}, object.Object["status"])
	require.Equal(t, map[string]string{LabelTenant: "the tenant's own", LabelManagedBy: "Helm", "new": "on the host"}, object.GetLabels())
	require.Equal(t, map[string]string{"kubectl.kubernetes.io/last-applied-configuration": "{}", "new": "on the host"}, object.GetAnnotations())
	require.Equal(t, "default", object.GetNamespace())
	require.Equal(t, "app", object.GetName())
	require.Equal(t, tenant.GetUID(), object.GetUID())
	require.Equal(t, tenant.GetResourceVersion(), object.GetResourceVersion())
	require.Equal(t, tenant.GetFinalizers(), object.GetFinalizers())
	require.Equal(t, tenant.GetOwnerReferences(), object.GetOwnerReferences())
	require.Nil(t, object.GetDeletionTimestamp())
	require.Empty(t, object.GetManagedFields())
}

func TestWhatIsNoContent(t *testing.T) {
	for name, change := range map[string]func(o *unstructured.Unstructured){
		"a status":              func(o *unstructured.Unstructured) { o.Object["status"] = Content{"a": "1"} },
		"a resourceVersion":     func(o *unstructured.Unstructured) { o.SetResourceVersion("99") },
		"a UID":                 func(o *unstructured.Unstructured) { o.SetUID("other") },
		"an owner":              func(o *unstructured.Unstructured) { o.SetOwnerReferences([]metav1.OwnerReference{mapping.Owner}) },
		"a finalizer":           func(o *unstructured.Unstructured) { o.SetFinalizers([]string{"a"}) },
		"managedFields":         func(o *unstructured.Unstructured) { o.SetManagedFields([]metav1.ManagedFieldsEntry{{Manager: "a"}}) },
		"a generation":          func(o *unstructured.Unstructured) { o.SetGeneration(9) },
		"an annotation of ours": func(o *unstructured.Unstructured) { setAnnotation(o, AnnotationVirtualUID, "a") },
		"kubectl's last applied": func(o *unstructured.Unstructured) {
			setAnnotation(o, "kubectl.kubernetes.io/last-applied-configuration", "{}")
		},
		"a Deployment's revision":         func(o *unstructured.Unstructured) { setAnnotation(o, "deployment.kubernetes.io/revision", "3") },
		"an empty map":                    func(o *unstructured.Unstructured) { o.Object["binaryData"] = Content{} },
		"an empty list":                   func(o *unstructured.Unstructured) { o.Object["list"] = []any{} },
		"a null":                          func(o *unstructured.Unstructured) { o.Object["immutable"] = nil },
		"apiVersion (a newer one)":        func(o *unstructured.Unstructured) { o.SetAPIVersion("v2") },
		"labels that are there but empty": func(o *unstructured.Unstructured) { o.SetLabels(map[string]string{}) },
	} {
		t.Run(name, func(t *testing.T) {
			for _, side := range []record.Side{record.Tenant, record.Host} {
				o := configMap1(Content{"a": "1"})
				before := ContentOf(configMaps, side, o)
				change(o)
				require.Equal(t, before, ContentOf(configMaps, side, o))
			}
		})
	}
	host := stored(mapping.Project(configMaps, configMap1(Content{"a": "1"}), nil, KeepNone))
	require.Equal(t, Content{"data": Content{"a": "1"}}, ContentOf(configMaps, record.Host, host), "marks are no content")
}

func TestWhatIsContent(t *testing.T) {
	for name, change := range map[string]func(o *unstructured.Unstructured){
		"data":          func(o *unstructured.Unstructured) { o.Object["data"] = Content{"a": "2"} },
		"binaryData":    func(o *unstructured.Unstructured) { o.Object["binaryData"] = Content{"a": "Mg=="} },
		"a seal":        func(o *unstructured.Unstructured) { o.Object["immutable"] = true },
		"a label":       func(o *unstructured.Unstructured) { setLabel(o, "app", "web") },
		"an annotation": func(o *unstructured.Unstructured) { setAnnotation(o, "note", "a") },
		"an empty text": func(o *unstructured.Unstructured) { o.Object["data"] = Content{"a": ""} },
	} {
		t.Run(name, func(t *testing.T) {
			for _, side := range []record.Side{record.Tenant, record.Host} {
				o := configMap1(Content{"a": "1"})
				before := ContentOf(configMaps, side, o)
				change(o)
				require.NotEqual(t, before, ContentOf(configMaps, side, o))
			}
		})
	}
}

// Data that does not look like text crosses byte for byte, and a Secret's type with it.
func TestSecretsAndBinaryDataCrossAsTheyAre(t *testing.T) {
	content := Content{"type": "kubernetes.io/tls", "data": Content{"tls.crt": "AAEC/w==", "tls.key": ""}, "immutable": true}
	tenant := object("v1", "Secret", content)
	mirror := mapping.Project(secrets, tenant, nil, KeepNone)
	for field, value := range content {
		require.Equal(t, value, mirror.Object[field])
	}
	binary := object("v1", "ConfigMap", Content{"binaryData": Content{"k": "AAEC/w=="}})
	require.Equal(t, Content{"k": "AAEC/w=="}, mapping.Project(configMaps, binary, nil, KeepNone).Object["binaryData"])
	host := stored(mapping.Project(configMaps, binary, nil, KeepNone))
	host.Object["binaryData"] = Content{"k": "/w=="}
	require.Equal(t, Content{"k": "/w=="}, mapping.Reflect(configMaps, host, binary).Object["binaryData"])
}
