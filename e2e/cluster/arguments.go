package cluster

import "strconv"

// Names of the components, which are those of their binaries.
const (
	Etcd                  = "etcd"
	KubeAPIServer         = "kube-apiserver"
	KubeControllerManager = "kube-controller-manager"
)

// ControlPlane names the binaries that a local cluster runs, in the order in
// which they are built.
var ControlPlane = []string{Etcd, KubeAPIServer, KubeControllerManager}

// Files in the folder of a local cluster.
const (
	caCertificate           = "pki/ca.crt"
	servingCertificate      = "pki/apiserver.crt"
	servingKey              = "pki/apiserver.key"
	kubeletClientCert       = "pki/apiserver-kubelet-client.crt"
	kubeletClientKey        = "pki/apiserver-kubelet-client.key"
	serviceAccountKey       = "pki/service-accounts.key"
	serviceAccountPublicKey = "pki/service-accounts.pub"
	controllersKubeconfig   = "kube-controller-manager.kubeconfig"
)

// etcdArgs lets etcd listen on Unix sockets alone: no port to clash over, and no
// other user of the machine gets past the permissions of the folder, which
// matters because this etcd asks for no credentials.
func etcdArgs(f *folder) []string {
	client, peer := "unix://"+f.path("etcd.sock"), "unix://"+f.path("peer.sock")
	return []string{
		"--name=default",
		"--data-dir=" + f.path("etcd-data"),
		"--listen-client-urls=" + client,
		"--advertise-client-urls=" + client,
		"--listen-peer-urls=" + peer,
		"--initial-advertise-peer-urls=" + peer,
		"--initial-cluster=default=" + peer,
		// The data need not survive a crash of the machine.
		"--unsafe-no-fsync=true",
		"--log-level=warn",
	}
}

func apiServerArgs(f *folder, port int, opts Options) []string {
	args := []string{
		"--etcd-servers=unix://" + f.path("etcd.sock"),
		"--secure-port=" + strconv.Itoa(port),
		"--tls-cert-file=" + f.path(servingCertificate),
		"--tls-private-key-file=" + f.path(servingKey),
		"--client-ca-file=" + f.path(caCertificate),
		// For logs, exec and port-forward, should the cluster have a node.
		"--kubelet-client-certificate=" + f.path(kubeletClientCert),
		"--kubelet-client-key=" + f.path(kubeletClientKey),
		// This machine knows no node by its name.
		"--kubelet-preferred-address-types=InternalIP",
		"--authorization-mode=Node,RBAC",
		"--service-account-issuer=https://kubernetes.default.svc.cluster.local",
		"--service-account-signing-key-file=" + f.path(serviceAccountKey),
		"--service-account-key-file=" + f.path(serviceAccountPublicKey),
		"--service-cluster-ip-range=" + opts.serviceCIDR(),
		"--allow-privileged=true",
	}
	if opts.AdvertiseAddress == "" {
		args = append(args,
			"--bind-address=127.0.0.1",
			"--advertise-address=127.0.0.1",
			// A loopback address is no valid endpoint of the Service "kubernetes", and
			// the attempt to write it would be logged as an error again and again.
			"--endpoint-reconciler-type=none")
	} else {
		args = append(args, "--bind-address=0.0.0.0", "--advertise-address="+opts.AdvertiseAddress)
	}
	return append(args, opts.APIServerArgs...)
}

func controllerManagerArgs(f *folder, opts Options) []string {
	return []string{
		"--kubeconfig=" + f.path(controllersKubeconfig),
		"--use-service-account-credentials=true",
		"--service-account-private-key-file=" + f.path(serviceAccountKey),
		"--root-ca-file=" + f.path(caCertificate),
		"--service-cluster-ip-range=" + opts.serviceCIDR(),
		"--leader-elect=false",
		// Nothing scrapes it, and one port less can clash.
		"--secure-port=0",
		// Namespace deletion and garbage collection wait on these limits in tests
		// that make and remove thousands of objects.
		"--kube-api-qps=500",
		"--kube-api-burst=1000",
	}
}
