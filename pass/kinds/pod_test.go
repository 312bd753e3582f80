package kinds

import (
	"testing"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/syncpass/syncpass/record"
)

var pods = For(schema.GroupKind{Kind: "Pod"}).(pod)

func podWith(spec, status Content) *unstructured.Unstructured {
	o := object("v1", "Pod", Content{"spec": runtime.DeepCopyJSON(spec)})
	if status != nil {
		o.Object["status"] = runtime.DeepCopyJSON(status)
	}
	return o
}

func conditionOf(kind, status string, more Content) Content {
	condition := Content{"type": kind, "status": status, "lastProbeTime": nil}
	for field, value := range more {
		condition[field] = value
	}
	return condition
}

// The host's kubelet says how a Pod is; what is not about the tenant's Pod, or not the kubelet's to say, stays behind.
func TestTheStatusOfAPodIsReported(t *testing.T) {
	spec := Content{
		"containers": []any{Content{"name": "app"}}, "initContainers": []any{Content{"name": "init"}}, "ephemeralContainers": []any{Content{"name": "debug"}},
		"readinessGates": []any{Content{"conditionType": "gate"}},
	}
	for name, test := range map[string]struct{ host, tenant, want Content }{
		"containers that the host injected are left out": { // B21
			Content{"phase": "Running", "containerStatuses": []any{Content{"name": "istio-proxy"}, Content{"name": "app", "ready": true}},
				"initContainerStatuses": []any{Content{"name": "istio-init"}, Content{"name": "init"}}, "ephemeralContainerStatuses": []any{Content{"name": "debug"}}},
			Content{"phase": "Pending"},
			Content{"phase": "Running", "containerStatuses": []any{Content{"name": "app", "ready": true}},
				"initContainerStatuses": []any{Content{"name": "init"}}, "ephemeralContainerStatuses": []any{Content{"name": "debug"}}},
		},
		"the class of the tenant's Pod never changes": { // B12
			Content{"phase": "Running", "qosClass": "Burstable"}, Content{"qosClass": "BestEffort"}, Content{"phase": "Running", "qosClass": "BestEffort"},
		},
		"a tenant that knows no class yet is told the host's": {
			Content{"phase": "Running", "qosClass": "Burstable"}, nil, Content{"phase": "Running", "qosClass": "Burstable"},
		},
		"generations are of the host's object": { // B13
			Content{"phase": "Running", "observedGeneration": int64(3), "conditions": []any{conditionOf("Ready", "True", Content{"observedGeneration": int64(3)})}},
			Content{"conditions": []any{}},
			Content{"phase": "Running", "conditions": []any{conditionOf("Ready", "True", nil)}},
		},
		"all conditions come, however few the tenant has": { // B14
			Content{"phase": "Running", "conditions": []any{conditionOf("Ready", "True", nil), conditionOf("Initialized", "True", nil)}},
			Content{"conditions": []any{conditionOf("Initialized", "False", nil)}},
			Content{"phase": "Running", "conditions": []any{conditionOf("Ready", "True", nil), conditionOf("Initialized", "True", nil)}},
		},
		"the conditions of readiness gates are the tenant's": { // B20
			Content{"phase": "Running", "conditions": []any{conditionOf("gate", "False", nil), conditionOf("Ready", "True", nil)}},
			Content{"conditions": []any{conditionOf("gate", "True", nil), conditionOf("stray", "True", nil)}},
			Content{"phase": "Running", "conditions": []any{conditionOf("Ready", "True", nil), conditionOf("gate", "True", nil)}},
		},
		"claims of devices are made by each side's controllers": {
			Content{"phase": "Running", "resourceClaimStatuses": []any{Content{"name": "gpu", "resourceClaimName": "app-x-default-x-dev-gpu-1"}},
				"extendedResourceClaimStatus": Content{"resourceClaimName": "x"}},
			Content{"resourceClaimStatuses": []any{Content{"name": "gpu", "resourceClaimName": "app-gpu-7"}}},
			Content{"phase": "Running", "resourceClaimStatuses": []any{Content{"name": "gpu", "resourceClaimName": "app-gpu-7"}}},
		},
		"a Pod that was placed and no more has nothing to tell": {
			Content{"phase": "Pending", "qosClass": "BestEffort", "conditions": []any{conditionOf("PodScheduled", "True", nil)}}, Content{"phase": "Pending"}, nil,
		},
		"a Pod that no node takes has": {
			Content{"phase": "Pending", "conditions": []any{conditionOf("PodScheduled", "False", Content{"reason": "Unschedulable"})}}, Content{"phase": "Pending"},
			Content{"phase": "Pending", "conditions": []any{conditionOf("PodScheduled", "False", Content{"reason": "Unschedulable"})}},
		},
	} {
		t.Run(name, func(t *testing.T) {
			got := pods.ReflectStatus(mapping, podWith(spec, test.host), podWith(spec, test.tenant))
			require.Equal(t, test.want, got)
			if got != nil {
				require.Equal(t, got, pods.ReflectStatus(mapping, podWith(spec, test.host), podWith(spec, got)), "once reported, there is nothing more to report")
			}
		})
	}
}

