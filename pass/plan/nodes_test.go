package plan_test

import (
	"fmt"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	"github.com/syncpass/syncpass/pass/kinds"
	"github.com/syncpass/syncpass/pass/plan"
	"github.com/syncpass/syncpass/record"
)

func TestTheTableOfNodes(t *testing.T) {
	for _, test := range []struct {
		name      string
		lay       func(w *nodeWorld)
		want      string
		unchanged int
		beating   string
	}{
		{"a node that runs a Pod is shown", func(w *nodeWorld) { w.node("n1"); w.pod("a", "", "n1") }, "create tenant n1 NoMirror", 0, ""},
		{"once, however many Pods it runs", func(w *nodeWorld) { w.node("n1"); w.pod("a", "", "n1"); w.pod("b", "", "n1") }, "create tenant n1 NoMirror", 0, ""},
		{"a node that runs none is not", func(w *nodeWorld) { w.node("n1"); w.pod("a", "", "") }, "", 1, ""},
		{"a node that only the tenant names is not", func(w *nodeWorld) { w.node("n1"); w.pod("a", "n1", "") }, "", 1, ""},
		{"a stub that is as it should be is left alone", func(w *nodeWorld) { w.stub(w.node("n1")); w.pod("a", "n1", "n1") }, "", 2, "n1"},
		{"a heartbeat is no change", func(w *nodeWorld) {
			n1 := w.node("n1")
			w.stub(n1)
			w.version(n1)
			n1.Object["status"] = map[string]any{"conditions": []any{map[string]any{"type": "Ready", "status": "True", "lastHeartbeatTime": "2026-11-29T10:05:00Z"}}, "images": []any{}}
			w.pod("a", "n1", "n1")
		}, "", 2, "n1"},
		{"what the host reports is carried", func(w *nodeWorld) {
			n1 := w.node("n1")
			w.stub(n1)
			ready("False")(w.version(n1))
			w.pod("a", "n1", "n1")
		}, "update tenant n1 StatusChanged", 1, "n1"},
		{"a label that the host changed is carried", func(w *nodeWorld) {
			n1 := w.node("n1")
			w.stub(n1)
			label("topology.kubernetes.io/zone", "b")(w.version(n1))
			w.pod("a", "n1", "n1")
		}, "update tenant n1 HostChanged", 1, "n1"},
		{"what the tenant changed is repaired", func(w *nodeWorld) {
			w.stub(w.node("n1"), label("kubernetes.io/hostname", "other"))
			w.pod("a", "n1", "n1")
		}, "update tenant n1 HostWins", 1, "n1"},
		{"a stub goes with its last Pod", func(w *nodeWorld) { w.stub(w.node("n1")) }, "delete tenant n1 TenantDeleted", 0, ""},
		{"and with its node, too", func(w *nodeWorld) { w.stub(w.node("n1")); w.hostNodes = nil }, "delete tenant n1 TenantDeleted", 0, ""},
		{"a stub that a finished Pod ran on stays", func(w *nodeWorld) { w.stub(w.node("n1")); w.pod("a", "n1", "-", phase("Succeeded")) }, "", 2, "n1"},
		{"a stub whose node is gone stays until the host has evicted its Pods", func(w *nodeWorld) {
			w.stub(w.node("n1"))
			w.hostNodes = nil
			w.pod("a", "n1", "n1")
		}, "", 2, "n1"},
		{"a node that is gone and was never shown is not", func(w *nodeWorld) { w.pod("a", "", "n1") }, "", 1, ""},
		{"a Node of the tenant's own is never taken over", func(w *nodeWorld) { w.stub(w.node("n1"), unmarked); w.pod("a", "", "n1") }, "skip tenant n1 NotOwned", 1, ""},
		{"nor changed where the host's node is gone", func(w *nodeWorld) {
			w.stub(w.node("n1"), unmarked)
			w.hostNodes = nil
			w.pod("a", "", "n1")
		}, "skip tenant n1 NotOwned", 1, ""},
		{"nor deleted", func(w *nodeWorld) { w.stub(w.node("n1"), unmarked) }, "", 0, ""},
		{"a stub of another tenant's is not ours either", func(w *nodeWorld) {
			w.stub(w.node("n1"), label(kinds.LabelTenant, "other"))
		}, "", 0, ""},
		{"a stub that is being deleted is waited for", func(w *nodeWorld) { w.stub(w.node("n1"), terminating); w.pod("a", "n1", "n1") }, "skip tenant n1 Terminating", 1, ""},
		{"and is let go", func(w *nodeWorld) { w.stub(w.node("n1"), terminating) }, "", 1, ""},
		{"a Node that cannot be understood is held", func(w *nodeWorld) {
			w.node("n1")
			w.malformed = map[types.NamespacedName]string{{Name: "n1"}: "it has no uid"}
			w.pod("a", "", "n1")
		}, "skip host n1 Rejected", 1, ""},
		{"nothing is known where the host refuses, and the stubs live on", func(w *nodeWorld) {
			w.stub(w.node("n1"))
			w.unavailable = true
			w.pod("a", "n1", "n1")
		}, "skip host  KindUnavailable", 1, "n1"},
		{"nor is anything done where the tenant's list failed", func(w *nodeWorld) { w.unavailable = true; w.pod("a", "n1", "n1") }, "skip host  KindUnavailable", 1, "-"},
		{"without Node in the policy stubs stay, and no Lease is renewed", func(w *nodeWorld) {
			w.stub(w.node("n1"))
			w.without = true
			w.pod("a", "n1", "n1")
		}, "", 1, "-"},
		{"a Node that left the policy is retired, its Pods on it or not", func(w *nodeWorld) {
			w.stub(w.node("n1"))
			w.stub(w.node("n2"), unmarked)
			w.hostNodes, w.retired = nil, true
			w.pod("a", "n1", "n1")
		}, "delete tenant n1 KindRetired", 1, ""},
	} {
		t.Run(test.name, func(t *testing.T) {
			w := newNodeWorld()
			test.lay(w)
			p := plan.Compute(w.input())
			require.Equal(t, test.want, decided(p, "Node"))
			require.Equal(t, test.unchanged, p.Unchanged, outcome(p))
			require.Equal(t, test.beating, beating(p))
			for _, step := range p.Steps {
				if step.Kind == "Node" && step.TenantName != "" && step.Reason != record.Rejected {
					require.Empty(t, step.TenantNamespace)
					require.Empty(t, step.HostNamespace)
					require.Equal(t, step.TenantName, step.HostName)
				}
			}
		})
	}
}

