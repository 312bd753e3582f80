package node

import (
	"fmt"
)

// Folders and files as the node sees them. It has a /run and a /var of its own.
const (
	runFolder         = "/run/syncpass"
	binFolder         = runFolder + "/bin"
	logFolder         = runFolder + "/log"
	containerdSocket  = "/run/containerd/containerd.sock"
	containerdFile    = runFolder + "/containerd.toml"
	networkFolder     = runFolder + "/cni"
	networkFile       = networkFolder + "/10-pods.conflist"
	kubeletFile       = runFolder + "/kubelet.yaml"
	proxyFile         = runFolder + "/kube-proxy.yaml"
	kubeconfigFile    = runFolder + "/kubeconfig"
	hostAuthorityFile = runFolder + "/host-ca.crt"
	resolverFile      = runFolder + "/resolv.conf"
)

// Names of the processes, which are those of their programs.
const (
	containerd    = "containerd"
	kubelet       = "kubelet"
	kubeProxy     = "kube-proxy"
	kubeScheduler = "kube-scheduler"
)

// Components are what the node runs of Kubernetes itself. Package cluster gets them.
var Components = []string{kubeScheduler, kubelet, kubeProxy}

// snapshotter copies files. Unlike overlayfs it works in any folder, on top of
// another overlay too; images here have one file.
const snapshotter = "native"

// containerdConfig keeps containerd away from everything that outlives a mount
// namespace: it would make /opt/containerd, and load an AppArmor profile into the kernel.
// Not to lower anybody's oom_score_adj is for machines where even root may not.
func containerdConfig(plugins string) string {
	return fmt.Sprintf(`version = 2
root = "/var/lib/containerd"
state = "/run/containerd"
disabled_plugins = ["io.containerd.internal.v1.opt"]
[grpc]
  address = %q
[plugins."io.containerd.grpc.v1.cri"]
  sandbox_image = %q
  restrict_oom_score_adj = true
  disable_apparmor = true
  [plugins."io.containerd.grpc.v1.cri".containerd]
    snapshotter = %q
    default_runtime_name = "runc"
    [plugins."io.containerd.grpc.v1.cri".containerd.runtimes.runc]
      runtime_type = "io.containerd.runc.v2"
      [plugins."io.containerd.grpc.v1.cri".containerd.runtimes.runc.options]
        SystemdCgroup = false
  [plugins."io.containerd.grpc.v1.cri".cni]
    bin_dir = %q
    conf_dir = %q
`, containerdSocket, pauseImage, snapshotter, plugins, networkFolder)
}

// networkConfig gives each Pod a link of its own to the node. Without a bridge all
// traffic is routed, so that kube-proxy's rules see it, on machines without the
// kernel module br_netfilter too.
func networkConfig(pods string) string {
	return fmt.Sprintf(`{
  "cniVersion": "0.4.0",
  "name": "pods",
  "plugins": [
    {"type": "ptp", "ipMasq": true, "ipam": {
      "type": "host-local",
      "ranges": [[{"subnet": %q}]],
      "routes": [{"dst": "0.0.0.0/0"}],
      "dataDir": "/run/cni/addresses"
    }},
    {"type": "portmap", "capabilities": {"portMappings": true}}
  ]
}
`, pods)
}

// kubeletConfig turns off what would make a test depend on how full the machine is:
// evictions, and the removal of images, which cannot be pulled again.
func kubeletConfig(l link, cgroup string) string {
	return fmt.Sprintf(`apiVersion: kubelet.config.k8s.io/v1beta1
kind: KubeletConfiguration
address: %s
authentication:
  anonymous: {enabled: false}
  webhook: {enabled: true}
  x509: {clientCAFile: %s}
authorization: {mode: Webhook}
containerRuntimeEndpoint: unix://%s
cgroupDriver: cgroupfs
cgroupRoot: /%s
failCgroupV1: false
failSwapOn: false
oomScoreAdj: 0
resolvConf: %s
volumePluginDir: /var/lib/kubelet/volume-plugins
evictionHard: {imagefs.available: 0%%, nodefs.available: 0%%, nodefs.inodesFree: 0%%, memory.available: 0%%}
imageGCHighThresholdPercent: 100
`, l.nodeAddress(), hostAuthorityFile, containerdSocket, cgroup, resolverFile)
}

// proxyConfig leaves the machine's connection tracking as it is: its size is one
// for all network namespaces.
func proxyConfig(l link) string {
	return fmt.Sprintf(`apiVersion: kubeproxy.config.k8s.io/v1alpha1
kind: KubeProxyConfiguration
mode: iptables
clientConnection: {kubeconfig: %s}
clusterCIDR: %s
healthzBindAddress: %s:%d
conntrack: {maxPerCore: 0, tcpEstablishedTimeout: 0s, tcpCloseWaitTimeout: 0s}
iptables: {minSyncPeriod: 100ms}
oomScoreAdj: 0
`, kubeconfigFile, l.pods(), l.nodeAddress(), proxyHealthPort)
}

const proxyHealthPort = 10256

// sysctls are what a kubelet wants of the kernel, and would otherwise set: for the
// whole machine, and for good. The node sees files with these values instead.
// https://github.com/kubernetes/kubernetes/blob/v1.37.2/pkg/kubelet/cm/container_manager_linux.go
var sysctls = map[string]string{
	"vm/overcommit_memory":      "1",
	"vm/panic_on_oom":           "0",
	"kernel/panic":              "10",
	"kernel/panic_on_oops":      "1",
	"kernel/keys/root_maxkeys":  "1000000",
	"kernel/keys/root_maxbytes": "25000000",
}
