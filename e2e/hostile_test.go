package e2e

import (
	"context"
	"encoding/json"
	"maps"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	policyv1 "k8s.io/api/policy/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/wait"

	"github.com/syncpass/syncpass/e2e/scenario"
	"github.com/syncpass/syncpass/e2e/tally"
	"github.com/syncpass/syncpass/pass"
	"github.com/syncpass/syncpass/pass/kinds"
	"github.com/syncpass/syncpass/record"
)

// The resources of the attacks.
var (
	podsResource      = corev1.SchemeGroupVersion.WithResource("pods")
	secretsResource   = corev1.SchemeGroupVersion.WithResource("secrets")
	configsResource   = corev1.SchemeGroupVersion.WithResource("configmaps")
	servicesResource  = corev1.SchemeGroupVersion.WithResource("services")
	accountsResource  = corev1.SchemeGroupVersion.WithResource("serviceaccounts")
	claimsResource    = corev1.SchemeGroupVersion.WithResource("persistentvolumeclaims")
	endpointsResource = corev1.SchemeGroupVersion.WithResource("endpoints")
	eventsResource    = corev1.SchemeGroupVersion.WithResource("events")
	slicesResource    = schema.GroupVersionResource{Group: "discovery.k8s.io", Version: "v1", Resource: "endpointslices"}
	ingressesResource = networkingv1.SchemeGroupVersion.WithResource("ingresses")
	networksResource  = networkingv1.SchemeGroupVersion.WithResource("networkpolicies")
	budgetsResource   = policyv1.SchemeGroupVersion.WithResource("poddisruptionbudgets")
	jobsResource      = schema.GroupVersionResource{Group: "apps", Version: "v1", Resource: "deployments"}
)

// hostileKinds is everything that a generous policy could carry, by the resource on the host.
var hostileKinds = map[schema.GroupVersionResource]policyLine{
	podsResource:      {"v1", "Pod", "toHost"},
	servicesResource:  {"v1", "Service", "bidirectional"},
	configsResource:   {"v1", "ConfigMap", "bidirectional"},
	secretsResource:   {"v1", "Secret", "bidirectional"},
	accountsResource:  {"v1", "ServiceAccount", "toHost"},
	claimsResource:    {"v1", "PersistentVolumeClaim", "toHost"},
	endpointsResource: {"v1", "Endpoints", "toHost"},
	slicesResource:    {"discovery.k8s.io/v1", "EndpointSlice", "toHost"},
	ingressesResource: {"networking.k8s.io/v1", "Ingress", "toHost"},
	networksResource:  {"networking.k8s.io/v1", "NetworkPolicy", "toHost"},
	budgetsResource:   {"policy/v1", "PodDisruptionBudget", "toHost"},
	jobsResource:      {"apps/v1", "Deployment", "toHost"},
}

type policyLine struct{ apiVersion, kind, direction string }

// hostilePolicy carries all of hostileKinds; a Deployment's own way of naming a Secret is listed, for the attack on it.
func hostilePolicy() scenario.Object {
	resources := []any{}
	for _, line := range hostileKinds {
		resource := object{"apiVersion": line.apiVersion, "kind": line.kind, "direction": line.direction}
		if line.kind == "Ingress" {
			resource["references"] = []any{object{"path": `spec.rules[*].host`, "kind": "Secret"}}
		}
		resources = append(resources, resource)
	}
	return scenario.Object{"conflictPolicy": "manual", "explain": object{"recordDecisions": true}, "resources": resources}
}

// treasures are what a tenant has no business with, in its own host namespace, where it would be nearest.
const treasures = `
apiVersion: v1
kind: Secret
metadata: {name: treasure}
stringData: {password: host-only-value}
---
apiVersion: v1
kind: ConfigMap
metadata: {name: treasure}
data: {setting: host-only-value}
---
apiVersion: v1
kind: ServiceAccount
metadata: {name: treasure}
---
apiVersion: v1
kind: ServiceAccount
metadata: {name: default}
---
apiVersion: v1
kind: Service
metadata: {name: treasure}
spec: {selector: {app: treasure}, ports: [{port: 80}]}
---
apiVersion: v1
kind: Pod
metadata: {name: treasure, labels: {app: treasure}}
spec: {automountServiceAccountToken: false, containers: [{name: c, image: example.com/neighbour:1}]}
---
apiVersion: v1
kind: ConfigMap
metadata: {name: neighbour-x-a-x-other, labels: {app.kubernetes.io/managed-by: tenantplane, tenantplane.io/tenant: other, tenantplane.io/virtual-namespace: a, tenantplane.io/kind: configmap}, annotations: {tenantplane.io/virtual-name: neighbour, tenantplane.io/virtual-namespace: a, tenantplane.io/virtual-uid: u}}
data: {of: another tenant}
`

