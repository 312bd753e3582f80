package kinds

import (
	"cmp"
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// A stub is the Node that the tenant is shown for a host node that one of its Pods runs on. It is no mirror like others:
// Nodes are cluster-scoped on both sides, the host is the origin, and it is the tenant where something is made.
//
// A stub is named like its host node. A Pod's nodeName, the affinity that a DaemonSet gives its Pods (by metadata.name)
// and the label kubernetes.io/hostname then mean the same on both sides, and no name has to be translated back.
//
// A stub is unschedulable. The host's scheduler places the tenant's Pods, and one that the tenant had as well would bind
// Pods to nodes that the host then does not choose. The tenant's node lifecycle controller makes the usual taint of it
// (https://kubernetes.io/docs/reference/labels-annotations-taints/#node-kubernetes-io-unschedulable).

// kindNode is the kind label of stubs and of their Leases.
const kindNode = "node"

// IsNode says whether a kind is Node, the one cluster-scoped kind that a policy can have.
func IsNode(kind schema.GroupKind) bool { return kind == schema.GroupKind{Kind: "Node"} }

// NodeMarks are the labels of the stubs that the tenant is shown, and of their Leases.
func (m Mapping) NodeMarks() map[string]string {
	return map[string]string{LabelManagedBy: ManagedBy, LabelTenant: labelValue(m.Tenant), LabelKind: kindNode}
}

// OwnsNode says whether a Node of the tenant is a stub that we made.
func (m Mapping) OwnsNode(node metav1.Object) bool {
	labels := node.GetLabels()
	for key, value := range m.NodeMarks() {
		if labels[key] != value {
			return false
		}
	}
	return true
}

// NodeName is the node that a Pod is on, empty where it is on none.
func NodeName(pod *unstructured.Unstructured) string {
	node, _, _ := unstructured.NestedString(pod.Object, "spec", "nodeName")
	return node
}

// NodesOf are the names of the nodes that mirrors among the Pods of the host namespace are on, sorted. What the tenant
// says has no part in it: a tenant that names a node must not be shown it for that.
func (m Mapping) NodesOf(pods []*unstructured.Unstructured) []string {
	kind := For(schema.GroupKind{Kind: "Pod"})
	var names []string
	for _, object := range pods {
		if _, owned := m.Identify(kind, kind.Name(), object); owned == Ours && NodeName(object) != "" {
			names = append(names, NodeName(object))
		}
	}
	slices.Sort(names)
	return slices.Compact(names)
}

// Stub is the stub that a host node should have in the tenant. current is the stub as it stands, nil for a create; what
// the tenant's controllers and people wrote to it stays (taints, podCIDR, labels and annotations of their own).
func (m Mapping) Stub(host, current *unstructured.Unstructured) *unstructured.Unstructured {
	stub := &unstructured.Unstructured{Object: Content{}}
	if current != nil {
		stub = current.DeepCopy()
		stub.SetManagedFields(nil)
	}
	stub.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind("Node"))
	stub.SetName(host.GetName())

	labels := nonNil(stub.GetLabels())
	for key := range labels {
		if nodeLabel(key) {
			delete(labels, key)
		}
	}
	carryOver(labels, host.GetLabels(), nodeLabel)
	maps.Copy(labels, m.NodeMarks())
	stub.SetLabels(labels)

	spec := child(stub.Object, "spec")
	if spec == nil {
		spec = Content{}
		stub.Object["spec"] = spec
	}
	spec["unschedulable"] = true

	status := child(stub.Object, "status")
	if status == nil {
		status = Content{}
		stub.Object["status"] = status
	}
	reported := nodeStatus(host)
	for _, field := range nodeStatusFields {
		if delete(status, field); !isEmpty(reported[field]) {
			status[field] = reported[field]
		}
	}
	return stub
}

// nodeLabel says whether a label of a host node is shown: what Kubernetes itself says about machine and place
// (https://kubernetes.io/docs/reference/labels-annotations-taints/). The host's own labels are not, which may say
// anything, and the ones of node-restriction.kubernetes.io least of all, by which a host keeps its nodes apart.
func nodeLabel(key string) bool {
	switch key {
	case corev1.LabelHostname, corev1.LabelOSStable, corev1.LabelArchStable, corev1.LabelInstanceTypeStable, corev1.LabelWindowsBuild:
		return true
	}
	return strings.HasPrefix(key, "topology.kubernetes.io/")
}