func TestTheTableOfPlaces(t *testing.T) {
	for _, test := range []struct {
		name, want, node string
		lay              func(w *nodeWorld)
	}{
		{"a Pod is bound where its mirror is", "update tenant a HostChanged", "", func(w *nodeWorld) { w.stub(w.node("n1")); w.pod("a", "", "n1") }},
		{"to a stub that is made along with it", "update tenant a HostChanged", "n1", func(w *nodeWorld) { w.node("n1"); w.pod("a", "", "n1") }},
		{"one that is bound stays", "", "", func(w *nodeWorld) { w.stub(w.node("n1")); w.pod("a", "n1", "n1") }},
		{"one whose mirror waits for a node waits", "", "", func(w *nodeWorld) { w.stub(w.node("n1")); w.pod("a", "", "") }},
		{"not to a Node that is the tenant's own", "", "", func(w *nodeWorld) { w.stub(w.node("n1"), unmarked); w.pod("a", "", "n1") }},
		{"not to a Node that is being deleted", "", "", func(w *nodeWorld) { w.stub(w.node("n1"), terminating); w.pod("a", "", "n1") }},
		{"not to a Node that cannot be understood", "", "", func(w *nodeWorld) {
			w.node("n1")
			w.malformed = map[types.NamespacedName]string{{Name: "n1"}: "it has no uid"}
			w.pod("a", "", "n1")
		}},
		{"not to a node that is gone", "", "", func(w *nodeWorld) { w.pod("a", "", "n1") }},
		{"not where nodes are unknown", "", "", func(w *nodeWorld) { w.stub(w.node("n1")); w.unavailable = true; w.pod("a", "", "n1") }},
		{"not without Node in the policy", "", "", func(w *nodeWorld) { w.stub(w.node("n1")); w.without = true; w.pod("a", "", "n1") }},
		{"not where Node is retired", "", "", func(w *nodeWorld) { w.stub(w.node("n1")); w.retired = true; w.pod("a", "", "n1") }},
		{"one that is bound elsewhere is replaced", "delete tenant a HostWins", "", func(w *nodeWorld) {
			w.stub(w.node("n1"))
			w.stub(w.node("n2"))
			w.pod("a", "n1", "n2")
		}},
		{"but not without Node in the policy", "", "", func(w *nodeWorld) { w.without = true; w.pod("a", "n1", "n2") }},
		{"nor one that has finished", "", "", func(w *nodeWorld) {
			w.stub(w.node("n2"))
			w.pod("a", "n1", "n2", phase("Succeeded"))
		}},
		{"nor one whose mirror has finished, which reports first", "update tenant a StatusChanged", "", func(w *nodeWorld) {
			w.stub(w.node("n2"))
			_, host := w.pod("a", "n1", "n2")
			phase("Failed")(w.version(host))
		}},
		{"nor one that was made again, whose old mirror goes", "delete host a TenantRecreated", "", func(w *nodeWorld) {
			w.stub(w.node("n2"))
			tenant, _ := w.pod("a", "n1", "n2")
			tenant.SetUID("again")
		}},
		{"one whose mirror was evicted is replaced", "delete tenant a MirrorDeleted", "", func(w *nodeWorld) {
			w.stub(w.node("n1"))
			w.pod("a", "n1", "n1")
			w.hostPods = nil
		}},
		{"also where the record is lost", "delete tenant a MirrorDeleted", "", func(w *nodeWorld) {
			w.stub(w.node("n1"))
			w.pod("a", "n1", "-", func(pod *unstructured.Unstructured) {
				pod.Object["status"] = map[string]any{"startTime": "2026-11-29T10:00:00Z"}
			})
		}},
		{"one that the tenant's scheduler bound before its first pass gets a mirror", "create host a NoMirror", "", func(w *nodeWorld) {
			w.stub(w.node("n1"))
			w.pod("a", "n1", "-")
		}},
		{"one that is being deleted is not bound any more", "delete host a TenantDeleted", "", func(w *nodeWorld) {
			w.stub(w.node("n1"))
			tenant, _ := w.pod("a", "", "n1")
			terminating(tenant)
		}},
	} {
		t.Run(test.name, func(t *testing.T) {
			w := newNodeWorld()
			test.lay(w)
			p := plan.Compute(w.input())
			require.Equal(t, test.want, decided(p, "Pod"))
			for _, step := range p.Steps {
				if step.Kind != "Pod" || step.Reason != record.HostChanged {
					continue
				}
				require.Equal(t, plan.Binding, step.Subresource)
				require.Equal(t, []string{"spec.nodeName"}, step.Fields)
				require.Equal(t, test.node, step.Node)
				require.Equal(t, "Binding", step.Want.GetKind())
				require.EqualValues(t, "t-a", step.Want.GetUID(), "the Pod that was read, and no other")
				require.Equal(t, map[string]any{"apiVersion": "v1", "kind": "Node", "name": "n1"}, step.Want.Object["target"])
			}
		})
	}
}

