package e2e

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/kubernetes"
)

// renderDNS renders an overlay with the component manifests/tenant-dns and these further lines, in which FORM is the path
// to the CronJob.
func renderDNS(t *testing.T, lines string) []*unstructured.Unstructured {
	t.Helper()
	dir, toManifests := overlayDir(t)
	text := fmt.Sprintf("components: [%s]\n%s", filepath.Join(toManifests, "tenant-dns"),
		strings.ReplaceAll(lines, "FORM", filepath.Join(toManifests, "cronjob")))
	require.NoError(t, os.WriteFile(filepath.Join(dir, "kustomization.yaml"), []byte(text), 0o600))
	var objects []*unstructured.Unstructured
	for _, object := range render(t, dir) {
		if strings.HasPrefix(object.GetName(), "tenant-dns") || strings.HasPrefix(object.GetName(), "syncpass-settings") {
			objects = append(objects, object)
		}
	}
	return objects
}

// besideAForm is what a user writes who has the passes made in the same namespace.
const besideAForm = `
namespace: team-b
nameSuffix: -b
resources: [FORM]
configMapGenerator: [{name: syncpass-settings, behavior: merge, literals: [SYNCPASS_TENANT=b]}]
`

// alone is what one writes whose passes are made elsewhere.
const alone = `
namespace: team-b
configMapGenerator: [{name: syncpass-settings, literals: [SYNCPASS_TENANT=b]}]
`

func TestTheTenantDNSComponentServesTheTenantOfTheSettings(t *testing.T) {
	for name, lines := range map[string]string{"beside a form": besideAForm, "alone": alone} {
		t.Run(name, func(t *testing.T) {
			objects := renderDNS(t, lines)
			deployment, service := find[appsv1.Deployment](t, objects, "Deployment"), find[corev1.Service](t, objects, "Service")
			assert.Equal(t, "team-b", deployment.Namespace)
			labels := deployment.Spec.Template.Labels
			assert.Equal(t, "b", labels["tenantplane.io/tenant"])
			assert.Subset(t, labels, deployment.Spec.Selector.MatchLabels)
			assert.Equal(t, deployment.Spec.Selector.MatchLabels, service.Spec.Selector, "another tenant's DNS in the same namespace is another's")

			configMaps := map[string]map[string]string{}
			for _, object := range objects {
				if object.GetKind() == "ConfigMap" {
					data, _, err := unstructured.NestedStringMap(object.Object, "data")
					require.NoError(t, err)
					configMaps[object.GetName()] = data
				}
			}
			spec := deployment.Spec.Template.Spec
			for _, variable := range spec.Containers[0].Env {
				if variable.Name == "TENANT" {
					assert.Equal(t, "b", configMaps[variable.ValueFrom.ConfigMapKeyRef.Name][variable.ValueFrom.ConfigMapKeyRef.Key])
				}
			}
			assert.Contains(t, configMaps[spec.Volumes[0].ConfigMap.Name]["Corefile"], "{$TENANT}")
		})
	}
}

func TestAnAPIServerTakesTheTenantDNSUnderPodSecurityRestricted(t *testing.T) {
	host := suite(t).host
	client, err := kubernetes.NewForConfig(host.Config)
	require.NoError(t, err)
	restrictedNamespace(t, client, "team-b")
	objects := renderDNS(t, alone)
	for _, object := range objects {
		assert.NoError(t, strictCreate(t, host.Config, object, metav1.DryRunAll), "%s %s", object.GetKind(), object.GetName())
	}
	_, err = client.CoreV1().ServiceAccounts("team-b").Create(t.Context(), &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Name: "dns"}}, metav1.CreateOptions{})
	require.NoError(t, err)
	template := find[appsv1.Deployment](t, objects, "Deployment").Spec.Template
	assert.False(t, *template.Spec.AutomountServiceAccountToken)
	template.Spec.ServiceAccountName = "dns" // that of the namespace may not have been made yet
	create := func(spec corev1.PodSpec) error {
		pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "dns", Labels: template.Labels}, Spec: spec}
		_, err := client.CoreV1().Pods("team-b").Create(t.Context(), pod, metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}})
		return err
	}
	assert.NoError(t, create(template.Spec))
	loose := template.Spec.DeepCopy()
	loose.Containers[0].SecurityContext.Capabilities.Drop = nil
	assert.ErrorContains(t, create(*loose), "violates PodSecurity", "the check above would not notice a Pod that is too open")
}
