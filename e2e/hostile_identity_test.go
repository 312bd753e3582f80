package e2e

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"

	"github.com/syncpass/syncpass/pass/kinds"
	"github.com/syncpass/syncpass/policy"
	"github.com/syncpass/syncpass/record"
)

// marksOf are every reserved label and annotation, with the values of another tenant's mirror.
var (
	reservedLabels = map[string]string{
		kinds.LabelManagedBy: kinds.ManagedBy, kinds.LabelTenant: "other", kinds.LabelVirtualNamespace: "a", kinds.LabelKind: "pod-tokens",
		"tenantplane.io/history-of": "other", "tenantplane.io/isolation-exempt": "true", "x.tenantplane.io/any": "thing",
	}
	reservedAnnotations = map[string]string{
		kinds.AnnotationVirtualNamespace: "a", kinds.AnnotationVirtualName: "neighbour", kinds.AnnotationVirtualUID: "u",
		kinds.AnnotationConfirmDeletes: "0", kinds.AnnotationRenewAfter: "2999-01-01T00:00:00Z", kinds.AnnotationImages: "c=evil",
		"kubectl.kubernetes.io/last-applied-configuration": "{}",
	}
)

func attackIdentity(t *testing.T, h *hostile) {
	marked := &unstructured.Unstructured{Object: object{"apiVersion": "v1", "kind": "ConfigMap", "data": object{"k": "v"}}}
	marked.SetName("marked")
	marked.SetLabels(reservedLabels)
	marked.SetAnnotations(reservedAnnotations)
	h.apply(t, record.Tenant, string(documents(t, marked.Object)))

	cluster, err := h.objects(record.Host, policy.TenantClusterResource).Get(t.Context(), h.name, metav1.GetOptions{})
	require.NoError(t, err)
	tied := &unstructured.Unstructured{Object: object{"apiVersion": "v1", "kind": "ConfigMap"}}
	tied.SetName("tied")
	// The tenant's garbage collector knows neither kind, and so leaves the object alone.
	tied.SetOwnerReferences([]metav1.OwnerReference{
		{APIVersion: policy.GroupVersion.String(), Kind: "TenantCluster", Name: "other", UID: cluster.GetUID(), BlockOwnerDeletion: ptr.To(true)},
		{APIVersion: "example.com/v1", Kind: "Any", Name: "treasure", UID: "uid-of-treasure", Controller: ptr.To(true)},
	})
	bound := &unstructured.Unstructured{Object: object{"apiVersion": "v1", "kind": "ConfigMap"}}
	bound.SetName("bound")
	bound.SetFinalizers([]string{"evil.example.com/never"})
	h.apply(t, record.Tenant, string(documents(t, tied.Object, bound.Object)))

	// Names that would be other objects' if parts could be mistaken for separators, or lay in another's place.
	names := []string{"treasure", h.name, h.name + "-kubeconfig", "syncpass-" + h.name, "vc-a", "neighbour-x-a-x-other",
		"neighbour", "a-x-b", "a", "a-x", "a.b", "a-b", "a--b", "kube-root-ca.crt-x", strings.Repeat("a", 253), strings.Repeat("a", 252) + "b"}
	var all []object
	for _, name := range names {
		for _, kind := range []string{"ConfigMap", "Secret"} {
			all = append(all, object{"apiVersion": "v1", "kind": kind, "metadata": object{"name": name}})
		}
	}
	h.apply(t, record.Tenant, string(documents(t, all...)))

	// Something of the host's stands where a mirror belongs, and a copy of a mirror somewhere else.
	h.apply(t, record.Tenant, "{apiVersion: v1, kind: ConfigMap, metadata: {name: occupied}, data: {by: tenant}}")
	h.apply(t, record.Host, "{apiVersion: v1, kind: ConfigMap, metadata: {name: "+h.mirror("occupied")+"}, data: {by: host}}")
	h.before = h.foreign(t)
	result, _ := h.pass(t, 0, nil)
	mirror := h.host(t, configsResource, "marked")
	require.NotNil(t, mirror)

	for key, value := range reservedLabels {
		h.try(t, "S05 S07 label "+key, func(t *testing.T) {
			there := mirror.GetLabels()[key]
			switch key {
			case kinds.LabelManagedBy:
				require.Equal(t, kinds.ManagedBy, there)
			case kinds.LabelTenant, kinds.LabelVirtualNamespace:
				require.Equal(t, h.name, there)
			case kinds.LabelKind:
				require.Equal(t, "configmap", there)
			default:
				require.Empty(t, there)
			}
			kept := 0
			for other, text := range mirror.GetLabels() {
				if text == value && other != key && strings.Contains(other, "alias.") || strings.HasPrefix(other, "app-kubernetes-io.") {
					kept++
				}
			}
			require.Positive(t, kept, "the tenant's own value is kept under an alias")
		})
	}
	for key, value := range reservedAnnotations {
		h.try(t, "S06 S07 annotation "+key, func(t *testing.T) {
			require.NotEqual(t, value, mirror.GetAnnotations()[key])
		})
	}
	h.try(t, "S08 names that could be mistaken for others", func(t *testing.T) {
		taken := map[string]string{}
		for _, name := range names {
			for resource, kind := range map[string]string{"configmaps": "ConfigMap", "secrets": "Secret"} {
				d := decided(t, result, kind, name)
				require.Equal(t, record.Create, d.Action, "%+v", d)
				require.Empty(t, taken[resource+d.HostName], "two objects at one name")
				taken[resource+d.HostName] = name
				require.NotContains(t, h.before, resource+"/"+d.HostName)
				require.True(t, strings.HasSuffix(d.HostName, "-x-"+h.name) || len(d.HostName) > 17 && d.HostName[len(d.HostName)-17] == '-', d.HostName)
			}
		}
	})
	h.try(t, "S08 a name that is taken on the host", func(t *testing.T) {
		require.Equal(t, record.NotOwned, decided(t, result, "ConfigMap", "occupied").Reason)
		there, err := h.objects(record.Host, configsResource).Get(t.Context(), h.mirror("occupied"), metav1.GetOptions{})
		require.NoError(t, err)
		require.Equal(t, object{"by": "host"}, there.Object["data"])
	})
	h.try(t, "S07 S13 a copy of a mirror, and another tenant's, when their objects go", func(t *testing.T) {
		copied := mirror.DeepCopy()
		copied.SetName("copied")
		copied.SetResourceVersion("")
		copied.SetUID("")
		_, err := h.objects(record.Host, configsResource).Create(t.Context(), copied, metav1.CreateOptions{})
		require.NoError(t, err)
		h.before = h.foreign(t)
		require.NoError(t, h.objects(record.Tenant, configsResource).Delete(t.Context(), "marked", metav1.DeleteOptions{}))
		h.pass(t, 0, nil)
		require.Nil(t, h.host(t, configsResource, "marked"))
		h.requireContained(t) // the copy stands
	})
	h.try(t, "S09 kinds that grant rights or steer the host", func(t *testing.T) {
		for _, kind := range []string{"rbac.authorization.k8s.io/v1 RoleBinding", "rbac.authorization.k8s.io/v1 Role", "coordination.k8s.io/v1 Lease",
			"tenantplane.io/v1alpha1 SyncDecision", "tenantplane.io/v1alpha1 TenantCluster", "v1 Event", "apps/v1 ControllerRevision"} {
			version, name, _ := strings.Cut(kind, " ")
			err := h.s.host.Apply(t.Context(), documents(t, object{"apiVersion": policy.GroupVersion.String(), "kind": "SyncPolicy", "metadata": object{"name": "evil-policy"},
				"spec": object{"resources": []any{object{"apiVersion": version, "kind": name, "direction": "toHost"}}}}))
			if err == nil { // then the runner says it
				bad := h.run(t, map[string]string{"SYNCPASS_POLICY": policyFile(t, version, name)}, "pass")
				assert.Equal(t, 5, bad.Exit, kind)
				assert.Contains(t, string(bad.Stderr), "never crosses", kind)
			}
		}
		err := h.hostObjects.Resource(policy.SyncPolicyResource).Delete(h.s.ctx, "evil-policy", metav1.DeleteOptions{})
		require.True(t, err == nil || apierrors.IsNotFound(err), err)
		scoped := h.run(t, map[string]string{"SYNCPASS_POLICY": policyFile(t, "rbac.authorization.k8s.io/v1", "ClusterRoleBinding")}, "pass", "-o", "json")
		require.Contains(t, string(scoped.Stdout), "is cluster-scoped on the tenant")
	})
	h.try(t, "S11 an owner on the host", func(t *testing.T) {
		mirror := h.host(t, configsResource, "tied")
		require.NotNil(t, mirror)
		require.Len(t, mirror.GetOwnerReferences(), 1)
		require.Equal(t, h.name, mirror.GetOwnerReferences()[0].Name)
		require.False(t, *mirror.GetOwnerReferences()[0].BlockOwnerDeletion)
	})
	h.try(t, "S12 S34 a finalizer of the tenant's, when the object goes", func(t *testing.T) {
		mirror := h.host(t, configsResource, "bound")
		require.NotNil(t, mirror, "its finalizer keeps it in the tenant")
		require.Empty(t, mirror.GetFinalizers())
		objects := h.objects(record.Tenant, configsResource)
		err := objects.Delete(t.Context(), "bound", metav1.DeleteOptions{})
		require.True(t, err == nil || apierrors.IsNotFound(err), err)
		began := time.Now()
		h.pass(t, 0, nil)
		require.Less(t, time.Since(began), 20*time.Second, "nothing waits for the tenant's finalizer")
		require.Nil(t, h.host(t, configsResource, "bound"), "the mirror goes while the tenant's object still hangs")
		_, err = objects.Patch(t.Context(), "bound", types.MergePatchType, []byte(`{"metadata":{"finalizers":null}}`), metav1.PatchOptions{})
		require.True(t, err == nil || apierrors.IsNotFound(err), err)
	})
	h.try(t, "S08 the mirror of a Secret at a kubeconfig's name", func(t *testing.T) {
		// A tenant c-x-<place> would look for its kubeconfig under a name that <place>'s Secret c-kubeconfig could be mapped to
		// if the name of the tenant was badly chosen; an operator can also name any Secret.
		bad := h.run(t, map[string]string{"SYNCPASS_TENANT_KUBECONFIG_SECRET": h.mirror("vc-a")}, "pass")
		require.Equal(t, 5, bad.Exit)
		require.Contains(t, string(bad.Stderr), "is the mirror of a tenant's Secret")
	})
	h.try(t, "S13 a tenant whose name begins like another's", func(t *testing.T) {
		long := h.mapping()
		long.Tenant = h.name + "-2"
		_, owned := long.Identify(kinds.For(corev1.SchemeGroupVersion.WithKind("ConfigMap").GroupKind()), "ConfigMap", h.host(t, configsResource, "a"))
		require.NotEqual(t, kinds.Ours, owned)
	})
}

// policyFile is a policy of one kind, for SYNCPASS_POLICY.
func policyFile(t *testing.T, apiVersion, kind string) string {
	t.Helper()
	return writeFile(t, "policy.yaml", string(documents(t, object{"apiVersion": policy.GroupVersion.String(), "kind": "SyncPolicy", "metadata": object{"name": "file"},
		"spec": object{"resources": []any{object{"apiVersion": apiVersion, "kind": kind, "direction": "toHost"}}}})))
}
