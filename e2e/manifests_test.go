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
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/discovery/cached/memory"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/restmapper"
)

// overlay is a kustomization over a form, as a user writes it: another namespace, and names of its own.
func overlay(t *testing.T, form, namespace string) []*unstructured.Unstructured {
	t.Helper()
	dir, toManifests := overlayDir(t)
	text := fmt.Sprintf("namespace: %s\nnameSuffix: -%s\nresources: [%s]\n", namespace, namespace, filepath.Join(toManifests, form))
	require.NoError(t, os.WriteFile(filepath.Join(dir, "kustomization.yaml"), []byte(text), 0o600))
	return render(t, dir)
}

// strictCreate creates an object the way `kubectl create --validate=strict` does, so that a misspelt field is an error.
func strictCreate(t *testing.T, config *rest.Config, object *unstructured.Unstructured, dryRun ...string) error {
	t.Helper()
	discoverer, err := discovery.NewDiscoveryClientForConfig(config)
	require.NoError(t, err)
	gvk := object.GroupVersionKind()
	mapping, err := restmapper.NewDeferredDiscoveryRESTMapper(memory.NewMemCacheClient(discoverer)).RESTMapping(gvk.GroupKind(), gvk.Version)
	require.NoError(t, err)
	client, err := dynamic.NewForConfig(config)
	require.NoError(t, err)
	_, err = client.Resource(mapping.Resource).Namespace(object.GetNamespace()).Create(t.Context(), object,
		metav1.CreateOptions{DryRun: dryRun, FieldValidation: metav1.FieldValidationStrict})
	return err
}

// restrictedNamespace makes a namespace that admits only Pods of the Pod Security level restricted.
func restrictedNamespace(t *testing.T, client kubernetes.Interface, name string) {
	t.Helper()
	_, err := client.CoreV1().Namespaces().Create(t.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{
		Name: name, Labels: map[string]string{"pod-security.kubernetes.io/enforce": "restricted"},
	}}, metav1.CreateOptions{})
	require.NoError(t, err)
	t.Cleanup(func() {
		if err := client.CoreV1().Namespaces().Delete(context.WithoutCancel(t.Context()), name, metav1.DeleteOptions{}); !apierrors.IsNotFound(err) {
			assert.NoError(t, err)
		}
	})
}

func TestAnAPIServerTakesTheManifests(t *testing.T) {
	host := suite(t).host
	client, err := kubernetes.NewForConfig(host.Config)
	require.NoError(t, err)
	for _, form := range slices.Sorted(maps.Keys(forms)) {
		t.Run(form, func(t *testing.T) {
			namespace := "manifests-" + form
			restrictedNamespace(t, client, namespace)
			for _, object := range overlay(t, form, namespace) {
				assert.NoError(t, strictCreate(t, host.Config, object, metav1.DryRunAll), "%s %s", object.GetKind(), object.GetName())
			}

			misspelt := overlay(t, form, namespace)[0].DeepCopy()
			misspelt.Object["automountServiceAcountToken"] = false
			assert.ErrorContains(t, strictCreate(t, host.Config, misspelt, metav1.DryRunAll), "unknown field",
				"the check above would not notice a misspelt field")
		})
	}
}

func TestPodSecurityRestrictedAdmitsTheRunnersPods(t *testing.T) {
	host := suite(t).host
	client, err := kubernetes.NewForConfig(host.Config)
	require.NoError(t, err)
	const namespace = "manifests-pods"
	restrictedNamespace(t, client, namespace)
	_, err = client.CoreV1().ServiceAccounts(namespace).Create(t.Context(),
		&corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Name: "syncpass"}}, metav1.CreateOptions{})
	require.NoError(t, err)
	create := func(spec corev1.PodSpec) error {
		pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "runner"}, Spec: spec}
		_, err := client.CoreV1().Pods(namespace).Create(t.Context(), pod, metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}})
		return err
	}
	for form := range forms {
		assert.NoError(t, create(podTemplate(t, form).Spec), form)
	}

	loose := podTemplate(t, "job").Spec
	loose.SecurityContext = nil
	assert.ErrorContains(t, create(loose), "violates PodSecurity", "the check above would not notice a Pod that is too open")
}
