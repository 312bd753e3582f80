package record

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Outcome is how a pass ended.
// +kubebuilder:validation:Enum=Completed;CompletedWithErrors;Guarded;Locked;Unreachable;Invalid;Stopped
type Outcome string

// The outcomes, and the exit code each leads to in cmd/runner.
const (
	// Completed: everything planned was done; open conflicts do not change that.
	Completed Outcome = "Completed"
	// CompletedWithErrors: the pass went through, but an API server refused at least one object.
	CompletedWithErrors Outcome = "CompletedWithErrors"
	// Guarded: a guard withheld something until a person confirms it.
	Guarded Outcome = "Guarded"
	// Locked: another pass holds the tenant's Lease.
	Locked Outcome = "Locked"
	// Unreachable: an API server did not answer, or the deadline passed.
	Unreachable Outcome = "Unreachable"
	// Invalid: configuration, policy or credentials are unusable.
	Invalid Outcome = "Invalid"
	// Stopped: a signal ended the pass early and cleanly.
	Stopped Outcome = "Stopped"
)

// Counts are the totals of one pass.
type Counts struct {
	// +kubebuilder:validation:Minimum=0
	Create int `json:"create"`
	// +kubebuilder:validation:Minimum=0
	Update int `json:"update"`
	// +kubebuilder:validation:Minimum=0
	Delete int `json:"delete"`
	// +kubebuilder:validation:Minimum=0
	Skip int `json:"skip"`
	// +kubebuilder:validation:Minimum=0
	Unchanged int `json:"unchanged"`
	// Error counts the decisions whose write an API server refused.
	//
	// +kubebuilder:validation:Minimum=0
	Error int `json:"error"`
	// Requests is how many API requests the pass sent, to both sides together.
	//
	// +kubebuilder:validation:Minimum=0
	Requests int `json:"requests"`
}

// SyncDecision is the durable record of one tenant's passes: why each thing was done, and what both sides of every
// pair looked like when they last agreed. It is named after its TenantCluster and owned by it. Further pages of
// history are SyncDecisions labelled tenantplane.io/history-of.
//
// +kubebuilder:object:root=true
// +kubebuilder:resource:shortName=sd
// +kubebuilder:subresource:status
// +kubebuilder:printcolumn:name="Outcome",type=string,JSONPath=`.status.lastPass.outcome`
// +kubebuilder:printcolumn:name="When",type=date,JSONPath=`.status.lastPass.endTime`
// +kubebuilder:printcolumn:name="Created",type=integer,JSONPath=`.status.lastPass.counts.create`
// +kubebuilder:printcolumn:name="Updated",type=integer,JSONPath=`.status.lastPass.counts.update`
// +kubebuilder:printcolumn:name="Deleted",type=integer,JSONPath=`.status.lastPass.counts.delete`
// +kubebuilder:printcolumn:name="Skipped",type=integer,JSONPath=`.status.lastPass.counts.skip`
// +kubebuilder:printcolumn:name="Conflicts",type=integer,JSONPath=`.status.conflicts`
// +kubebuilder:printcolumn:name="Pairs",type=integer,JSONPath=`.status.pairs`
type SyncDecision struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	Status SyncDecisionStatus `json:"status,omitempty"`
}

// SyncDecisionList is a list of SyncDecisions.
//
// +kubebuilder:object:root=true
type SyncDecisionList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []SyncDecision `json:"items"`
}

// SyncDecisionStatus is all the state that syncpass keeps.
type SyncDecisionStatus struct {
	// LastPass is the newest pass that had something to record.
	LastPass *LastPass `json:"lastPass,omitempty"`
	// Conflicts is how many pairs wait for a person.
	//
	// +kubebuilder:validation:Minimum=0
	Conflicts int32 `json:"conflicts,omitempty"`
	// Pairs is how many pairs are in the history.
	//
	// +kubebuilder:validation:Minimum=0
	Pairs int32 `json:"pairs,omitempty"`
	// Entries is the trail of decisions, oldest first, at most the policy's spec.explain.retain.
	//
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=10000
	Entries []Entry `json:"entries,omitempty"`
	// Tenant is the identity of the tenant that the history belongs to.
	Tenant *TenantIdentity `json:"tenant,omitempty"`
	// Epoch is raised by one before every pass that writes; a pass that finds a newer one stops writing.
	//
	// +kubebuilder:validation:Minimum=0
	Epoch int64 `json:"epoch,omitempty"`
	// ReservedBy is the id of the pass that raised the epoch, so that a pass whose answer got lost can tell its own
	// swap from another pass's.
	//
	// +kubebuilder:validation:MaxLength=64
	ReservedBy string `json:"reservedBy,omitempty"`
	// History is one page of the pairs' history. It is packed, not for reading: `runner explain` shows it.
	History *Page `json:"history,omitempty"`
}

