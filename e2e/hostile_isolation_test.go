package e2e

import (
	"context"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/yaml"

	"github.com/syncpass/syncpass/e2e/tally"
	"github.com/syncpass/syncpass/pass/kinds"
)

// isolated is the overlay that manifests/isolation/kustomization.yaml describes, over a form.
func isolated(t *testing.T, form, namespace string) []*unstructured.Unstructured {
	t.Helper()
	dir, toManifests := overlayDir(t)
	text := fmt.Sprintf("namespace: %s\nnameSuffix: -%s\nresources: [%s]\ncomponents: [%s]\n", namespace, namespace,
		filepath.Join(toManifests, form), filepath.Join(toManifests, "isolation"))
	require.NoError(t, os.WriteFile(filepath.Join(dir, "kustomization.yaml"), []byte(text), 0o600))
	return render(t, dir)
}

// ofKinds are those of these kinds.
func ofKinds(objects []*unstructured.Unstructured, kinds ...string) []*unstructured.Unstructured {
	return slices.DeleteFunc(slices.Clone(objects), func(object *unstructured.Unstructured) bool { return !slices.Contains(kinds, object.GetKind()) })
}

var isolationKinds = []string{"ResourceQuota", "LimitRange", "NetworkPolicy"}

// A tenant writes the labels of its Pods. What is denied does not hang on them, and what is allowed to the runner hangs on
// one that no tenant can keep off its Pods.
func TestIsolationPicksPodsByWhatNoTenantCanWrite(t *testing.T) {
	policies := map[string]labels.Selector{}
	for _, object := range ofKinds(isolated(t, "cronjob", "b"), "NetworkPolicy") {
		var typed networkingv1.NetworkPolicy
		require.NoError(t, runtime.DefaultUnstructuredConverter.FromUnstructuredWithValidation(object.Object, &typed, true))
		require.Equal(t, "b", typed.Namespace)
		require.ElementsMatch(t, []networkingv1.PolicyType{"Ingress", "Egress"}, typed.Spec.PolicyTypes)
		selector, err := metav1.LabelSelectorAsSelector(&typed.Spec.PodSelector)
		require.NoError(t, err)
		policies[typed.Name] = selector
	}
	posing := &unstructured.Unstructured{Object: object{"apiVersion": "v1", "kind": "Pod", "spec": object{"containers": []any{}}}}
	posing.SetNamespace("default")
	posing.SetName("posing")
	posing.SetUID("u")
	posing.SetLabels(map[string]string{"app.kubernetes.io/name": "syncpass", "tenantplane.io/tenant": ""})
	mapping := kinds.Mapping{Tenant: "dev", HostNamespace: "b"}
	mirror := labels.Set(mapping.Project(kinds.For(schema.GroupKind{Kind: "Pod"}), posing, nil, kinds.KeepForeign).GetLabels())
	for form := range forms {
		runner := labels.Set(podTemplate(t, form).Labels)
		assert.True(t, policies["syncpass-runner-b"].Matches(runner), form)
		assert.False(t, policies["syncpass-tenant-b"].Matches(runner), form)
	}
	assert.False(t, policies["syncpass-runner-b"].Matches(mirror), "the mirror of a Pod with the runner's labels")
	assert.True(t, policies["syncpass-tenant-b"].Matches(mirror))
	for _, any := range []labels.Set{mirror, {}, {"app.kubernetes.io/name": "syncpass"}} {
		assert.True(t, policies["syncpass-deny-b"].Matches(any))
	}
}

