package policy

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
)

func toHost(apiVersion, kind string) Resource {
	return Resource{APIVersion: apiVersion, Kind: kind, Direction: ToHost}
}

func TestKindsAndVersionsOfResourcesAreChecked(t *testing.T) {
	many := make([]Resource, MaxResources+1)
	for i := range many {
		many[i] = toHost("v1", fmt.Sprintf("Kind%d", i))
	}
	for name, test := range map[string]struct {
		resources []Resource
		want      []string
	}{
		"built-in kinds and custom resources pass": {
			[]Resource{toHost("v1", "Pod"), toHost("apps/v1", "Deployment"), toHost("discovery.k8s.io/v1", "EndpointSlice"), toHost("example.com/v1alpha1", "Widget")}, nil},
		"one kind name in two groups is two kinds": {
			[]Resource{toHost("networking.k8s.io/v1", "Ingress"), toHost("example.com/v1", "Ingress")}, nil},
		"a cluster-scoped kind is left to the pass, which sees the host's discovery": {
			[]Resource{toHost("v1", "Namespace"), toHost("v1", "PersistentVolume"), toHost("rbac.authorization.k8s.io/v1", "ClusterRole")}, nil},
		"a custom resource may share the name of a reserved kind": {
			[]Resource{toHost("example.com/v1", "Role"), toHost("example.com/v1", "Event"), toHost("example.com/v1", "Node")}, nil},
		"as many kinds as are allowed": {many[:MaxResources], nil},
		"one kind more": {many,
			[]string{`spec.resources: Too many: 101: must have at most 100 items`}},
		"one kind in two versions is a duplicate": {
			[]Resource{toHost("autoscaling/v1", "HorizontalPodAutoscaler"), toHost("v1", "Pod"), toHost("autoscaling/v2", "HorizontalPodAutoscaler")},
			[]string{`spec.resources[2]: Duplicate value: "HorizontalPodAutoscaler.autoscaling": the kind is at spec.resources[0] already, and crosses in one version and one direction; keep one of the two`}},
		"a third entry is a second duplicate of the first": {
			[]Resource{toHost("v1", "Pod"), toHost("v1", "Pod"), toHost("v1", "Pod")},
			[]string{
				`spec.resources[1]: Duplicate value: "Pod": the kind is at spec.resources[0] already, and crosses in one version and one direction; keep one of the two`,
				`spec.resources[2]: Duplicate value: "Pod": the kind is at spec.resources[0] already, and crosses in one version and one direction; keep one of the two`,
			}},
		"an empty entry lacks everything": {
			[]Resource{{}},
			[]string{
				`spec.resources[0].apiVersion: Required value: a group and version such as v1 or apps/v1`,
				`spec.resources[0].kind: Required value: a kind such as ConfigMap`,
				`spec.resources[0].direction: Required value: must be one of toHost, fromHost, bidirectional`,
			}},
		"two entries that lack their kind are no duplicates": {
			[]Resource{toHost("v1", ""), toHost("v1", "")},
			[]string{
				`spec.resources[0].kind: Required value: a kind such as ConfigMap`,
				`spec.resources[1].kind: Required value: a kind such as ConfigMap`,
			}},
		"apiVersion has two slashes": {[]Resource{toHost("apps/v1/beta", "Deployment")},
			[]string{`spec.resources[0].apiVersion: Invalid value: "apps/v1/beta": must be a version such as v1, or a group and version such as apps/v1`}},
		"apiVersion has no version": {[]Resource{toHost("apps/", "Deployment")},
			[]string{`spec.resources[0].apiVersion: Invalid value: "apps/": must be a version such as v1, or a group and version such as apps/v1`}},
		"apiVersion has no group before its slash": {[]Resource{toHost("/v1", "Pod")},
			[]string{`spec.resources[0].apiVersion: Invalid value: "/v1": must be a version such as v1, or a group and version such as apps/v1`}},
		"apiVersion climbs out of its path": {[]Resource{toHost("../v1", "Pod")},
			[]string{`spec.resources[0].apiVersion: Invalid value: "../v1": must be a version such as v1, or a group and version such as apps/v1`}},
		"kind is qualified": {[]Resource{toHost("apps/v1", "Deployment.apps")},
			[]string{`spec.resources[0].kind: Invalid value: "Deployment.apps": must be the name of a kind such as ConfigMap: letters, digits and dashes, at most 63`}},
	} {
		t.Run(name, func(t *testing.T) {
			faults := Validate(&SyncPolicy{Spec: SyncPolicySpec{Resources: test.resources}})
			var got []string
			for _, fault := range faults {
				got = append(got, fault.Error())
			}
			assert.Equal(t, test.want, got)
		})
	}
}

