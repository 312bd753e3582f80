package plan

import (
	"maps"
	"slices"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/syncpass/syncpass/pass/kinds"
	"github.com/syncpass/syncpass/record"
)

// Binding is the subresource that a Pod is bound to a node through: it is created, not updated, and answers no Pod.
const Binding = "binding"

// Leases are the Leases by which the tenant's node lifecycle controller knows that its stub Nodes live.
type Leases struct {
	// Labels are on every Lease that is ours. One that carries them and belongs to none of Nodes is to go.
	Labels map[string]string
	Nodes  []StubNode
}

// StubNode is a stub that stays.
type StubNode struct {
	Name string
	UID  types.UID
}

// nodes is where the tenant's Pods run, and what the tenant shows of it.
type nodes struct {
	// shown says that the policy has Node, and that both sides' are known: without that, Pods are bound to none.
	shown bool
	// running are the host nodes that mirrors are on, bound the ones that the tenant says its Pods are on.
	running, bound map[string]bool
	hosts, tenants map[string]*unstructured.Unstructured
	malformed      map[string]string
}

// findNodes looks where Pods are, and which nodes there are, before anything is decided.
func (c *computation) findNodes() {
	c.nodes = nodes{
		running: map[string]bool{}, bound: map[string]bool{}, malformed: map[string]string{},
		hosts: map[string]*unstructured.Unstructured{}, tenants: map[string]*unstructured.Unstructured{},
	}
	for _, snapshot := range c.Snapshot.Kinds {
		switch group := snapshot.GroupKind(); {
		case group == schema.GroupKind{Kind: "Pod"}:
			for _, name := range c.Mapping.NodesOf(snapshot.Host) {
				c.nodes.running[name] = true
			}
			for _, pod := range snapshot.Tenant {
				c.nodes.bound[kinds.NodeName(pod)] = true
			}
		case kinds.IsNode(group):
			c.nodes.shown = snapshot.Unavailable == "" && !snapshot.Retired
			for _, node := range snapshot.Host {
				c.nodes.hosts[node.GetName()] = node
			}
			for _, node := range snapshot.Tenant {
				c.nodes.tenants[node.GetName()] = node
			}
			for name, cause := range snapshot.Malformed {
				c.nodes.malformed[name.Name] = cause
			}
		}
	}
}

// decideNodes decides about the stubs in the tenant, each a pair of its own with the host node of the same name, and
// names those whose Leases are to be renewed.
func (c *computation) decideNodes(snapshot KindSnapshot) {
	group := snapshot.GroupKind()
	names := maps.Clone(c.nodes.running)
	for name := range c.nodes.tenants {
		names[name] = true
	}
	for _, key := range c.History.Keys(group.Group, group.Kind) {
		names[key.Name] = key.Name != ""
	}
	for _, name := range slices.Sorted(maps.Keys(names)) {
		if !names[name] {
			continue
		}
		p := &pair{
			kind: kinds.For(group), resource: &snapshot.Resource, retired: snapshot.Retired,
			key:    record.Key{Group: group.Group, Kind: group.Kind, Name: name},
			tenant: c.nodes.tenants[name], host: c.nodes.hosts[name], malformed: c.nodes.malformed[name],
		}
		p.state = c.History.Get(p.key)
		c.decideSafely(p, c.decideNode)
	}
	c.renewLeases()
}

