package record

import (
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
)

// Key names a pair: the group and kind of its objects and the tenant object's namespace and name. The API version is
// left out, so that a policy that moves to another version keeps its history. A Key without a name stands for the
// kind itself (a kind that cannot be read is a standing skip of its own).
//
// +kubebuilder:object:generate=false
type Key struct {
	Group, Kind     string
	Namespace, Name string
}

// GroupKind is the kind of the pair's objects.
func (k Key) GroupKind() schema.GroupKind { return schema.GroupKind{Group: k.Group, Kind: k.Kind} }

// Hash is a keyed hash of one side's content.
//
// +kubebuilder:object:generate=false
type Hash [16]byte

// Version is one side of a pair at one moment.
//
// +kubebuilder:object:generate=false
type Version struct {
	UID types.UID
	// ResourceVersion equal means certainly unchanged, different means look; a list at a lower one than this is of an
	// earlier time. Empty where nothing is known.
	ResourceVersion string
	Hash            Hash
}

// Baseline is what both sides looked like when they last agreed.
//
// +kubebuilder:object:generate=false
type Baseline struct {
	Tenant, Host Version
	// Writes tells by whom and when the tenant object had been written until then, as its managedFields have it; zero where
	// they say nothing. A tenant that is restored from a backup goes through the same resourceVersions once more, but not
	// at the same times.
	Writes Fingerprint
}

// Of is the baseline of one side.
func (b *Baseline) Of(side Side) Version {
	if side == Tenant {
		return b.Tenant
	}
	return b.Host
}

// Fingerprint is a short hash of what is no secret.
//
// +kubebuilder:object:generate=false
type Fingerprint [8]byte

// Intent is a two-way write that a pass was about to make, stored before it is sent, so that the next pass can tell
// "my write landed" from "someone else's" after a crash or a lost answer.
//
// +kubebuilder:object:generate=false
type Intent struct {
	// Side is the side to be written.
	Side Side
	// Target is the object to be overwritten, as read before; zero for a create. Its Hash is its content's then.
	Target Version
	// Want is the hash that the written side's content is to reach.
	Want Hash
	// Source is the other side as read before.
	Source Version
	// Path is one field that the write sets to a new value, empty where it only removes or makes a mirror. Whoever owns
	// it in managedFields wrote last. An intent with a longer path than 512 bytes is not kept.
	Path string
}

// Standing is a skip that stands from pass to pass; it is one entry in the trail and one Event, however long. Its times
// are kept to the second.
//
// +kubebuilder:object:generate=false
type Standing struct {
	Reason Reason
	// Digest tells one disagreement from the next of the same reason: a hash of what was decided about.
	Digest Hash
	Since  time.Time
	// LastTime is when the entry was last refreshed; Count how often it was written: one, and one more a refresh. Passes
	// in between cannot be counted, since they write nothing.
	LastTime time.Time
	Count    int32
}

// State is everything remembered of one pair. The zero State means nothing is. What its pointers lead to is shared:
// never change it in place, make a new one and Set it.
//
// +kubebuilder:object:generate=false
type State struct {
	Baseline *Baseline
	Intent   *Intent
	Standing *Standing
}