// nodeStatusFields are what a stub shows of its host node's status. What changes all the time (images, volumes in use)
// and the kubelet's port, which is not for the tenant's API server, are left out.
var nodeStatusFields = []string{"capacity", "allocatable", "addresses", "nodeInfo", "conditions"}

// What is shown of a node is named field by field: a newer host's field that the tenant's API server does not store would
// otherwise be written in every pass.
var (
	nodeInfoFields = []string{
		"architecture", "bootID", "containerRuntimeVersion", "kernelVersion", "kubeProxyVersion", "kubeletVersion", "machineID",
		"operatingSystem", "osImage", "systemUUID",
	}
	nodeConditionFields = []string{"type", "status", "reason", "message", "lastHeartbeatTime", "lastTransitionTime"}
	nodeAddressFields   = []string{"type", "address"}
)

// nodeStatus is what is shown of a node's status.
func nodeStatus(node *unstructured.Unstructured) Content {
	status := child(node.Object, "status")
	return Content{
		"capacity":    runtime.DeepCopyJSON(child(status, "capacity")),
		"allocatable": runtime.DeepCopyJSON(child(status, "allocatable")),
		"nodeInfo":    filled(child(status, "nodeInfo"), nodeInfoFields),
		"addresses":   eachFilled(status["addresses"], nodeAddressFields),
		"conditions":  eachFilled(status["conditions"], nodeConditionFields),
	}
}

// filled are the named fields that hold a text.
func filled(content Content, fields []string) Content {
	kept := Content{}
	for _, field := range fields {
		if value := text(content[field]); value != "" {
			kept[field] = value
		}
	}
	return kept
}

func eachFilled(list any, fields []string) []any {
	kept := []any{}
	for _, entry := range entries(list) {
		kept = append(kept, filled(entry, fields))
	}
	return kept
}

// NodeDifference lists where a stub differs from the one wanted: in what an update of the Node writes, and in what one of
// its status does. A heartbeat is no difference, since every node has one every few minutes; the stub's Lease tells the
// tenant that the node lives.
func NodeDifference(stub, want *unstructured.Unstructured) (object, status []Path) {
	return Difference(nodeContent(stub), nodeContent(want)), Difference(
		Content{"status": comparableStatus(stub)}, Content{"status": comparableStatus(want)})
}

// nodeContent is what of a stub's metadata and spec is ours.
func nodeContent(stub *unstructured.Unstructured) Content {
	labels := Content{}
	for key, value := range stub.GetLabels() {
		if nodeLabel(key) {
			labels[key] = value
		}
	}
	return Content{"metadata": Content{"labels": labels}, "spec": Content{"unschedulable": child(stub.Object, "spec")["unschedulable"]}}
}

func comparableStatus(stub *unstructured.Unstructured) Content {
	status := nodeStatus(stub)
	for _, condition := range entries(status["conditions"]) {
		delete(condition, "lastHeartbeatTime")
	}
	// The order of conditions says nothing, and a controller of the tenant's may add its own.
	slices.SortStableFunc(status["conditions"].([]any), func(a, b any) int {
		return cmp.Compare(text(a.(Content)["type"]), text(b.(Content)["type"]))
	})
	for field, value := range status {
		if isEmpty(value) {
			delete(status, field)
		}
	}
	return status
}

// Bind is what a tenant's Pod is bound to a node with, on the condition that it is the Pod that was read.
func Bind(pod *unstructured.Unstructured, node string) *unstructured.Unstructured {
	binding := &unstructured.Unstructured{Object: Content{"target": Content{"apiVersion": "v1", "kind": "Node", "name": node}}}
	binding.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind("Binding"))
	binding.SetNamespace(pod.GetNamespace())
	binding.SetName(pod.GetName())
	binding.SetUID(pod.GetUID())
	binding.SetResourceVersion(pod.GetResourceVersion())
	return binding
}
