package kinds

import (
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
)

// ReflectStatus is the host's status without what the tenant's Pod does not know: containers that a host webhook
// injected, and the generation of the host's object. The tenant keeps its qosClass, which never changes, the conditions of
// readiness gates, which its own controllers set, and the names of the claims that were made for it, which each side's
// controllers make under names of their own.
//
// A Pod that is scheduled, and of which no kubelet has reported anything yet, has nothing to tell.
func (p pod) ReflectStatus(_ Mapping, host, tenant *unstructured.Unstructured) Content {
	reported := child(host.Object, "status")
	if !tells(reported) {
		return nil
	}
	status := runtime.DeepCopyJSON(reported)
	current := child(tenant.Object, "status")
	delete(status, "observedGeneration")
	delete(status, "resize")
	for _, field := range ownStatus {
		if value, found := current[field]; found {
			status[field] = runtime.DeepCopyJSONValue(value)
		} else if field != "qosClass" {
			delete(status, field)
		}
	}
	spec := child(tenant.Object, "spec")
	for list, statuses := range map[string]string{
		"containers": "containerStatuses", "initContainers": "initContainerStatuses", "ephemeralContainers": "ephemeralContainerStatuses",
	} {
		filterStatuses(status, statuses, spec[list])
	}
	conditions := []any{}
	gates := readinessGates(tenant)
	for _, condition := range entries(status["conditions"]) {
		if !gates[conditionType(condition)] {
			delete(condition, "observedGeneration")
			conditions = append(conditions, condition)
		}
	}
	for _, condition := range entries(current["conditions"]) {
		if gates[conditionType(condition)] {
			conditions = append(conditions, runtime.DeepCopyJSON(condition))
		}
	}
	if delete(status, "conditions"); len(conditions) > 0 {
		status["conditions"] = conditions
	}
	return status
}

// ownStatus are the fields of a Pod's status that each side has for itself; a qosClass that the tenant does not have yet is
// the host's.
var ownStatus = []string{"qosClass", "resourceClaimStatuses", "extendedResourceClaimStatus", "nodeAllocatableResourceClaimStatuses"}

// tells says whether a status has more in it than that a scheduler placed the Pod.
func tells(status Content) bool {
	for field, value := range status {
		switch field {
		case "phase":
			if value != "Pending" {
				return true
			}
		case "qosClass", "observedGeneration", "resourceClaimStatuses", "extendedResourceClaimStatus":
		case "conditions":
			for _, condition := range entries(value) {
				if condition["type"] != "PodScheduled" || condition["status"] != "True" {
					return true
				}
			}
		default:
			return true
		}
	}
	return false
}

// filterStatuses keeps the statuses of the containers that the tenant's spec names.
func filterStatuses(status Content, field string, containers any) {
	named := map[any]bool{}
	for _, container := range entries(containers) {
		named[container["name"]] = true
	}
	kept := []any{}
	for _, one := range entries(status[field]) {
		if named[one["name"]] {
			kept = append(kept, one)
		}
	}
	if delete(status, field); len(kept) > 0 {
		status[field] = kept
	}
}
