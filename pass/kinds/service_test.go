package kinds

import (
	"testing"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/syncpass/syncpass/record"
)

func serviceOf(spec Content) *unstructured.Unstructured {
	return object("v1", "Service", Content{"spec": runtime.DeepCopyJSON(spec)})
}

func port(name string, number int64, more Content) Content {
	p := Content{"name": name, "port": number, "protocol": "TCP", "targetPort": number}
	for field, value := range more {
		p[field] = value
	}
	return p
}

// What each side's API server makes of the same Service: other addresses, other ports, the same content.
var servicesOfBothSides = map[string]struct{ tenant, host Content }{
	"a ClusterIP Service": {
		Content{"type": "ClusterIP", "clusterIP": "10.43.0.7", "clusterIPs": []any{"10.43.0.7"}, "ipFamilies": []any{"IPv4"}, "ipFamilyPolicy": "SingleStack",
			"selector": Content{"app": "web", "tenantplane.io/tenant": "the tenant's own"}, "ports": []any{port("http", 80, nil)}, "sessionAffinity": "None"},
		Content{"type": "ClusterIP", "clusterIP": "10.96.3.1", "clusterIPs": []any{"10.96.3.1"}, "ipFamilies": []any{"IPv6"}, "ipFamilyPolicy": "SingleStack",
			"selector": Content{"app": "web", "alias.tenantplane.io/tenant": "the tenant's own", LabelTenant: "dev", LabelVirtualNamespace: "default"}, "ports": []any{port("http", 80, nil)}, "sessionAffinity": "None"},
	},
	"a headless Service": {
		Content{"type": "ClusterIP", "clusterIP": "None", "clusterIPs": []any{"None"}, "selector": Content{"app": "db"}, "ports": []any{port("sql", 5432, nil)}},
		Content{"type": "ClusterIP", "clusterIP": "None", "clusterIPs": []any{"None"}, "selector": Content{"app": "db", LabelTenant: "dev", LabelVirtualNamespace: "default"}, "ports": []any{port("sql", 5432, nil)}},
	},
	"a NodePort Service": {
		Content{"type": "NodePort", "clusterIP": "10.43.0.7", "clusterIPs": []any{"10.43.0.7"}, "externalTrafficPolicy": "Cluster",
			"ports": []any{port("http", 80, Content{"nodePort": int64(30080)}), port("https", 443, Content{"nodePort": int64(30443)})}},
		Content{"type": "NodePort", "clusterIP": "10.96.3.1", "clusterIPs": []any{"10.96.3.1"}, "externalTrafficPolicy": "Cluster",
			"ports": []any{port("http", 80, Content{"nodePort": int64(31111)}), port("https", 443, Content{"nodePort": int64(31112)})}},
	},
	"a LoadBalancer Service with local traffic": {
		Content{"type": "LoadBalancer", "clusterIP": "10.43.0.7", "clusterIPs": []any{"10.43.0.7"}, "externalTrafficPolicy": "Local", "healthCheckNodePort": int64(30999),
			"allocateLoadBalancerNodePorts": true, "ports": []any{port("http", 80, Content{"nodePort": int64(30080)})}},
		Content{"type": "LoadBalancer", "clusterIP": "10.96.3.1", "clusterIPs": []any{"10.96.3.1"}, "externalTrafficPolicy": "Local", "healthCheckNodePort": int64(32999),
			"allocateLoadBalancerNodePorts": true, "ports": []any{port("http", 80, Content{"nodePort": int64(31111)})}},
	},
	"an ExternalName Service": {
		Content{"type": "ExternalName", "externalName": "db.example.com"},
		Content{"type": "ExternalName", "externalName": "db.example.com"},
	},
	"a Service without a selector": {
		Content{"type": "ClusterIP", "clusterIP": "10.43.0.7", "clusterIPs": []any{"10.43.0.7"}, "ports": []any{port("http", 80, nil)}},
		Content{"type": "ClusterIP", "clusterIP": "10.96.3.1", "clusterIPs": []any{"10.96.3.1"}, "ports": []any{port("http", 80, nil)}},
	},
}