// TestIsolationHoldsTheRunnerAndHindersNoPass applies manifests/isolation to a real host. Passes over all kinds of the
// documented policy go on as before, and with the runner's own credentials, and more rights than it has, nothing can be
// written that is no mirror.
func TestIsolationHoldsTheRunnerAndHindersNoPass(t *testing.T) {
	r := newRightsTest(t)
	s := suite(t)
	for _, object := range ofKinds(isolated(t, "cronjob", rightsNamespace), isolationKinds...) {
		require.NoError(t, strictCreate(t, s.host.Config, object), "%s %s", object.GetKind(), object.GetName())
	}
	var namespace corev1.Namespace
	text, err := os.ReadFile(filepath.Join(manifestsDir, "isolation", "namespace.yaml"))
	require.NoError(t, err)
	require.NoError(t, yaml.UnmarshalStrict(text, &namespace))
	require.Equal(t, "restricted", namespace.Labels["pod-security.kubernetes.io/enforce"])
	labelled := []byte(jsonOf(t, object{"metadata": object{"labels": namespace.Labels}}))
	for _, name := range []string{rightsNamespace, metav1.NamespaceDefault} {
		_, err = r.host.CoreV1().Namespaces().Patch(t.Context(), name, types.StrategicMergePatchType, labelled, metav1.PatchOptions{})
		require.NoError(t, err)
	}
	t.Cleanup(func() {
		_, err := r.host.CoreV1().Namespaces().Patch(context.Background(), metav1.NamespaceDefault, types.MergePatchType,
			[]byte(`{"metadata":{"labels":{"pod-security.kubernetes.io/enforce":null,"syncpass.tenantplane.io/isolated":null}}}`), metav1.PatchOptions{})
		assert.NoError(t, err)
	})
	everything := dynamic.NewForConfigOrDie(s.host.Config)
	for _, object := range render(t, filepath.Join(manifestsDir, "isolation", "admission")) {
		require.NoError(t, strictCreate(t, s.host.Config, object))
		resource := schema.GroupVersionResource{Group: "admissionregistration.k8s.io", Version: "v1", Resource: map[string]string{
			"ValidatingAdmissionPolicy": "validatingadmissionpolicies", "ValidatingAdmissionPolicyBinding": "validatingadmissionpolicybindings"}[object.GetKind()]}
		t.Cleanup(func() {
			assert.NoError(t, everything.Resource(resource).Delete(context.Background(), object.GetName(), metav1.DeleteOptions{}))
		})
	}
	r.grantMore()
	config := rest.AnonymousClientConfig(s.host.Config)
	config.BearerToken = r.token(r.host, rightsNamespace, "syncpass-"+rightsNamespace)
	taken := dynamic.NewForConfigOrDie(config)
	eventually(t, "the admission policy and the quota are in force", func(ctx context.Context) (bool, error) {
		quota, err := r.host.CoreV1().ResourceQuotas(rightsNamespace).Get(ctx, "syncpass-tenant-"+rightsNamespace, metav1.GetOptions{})
		if err != nil || len(quota.Status.Hard) == 0 {
			return false, err
		}
		bare := &unstructured.Unstructured{Object: object{"apiVersion": "v1", "kind": "ConfigMap", "metadata": object{"name": "bare"}}}
		_, err = taken.Resource(configsResource).Namespace(rightsNamespace).Create(ctx, bare, metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}})
		return apierrors.IsForbidden(err), nil
	})

	pass := func(stage string) {
		t.Helper()
		result, err := r.runner.Run(t.Context(), nil, "pass", "-o", "wide")
		require.NoError(t, err)
		require.Zero(t, result.Exit, "%s: %s%s", stage, result.Stderr, result.Stdout)
	}
	r.makeTenantObjects()
	pass("everything is new")
	r.changeBothSides()
	pass("each side changed some")
	tried := r.attemptEverything(taken)
	r.deleteTenantObjects()
	pass("the tenant deleted all")
	if !t.Failed() {
		tally.Line(t, "isolation: %d writes with the runner's credentials, all denied by the host; no pass hindered", tried)
	}
}

// grantMore gives the runner's ServiceAccount every right in its namespace and in another one, so that nothing but the
// admission policy stands in its way.
func (r *rightsTest) grantMore() {
	r.Helper()
	for _, namespace := range []string{rightsNamespace, metav1.NamespaceDefault} {
		_, err := r.host.RbacV1().RoleBindings(namespace).Create(r.Context(), &rbacv1.RoleBinding{
			ObjectMeta: metav1.ObjectMeta{Name: "more"},
			RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: "cluster-admin"},
			Subjects:   []rbacv1.Subject{{Kind: rbacv1.ServiceAccountKind, Namespace: rightsNamespace, Name: "syncpass-" + rightsNamespace}},
		}, metav1.CreateOptions{})
		require.NoError(r, err)
		r.Cleanup(func() {
			err := r.host.RbacV1().RoleBindings(namespace).Delete(context.Background(), "more", metav1.DeleteOptions{})
			if !apierrors.IsNotFound(err) {
				assert.NoError(r, err)
			}
		})
	}
}

