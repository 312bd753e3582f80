package kinds

import (
	"fmt"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/syncpass/syncpass/record"
)

// endpointSlice: the addresses that a person or a tool wrote for a Service without a selector. The Pod that one belongs
// to is named on its own side only.
type endpointSlice struct{ Generic }

const (
	serviceNameLabel    = "kubernetes.io/service-name"
	sliceManagedByLabel = "endpointslice.kubernetes.io/managed-by"
)

// Weight is after the Services, since a Service decides what the host's controllers do with its endpoints.
func (e endpointSlice) Weight() Weight { return Dependent }

// Crosses leaves out what a control plane's controllers make of Pods and of Endpoints; the host's make their own of the
// mirrors.
func (e endpointSlice) Crosses(o Object) bool {
	switch o.Labels[sliceManagedByLabel] {
	case "endpointslice-controller.k8s.io", "endpointslicemirroring-controller.k8s.io":
		return false
	}
	return e.Generic.Crosses(o)
}

// Project names the Service's mirror.
func (e endpointSlice) Project(m Mapping, tenant, host, mirror *unstructured.Unstructured) {
	if service := tenant.GetLabels()[serviceNameLabel]; service != "" {
		labels := nonNil(mirror.GetLabels())
		labels[serviceNameLabel] = m.reference("Service", tenant.GetNamespace(), service)
		mirror.SetLabels(labels)
	}
	if host != nil {
		adoptTargets(sliceAddresses(mirror.Object), sliceAddresses(host.Object))
	}
}

// Reflect is Project's way back.
func (e endpointSlice) Reflect(m Mapping, _, tenant, object *unstructured.Unstructured) {
	labels, namespace := object.GetLabels(), tenant.GetNamespace()
	if mirror := labels[serviceNameLabel]; mirror != "" {
		service, found := tenant.GetLabels()[serviceNameLabel], true
		if m.reference("Service", namespace, service) != mirror {
			service, found = m.plainName(For(schema.GroupKind{Kind: "Service"}), namespace, mirror)
		}
		if found {
			labels[serviceNameLabel] = service
			object.SetLabels(labels)
		}
	}
	adoptTargets(sliceAddresses(object.Object), sliceAddresses(tenant.Object))
}

// Disown removes the Pods.
func (e endpointSlice) Disown(_ record.Side, content Content) { disownTargets(sliceAddresses(content)) }

// Immutable: the type of the addresses is settled.
func (e endpointSlice) Immutable(content, want Content) string {
	if !equal(content["addressType"], want["addressType"]) {
		return "the addressType of an EndpointSlice cannot change"
	}
	return ""
}

func sliceAddresses(content Content) []Content { return entries(content["endpoints"]) }

// endpoints: the older form of the same, under the name of its Service.
type endpoints struct{ Generic }

// Weight is after the Services.
func (e endpoints) Weight() Weight { return Dependent }

// ValidName is the Service's rule: the mirrors of both must come to the same name.
func (e endpoints) ValidName(name string) []string { return labelName(name) }

// Crosses leaves out what the endpoints controller makes of Pods, which up to Kubernetes 1.32 only the annotation tells,
// and locks.
func (e endpoints) Crosses(o Object) bool {
	_, made := o.Annotations["endpoints.kubernetes.io/last-change-trigger-time"]
	_, lock := o.Annotations["control-plane.alpha.kubernetes.io/leader"]
	made = made || o.Labels["endpoints.kubernetes.io/managed-by"] == "endpoint-controller"
	return !made && !lock && e.Generic.Crosses(o)
}

// Project keeps the Pods that the mirror names.
func (e endpoints) Project(_ Mapping, _, host, mirror *unstructured.Unstructured) {
	if host != nil {
		adoptTargets(subsetAddresses(mirror.Object), subsetAddresses(host.Object))
	}
}

// Reflect keeps the Pods that the tenant names.
func (e endpoints) Reflect(_ Mapping, _, tenant, object *unstructured.Unstructured) {
	adoptTargets(subsetAddresses(object.Object), subsetAddresses(tenant.Object))
}

// Disown removes the Pods.
func (e endpoints) Disown(_ record.Side, content Content) { disownTargets(subsetAddresses(content)) }

func subsetAddresses(content Content) []Content {
	var all []Content
	for _, subset := range entries(content["subsets"]) {
		all = append(append(all, entries(subset["addresses"])...), entries(subset["notReadyAddresses"])...)
	}
	return all
}

// disownTargets removes the object behind each address: its namespace, name and UID are one side's.
func disownTargets(addresses []Content) {
	for _, address := range addresses {
		delete(address, "targetRef")
	}
}

// adoptTargets takes over the objects that the written side names behind the same addresses.
func adoptTargets(addresses, current []Content) {
	targets := map[string]any{}
	for _, address := range current {
		if target, found := address["targetRef"]; found {
			targets[addressKey(address)] = target
		}
	}
	for _, address := range addresses {
		if target, found := targets[addressKey(address)]; found {
			address["targetRef"] = runtime.DeepCopyJSONValue(target)
		}
	}
}

// addressKey tells addresses apart: an EndpointSlice lists several of one endpoint, Endpoints one.
func addressKey(address Content) string {
	return fmt.Sprintf("%q %q", address["addresses"], address["ip"])
}
