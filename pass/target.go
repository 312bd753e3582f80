package pass

import (
	"context"
	"errors"
	"fmt"
	"os"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/syncpass/syncpass/pass/access"
	"github.com/syncpass/syncpass/pass/kinds"
	"github.com/syncpass/syncpass/policy"
)

// target is what a pass is over: everything it needs to know before it reads a pair.
type target struct {
	cluster *policy.TenantCluster
	policy  *policy.SyncPolicy
	mapping kinds.Mapping
}

// LoadSchedule reads how often a tenant's policy wants passes, without making one.
func LoadSchedule(ctx context.Context, o Options) (policy.Schedule, error) {
	loaded, err := loadTarget(ctx, o)
	if err != nil {
		return policy.Schedule{}, err
	}
	return loaded.policy.Schedule(), nil
}

// LoadPolicy reads the policy that a tenant is synced by, with the defaults for what it leaves out.
func LoadPolicy(ctx context.Context, o Options) (*policy.SyncPolicy, error) {
	loaded, err := loadTarget(ctx, o)
	if err != nil {
		return nil, err
	}
	return loaded.policy, nil
}

func loadTarget(ctx context.Context, o Options) (*target, error) {
	object, err := o.Host.Dynamic().Resource(policy.TenantClusterResource).Namespace(o.Namespace).Get(ctx, o.Tenant, metav1.GetOptions{})
	if err != nil {
		return nil, reading(err, fmt.Sprintf("TenantCluster %s/%s", o.Namespace, o.Tenant),
			"create it, or name one that exists with -n and --tenant (SYNCPASS_NAMESPACE, SYNCPASS_TENANT)")
	}
	cluster, err := policy.TenantClusterFrom(object.Object)
	if err != nil {
		return nil, &InvalidError{Err: fmt.Errorf("TenantCluster %s/%s: %w", o.Namespace, o.Tenant, err)}
	}
	loaded := &target{cluster: cluster, policy: o.Policy, mapping: kinds.Mapping{
		Tenant: o.Tenant, HostNamespace: o.Namespace, Owner: owner(cluster),
	}}
	if loaded.policy == nil {
		loaded.policy, err = loadPolicy(ctx, o, cluster)
	}
	return loaded, err
}

func loadPolicy(ctx context.Context, o Options, cluster *policy.TenantCluster) (*policy.SyncPolicy, error) {
	name, err := cluster.PolicyName()
	if err != nil {
		return nil, &InvalidError{Err: fmt.Errorf("TenantCluster %s/%s: %w", o.Namespace, o.Tenant, err)}
	}
	object, err := o.Host.Dynamic().Resource(policy.SyncPolicyResource).Get(ctx, name, metav1.GetOptions{})
	if err != nil {
		return nil, reading(err, fmt.Sprintf("SyncPolicy %q (named by TenantCluster %s/%s)", name, o.Namespace, o.Tenant),
			"create it, or name another one in spec.syncPolicyRef.name")
	}
	parsed, err := policy.FromObject(object.Object)
	if err != nil {
		return nil, &InvalidError{Err: err}
	}
	return parsed, nil
}

// owner is the reference to the TenantCluster that everything made for it on the host carries. Deleting the
// TenantCluster never waits for what it owns.
func owner(cluster *policy.TenantCluster) metav1.OwnerReference {
	return metav1.OwnerReference{
		APIVersion: policy.GroupVersion.String(), Kind: "TenantCluster",
		Name: cluster.Name, UID: cluster.UID,
		Controller: ptr.To(true), BlockOwnerDeletion: ptr.To(false),
	}
}

// connectTenant finds the tenant's kubeconfig and makes its clients. No request is sent to the tenant.
func connectTenant(ctx context.Context, o Options) (*access.Cluster, error) {
	var kubeconfig []byte
	var err error
	source := fmt.Sprintf("file %q", o.TenantKubeconfigFile)
	if o.TenantKubeconfigFile != "" {
		if kubeconfig, err = os.ReadFile(o.TenantKubeconfigFile); err != nil {
			return nil, &InvalidError{Err: fmt.Errorf("reading the tenant's kubeconfig: %w; correct SYNCPASS_TENANT_KUBECONFIG", err)}
		}
	} else if kubeconfig, source, err = access.FindKubeconfig(ctx, o.Host.Core(), o.Namespace, o.Tenant, o.TenantKubeconfigSecret); err != nil {
		return nil, fmt.Errorf("finding the tenant's kubeconfig: %w", err)
	}
	tenant, err := access.NewTenant(kubeconfig, access.Options{RequestTimeout: o.RequestTimeout, UserAgent: o.UserAgent, Observe: o.ObserveTenant})
	if err != nil {
		return nil, fmt.Errorf("the tenant's kubeconfig from %s: %w", source, err)
	}
	return tenant, nil
}

// reading explains why an object of the configuration cannot be read.
func reading(err error, what, next string) error {
	var answer apierrors.APIStatus
	switch {
	case apierrors.IsNotFound(err):
		return &InvalidError{Err: fmt.Errorf("%s does not exist on the host: %s", what, next)}
	case apierrors.IsForbidden(err), apierrors.IsUnauthorized(err):
		return &InvalidError{Err: fmt.Errorf("%s cannot be read: %w; grant it to this runner: see manifests/base", what, err)}
	case errors.As(err, &answer) && !access.Unreachable(err):
		return &InvalidError{Err: fmt.Errorf("%s cannot be read: %w", what, err)}
	}
	return fmt.Errorf("reading %s from the host at its API server: %w", what, err)
}
