package kinds

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/syncpass/syncpass/record"
)

func budgetCrossing(tenant, host Content) crossing {
	return crossing{"policy/v1", "PodDisruptionBudget", Content{"spec": tenant}, Content{"spec": host}, Content{"spec": host}}
}

var budgetCrossings = map[string]crossing{
	"no selector covers no Pod":          budgetCrossing(Content{"minAvailable": int64(1)}, Content{"minAvailable": int64(1)}),
	"an empty one covers the namespace":  budgetCrossing(Content{"minAvailable": int64(1), "selector": Content{}}, Content{"minAvailable": int64(1), "selector": marked(nil)}),
	"labels":                             budgetCrossing(Content{"minAvailable": int64(1), "selector": app("web")}, Content{"minAvailable": int64(1), "selector": marked(Content{"app": "web"})}),
	"a share, not counted by the tenant": budgetCrossing(Content{"maxUnavailable": "25%", "selector": app("web")}, Content{"maxUnavailable": "25%", "selector": marked(Content{"app": "web"})}),
	"expressions, and the eviction policy": budgetCrossing(
		Content{"minAvailable": int64(1), "unhealthyPodEvictionPolicy": "AlwaysAllow", "selector": Content{"matchExpressions": []any{Content{"key": LabelManagedBy, "operator": "Exists"}}}},
		Content{"minAvailable": int64(1), "unhealthyPodEvictionPolicy": "AlwaysAllow", "selector": with(marked(nil), Content{"key": managedByAlias, "operator": "Exists"})}),
}

func TestABudgetIsCountedByTheTenant(t *testing.T) {
	counted := Content{"observedGeneration": int64(2), "expectedPods": int64(4), "desiredHealthy": int64(3), "conditions": []any{Content{"type": "DisruptionAllowed", "reason": "SufficientPods"}}}
	status := func(field string, value any) Content {
		other := Content{}
		for name, one := range counted {
			other[name] = one
		}
		other[field] = value
		return other
	}
	number := Content{"minAvailable": int64(3)}
	for _, test := range []struct {
		name                string
		asked, status, want Content
	}{
		{"a share that may be missing", Content{"maxUnavailable": "25%"}, counted, number},
		{"a number that may be missing", Content{"maxUnavailable": int64(1)}, counted, number},
		{"a share that must be there", Content{"minAvailable": "75%"}, counted, number},
		{"a number that must be there stays", Content{"minAvailable": int64(2)}, counted, Content{"minAvailable": int64(2)}},
		{"not counted yet", Content{"maxUnavailable": "25%"}, nil, Content{"maxUnavailable": "25%"}},
		{"counted before it was changed", Content{"maxUnavailable": "25%"}, status("observedGeneration", int64(1)), Content{"maxUnavailable": "25%"}},
		{"no Pods to count", Content{"maxUnavailable": "25%"}, status("expectedPods", int64(0)), Content{"maxUnavailable": "25%"}},
		{"could not be counted", Content{"maxUnavailable": "25%"}, status("conditions", []any{Content{"reason": "SyncFailed"}}), Content{"maxUnavailable": "25%"}},
	} {
		t.Run(test.name, func(t *testing.T) {
			tenant := object("policy/v1", "PodDisruptionBudget", Content{"spec": test.asked, "status": test.status})
			tenant.SetGeneration(2)
			kind := kindOf(tenant)
			mirror := mapping.Project(kind, tenant, nil, KeepNone)
			require.Equal(t, test.want, mirror.Object["spec"])
			back := mapping.Reflect(kind, stored(mirror), tenant)
			require.Equal(t, test.asked, back.Object["spec"], "the tenant keeps its own words")
			mirror.Object["spec"] = Content{"minAvailable": int64(7)}
			require.Equal(t, Content{"minAvailable": int64(7)}, mapping.Reflect(kind, stored(mirror), tenant).Object["spec"])
		})
	}
}

// The number on the host follows the tenant's count, which is in the status.
func TestTheCountOfABudgetIsContent(t *testing.T) {
	tenant := object("policy/v1", "PodDisruptionBudget", Content{"spec": Content{"maxUnavailable": int64(1)}, "status": Content{"desiredHealthy": int64(1)}})
	before := ContentOf(kindOf(tenant), record.Tenant, tenant)
	tenant.Object["status"] = Content{"desiredHealthy": int64(9)}
	require.NotEqual(t, before, ContentOf(kindOf(tenant), record.Tenant, tenant))
}
