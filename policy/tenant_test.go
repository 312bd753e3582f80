package policy

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func tenantObject(spec map[string]any) map[string]any {
	return map[string]any{
		"apiVersion": "tenantplane.io/v1alpha1",
		"kind":       "TenantCluster",
		"metadata": map[string]any{
			"namespace": "team-dev", "name": "dev", "uid": "u1", "annotations": map[string]any{"tenantplane.io/confirm-deletes": "p1"},
		},
		"spec":   spec,
		"status": map[string]any{"ready": true, "endpoint": "https://10.0.0.1:6443"},
	}
}

func TestATenantClusterOfAnotherToolIsTaken(t *testing.T) {
	tenant, err := TenantClusterFrom(tenantObject(map[string]any{
		"syncPolicyRef": map[string]any{"name": "default", "namespace": "x"},
		"version":       "1.37", "replicas": int64(3), "addons": []any{map[string]any{"name": "dns"}},
	}))
	require.NoError(t, err)
	assert.Equal(t, "team-dev", tenant.Namespace)
	assert.Equal(t, "dev", tenant.Name)
	assert.EqualValues(t, "u1", tenant.UID)
	assert.Equal(t, "p1", tenant.Annotations["tenantplane.io/confirm-deletes"])
	name, err := tenant.PolicyName()
	require.NoError(t, err)
	assert.Equal(t, "default", name)
}

func TestATenantClusterWithoutAPolicySaysWhatToDo(t *testing.T) {
	for name, spec := range map[string]map[string]any{
		"no spec":       nil,
		"no reference":  {"version": "1.37"},
		"an empty name": {"syncPolicyRef": map[string]any{"name": ""}},
	} {
		t.Run(name, func(t *testing.T) {
			tenant, err := TenantClusterFrom(tenantObject(spec))
			require.NoError(t, err)
			_, err = tenant.PolicyName()
			assert.EqualError(t, err, "TenantCluster team-dev/dev names no SyncPolicy in spec.syncPolicyRef.name: name one with "+
				"`kubectl patch tenantcluster dev -n team-dev --type merge -p '{\"spec\":{\"syncPolicyRef\":{\"name\":\"default\"}}}'`, "+
				"or set SYNCPASS_POLICY to a policy file")
		})
	}
}

func TestAReferenceOfTheWrongTypeIsAnError(t *testing.T) {
	_, err := TenantClusterFrom(tenantObject(map[string]any{"syncPolicyRef": "default"}))
	assert.ErrorContains(t, err, "reading a TenantCluster: ")
	assert.ErrorContains(t, err, "kubectl explain tenantcluster.spec")
}
