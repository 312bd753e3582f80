package kinds

import (
	"testing"

	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// hostNode is a node as a kubelet of today reports it.
func hostNode() *unstructured.Unstructured {
	node := &unstructured.Unstructured{Object: Content{
		"apiVersion": "v1", "kind": "Node",
		"metadata": Content{
			"name": "worker-1", "uid": "host-uid", "resourceVersion": "77",
			"labels": Content{
				"kubernetes.io/hostname": "worker-1", "kubernetes.io/os": "linux", "kubernetes.io/arch": "amd64",
				"topology.kubernetes.io/zone": "a", "node.kubernetes.io/instance-type": "m5",
				"node-restriction.kubernetes.io/customer": "somebody", "node-role.kubernetes.io/control-plane": "", "company.example/rack": "17",
			},
			"annotations": Content{"flannel.alpha.coreos.com/public-ip": "203.0.113.7"},
			"finalizers":  []any{"example.com/drain"},
		},
		"spec": Content{"providerID": "cloud://1", "podCIDR": "10.1.0.0/24", "taints": []any{Content{"key": "host", "effect": "NoSchedule"}}},
		"status": Content{
			"capacity": Content{"cpu": "4", "memory": "16Gi", "pods": "110"}, "allocatable": Content{"cpu": "3920m", "memory": "15Gi", "pods": "110"},
			"addresses": []any{Content{"type": "InternalIP", "address": "10.0.0.1"}, Content{"type": "Hostname", "address": "worker-1"}},
			"nodeInfo": Content{
				"kubeletVersion": "v1.37.2", "osImage": "Debian", "architecture": "amd64", "kubeProxyVersion": "",
				"swap": Content{"capacity": int64(5)},
			},
			"conditions": []any{
				condition("MemoryPressure", "False", "10:00:00"), condition("Ready", "True", "10:00:00"),
			},
			"images":          []any{Content{"names": []any{"secret.registry/app:1"}, "sizeBytes": int64(9)}},
			"volumesInUse":    []any{"kubernetes.io/csi/x"},
			"daemonEndpoints": Content{"kubeletEndpoint": Content{"Port": int64(10250)}},
			"features":        Content{"supplementalGroupsPolicy": true},
		},
	}}
	return node
}

func condition(kind, status, heartbeat string) Content {
	return Content{
		"type": kind, "status": status, "reason": kind + "Reason", "message": "so it is",
		"lastHeartbeatTime": "2026-11-29T" + heartbeat + "Z", "lastTransitionTime": "2026-11-01T00:00:00Z", "observedGeneration": int64(3),
	}
}

func TestAStubShowsWhatATenantNeedsOfANodeAndNoMore(t *testing.T) {
	shown := func(kind, status string) Content {
		c := condition(kind, status, "10:00:00")
		delete(c, "observedGeneration")
		return c
	}
	require.Equal(t, Content{
		"apiVersion": "v1", "kind": "Node",
		"metadata": Content{"name": "worker-1", "labels": Content{
			"kubernetes.io/hostname": "worker-1", "kubernetes.io/os": "linux", "kubernetes.io/arch": "amd64",
			"topology.kubernetes.io/zone": "a", "node.kubernetes.io/instance-type": "m5",
			"app.kubernetes.io/managed-by": "tenantplane", "tenantplane.io/tenant": "dev", "tenantplane.io/kind": "node",
		}},
		"spec": Content{"unschedulable": true},
		"status": Content{
			"capacity": Content{"cpu": "4", "memory": "16Gi", "pods": "110"}, "allocatable": Content{"cpu": "3920m", "memory": "15Gi", "pods": "110"},
			"addresses":  []any{Content{"type": "InternalIP", "address": "10.0.0.1"}, Content{"type": "Hostname", "address": "worker-1"}},
			"nodeInfo":   Content{"kubeletVersion": "v1.37.2", "osImage": "Debian", "architecture": "amd64"},
			"conditions": []any{shown("MemoryPressure", "False"), shown("Ready", "True")},
		},
	}, mapping.Stub(hostNode(), nil).Object)
}

// What the tenant's API server and controllers make of a stub is theirs: taints, a podCIDR, labels, other conditions' order.
func TestAStubKeepsWhatTheTenantHasMadeOfIt(t *testing.T) {
	stub := mapping.Stub(hostNode(), nil)
	stub.SetUID("tenant-uid")
	stub.SetResourceVersion("5")
	stub.SetAnnotations(map[string]string{"node.alpha.kubernetes.io/ttl": "0"})
	labels := stub.GetLabels()
	labels["beta.kubernetes.io/os"], labels["team"] = "linux", "a"
	labels["topology.kubernetes.io/region"] = "was there once"
	stub.SetLabels(labels)
	spec := child(stub.Object, "spec")
	spec["podCIDR"], spec["taints"] = "10.9.0.0/24", []any{Content{"key": "node.kubernetes.io/unschedulable", "effect": "NoSchedule"}}
	status := child(stub.Object, "status")
	status["nodeInfo"].(Content)["kubeProxyVersion"] = ""
	status["daemonEndpoints"] = Content{"kubeletEndpoint": Content{"Port": int64(0)}}
	conditions := status["conditions"].([]any)
	conditions[0], conditions[1] = conditions[1], conditions[0]

	want := mapping.Stub(hostNode(), stub)
	object, reported := NodeDifference(stub, want)
	require.Equal(t, []Path{{"metadata", "labels", "topology.kubernetes.io/region"}}, object)
	require.Empty(t, reported)
	require.Equal(t, "linux", want.GetLabels()["beta.kubernetes.io/os"])
	require.Equal(t, "a", want.GetLabels()["team"])
	require.Equal(t, stub.GetAnnotations(), want.GetAnnotations())
	require.Equal(t, "5", want.GetResourceVersion())
	require.EqualValues(t, "tenant-uid", want.GetUID())
	require.Equal(t, Content{"unschedulable": true, "podCIDR": "10.9.0.0/24", "taints": spec["taints"]}, child(want.Object, "spec"))
	require.Equal(t, status["daemonEndpoints"], child(want.Object, "status")["daemonEndpoints"])
}

func TestWhatCountsAsADifferenceOfANode(t *testing.T) {
	for _, test := range []struct {
		name           string
		host           func(node *unstructured.Unstructured)
		stub           func(node *unstructured.Unstructured)
		object, status []Path
	}{
		{name: "a heartbeat does not", host: func(node *unstructured.Unstructured) {
			node.Object["status"].(Content)["conditions"] = []any{condition("MemoryPressure", "False", "10:05:00"), condition("Ready", "True", "10:05:00")}
		}},
		{name: "images and volumes do not", host: func(node *unstructured.Unstructured) {
			status := node.Object["status"].(Content)
			status["images"], status["volumesInUse"], status["volumesAttached"] = []any{}, []any{"other"}, []any{Content{"name": "v"}}
		}},
		{name: "what newer kubelets report does not", host: func(node *unstructured.Unstructured) {
			status := node.Object["status"].(Content)
			status["nodeInfo"].(Content)["swap"] = Content{"capacity": int64(6)}
			status["declaredFeatures"] = []any{"A"}
		}},
		{name: "the host's own labels, annotations and taints do not", host: func(node *unstructured.Unstructured) {
			node.SetLabels(map[string]string{
				"kubernetes.io/hostname": "worker-1", "kubernetes.io/os": "linux", "kubernetes.io/arch": "amd64",
				"topology.kubernetes.io/zone": "a", "node.kubernetes.io/instance-type": "m5", "company.example/rack": "18",
			})
			node.SetAnnotations(nil)
			node.Object["spec"] = Content{"unschedulable": true}
		}},
		{name: "a zone does", host: func(node *unstructured.Unstructured) {
			node.SetLabels(map[string]string{"kubernetes.io/hostname": "worker-1", "kubernetes.io/os": "linux", "kubernetes.io/arch": "amd64",
				"topology.kubernetes.io/zone": "b", "node.kubernetes.io/instance-type": "m5"})
		}, object: []Path{{"metadata", "labels", "topology.kubernetes.io/zone"}}},
		{name: "readiness does", host: func(node *unstructured.Unstructured) {
			node.Object["status"].(Content)["conditions"] = []any{condition("MemoryPressure", "False", "10:00:00"), condition("Ready", "False", "10:00:00")}
		}, status: []Path{{"status", "conditions"}}},
		{name: "capacity does", host: func(node *unstructured.Unstructured) {
			node.Object["status"].(Content)["capacity"].(Content)["memory"] = "32Gi"
		}, status: []Path{{"status", "capacity", "memory"}}},
		{name: "that the tenant uncordons the stub does", stub: func(node *unstructured.Unstructured) {
			delete(node.Object["spec"].(Content), "unschedulable")
		}, object: []Path{{"spec", "unschedulable"}}},
		{name: "a status that the tenant's server did not take does", stub: func(node *unstructured.Unstructured) {
			delete(node.Object, "status")
		}, status: []Path{
			{"status", "addresses"}, {"status", "allocatable", "cpu"}, {"status", "allocatable", "memory"}, {"status", "allocatable", "pods"},
			{"status", "capacity", "cpu"}, {"status", "capacity", "memory"}, {"status", "capacity", "pods"}, {"status", "conditions"},
			{"status", "nodeInfo", "architecture"}, {"status", "nodeInfo", "kubeletVersion"}, {"status", "nodeInfo", "osImage"},
		}},
		{name: "what makes no sense in the tenant is repaired", stub: func(node *unstructured.Unstructured) {
			node.Object["spec"], node.Object["status"] = "nonsense", Content{"conditions": []any{"nonsense"}, "capacity": []any{}}
		}, object: []Path{{"spec", "unschedulable"}}, status: []Path{
			{"status", "addresses"}, {"status", "allocatable", "cpu"}, {"status", "allocatable", "memory"}, {"status", "allocatable", "pods"},
			{"status", "capacity", "cpu"}, {"status", "capacity", "memory"}, {"status", "capacity", "pods"}, {"status", "conditions"},
			{"status", "nodeInfo", "architecture"}, {"status", "nodeInfo", "kubeletVersion"}, {"status", "nodeInfo", "osImage"},
		}},
	} {
		t.Run(test.name, func(t *testing.T) {
			host, stub := hostNode(), mapping.Stub(hostNode(), nil)
			if test.host != nil {
				test.host(host)
			}
			if test.stub != nil {
				test.stub(stub)
			}
			want := mapping.Stub(host, stub)
			object, status := NodeDifference(stub, want)
			require.Equal(t, test.object, object)
			require.Equal(t, test.status, status)
			object, status = NodeDifference(want, mapping.Stub(host, want))
			require.Empty(t, object, "the next pass is quiet")
			require.Empty(t, status, "the next pass is quiet")
		})
	}
}

func TestOnlyOurMarksMakeANodeOurs(t *testing.T) {
	require.True(t, mapping.OwnsNode(mapping.Stub(hostNode(), nil)))
	require.False(t, mapping.OwnsNode(hostNode()))
	for key := range mapping.NodeMarks() {
		for _, value := range []string{"", "other"} {
			stub := mapping.Stub(hostNode(), nil)
			labels := stub.GetLabels()
			labels[key] = value
			stub.SetLabels(labels)
			require.False(t, mapping.OwnsNode(stub), "%s=%q", key, value)
		}
	}
}

// Only mirrors of this tenant tell where it runs: not others' Pods, and not what the tenant says.
func TestNodesAreThoseOfOurMirrors(t *testing.T) {
	on := func(name, node string) *unstructured.Unstructured {
		pod := object("v1", "Pod", Content{"spec": Content{}})
		pod.SetName(name)
		mirror := mapping.Project(For(schema.GroupKind{Kind: "Pod"}), pod, nil, KeepForeign)
		if node != "" {
			child(mirror.Object, "spec")["nodeName"] = node
		}
		return mirror
	}
	foreign := on("foreign", "worker-9")
	foreign.SetLabels(nil)
	copied := on("copied", "worker-8")
	copied.SetName("elsewhere")
	require.Equal(t, []string{"worker-1", "worker-2"}, mapping.NodesOf([]*unstructured.Unstructured{
		on("a", "worker-2"), on("b", "worker-1"), on("c", "worker-2"), on("pending", ""), foreign, copied,
	}))
}
