package e2e

import (
	"context"
	"fmt"
	"net/url"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"

	"github.com/syncpass/syncpass/e2e/cluster"
	"github.com/syncpass/syncpass/e2e/node"
)

// coreDNSImage is CoreDNS without a user, like the host's; manifests/tenant-dns sets its own.
const coreDNSImage = "docker.io/local/coredns:e2e"

// clusterDNS is the host's own DNS, which a cluster has and control planes alone have not.
const clusterDNS = `
apiVersion: v1
kind: ServiceAccount
metadata: {name: cluster-dns, namespace: kube-system}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRole
metadata: {name: e2e-cluster-dns}
rules:
  - {apiGroups: [""], resources: [services, namespaces], verbs: [list, watch]}
  - {apiGroups: [discovery.k8s.io], resources: [endpointslices], verbs: [list, watch]}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRoleBinding
metadata: {name: e2e-cluster-dns}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: e2e-cluster-dns}
subjects: [{kind: ServiceAccount, name: cluster-dns, namespace: kube-system}]
---
apiVersion: v1
kind: ConfigMap
metadata: {name: cluster-dns, namespace: kube-system}
data: {Corefile: ".:53 {\n    errors\n    ready\n    kubernetes cluster.local in-addr.arpa ip6.arpa\n}\n"}
---
apiVersion: v1
kind: Service
metadata: {name: cluster-dns, namespace: kube-system}
spec:
  selector: {app: cluster-dns}
  ports: [{name: dns, port: 53, protocol: UDP}, {name: dns-tcp, port: 53, protocol: TCP}]
---
apiVersion: apps/v1
kind: Deployment
metadata: {name: cluster-dns, namespace: kube-system}
spec:
  selector: {matchLabels: {app: cluster-dns}}
  template:
    metadata: {labels: {app: cluster-dns}}
    spec:
      serviceAccountName: cluster-dns
      terminationGracePeriodSeconds: 1
      volumes: [{name: config, configMap: {name: cluster-dns}}]
      containers:
        - name: c
          image: docker.io/local/coredns:e2e
          imagePullPolicy: Never
          args: [-conf, /config/Corefile]
          volumeMounts: [{name: config, mountPath: /config}]
          readinessProbe: {periodSeconds: 1, httpGet: {port: 8181, path: /ready}}
`

// startClusterDNS starts the host's DNS and returns its address.
func startClusterDNS(t *testing.T, s *surroundings, host kubernetes.Interface) string {
	t.Helper()
	ctx := s.context(t)
	binaries, err := cluster.Binaries(ctx, os.Stderr, cluster.CoreDNS)
	require.NoError(t, err)
	require.NoError(t, s.node.ImportImage(ctx, node.Image{Name: coreDNSImage, Binary: binaries[cluster.CoreDNS], Path: "/coredns"}))
	require.NoError(t, s.host.Apply(ctx, []byte(clusterDNS)))
	t.Cleanup(func() {
		// No cleaning of scenarios touches a namespace of the system.
		ctx, background := context.WithoutCancel(t.Context()), metav1.DeletePropagationForeground
		options := metav1.DeleteOptions{PropagationPolicy: &background}
		assert.NoError(t, host.AppsV1().Deployments("kube-system").Delete(ctx, "cluster-dns", options))
		assert.NoError(t, host.CoreV1().Services("kube-system").Delete(ctx, "cluster-dns", options))
		assert.NoError(t, host.CoreV1().ConfigMaps("kube-system").Delete(ctx, "cluster-dns", options))
		assert.NoError(t, host.CoreV1().ServiceAccounts("kube-system").Delete(ctx, "cluster-dns", options))
		assert.NoError(t, host.RbacV1().ClusterRoleBindings().Delete(ctx, "e2e-cluster-dns", options))
		assert.NoError(t, host.RbacV1().ClusterRoles().Delete(ctx, "e2e-cluster-dns", options))
	})
	service, err := host.CoreV1().Services("kube-system").Get(ctx, "cluster-dns", metav1.GetOptions{})
	require.NoError(t, err)
	return service.Spec.ClusterIP
}