// The binding comes last: a Pod's status must reach the tenant whether or not the binding is allowed.
func TestABindingFollowsWhatElseThereIsToWrite(t *testing.T) {
	w := newNodeWorld()
	w.node("n1")
	tenant, host := w.pod("a", "", "n1")
	label("team", "a")(w.version(tenant))
	phase("Running")(w.version(host))
	step := slices.Collect(func(yield func(plan.Step) bool) {
		for _, step := range plan.Compute(w.input()).Steps {
			if step.Kind == "Pod" && !yield(step) {
				return
			}
		}
	})[0]
	require.Equal(t, record.TenantChanged, step.Reason)
	require.Equal(t, record.Host, step.Side)
	require.Equal(t, "n1", step.Node)
	require.Contains(t, step.Message, "bound to node n1")
	require.Contains(t, step.Fields, "spec.nodeName")
	require.Len(t, step.Then, 2)
	require.Equal(t, "status", step.Then[0].Subresource)
	require.Equal(t, plan.Binding, step.Then[1].Subresource)
	require.Equal(t, record.Tenant, step.Then[1].Side)
}

// What a pass writes is what the next one finds, and then there is nothing left to do.
func TestAfterBindingThereIsPeace(t *testing.T) {
	w := newNodeWorld()
	n1 := w.node("n1")
	tenant, _ := w.pod("a", "", "n1")
	for _, step := range plan.Compute(w.input()).Steps {
		switch {
		case step.Kind == "Node" && step.Action == record.Create:
			w.stub(n1)
		case step.Subresource == plan.Binding:
			on("n1")(w.version(tenant))
			w.history.Set(step.Key, record.State{Baseline: &record.Baseline{
				Tenant: plan.Version(hasher, kinds.For(podGroup), record.Tenant, tenant),
				Host:   plan.Version(hasher, kinds.For(podGroup), record.Host, step.Source),
			}})
		}
	}
	p := plan.Compute(w.input())
	require.Empty(t, p.Steps)
	require.Empty(t, p.History)
	require.Equal(t, 2, p.Unchanged)
}