// decideNode follows this table. Running: a mirror is on the host node. Bound: the tenant says that a Pod is on it.
//
//	host node  Node in the tenant   Pods            | decision
//	---------  -------------------  --------------- | --------
//	there      none                 running         | create (NoMirror)
//	any        not ours             running         | Skip NotOwned; no Pod is bound to it
//	any        being deleted        running         | Skip Terminating; it is made again once it is gone
//	there      ours, same           running         | -
//	there      ours, other content  running         | update (HostChanged, or HostWins where the tenant's moved)
//	there      ours, other status   running         | update (StatusChanged)
//	gone       ours                 running         | -: the host evicts its Pods, and then the stub goes
//	not read   ours                 bound           | -: what a finished Pod ran on
//	any        ours                 none            | delete (TenantDeleted)
//	any        ours                 any             | delete (KindRetired) where the kind left the policy
//	any        not ours, or none    none            | nothing, not even counted
func (c *computation) decideNode(p *pair) {
	name := p.key.Name
	running := c.nodes.running[name] && !p.retired
	ours := p.tenant != nil && c.Mapping.OwnsNode(p.tenant)
	switch {
	case p.malformed != "" && running:
		c.malformed(p, p.malformed)
	case p.tenant == nil && (p.host == nil || !running), !ours && !running:
		c.forget(p)
	case p.tenant == nil:
		step := c.step(p, record.Create, record.Tenant, record.NoMirror, "a Pod of the tenant runs on it")
		step.Want, step.Source = c.Mapping.Stub(p.host, nil), p.host
		c.plan.Steps = append(c.plan.Steps, step)
	case !ours:
		c.skip(p, record.Tenant, record.NotOwned, "the tenant has a Node of this name that is not ours; it is never taken over, and no Pod is bound to it. Rename or delete it, and the host's is shown", nil)
	case terminating(p.tenant) && running:
		c.skip(p, record.Tenant, record.Terminating, "the tenant is deleting this Node; it is made again once it is gone", nil)
	case terminating(p.tenant):
		c.unchanged(p, p.state.Baseline)
	case p.retired:
		c.deleteTenant(p, record.KindRetired, "Node left the policy and SYNCPASS_RETIRE_KINDS is on", nil)
	case !running && !c.nodes.bound[name]:
		c.deleteTenant(p, record.TenantDeleted, "no Pod of the tenant is on it any more", nil)
	case p.host == nil || !running:
		c.unchanged(p, p.state.Baseline)
	default:
		c.showNode(p)
	}
	c.asNode(p)
}

// showNode carries what changed on the host node to its stub. The baseline is kept from the last write, since a host node
// changes all the time and what it was last shown as is what counts.
func (c *computation) showNode(p *pair) {
	want := c.Mapping.Stub(p.host, p.tenant)
	object, status := kinds.NodeDifference(p.tenant, want)
	if len(object)+len(status) == 0 {
		learned := p.state.Baseline
		if learned == nil {
			learned = c.agreement(p)
		}
		c.unchanged(p, learned)
		return
	}
	step := c.step(p, record.Update, record.Tenant, record.StatusChanged, "the host reports another status")
	step.Want, step.Have, step.Source, step.Subresource = want, p.tenant, p.host, "status"
	step.Fields = texts(append(slices.Clone(object), status...))
	if len(object) > 0 {
		step.Reason, step.Message, step.Subresource = record.HostWins, "the sides differ, and the host is the authority", ""
		if known := p.state.Baseline; known != nil && c.moved(p, record.Host, p.host, known) {
			step.Reason, step.Message = record.HostChanged, "changed on the host"
		}
		if len(status) > 0 {
			step.Then = []Write{{Side: record.Tenant, Subresource: "status", Object: want}}
		}
	}
	c.plan.Steps = append(c.plan.Steps, step)
}

// asNode gives a decision about a Node the names that it has: one name on both sides, in no namespace.
func (c *computation) asNode(p *pair) {
	if last := len(c.plan.Steps) - 1; last >= 0 && c.plan.Steps[last].Key == p.key {
		c.plan.Steps[last].HostNamespace, c.plan.Steps[last].HostName = "", p.key.Name
	}
}

// renewLeases names the stubs that live on: all there are but those that this plan deletes. A stub that is unknown only
// on the host is kept alive too, since the tenant would evict its Pods otherwise, which run on.
func (c *computation) renewLeases() {
	deleted := map[string]bool{}
	for i := range c.plan.Steps {
		if step := &c.plan.Steps[i]; step.Action == record.Delete && step.OfNode() {
			deleted[step.TenantName] = true
		}
	}
	leases := &Leases{Labels: c.Mapping.NodeMarks()}
	for _, name := range slices.Sorted(maps.Keys(c.nodes.tenants)) {
		if stub := c.nodes.tenants[name]; c.Mapping.OwnsNode(stub) && !terminating(stub) && !deleted[name] {
			leases.Nodes = append(leases.Nodes, StubNode{Name: name, UID: stub.GetUID()})
		}
	}
	c.plan.Leases = leases
}

