package e2e

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"

	"github.com/syncpass/syncpass/record"
)

// tokenPod mounts the token that admission injects, and one for another audience.
const tokenPod = `
apiVersion: v1
kind: ServiceAccount
metadata: {name: robot, namespace: default}
---
apiVersion: v1
kind: Pod
metadata: {name: bot, namespace: default}
spec:
  serviceAccountName: robot
  containers: [{name: c, image: "local/tool:1"}]
  volumes: [{name: sts, projected: {sources: [{serviceAccountToken: {audience: sts.example.com, expirationSeconds: 3600, path: token}}]}}]
`

// B33, B34: a token is the tenant's, for the audience and the time that were asked for, and in no annotation.
func TestAPodsTokensAreWhatItAskedFor(t *testing.T) {
	s := suite(t)
	layPolicy(t, s, nil)
	awaitServiceAccounts(t, s)
	require.NoError(t, s.tenant.Apply(t.Context(), []byte(tokenPod)))
	first, _ := onePass(t, s, nil)
	require.Equal(t, 1, first.Counts.Create, "%+v", first.Decisions)

	host := kubernetes.NewForConfigOrDie(s.host.Config)
	secrets, err := host.CoreV1().Secrets("team-dev").List(t.Context(), metav1.ListOptions{LabelSelector: "tenantplane.io/kind=pod-tokens"})
	require.NoError(t, err)
	require.Len(t, secrets.Items, 1)
	mirror, err := host.CoreV1().Pods("team-dev").Get(t.Context(), "bot-x-default-x-dev", metav1.GetOptions{})
	require.NoError(t, err)
	annotations, err := json.Marshal(mirror.Annotations)
	require.NoError(t, err)

	lifetimes := map[string]int64{}
	for key, token := range secrets.Items[0].Data {
		if !strings.HasPrefix(key, "token-") {
			continue
		}
		require.False(t, bytes.Contains(annotations, token))
		parts := strings.Split(string(token), ".")
		require.Len(t, parts, 3)
		text, err := base64.RawURLEncoding.DecodeString(parts[1])
		require.NoError(t, err)
		var claims struct {
			Audience []string `json:"aud"`
			Expires  int64    `json:"exp"`
			Issued   int64    `json:"iat"`
			Subject  string   `json:"sub"`
			Bound    struct {
				Pod struct{ Name string }
			} `json:"kubernetes.io"`
		}
		require.NoError(t, json.Unmarshal(text, &claims))
		require.Equal(t, "system:serviceaccount:default:robot", claims.Subject)
		require.Equal(t, "bot", claims.Bound.Pod.Name)
		require.Len(t, claims.Audience, 1)
		lifetimes[claims.Audience[0]] = claims.Expires - claims.Issued
	}
	require.Equal(t, map[string]int64{"sts.example.com": 3600, "https://kubernetes.default.svc.cluster.local": 24 * 60 * 60}, lifetimes)
}

// B59: each `kubectl debug` in the tenant reaches the host, with its target; then there is peace.
func TestDebugContainersCrossOneAfterTheOther(t *testing.T) {
	s := suite(t)
	layPolicy(t, s, nil)
	awaitServiceAccounts(t, s)
	require.NoError(t, s.tenant.Apply(t.Context(), []byte(tokenPod)))
	onePass(t, s, nil)
	tenant := kubernetes.NewForConfigOrDie(s.tenant.Config).CoreV1().Pods("default")
	host := kubernetes.NewForConfigOrDie(s.host.Config).CoreV1().Pods("team-dev")

	for i, name := range []string{"first", "second"} {
		pod, err := tenant.Get(t.Context(), "bot", metav1.GetOptions{})
		require.NoError(t, err)
		pod.Spec.EphemeralContainers = append(pod.Spec.EphemeralContainers, corev1.EphemeralContainer{
			EphemeralContainerCommon: corev1.EphemeralContainerCommon{Name: name, Image: "local/tool:1"}, TargetContainerName: "c",
		})
		_, err = tenant.UpdateEphemeralContainers(t.Context(), "bot", pod, metav1.UpdateOptions{})
		require.NoError(t, err)
		result, _ := onePass(t, s, nil)
		require.Len(t, result.Decisions, 1)
		require.Contains(t, result.Decisions[0].Fields, "spec.ephemeralContainers")
		mirror, err := host.Get(t.Context(), "bot-x-default-x-dev", metav1.GetOptions{})
		require.NoError(t, err)
		require.Len(t, mirror.Spec.EphemeralContainers, i+1)
		require.Equal(t, name, mirror.Spec.EphemeralContainers[i].Name)
		require.Equal(t, "c", mirror.Spec.EphemeralContainers[i].TargetContainerName)
		requireQuiet(t, s)
	}
}

