package plan

import (
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/syncpass/syncpass/pass/kinds"
	"github.com/syncpass/syncpass/policy"
	"github.com/syncpass/syncpass/record"
)

// Snapshot is what both sides looked like: complete, or saying where it is not.
type Snapshot struct {
	// TenantUID is the UID of the tenant's kube-system namespace; empty where the tenant has none.
	TenantUID string
	Kinds     []KindSnapshot
}

// KindSnapshot is one kind on both sides.
type KindSnapshot struct {
	Resource policy.Resource
	// Retired marks a kind that left the policy and whose mirrors are to go.
	Retired bool
	// Unavailable is why the kind could not be read completely on both sides; then nothing of it is known, and nothing
	// of it is done. Empty: both lists are complete. Of Node the tenant's may be known all the same.
	Unavailable string
	// Error is the API server's refusal behind it, where there was one; the pass then did not go through cleanly.
	Error string
	// Malformed are tenant objects that exist but break the rules of metadata, with the cause: they keep their mirrors.
	Malformed map[types.NamespacedName]string
	// TenantVersion is the resourceVersion of the tenant's list; empty where there is none.
	TenantVersion string
	// Tokens are, for Pods, the Secrets with tokens that earlier passes provided.
	Tokens []TokenSecret
	// Tenant are the tenant's objects of the kind in all namespaces, Host all objects of the kind in the host
	// namespace, ours or not, but for Quiet, Apart and Others; of Node, Host are the nodes that mirrors are on.
	Tenant, Host []*unstructured.Unstructured
	// Quiet, where it is not nil, are the pairs that are certainly as they were when they last agreed: see Survey. Their
	// objects are not among Tenant and Host, and nothing is decided about them.
	Quiet map[types.NamespacedName]bool
	// Apart are tenant objects that are known not to cross, Others host objects that are known to be no mirrors of this
	// tenant, where only that was read of them: metadata alone.
	Apart, Others []*unstructured.Unstructured
	// kind is the kind under the policy's rules, known while a plan is computed.
	kind kinds.Kind
}

// Forget lets go of the objects: a plan has those that it is about.
func (s *Snapshot) Forget() {
	for i := range s.Kinds {
		k := &s.Kinds[i]
		k.Tenant, k.Host, k.Quiet, k.Apart, k.Others = nil, nil, nil, nil, nil
	}
}

// GroupKind is the kind, without its version.
func (s KindSnapshot) GroupKind() schema.GroupKind {
	return schema.FromAPIVersionAndKind(s.Resource.APIVersion, s.Resource.Kind).GroupKind()
}

// TokenSecret is a Secret on the host with the tokens of a Pod's mirror.
type TokenSecret struct {
	Name string
	// RenewAfter is when less than half of the tokens' time is left.
	RenewAfter time.Time
	// Owner is the UID of the mirror that it belongs to.
	Owner types.UID
}

// Input is all that a plan depends on.
type Input struct {
	ConflictPolicy policy.ConflictPolicy
	// History is what earlier passes recorded, nil where recording is off.
	History *record.History
	// Recording says whether this pass records, and so whether there can be a history.
	Recording bool
	Hasher    record.Hasher
	Mapping   kinds.Mapping
	Snapshot  Snapshot
	// Probes are what a server-side dry run of our own write made of the mirrors that an earlier Compute named in
	// Undecided.
	Probes map[record.Key]*unstructured.Unstructured
	// RecordedTenantUID is the identity of the tenant that the history belongs to, empty where none is recorded.
	RecordedTenantUID string
	// MaxDeletePercent is the limit of the guard over deletes.
	MaxDeletePercent int
	// Confirmed is the ID of the plan that a person let through the guards.
	Confirmed string
	// Resolutions are what persons said about conflicts, by pair.
	Resolutions map[record.Key]Resolution
	// OnlyResolutions leaves out of the plan every other pair, and whatever is no resolution. The guards judge what is left.
	OnlyResolutions bool
	// Now is written into records, and tells when tokens are due for renewal; nothing else depends on it.
	Now time.Time
	// Later leaves the making of objects that are to be created to when their turn comes, by Step.Complete: a plan that is to
	// be carried out need not hold all of them, one that is to be shown does.
	Later bool
}

