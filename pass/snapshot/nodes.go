package snapshot

import (
	"context"
	"fmt"
	"slices"
	"sync"

	"golang.org/x/sync/errgroup"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/syncpass/syncpass/pass/plan"
	"github.com/syncpass/syncpass/record"
)

var nodeKind = corev1.SchemeGroupVersion.WithKind("Node")

// nodesAtOnce is how many host nodes are read side by side.
const nodesAtOnce = 8

func isNode(k *plan.KindSnapshot) bool {
	return schema.FromAPIVersionAndKind(k.Resource.APIVersion, k.Resource.Kind) == nodeKind
}

// readNodes reads the tenant's Nodes, and of the host's those alone that mirrors of this tenant are on, one by one: the
// others are none of its business, and the right to list them is not needed. It comes after the Pods, which tell.
func readNodes(ctx context.Context, r Request, all []plan.KindSnapshot, resources Resources) error {
	at := slices.IndexFunc(all, func(k plan.KindSnapshot) bool { return isNode(&k) })
	if at < 0 || all[at].Unavailable != "" {
		return nil
	}
	k := &all[at]
	found, err := collection{
		client: r.Tenant.Discovery().RESTClient(), resource: resources[record.Tenant][nodeKind], kind: nodeKind.Kind, left: r.left,
	}.all(ctx)
	if err != nil {
		return failed(k, record.Tenant, err)
	}
	k.Tenant, k.Malformed = found.objects, found.malformed
	if k.Retired {
		return nil
	}
	pods, cause := podsOf(all)
	if k.Unavailable = cause; cause != "" {
		return nil
	}
	return readHostNodes(ctx, r, k, r.Mapping.NodesOf(pods), resources)
}

// podsOf are the host's Pods, or the reason why nobody can tell which nodes mirrors are on.
func podsOf(all []plan.KindSnapshot) (pods []*unstructured.Unstructured, cause string) {
	at := slices.IndexFunc(all, func(k plan.KindSnapshot) bool {
		return k.Resource.APIVersion == "v1" && k.Resource.Kind == "Pod" && !k.Retired
	})
	switch {
	case at < 0:
		return nil, "a Node is shown where a Pod of the tenant runs, and the policy has no Pods"
	case all[at].Unavailable != "":
		return nil, "a Node is shown where a Pod of the tenant runs, and of the Pods is known: " + all[at].Unavailable
	}
	return all[at].Host, ""
}

// readHostNodes reads nodes by name. One that is gone is left out: its Pods will be, too. What the tenant has is kept
// where the host refuses, since its stubs live on all the same.
func readHostNodes(ctx context.Context, r Request, k *plan.KindSnapshot, names []string, resources Resources) error {
	client := r.Host.Dynamic().Resource(resources[record.Host][nodeKind])
	group, groupCtx := errgroup.WithContext(ctx)
	group.SetLimit(nodesAtOnce)
	var lock sync.Mutex
	for _, name := range names {
		group.Go(func() error {
			node, err := client.Get(groupCtx, name, metav1.GetOptions{})
			if apierrors.IsNotFound(err) && !apierrors.IsUnexpectedServerError(err) {
				return nil
			}
			if err != nil {
				return fmt.Errorf("reading Node %s: %w", name, err)
			}
			lock.Lock()
			defer lock.Unlock()
			k.Host = append(k.Host, node)
			return nil
		})
	}
	if err := group.Wait(); err != nil {
		stubs := k.Tenant
		if unreachable := failed(k, record.Host, err); unreachable != nil {
			return unreachable
		}
		k.Tenant = stubs
		k.Unavailable = "reading the nodes of the host that Pods of the tenant run on failed"
		if apierrors.IsForbidden(err) {
			k.Unavailable += " (manifests/nodes grants it)"
		}
	}
	return nil
}
