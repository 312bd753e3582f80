package kinds

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

var (
	longName = strings.Repeat("long-", 10) + "name"
	longHost = mapping.reference("Service", "default", longName)
)

func serviceBackend(name string) Content {
	return Content{"service": Content{"name": name, "port": Content{"name": "http"}}}
}

func ingressRule(host string, backends ...any) Content {
	var paths []any
	for _, backend := range backends {
		paths = append(paths, Content{"path": "/", "pathType": "Prefix", "backend": backend})
	}
	return Content{"host": host, "http": Content{"paths": paths}}
}

func ingressOf(spec Content) Content { return Content{"spec": spec} }

var ingressCrossings = map[string]crossing{
	"backends, certificates and a host without paths": {
		apiVersion: "networking.k8s.io/v1", kind: "Ingress",
		tenant: ingressOf(Content{
			"defaultBackend": serviceBackend("web"), "ingressClassName": "public",
			"tls":   []any{Content{"hosts": []any{"a.example.com"}, "secretName": "cert"}, Content{"hosts": []any{"b.example.com"}}},
			"rules": []any{ingressRule("a.example.com", serviceBackend("api"), serviceBackend(longName)), Content{"host": "b.example.com"}},
		}),
		created: ingressOf(Content{
			"defaultBackend": serviceBackend("web-x-default-x-dev"), "ingressClassName": "public",
			"tls":   []any{Content{"hosts": []any{"a.example.com"}, "secretName": "cert-x-default-x-dev"}, Content{"hosts": []any{"b.example.com"}}},
			"rules": []any{ingressRule("a.example.com", serviceBackend("api-x-default-x-dev"), serviceBackend(longHost)), Content{"host": "b.example.com"}},
		}),
		host: ingressOf(Content{
			"defaultBackend": serviceBackend("web-x-default-x-dev"), "ingressClassName": "public",
			"tls":   []any{Content{"hosts": []any{"a.example.com"}, "secretName": "cert-x-default-x-dev"}, Content{"hosts": []any{"b.example.com"}}},
			"rules": []any{ingressRule("a.example.com", serviceBackend("api-x-default-x-dev"), serviceBackend(longHost)), Content{"host": "b.example.com"}},
		}),
	},
	"a backend of another kind, and the host's default class": {
		apiVersion: "networking.k8s.io/v1", kind: "Ingress",
		tenant:  ingressOf(Content{"defaultBackend": Content{"resource": Content{"apiGroup": "example.com", "kind": "Bucket", "name": "static"}}}),
		created: ingressOf(Content{"defaultBackend": Content{"resource": Content{"apiGroup": "example.com", "kind": "Bucket", "name": "static-x-default-x-dev"}}}),
		host:    ingressOf(Content{"ingressClassName": "nginx", "defaultBackend": Content{"resource": Content{"apiGroup": "example.com", "kind": "Bucket", "name": "static-x-default-x-dev"}}}),
	},
}

// A class that the tenant has removed goes, since it was ours; the host's default was never ours.
func TestARemovedIngressClassGoes(t *testing.T) {
	tenant := object("networking.k8s.io/v1", "Ingress", ingressOf(Content{"defaultBackend": serviceBackend("web")}))
	kind := kindOf(tenant)
	host := stored(mapping.Project(kind, tenant, nil, KeepForeign))
	require.NoError(t, unstructured.SetNestedField(host.Object, "public", "spec", "ingressClassName"))
	require.Equal(t, "public", child(mapping.Project(kind, tenant, host, KeepForeign).Object, "spec")["ingressClassName"])
	host.SetManagedFields([]metav1.ManagedFieldsEntry{entryOf(FieldManager, "", `{"f:spec":{"f:ingressClassName":{}}}`)})
	require.NotContains(t, child(mapping.Project(kind, tenant, host, KeepForeign).Object, "spec"), "ingressClassName")
}

func TestWhatTheHostRefersToComesBackUnderTheTenantsNames(t *testing.T) {
	for _, test := range []struct{ name, tenant, host, want string }{
		{"the mirror of what the tenant refers to", "web", "web-x-default-x-dev", "web"},
		{"a hashed mirror of what the tenant refers to", longName, longHost, longName},
		{"another mirror of the namespace", "web", "api-x-default-x-dev", "api"},
		{"a mirror of another namespace", "web", "api-x-other-x-dev", "api-x-other-x-dev"},
		{"a mirror of another tenant", "web", "api-x-default-x-prod", "api-x-default-x-prod"},
		{"the host's own", "web", "maintenance", "maintenance"},
		{"a name that no mirror has", "web", "a-x-b-x-default-x-dev", "a-x-b-x-default-x-dev"},
		{"nothing but the ending", "web", "-x-default-x-dev", "-x-default-x-dev"},
	} {
		t.Run(test.name, func(t *testing.T) {
			tenant := object("networking.k8s.io/v1", "Ingress", ingressOf(Content{"rules": []any{ingressRule("a.example.com", serviceBackend(test.tenant))}}))
			kind := kindOf(tenant)
			host := stored(mapping.Project(kind, tenant, nil, KeepNone))
			// Moved to another place, to see that it is the name that tells and not the place.
			host.Object["spec"] = Content{"defaultBackend": serviceBackend(test.host)}
			back := mapping.Reflect(kind, host, tenant)
			require.Equal(t, Content{"defaultBackend": serviceBackend(test.want)}, back.Object["spec"])
		})
	}
}

