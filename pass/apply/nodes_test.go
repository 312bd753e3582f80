package apply_test

import (
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	coordinationv1client "k8s.io/client-go/kubernetes/typed/coordination/v1"
	"k8s.io/client-go/rest"

	"github.com/syncpass/syncpass/pass/kinds"
	"github.com/syncpass/syncpass/pass/plan"
	"github.com/syncpass/syncpass/record"
)

var (
	nodeKind = schema.GroupVersionKind{Version: "v1", Kind: "Node"}
	podKind  = schema.GroupVersionKind{Version: "v1", Kind: "Pod"}
)

// newNodeBench is a bench whose tenant does for Nodes, Pods and Leases what a real API server does: it lists by labels
// and by spec.nodeName, binds a Pod once, and keeps status and the rest of a Node apart.
func newNodeBench(t *testing.T) *bench {
	b := newBench(t)
	leases, err := coordinationv1client.NewForConfig(&rest.Config{
		Host: b.tenant.server.URL, QPS: -1, Timeout: 10 * time.Second, ContentConfig: rest.ContentConfig{ContentType: "application/json"},
	})
	require.NoError(t, err)
	b.writer.Leases = leases
	b.tenant.before = func(w http.ResponseWriter, r *request) bool { return serveNodes(b.tenant, w, r) }
	return b
}

func serveNodes(a *api, w http.ResponseWriter, r *request) bool {
	switch {
	case r.Method == http.MethodGet && r.name == "":
		selector, err := labels.Parse(r.URL.Query().Get("labelSelector"))
		require.NoError(a.t, err)
		node, byNode := strings.CutPrefix(r.URL.Query().Get("fieldSelector"), "spec.nodeName=")
		items := []any{}
		for at, object := range a.objects {
			if strings.Contains(at, "/"+r.resource+"/") && selector.Matches(labels.Set(object.GetLabels())) && (!byNode || kinds.NodeName(object) == node) {
				items = append(items, object.Object)
			}
		}
		list := map[string][2]string{"pods": {"PodList", "v1"}, "leases": {"LeaseList", "coordination.k8s.io/v1"}}[r.resource]
		reply(w, http.StatusOK, map[string]any{"kind": list[0], "apiVersion": list[1], "metadata": map[string]any{"resourceVersion": "1"}, "items": items})
	case r.subresource == plan.Binding:
		pod := a.objects[r.path]
		switch {
		case pod == nil:
			code, body := refusal(apierrors.NewNotFound(schema.GroupResource{Resource: "pods"}, r.name))
			reply(w, code, body)
		case kinds.NodeName(pod) != "" || r.body.GetUID() != pod.GetUID() || r.body.GetResourceVersion() != pod.GetResourceVersion():
			code, body := refusal(apierrors.NewConflict(schema.GroupResource{Resource: "pods"}, r.name, errors.New("already assigned, or not the one")))
			reply(w, code, body)
		default:
			node, _, _ := unstructured.NestedString(r.body.Object, "target", "name")
			bound := pod.DeepCopy()
			require.NoError(a.t, unstructured.SetNestedField(bound.Object, node, "spec", "nodeName"))
			a.store(r.path, bound)
			reply(w, http.StatusCreated, metav1.Status{Status: metav1.StatusSuccess})
		}
	case r.Method == http.MethodPut && r.resource == "nodes" && a.objects[r.path] != nil:
		there := a.objects[r.path].DeepCopy()
		if r.subresource == "status" {
			there.Object["status"] = r.body.Object["status"]
			there.SetResourceVersion(r.body.GetResourceVersion())
			r.body = *there
		} else {
			r.body.Object["status"] = there.Object["status"]
		}
		return false
	default:
		return false
	}
	return true
}

func hostNode(name string) *unstructured.Unstructured {
	node := &unstructured.Unstructured{Object: map[string]any{
		"status": map[string]any{"conditions": []any{map[string]any{"type": "Ready", "status": "True"}}},
	}}
	node.SetGroupVersionKind(nodeKind)
	node.SetName(name)
	node.SetUID(types.UID("h-" + name))
	node.SetLabels(map[string]string{"kubernetes.io/hostname": name})
	return node
}

func nodeStep(action record.Action, name string) plan.Step {
	s := plan.Step{
		Decision: record.Decision{
			Action: action, Side: record.Tenant, APIVersion: "v1", Kind: "Node", TenantName: name, HostName: name, Reason: record.NoMirror, Fields: []string{},
		},
		Key: record.Key{Kind: "Node", Name: name}, Weight: kinds.For(nodeKind.GroupKind()).Weight(), Source: hostNode(name),
	}
	switch action {
	case record.Create:
		s.Want = mapping.Stub(s.Source, nil)
	case record.Delete:
		s.Reason = record.TenantDeleted
	}
	return s
}

