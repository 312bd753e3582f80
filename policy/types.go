package policy

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// SyncPolicy says which kinds of tenant objects cross to the host cluster, which way their content flows, and
// who wins when a bidirectional pair disagrees. It lives on the host and is cluster-scoped, so that one policy can
// serve many tenants.
//
// +kubebuilder:object:root=true
// +kubebuilder:resource:scope=Cluster,shortName=sp
// +kubebuilder:printcolumn:name="Conflict Policy",type=string,JSONPath=`.spec.conflictPolicy`
// +kubebuilder:printcolumn:name="Interval",type=string,JSONPath=`.spec.driftDetection.interval`
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
type SyncPolicy struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	Spec SyncPolicySpec `json:"spec"`
}

// SyncPolicyList is a list of SyncPolicies.
//
// +kubebuilder:object:root=true
type SyncPolicyList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []SyncPolicy `json:"items"`
}

// SyncPolicySpec is what a SyncPolicy asks for.
//
// +kubebuilder:object:generate=true
type SyncPolicySpec struct {
	// ConflictPolicy says who wins when both sides of a bidirectional pair disagree.
	//
	// +kubebuilder:default=manual
	// +optional
	ConflictPolicy ConflictPolicy `json:"conflictPolicy,omitempty"`
	// DriftDetection says whether and how often scheduled passes look for differences.
	//
	// +kubebuilder:default={}
	// +optional
	DriftDetection DriftDetection `json:"driftDetection,omitempty"`
	// Explain says what is recorded about each decision.
	//
	// +kubebuilder:default={}
	// +optional
	Explain Explain `json:"explain,omitempty"`
	// Resources are the kinds that cross, each once.
	//
	// +listType=map
	// +listMapKey=apiVersion
	// +listMapKey=kind
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=100
	// +kubebuilder:validation:XValidation:rule="self.all(a, self.exists_one(b, a.kind == b.kind && (a.apiVersion.contains('/') ? a.apiVersion.split('/')[0] : '') == (b.apiVersion.contains('/') ? b.apiVersion.split('/')[0] : '')))",message="a kind crosses in one version and one direction: list it once"
	Resources []Resource `json:"resources"`
}

// ConflictPolicy says who wins when both sides of a bidirectional pair disagree.
//
// +kubebuilder:validation:Enum=manual;tenant-wins;host-wins
type ConflictPolicy string

// The conflict policies.
const (
	// Manual carries a one-sided change over and leaves a two-sided one to a person.
	Manual ConflictPolicy = "manual"
	// TenantWins pushes the tenant's content on any disagreement.
	TenantWins ConflictPolicy = "tenant-wins"
	// HostWins pulls the host's content on any disagreement.
	HostWins ConflictPolicy = "host-wins"
)

// DriftDetection says whether and how often scheduled passes look for differences.
//
// +kubebuilder:object:generate=true
type DriftDetection struct {
	// Enabled false pauses every schedule, internal and rendered; a pass started by hand still runs.
	//
	// +kubebuilder:default=true
	// +optional
	Enabled *bool `json:"enabled,omitempty"`
	// Interval between the starts of two scheduled passes: a Go duration such as 30s or 1m30s, at least 1s.
	//
	// +kubebuilder:default="30s"
	// +kubebuilder:validation:Type=string
	// +kubebuilder:validation:MaxLength=64
	// +kubebuilder:validation:Pattern=`^\+?(([0-9]+\.?[0-9]*|\.[0-9]+)(ns|us|µs|μs|ms|s|m|h))+$`
	// +kubebuilder:validation:XValidation:rule="duration(self) >= duration('1s')",message="must be at least 1s; to pause the schedule set enabled: false beside it"
	// +optional
	Interval *metav1.Duration `json:"interval,omitempty"`
}

