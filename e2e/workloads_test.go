package e2e

import (
	"context"
	"io"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
)

// tenantWorkloads are what a tenant creates with plain kubectl.
const tenantWorkloads = `
apiVersion: v1
kind: ServiceAccount
metadata: {name: robot, namespace: default}
---
apiVersion: v1
kind: Service
metadata: {name: web, namespace: default}
spec: {clusterIP: None, selector: {app: web}, ports: [{port: 8080}]}
---
apiVersion: apps/v1
kind: StatefulSet
metadata: {name: web, namespace: default}
spec:
  replicas: 1
  serviceName: web
  selector: {matchLabels: {app: web}}
  template:
    metadata: {labels: {app: web}}
    spec:
      terminationGracePeriodSeconds: 1
      containers: [{name: c, image: "docker.io/local/tool:1", imagePullPolicy: Never, args: [serve], readinessProbe: {periodSeconds: 1, httpGet: {port: 8080, path: /}}}]
---
apiVersion: batch/v1
kind: Job
metadata: {name: once, namespace: default}
spec:
  template:
    spec:
      restartPolicy: Never
      containers: [{name: c, image: "docker.io/local/tool:1", imagePullPolicy: Never, args: [exit, "0"]}]
---
apiVersion: v1
kind: Pod
metadata: {name: bot, namespace: default}
spec:
  serviceAccountName: robot
  restartPolicy: Never
  containers: [{name: c, image: "docker.io/local/tool:1", imagePullPolicy: Never, args: [whoami]}]
`

// TestATenantsWorkloadsRunOnANode runs a StatefulSet, a Job and a Pod that calls the tenant's API on a host node, one pass
// after the other, and looks at them from the tenant.
func TestATenantsWorkloadsRunOnANode(t *testing.T) {
	s := nodeSuite(t)
	layPolicy(t, s, nil)
	ctx := s.context(t)
	host, tenant := s.clients(t)
	// The ServiceAccount controller makes `default` in its own time, and a Pod needs it.
	passUntil(t, s, nil, "the namespaces have their ServiceAccounts", func() bool {
		_, inTenant := tenant.CoreV1().ServiceAccounts("default").Get(ctx, "default", metav1.GetOptions{})
		_, onHost := host.CoreV1().ServiceAccounts("team-dev").Get(ctx, "default", metav1.GetOptions{})
		return inTenant == nil && onHost == nil
	})
	require.NoError(t, s.tenant.Apply(ctx, []byte(tenantWorkloads)))
	pods := tenant.CoreV1().Pods("default")

	passUntil(t, s, nil, "the Job has succeeded, the StatefulSet is ready, the Pod has asked", func() bool {
		job, err := tenant.BatchV1().Jobs("default").Get(ctx, "once", metav1.GetOptions{})
		require.NoError(t, err)
		set, err := tenant.AppsV1().StatefulSets("default").Get(ctx, "web", metav1.GetOptions{})
		require.NoError(t, err)
		bot, err := pods.Get(ctx, "bot", metav1.GetOptions{})
		require.NoError(t, err)
		if bot.Status.Phase == corev1.PodFailed {
			require.FailNow(t, "the Pod could not ask the tenant's API server", "it said: %s", logs(t, host, "bot-x-default-x-dev"))
		}
		return job.Status.Succeeded == 1 && set.Status.ReadyReplicas == 1 && bot.Status.Phase == corev1.PodSucceeded
	})
	assert.Equal(t, "system:serviceaccount:default:robot", strings.TrimSpace(logs(t, host, "bot-x-default-x-dev")),
		"who the Pod is to the tenant's API server")
	requireTokensRefusedByHost(t, s, host)

	first, err := pods.Get(ctx, "web-0", metav1.GetOptions{})
	require.NoError(t, err)
	require.NoError(t, pods.Delete(ctx, "web-0", metav1.DeleteOptions{}))
	passUntil(t, s, nil, "the StatefulSet's Pod was replaced and is ready", func() bool {
		pod, err := pods.Get(ctx, "web-0", metav1.GetOptions{})
		return err == nil && pod.UID != first.UID && ready(pod)
	})
	mirror, err := host.CoreV1().Pods("team-dev").Get(ctx, "web-0-x-default-x-dev", metav1.GetOptions{})
	require.NoError(t, err)
	assert.Equal(t, "web-0", mirror.Spec.Hostname)

	foreground := metav1.DeletePropagationForeground
	require.NoError(t, tenant.AppsV1().StatefulSets("default").Delete(ctx, "web", metav1.DeleteOptions{PropagationPolicy: &foreground}))
	require.NoError(t, tenant.BatchV1().Jobs("default").Delete(ctx, "once", metav1.DeleteOptions{PropagationPolicy: &foreground}))
	require.NoError(t, pods.Delete(ctx, "bot", metav1.DeleteOptions{}))
	passUntil(t, s, nil, "the containers have ended with their objects", func() bool {
		left, err := host.CoreV1().Pods("team-dev").List(ctx, metav1.ListOptions{})
		require.NoError(t, err)
		return len(left.Items) == 0
	})
}

