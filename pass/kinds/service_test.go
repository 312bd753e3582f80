package kinds

import (
	"testing"

	"github.com/stretchr/testify/require"
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