// tenantDNS is an overlay as in manifests/tenant-dns/kustomization.yaml, for a node that has one image and no registry, and
// whose Pods are not told of a cluster DNS.
const tenantDNS = `
namespace: team-dev
configMapGenerator: [{name: syncpass-settings, literals: [SYNCPASS_TENANT=dev]}]
images: [{name: registry.k8s.io/coredns/coredns, newName: docker.io/local/coredns, newTag: e2e}]
patches:
  - target: {kind: Deployment, name: tenant-dns}
    patch: |
      - {op: replace, path: /spec/template/spec/containers/0/imagePullPolicy, value: Never}
      - {op: replace, path: /spec/template/spec/containers/0/readinessProbe/periodSeconds, value: 1}
      - {op: add, path: /spec/template/spec/dnsPolicy, value: None}
      - {op: add, path: /spec/template/spec/dnsConfig, value: {nameservers: [%s]}}
`

// startTenantDNSPods installs manifests/tenant-dns and returns the address of its Service once it answers.
func startTenantDNSPods(t *testing.T, s *surroundings, host kubernetes.Interface, upstream string) string {
	t.Helper()
	ctx := s.context(t)
	objects := renderDNS(t, fmt.Sprintf(tenantDNS, upstream))
	for _, object := range objects {
		require.NoError(t, strictCreate(t, s.host.Config, object))
	}
	replicas := *find[appsv1.Deployment](t, objects, "Deployment").Spec.Replicas
	require.EventuallyWithT(t, func(t *assert.CollectT) {
		for namespace, name := range map[string]string{"kube-system": "cluster-dns", "team-dev": "tenant-dns"} {
			deployment, err := host.AppsV1().Deployments(namespace).Get(ctx, name, metav1.GetOptions{})
			require.NoError(t, err)
			assert.Positive(t, deployment.Status.AvailableReplicas, "%s: %+v", name, deployment.Status)
			assert.True(t, name != "tenant-dns" || deployment.Status.AvailableReplicas == replicas, "%+v", deployment.Status)
		}
	}, 90*time.Second, 100*time.Millisecond)
	service, err := host.CoreV1().Services("team-dev").Get(ctx, "tenant-dns", metav1.GetOptions{})
	require.NoError(t, err)
	return service.Spec.ClusterIP
}

// tenantAPIService makes the tenant's API server known to its Pods as kubernetes.default.svc.
const tenantAPIService = `
apiVersion: v1
kind: Service
metadata: {name: kubernetes-x-default-x-dev, namespace: team-dev}
spec: {ports: [{name: https, port: 443}]}
---
apiVersion: discovery.k8s.io/v1
kind: EndpointSlice
metadata: {name: kubernetes-x-default-x-dev, namespace: team-dev, labels: {kubernetes.io/service-name: kubernetes-x-default-x-dev}}
addressType: IPv4
ports: [{name: https, port: %s}]
endpoints: [{addresses: [%s]}]
`

const longService = "the-web-server-of-the-department-for-everything-else"

// tenantNames are Services whose names do not lead to a mirror of the plain name, or do so by way of another.
const tenantNames = `
apiVersion: v1
kind: Service
metadata: {name: ` + longService + `, namespace: default}
spec: {selector: {app: api}, ports: [{port: 80, targetPort: 8080}]}
---
apiVersion: v1
kind: Service
metadata: {name: department, namespace: default}
spec: {type: ExternalName, externalName: ` + longService + `.default.svc.cluster.local}
`

// tenantAsker has a container for every question that has an answer.
const tenantAsker = `
apiVersion: v1
kind: Pod
metadata: {name: asker, namespace: default}
spec:
  serviceAccountName: robot
  restartPolicy: Never
  containers:
    - {name: whole, image: "docker.io/local/tool:1", imagePullPolicy: Never, args: [resolve, api.default.svc.cluster.local]}
    - {name: short, image: "docker.io/local/tool:1", imagePullPolicy: Never, args: [resolve, api]}
    - {name: pod, image: "docker.io/local/tool:1", imagePullPolicy: Never, args: [resolve, web-0.web.default.svc.cluster.local]}
    - {name: external, image: "docker.io/local/tool:1", imagePullPolicy: Never, args: [resolve, department]}
    - {name: page, image: "docker.io/local/tool:1", imagePullPolicy: Never, args: [get, "http://api.default/"]}
    - {name: hostname, image: "docker.io/local/tool:1", imagePullPolicy: Never, args: [get, "http://web-0.web:8080/hostname"]}
    - {name: whoami, image: "docker.io/local/tool:1", imagePullPolicy: Never, args: [whoami], env: [{name: KUBERNETES_SERVICE_HOST, value: kubernetes.default.svc}, {name: KUBERNETES_SERVICE_PORT, value: "443"}]}
---
apiVersion: v1
kind: Pod
metadata: {name: stranger, namespace: default}
spec:
  restartPolicy: Never
  containers:
    - {name: long, image: "docker.io/local/tool:1", imagePullPolicy: Never, args: [resolve, ` + longService + `.default.svc.cluster.local]}
    - {name: host, image: "docker.io/local/tool:1", imagePullPolicy: Never, args: [resolve, cluster-dns.kube-system.svc.cluster.local]}
`