// stubbed lays a stub down in the tenant, and returns the step with what was read of it.
func (b *bench) stubbed(s plan.Step) plan.Step {
	s.Have = b.tenant.put("nodes", mapping.Stub(hostNode(s.TenantName), nil))
	return s
}

// bound lays a Pod down in the tenant, on no node, and returns the step that binds it.
func (b *bench) bound(name, node string) plan.Step {
	pod := tenantObject(podKind, name)
	pod.Object["spec"] = map[string]any{}
	s := step(record.Update, podKind, name)
	s.Side, s.Reason, s.Subresource = record.Tenant, record.HostChanged, plan.Binding
	s.Have = b.tenant.put("pods", pod)
	s.Want = kinds.Bind(s.Have, node)
	return s
}

func (b *bench) lease(name string) *unstructured.Unstructured {
	return b.tenant.get("leases", "kube-node-lease", name)
}

func TestAStubIsMadeWithItsLease(t *testing.T) {
	b := newNodeBench(t)
	result := b.run(t, nodeStep(record.Create, "n1"))[0]
	require.True(t, result.Applied, result.Decision.Error)
	node := b.tenant.get("nodes", "", "n1")
	require.Equal(t, node.GetUID(), result.Written[record.Tenant].GetUID())
	lease := b.lease("n1")
	require.Equal(t, mapping.NodeMarks(), lease.GetLabels())
	require.Equal(t, node.GetUID(), lease.GetOwnerReferences()[0].UID, "a Lease goes with its Node")
	holder, _, _ := unstructured.NestedString(lease.Object, "spec", "holderIdentity")
	require.Equal(t, "n1", holder)
	require.Empty(t, b.host.requests(), "nothing of it is the host's business")
}

// A stub without a Lease has a grace, and the next pass says why it has none.
func TestAStubIsMadeAlsoWhereItsLeaseIsRefused(t *testing.T) {
	b := newNodeBench(t)
	b.tenant.before = func(w http.ResponseWriter, r *request) bool {
		return r.resource == "leases" && answer(status(http.StatusForbidden, metav1.StatusReasonForbidden, "no"))(w, r) || serveNodes(b.tenant, w, r)
	}
	require.True(t, b.run(t, nodeStep(record.Create, "n1"))[0].Applied)
}

func TestANodeThatAppearsMeanwhileIsNotTakenOver(t *testing.T) {
	b := newNodeBench(t)
	theirs := hostNode("n1")
	b.tenant.put("nodes", theirs)
	result := b.run(t, nodeStep(record.Create, "n1"))[0]
	require.Equal(t, record.Raced, result.Decision.Reason)
	require.Equal(t, theirs.GetLabels(), b.tenant.get("nodes", "", "n1").GetLabels())
	require.Nil(t, b.lease("n1"))
}

func TestAStubIsUpdatedInBothItsParts(t *testing.T) {
	b := newNodeBench(t)
	s := b.stubbed(nodeStep(record.Update, "n1"))
	moved := hostNode("n1")
	moved.SetLabels(map[string]string{"kubernetes.io/hostname": "n1", "topology.kubernetes.io/zone": "b"})
	moved.Object["status"] = map[string]any{"conditions": []any{map[string]any{"type": "Ready", "status": "False"}}}
	s.Want = mapping.Stub(moved, s.Have)
	s.Then = []plan.Write{{Side: record.Tenant, Subresource: "status", Object: s.Want}}
	result := b.run(t, s)[0]
	require.True(t, result.Applied, result.Decision.Error)
	stub := b.tenant.get("nodes", "", "n1")
	require.Equal(t, "b", stub.GetLabels()["topology.kubernetes.io/zone"])
	object, reported := kinds.NodeDifference(stub, mapping.Stub(moved, stub))
	require.Empty(t, object)
	require.Empty(t, reported)
	require.Equal(t, stub.GetResourceVersion(), result.Written[record.Tenant].GetResourceVersion())
	require.Equal(t, []string{"PUT nodes/n1", "PUT nodes/n1/status"}, b.tenant.requests())
}