// TenantIdentity tells one tenant from another behind the same kubeconfig.
type TenantIdentity struct {
	// UID of the tenant's kube-system namespace.
	//
	// +kubebuilder:validation:MaxLength=64
	UID string `json:"uid"`
}

// LastPass is the summary of a pass.
type LastPass struct {
	// +kubebuilder:validation:MaxLength=64
	ID        string           `json:"id"`
	StartTime metav1.MicroTime `json:"startTime"`
	EndTime   metav1.MicroTime `json:"endTime"`
	Outcome   Outcome          `json:"outcome"`
	// +kubebuilder:validation:MaxLength=4096
	Message string `json:"message,omitempty"`
	Counts  Counts `json:"counts"`
}

// Entry is one decision in the trail.
type Entry struct {
	Time   metav1.MicroTime `json:"time"`
	Action Action           `json:"action"`
	// +kubebuilder:validation:Enum=host;tenant
	Side Side `json:"side,omitempty"`
	// +kubebuilder:validation:MaxLength=317
	APIVersion string `json:"apiVersion"`
	// +kubebuilder:validation:MaxLength=63
	Kind string `json:"kind"`
	// +kubebuilder:validation:MaxLength=512
	TenantNamespace string `json:"tenantNamespace,omitempty"`
	// +kubebuilder:validation:MaxLength=512
	TenantName string `json:"tenantName,omitempty"`
	// +kubebuilder:validation:MaxLength=512
	HostNamespace string `json:"hostNamespace,omitempty"`
	// +kubebuilder:validation:MaxLength=512
	HostName string `json:"hostName,omitempty"`
	// +kubebuilder:validation:MaxLength=64
	// +kubebuilder:validation:Pattern=`^[A-Za-z]+$`
	Reason Reason `json:"reason"`
	// +kubebuilder:validation:MaxLength=4096
	Message string `json:"message,omitempty"`
	// Error is the cause given by an API server that refused the write.
	//
	// +kubebuilder:validation:MaxLength=4096
	Error string `json:"error,omitempty"`
	// Fields are the paths that differed; values are never recorded.
	//
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=256
	// +kubebuilder:validation:items:MaxLength=1024
	Fields []string `json:"fields,omitempty"`
	// +kubebuilder:validation:MaxLength=64
	PassID string `json:"passID"`
	// Count is how many passes came to this decision; above one only for a skip that stands.
	//
	// +kubebuilder:validation:Minimum=0
	Count int32 `json:"count,omitempty"`
	// LastTime is when the decision was last seen to stand, refreshed at most every 30 minutes.
	LastTime *metav1.MicroTime `json:"lastTime,omitempty"`
}

// Page is one page of history: the packed state of the pairs whose key falls into it.
type Page struct {
	// Of is the number of pages of this history, a power of two; Index is this page's place among them, from 0.
	//
	// +kubebuilder:validation:Minimum=1
	Of int32 `json:"of"`
	// +kubebuilder:validation:Minimum=0
	Index int32 `json:"index"`
	// Format is the version of the packing. A reader that does not know it must not write.
	//
	// +kubebuilder:validation:Minimum=1
	Format int32 `json:"format"`
	// KeyID names the key that the content hashes were made with, without giving it away.
	//
	// +kubebuilder:validation:MaxLength=512
	KeyID string `json:"keyID,omitempty"`
	// Data is the packed page.
	//
	// +kubebuilder:validation:MaxLength=524288
	Data []byte `json:"data,omitempty"`
}