func TestAReservedKindIsRefusedInEveryVersionAndDirectionWithTheReason(t *testing.T) {
	for name, test := range map[string]struct{ resource, want string }{
		"Role": {"rbac.authorization.k8s.io/v1", "Role.rbac.authorization.k8s.io never crosses, as it would let a tenant grant rights on the host"},
		"RoleBinding": {"rbac.authorization.k8s.io/v1beta1",
			"RoleBinding.rbac.authorization.k8s.io never crosses, as it would let a tenant grant rights on the host"},
		"Lease": {"coordination.k8s.io/v1",
			"Lease.coordination.k8s.io never crosses, as it is a lock between controllers of one cluster, the lock of the pass itself among them"},
		"ControllerRevision": {"apps/v1",
			"ControllerRevision.apps never crosses, as it belongs to the controllers of the cluster it is in"},
		"Event":         {"v1", "Event never crosses, as it tells what happened in the cluster it is in"},
		"TenantCluster": {"tenantplane.io/v1alpha1", "TenantCluster.tenantplane.io never crosses, as it steers syncpass itself"},
		"SyncDecision":  {"tenantplane.io/v1", "SyncDecision.tenantplane.io never crosses, as it steers syncpass itself"},
	} {
		for _, direction := range directions {
			t.Run(name+" "+string(direction), func(t *testing.T) {
				faults := Validate(&SyncPolicy{Spec: SyncPolicySpec{Resources: []Resource{{APIVersion: test.resource, Kind: name, Direction: direction}}}})
				if assert.Len(t, faults, 1) {
					assert.Equal(t, "spec.resources[0].kind: Forbidden: "+test.want+"; take it off the list", faults[0].Error())
				}
			})
		}
	}
}

func TestANodeCrossesFromHostOnly(t *testing.T) {
	node := func(direction Direction) *SyncPolicy {
		return &SyncPolicy{Spec: SyncPolicySpec{Resources: []Resource{{APIVersion: "v1", Kind: "Node", Direction: direction}}}}
	}
	assert.Empty(t, Validate(node(FromHost)))
	for _, direction := range []Direction{ToHost, Bidirectional} {
		faults := Validate(node(direction))
		if assert.Len(t, faults, 1) {
			assert.Equal(t, fmt.Sprintf(`spec.resources[0].direction: Unsupported value: %q: supported values: "fromHost"`, direction), faults[0].Error())
		}
	}
}

func TestValidationChangesNothingAndDefaultingJudgesNothing(t *testing.T) {
	bare := &SyncPolicy{Spec: SyncPolicySpec{Resources: []Resource{toHost("v1", "Pod")}}}
	before := bare.DeepCopy()
	assert.Empty(t, Validate(bare))
	assert.Equal(t, before, bare)

	odd := &SyncPolicy{Spec: SyncPolicySpec{
		ConflictPolicy: "newest",
		DriftDetection: DriftDetection{Enabled: ptr.To(false), Interval: &metav1.Duration{Duration: -time.Second}},
		Explain:        Explain{RecordDecisions: ptr.To(false), Retain: ptr.To(int32(-1))},
	}}
	before = odd.DeepCopy()
	odd.SetDefaults()
	assert.Equal(t, before, odd)
}
