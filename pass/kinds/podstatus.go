package kinds

import (
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
)

// ReflectStatus is the host's status without what the tenant's Pod does not know: containers that a host webhook
// injected, and the generation of the host's object. The tenant keeps its qosClass, which never changes, and the
// conditions of readiness gates, which its own controllers set.
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
	if class, found := current["qosClass"]; found {
		status["qosClass"] = class
	}
	spec := child(tenant.Object, "spec")
	for list, statuses := range map[string]string{
		"containers": "containerStatuses", "initContainers": "initContainerStatuses", "ephemeralContainers": "ephemeralContainerStatuses",
	} {
		filterStatuses(status, statuses, spec[list])
	}
	conditions := []any{}
	gates := map[any]bool{}
	for _, gate := range entries(spec["readinessGates"]) {
		gates[gate["conditionType"]] = true
	}
	for _, condition := range entries(status["conditions"]) {
		if !gates[condition["type"]] {
			delete(condition, "observedGeneration")
			conditions = append(conditions, condition)
		}
	}
	for _, condition := range entries(current["conditions"]) {
		if gates[condition["type"]] {
			conditions = append(conditions, runtime.DeepCopyJSON(condition))
		}
	}
	if delete(status, "conditions"); len(conditions) > 0 {
		status["conditions"] = conditions
	}
	return status
}

// tells says whether a status has more in it than that a scheduler placed the Pod.
func tells(status Content) bool {
	for field, value := range status {
		switch field {
		case "phase":
			if value != "Pending" {
				return true
			}
		case "qosClass", "observedGeneration":
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
