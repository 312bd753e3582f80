package e2e

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// sayOneNumber checks that into how many parts tenants are split is the same wherever it stands.
func sayOneNumber(t *testing.T, objects []*unstructured.Unstructured, parts int32) batchv1.JobSpec {
	t.Helper()
	spec := find[batchv1.CronJob](t, objects, "CronJob").Spec.JobTemplate.Spec
	assert.Equal(t, parts, *spec.Completions)
	assert.Equal(t, parts, *spec.Parallelism)
	_, env := workloadOf(t, objects)
	assert.Equal(t, fmt.Sprint(parts), env["SYNCPASS_SHARDS"])
	assert.Equal(t, "true", env["SYNCPASS_ALL_NAMESPACES"])
	return spec
}

func TestTheShardedManifestsSayOneNumber(t *testing.T) {
	spec := sayOneNumber(t, renderForm(t, "sharded"), 4)
	active := time.Duration(*spec.ActiveDeadlineSeconds) * time.Second
	assert.Greater(t, active, passTimeout+time.Minute+time.Duration(*spec.Template.Spec.TerminationGracePeriodSeconds)*time.Second)
}

// The example is the one in the comment at the top of sharded/kustomization.yaml.
func TestTheDocumentedPatchChangesTheNumberEverywhere(t *testing.T) {
	source, err := os.ReadFile(filepath.Join(manifestsDir, "sharded", "kustomization.yaml"))
	require.NoError(t, err)
	_, after, found := strings.Cut(string(source), "#   patches:\n")
	require.True(t, found)
	dir, toManifests := overlayDir(t)
	text := "resources: [" + filepath.Join(toManifests, "sharded") + "]\npatches:\n"
	for line := range strings.Lines(after) {
		example, ok := strings.CutPrefix(line, "#   ")
		if !ok {
			break
		}
		text += example
	}
	require.NoError(t, os.WriteFile(filepath.Join(dir, "kustomization.yaml"), []byte(text), 0o600))
	sayOneNumber(t, render(t, dir), 8)
}

// The rights in a tenant's namespace are those of the other forms, but for finding the tenants, and count there alone.
func TestTheShardedManifestsGiveTheRightsOfTheOthers(t *testing.T) {
	base := find[rbacv1.Role](t, renderForm(t, "base"), "Role").Rules
	objects := renderForm(t, "sharded")
	roles := map[string]rbacv1.ClusterRole{}
	for _, object := range objects {
		if object.GetKind() == "ClusterRole" {
			roles[object.GetName()] = *find[rbacv1.ClusterRole](t, []*unstructured.Unstructured{object}, "ClusterRole")
		}
	}
	require.Len(t, roles, 2)
	assert.Equal(t, base[1:], roles["syncpass-shards-tenant"].Rules)
	assert.Equal(t, []rbacv1.PolicyRule{base[0], find[rbacv1.ClusterRole](t, renderForm(t, "base"), "ClusterRole").Rules[0]}, roles["syncpass-shards"].Rules)

	account := find[corev1.ServiceAccount](t, objects, "ServiceAccount")
	assert.Equal(t, find[corev1.ServiceAccount](t, renderForm(t, "base"), "ServiceAccount").AutomountServiceAccountToken, account.AutomountServiceAccountToken)
	want := []rbacv1.Subject{{Kind: "ServiceAccount", Name: account.Name, Namespace: "syncpass-system"}}
	everywhere := find[rbacv1.ClusterRoleBinding](t, objects, "ClusterRoleBinding")
	assert.Equal(t, want, everywhere.Subjects)
	assert.Equal(t, "syncpass-shards", everywhere.RoleRef.Name)

	for _, namespace := range []string{"team-dev", "team-b"} {
		tenant := renderForm(t, "sharded/tenant")
		if namespace != "team-dev" {
			tenant = overlay(t, "sharded/tenant", namespace)
		}
		binding := find[rbacv1.RoleBinding](t, tenant, "RoleBinding")
		assert.Equal(t, namespace, binding.Namespace)
		assert.Equal(t, want, binding.Subjects)
		assert.Equal(t, rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: "syncpass-shards-tenant"}, binding.RoleRef)
	}
}