// mirrorLike is a mirror as the runner makes it, with something else on top; metadata is merged.
func mirrorLike(apiVersion, kind string, more object) *unstructured.Unstructured {
	made := object{"apiVersion": apiVersion, "kind": kind}
	metadata := object{
		"name":        "x-x-default-x-dev",
		"labels":      object{kinds.LabelManagedBy: kinds.ManagedBy, kinds.LabelTenant: "dev", kinds.LabelVirtualNamespace: "default", kinds.LabelKind: "any"},
		"annotations": object{kinds.AnnotationVirtualName: "x", kinds.AnnotationVirtualNamespace: "default", kinds.AnnotationVirtualUID: "u"},
	}
	for field, value := range more {
		given, isMap := value.(object)
		if field != "metadata" || !isMap {
			made[field] = value
			continue
		}
		for name, value := range given {
			if own, isMap := metadata[name].(object); isMap {
				merged := maps.Clone(own)
				maps.Copy(merged, value.(object))
				value = merged
			}
			metadata[name] = value
		}
	}
	made["metadata"] = metadata
	return &unstructured.Unstructured{Object: made}
}

// attemptEverything tries what a runner that was taken over could, and returns how much that was.
func (r *rightsTest) attemptEverything(taken dynamic.Interface) int {
	r.Helper()
	secret := func(more object) *unstructured.Unstructured { return mirrorLike("v1", "Secret", more) }
	pod := func(spec object) *unstructured.Unstructured {
		whole := object{
			"automountServiceAccountToken": false, "securityContext": object{"runAsNonRoot": true, "seccompProfile": object{"type": "RuntimeDefault"}},
			"containers": []any{object{"name": "c", "image": "i", "securityContext": object{"allowPrivilegeEscalation": false, "capabilities": object{"drop": []any{"ALL"}}}}},
		}
		maps.Copy(whole, spec)
		return mirrorLike("v1", "Pod", object{"spec": whole})
	}
	network := func(spec object) *unstructured.Unstructured {
		return mirrorLike("networking.k8s.io/v1", "NetworkPolicy", object{"spec": spec})
	}
	projected := func(source object) *unstructured.Unstructured {
		return pod(object{"volumes": []any{object{"name": "v", "projected": object{"sources": []any{source}}}}})
	}
	owner := func(apiVersion, kind string) object {
		return object{"metadata": object{"ownerReferences": []any{object{"apiVersion": apiVersion, "kind": kind, "name": "x", "uid": "u"}}}}
	}
	denied := map[string]struct {
		resource schema.GroupVersionResource
		object   *unstructured.Unstructured
		says     string
	}{
		"a Secret without marks":                           {secretsResource, &unstructured.Unstructured{Object: object{"apiVersion": "v1", "kind": "Secret", "metadata": object{"name": "plain"}}}, "marks of a mirror"},
		"another name than the mirror's":                   {secretsResource, secret(object{"metadata": object{"name": "dev-kubeconfig"}}), "name of this object's mirror"},
		"the name of another tenant's mirror":              {secretsResource, secret(object{"metadata": object{"name": "x-x-default-x-other"}}), "name of this object's mirror"},
		"an owner that collects it":                        {secretsResource, secret(owner("v1", "ConfigMap")), "no TenantCluster"},
		"a Pod as the owner of what is none of its tokens": {configsResource, mirrorLike("v1", "ConfigMap", owner("v1", "Pod")), "no TenantCluster"},
		"a finalizer":                        {secretsResource, secret(object{"metadata": object{"finalizers": []any{"example.com/never"}}}), "finalizer"},
		"a token of a ServiceAccount":        {secretsResource, secret(object{"type": "kubernetes.io/service-account-token", "metadata": object{"annotations": object{"kubernetes.io/service-account.name": "default"}}}), "credential of the host's"},
		"externalIPs":                        {servicesResource, mirrorLike("v1", "Service", object{"spec": object{"externalIPs": []any{"192.0.2.1"}, "ports": []any{object{"port": int64(80)}}}}), "externalIPs"},
		"a Pod as another account":           {podsResource, pod(object{"serviceAccountName": "syncpass-" + rightsNamespace}), "runs as `default`"},
		"a Pod with its account's token":     {podsResource, pod(object{"automountServiceAccountToken": true}), "without a token"},
		"a Pod on a node of its choice":      {podsResource, pod(object{"nodeName": "control-plane"}), "where the scheduler puts it"},
		"a Pod with a token of the host":     {podsResource, projected(object{"serviceAccountToken": object{"path": "t"}}), "asks the host for a credential"},
		"a policy that lets everybody in":    {networksResource, network(object{"podSelector": object{}, "ingress": []any{object{}}}), "opens its Pods"},
		"a policy that lets everything out":  {networksResource, network(object{"podSelector": object{}, "policyTypes": []any{"Egress"}, "egress": []any{object{}}}), "opens its Pods"},
		"a policy for a range of addresses":  {networksResource, network(object{"podSelector": object{}, "ingress": []any{object{"from": []any{object{"ipBlock": object{"cidr": "0.0.0.0/0"}}}}}}), "opens its Pods"},
		"a policy for other namespaces":      {networksResource, network(object{"podSelector": object{}, "ingress": []any{object{"from": []any{object{"namespaceSelector": object{}}}}}}), "opens its Pods"},
		"addresses of others":                {slicesResource, mirrorLike("discovery.k8s.io/v1", "EndpointSlice", object{"addressType": "IPv4", "endpoints": []any{object{"addresses": []any{"192.0.2.9"}}}}), "names addresses"},
		"an annotation that an add-on obeys": {configsResource, mirrorLike("v1", "ConfigMap", object{"metadata": object{"annotations": object{"nginx.ingress.kubernetes.io/configuration-snippet": "x"}}}), "configuration-snippet"},
		"an annotation that picks a network": {podsResource, mirrorLike("v1", "Pod", object{"metadata": object{"annotations": object{"k8s.v1.cni.cncf.io/networks": "other/net"}}, "spec": pod(nil).Object["spec"]}), "k8s.v1.cni.cncf.io/networks"},
	}
	dry := metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}}
	for name, attempt := range denied {
		r.Run("denied: "+name, func(t *testing.T) {
			_, err := taken.Resource(attempt.resource).Namespace(rightsNamespace).Create(t.Context(), attempt.object, dry)
			require.True(t, apierrors.IsForbidden(err), "%v", err)
			require.ErrorContains(t, err, "syncpass-mirrors")
			require.ErrorContains(t, err, attempt.says)
		})
	}
	r.Run("denied: another namespace", func(t *testing.T) {
		_, err := taken.Resource(configsResource).Namespace(metav1.NamespaceDefault).Create(t.Context(), mirrorLike("v1", "ConfigMap", nil), dry)
		require.ErrorContains(t, err, "in its own namespace only")
	})
	r.attemptOnWhatIsThere(taken)
	// What was denied would be taken from the runner without what is wrong with it.
	for resource, object := range map[schema.GroupVersionResource]*unstructured.Unstructured{
		secretsResource: secret(nil), podsResource: pod(nil), configsResource: mirrorLike("v1", "ConfigMap", nil),
		networksResource: network(object{"podSelector": object{}, "ingress": []any{object{"from": []any{object{"podSelector": object{}}}}}}),
	} {
		_, err := taken.Resource(resource).Namespace(rightsNamespace).Create(r.Context(), object, dry)
		require.NoError(r, err, "the checks above would not notice a policy that denies everything")
	}
	return len(denied) + 1 + 3
}

