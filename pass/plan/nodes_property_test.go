package plan_test

import (
	"fmt"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"pgregory.net/rapid"

	"github.com/syncpass/syncpass/pass/kinds"
	"github.com/syncpass/syncpass/pass/plan"
	"github.com/syncpass/syncpass/record"
)

// Whatever there is: no Node without our marks is ever written, none that runs a Pod is deleted, no Pod is bound to what is
// not there, and every object ends in one place.
func TestWhatNoPlanEverDoesToNodes(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		w := newNodeWorld()
		w.malformed = map[types.NamespacedName]string{}
		names := []string{"n1", "n2", "n3", "n4"}
		owned, terminates := map[string]bool{}, map[string]bool{}
		for _, name := range names {
			node := w.node(name)
			switch rapid.SampledFrom([]string{"none", "ours", "changed", "foreign", "other tenant's", "terminating", "malformed"}).Draw(t, "stub") {
			case "ours":
				w.stub(node)
				owned[name] = true
			case "changed":
				w.stub(node, ready("Unknown"), label("kubernetes.io/hostname", "other"))
				owned[name] = true
			case "foreign":
				w.stub(node, unmarked)
			case "other tenant's":
				w.stub(node, label(kinds.LabelTenant, "other"))
			case "terminating":
				w.stub(node, terminating)
				owned[name], terminates[name] = true, true
			case "malformed":
				w.malformed[types.NamespacedName{Name: name}] = "it has no uid"
			}
			if rapid.Bool().Draw(t, "gone on the host") {
				w.hostNodes = w.hostNodes[:len(w.hostNodes)-1]
			}
		}
		if rapid.Bool().Draw(t, "history lost") {
			w.history = record.NewHistory(hasher.KeyID())
		}
		used := map[string]bool{}
		for i := range rapid.IntRange(0, 6).Draw(t, "pods") {
			tenantNode := rapid.SampledFrom(append([]string{""}, names...)).Draw(t, "tenant node")
			hostNode := rapid.SampledFrom(append([]string{"", "-"}, names...)).Draw(t, "host node")
			w.pod(fmt.Sprint("pod-", i), tenantNode, hostNode, phase(rapid.SampledFrom([]string{"Pending", "Running", "Succeeded"}).Draw(t, "phase")))
			used[tenantNode], used[hostNode] = true, true
		}
		w.unavailable, w.without = rapid.Bool().Draw(t, "unavailable"), rapid.Bool().Draw(t, "without")
		all := slices.Concat(w.tenantNodes, w.hostNodes, w.tenantPods, w.hostPods)
		var copies []*unstructured.Unstructured
		for _, object := range all {
			copies = append(copies, object.DeepCopy())
		}
		p := plan.Compute(w.input())
		require.Equal(t, copies, all, "the input is left alone")

		seen := map[record.Key]bool{}
		made := map[string]bool{}
		for _, step := range p.Steps {
			require.False(t, seen[step.Key], "%v is decided about twice", step.Key)
			seen[step.Key] = true
			if step.Kind != "Node" || !step.Writes() {
				continue
			}
			require.False(t, w.unavailable || w.without)
			require.Equal(t, record.Tenant, step.Side, "the host's nodes are never written")
			require.NotContains(t, w.malformed, types.NamespacedName{Name: step.TenantName})
			if step.Action == record.Create {
				made[step.TenantName] = true
				require.False(t, slices.ContainsFunc(w.tenantNodes, func(node *unstructured.Unstructured) bool { return node.GetName() == step.TenantName }))
				require.True(t, mapping.OwnsNode(step.Want))
				continue
			}
			require.True(t, owned[step.TenantName], "%s %s", step.Action, step.TenantName)
			require.True(t, mapping.OwnsNode(step.Have))
			if step.Action == record.Delete {
				require.False(t, used[step.TenantName], "a Pod is on it")
				require.False(t, terminates[step.TenantName])
				continue
			}
			for _, object := range append([]metav1.Object{step.Want}, objects(step.Then)...) {
				require.Equal(t, step.Have.GetUID(), object.GetUID())
				require.Equal(t, step.Have.GetResourceVersion(), object.GetResourceVersion())
			}
		}
		for _, step := range p.Steps {
			for _, write := range append(step.Then, plan.Write{Subresource: step.Subresource, Object: step.Want}) {
				if write.Subresource != plan.Binding {
					continue
				}
				node, _, _ := unstructured.NestedString(write.Object.Object, "target", "name")
				require.True(t, owned[node] && !terminates[node] || made[node], "bound to %s", node)
				require.Equal(t, made[node], step.Node == node, "a stub that is made in this plan is waited for")
			}
		}
		if p.Leases != nil {
			for _, node := range p.Leases.Nodes {
				require.True(t, owned[node.Name])
			}
		}
	})
}

func objects(writes []plan.Write) []metav1.Object {
	list := make([]metav1.Object, 0, len(writes))
	for _, write := range writes {
		list = append(list, write.Object)
	}
	return list
}