// hostile is a place whose tenant is up to no good.
type hostile struct {
	*place
	tried *atomic.Int32
	// before are the resourceVersions of what stood in the host namespace before the tenant did anything.
	before map[string]string
	// passes counts those of settled.
	passes int
}

func newHostile(t *testing.T, s *surroundings, tried *atomic.Int32, name string) *hostile {
	t.Helper()
	h := &hostile{place: newPlace(t, s, name, hostilePolicy()), tried: tried}
	// The default timeouts are tight where every attempt runs beside a flood.
	maps.Copy(h.binary.Env, map[string]string{"SYNCPASS_REQUEST_TIMEOUT": "28s", "SYNCPASS_LEASE_DURATION": "45s", "SYNCPASS_PASS_TIMEOUT": "10m"})
	t.Cleanup(func() { h.empty(t) })
	h.apply(t, record.Host, treasures)
	h.apply(t, record.Tenant, "{apiVersion: v1, kind: ServiceAccount, metadata: {name: default}}")
	h.before = h.foreign(t)
	return h
}

// empty removes what the attempts left, kind by kind: usePlaces would do it one by one, and has little time.
func (h *hostile) empty(t *testing.T) {
	ctx, cancel := context.WithTimeout(h.s.ctx, flood)
	defer cancel()
	for _, side := range []record.Side{record.Host, record.Tenant} {
		for _, resource := range append(slices.Collect(maps.Keys(hostileKinds)), eventsResource) {
			err := h.objects(side, resource).DeleteCollection(ctx, *metav1.NewDeleteOptions(0), metav1.ListOptions{})
			assert.NoError(t, err, "%s %s", side, resource.Resource)
		}
	}
}

// try is one attempt, under the name of its row and of what it tries.
func (h *hostile) try(t *testing.T, row string, f func(t *testing.T)) {
	t.Helper()
	h.tried.Add(1)
	t.Run(row, f)
}

// mapping is how the place's tenant is mapped.
func (h *hostile) mapping() kinds.Mapping {
	return kinds.Mapping{Tenant: h.name, HostNamespace: h.name}
}

// foreign are the objects of the host namespace that are no mirrors of the tenant, by resource and name. What the host's
// controllers make for themselves is left out.
func (h *hostile) foreign(t *testing.T) map[string]string {
	t.Helper()
	found := map[string]string{}
	for resource, line := range hostileKinds {
		kind := kinds.For(schema.FromAPIVersionAndKind(line.apiVersion, line.kind).GroupKind())
		list, err := h.objects(record.Host, resource).List(t.Context(), metav1.ListOptions{})
		require.NoError(t, err)
		for i := range list.Items {
			one := &list.Items[i]
			_, owned := h.mapping().Identify(kind, line.kind, one)
			tokens := one.GetLabels()[kinds.LabelKind] == kinds.KindTokens
			if owned == kinds.Ours || tokens || ofControllers(resource, one) {
				continue
			}
			found[resource.Resource+"/"+one.GetName()] = string(one.GetUID()) + " " + one.GetResourceVersion()
		}
	}
	return found
}

func ofControllers(resource schema.GroupVersionResource, one *unstructured.Unstructured) bool {
	switch resource {
	case configsResource:
		return one.GetName() == "kube-root-ca.crt"
	case slicesResource:
		return strings.HasSuffix(one.GetLabels()["endpointslice.kubernetes.io/managed-by"], ".k8s.io")
	case endpointsResource:
		return one.GetLabels()["endpoints.kubernetes.io/managed-by"] != ""
	case podsResource:
		owner := metav1.GetControllerOf(one)
		return owner != nil && owner.Kind == "ReplicaSet"
	case servicesResource, accountsResource:
		return one.GetName() == "default"
	}
	return false
}

