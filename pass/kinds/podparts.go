package kinds

import (
	"maps"
	"slices"

	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
)

// Parts are the ephemeral containers that `kubectl debug` added in the tenant, which are only ever appended, the resources
// that a container was resized to, and the conditions of readiness gates. What LimitRange or a webhook of the host added
// to the resources stays.
func (p pod) Parts(m Mapping, tenant, host *unstructured.Unstructured, changed bool) []Part {
	var parts []Part
	if object, refusal := p.debugged(m, tenant, host); object != nil || refusal != nil {
		parts = append(parts, Part{Subresource: "ephemeralcontainers", Field: "spec.ephemeralContainers", Object: object, Refusal: refusal})
	}
	if object := resized(tenant, host); changed && object != nil {
		parts = append(parts, Part{Subresource: "resize", Field: "spec.containers", Object: object})
	}
	if object := gated(tenant, host); object != nil {
		parts = append(parts, Part{Subresource: "status", Field: "status.conditions", Object: object})
	}
	return parts
}

// gated is the mirror with the conditions that the tenant's controllers set for the readiness gates of its Pod, without
// which no kubelet takes the Pod for ready. One that the tenant does not have may be a host controller's, and stays.
func gated(tenant, host *unstructured.Unstructured) *unstructured.Unstructured {
	gates := readinessGates(tenant)
	if len(gates) == 0 {
		return nil
	}
	object := host.DeepCopy()
	object.SetManagedFields(nil)
	status := child(object.Object, "status")
	conditions, _ := status["conditions"].([]any)
	changed := false
	for _, condition := range entries(child(tenant.Object, "status")["conditions"]) {
		if !gates[conditionType(condition)] {
			continue
		}
		asked := told(condition)
		at := slices.IndexFunc(conditions, func(one any) bool {
			there, _ := one.(Content)
			return conditionType(there) == conditionType(condition)
		})
		switch {
		case at < 0:
			conditions, changed = append(conditions, asked), true
		case !equal(asked, told(conditions[at].(Content))):
			conditions[at], changed = asked, true
		}
	}
	if !changed || status == nil {
		return nil
	}
	status["conditions"] = conditions
	return object
}

// told is what a condition says: without the generation of one side's object, and without fields that are empty, which
// API servers of different versions write in different ways.
func told(condition Content) Content {
	said := runtime.DeepCopyJSON(condition)
	delete(said, "observedGeneration")
	maps.DeleteFunc(said, func(_ string, value any) bool { return value == nil })
	return said
}

// readinessGates are the types of the conditions that the tenant's Pod waits for.
func readinessGates(tenant *unstructured.Unstructured) map[string]bool {
	gates := map[string]bool{}
	for _, gate := range entries(child(tenant.Object, "spec")["readinessGates"]) {
		gates[text(gate["conditionType"])] = true
	}
	return gates
}

// Owed are the ephemeral containers.
func (p pod) Owed(tenant, host *unstructured.Unstructured) bool {
	return len(undebugged(tenant, host)) > 0
}

// undebugged are the ephemeral containers that the tenant's Pod has, and its mirror has not.
func undebugged(tenant, host *unstructured.Unstructured) []Content {
	there := map[any]bool{}
	for _, container := range entries(child(host.Object, "spec")["ephemeralContainers"]) {
		there[container["name"]] = true
	}
	var added []Content
	for _, container := range entries(child(tenant.Object, "spec")["ephemeralContainers"]) {
		if !there[container["name"]] {
			added = append(added, container)
		}
	}
	return added
}

func (p pod) debugged(m Mapping, tenant, host *unstructured.Unstructured) (*unstructured.Unstructured, *Refusal) {
	added := []any{}
	for _, container := range undebugged(tenant, host) {
		added = append(added, runtime.DeepCopyJSON(container))
	}
	if len(added) == 0 {
		return nil, nil
	}
	spec := child(host.Object, "spec")
	debug := Content{"ephemeralContainers": added}
	m.renameReferred(tenant.GetNamespace(), listed(p, &unstructured.Unstructured{Object: Content{"spec": debug}}))
	m.injectEnvironment(debug, tenant)
	m.renameReferred(tenant.GetNamespace(), podReferences(debug))
	downward(debug, tenant)
	added, refusal := m.Workloads.PodSecurity.permitted(spec, added)
	if len(added) == 0 {
		return nil, refusal
	}
	object := host.DeepCopy()
	object.SetManagedFields(nil)
	spec = child(object.Object, "spec")
	current, _ := spec["ephemeralContainers"].([]any)
	spec["ephemeralContainers"] = append(current, added...)
	return object, refusal
}

func resized(tenant, host *unstructured.Unstructured) *unstructured.Unstructured {
	asked := map[any]Content{}
	for _, container := range entries(child(tenant.Object, "spec")["containers"]) {
		asked[container["name"]] = child(container, "resources")
	}
	object := host.DeepCopy()
	object.SetManagedFields(nil)
	changed := false
	for _, container := range entries(child(object.Object, "spec")["containers"]) {
		for _, list := range []string{"requests", "limits"} {
			for name, quantity := range child(asked[container["name"]], list) {
				resources := child(container, "resources")
				if resources == nil {
					resources = Content{}
					container["resources"] = resources
				}
				amounts := child(resources, list)
				if amounts == nil {
					amounts = Content{}
					resources[list] = amounts
				}
				if !sameQuantity(amounts[name], quantity) {
					amounts[name] = quantity
					changed = true
				}
			}
		}
	}
	if !changed {
		return nil
	}
	return object
}

// sameQuantity compares quantities by their amount: 1000m is 1.
func sameQuantity(a, b any) bool {
	first, errFirst := resource.ParseQuantity(text(a))
	second, errSecond := resource.ParseQuantity(text(b))
	if errFirst != nil || errSecond != nil {
		return equal(a, b)
	}
	return first.Cmp(second) == 0
}

func text(value any) string {
	words, _ := value.(string)
	return words
}
