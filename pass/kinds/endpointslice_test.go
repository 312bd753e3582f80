package kinds

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/syncpass/syncpass/record"
)

var (
	podTarget = Content{"kind": "Pod", "namespace": "default", "name": "p", "uid": "u"}
	tcp80     = []any{Content{"name": "", "port": int64(80), "protocol": "TCP"}}
)

func endpoint(address string, target any) Content {
	e := Content{"addresses": []any{address}, "conditions": Content{"ready": true}}
	if target != nil {
		e["targetRef"] = target
	}
	return e
}

func subsets(target any) Content {
	ready, notReady := Content{"ip": "192.0.2.7"}, Content{"ip": "192.0.2.8"}
	if target != nil {
		ready["targetRef"], notReady["targetRef"] = target, target
	}
	return Content{"subsets": []any{Content{"addresses": []any{ready, Content{"ip": "192.0.2.9"}}, "notReadyAddresses": []any{notReady}, "ports": tcp80}}}
}

func slice(endpoints ...any) Content {
	return Content{"addressType": "IPv4", "endpoints": endpoints, "ports": tcp80}
}

var endpointCrossings = map[string]crossing{
	"addresses, some of a Pod": {"discovery.k8s.io/v1", "EndpointSlice",
		slice(endpoint("192.0.2.7", podTarget), endpoint("192.0.2.8", nil)), slice(endpoint("192.0.2.7", nil), endpoint("192.0.2.8", nil)), slice(endpoint("192.0.2.7", nil), endpoint("192.0.2.8", nil))},
	"addresses that the host knows a Pod of": {"discovery.k8s.io/v1", "EndpointSlice",
		slice(endpoint("192.0.2.7", nil)), slice(endpoint("192.0.2.7", nil)), slice(endpoint("192.0.2.7", podTarget))},
	"addresses ready and not, some of a Pod": {"v1", "Endpoints", subsets(podTarget), subsets(nil), subsets(nil)},
	"addresses without one":                  {"v1", "Endpoints", subsets(nil), subsets(nil), subsets(podTarget)},
}

func TestASliceBelongsToTheMirrorOfItsService(t *testing.T) {
	tenant := object("discovery.k8s.io/v1", "EndpointSlice", slice(endpoint("192.0.2.7", nil)))
	setLabel(tenant, serviceNameLabel, longName)
	setLabel(tenant, sliceManagedByLabel, "staff")
	kind := kindOf(tenant)
	host := stored(mapping.Project(kind, tenant, nil, KeepForeign))
	require.Equal(t, longHost, host.GetLabels()[serviceNameLabel])
	require.Equal(t, "staff", host.GetLabels()[sliceManagedByLabel])
	require.Equal(t, ContentOf(kind, record.Host, host), ContentOf(kind, record.Host, mapping.Project(kind, tenant, host, KeepForeign)))
	require.Equal(t, tenant.GetLabels(), mapping.Reflect(kind, host, tenant).GetLabels())

	for service, want := range map[string]string{"api-x-default-x-dev": "api", "of-the-host": "of-the-host", "api-x-other-x-dev": "api-x-other-x-dev", "": ""} {
		setLabel(host, serviceNameLabel, service)
		require.Equal(t, want, mapping.Reflect(kind, host, tenant).GetLabels()[serviceNameLabel])
	}
}

func TestWhatControllersMakeOfPodsDoesNotCross(t *testing.T) {
	for _, test := range []struct {
		name, apiVersion, kind, label, value, annotation string
		crosses                                          bool
	}{
		{"a slice of Pods", "discovery.k8s.io/v1", "EndpointSlice", sliceManagedByLabel, "endpointslice-controller.k8s.io", "", false},
		{"a slice of Endpoints", "discovery.k8s.io/v1", "EndpointSlice", sliceManagedByLabel, "endpointslicemirroring-controller.k8s.io", "", false},
		{"a slice of a person's", "discovery.k8s.io/v1", "EndpointSlice", sliceManagedByLabel, "staff", "", true},
		{"a slice of nobody's", "discovery.k8s.io/v1", "EndpointSlice", "app", "web", "", true},
		{"Endpoints of Pods", "v1", "Endpoints", "endpoints.kubernetes.io/managed-by", "endpoint-controller", "", false},
		{"Endpoints of Pods, before 1.33", "v1", "Endpoints", "app", "web", "endpoints.kubernetes.io/last-change-trigger-time", false},
		{"a lock", "v1", "Endpoints", "app", "web", "control-plane.alpha.kubernetes.io/leader", false},
		{"Endpoints of a person's", "v1", "Endpoints", "app", "web", "note", true},
	} {
		o := object(test.apiVersion, test.kind, nil)
		setLabel(o, test.label, test.value)
		if test.annotation != "" {
			setAnnotation(o, test.annotation, "x")
		}
		require.Equal(t, test.crosses, Crosses(kindOf(o), o), test.name)
		o.SetNamespace("kube-system")
		require.False(t, Crosses(kindOf(o), o), test.name)
	}
}

func TestTheTypeOfAddressesIsSettled(t *testing.T) {
	kind := kindOf(object("discovery.k8s.io/v1", "EndpointSlice", nil))
	require.NotEmpty(t, kind.Immutable(Content{"addressType": "IPv4"}, Content{"addressType": "IPv6"}))
	require.Empty(t, kind.Immutable(slice(), slice(endpoint("192.0.2.7", nil))))
}

// Endpoints belong to the Service of their name, so both mirrors must come to the same one, and the Service first.
func TestEndpointsAreNamedAsTheirService(t *testing.T) {
	endpoints, slices := kindOf(object("v1", "Endpoints", nil)), kindOf(object("discovery.k8s.io/v1", "EndpointSlice", nil))
	for _, name := range []string{"web", "9lives", longName} {
		require.Equal(t, mapping.MirrorName(services, "default", name), mapping.MirrorName(endpoints, "default", name))
	}
	require.Less(t, services.Weight(), endpoints.Weight())
	require.Less(t, services.Weight(), slices.Weight())
}
