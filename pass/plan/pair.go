package plan

import (
	"cmp"
	"maps"
	"slices"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	"github.com/syncpass/syncpass/pass/kinds"
	"github.com/syncpass/syncpass/policy"
	"github.com/syncpass/syncpass/record"
)

// pair is a tenant object and its mirror, either of which may be absent.
type pair struct {
	kind      kinds.Kind
	resource  *policy.Resource
	retired   bool
	key       record.Key
	tenant    *unstructured.Unstructured
	host      *unstructured.Unstructured
	occupant  *unstructured.Unstructured // a host object that is not this pair's mirror but stands in its place
	marked    bool                       // the occupant is marked as another object's mirror
	malformed string                     // why the tenant object cannot be understood
	narrowed  bool                       // the tenant object is there, and the policy leaves it out
	unrenamed bool                       // nothing changed but the policy, which lists references that the mirror still has as the tenant's
	state     record.State
	settled   bool           // an earlier intent was looked into
	withheld  *kinds.Refusal // why a part of the tenant object is kept from its mirror
	keep      kinds.Keep
	authority policy.Direction
}

// pairs matches the tenant's objects with their mirrors, by the identity that the mirrors' marks name, and adds the
// pairs that only history knows. The order of the lists makes no difference.
func (in *Input) pairs(snapshot KindSnapshot) []*pair {
	group := snapshot.GroupKind()
	kind := snapshot.kind
	found := map[types.NamespacedName]*pair{}
	at := func(name types.NamespacedName) *pair {
		p := found[name]
		if p == nil {
			key := record.Key{Group: group.Group, Kind: group.Kind, Namespace: name.Namespace, Name: name.Name}
			p = &pair{kind: kind, resource: &snapshot.Resource, retired: snapshot.Retired, key: key, state: in.History.Get(key)}
			p.authority, p.keep = in.authority(snapshot.Resource.Direction)
			found[name] = p
		}
		return p
	}

	narrowed := map[types.NamespacedName]bool{}
	for _, object := range snapshot.Tenant {
		name := nameOf(object)
		if kinds.Crosses(kind, object) {
			at(name).tenant = object
		} else if !kind.Rules().Carry(object) {
			narrowed[name] = true
		}
	}
	for _, object := range snapshot.Apart {
		if !kind.Rules().Carry(object) {
			narrowed[nameOf(object)] = true
		}
	}
	for name, cause := range snapshot.Malformed {
		// Its labels may be what is malformed, so no selector leaves it out.
		if kind.Rules().CarryFrom(name.Namespace) && kind.Crosses(kinds.Object{Namespace: name.Namespace, Name: name.Name}) {
			at(name).malformed = cause
		}
	}
	others := map[string]*unstructured.Unstructured{}
	for _, object := range snapshot.Host {
		if id, owned := in.Mapping.Identify(kind, group.Kind, object); owned == kinds.Ours {
			at(id).host = object
		} else {
			others[object.GetName()] = object
		}
	}
	for _, object := range snapshot.Others {
		others[object.GetName()] = object
	}
	for key := range in.History.Of(group.Group, group.Kind) {
		name := types.NamespacedName{Namespace: key.Namespace, Name: key.Name}
		if !snapshot.Quiet[name] && key.Name != "" {
			at(name)
		}
	}

	pairs := slices.SortedFunc(maps.Values(found), func(a, b *pair) int {
		return cmp.Or(cmp.Compare(a.key.Namespace, b.key.Namespace), cmp.Compare(a.key.Name, b.key.Name))
	})
	for _, p := range pairs {
		p.narrowed = narrowed[types.NamespacedName{Namespace: p.key.Namespace, Name: p.key.Name}]
		if p.host == nil {
			p.occupant = others[in.Mapping.MirrorName(kind, p.key.Namespace, p.key.Name)]
			p.marked = p.occupant != nil && p.occupant.GetLabels()[kinds.LabelManagedBy] == kinds.ManagedBy
		}
	}
	return pairs
}

// authority reduces a direction and the conflict policy to whose content counts: a bidirectional pair under
// tenant-wins is decided like toHost, one under host-wins like fromHost, and only manual weighs both sides. Where the
// tenant counts, what host controllers add to the mirror's labels and annotations is theirs and stays; where both or
// the host count, it is content like any other.
func (in *Input) authority(direction policy.Direction) (policy.Direction, kinds.Keep) {
	if direction == policy.Bidirectional {
		switch in.ConflictPolicy {
		case policy.TenantWins:
			return policy.ToHost, kinds.KeepForeign
		case policy.HostWins:
			return policy.FromHost, kinds.KeepNone
		}
		return policy.Bidirectional, kinds.KeepNone
	}
	if direction == policy.ToHost {
		return policy.ToHost, kinds.KeepForeign
	}
	return policy.FromHost, kinds.KeepNone
}

// decision is a decision about the pair, with its names filled in.
func (in *Input) decision(p *pair, action record.Action, side record.Side, reason record.Reason) record.Decision {
	d := record.Decision{
		Action: action, Side: side, Reason: reason,
		APIVersion: p.resource.APIVersion, Kind: p.resource.Kind,
		TenantNamespace: p.key.Namespace, TenantName: p.key.Name,
		HostNamespace: in.Mapping.HostNamespace,
		Fields:        []string{},
	}
	if p.key.Name != "" {
		d.HostName = in.Mapping.MirrorName(p.kind, p.key.Namespace, p.key.Name)
	}
	return d
}

func terminating(object *unstructured.Unstructured) bool { return object.GetDeletionTimestamp() != nil }
