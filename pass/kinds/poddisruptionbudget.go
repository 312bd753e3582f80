package kinds

import (
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/syncpass/syncpass/record"
)

// podDisruptionBudget: selects the tenant's own Pods of its own namespace, and counts them the way the tenant does.
//
// Its status is not reported: the tenant's own disruption controller works it out from the tenant's Pods, whose status
// is reported, and two writers would overwrite each other for ever.
type podDisruptionBudget struct{ Generic }

// statusHashed: how many Pods the tenant's controller wants healthy is what the mirror asks for.
func (b podDisruptionBudget) statusHashed(side record.Side, status Content) any {
	if side == record.Host {
		return nil
	}
	return status["desiredHealthy"]
}

// Project marks the selector; without one, a budget covers no Pod, and must not come to cover all.
func (b podDisruptionBudget) Project(m Mapping, tenant, _, mirror *unstructured.Unstructured) {
	spec := child(mirror.Object, "spec")
	if selector := child(spec, "selector"); selector != nil {
		spec["selector"] = m.markSelector(selector, tenant.GetNamespace())
	}
	countPods(tenant, spec)
}

// Reflect is Project's way back. A budget that the tenant's comes down to is the tenant's.
func (b podDisruptionBudget) Reflect(m Mapping, _, tenant, object *unstructured.Unstructured) {
	spec, own := child(object.Object, "spec"), child(tenant.Object, "spec")
	if selector := child(spec, "selector"); selector != nil {
		spec["selector"] = m.restoreSelector(selector, child(own, "selector"), tenant.GetNamespace())
	}
	if own == nil || spec == nil {
		return
	}
	counted := runtime.DeepCopyJSON(own)
	countPods(tenant, counted)
	if !equal(budgetOf(counted), budgetOf(spec)) {
		return
	}
	for _, field := range budget {
		if delete(spec, field); own[field] != nil {
			spec[field] = own[field]
		}
	}
}

// budget are the fields that say how many Pods may be missing.
var budget = []string{"minAvailable", "maxUnavailable"}

func budgetOf(spec Content) [2]any { return [2]any{spec[budget[0]], spec[budget[1]]} }

// countPods writes a budget that is a share of the Pods, or a number that may be missing, as the number of Pods that the
// tenant's disruption controller wants healthy. For both, the host's would ask the Pods' controllers how many there
// should be, and these are in the tenant: it would count none and forbid every eviction, so that no node of the host
// could be drained (https://kubernetes.io/docs/tasks/run-application/configure-pdb/#arbitrary-controllers-and-selectors).
// As long as the tenant's controller has not counted any, the budget stays as it is, and errs to that side.
func countPods(tenant *unstructured.Unstructured, spec Content) {
	if _, number := spec["minAvailable"].(int64); spec == nil || number {
		return
	}
	status := child(tenant.Object, "status")
	healthy, counted := status["desiredHealthy"].(int64)
	expected, _ := status["expectedPods"].(int64)
	if seen, _ := status["observedGeneration"].(int64); !counted || expected == 0 || seen != tenant.GetGeneration() {
		return
	}
	for _, condition := range entries(status["conditions"]) {
		if condition["reason"] == "SyncFailed" {
			return
		}
	}
	delete(spec, "maxUnavailable")
	spec["minAvailable"] = healthy
}