func TestAnotherTenantsNodesAreLeftAlone(t *testing.T) {
	w := newNodeWorld()
	w.stub(w.node("n1"))
	w.node("n2")
	w.pod("a", "", "n2")
	in := w.input()
	in.RecordedTenantUID = "another"
	p := plan.Compute(in)
	require.Zero(t, p.Writes())
	require.Nil(t, p.Leases)

	in.RecordedTenantUID = "tenant"
	p = plan.Compute(in)
	require.Equal(t, 3, p.Writes())
	require.NotNil(t, p.Leases)
}

// Stubs come and go with Pods; the guard is over what is lost for good.
func TestTheGuardOverDeletesDoesNotCountStubs(t *testing.T) {
	w := newNodeWorld()
	for i := range 30 {
		w.stub(w.node(fmt.Sprintf("n%02d", i)))
	}
	w.pod("gone", "", "")
	w.tenantPods = nil
	p := plan.Compute(w.input())
	require.Empty(t, p.GuardID)
	require.Equal(t, 31, count(p, record.Delete, record.TenantDeleted))
}

// A standing skip clears itself, and what is remembered of a stub that is gone is forgotten.
func TestWhatIsRememberedOfNodesMoves(t *testing.T) {
	key := record.Key{Kind: "Node", Name: "n1"}
	standing := record.State{Standing: &record.Standing{Reason: record.NotOwned, Since: now, LastTime: now, Count: 1}}

	w := newNodeWorld()
	w.history.Set(key, standing)
	p := plan.Compute(w.input())
	require.Equal(t, []plan.Change{{Key: key}}, p.History)

	w = newNodeWorld()
	w.stub(w.node("n1"))
	w.pod("a", "n1", "n1")
	w.history.Set(key, standing)
	p = plan.Compute(w.input())
	require.Len(t, p.History, 1)
	require.Nil(t, p.History[0].State.Standing)
	require.NotNil(t, p.History[0].State.Baseline, "without it nothing would tell, once Node leaves the policy, that there is something to retire")
}
