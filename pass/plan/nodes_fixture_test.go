package plan_test

import (
	"fmt"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/syncpass/syncpass/pass/kinds"
	"github.com/syncpass/syncpass/pass/plan"
	"github.com/syncpass/syncpass/policy"
	"github.com/syncpass/syncpass/record"
)

var (
	podGroup  = schema.GroupKind{Kind: "Pod"}
	nodeGroup = schema.GroupKind{Kind: "Node"}
)

// nodeWorld is a host whose nodes run Pods of the tenant, and what the tenant shows of them. Its zero value has a policy
// with Pod and Node.
type nodeWorld struct {
	without, unavailable, retired bool // Node in the policy, readable, about to be retired
	tenantPods, hostPods          []*unstructured.Unstructured
	tenantNodes, hostNodes        []*unstructured.Unstructured
	malformed                     map[types.NamespacedName]string
	history                       *record.History
	versions                      int
}

func newNodeWorld() *nodeWorld { return &nodeWorld{history: record.NewHistory(hasher.KeyID())} }

func (w *nodeWorld) version(object *unstructured.Unstructured) *unstructured.Unstructured {
	w.versions++
	object.SetResourceVersion(fmt.Sprint(1000 + w.versions))
	return object
}

// pod lays down a Pod of the tenant that is on a node there ("" for none), and its mirror on a node of the host ("" for
// none, "-" for no mirror), in agreement.
func (w *nodeWorld) pod(name, tenantNode, hostNode string, edits ...edit) (tenant, host *unstructured.Unstructured) {
	tenant = &unstructured.Unstructured{Object: map[string]any{"spec": map[string]any{}}}
	tenant.SetAPIVersion("v1")
	tenant.SetKind("Pod")
	tenant.SetNamespace("default")
	tenant.SetName(name)
	tenant.SetUID(types.UID("t-" + name))
	on(tenantNode)(apply(w.version(tenant), edits))
	w.tenantPods = append(w.tenantPods, tenant)
	if hostNode == "-" {
		return tenant, nil
	}
	host = mapping.Project(kinds.For(podGroup), tenant, nil, kinds.KeepForeign)
	host.SetUID(types.UID("h-" + name))
	on(hostNode)(w.version(host))
	w.hostPods = append(w.hostPods, host)
	w.history.Set(record.Key{Kind: "Pod", Namespace: "default", Name: name}, record.State{Baseline: &record.Baseline{
		Tenant: plan.Version(hasher, kinds.For(podGroup), record.Tenant, tenant),
		Host:   plan.Version(hasher, kinds.For(podGroup), record.Host, host),
	}})
	return tenant, host
}

func on(node string) edit {
	return func(pod *unstructured.Unstructured) {
		if node != "" {
			pod.Object["spec"].(map[string]any)["nodeName"] = node
		}
	}
}

func phase(phase string) edit {
	return func(pod *unstructured.Unstructured) { pod.Object["status"] = map[string]any{"phase": phase} }
}

// node lays down a node of the host.
func (w *nodeWorld) node(name string, edits ...edit) *unstructured.Unstructured {
	node := &unstructured.Unstructured{Object: map[string]any{"status": map[string]any{"conditions": []any{
		map[string]any{"type": "Ready", "status": "True", "lastHeartbeatTime": "2026-11-29T10:00:00Z"},
	}}}}
	node.SetAPIVersion("v1")
	node.SetKind("Node")
	node.SetName(name)
	node.SetUID(types.UID("h-" + name))
	node.SetLabels(map[string]string{"kubernetes.io/hostname": name})
	w.hostNodes = append(w.hostNodes, apply(w.version(node), edits))
	return node
}

// stub lays down the stub of a host node, as an earlier pass made it.
func (w *nodeWorld) stub(host *unstructured.Unstructured, edits ...edit) *unstructured.Unstructured {
	stub := mapping.Stub(host, nil)
	stub.SetUID(types.UID("t-" + host.GetName()))
	w.tenantNodes = append(w.tenantNodes, apply(w.version(stub), edits))
	w.history.Set(record.Key{Kind: "Node", Name: host.GetName()}, record.State{Baseline: &record.Baseline{
		Tenant: plan.Version(hasher, kinds.For(nodeGroup), record.Tenant, stub),
		Host:   plan.Version(hasher, kinds.For(nodeGroup), record.Host, host),
	}})
	return stub
}

func unmarked(object *unstructured.Unstructured) { object.SetLabels(map[string]string{"team": "a"}) }

func ready(status string) edit {
	return func(node *unstructured.Unstructured) {
		node.Object["status"] = map[string]any{"conditions": []any{map[string]any{"type": "Ready", "status": status}}}
	}
}

func (w *nodeWorld) input() plan.Input {
	pods := plan.KindSnapshot{Resource: policy.Resource{APIVersion: "v1", Kind: "Pod", Direction: policy.ToHost}, Tenant: w.tenantPods, Host: w.hostPods}
	nodes := plan.KindSnapshot{
		Resource: policy.Resource{APIVersion: "v1", Kind: "Node", Direction: policy.FromHost}, Retired: w.retired,
		Tenant: w.tenantNodes, Host: w.hostNodes, Malformed: w.malformed,
	}
	if w.unavailable {
		nodes.Unavailable, nodes.Error, nodes.Host = "reading failed", "forbidden", nil
	}
	in := plan.Input{
		History: w.history, Recording: true, Hasher: hasher, Mapping: mapping, RecordedTenantUID: "tenant", MaxDeletePercent: 50, Now: now,
		Snapshot: plan.Snapshot{TenantUID: "tenant", Kinds: []plan.KindSnapshot{nodes, pods}},
	}
	if w.without {
		in.Snapshot.Kinds = in.Snapshot.Kinds[1:]
	}
	return in
}

// decided are a plan's decisions on one kind, a line each, with the names of the object.
func decided(p *plan.Plan, kind string) string {
	var lines []string
	for _, step := range p.Steps {
		if step.Kind == kind {
			lines = append(lines, strings.TrimSpace(fmt.Sprintf("%s %s %s %s", strings.ToLower(string(step.Action)), step.Side, step.TenantName, step.Reason)))
		}
	}
	return strings.Join(lines, ", ")
}

// beating are the stubs whose Leases a plan renews; "-" where it touches none.
func beating(p *plan.Plan) string {
	if p.Leases == nil {
		return "-"
	}
	var names []string
	for _, node := range p.Leases.Nodes {
		names = append(names, node.Name)
	}
	return strings.Join(names, ",")
}
