package node

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"strconv"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"github.com/syncpass/syncpass/e2e/cluster"
)

// requestLimit bounds one request while something is waited for.
const requestLimit = 5 * time.Second

// Join starts kubelet, kube-proxy and kube-scheduler for a cluster that was started
// with HostAddress as its AdvertiseAddress, and returns once Pods are scheduled to
// the node and find the cluster's Services. All three have the rights of
// system:masters: what a kubelet may not do is no matter of these tests.
func (n *Node) Join(ctx context.Context, host *cluster.Cluster) error {
	config, err := n.configFor(host)
	if err != nil {
		return err
	}
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		return err
	}
	if err := n.reach(ctx, client); err != nil {
		return err
	}
	kubeconfig := (&cluster.Cluster{Name: host.Name, Config: config}).Kubeconfig()
	if err := n.write(kubeconfigFile, kubeconfig); err != nil {
		return err
	}
	if err := n.write(hostAuthorityFile, config.CAData); err != nil {
		return err
	}
	for _, args := range [][]string{
		{kubelet, "--config=" + kubeletFile, "--kubeconfig=" + kubeconfigFile,
			"--hostname-override=" + n.Name, "--node-ip=" + n.link.nodeAddress()},
		{kubeProxy, "--config=" + proxyFile, "--hostname-override=" + n.Name},
		// Nothing asks it for its health: it works if Pods are bound.
		{kubeScheduler, "--kubeconfig=" + kubeconfigFile, "--leader-elect=false", "--secure-port=0"},
	} {
		if err := n.run(args[0], append([]string{binFolder + "/" + args[0]}, args[1:]...)...); err != nil {
			return err
		}
	}
	if err := n.await(ctx, kubelet, n.ready(client)); err != nil {
		return err
	}
	return n.await(ctx, kubeProxy, n.proxyReady)
}

// configFor is the access to a cluster from the node.
func (n *Node) configFor(host *cluster.Cluster) (*rest.Config, error) {
	server, err := url.Parse(host.Config.Host)
	if err != nil {
		return nil, fmt.Errorf("address of cluster %s: %w", host.Name, err)
	}
	server.Host = net.JoinHostPort(n.HostAddress, server.Port())
	config := rest.CopyConfig(host.Config)
	config.Host = server.String()
	return config, nil
}

// reach turns what would be a node that never gets ready into an error that says why.
func (n *Node) reach(ctx context.Context, client kubernetes.Interface) error {
	ctx, cancel := context.WithTimeout(ctx, requestLimit)
	defer cancel()
	endpoints, err := client.CoreV1().RESTClient().Get().AbsPath("/readyz").DoRaw(ctx)
	if err != nil {
		return fmt.Errorf("the host's API server does not answer at %s (%w: %s); start it with that as its AdvertiseAddress",
			n.HostAddress, err, endpoints)
	}
	return nil
}

// ready holds when a Pod without tolerations can be scheduled.
func (n *Node) ready(client kubernetes.Interface) func(context.Context) (bool, error) {
	return func(ctx context.Context) (bool, error) {
		ctx, cancel := context.WithTimeout(ctx, requestLimit)
		defer cancel()
		node, err := client.CoreV1().Nodes().Get(ctx, n.Name, metav1.GetOptions{})
		if err != nil || len(node.Spec.Taints) > 0 {
			return false, nil
		}
		for _, condition := range node.Status.Conditions {
			if condition.Type == corev1.NodeReady {
				return condition.Status == corev1.ConditionTrue, nil
			}
		}
		return false, nil
	}
}

// proxyReady holds when kube-proxy has written its rules for the first time.
func (n *Node) proxyReady(ctx context.Context) (bool, error) {
	ctx, cancel := context.WithTimeout(ctx, requestLimit)
	defer cancel()
	health := "http://" + net.JoinHostPort(n.link.nodeAddress(), strconv.Itoa(proxyHealthPort)) + "/healthz"
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, health, nil)
	if err != nil {
		return false, err
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return false, nil
	}
	return response.StatusCode == http.StatusOK, errors.Join(response.Body.Close())
}
