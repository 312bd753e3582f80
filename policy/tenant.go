package policy

import (
	"fmt"

	"k8s.io/apimachinery/pkg/runtime"
)

// TenantClusterFrom reads a TenantCluster from the content of an object as an API server gave it (unstructured's
// Object). Fields that syncpass does not know are other tools' business and left out; only a known one of the wrong
// type is an error.
func TenantClusterFrom(object map[string]any) (*TenantCluster, error) {
	tenant := &TenantCluster{}
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(object, tenant); err != nil {
		return nil, fmt.Errorf("reading a TenantCluster: %w: see `kubectl explain tenantcluster.spec`", err)
	}
	return tenant, nil
}

// PolicyName is the name of the SyncPolicy that the tenant is synced by. That none is named is an error here and not
// in TenantClusterFrom, since a pass that brings its own policy does not need one.
func (t *TenantCluster) PolicyName() (string, error) {
	if t.Spec.SyncPolicyRef.Name == "" {
		return "", fmt.Errorf("TenantCluster %[1]s/%[2]s names no SyncPolicy in spec.syncPolicyRef.name: name one with "+
			"`kubectl patch tenantcluster %[2]s -n %[1]s --type merge -p '{\"spec\":{\"syncPolicyRef\":{\"name\":\"default\"}}}'`, "+
			"or set SYNCPASS_POLICY to a policy file", t.Namespace, t.Name)
	}
	return t.Spec.SyncPolicyRef.Name, nil
}