// TestATenantsPodsFindItsServicesByName runs the DNS of manifests/tenant-dns on a host node beside the host's own, and has
// Pods of the tenant ask it.
func TestATenantsPodsFindItsServicesByName(t *testing.T) {
	s := nodeSuite(t)
	layPolicy(t, s, nil)
	ctx := s.context(t)
	host, tenant := s.clients(t)
	require.EventuallyWithT(t, func(t *assert.CollectT) {
		for _, namespace := range []string{"kube-system", "team-dev"} {
			_, err := host.CoreV1().ServiceAccounts(namespace).Get(ctx, "default", metav1.GetOptions{})
			assert.NoError(t, err)
		}
		_, err := tenant.CoreV1().ServiceAccounts("default").Get(ctx, "default", metav1.GetOptions{})
		assert.NoError(t, err)
	}, 30*time.Second, 50*time.Millisecond)
	env := map[string]string{"SYNCPASS_TENANT_DNS": startTenantDNSPods(t, s, host, startClusterDNS(t, s, host))}
	server, err := url.Parse(s.tenant.Config.Host)
	require.NoError(t, err)
	require.NoError(t, s.host.Apply(ctx, fmt.Appendf(nil, tenantAPIService, server.Port(), s.node.HostAddress)))

	pods := tenant.CoreV1().Pods("default")
	for _, objects := range []string{tenantWorkloads, tenantService, tenantNames} {
		require.NoError(t, s.tenant.Apply(ctx, []byte(objects)))
	}
	passUntil(t, s, env, "the StatefulSet and the Deployment are ready", func() bool {
		set, err := tenant.AppsV1().StatefulSets("default").Get(ctx, "web", metav1.GetOptions{})
		require.NoError(t, err)
		api, err := tenant.AppsV1().Deployments("default").Get(ctx, "api", metav1.GetOptions{})
		require.NoError(t, err)
		return set.Status.ReadyReplicas == 1 && api.Status.AvailableReplicas == 2
	})
	require.NoError(t, s.tenant.Apply(ctx, []byte(tenantAsker)))
	passUntil(t, s, env, "all questions are answered", func() bool {
		for _, name := range []string{"asker", "stranger"} {
			pod, err := pods.Get(ctx, name, metav1.GetOptions{})
			require.NoError(t, err)
			if pod.Status.Phase != corev1.PodSucceeded && pod.Status.Phase != corev1.PodFailed {
				return false
			}
		}
		return true
	})

	addressOf := func(service string) string {
		mirror, err := host.CoreV1().Services("team-dev").Get(ctx, service, metav1.GetOptions{})
		require.NoError(t, err)
		return mirror.Spec.ClusterIP
	}
	long, err := host.CoreV1().Services("team-dev").List(ctx, metav1.ListOptions{})
	require.NoError(t, err)
	var longAddress string
	for _, service := range long.Items {
		if service.Annotations["tenantplane.io/virtual-name"] == longService {
			longAddress = service.Spec.ClusterIP
		}
	}
	web, err := host.CoreV1().Pods("team-dev").Get(ctx, "web-0-x-default-x-dev", metav1.GetOptions{})
	require.NoError(t, err)
	for container, want := range map[string]string{
		"whole": addressOf("api-x-default-x-dev"), "short": addressOf("api-x-default-x-dev"),
		"pod": web.Status.PodIP, "external": longAddress, "page": "hello from the tenant", "hostname": "web-0",
		"whoami": "system:serviceaccount:default:robot",
	} {
		assert.Equal(t, want, containerLogs(t, host, "asker-x-default-x-dev", container), "container %s", container)
	}
	for _, container := range []string{"long", "host"} {
		assert.Contains(t, containerLogs(t, host, "stranger-x-default-x-dev", container), "no such host", "container %s", container)
	}
}

func containerLogs(t *testing.T, host kubernetes.Interface, pod, container string) string {
	t.Helper()
	text, err := host.CoreV1().Pods("team-dev").GetLogs(pod, &corev1.PodLogOptions{Container: container}).DoRaw(t.Context())
	require.NoError(t, err)
	return strings.TrimSpace(string(text))
}
