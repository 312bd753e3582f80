package policy

import "k8s.io/apimachinery/pkg/runtime/schema"

// reservedKinds are namespaced kinds that must not be carried between two clusters whatever a policy says, with the
// reason. Cluster-scoped kinds (ClusterRole, Namespace, PersistentVolume, webhooks, definitions and so on) need no
// entry: a pass takes a kind's scope from the host's discovery, and skips every cluster-scoped one but Node.
var reservedKinds = map[schema.GroupKind]string{
	{Group: "rbac.authorization.k8s.io", Kind: "Role"}:        "it would let a tenant grant rights on the host",
	{Group: "rbac.authorization.k8s.io", Kind: "RoleBinding"}: "it would let a tenant grant rights on the host",
	{Group: "coordination.k8s.io", Kind: "Lease"}:             "it is a lock between controllers of one cluster, the lock of the pass itself among them",
	{Group: "apps", Kind: "ControllerRevision"}:               "it belongs to the controllers of the cluster it is in",
	{Group: "", Kind: "Event"}:                                "it tells what happened in the cluster it is in",
	{Group: "events.k8s.io", Kind: "Event"}:                   "it tells what happened in the cluster it is in",
}

// reserved says why a kind may not cross at all; an empty reason means that it may.
func reserved(kind schema.GroupKind) string {
	if kind.Group == Group {
		return "it steers syncpass itself"
	}
	return reservedKinds[kind]
}

// directionsOf lists the ways that a kind may cross. Nodes are the host's: a tenant is shown them and makes none.
func directionsOf(kind schema.GroupKind) []Direction {
	if kind == (schema.GroupKind{Kind: "Node"}) {
		return []Direction{FromHost}
	}
	return directions
}