// Plan is what a pass is to do, and what it learned without doing anything.
type Plan struct {
	// Steps are the decisions, in order of kind, namespace and name.
	Steps []Step
	// Unchanged counts the pairs about which nothing was decided.
	Unchanged int
	// History are the states of pairs that moved without a write: agreements found, intents settled.
	History []Change
	// Kinds are what history is to know of the kinds themselves once all of the plan was attempted: what the policy said
	// when their mirrors were last looked at.
	Kinds []Change
	// Refreshed are states of pairs whose resourceVersions moved while their content did not. They are worth keeping,
	// but no reason to write.
	Refreshed []Change
	// Undecided are mirrors that differ from what we would write by what may be the host's defaults alone: a dry run of
	// the write tells.
	Undecided []Step
	// GuardID names what a guard withheld, empty where none did.
	GuardID string
	// GuardMessage says which guard, what for, and how to let exactly this plan through.
	GuardMessage string
	// Leases are what is to be renewed for the tenant's stub Nodes; nil where none is to be touched.
	Leases *Leases
	// OtherTenant says that the guard doubts that the recorded tenant, at its present state, is the one that answers.
	OtherTenant bool
}

// Change is the new state of a pair; the zero State forgets it.
type Change struct {
	Key   record.Key
	State record.State
}

// Step is one decision, with what is needed to carry it out.
type Step struct {
	record.Decision
	Key    record.Key
	Weight kinds.Weight
	// Rules are what the policy says about the kind: a tenant object that they leave out counts as gone.
	Rules kinds.Rules
	// Want is the object to write, nil for a Delete or Skip.
	Want *unstructured.Unstructured
	// Have is the object to be overwritten or deleted, whose UID and resourceVersion the write is conditional on; nil
	// for a Create.
	Have *unstructured.Unstructured
	// Replace says that Have must be deleted and made anew, because the API does not let it become Want.
	Replace bool
	// Subresource is the part of the object that Want is written through; empty for the object itself.
	Subresource string
	// Node is the stub that this plan makes and without which the Pod is not bound to it; empty where none is awaited.
	Node string
	// Before is a write without which the step's own is not made; nil for none. What comes of it is no agreement.
	Before *Write
	// Then are further writes of the same decision, made one after the other: those on the same side once the first has
	// succeeded, those on the other in any case. None hangs on another of them.
	Then []Write
	// GraceSeconds is the grace of a Delete, nil for the object's own.
	GraceSeconds *int64
	// Tokens are what a Pod's mirror mounts: provided with a Create, renewed by an Update that has nothing else to write.
	Tokens *kinds.Tokens
	// Awaits are Services that this plan creates and whose addresses Want is to have. Complete makes Want, with them by
	// Service name, where it has to wait for them or is to be made when its turn comes (see Input.Later); nil elsewhere.
	Awaits   []record.Key
	Complete func(addresses map[string]string) *unstructured.Unstructured
	// Held is why the pair is held, or would be if no person had said which side to keep; empty where no person needs to.
	Held record.Reason
	// Source is the other side of the pair as it was read; nil where it is gone.
	Source *unstructured.Unstructured
	// State is what history knows of the pair, with any earlier intent settled that could be.
	State record.State
	// Intent is stored before the write where both sides may change.
	Intent *record.Intent
}

// Write is one further write of a step.
type Write struct {
	Side        record.Side
	Subresource string
	Object      *unstructured.Unstructured
}

// OfNode says whether a step is about a stub Node.
func (s *Step) OfNode() bool { return kinds.IsNode(s.Key.GroupKind()) }

// Writes says whether a step changes something.
func (s *Step) Writes() bool { return s.Action != record.Skip }

// Writes counts the steps that change something.
func (p *Plan) Writes() int {
	count := 0
	for i := range p.Steps {
		if p.Steps[i].Writes() {
			count++
		}
	}
	return count
}