// A tenant never names an object of the host's, whatever it writes.
func TestAnIngressCannotNameWhatIsTheHosts(t *testing.T) {
	tenant := object("networking.k8s.io/v1", "Ingress", ingressOf(Content{
		"defaultBackend": serviceBackend("maintenance"), "tls": []any{Content{"secretName": "web-x-default-x-prod"}},
	}))
	kind := kindOf(tenant)
	host := stored(mapping.Project(kind, tenant, nil, KeepNone))
	host.Object["spec"] = Content{"defaultBackend": serviceBackend("maintenance"), "tls": []any{Content{"secretName": "web-x-default-x-prod"}}}
	spec := child(mapping.Project(kind, tenant, host, KeepForeign).Object, "spec")
	require.Equal(t, serviceBackend("maintenance-x-default-x-dev"), spec["defaultBackend"])
	require.Equal(t, mapping.reference("Secret", "default", "web-x-default-x-prod"), entries(spec["tls"])[0]["secretName"])
}

func TestTheAddressesOfALoadBalancerAreReported(t *testing.T) {
	address := func(ip string) Content {
		return Content{"loadBalancer": Content{"ingress": []any{Content{"ip": ip, "ipMode": "VIP"}}}}
	}
	own := entryOf("tenants-controller", "status", `{"f:status":{"f:loadBalancer":{"f:ingress":{}}}}`)
	ours := entryOf(FieldManager, "status", `{"f:status":{"f:loadBalancer":{"f:ingress":{}}}}`)
	conditions := Content{"loadBalancer": Content{}, "conditions": []any{Content{"type": "Ready"}}}
	balanced, plain := Content{"type": "LoadBalancer"}, Content{"type": "ClusterIP"}
	for _, test := range []struct {
		name, kind           string
		tenantSpec, hostSpec Content
		tenant, host, want   Content
		manager              metav1.ManagedFieldsEntry
	}{
		{"an Ingress gets its first address", "Ingress", nil, nil, nil, address("192.0.2.1"), address("192.0.2.1"), ours},
		{"an Ingress gets another", "Ingress", nil, nil, address("192.0.2.2"), address("192.0.2.1"), address("192.0.2.1"), ours},
		{"an Ingress loses it", "Ingress", nil, nil, address("192.0.2.2"), Content{"loadBalancer": Content{}}, Content{"loadBalancer": Content{}}, ours},
		{"an Ingress of the tenant's own controller", "Ingress", nil, nil, address("192.0.2.2"), Content{"loadBalancer": Content{}}, nil, own},
		{"nothing to report", "Ingress", nil, nil, Content{"loadBalancer": Content{}}, nil, nil, ours},
		{"reported already", "Ingress", nil, nil, address("192.0.2.1"), address("192.0.2.1"), nil, ours},
		{"a Service", "Service", balanced, balanced, Content{"loadBalancer": Content{}}, address("192.0.2.1"), address("192.0.2.1"), ours},
		{"a Service keeps its conditions", "Service", balanced, balanced, conditions, address("192.0.2.1"),
			Content{"loadBalancer": address("192.0.2.1")["loadBalancer"], "conditions": conditions["conditions"]}, ours},
		{"a Service that became another type", "Service", plain, plain, address("192.0.2.1"), Content{"loadBalancer": Content{}}, Content{"loadBalancer": Content{}}, ours},
		{"a Service that is another type on the host", "Service", balanced, plain, address("192.0.2.1"), address("192.0.2.1"), Content{"loadBalancer": Content{}}, ours},
		{"a Service that is another type in the tenant", "Service", plain, balanced, Content{"loadBalancer": Content{}}, address("192.0.2.1"), nil, ours},
	} {
		t.Run(test.name, func(t *testing.T) {
			apiVersion := map[string]string{"Ingress": "networking.k8s.io/v1", "Service": "v1"}[test.kind]
			tenant := object(apiVersion, test.kind, Content{"spec": test.tenantSpec, "status": test.tenant})
			tenant.SetManagedFields([]metav1.ManagedFieldsEntry{test.manager})
			host := object(apiVersion, test.kind, Content{"spec": test.hostSpec, "status": test.host})
			got := kindOf(tenant).(Reports).ReflectStatus(mapping, host, tenant)
			require.Equal(t, test.want, got)
			if got != nil {
				tenant.Object["status"] = got
				require.Nil(t, kindOf(tenant).(Reports).ReflectStatus(mapping, host, tenant), "once reported, there is nothing more to report")
			}
		})
	}
}