// attemptOnWhatIsThere changes and deletes what is no mirror, and gives a mirror to another object.
func (r *rightsTest) attemptOnWhatIsThere(taken dynamic.Interface) {
	r.Helper()
	secrets := taken.Resource(secretsResource).Namespace(rightsNamespace)
	kubeconfig, err := secrets.Get(r.Context(), "dev-control-plane-kubeconfig", metav1.GetOptions{})
	require.NoError(r, err)
	r.Run("denied: taking over what is no mirror", func(t *testing.T) {
		mine := mirrorLike("v1", "Secret", nil)
		changed := kubeconfig.DeepCopy()
		changed.SetLabels(mine.GetLabels())
		changed.SetAnnotations(mine.GetAnnotations())
		_, err := secrets.Update(t.Context(), changed, metav1.UpdateOptions{DryRun: []string{metav1.DryRunAll}})
		require.ErrorContains(t, err, "is not taken over")
	})
	r.Run("denied: deleting what is no mirror", func(t *testing.T) {
		err := secrets.Delete(t.Context(), kubeconfig.GetName(), metav1.DeleteOptions{DryRun: []string{metav1.DryRunAll}})
		require.ErrorContains(t, err, "marks of a mirror")
	})
	r.Run("denied: a mirror that becomes another object's", func(t *testing.T) {
		mirror, err := secrets.Get(t.Context(), "password-x-"+rightsNamespace+"-x-dev", metav1.GetOptions{})
		require.NoError(t, err)
		annotations := mirror.GetAnnotations()
		annotations[kinds.AnnotationVirtualName] = "another"
		mirror.SetAnnotations(annotations)
		_, err = secrets.Update(t.Context(), mirror, metav1.UpdateOptions{DryRun: []string{metav1.DryRunAll}})
		require.ErrorContains(t, err, "is not taken over")
	})
}