func TestAStubGoesWhenNoPodIsOnIt(t *testing.T) {
	for _, test := range []struct {
		name   string
		lay    func(b *bench)
		reason record.Reason
		gone   bool
		want   record.Reason
	}{
		{"none is", func(*bench) {}, record.TenantDeleted, true, ""},
		{"one came meanwhile", func(b *bench) { b.run(t, b.bound("late", "n1")) }, record.TenantDeleted, false, record.Raced},
		{"one is on another", func(b *bench) { b.run(t, b.bound("other", "n2")) }, record.TenantDeleted, true, ""},
		{"the tenant does not say", func(b *bench) {
			b.tenant.before = func(w http.ResponseWriter, r *request) bool {
				return r.resource == "pods" && answer(status(http.StatusForbidden, metav1.StatusReasonForbidden, "no"))(w, r) || serveNodes(b.tenant, w, r)
			}
		}, record.TenantDeleted, false, record.Rejected},
		{"one is, but the kind is retired", func(b *bench) { b.run(t, b.bound("late", "n1")) }, record.KindRetired, true, ""},
	} {
		t.Run(test.name, func(t *testing.T) {
			b := newNodeBench(t)
			s := b.stubbed(nodeStep(record.Delete, "n1"))
			s.Reason = test.reason
			test.lay(b)
			result := b.run(t, s)[0]
			require.Equal(t, test.gone, result.Applied)
			require.Equal(t, test.gone, b.tenant.get("nodes", "", "n1") == nil)
			if !test.gone {
				require.Equal(t, test.want, result.Decision.Reason)
			}
			require.Empty(t, b.host.requests(), "a node of the host that is still there is no reason to keep a stub")
		})
	}
}

func TestAStubThatWasChangedIsNotDeleted(t *testing.T) {
	b := newNodeBench(t)
	s := b.stubbed(nodeStep(record.Delete, "n1"))
	b.tenant.put("nodes", s.Have) // somebody touches it
	require.Equal(t, record.Raced, b.run(t, s)[0].Decision.Reason)
	require.NotNil(t, b.tenant.get("nodes", "", "n1"))
}

func TestAPodIsBoundAndReadAgain(t *testing.T) {
	b := newNodeBench(t)
	s := b.bound("web", "n1")
	result := b.run(t, s)[0]
	require.True(t, result.Applied, result.Decision.Error)
	require.Equal(t, "n1", kinds.NodeName(b.tenant.get("pods", "default", "web")))
	require.Equal(t, "n1", kinds.NodeName(result.Written[record.Tenant]), "the record is of the Pod, not of the Binding")
	require.Equal(t, []string{"POST pods/web/binding", "GET pods/web"}, b.tenant.requests())
}

func TestABindingComesAfterTheStatus(t *testing.T) {
	b := newNodeBench(t)
	binding := b.bound("web", "n1")
	s := binding
	reported := binding.Have.DeepCopy()
	reported.Object["status"] = map[string]any{"phase": "Running"}
	s.Want, s.Subresource, s.Reason = reported, "status", record.StatusChanged
	s.Then = []plan.Write{{Side: record.Tenant, Subresource: plan.Binding, Object: binding.Want}}
	result := b.run(t, s)[0]
	require.True(t, result.Applied, result.Decision.Error)
	require.Equal(t, "n1", kinds.NodeName(result.Written[record.Tenant]))
	require.Equal(t, []string{"PUT pods/web/status", "POST pods/web/binding", "GET pods/web"}, b.tenant.requests())
}

func TestAPodIsBoundOnceAndOnlyIfItIsTheOneThatWasRead(t *testing.T) {
	for name, change := range map[string]func(pod *unstructured.Unstructured){
		"somebody bound it elsewhere": func(pod *unstructured.Unstructured) {
			pod.Object["spec"] = map[string]any{"nodeName": "n2"}
		},
		"it was made again": func(pod *unstructured.Unstructured) { pod.SetUID("again") },
	} {
		t.Run(name, func(t *testing.T) {
			b := newNodeBench(t)
			s := b.bound("web", "n1")
			there := s.Have.DeepCopy()
			change(there)
			b.tenant.put("pods", there)
			result := b.run(t, s)[0]
			require.Equal(t, record.Raced, result.Decision.Reason)
			require.Empty(t, result.Decision.Error)
			require.Equal(t, kinds.NodeName(there), kinds.NodeName(b.tenant.get("pods", "default", "web")))
		})
	}
}