// place decides about a pair whose mirror may be on a node: the tenant's Pod is bound to that node's stub, along with
// what is decided otherwise, and one that is bound to another is replaced.
//
//	Pod in the tenant  mirror          stub                   | then
//	-----------------  --------------  ---------------------- | ----
//	on no node         on a node       there, or made now     | bound to it
//	on no node         on a node       not ours, or refused   | left alone
//	on another node    on a node       any                    | deleted, for its controller to replace (HostWins)
//	otherwise                                                 | nothing more
func (c *computation) place(p *pair) {
	host, tenant := kinds.NodeName(p.host), kinds.NodeName(p.tenant)
	runs, isPod := p.kind.(kinds.Runs)
	replaced := p.host.GetAnnotations()[kinds.AnnotationVirtualUID] != string(p.tenant.GetUID())
	switch {
	case !isPod || !c.nodes.shown || host == "" || host == tenant || replaced:
		c.bothThere(p)
	case tenant == "" && c.bindable(host):
		c.bind(p, host)
	case tenant == "" || runs.Finished(p.tenant) || runs.Finished(p.host):
		c.bothThere(p)
	default:
		c.deleteTenant(p, record.HostWins, "it is bound to node "+tenant+", and its mirror runs on "+host+"; its controller makes another", nil)
	}
}

// hadMirror says whether a Pod has been on the host: the record knows, and where that is lost, a Pod that says when it
// started. One that the tenant's own scheduler bound before the first pass over it has not, and is no loss to replace.
func hadMirror(p *pair) bool {
	started, _, _ := unstructured.NestedString(p.tenant.Object, "status", "startTime")
	return started != "" || p.state.Baseline != nil && p.state.Baseline.Tenant.UID == p.tenant.GetUID()
}

// bindable says whether Pods can be bound to a node's stub: one that is there and stays, or that this plan makes.
func (c *computation) bindable(node string) bool {
	if c.nodes.malformed[node] != "" {
		return false
	}
	if stub := c.nodes.tenants[node]; stub != nil {
		return c.Mapping.OwnsNode(stub) && !terminating(stub)
	}
	return c.nodes.hosts[node] != nil
}

// bind adds the binding to what is decided about a Pod, or makes it the decision where there is no other.
func (c *computation) bind(p *pair, node string) {
	before := *c.plan
	c.bothThere(p)
	if n := len(c.plan.Steps); n > len(before.Steps) && p.withheld != nil && c.plan.Steps[n-1].Action == record.Skip {
		c.plan.Steps = before.Steps // said again by the next pass: what is withheld must not keep the Pod from its node
	}
	binding := kinds.Bind(p.tenant, node)
	var step *Step
	if len(c.plan.Steps) > len(before.Steps) {
		step = &c.plan.Steps[len(c.plan.Steps)-1]
		if step.Action != record.Update || step.Want == nil || step.Replace {
			return // the next pass binds it, if it is there then
		}
		step.Message += "; bound to node " + node
		step.Then = append(step.Then, Write{Side: record.Tenant, Subresource: Binding, Object: binding})
	} else {
		c.plan.Unchanged, c.plan.History, c.plan.Refreshed = before.Unchanged, before.History, before.Refreshed
		bound := c.step(p, record.Update, record.Tenant, record.HostChanged, "the host placed it on node "+node+"; bound to that")
		bound.Want, bound.Have, bound.Source, bound.Subresource = binding, p.tenant, p.host, Binding
		c.plan.Steps = append(c.plan.Steps, bound)
		step = &c.plan.Steps[len(c.plan.Steps)-1]
	}
	step.Fields = append(step.Fields, "spec.nodeName")
	if c.nodes.tenants[node] == nil {
		step.Node = node
	}
}