// requireQuiet makes a pass that has nothing to do.
func requireQuiet(t *testing.T, s *surroundings) {
	t.Helper()
	result, requests := onePass(t, s, nil)
	require.Empty(t, result.Decisions)
	requireNoWriteButTheLease(t, requests)
}

// A resize goes through a subresource too, and needs a Pod that has requests.
func TestAResizeCrosses(t *testing.T) {
	s := suite(t)
	layPolicy(t, s, nil)
	awaitServiceAccounts(t, s)
	require.NoError(t, s.tenant.Apply(t.Context(), []byte(strings.Replace(tokenPod, `"local/tool:1"`, `"local/tool:1", resources: {requests: {cpu: 100m}}`, 1))))
	onePass(t, s, nil)
	tenant := kubernetes.NewForConfigOrDie(s.tenant.Config).CoreV1().Pods("default")
	pod, err := tenant.Get(t.Context(), "bot", metav1.GetOptions{})
	require.NoError(t, err)
	pod.Spec.Containers[0].Resources.Requests[corev1.ResourceCPU] = resource.MustParse("0.2")
	_, err = tenant.UpdateResize(t.Context(), "bot", pod, metav1.UpdateOptions{})
	require.NoError(t, err)
	onePass(t, s, nil)
	mirror, err := kubernetes.NewForConfigOrDie(s.host.Config).CoreV1().Pods("team-dev").Get(t.Context(), "bot-x-default-x-dev", metav1.GetOptions{})
	require.NoError(t, err)
	require.Equal(t, "200m", mirror.Spec.Containers[0].Resources.Requests.Cpu().String())
	requireQuiet(t, s)
}

// B65: what is as large as the API takes crosses without what it need not carry along; what is a little too large for a
// mirror with its marks is refused by itself.
func TestTheLargestObjectsCross(t *testing.T) {
	s := suite(t)
	layPolicy(t, s, nil)
	tenant := kubernetes.NewForConfigOrDie(s.tenant.Config).CoreV1()
	host := kubernetes.NewForConfigOrDie(s.host.Config).CoreV1()
	const annotationsLimit = 256 << 10
	bulk := bytes.Repeat([]byte{0xff, 0, 'x', '\n'}, 1000*1000/4)
	_, err := tenant.Secrets("default").Create(t.Context(), &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Name: "large", Annotations: map[string]string{corev1.LastAppliedConfigAnnotation: strings.Repeat("s", 200<<10)}},
		Data:       map[string][]byte{"bulk": bulk},
	}, metav1.CreateOptions{})
	require.NoError(t, err)
	_, err = tenant.ConfigMaps("default").Create(t.Context(), &corev1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{Name: "annotated", Annotations: map[string]string{"note": strings.Repeat("n", annotationsLimit-len("note"))}},
	}, metav1.CreateOptions{})
	require.NoError(t, err)

	binary := s.binary(t)
	result, err := binary.Run(s.context(t), map[string]string{"SYNCPASS_NAMESPACE": "team-dev", "SYNCPASS_TENANT": "dev"}, "pass", "-o", "json")
	require.NoError(t, err)
	require.Equal(t, 3, result.Exit, "stderr:\n%s", result.Stderr)
	var output passOutput
	require.NoError(t, json.Unmarshal(result.Stdout, &output))
	decisions := output.Passes[0].Decisions
	at := slices.IndexFunc(decisions, func(d record.Decision) bool { return d.Kind == "ConfigMap" })
	require.Equal(t, record.Rejected, decisions[at].Reason)
	require.Contains(t, decisions[at].Error, "annotations")

	mirror, err := host.Secrets("team-dev").Get(t.Context(), "large-x-default-x-dev", metav1.GetOptions{})
	require.NoError(t, err)
	require.Equal(t, bulk, mirror.Data["bulk"])
	require.NotContains(t, mirror.Annotations, corev1.LastAppliedConfigAnnotation)
	require.Less(t, len(result.Stdout), 64<<10, "no content is told")
}