func TestServicesCrossWithoutTheirAddresses(t *testing.T) {
	for name, sides := range servicesOfBothSides {
		t.Run(name, func(t *testing.T) {
			tenant := serviceOf(sides.tenant)
			created := mapping.Project(services, tenant, nil, KeepNone)
			spec := child(created.Object, "spec")
			if sides.tenant["clusterIP"] == "None" {
				require.Equal(t, "None", spec["clusterIP"], "None is no address")
			} else {
				require.NotContains(t, spec, "clusterIP")
			}
			for _, field := range allocated {
				require.NotContains(t, spec, field)
			}
			for _, p := range entries(spec["ports"]) {
				require.NotContains(t, p, "nodePort")
			}

			host := stored(created)
			host.Object["spec"] = runtime.DeepCopyJSON(sides.host)
			want := mapping.Project(services, tenant, host, KeepForeign)
			require.Equal(t, sides.host, want.Object["spec"], "an update takes what the host has allocated")
			require.Empty(t, Difference(ContentOf(services, record.Host, host), ContentOf(services, record.Host, want)))

			back := mapping.Reflect(services, host, tenant)
			require.Equal(t, sides.tenant, back.Object["spec"], "and so does the way back")
			require.Equal(t, ContentOf(services, record.Tenant, tenant), ContentOf(services, record.Tenant, back))
		})
	}
}

// A Service selects the Pods of its own tenant namespace, whatever the tenant writes into its selector.
func TestASelectorCannotReachOtherTenants(t *testing.T) {
	tenant := serviceOf(Content{"selector": Content{LabelTenant: "victim", LabelVirtualNamespace: "victim", LabelManagedBy: "x"}})
	selector := child(child(mapping.Project(services, tenant, nil, KeepNone).Object, "spec"), "selector")
	require.Equal(t, Content{
		LabelTenant: "dev", LabelVirtualNamespace: "default",
		"alias.tenantplane.io/tenant": "victim", "alias.tenantplane.io/virtual-namespace": "victim", "app-kubernetes-io.tenantplane.io/managed-by": "x",
	}, selector)

	pod := object("v1", "Pod", Content{"spec": Content{}})
	pod.SetLabels(map[string]string{LabelTenant: "victim", LabelVirtualNamespace: "victim", LabelManagedBy: "x"})
	labels := mapping.Project(For(pod.GroupVersionKind().GroupKind()), pod, nil, KeepNone).GetLabels()
	for key, value := range selector {
		require.Equal(t, value, labels[key], "the selector still selects the Pod that it selected in the tenant")
	}
}

func TestServicePortsKeepTheirNodePorts(t *testing.T) {
	host := stored(mapping.Project(services, serviceOf(Content{"type": "NodePort"}), nil, KeepNone))
	host.Object["spec"] = Content{"type": "NodePort", "clusterIP": "10.96.0.9", "ports": []any{
		port("dns-tcp", 53, Content{"nodePort": int64(30001)}),
		Content{"name": "dns-udp", "port": int64(53), "protocol": "UDP", "nodePort": int64(30002)},
		port("gone", 99, Content{"nodePort": int64(30003)}),
	}}
	for _, test := range []struct {
		name, typeOf string
		want         []any
	}{
		{"reordered and one more", "NodePort", []any{int64(30002), nil, int64(30001)}},
		{"no node ports for a ClusterIP", "ClusterIP", []any{nil, nil, nil}},
	} {
		t.Run(test.name, func(t *testing.T) {
			tenant := serviceOf(Content{"type": test.typeOf, "ports": []any{
				Content{"name": "dns-udp", "port": int64(53), "protocol": "UDP"}, port("new", 80, nil), port("dns-tcp", 53, nil),
			}})
			spec := child(mapping.Project(services, tenant, host, KeepNone).Object, "spec")
			var got []any
			for _, p := range entries(spec["ports"]) {
				got = append(got, p["nodePort"])
			}
			require.Equal(t, test.want, got)
			require.Equal(t, "10.96.0.9", spec["clusterIP"])
		})
	}
}