// The tenant's controllers delete Pods on nodes that they do not know.
func TestNoPodIsBoundToAStubThatWasNotMade(t *testing.T) {
	b := newNodeBench(t)
	b.writer.Concurrency = 8
	b.tenant.before = func(w http.ResponseWriter, r *request) bool {
		return r.resource == "nodes" && r.name == "refused" && answer(status(http.StatusForbidden, metav1.StatusReasonForbidden, "no"))(w, r) || serveNodes(b.tenant, w, r)
	}
	steps := []plan.Step{nodeStep(record.Create, "refused"), nodeStep(record.Create, "made")}
	for i := range 10 {
		refused, made, along := b.bound(fmt.Sprint("refused-", i), "refused"), b.bound(fmt.Sprint("made-", i), "made"), b.bound(fmt.Sprint("along-", i), "refused")
		binding := plan.Write{Side: record.Tenant, Subresource: plan.Binding, Object: along.Want}
		reported := along.Have.DeepCopy()
		along.Want, along.Subresource, along.Then = reported, "status", []plan.Write{binding}
		refused.Node, made.Node, along.Node = "refused", "made", "refused"
		steps = append(steps, refused, made, along)
	}
	for _, result := range b.run(t, steps...)[2:] {
		name, _, _ := strings.Cut(result.Step.TenantName, "-")
		pod := b.tenant.get("pods", "default", result.Step.TenantName)
		switch name {
		case "made":
			require.True(t, result.Applied, result.Decision.Error)
			require.Equal(t, "made", kinds.NodeName(pod))
		case "refused":
			require.Equal(t, record.Raced, result.Decision.Reason)
			require.Empty(t, kinds.NodeName(pod))
		case "along":
			require.True(t, result.Applied, "what else there was to write is written")
			require.Empty(t, kinds.NodeName(pod))
		}
	}
	require.NotContains(t, strings.Join(b.tenant.requests(), " "), "refused-0/binding")
}

// A Pod whose mirror runs elsewhere goes although its mirror is there.
func TestAMisplacedPodIsDeletedWithoutAsking(t *testing.T) {
	b := newNodeBench(t)
	s := b.mirrored(step(record.Delete, podKind, "web"))
	s.Side, s.Reason = record.Tenant, record.HostWins
	s.Have = b.tenant.put("pods", tenantObject(podKind, "web"))
	require.True(t, b.run(t, s)[0].Applied)
	require.Nil(t, b.tenant.get("pods", "default", "web"))
	require.Empty(t, b.host.requests())
}

func (b *bench) leases(names ...string) *plan.Leases {
	leases := &plan.Leases{Labels: mapping.NodeMarks()}
	for _, name := range names {
		leases.Nodes = append(leases.Nodes, plan.StubNode{Name: name, UID: types.UID("t-" + name)})
	}
	return leases
}

func TestLeasesAreRenewedMadeAndRemoved(t *testing.T) {
	b := newNodeBench(t)
	require.NoError(t, b.writer.RenewLeases(t.Context(), b.leases("n1", "n2")))
	first := b.lease("n1")
	require.NotNil(t, b.lease("n2"))

	theirs := first.DeepCopy()
	theirs.SetName("theirs")
	theirs.SetLabels(nil)
	b.tenant.put("leases", theirs)
	before := b.lease("theirs").DeepCopy()
	edited := first.DeepCopy()
	edited.SetAnnotations(map[string]string{"kept": "yes"})
	b.tenant.put("leases", edited)

	require.NoError(t, b.writer.RenewLeases(t.Context(), b.leases("n1")))
	renewed := b.lease("n1")
	require.Equal(t, first.GetUID(), renewed.GetUID())
	require.Equal(t, "yes", renewed.GetAnnotations()["kept"])
	require.Greater(t, renewTime(t, renewed), renewTime(t, first))
	require.Nil(t, b.lease("n2"), "the Lease of a stub that is gone goes")
	require.Equal(t, before, b.lease("theirs"))

	require.NoError(t, b.writer.RenewLeases(t.Context(), nil))
	require.Equal(t, renewed, b.lease("n1"), "nobody asked")
}

func renewTime(t *testing.T, lease *unstructured.Unstructured) string {
	t.Helper()
	renewed, found, err := unstructured.NestedString(lease.Object, "spec", "renewTime")
	require.NoError(t, err)
	require.True(t, found)
	return renewed
}

func TestALeaseThatIsNotOursIsLeftAlone(t *testing.T) {
	b := newNodeBench(t)
	require.NoError(t, b.writer.RenewLeases(t.Context(), b.leases("n1")))
	theirs := b.lease("n1").DeepCopy()
	theirs.SetLabels(nil)
	b.tenant.put("leases", theirs)
	before := b.lease("n1").DeepCopy()
	err := b.writer.RenewLeases(t.Context(), b.leases("n1", "n2", "n3"))
	require.ErrorContains(t, err, "kube-node-lease/n1")
	require.ErrorContains(t, err, "already exists")
	require.Equal(t, before, b.lease("n1"))
	require.NotNil(t, b.lease("n3"), "one does not stop the others")
}

func TestTheFenceStopsHeartbeatsToo(t *testing.T) {
	b := newNodeBench(t)
	lost := errors.New("another pass has taken over")
	b.writer.Fence = func() error { return lost }
	require.ErrorIs(t, b.writer.RenewLeases(t.Context(), b.leases("n1", "n2")), lost)
	require.False(t, slices.ContainsFunc(b.tenant.requests(), func(line string) bool { return !strings.HasPrefix(line, "GET ") }))
}
