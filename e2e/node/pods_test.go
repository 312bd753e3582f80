package node

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	appsv1 "k8s.io/api/apps/v1"
	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/client-go/kubernetes"
	"k8s.io/utils/ptr"

	"github.com/syncpass/syncpass/e2e/cluster"
)

// podTimeout is generous: a Pod runs a second or two after it was made.
const podTimeout = 90 * time.Second

// pods are tests that run Pods in the namespace "default" of one host.
type pods struct {
	client kubernetes.Interface
	node   string
}

func newPods(t *testing.T, n *Node, host *cluster.Cluster) *pods {
	t.Helper()
	client, err := kubernetes.NewForConfig(host.Config)
	require.NoError(t, err)
	return &pods{client: client, node: n.Name}
}

// spec is a Pod that runs the tool once.
func spec(args ...string) corev1.PodSpec {
	return corev1.PodSpec{
		RestartPolicy:                 corev1.RestartPolicyNever,
		TerminationGracePeriodSeconds: ptr.To[int64](1),
		Containers:                    []corev1.Container{{Name: "tool", Image: ToolImage, ImagePullPolicy: corev1.PullNever, Args: args}},
	}
}

// server is a Pod that serves, and is ready when it does.
func server() corev1.PodSpec {
	s := spec("serve")
	s.RestartPolicy = corev1.RestartPolicyAlways
	s.Containers[0].ReadinessProbe = &corev1.Probe{PeriodSeconds: 1,
		ProbeHandler: corev1.ProbeHandler{HTTPGet: &corev1.HTTPGetAction{Path: "/", Port: intstr.FromInt32(8080)}}}
	return s
}

func (p *pods) create(t *testing.T, name string, spec corev1.PodSpec) {
	t.Helper()
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: spec}
	_, err := p.client.CoreV1().Pods("default").Create(t.Context(), pod, metav1.CreateOptions{})
	require.NoError(t, err)
}

// await polls the Pod until the condition holds.
func (p *pods) await(t *testing.T, name string, condition func(*corev1.Pod) bool) *corev1.Pod {
	t.Helper()
	var pod *corev1.Pod
	require.EventuallyWithT(t, func(t *assert.CollectT) {
		var err error
		pod, err = p.client.CoreV1().Pods("default").Get(context.Background(), name, metav1.GetOptions{})
		require.NoError(t, err)
		assert.True(t, condition(pod), "%+v", pod.Status)
	}, podTimeout, 50*time.Millisecond)
	return pod
}

func isReady(pod *corev1.Pod) bool {
	for _, condition := range pod.Status.Conditions {
		if condition.Type == corev1.PodReady {
			return condition.Status == corev1.ConditionTrue
		}
	}
	return false
}

func ended(pod *corev1.Pod) bool {
	return pod.Status.Phase == corev1.PodSucceeded || pod.Status.Phase == corev1.PodFailed
}

// output runs a Pod to its end and returns what it printed.
func (p *pods) output(t *testing.T, name string, spec corev1.PodSpec) string {
	t.Helper()
	p.create(t, name, spec)
	pod := p.await(t, name, ended)
	logs, err := p.client.CoreV1().Pods("default").GetLogs(name, &corev1.PodLogOptions{}).DoRaw(t.Context())
	require.NoError(t, err)
	require.Equal(t, corev1.PodSucceeded, pod.Status.Phase, "%s", logs)
	return strings.TrimSpace(string(logs))
}

func (p *pods) configMapVolume(t *testing.T) {
	page := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "page"}, Data: map[string]string{"index": "from a ConfigMap"}}
	_, err := p.client.CoreV1().ConfigMaps("default").Create(t.Context(), page, metav1.CreateOptions{})
	require.NoError(t, err)
	s := server()
	s.Volumes = []corev1.Volume{{Name: "page", VolumeSource: corev1.VolumeSource{
		ConfigMap: &corev1.ConfigMapVolumeSource{LocalObjectReference: corev1.LocalObjectReference{Name: "page"}}}}}
	s.Containers[0].VolumeMounts = []corev1.VolumeMount{{Name: "page", MountPath: "/pages"}}
	p.create(t, "volume", s)
	pod := p.await(t, "volume", isReady)
	assert.Equal(t, p.node, pod.Spec.NodeName)
	body, err := p.client.CoreV1().Pods("default").ProxyGet("http", "volume", "8080", "/file/pages/index", nil).DoRaw(t.Context())
	require.NoError(t, err)
	assert.Equal(t, "from a ConfigMap", string(body))
}

