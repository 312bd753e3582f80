package e2e

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// The component binds the ServiceAccount that the form runs as, under the names of the overlay that both stand in.
func TestTheNodesComponentGrantsGettingNodesAndNothingElse(t *testing.T) {
	dir, toManifests := overlayDir(t)
	text := fmt.Sprintf("namespace: team-b\nnameSuffix: -b\nresources: [%s]\ncomponents: [%s]\n",
		filepath.Join(toManifests, "cronjob"), filepath.Join(toManifests, "nodes"))
	require.NoError(t, os.WriteFile(filepath.Join(dir, "kustomization.yaml"), []byte(text), 0o600))
	named := func(kind string) *unstructured.Unstructured {
		for _, object := range render(t, dir) {
			if object.GetKind() == kind && object.GetName() == "syncpass-node-reader-b" {
				return object
			}
		}
		t.Fatalf("no %s syncpass-node-reader-b", kind)
		return nil
	}
	role := find[rbacv1.ClusterRole](t, []*unstructured.Unstructured{named("ClusterRole")}, "ClusterRole")
	assert.Equal(t, []rbacv1.PolicyRule{{APIGroups: []string{""}, Resources: []string{"nodes"}, Verbs: []string{"get"}}}, role.Rules)
	binding := find[rbacv1.ClusterRoleBinding](t, []*unstructured.Unstructured{named("ClusterRoleBinding")}, "ClusterRoleBinding")
	assert.Equal(t, role.Name, binding.RoleRef.Name)
	assert.Equal(t, []rbacv1.Subject{{Kind: "ServiceAccount", Name: "syncpass-b", Namespace: "team-b"}}, binding.Subjects)

	for _, object := range renderForm(t, "cronjob") {
		assert.NotEqual(t, "syncpass-node-reader", object.GetName(), "the right is granted only where it is asked for")
	}
}
