package e2e

import (
	"encoding/base64"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"

	"github.com/syncpass/syncpass/policy"
)

// TestBadInputIsNamedAndNothingIsHalfDone runs the binary on what people get wrong. Each error names the thing, the
// cause and what to do next; the mirror of an earlier pass stays, and nothing is written.
func TestBadInputIsNamedAndNothingIsHalfDone(t *testing.T) {
	s := suite(t)
	host, err := kubernetes.NewForConfig(s.host.Config)
	require.NoError(t, err)
	objects, err := dynamic.NewForConfig(s.host.Config)
	require.NoError(t, err)
	setKubeconfig := func(key, content string) func(t *testing.T) map[string]string {
		return func(t *testing.T) map[string]string {
			secrets := host.CoreV1().Secrets("team-dev")
			secret, err := secrets.Get(t.Context(), "dev-control-plane-kubeconfig", metav1.GetOptions{})
			require.NoError(t, err)
			secret.Data = map[string][]byte{key: []byte(content)}
			_, err = secrets.Update(t.Context(), secret, metav1.UpdateOptions{})
			require.NoError(t, err)
			return nil
		}
	}
	good := string(s.tenantKubeconfig)

	for name, test := range map[string]struct {
		given  func(t *testing.T) map[string]string
		exit   int
		stderr []string
	}{
		"the TenantCluster is missing": {
			func(*testing.T) map[string]string { return map[string]string{"SYNCPASS_TENANT": "nobody"} },
			5, []string{"TenantCluster team-dev/nobody", "does not exist", "SYNCPASS_TENANT"},
		},
		"the policy is missing": {
			func(t *testing.T) map[string]string {
				require.NoError(t, objects.Resource(policy.SyncPolicyResource).Delete(t.Context(), "default", metav1.DeleteOptions{}))
				return nil
			},
			5, []string{"SyncPolicy", "TenantCluster team-dev/dev", "does not exist", "spec.syncPolicyRef.name"},
		},
		"the kubeconfig Secret is missing": {
			func(t *testing.T) map[string]string {
				require.NoError(t, host.CoreV1().Secrets("team-dev").Delete(t.Context(), "dev-control-plane-kubeconfig", metav1.DeleteOptions{}))
				return nil
			},
			5, []string{"dev-control-plane-kubeconfig", "vc-dev", "SYNCPASS_TENANT_KUBECONFIG_SECRET"},
		},
		"the Secret has no such key": {
			setKubeconfig("wrong", good),
			5, []string{"dev-control-plane-kubeconfig", "wrong", "admin.conf"},
		},
		"the kubeconfig is no YAML": {
			setKubeconfig("kubeconfig", "a: [b"),
			5, []string{"kubeconfig", "YAML"},
		},
		"the kubeconfig has no current context": {
			setKubeconfig("kubeconfig", withoutLine(good, "current-context:")),
			5, []string{"current-context"},
		},
		"the kubeconfig carries an exec plugin": {
			setKubeconfig("kubeconfig", "apiVersion: v1\nkind: Config\ncurrent-context: x\ncontexts: [{name: x, context: {cluster: x, user: x}}]\n"+
				"clusters: [{name: x, cluster: {server: 'https://127.0.0.1:1'}}]\nusers: [{name: x, user: {exec: {command: touch, args: [pwned]}}}]\n"),
			5, []string{"exec", "token"},
		},
		"the tenant is unreachable": {
			setKubeconfig("kubeconfig", "apiVersion: v1\nkind: Config\ncurrent-context: x\ncontexts: [{name: x, context: {cluster: x, user: x}}]\n"+
				"clusters: [{name: x, cluster: {server: 'https://127.0.0.1:1'}}]\nusers: [{name: x, user: {token: "+base64.StdEncoding.EncodeToString([]byte("t"))+"}}]\n"),
			7, []string{"tenant", "127.0.0.1:1"},
		},
		"the host's kubeconfig is missing": {
			func(*testing.T) map[string]string {
				return map[string]string{"SYNCPASS_HOST_KUBECONFIG": "/nonexistent/kubeconfig"}
			},
			5, []string{"/nonexistent/kubeconfig", "SYNCPASS_HOST_KUBECONFIG"},
		},
		"the policy has five faults": {
			func(t *testing.T) map[string]string {
				path := filepath.Join(t.TempDir(), "policy.yaml")
				require.NoError(t, os.WriteFile(path, []byte("apiVersion: tenantplane.io/v1alpha1\nkind: SyncPolicy\nmetadata: {name: p}\nspec:\n"+
					"  conflictPolicy: newest\n  driftDetection: {interval: 30}\n  explain: {retain: -1}\n  resorces: []\n"+
					"  resources: [{apiVersion: v1, kind: ConfigMap, direction: sideways}]\n"), 0o600))
				return map[string]string{"SYNCPASS_POLICY": path}
			},
			5, []string{"spec.conflictPolicy", "spec.driftDetection.interval", "spec.explain.retain", "spec.resorces", "spec.resources[0].direction"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			layPolicy(t, s, nil)
			require.NoError(t, s.tenant.Apply(t.Context(), []byte(exampleTenant)))
			first, _ := onePass(t, s, nil)
			require.Equal(t, 4, first.Counts.Create)
			tenant, err := kubernetes.NewForConfig(s.tenant.Config)
			require.NoError(t, err)
			require.NoError(t, tenant.CoreV1().ConfigMaps("default").Delete(t.Context(), "page", metav1.DeleteOptions{}))

			env := map[string]string{"SYNCPASS_NAMESPACE": "team-dev", "SYNCPASS_TENANT": "dev"}
			for key, value := range test.given(t) {
				env[key] = value
			}
			binary := s.binary(t)
			result, err := binary.Run(s.context(t), env, "pass")
			require.NoError(t, err)
			assert.Equal(t, test.exit, result.Exit, "stderr:\n%s", result.Stderr)
			for _, text := range test.stderr {
				assert.Contains(t, string(result.Stderr), text)
			}
			for _, request := range result.Requests {
				if request.Method != http.MethodGet {
					assert.Contains(t, request.Path, "/leases", "it wrote: %s", request)
				}
			}
			mirrors, err := host.CoreV1().ConfigMaps("team-dev").List(t.Context(), metav1.ListOptions{LabelSelector: "app.kubernetes.io/managed-by=tenantplane"})
			require.NoError(t, err)
			assert.Equal(t, []string{"page-x-default-x-dev"}, namesOf(mirrors.Items), "the mirrors on the host")
		})
	}
}

func namesOf(configMaps []corev1.ConfigMap) []string {
	var names []string
	for _, configMap := range configMaps {
		names = append(names, configMap.Name)
	}
	return names
}

func withoutLine(text, start string) string {
	var kept []string
	for _, line := range strings.Split(text, "\n") {
		if !strings.HasPrefix(line, start) {
			kept = append(kept, line)
		}
	}
	return strings.Join(kept, "\n")
}