func TestAHealthCheckPortFollowsLocalTrafficOnly(t *testing.T) {
	for _, test := range []struct {
		policy string
		keeps  bool
	}{{"Local", true}, {"Cluster", false}, {"", false}} {
		spec := Content{"type": "LoadBalancer", "externalTrafficPolicy": test.policy}
		adoptAllocated(spec, Content{"healthCheckNodePort": int64(32999)})
		require.Equal(t, test.keeps, spec["healthCheckNodePort"] != nil)
	}
}

// What only a hostile server sends.
func TestServicesOfAnUnlikelyShape(t *testing.T) {
	for name, spec := range map[string]any{
		"no spec":             nil,
		"a spec of text":      "x",
		"ports of text":       Content{"ports": "x"},
		"a port of text":      Content{"type": "NodePort", "ports": []any{"x", nil, int64(7)}},
		"a port named a map":  Content{"type": "NodePort", "ports": []any{Content{"name": Content{}, "port": []any{}, "nodePort": int64(1)}}},
		"a selector of text":  Content{"selector": "x"},
		"an address in a map": Content{"clusterIP": Content{}, "type": []any{}},
	} {
		t.Run(name, func(t *testing.T) {
			odd := object("v1", "Service", Content{"spec": spec})
			sane := serviceOf(servicesOfBothSides["a NodePort Service"].host)
			for _, pair := range [][2]*unstructured.Unstructured{{odd, sane}, {sane, odd}, {odd, odd}} {
				mapping.Project(services, pair[0], nil, KeepNone)
				want := mapping.Project(services, pair[0], pair[1], KeepForeign)
				back := mapping.Reflect(services, pair[0], pair[1])
				services.Immutable(pair[1].Object, want.Object)
				services.Immutable(pair[1].Object, back.Object)
				ContentOf(services, record.Host, want)
			}
		})
	}
}

func serviceCrossing(tenant, created, host Content) crossing {
	return crossing{"v1", "Service", Content{"spec": tenant}, Content{"spec": created}, Content{"spec": host}}
}