// B19, B22: whatever admission, scheduler and administrators made of a mirror, the tenant's Pod keeps its spec.
func TestTheSpecOfAMirrorNeverReachesTheTenant(t *testing.T) {
	tenant := podWith(Content{"containers": []any{Content{"name": "app", "image": "a:1"}}}, nil)
	host := stored(mapping.Project(pods, tenant, nil, KeepForeign))
	spec := child(host.Object, "spec")
	spec["nodeName"] = "n1"
	spec["tolerations"] = []any{Content{"key": "host", "operator": "Exists"}}
	spec["containers"] = []any{
		Content{"name": "app", "image": "mirror.example.com/a:1", "resources": Content{"limits": Content{"cpu": "1"}}},
		Content{"name": "sidecar", "image": "mesh:1"},
	}
	// By the API server's account of it, a webhook that changes our write is us.
	host.SetManagedFields([]metav1.ManagedFieldsEntry{entryOf(FieldManager, "", `{"f:spec":{"f:containers":{"k:{\"name\":\"app\"}":{"f:image":{}}}}}`)})
	back := mapping.Reflect(pods, host, tenant)
	require.Equal(t, tenant.Object["spec"], back.Object["spec"])
	want := mapping.Project(pods, tenant, host, KeepForeign)
	require.Empty(t, Difference(ContentOf(pods, record.Host, host), ContentOf(pods, record.Host, want)), "and it is no drift")
}

// B20: without the conditions of its gates no kubelet takes a Pod for ready.
func TestConditionsOfReadinessGatesTravelToTheHost(t *testing.T) {
	spec := Content{"containers": []any{Content{"name": "app"}}, "readinessGates": []any{Content{"conditionType": "gate"}}}
	ready := conditionOf("Ready", "False", nil)
	for name, test := range map[string]struct {
		tenant, host []any
		want         []any
	}{
		"one that is new":                               {[]any{conditionOf("gate", "True", nil)}, []any{ready}, []any{ready, Content{"type": "gate", "status": "True"}}},
		"one that changed, in its place":                {[]any{conditionOf("gate", "True", nil)}, []any{conditionOf("gate", "False", nil), ready}, []any{Content{"type": "gate", "status": "True"}, ready}},
		"one that is there in other words":              {[]any{conditionOf("gate", "True", Content{"observedGeneration": int64(4)})}, []any{Content{"type": "gate", "status": "True"}}, nil},
		"one that only a host controller set stays":     {nil, []any{conditionOf("gate", "True", nil)}, nil},
		"one that is no gate's stays with the tenant":   {[]any{conditionOf("Ready", "True", nil), conditionOf("other", "True", nil)}, []any{ready}, nil},
		"one of a shape that only a hostile server has": {[]any{Content{"type": Content{}}, "gate"}, []any{Content{"type": []any{}}}, nil},
	} {
		t.Run(name, func(t *testing.T) {
			tenant, host := podWith(spec, Content{"conditions": test.tenant}), podWith(spec, Content{"conditions": test.host})
			parts := pods.Parts(mapping, tenant, host, false)
			if test.want == nil {
				require.Empty(t, parts)
				return
			}
			require.Len(t, parts, 1)
			require.Equal(t, "status", parts[0].Subresource)
			require.Equal(t, test.want, child(parts[0].Object.Object, "status")["conditions"])
			require.Empty(t, pods.Parts(mapping, tenant, parts[0].Object, true), "once there, there is nothing more to write")
		})
	}
}

