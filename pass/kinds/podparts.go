package kinds

import (
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
)

// Parts are the ephemeral containers that `kubectl debug` added in the tenant, which are only ever appended, and the
// resources that a container was resized to. What LimitRange or a webhook of the host added to the resources stays.
func (p pod) Parts(m Mapping, tenant, host *unstructured.Unstructured) []Part {
	var parts []Part
	if object := p.debugged(m, tenant, host); object != nil {
		parts = append(parts, Part{Subresource: "ephemeralcontainers", Field: "spec.ephemeralContainers", Object: object})
	}
	if object := resized(tenant, host); object != nil {
		parts = append(parts, Part{Subresource: "resize", Field: "spec.containers", Object: object})
	}
	return parts
}

func (p pod) debugged(m Mapping, tenant, host *unstructured.Unstructured) *unstructured.Unstructured {
	there := map[any]bool{}
	spec := child(host.Object, "spec")
	for _, container := range entries(spec["ephemeralContainers"]) {
		there[container["name"]] = true
	}
	added := []any{}
	for _, container := range entries(child(tenant.Object, "spec")["ephemeralContainers"]) {
		if !there[container["name"]] {
			added = append(added, runtime.DeepCopyJSON(container))
		}
	}
	if len(added) == 0 {
		return nil
	}
	debug := Content{"ephemeralContainers": added}
	m.renameReferred(tenant.GetNamespace(), listed(p, &unstructured.Unstructured{Object: Content{"spec": debug}}))
	m.injectEnvironment(debug, tenant)
	m.renameReferred(tenant.GetNamespace(), podReferences(debug))
	downward(debug, tenant)
	object := host.DeepCopy()
	object.SetManagedFields(nil)
	current, _ := spec["ephemeralContainers"].([]any)
	child(object.Object, "spec")["ephemeralContainers"] = append(runtime.DeepCopyJSONValue(anyList(current)).([]any), added...)
	return object
}

func anyList(list []any) []any {
	if list == nil {
		return []any{}
	}
	return list
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