var serviceCrossings = map[string]crossing{
	"the name of a Service of the tenant's own cluster": serviceCrossing( // B30
		Content{"type": "ExternalName", "externalName": "db.prod.svc.cluster.local"},
		Content{"type": "ExternalName", "externalName": "db-x-prod-x-dev.team-dev.svc.cluster.local"},
		Content{"type": "ExternalName", "externalName": "db-x-prod-x-dev.team-dev.svc.cluster.local"}),
	"the name of a Service of the tenant's own cluster, in short": serviceCrossing(
		Content{"type": "ExternalName", "externalName": "kubernetes.default.svc."},
		Content{"type": "ExternalName", "externalName": "kubernetes-x-default-x-dev.team-dev.svc.cluster.local"},
		Content{"type": "ExternalName", "externalName": "kubernetes-x-default-x-dev.team-dev.svc.cluster.local"}),
	"a name that only looks like one of the cluster": serviceCrossing(
		Content{"type": "ExternalName", "externalName": "db.prod.svc.example.com"},
		Content{"type": "ExternalName", "externalName": "db.prod.svc.example.com"},
		Content{"type": "ExternalName", "externalName": "db.prod.svc.example.com"}),
	"two families required, of a host that has one": serviceCrossing(
		Content{"type": "ClusterIP", "clusterIP": "10.43.0.7", "clusterIPs": []any{"10.43.0.7", "fd00::7"}, "ipFamilies": []any{"IPv4", "IPv6"}, "ipFamilyPolicy": "RequireDualStack"},
		Content{"type": "ClusterIP", "ipFamilyPolicy": "PreferDualStack"},
		Content{"type": "ClusterIP", "clusterIP": "10.96.3.1", "clusterIPs": []any{"10.96.3.1"}, "ipFamilies": []any{"IPv4"}, "ipFamilyPolicy": "PreferDualStack"}),
	"two families preferred, on a host that has two": serviceCrossing(
		Content{"type": "ClusterIP", "clusterIP": "10.43.0.7", "clusterIPs": []any{"10.43.0.7"}, "ipFamilies": []any{"IPv4"}, "ipFamilyPolicy": "PreferDualStack"},
		Content{"type": "ClusterIP", "ipFamilyPolicy": "PreferDualStack"},
		Content{"type": "ClusterIP", "clusterIP": "fd00::7", "clusterIPs": []any{"fd00::7", "10.96.3.1"}, "ipFamilies": []any{"IPv6", "IPv4"}, "ipFamilyPolicy": "PreferDualStack"}),
	"two families that the host's admin requires too": serviceCrossing(
		Content{"type": "ClusterIP", "ipFamilyPolicy": "RequireDualStack"},
		Content{"type": "ClusterIP", "ipFamilyPolicy": "PreferDualStack"},
		Content{"type": "ClusterIP", "ipFamilyPolicy": "RequireDualStack"}),
	"headless and without a selector": serviceCrossing(
		Content{"type": "ClusterIP", "clusterIP": "None", "clusterIPs": []any{"None"}, "ipFamilies": []any{"IPv4", "IPv6"}, "ipFamilyPolicy": "RequireDualStack", "ports": []any{port("sql", 5432, nil)}},
		Content{"type": "ClusterIP", "clusterIP": "None", "ipFamilyPolicy": "PreferDualStack", "ports": []any{port("sql", 5432, nil)}},
		Content{"type": "ClusterIP", "clusterIP": "None", "clusterIPs": []any{"None"}, "ipFamilies": []any{"IPv4", "IPv6"}, "ipFamilyPolicy": "PreferDualStack", "ports": []any{port("sql", 5432, nil)}}),
	"addresses that the tenant chose outside of the allocators, of which externalIPs do not cross": serviceCrossing(
		Content{"type": "LoadBalancer", "loadBalancerIP": "192.0.2.1", "externalIPs": []any{"192.0.2.2"}, "loadBalancerSourceRanges": []any{"10.0.0.0/8"}, "loadBalancerClass": "example.com/lb"},
		Content{"type": "LoadBalancer", "loadBalancerIP": "192.0.2.1", "loadBalancerSourceRanges": []any{"10.0.0.0/8"}, "loadBalancerClass": "example.com/lb"},
		Content{"type": "LoadBalancer", "loadBalancerIP": "192.0.2.1", "loadBalancerSourceRanges": []any{"10.0.0.0/8"}, "loadBalancerClass": "example.com/lb"}),
}

// The managedFields are those of a kube-apiserver 1.37 after a create by kubectl that named the first and third node
// port: what it allocates itself is in nobody's.
const servicePortsOfKubectl = `{"f:spec":{"f:ports":{".":{},
	"k:{\"port\":80,\"protocol\":\"TCP\"}":{".":{},"f:name":{},"f:nodePort":{},"f:port":{},"f:protocol":{},"f:targetPort":{}},
	"k:{\"port\":81,\"protocol\":\"TCP\"}":{".":{},"f:name":{},"f:port":{},"f:protocol":{},"f:targetPort":{}},
	"k:{\"port\":82,\"protocol\":\"TCP\"}":{".":{},"f:name":{},"f:nodePort":{},"f:port":{},"f:protocol":{},"f:targetPort":{}}},"f:type":{}}}`