// Explain says what is recorded about each decision.
//
// +kubebuilder:object:generate=true
type Explain struct {
	// RecordDecisions keeps the SyncDecision and its history; without it every bidirectional disagreement under the
	// manual policy waits for a person.
	//
	// +kubebuilder:default=true
	// +optional
	RecordDecisions *bool `json:"recordDecisions,omitempty"`
	// Retain is how many entries the SyncDecision keeps at most; the oldest go first, earlier where the entries would
	// not fit into one object. None at 0, which leaves the baselines and the Events.
	//
	// +kubebuilder:default=1000
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=10000
	// +optional
	Retain *int32 `json:"retain,omitempty"`
}

// Resource is one kind that crosses.
//
// +kubebuilder:validation:XValidation:rule="!self.apiVersion.startsWith('tenantplane.io/')",message="a kind of tenantplane.io never crosses, as it steers syncpass itself"
// +kubebuilder:validation:XValidation:rule="!(self.kind in ['Role', 'RoleBinding'] && self.apiVersion.startsWith('rbac.authorization.k8s.io/'))",message="Role and RoleBinding never cross, as they would let a tenant grant rights on the host"
// +kubebuilder:validation:XValidation:rule="!(self.kind == 'Lease' && self.apiVersion.startsWith('coordination.k8s.io/'))",message="Lease never crosses, as it is a lock between controllers of one cluster"
// +kubebuilder:validation:XValidation:rule="!(self.kind == 'ControllerRevision' && self.apiVersion.startsWith('apps/'))",message="ControllerRevision never crosses, as it belongs to the controllers of the cluster it is in"
// +kubebuilder:validation:XValidation:rule="!(self.kind == 'Event' && (!self.apiVersion.contains('/') || self.apiVersion.startsWith('events.k8s.io/')))",message="Event never crosses, as it tells what happened in the cluster it is in"
// +kubebuilder:validation:XValidation:rule="!(self.kind == 'Node' && !self.apiVersion.contains('/')) || self.direction == 'fromHost'",message="Node crosses fromHost only"
// +kubebuilder:validation:XValidation:rule="!(self.kind == 'Secret' && !self.apiVersion.contains('/')) || !has(self.references) || size(self.references) == 0",message="a Secret holds values, which are no references"
// +kubebuilder:validation:XValidation:rule="!(self.kind == 'Node' && !self.apiVersion.contains('/')) || !has(self.references) && !has(self.selector) && !has(self.namespaces)",message="which Nodes cross follows from the Pods on them alone"
// +kubebuilder:object:generate=true
type Resource struct {
	// APIVersion is the group and version that both sides are read and written in, such as v1 or apps/v1.
	//
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=317
	// +kubebuilder:validation:Pattern=`^([a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*/)?[a-z]([-a-z0-9]*[a-z0-9])?$`
	APIVersion string `json:"apiVersion"`
	// Kind is the kind's name, such as ConfigMap.
	//
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=63
	// +kubebuilder:validation:Pattern=`^[A-Za-z]([-A-Za-z0-9]*[A-Za-z0-9])?$`
	Kind string `json:"kind"`
	// Direction is the way that the content flows.
	Direction Direction `json:"direction"`
	// References are the fields of this kind that name other objects of the same namespace. Their values become the names
	// of the mirrors on the way to the host and the tenant's own again on the way back. What the built-in kinds refer to
	// (a Pod's Secrets, an Ingress' Services and so on) is known already and needs no entry.
	//
	// +listType=map
	// +listMapKey=path
	// +kubebuilder:validation:MaxItems=32
	// +optional
	References []Reference `json:"references,omitempty"`
	// Selector narrows the kind to the tenant objects with these labels; without one, labels do not matter. An object
	// that stops matching counts as gone: its mirror is deleted, within the guards over deletes.
	//
	// +optional
	Selector *metav1.LabelSelector `json:"selector,omitempty"`
	// Namespaces narrows the kind to these namespaces of the tenant; without any, it crosses from all but the system
	// namespaces. An object outside of them counts as gone, as under Selector.
	//
	// +listType=set
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=100
	// +kubebuilder:validation:items:MaxLength=63
	// +kubebuilder:validation:items:Pattern=`^[a-z0-9]([-a-z0-9]*[a-z0-9])?$`
	// +optional
	Namespaces []string `json:"namespaces,omitempty"`
}

