package apply

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"sync"

	"golang.org/x/sync/errgroup"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/utils/ptr"

	"github.com/syncpass/syncpass/pass/kinds"
	"github.com/syncpass/syncpass/pass/plan"
	"github.com/syncpass/syncpass/record"
)

// nodeLeaseSeconds is what a kubelet writes into its Lease by default. It tells readers how old a Lease may be; the
// controller that watches over nodes goes by its own --node-monitor-grace-period.
const nodeLeaseSeconds = 40

var podResource = corev1.SchemeGroupVersion.WithResource("pods")

// awaitsNode leaves the binding out of a step whose stub Node could not be made, which that Node's own decision tells:
// the tenant would take a Pod on an unknown node for an orphan, and delete it. It says whether nothing is left of the step.
func awaitsNode(made map[record.Key]string, step *plan.Step) bool {
	if step.Node == "" {
		return false
	}
	if _, there := made[record.Key{Kind: "Node", Name: step.Node}]; there {
		return false
	}
	step.Then = slices.DeleteFunc(slices.Clone(step.Then), func(write plan.Write) bool { return write.Subresource == plan.Binding })
	return step.Subresource == plan.Binding
}

// bind assigns a Pod to a node, as a scheduler does, and reads what became of the Pod, which the answer does not say.
func (w *Writer) bind(ctx context.Context, side record.Side, step *plan.Step, binding *unstructured.Unstructured) (*unstructured.Unstructured, error) {
	if _, err := w.resource(side, step).Create(ctx, binding, created, plan.Binding); err != nil {
		return nil, fmt.Errorf("binding the Pod to its node in the tenant: %w", err)
	}
	bound, err := w.resource(side, step).Get(ctx, binding.GetName(), metav1.GetOptions{})
	if err != nil {
		return nil, fmt.Errorf("reading the Pod that was bound to its node: %w", err)
	}
	return bound, nil
}

// confirmEmpty asks the tenant whether no Pod is bound to a Node that is about to go.
func (w *Writer) confirmEmpty(ctx context.Context, step *plan.Step) error {
	pods, err := w.Clients[record.Tenant].Resource(podResource).List(ctx, metav1.ListOptions{
		FieldSelector: fields.OneTermEqualSelector("spec.nodeName", step.TenantName).String(), Limit: 1,
	})
	switch {
	case err != nil:
		return &unconfirmedError{record.Tenant, err}
	case len(pods.Items) > 0:
		return errStillThere
	}
	return nil
}

// createNode makes a stub Node and its first Lease. Where that fails the Node has a grace until the next pass, which
// makes the Lease, or says why it cannot.
func (w *Writer) createNode(ctx context.Context, result *Result) (*unstructured.Unstructured, error) {
	node, err := w.create(ctx, result)
	if err != nil {
		return nil, err
	}
	marks := maps.Clone(result.Step.Want.GetLabels())
	maps.DeleteFunc(marks, func(key, _ string) bool {
		return key != kinds.LabelManagedBy && key != kinds.LabelTenant && key != kinds.LabelKind
	})
	lease := leaseOf(plan.StubNode{Name: node.GetName(), UID: node.GetUID()}, marks)
	_, _ = w.Leases.Leases(corev1.NamespaceNodeLease).Create(ctx, lease, created)
	return node, nil
}

func leaseOf(node plan.StubNode, marks map[string]string) *coordinationv1.Lease {
	return &coordinationv1.Lease{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: corev1.NamespaceNodeLease, Name: node.Name, Labels: marks,
			OwnerReferences: []metav1.OwnerReference{{APIVersion: "v1", Kind: "Node", Name: node.Name, UID: node.UID}},
		},
		Spec: coordinationv1.LeaseSpec{
			HolderIdentity: ptr.To(node.Name), LeaseDurationSeconds: ptr.To[int32](nodeLeaseSeconds), RenewTime: ptr.To(metav1.NowMicro()),
		},
	}
}

// RenewLeases is the heartbeat of the tenant's stub Nodes: it renews their Leases, makes those that are missing, and
// removes ours that belong to none. A Lease that is not ours is left alone. No decision is taken with it: a heartbeat
// changes nothing that anybody asked for. The error says what could not be renewed.
func (w *Writer) RenewLeases(ctx context.Context, leases *plan.Leases) error {
	if leases == nil {
		return nil
	}
	client := w.Leases.Leases(corev1.NamespaceNodeLease)
	list, err := client.List(ctx, metav1.ListOptions{LabelSelector: labels.SelectorFromSet(leases.Labels).String()})
	if err != nil {
		return fmt.Errorf("listing the Leases of the tenant's Nodes: %w", err)
	}
	there := map[string]*coordinationv1.Lease{}
	for i := range list.Items {
		there[list.Items[i].Name] = &list.Items[i]
	}
	var lock sync.Mutex
	var errs []error
	var group errgroup.Group
	group.SetLimit(max(w.Concurrency, 1))
	write := func(name string, f func() error) {
		group.Go(func() error {
			err := w.mayWrite(ctx)
			if err == nil {
				err = f()
			}
			if err != nil {
				lock.Lock()
				defer lock.Unlock()
				errs = append(errs, fmt.Errorf("writing Lease %s/%s in the tenant: %w", corev1.NamespaceNodeLease, name, err))
			}
			return nil
		})
	}
	for _, node := range leases.Nodes {
		wanted := leaseOf(node, leases.Labels)
		current := there[node.Name]
		delete(there, node.Name)
		write(node.Name, func() error {
			if current == nil {
				_, err := client.Create(ctx, wanted, created)
				return err
			}
			renewed := current.DeepCopy()
			renewed.ManagedFields = nil
			renewed.OwnerReferences, renewed.Spec = wanted.OwnerReferences, wanted.Spec
			_, err := client.Update(ctx, renewed, updated)
			return err
		})
	}
	for _, name := range slices.Sorted(maps.Keys(there)) {
		uid := there[name].UID
		write(name, func() error {
			err := client.Delete(ctx, name, metav1.DeleteOptions{Preconditions: &metav1.Preconditions{UID: &uid}})
			if apierrors.IsNotFound(err) || apierrors.IsConflict(err) {
				return nil
			}
			return err
		})
	}
	_ = group.Wait() // the goroutines return no error
	return firstOf(errs)
}

// firstOf is one error for many of a kind, the first by text.
func firstOf(errs []error) error {
	if len(errs) == 0 {
		return nil
	}
	slices.SortFunc(errs, func(a, b error) int { return cmp.Compare(a.Error(), b.Error()) })
	if len(errs) == 1 {
		return errs[0]
	}
	return fmt.Errorf("%w; and %d more", errs[0], len(errs)-1)
}