// tenantService is a Deployment behind a Service, and tenantCaller a Pod that finds it by its environment.
const tenantService = `
apiVersion: v1
kind: ConfigMap
metadata: {name: page, namespace: default}
data: {index: hello from the tenant}
---
apiVersion: v1
kind: Service
metadata: {name: api, namespace: default}
spec: {selector: {app: api}, ports: [{port: 80, targetPort: 8080}]}
---
apiVersion: apps/v1
kind: Deployment
metadata: {name: api, namespace: default}
spec:
  replicas: 2
  selector: {matchLabels: {app: api}}
  template:
    metadata: {labels: {app: api}}
    spec:
      terminationGracePeriodSeconds: 1
      containers: [{name: c, image: "docker.io/local/tool:1", imagePullPolicy: Never, args: [serve], env: [{name: PAGE, valueFrom: {configMapKeyRef: {name: page, key: index}}}], readinessProbe: {periodSeconds: 1, httpGet: {port: 8080, path: /}}}]
`

const tenantCaller = `
apiVersion: v1
kind: Pod
metadata: {name: caller, namespace: default}
spec:
  restartPolicy: Never
  containers: [{name: c, image: "docker.io/local/tool:1", imagePullPolicy: Never, args: [get, "http://$(API_SERVICE_HOST):$(API_SERVICE_PORT)/"]}]
`

// TestATenantsServiceAnswersOnANode calls a Deployment through the mirror of its Service, and rolls it over.
func TestATenantsServiceAnswersOnANode(t *testing.T) {
	s := nodeSuite(t)
	layPolicy(t, s, nil)
	ctx := s.context(t)
	host, tenant := s.clients(t)
	require.NoError(t, s.tenant.Apply(ctx, []byte(tenantService)))
	deployments := tenant.AppsV1().Deployments("default")
	passUntil(t, s, nil, "both replicas are available", func() bool {
		api, err := deployments.Get(ctx, "api", metav1.GetOptions{})
		require.NoError(t, err)
		return api.Status.AvailableReplicas == 2
	})

	require.NoError(t, s.tenant.Apply(ctx, []byte(tenantCaller)))
	passUntil(t, s, nil, "the caller has ended", func() bool {
		caller, err := tenant.CoreV1().Pods("default").Get(ctx, "caller", metav1.GetOptions{})
		require.NoError(t, err)
		return caller.Status.Phase == corev1.PodSucceeded || caller.Status.Phase == corev1.PodFailed
	})
	assert.Equal(t, "hello from the tenant", strings.TrimSpace(logs(t, host, "caller-x-default-x-dev")))

	_, err := deployments.Patch(ctx, "api", types.StrategicMergePatchType,
		[]byte(`{"spec":{"template":{"spec":{"containers":[{"name":"c","image":"docker.io/local/tool:2"}]}}}}`), metav1.PatchOptions{})
	require.NoError(t, err)
	passUntil(t, s, nil, "the rolling update has finished", func() bool {
		api, err := deployments.Get(ctx, "api", metav1.GetOptions{})
		require.NoError(t, err)
		return api.Status.ObservedGeneration == api.Generation && api.Status.UpdatedReplicas == 2 &&
			api.Status.AvailableReplicas == 2 && api.Status.Replicas == 2
	})
}

// passUntil makes passes until a condition holds, as a schedule would.
func passUntil(t *testing.T, s *surroundings, env map[string]string, what string, holds func() bool) {
	t.Helper()
	const most = 2 * time.Minute
	for end := time.Now().Add(most); !holds(); {
		require.True(t, time.Now().Before(end), "not within %s: %s", most, what)
		onePass(t, s, env)
	}
}

func ready(pod *corev1.Pod) bool {
	for _, condition := range pod.Status.Conditions {
		if condition.Type == corev1.PodReady {
			return condition.Status == corev1.ConditionTrue
		}
	}
	return false
}

func logs(t *testing.T, host kubernetes.Interface, pod string) string {
	t.Helper()
	stream, err := host.CoreV1().Pods("team-dev").GetLogs(pod, &corev1.PodLogOptions{}).Stream(context.Background())
	require.NoError(t, err)
	defer stream.Close()
	text, err := io.ReadAll(stream)
	require.NoError(t, err)
	return string(text)
}

// requireTokensRefusedByHost shows that what a mirrored Pod mounts opens nothing on the host.
func requireTokensRefusedByHost(t *testing.T, s *surroundings, host kubernetes.Interface) {
	t.Helper()
	secrets, err := host.CoreV1().Secrets("team-dev").List(t.Context(), metav1.ListOptions{LabelSelector: "tenantplane.io/kind=pod-tokens"})
	require.NoError(t, err)
	require.NotEmpty(t, secrets.Items)
	for _, secret := range secrets.Items {
		config := rest.AnonymousClientConfig(s.host.Config)
		config.BearerToken = string(secret.Data["token-0"])
		require.NotEmpty(t, config.BearerToken)
		stranger, err := kubernetes.NewForConfig(config)
		require.NoError(t, err)
		_, err = stranger.CoreV1().Namespaces().Get(t.Context(), "team-dev", metav1.GetOptions{})
		require.True(t, apierrors.IsUnauthorized(err), "the host answers a tenant's token with %v", err)
	}
}