// requireContained fails where a pass touched or made anything in the host namespace but mirrors that sit where they
// belong, sent a write anywhere else on the host, or watched.
func (h *hostile) requireContained(t *testing.T) {
	t.Helper()
	require.Equal(t, h.before, h.foreign(t), "objects of the host namespace that are no mirrors")
	for _, request := range h.requests.Since(0) {
		if request.Server == "host" && request.Method != "GET" {
			require.Contains(t, request.Path+"/", "/namespaces/"+h.name+"/", "a write outside of the tenant's host namespace: %s", request)
		}
		require.NotContains(t, request.Query, "watch")
	}
	for resource := range hostileKinds {
		list, err := h.objects(record.Host, resource).List(t.Context(), metav1.ListOptions{LabelSelector: kinds.LabelTenant + "=" + h.name})
		require.NoError(t, err)
		for i := range list.Items {
			if ofControllers(resource, &list.Items[i]) {
				continue
			}
			for _, owner := range list.Items[i].GetOwnerReferences() {
				require.Contains(t, []string{"TenantCluster", "Pod"}, owner.Kind, "an owner of %s", list.Items[i].GetName())
			}
			require.NotContains(t, strings.Join(list.Items[i].GetFinalizers(), " "), "evil")
		}
	}
}

// host is the mirror of a tenant object, nil where there is none.
func (h *hostile) host(t *testing.T, resource schema.GroupVersionResource, name string) *unstructured.Unstructured {
	t.Helper()
	line := hostileKinds[resource]
	mirror := h.mapping().MirrorName(kinds.For(schema.FromAPIVersionAndKind(line.apiVersion, line.kind).GroupKind()), h.name, name)
	found, err := h.objects(record.Host, resource).Get(t.Context(), mirror, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		return nil
	}
	require.NoError(t, err)
	return found
}

// decided is what a pass decided about an object of the place's namespace in the tenant.
func decided(t *testing.T, result pass.Result, kind, name string) record.Decision {
	t.Helper()
	for _, d := range result.Decisions {
		if d.Kind == kind && d.TenantName == name {
			return d
		}
	}
	require.Fail(t, "nothing was decided", "about %s %s in %+v", kind, name, result.Decisions)
	return record.Decision{}
}

// at is the value at a path of fields, nil where there is none.
func at(o *unstructured.Unstructured, fields ...string) any {
	value, _, _ := unstructured.NestedFieldNoCopy(o.Object, fields...)
	return value
}

// texts are all the strings in a value.
func texts(value any) []string {
	switch value := value.(type) {
	case string:
		return []string{value}
	case map[string]any:
		var all []string
		for _, one := range value {
			all = append(all, texts(one)...)
		}
		return all
	case []any:
		var all []string
		for _, one := range value {
			all = append(all, texts(one)...)
		}
		return all
	}
	return nil
}

// jsonOf is how an object is written.
func jsonOf(t *testing.T, value any) string {
	t.Helper()
	data, err := json.Marshal(value)
	require.NoError(t, err)
	return string(data)
}

// eventually waits for what a controller does.
func eventually(t *testing.T, what string, holds func(ctx context.Context) (bool, error)) {
	t.Helper()
	require.NoError(t, wait.PollUntilContextTimeout(t.Context(), 20*time.Millisecond, 30*time.Second, true, holds), what)
}

// TestHostileTenant is what a tenant can try, row by row of the attack catalogue (S1 to S40): on objects in its own API
// server, with that API server, and with the kubeconfig that leads there. pass/access tests every field of a kubeconfig and
// every bound of an answer (S16 to S21, S29, S30) by itself, record/store a SyncDecision that was tampered with (S39), and
// TestIsolationHoldsTheRunnerAndHindersNoPass the host's backstops.
func TestHostileTenant(t *testing.T) {
	s := usePlaces(t)
	var tried atomic.Int32
	groups := map[string]func(*testing.T, *hostile){
		"pods": attackByPods, "identity": attackIdentity, "credentials": attackCredentials, "network": attackNetwork,
		"storage": attackStorage, "flood": attackByNumbers, "output": attackOutput, "server": attackAsServer, "poison": attackWithPoison,
	}
	t.Run("all", func(t *testing.T) {
		for name, attack := range groups {
			t.Run(name, func(t *testing.T) {
				t.Parallel()
				h := newHostile(t, s, &tried, "evil-"+name)
				attack(t, h)
				h.requireContained(t)
			})
		}
	})
	if !t.Failed() {
		tally.Line(t, "hostile tenant: %d attempts in %d groups, none got through", tried.Load(), len(groups))
	}
	assert.Positive(t, tried.Load())
}
