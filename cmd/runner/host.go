package main

import (
	"context"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/client-go/tools/pager"

	"github.com/syncpass/syncpass/pass/access"
	"github.com/syncpass/syncpass/policy"
)

// podNamespaceFile holds the namespace of the Pod that this process runs in.
const podNamespaceFile = "/var/run/secrets/kubernetes.io/serviceaccount/namespace"

// host is the way to the host cluster, and the namespace that comes with it.
type host struct {
	cluster *access.Cluster
	// namespace is that of the Pod or of the kubeconfig's context, for when none is configured.
	namespace string
}

// connectHost finds the host cluster: by the kubeconfig that is named, else as the cluster that this process runs in,
// else by KUBECONFIG or ~/.kube/config. No request is sent yet.
func connectHost(c config, userAgent string, observe access.Observe) (host, error) {
	restConfig, namespace, err := hostConfig(c.HostKubeconfig)
	if err != nil {
		return host{}, invalid(err)
	}
	cluster, err := access.NewHost(restConfig, access.Options{RequestTimeout: c.RequestTimeout, UserAgent: userAgent, Observe: observe})
	if err != nil {
		return host{}, invalid(err)
	}
	return host{cluster: cluster, namespace: namespace}, nil
}

func hostConfig(path string) (*rest.Config, string, error) {
	if path == "" {
		restConfig, err := rest.InClusterConfig()
		if err == nil {
			namespace, err := os.ReadFile(podNamespaceFile)
			if err != nil {
				return nil, "", fmt.Errorf("reading the own pod's namespace: %w: set SYNCPASS_NAMESPACE", err)
			}
			return restConfig, strings.TrimSpace(string(namespace)), nil
		}
		if !errors.Is(err, rest.ErrNotInCluster) {
			return nil, "", fmt.Errorf("host access as a pod of the host cluster: %w: mount the ServiceAccount's token, or set SYNCPASS_HOST_KUBECONFIG", err)
		}
	}
	rules := clientcmd.NewDefaultClientConfigLoadingRules()
	rules.ExplicitPath = path
	loader := clientcmd.NewNonInteractiveDeferredLoadingClientConfig(rules, &clientcmd.ConfigOverrides{})
	restConfig, err := loader.ClientConfig()
	if err != nil {
		if path != "" {
			return nil, "", fmt.Errorf("SYNCPASS_HOST_KUBECONFIG=%s: host access by kubeconfig: %w", mask(path), err)
		}
		if clientcmd.IsEmptyConfig(err) {
			return nil, "", errors.New("host access: this is no pod of a cluster, and no kubeconfig is where KUBECONFIG says, or at ~/.kube/config: set SYNCPASS_HOST_KUBECONFIG to the host cluster's kubeconfig, or correct KUBECONFIG")
		}
		return nil, "", fmt.Errorf("host access by KUBECONFIG or ~/.kube/config: %w", err)
	}
	// A context without a namespace means default, as for kubectl.
	namespace, _, err := loader.Namespace()
	return restConfig, namespace, err
}

// tenants lists the TenantClusters that this process is to look after, sorted by namespace and name.
func (h host) tenants(ctx context.Context, c config) ([]types.NamespacedName, error) {
	namespace := c.Namespace
	if namespace == "" {
		namespace = h.namespace
	}
	if c.AllNamespaces {
		namespace = metav1.NamespaceAll
	}
	found := []types.NamespacedName{{Namespace: namespace, Name: c.Tenant}}
	if c.Tenant == "" {
		var err error
		if found, err = h.list(ctx, namespace); err != nil {
			return nil, err
		}
	}
	if err := checkShared(c, found); err != nil {
		return nil, err
	}
	return slices.DeleteFunc(found, func(t types.NamespacedName) bool { return shardOf(t, c.Shards) != c.ShardIndex }), nil
}

func (h host) list(ctx context.Context, namespace string) ([]types.NamespacedName, error) {
	client := h.cluster.Dynamic().Resource(policy.TenantClusterResource).Namespace(namespace)
	var found []types.NamespacedName
	pages := pager.New(func(ctx context.Context, o metav1.ListOptions) (runtime.Object, error) { return client.List(ctx, o) })
	err := pages.EachListItem(ctx, metav1.ListOptions{}, func(o runtime.Object) error {
		tenant, ok := o.(*unstructured.Unstructured)
		if !ok {
			return fmt.Errorf("the list holds a %T", o)
		}
		found = append(found, types.NamespacedName{Namespace: tenant.GetNamespace(), Name: tenant.GetName()})
		return nil
	})
	if err != nil {
		where := "namespace " + namespace
		if namespace == metav1.NamespaceAll {
			where = "all namespaces"
		}
		err = fmt.Errorf("listing the TenantClusters of %s on the host %s: %w", where, h.cluster.Server(), err)
		switch {
		case apierrors.IsNotFound(err):
			err = fmt.Errorf("%w: does the host have the CRDs (manifests/crd)?", err)
		case apierrors.IsForbidden(err):
			err = fmt.Errorf("%w: let this user list tenantclusters there, or name one by SYNCPASS_TENANT", err)
		case apierrors.IsUnauthorized(err):
			err = fmt.Errorf("%w: renew the credentials of the host access", err)
		case access.Unreachable(err):
			err = fmt.Errorf("%w: is this the host's address (SYNCPASS_HOST_KUBECONFIG), and is it up?", err)
		}
		return nil, hostFailure(ctx, err)
	}
	// An item that moved to another page while the pages were read stands on both.
	slices.SortFunc(found, compareNames)
	return slices.Compact(found), nil
}

func compareNames(a, b types.NamespacedName) int {
	return slices.Compare([]string{a.Namespace, a.Name}, []string{b.Namespace, b.Name})
}

// checkShared refuses one kubeconfig for several tenants: they would all be the same tenant. A Secret is looked for in
// each TenantCluster's own namespace, so its name may serve one tenant in each.
func checkShared(c config, tenants []types.NamespacedName) error {
	of := map[string]types.NamespacedName{}
	for _, t := range tenants {
		source, key := "SYNCPASS_TENANT_KUBECONFIG", ""
		switch {
		case c.TenantKubeconfig != "":
		case c.TenantKubeconfigSecret != "":
			source, key = "SYNCPASS_TENANT_KUBECONFIG_SECRET", t.Namespace
		default:
			return nil
		}
		if other, taken := of[key]; taken {
			return invalid(fmt.Errorf("%s is one tenant's, and there are several TenantClusters (%s, %s): name one by SYNCPASS_TENANT, or unset it and store a Secret for each", source, other, t))
		}
		of[key] = t
	}
	return nil
}

// shardOf says which part of an Indexed Job looks after a tenant: the one that scores highest for it (rendezvous hashing,
// https://en.wikipedia.org/wiki/Rendezvous_hashing). It depends on the tenant's name alone, so that every Pod of the Job
// splits the tenants in the same way without asking the others; and where the number of parts changes, only the tenants
// move that the new part takes, or that the last one leaves behind.
func shardOf(tenant types.NamespacedName, shards int) int {
	best, highest := 0, uint64(0)
	for shard := range shards {
		digest := sha256.Sum256([]byte(strconv.Itoa(shard) + "/" + tenant.String()))
		if score := binary.BigEndian.Uint64(digest[:8]); score > highest {
			best, highest = shard, score
		}
	}
	return best
}
