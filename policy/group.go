package policy

import "k8s.io/apimachinery/pkg/runtime/schema"

// The API group and version of SyncPolicy, TenantCluster and SyncDecision.
const (
	Group   = "tenantplane.io"
	Version = "v1alpha1"
)

// GroupVersion is Group and Version together: `tenantplane.io/v1alpha1`.
var GroupVersion = schema.GroupVersion{Group: Group, Version: Version}

// The resources of this package's kinds, as a dynamic client wants them.
var (
	SyncPolicyResource    = GroupVersion.WithResource("syncpolicies")
	TenantClusterResource = GroupVersion.WithResource("tenantclusters")
)

const syncPolicyKind = "SyncPolicy"