// B59: debug containers are appended by name, one after the other, and what the host added stays.
func TestDebugContainersAreAppended(t *testing.T) {
	debug := func(name, target string) Content {
		return Content{"name": name, "image": "tool:1", "targetContainerName": target}
	}
	base := Content{"containers": []any{Content{"name": "app"}}}
	with := func(debuggers ...any) Content {
		spec := runtime.DeepCopyJSON(base)
		spec["ephemeralContainers"] = debuggers
		return spec
	}
	host := podWith(with(debug("hosts-own", "app")), nil)
	for i, asked := range [][]any{{debug("one", "app")}, {debug("one", "app"), debug("two", "app")}} {
		tenant := podWith(with(asked...), nil)
		parts := pods.Parts(mapping, tenant, host, true)
		require.Len(t, parts, 1)
		host = parts[0].Object
		got := entries(child(host.Object, "spec")["ephemeralContainers"])
		require.Len(t, got, i+2)
		require.Equal(t, debug([]string{"one", "two"}[i], "app"), got[i+1])
		require.Empty(t, pods.Parts(mapping, tenant, host, true))
	}
	require.Empty(t, pods.Parts(mapping, podWith(base, nil), host, true), "none is ever taken away")
}

// A resize is the tenant's; what admission on the host set is not taken back when something else changes.
func TestAResizeIsAskedOfTheHost(t *testing.T) {
	resources := func(cpu string) Content {
		return Content{"containers": []any{Content{"name": "app", "resources": Content{"requests": Content{"cpu": cpu}}}}}
	}
	for _, test := range []struct {
		name, tenant, host string
		changed, asks      bool
	}{
		{"another amount", "2", "1", true, true},
		{"the same amount in other words", "1000m", "1", true, false}, // B63
		{"only the host changed", "2", "1", false, false},
	} {
		t.Run(test.name, func(t *testing.T) {
			parts := pods.Parts(mapping, podWith(resources(test.tenant), nil), podWith(resources(test.host), nil), test.changed)
			require.Equal(t, test.asks, len(parts) == 1, "%+v", parts)
		})
	}
}

// B29: the environment of a Pod is settled when it is made.
func TestAMirrorThatLooksForTheTenantsAPIServerWhereItWas(t *testing.T) {
	at := func(host, port string) Mapping {
		m := mapping
		m.Workloads.APIHost, m.Workloads.APIPort = host, port
		return m
	}
	spec := Content{"containers": []any{Content{"name": "app"}}}
	own := Content{"containers": []any{Content{"name": "app", "env": []any{Content{"name": apiHostVariable, "value": "mine"}, Content{"name": apiPortVariable, "value": "1"}}}}}
	for name, test := range map[string]struct {
		spec, status Content
		now          Mapping
		says         string
	}{
		"where it is":                         {spec, nil, at("a.example.com", "6443"), ""},
		"it moved":                            {spec, nil, at("b.example.com", "6443"), "KUBERNETES_SERVICE_HOST=a.example.com for the tenant's API server, which is b.example.com now"},
		"it listens elsewhere":                {spec, nil, at("a.example.com", "443"), "KUBERNETES_SERVICE_PORT=6443"},
		"a Pod that has ended":                {spec, Content{"phase": "Succeeded"}, at("b.example.com", "6443"), ""},
		"the user's own words":                {own, nil, at("b.example.com", "6443"), ""},
		"a pass that does not know the place": {spec, nil, mapping, ""},
	} {
		t.Run(name, func(t *testing.T) {
			tenant := podWith(test.spec, test.status)
			host := stored(at("a.example.com", "6443").Project(pods, tenant, nil, KeepForeign))
			said := pods.Outlived(test.now, tenant, host)
			if test.says == "" {
				require.Empty(t, said)
				return
			}
			require.Contains(t, said, test.says)
			require.Contains(t, said, "delete it in the tenant")
		})
	}
}

// A name in any place of a Pod is a mirror's on the host: no tenant names a host object that is not its own.
func TestClaimsOfDevicesAndGroupsAreTheTenantsOwn(t *testing.T) {
	tenant := podWith(Content{
		"containers":      []any{Content{"name": "app"}},
		"resourceClaims":  []any{Content{"name": "a", "resourceClaimName": "gpu"}, Content{"name": "b", "resourceClaimTemplateName": "gpus"}},
		"schedulingGroup": Content{"podGroupName": "gang"},
	}, nil)
	spec := child(mapping.Project(pods, tenant, nil, KeepForeign).Object, "spec")
	require.Equal(t, []any{
		Content{"name": "a", "resourceClaimName": "gpu-x-default-x-dev"}, Content{"name": "b", "resourceClaimTemplateName": "gpus-x-default-x-dev"},
	}, spec["resourceClaims"])
	require.Equal(t, Content{"podGroupName": "gang-x-default-x-dev"}, spec["schedulingGroup"])
	require.Len(t, Referred(pods, tenant), 3)
}