// Reference is a field that names an object of the same namespace.
//
// +kubebuilder:object:generate=true
type Reference struct {
	// Path of the field, such as spec.secretName. `[*]` stands for every item of a list, as in
	// spec.rules[*].backend.name or spec.secretNames[*]; a key with other characters than letters, digits, - and _ is
	// written in brackets and quotes, as in spec.parameters["example.com/secret"]. A field that is not there, or does not
	// hold a string, is left alone.
	//
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=256
	// +kubebuilder:validation:Pattern=`^([A-Za-z0-9_-]+|\["[^"\\]+"\])(\.[A-Za-z0-9_-]+|\["[^"\\]+"\]|\[\*\])*$`
	// +kubebuilder:validation:XValidation:rule="!self.matches('^([^A-Za-z]{2}(metadata|status|apiVersion|kind)\"|(metadata|status|apiVersion|kind)([^A-Za-z0-9_-]|$))')",message="metadata, status, apiVersion and kind hold no references"
	Path string `json:"path"`
	// Kind of the object that is named.
	//
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=63
	// +kubebuilder:validation:Pattern=`^[A-Za-z]([-A-Za-z0-9]*[A-Za-z0-9])?$`
	Kind string `json:"kind"`
	// APIVersion of the object that is named; v1 where it is left out. Only its group matters.
	//
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=317
	// +kubebuilder:validation:Pattern=`^([a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*/)?[a-z]([-a-z0-9]*[a-z0-9])?$`
	// +optional
	APIVersion string `json:"apiVersion,omitempty"`
}

// Direction is the way content flows between the two sides of a pair. Deletion always follows the tenant.
//
// +kubebuilder:validation:Enum=toHost;fromHost;bidirectional
type Direction string

// The directions.
const (
	// ToHost: the tenant is the authority; drift on the host is repaired.
	ToHost Direction = "toHost"
	// FromHost: the mirror starts from the tenant, then the host is the authority.
	FromHost Direction = "fromHost"
	// Bidirectional: either side may change; the conflict policy settles disagreements.
	Bidirectional Direction = "bidirectional"
)

// TenantCluster is a tenant control plane. Its namespace is the host namespace of all its mirrors. Only the policy
// reference matters here; every other field is kept and ignored, so TenantClusters written for other tools are taken.
//
// +kubebuilder:object:root=true
// +kubebuilder:resource:shortName=tc
// +kubebuilder:subresource:status
// +kubebuilder:printcolumn:name="Policy",type=string,JSONPath=`.spec.syncPolicyRef.name`
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
type TenantCluster struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// +optional
	Spec TenantClusterSpec `json:"spec,omitempty"`
	// +optional
	Status TenantClusterStatus `json:"status,omitempty"`
}

// TenantClusterList is a list of TenantClusters.
//
// +kubebuilder:object:root=true
type TenantClusterList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []TenantCluster `json:"items"`
}

// TenantClusterSpec is the part of a TenantCluster's spec that syncpass reads.
//
// +kubebuilder:object:generate=true
// +kubebuilder:pruning:PreserveUnknownFields
type TenantClusterSpec struct {
	// SyncPolicyRef names the SyncPolicy that this tenant is synced by.
	//
	// +optional
	SyncPolicyRef SyncPolicyRef `json:"syncPolicyRef,omitempty"`
}

// SyncPolicyRef names a SyncPolicy.
//
// +kubebuilder:object:generate=true
// +kubebuilder:pruning:PreserveUnknownFields
type SyncPolicyRef struct {
	// Name of the SyncPolicy. A pass over a TenantCluster that names none is refused, unless it brings its own policy.
	//
	// +optional
	Name string `json:"name,omitempty"`
}

// TenantClusterStatus is what the tenant's control plane reports about itself. syncpass reads the endpoint and keeps the
// rest.
//
// +kubebuilder:object:generate=true
// +kubebuilder:pruning:PreserveUnknownFields
type TenantClusterStatus struct {
	// Endpoint is the address of the tenant's API server as its Pods reach it: host:port, or a URL.
	//
	// +optional
	Endpoint string `json:"endpoint,omitempty"`
}
