package e2e

import (
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	k8sruntime "k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/syncpass/syncpass/record"
)

// poisons are values that no API server would store where they are put.
var poisons = []any{int64(7), "x", true, nil, []any{}, []any{int64(7)}, object{}, object{"a": []any{object{"b": nil}}}, []any{[]any{object{}}}, 1e300, int64(-1), []any{nil}, strings.Repeat("y", 300)}

// attackWithPoison puts them at every place of an object of every kind (S32). Beside them stand sound objects, which cross.
func attackWithPoison(t *testing.T, h *hostile) {
	h.apply(t, record.Tenant, soundObjects+"---\n"+podOf(t, "sound", namesEverything))
	defer h.tenantProxy.SetHook(nil)
	for round, which := range []string{"when they are new", "when they are there, and change"} {
		lies := map[string]http.Handler{}
		added := 0
		for resource, line := range hostileKinds {
			l := h.lieAbout(t, resource, line.apiVersion, line.kind)
			sound := h.soundOf(t, resource)
			for i, path := range places(sound.Object, nil) {
				poisoned := sound.DeepCopy()
				put(poisoned.Object, path, poisons[(i+round)%len(poisons)])
				l.add(fmt.Sprintf("poisoned-%d", i), poisoned.Object)
				added++
			}
			lies[l.path()] = answerJSON(l.list())
		}
		h.answer(lies)
		h.try(t, fmt.Sprintf("S32 %d objects with a wrong value each, %s", added, which), func(t *testing.T) {
			result, _ := h.pass(t, 3, map[string]string{"SYNCPASS_MAX_DELETE_PERCENT": "100"})
			t.Logf("%d made, %d changed, %d refused", result.Counts.Create, result.Counts.Update, result.Counts.Error)
			require.NotContains(t, jsonOf(t, result.Decisions), "panic")
			for resource := range hostileKinds {
				require.NotNil(t, h.host(t, resource, "sound"), "the sound one of %s", resource.Resource)
			}
		})
	}
}

// soundOf is the sound object of a kind, as its API server has it, without what tells it from others.
func (h *hostile) soundOf(t *testing.T, resource schema.GroupVersionResource) *unstructured.Unstructured {
	t.Helper()
	sound, err := h.objects(record.Tenant, resource).Get(t.Context(), "sound", metav1.GetOptions{})
	require.NoError(t, err)
	for _, field := range []string{"name", "namespace", "uid", "resourceVersion", "generation", "creationTimestamp"} {
		delete(sound.Object["metadata"].(object), field)
	}
	return sound
}

// places are the ways to all values of an object but its name, kind and version, and what lies within fieldsV1.
func places(value any, way []any) [][]any {
	var all [][]any
	switch value := value.(type) {
	case map[string]any:
		for _, key := range slices.Sorted(maps.Keys(value)) {
			if len(way) == 0 && (key == "apiVersion" || key == "kind") {
				continue
			}
			next := append(slices.Clone(way), key)
			if len(next) > 1 {
				all = append(all, next)
			}
			if key != "fieldsV1" {
				all = append(all, places(value[key], next)...)
			}
		}
	case []any:
		for i := range value[:min(len(value), 2)] {
			next := append(slices.Clone(way), i)
			all = append(append(all, next), places(value[i], next)...)
		}
	}
	return all
}

func put(content any, way []any, value any) {
	for _, step := range way[:len(way)-1] {
		switch step := step.(type) {
		case string:
			content = content.(map[string]any)[step]
		case int:
			content = content.([]any)[step]
		}
	}
	switch last := way[len(way)-1].(type) {
	case string:
		content.(map[string]any)[last] = k8sruntime.DeepCopyJSONValue(value)
	case int:
		content.([]any)[last] = k8sruntime.DeepCopyJSONValue(value)
	}
}

// soundObjects are one of each kind but Pod, with what its own rules look at.
const soundObjects = `
{apiVersion: v1, kind: ConfigMap, metadata: {name: sound, labels: {app: x}, annotations: {a: b}}, data: {k: v}, binaryData: {b: eA==}}
---
{apiVersion: v1, kind: Secret, metadata: {name: sound}, type: Opaque, stringData: {k: v}}
---
{apiVersion: v1, kind: Service, metadata: {name: sound}, spec: {type: LoadBalancer, externalIPs: [192.0.2.7], selector: {app: x}, ports: [{name: a, port: 80, nodePort: 30777}, {name: b, port: 81}]}}
---
{apiVersion: v1, kind: ServiceAccount, metadata: {name: sound}, secrets: [{name: a}], imagePullSecrets: [{name: b}]}
---
{apiVersion: v1, kind: PersistentVolumeClaim, metadata: {name: sound}, spec: {dataSource: {kind: PersistentVolumeClaim, name: c}, storageClassName: none, accessModes: [ReadWriteOnce], resources: {requests: {storage: 1Gi}}}}
---
{apiVersion: v1, kind: Endpoints, metadata: {name: sound}, subsets: [{addresses: [{ip: 192.0.2.9, targetRef: {kind: Pod, name: p}}], notReadyAddresses: [{ip: 192.0.2.10}], ports: [{port: 80}]}]}
---
{apiVersion: discovery.k8s.io/v1, kind: EndpointSlice, metadata: {name: sound, labels: {kubernetes.io/service-name: sound}}, addressType: IPv4, endpoints: [{addresses: [192.0.2.9], targetRef: {kind: Pod, name: p}}], ports: [{port: 80}]}
---
{apiVersion: networking.k8s.io/v1, kind: Ingress, metadata: {name: sound}, spec: {tls: [{hosts: [a.example.com], secretName: s}], defaultBackend: {resource: {apiGroup: example.com, kind: Bucket, name: b}}, rules: [{host: a.example.com, http: {paths: [{path: /, pathType: Prefix, backend: {service: {name: s, port: {number: 80}}}}]}}]}}
---
{apiVersion: networking.k8s.io/v1, kind: NetworkPolicy, metadata: {name: sound}, spec: {podSelector: {matchLabels: {app: x}, matchExpressions: [{key: k, operator: In, values: [v]}]}, policyTypes: [Ingress, Egress], ingress: [{from: [{namespaceSelector: {matchExpressions: [{key: kubernetes.io/metadata.name, operator: In, values: [a]}]}, podSelector: {}}]}], egress: [{to: [{ipBlock: {cidr: 192.0.2.0/24}}]}]}}
---
{apiVersion: policy/v1, kind: PodDisruptionBudget, metadata: {name: sound}, spec: {maxUnavailable: 50%, selector: {matchLabels: {app: x}}}}
---
{apiVersion: apps/v1, kind: Deployment, metadata: {name: sound}, spec: {replicas: 0, selector: {matchLabels: {app: x}, matchExpressions: [{key: app, operator: Exists}]}, template: {metadata: {labels: {app: x}, annotations: {a: b}}, spec: {affinity: {podAntiAffinity: {requiredDuringSchedulingIgnoredDuringExecution: [{topologyKey: zone, labelSelector: {matchLabels: {app: x}}}]}}, containers: [{name: c, image: i}], volumes: [{name: v, secret: {secretName: s}}]}}}}
`
