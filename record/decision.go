package record

// Action is what a decision does to the written side.
// +kubebuilder:validation:Enum=Create;Update;Delete;Skip
type Action string

// The actions.
const (
	Create Action = "Create"
	Update Action = "Update"
	Delete Action = "Delete"
	Skip   Action = "Skip"
)

// Side is one of the two API servers of a pair.
type Side string

// The sides.
const (
	Host   Side = "host"
	Tenant Side = "tenant"
)

// Reason says why a decision was taken. The same code stands in tables, JSON, the SyncDecision and Events.
type Reason string

// Reasons of a Create.
const (
	// NoMirror: the tenant object has no mirror yet.
	NoMirror Reason = "NoMirror"
	// MirrorDeleted: the mirror that history knows is gone from the host, and comes back from the tenant.
	MirrorDeleted Reason = "MirrorDeleted"
)

// Reasons of an Update.
const (
	// TenantChanged: the tenant's content moved since the last agreement, and is carried to the host.
	TenantChanged Reason = "TenantChanged"
	// HostDrifted: the mirror of a toHost kind was changed on the host, and is repaired.
	HostDrifted Reason = "HostDrifted"
	// HostChanged: the host's content moved since the last agreement, and is carried to the tenant.
	HostChanged Reason = "HostChanged"
	// TenantWins: the sides disagree and the policy or direction names the tenant as the winner.
	TenantWins Reason = "TenantWins"
	// HostWins: the sides disagree and the policy or direction names the host as the winner. As a Delete: the tenant's Pod
	// is bound to another node than its mirror runs on.
	HostWins Reason = "HostWins"
	// StatusChanged: the host's status is reported to the tenant.
	StatusChanged Reason = "StatusChanged"
	// TokenRenewed: the tenant tokens that a Pod's mirror mounts were missing, or had less than half of their time left.
	TokenRenewed Reason = "TokenRenewed"
	// Resolved: a person settled a conflict.
	Resolved Reason = "Resolved"
)

// Reasons of a Delete.
const (
	// TenantDeleted: the tenant object is gone or terminating, so its mirror goes.
	TenantDeleted Reason = "TenantDeleted"
	// TenantRecreated: the tenant object was deleted and made again, and its kind cannot take over the old mirror.
	TenantRecreated Reason = "TenantRecreated"
	// KindRetired: the kind left the policy and SYNCPASS_RETIRE_KINDS is on.
	KindRetired Reason = "KindRetired"
)

// Reasons of a Skip.
const (
	// Conflict: both sides changed since they last agreed, and the policy is manual.
	Conflict Reason = "Conflict"
	// NoHistory: the sides differ and there is no recorded agreement to tell which one moved.
	NoHistory Reason = "NoHistory"
	// HistoryOff: the sides differ and explain.recordDecisions is false, so nothing can tell which one moved.
	HistoryOff Reason = "HistoryOff"
	// NotOwned: a host object that is not ours stands where the mirror belongs.
	NotOwned Reason = "NotOwned"
	// NameCollision: a mirror of another tenant object stands where this one's belongs.
	NameCollision Reason = "NameCollision"
	// Immutable: the change touches what the API does not let change, and replacing the object would lose data.
	Immutable Reason = "Immutable"
	// ScheduleMismatch: about the SyncPolicy, not about a pair: its interval is another one than the CronJob that started
	// the pass was rendered for.
	ScheduleMismatch Reason = "ScheduleMismatch"
	// Rejected: an API server refused the write, or the Pod Security level forbids it; the cause is in the decision's error.
	Rejected Reason = "Rejected"
	// KindUnavailable: the kind cannot be read on one side, so nothing of it is done.
	KindUnavailable Reason = "KindUnavailable"
	// Terminating: the object that would be written is being deleted.
	Terminating Reason = "Terminating"
	// Raced: somebody else wrote the object in between; the next pass looks again.
	Raced Reason = "Raced"
	// GuardMaxDeletes: the plan deletes more than SYNCPASS_MAX_DELETE_PERCENT of the mirrors.
	GuardMaxDeletes Reason = "GuardMaxDeletes"
	// GuardEmptyTenant: the tenant lists no object of a kind that has many mirrors.
	GuardEmptyTenant Reason = "GuardEmptyTenant"
	// GuardTenantIdentity: another tenant answers behind the kubeconfig than the one recorded, or an earlier state of it.
	GuardTenantIdentity Reason = "GuardTenantIdentity"
	// NotAttempted: the deadline or a signal came before this decision's turn.
	NotAttempted Reason = "NotAttempted"
)

// Decision is one action on one pair, with its reason: what JSON output, tables, the trail and Events all show.
// Fields names paths only, never values, so that no Secret leaks through it.
type Decision struct {
	Action          Action   `json:"action"`
	Side            Side     `json:"side"`
	APIVersion      string   `json:"apiVersion"`
	Kind            string   `json:"kind"`
	TenantNamespace string   `json:"tenantNamespace"`
	TenantName      string   `json:"tenantName"`
	HostNamespace   string   `json:"hostNamespace"`
	HostName        string   `json:"hostName"`
	Reason          Reason   `json:"reason"`
	Message         string   `json:"message"`
	Fields          []string `json:"fields"`
	// Error is the cause given by an API server when it refused the write; a decision with one counts in counts.error.
	Error string `json:"error"`
}