func TestANodePortThatWasAskedForIsTriedAndGivenUp(t *testing.T) {
	nodePorts := func(o *unstructured.Unstructured) []any {
		var found []any
		for _, p := range entries(child(o.Object, "spec")["ports"]) {
			found = append(found, p["nodePort"])
		}
		return found
	}
	tenant := serviceOf(Content{"type": "NodePort", "ports": []any{
		port("a", 80, Content{"nodePort": int64(30080)}), port("b", 81, Content{"nodePort": int64(30915)}), port("c", 82, Content{"nodePort": int64(30082)}),
	}})
	require.Equal(t, []any{nil, nil, nil}, nodePorts(mapping.Project(services, tenant, nil, KeepNone)), "nobody asked for any")
	tenant.SetManagedFields([]metav1.ManagedFieldsEntry{entryOf("kubectl", "", servicePortsOfKubectl)})
	mirror := mapping.Project(services, tenant, nil, KeepNone)
	require.Equal(t, []any{int64(30080), nil, int64(30082)}, nodePorts(mirror))
	require.Equal(t, ContentOf(services, record.Host, mirror), ContentOf(services, record.Host, stored(mapping.Project(services, tenant, nil, KeepNone))))

	yields := services.(Yields)
	for _, test := range []struct {
		refused []string
		want    []any
		given   string
	}{
		{[]string{"spec.ports[0].nodePort"}, []any{nil, nil, int64(30082)}, "30080"},
		{[]string{"spec.ports[0].nodePort", "spec.ports[2].nodePort"}, []any{nil, nil, nil}, "30080, 30082"},
		{[]string{"spec.ports[1].nodePort"}, nil, ""},
		{[]string{"spec.ports[9].nodePort", "spec.type"}, nil, ""},
		{nil, nil, ""},
	} {
		yielded, given := yields.Yield(mirror, test.refused)
		if test.want == nil {
			require.Nil(t, yielded, "there is nothing to give up")
			continue
		}
		require.Equal(t, test.want, nodePorts(yielded))
		require.Contains(t, given, test.given)
		require.Equal(t, []any{int64(30080), nil, int64(30082)}, nodePorts(mirror))
	}

	host := stored(mirror)
	host.Object["spec"] = Content{"type": "NodePort", "ports": []any{
		port("a", 80, Content{"nodePort": int64(32591)}), port("b", 81, Content{"nodePort": int64(31981)}), port("c", 82, Content{"nodePort": int64(30082)}),
	}}
	require.Equal(t, []any{int64(32591), int64(31981), int64(30082)}, nodePorts(mapping.Project(services, tenant, host, KeepForeign)), "what was given up is not asked for again")

	tenant.Object["spec"].(Content)["type"] = "ClusterIP"
	require.Equal(t, []any{nil, nil, nil}, nodePorts(mapping.Project(services, tenant, nil, KeepNone)), "a ClusterIP has none")
}

// The type changes in place, in every direction, and takes with it what it has no use for.
func TestAServiceChangesItsType(t *testing.T) {
	host := stored(mapping.Project(services, serviceOf(Content{}), nil, KeepNone))
	host.Object["spec"] = Content{"type": "LoadBalancer", "externalTrafficPolicy": "Local", "healthCheckNodePort": int64(32999), "clusterIP": "10.96.3.1", "clusterIPs": []any{"10.96.3.1"},
		"ports": []any{port("http", 80, Content{"nodePort": int64(31111)})}}
	for typeOf, want := range map[string]Content{
		"LoadBalancer": host.Object["spec"].(Content),
		"NodePort":     {"type": "NodePort", "externalTrafficPolicy": "Local", "clusterIP": "10.96.3.1", "clusterIPs": []any{"10.96.3.1"}, "ports": []any{port("http", 80, Content{"nodePort": int64(31111)})}},
		"ClusterIP":    {"type": "ClusterIP", "clusterIP": "10.96.3.1", "clusterIPs": []any{"10.96.3.1"}, "ports": []any{port("http", 80, nil)}},
		"ExternalName": {"type": "ExternalName", "ports": []any{port("http", 80, nil)}},
	} {
		spec := Content{"type": typeOf, "ports": []any{port("http", 80, nil)}}
		if typeOf == "LoadBalancer" || typeOf == "NodePort" {
			spec["externalTrafficPolicy"] = "Local"
		}
		mirror := mapping.Project(services, serviceOf(spec), host, KeepForeign)
		require.Equal(t, want, mirror.Object["spec"], typeOf)
		require.Empty(t, services.Immutable(host.Object, mirror.Object), typeOf)
	}
}