func (p *pods) deployment(t *testing.T) {
	labels := map[string]string{"app": "web"}
	service := &corev1.Service{ObjectMeta: metav1.ObjectMeta{Name: "web"}, Spec: corev1.ServiceSpec{Selector: labels,
		Ports: []corev1.ServicePort{{Port: 80, TargetPort: intstr.FromInt32(8080)}}}}
	service, err := p.client.CoreV1().Services("default").Create(t.Context(), service, metav1.CreateOptions{})
	require.NoError(t, err)
	template := corev1.PodTemplateSpec{ObjectMeta: metav1.ObjectMeta{Labels: labels}, Spec: server()}
	template.Spec.Containers[0].Env = []corev1.EnvVar{{Name: "PAGE", Value: "hello"}}
	web := &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Name: "web"}, Spec: appsv1.DeploymentSpec{
		Replicas: ptr.To[int32](2), Selector: &metav1.LabelSelector{MatchLabels: labels}, Template: template}}
	web, err = p.client.AppsV1().Deployments("default").Create(t.Context(), web, metav1.CreateOptions{})
	require.NoError(t, err)
	p.awaitRollout(t, web)
	assert.Equal(t, "hello", p.output(t, "first", spec("get", "http://"+service.Spec.ClusterIP)))

	web, err = p.client.AppsV1().Deployments("default").Get(t.Context(), "web", metav1.GetOptions{})
	require.NoError(t, err)
	web.Spec.Template.Spec.Containers[0].Image = NextToolImage
	web, err = p.client.AppsV1().Deployments("default").Update(t.Context(), web, metav1.UpdateOptions{})
	require.NoError(t, err)
	p.awaitRollout(t, web)
	assert.Equal(t, "hello", p.output(t, "second", spec("get", "http://"+service.Spec.ClusterIP)))
}

// awaitRollout waits until every Pod is one of the present template, and available.
func (p *pods) awaitRollout(t *testing.T, deployment *appsv1.Deployment) {
	t.Helper()
	require.EventuallyWithT(t, func(t *assert.CollectT) {
		now, err := p.client.AppsV1().Deployments("default").Get(context.Background(), deployment.Name, metav1.GetOptions{})
		require.NoError(t, err)
		s := now.Status
		assert.GreaterOrEqual(t, s.ObservedGeneration, deployment.Generation)
		assert.Equal(t, []int32{2, 2, 2}, []int32{s.Replicas, s.UpdatedReplicas, s.AvailableReplicas})
	}, podTimeout, 50*time.Millisecond)
}

func (p *pods) whoami(t *testing.T) {
	assert.Equal(t, "system:serviceaccount:default:default", p.output(t, "whoami", spec("whoami")))
}

// whoamiElsewhere gives a Pod what it takes to call the tenant's API.
func (p *pods) whoamiElsewhere(t *testing.T, tenant *cluster.Cluster) {
	client, err := kubernetes.NewForConfig(tenant.Config)
	require.NoError(t, err)
	account := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Name: "worker"}}
	_, err = client.CoreV1().ServiceAccounts("default").Create(t.Context(), account, metav1.CreateOptions{})
	require.NoError(t, err)
	token, err := client.CoreV1().ServiceAccounts("default").CreateToken(t.Context(), "worker", &authenticationv1.TokenRequest{}, metav1.CreateOptions{})
	require.NoError(t, err)
	secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: "tenant"},
		Data: map[string][]byte{"token": []byte(token.Status.Token), "ca.crt": tenant.Config.CAData}}
	_, err = p.client.CoreV1().Secrets("default").Create(t.Context(), secret, metav1.CreateOptions{})
	require.NoError(t, err)

	// The endpoints of the Service "kubernetes" are where a cluster says that it is.
	slices, err := client.DiscoveryV1().EndpointSlices("default").List(t.Context(), metav1.ListOptions{LabelSelector: "kubernetes.io/service-name=kubernetes"})
	require.NoError(t, err)
	require.Len(t, slices.Items, 1)
	address, port := slices.Items[0].Endpoints[0].Addresses[0], *slices.Items[0].Ports[0].Port
	s := spec("whoami")
	s.AutomountServiceAccountToken = ptr.To(false)
	s.Volumes = []corev1.Volume{{Name: "api", VolumeSource: corev1.VolumeSource{Secret: &corev1.SecretVolumeSource{SecretName: "tenant"}}}}
	s.Containers[0].VolumeMounts = []corev1.VolumeMount{{Name: "api", MountPath: "/var/run/secrets/kubernetes.io/serviceaccount"}}
	s.Containers[0].Env = []corev1.EnvVar{{Name: "KUBERNETES_SERVICE_HOST", Value: address}, {Name: "KUBERNETES_SERVICE_PORT", Value: fmt.Sprint(port)}}
	assert.Equal(t, "system:serviceaccount:default:worker", p.output(t, "elsewhere", s))
}

func (p *pods) exitCode(t *testing.T) {
	p.create(t, "exit", spec("exit", "3"))
	pod := p.await(t, "exit", ended)
	require.Len(t, pod.Status.ContainerStatuses, 1)
	require.NotNil(t, pod.Status.ContainerStatuses[0].State.Terminated)
	assert.EqualValues(t, 3, pod.Status.ContainerStatuses[0].State.Terminated.ExitCode)
}

func (p *pods) deletion(t *testing.T) {
	began := time.Now()
	s := spec("pause")
	// Longer than the wait below: it must be the tool that ends when told to.
	s.TerminationGracePeriodSeconds = ptr.To(int64(2 * podTimeout / time.Second))
	p.create(t, "paused", s)
	p.await(t, "paused", func(pod *corev1.Pod) bool { return pod.Status.Phase == corev1.PodRunning })
	require.NoError(t, p.client.CoreV1().Pods("default").Delete(t.Context(), "paused", metav1.DeleteOptions{}))
	require.EventuallyWithT(t, func(t *assert.CollectT) {
		_, err := p.client.CoreV1().Pods("default").Get(context.Background(), "paused", metav1.GetOptions{})
		assert.True(t, apierrors.IsNotFound(err), "%v", err)
	}, podTimeout, 50*time.Millisecond)
	t.Logf("a Pod came and went within %v", time.Since(began).Round(time.Millisecond))
}
