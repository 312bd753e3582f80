package e2e

import (
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"golang.org/x/sync/errgroup"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"sigs.k8s.io/yaml"

	"github.com/syncpass/syncpass/e2e/proxy"
	"github.com/syncpass/syncpass/e2e/scenario"
	"github.com/syncpass/syncpass/pass"
)

// passOutput is what `-o json` prints.
type passOutput struct {
	Passes []pass.Result `json:"passes"`
}

// onePass runs one pass of the one tenant, which must complete.
func onePass(t *testing.T, s *surroundings, env map[string]string) (pass.Result, []proxy.Request) {
	t.Helper()
	binary := s.binary(t)
	all := map[string]string{"SYNCPASS_NAMESPACE": "team-dev", "SYNCPASS_TENANT": "dev"}
	for key, value := range env {
		all[key] = value
	}
	result, err := binary.Run(s.context(t), all, "pass", "-o", "json")
	require.NoError(t, err)
	require.Zero(t, result.Exit, "stdout:\n%s\nstderr:\n%s", result.Stdout, result.Stderr)
	var output passOutput
	require.NoError(t, json.Unmarshal(result.Stdout, &output))
	require.Len(t, output.Passes, 1)
	return output.Passes[0], result.Requests
}

// layPolicy gives both sides the surroundings of scenario files, with a policy, and cleans up after the test.
func layPolicy(t *testing.T, s *surroundings, spec scenario.Object) {
	t.Helper()
	runner := s.runner(t)
	require.NoError(t, runner.Clean(s.context(t)))
	t.Cleanup(func() { assert.NoError(t, runner.Clean(s.ctx)) })
	require.NoError(t, runner.Lay(s.context(t), spec, nil))
}

// requireNoWriteButTheLease fails on any request that could change something, the SyncDecision and Events included.
func requireNoWriteButTheLease(t *testing.T, requests []proxy.Request) {
	t.Helper()
	for _, request := range requests {
		if request.Method != http.MethodGet {
			require.Contains(t, request.Path, "/leases", "a quiet pass sent %s", request)
		}
	}
}

func TestAQuietPassOverAThousandPairsSendsFewRequests(t *testing.T) {
	const pairs, most = 1000, 40
	s := suite(t)
	layPolicy(t, s, nil)
	tenant, err := kubernetes.NewForConfig(s.tenant.Config)
	require.NoError(t, err)
	var group errgroup.Group
	group.SetLimit(16)
	for i := range pairs {
		group.Go(func() error {
			_, err := tenant.CoreV1().ConfigMaps("default").Create(t.Context(), &corev1.ConfigMap{
				ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprintf("c%04d", i)}, Data: map[string]string{"i": fmt.Sprint(i)},
			}, metav1.CreateOptions{})
			return err
		})
	}
	require.NoError(t, group.Wait())

	first, _ := onePass(t, s, nil)
	require.Equal(t, pairs, first.Counts.Create)

	quiet, requests := onePass(t, s, nil)
	require.Equal(t, pairs, quiet.Counts.Unchanged)
	require.Empty(t, quiet.Decisions)
	t.Logf("a quiet pass over %d pairs sent %d requests", pairs, len(requests))
	require.Less(t, len(requests), most)
	require.Equal(t, len(requests), quiet.Counts.Requests, "the count that the pass gives of its own requests")
	requireNoWriteButTheLease(t, requests)
}

// TestTheExamplePolicyRunsAsGiven takes the SyncPolicy out of the README, so that what a reader copies is what was run.
func TestTheExamplePolicyRunsAsGiven(t *testing.T) {
	readme, err := os.ReadFile("../README.md")
	require.NoError(t, err)
	example := regexp.MustCompile("(?s)```yaml\n(apiVersion: tenantplane.io/v1alpha1\nkind: SyncPolicy\n.*?)```").FindSubmatch(readme)
	require.NotNil(t, example, "README.md shows no SyncPolicy")
	document, _, _ := strings.Cut(string(example[1]), "\n---")
	var policy struct{ Spec scenario.Object }
	require.NoError(t, yaml.Unmarshal([]byte(document), &policy))

	s := suite(t)
	layPolicy(t, s, policy.Spec)
	require.NoError(t, s.tenant.Apply(t.Context(), []byte(exampleTenant)))
	first, _ := onePass(t, s, nil)
	require.Equal(t, 4, first.Counts.Create, "%+v", first.Decisions)
	require.Zero(t, first.Counts.Error)
	quiet, requests := onePass(t, s, nil)
	require.Empty(t, quiet.Decisions)
	requireNoWriteButTheLease(t, requests)
}

const exampleTenant = `
apiVersion: v1
kind: ConfigMap
metadata: {name: page, namespace: default}
data: {index: hello}
---
apiVersion: v1
kind: Secret
metadata: {name: db, namespace: default}
stringData: {password: hunter2}
---
apiVersion: v1
kind: Service
metadata: {name: web, namespace: default}
spec: {selector: {app: web}, ports: [{port: 80, targetPort: 8080}]}
---
apiVersion: v1
kind: Pod
metadata: {name: web, namespace: default, labels: {app: web}}
spec: {automountServiceAccountToken: false, containers: [{name: c, image: example.com/web:1}]}
`
