package plan

import (
	"fmt"
	"slices"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/syncpass/syncpass/pass/kinds"
	"github.com/syncpass/syncpass/policy"
	"github.com/syncpass/syncpass/record"
)

// SideState is how one side of a pair stands, measured by the last agreement.
type SideState string

// The states of a side.
const (
	// Absent: there is no object, and no agreement tells of one.
	Absent SideState = "Absent"
	// Deleted: the object of the last agreement is gone.
	Deleted SideState = "Deleted"
	// New: no agreement tells of the object.
	New SideState = "New"
	// Recreated: another object stands under the name than at the last agreement.
	Recreated SideState = "Recreated"
	// Unchanged: the content is that of the last agreement.
	Unchanged SideState = "Unchanged"
	// Changed: the content is another than at the last agreement.
	Changed SideState = "Changed"
	// Terminating: the object is being deleted.
	Terminating SideState = "Terminating"
)

// View is one pair as a plan sees it.
type View struct {
	Key      record.Key
	Resource policy.Resource
	HostName string
	// WhyHashed is why the mirror's name is not the plain one; empty where it is.
	WhyHashed    string
	Tenant, Host *unstructured.Unstructured
	// TenantVersion and HostVersion are the two sides as a Resolution names them; nil where there is no object.
	TenantVersion, HostVersion *record.Version
	// TenantState and HostState are empty where the object does not cross and never did.
	TenantState, HostState SideState
	State                  record.State
	// Projected is the mirror that the tenant object should have: as it would be made now, or as the one there would be
	// updated. Nil where there is no tenant object, or nobody can make sense of it.
	Projected *unstructured.Unstructured
	// Differences are where the mirror differs from Projected, in order of their paths; of a mirror without a tenant object,
	// all that it says.
	Differences []Difference
	// References are the objects that the tenant object refers to, in the order of its fields.
	References []Reference
	// LeftOut is why the tenant object does not cross, although its kind is in the policy; empty where it does.
	LeftOut string
}

// Difference is a place at which the sides differ, in the host's words.
type Difference struct {
	Path kinds.Path
	// Tenant is the value that the tenant object asks for, Host the mirror's; nil where there is none.
	Tenant, Host any
}

// Reference is an object that a tenant object refers to.
type Reference struct {
	kinds.Referral
	// HostName is the name that stands in the mirror.
	HostName string
	// OnHost says whether there is such a mirror.
	OnHost bool
	// Missing is why there is none; empty where there is one, and where the next pass makes it.
	Missing string
}

// Look finds one pair in what a plan is computed from; false where neither side nor history knows it.
func Look(in Input, key record.Key) (View, bool) {
	views := Views(in, func(k record.Key) bool { return k == key })
	if len(views) == 0 {
		return View{}, false
	}
	return views[0], true
}

// Views are the pairs that which names, sorted by kind as in the snapshot, namespace and name.
func Views(in Input, which func(record.Key) bool) []View {
	var views []View
	c := newComputation(in)
	for _, snapshot := range c.Snapshot.Kinds {
		for _, p := range c.pairs(snapshot) {
			if which(p.key) {
				views = append(views, c.view(snapshot, p))
			}
		}
		for _, object := range snapshot.Tenant {
			group := snapshot.GroupKind()
			key := record.Key{Group: group.Group, Kind: group.Kind, Namespace: object.GetNamespace(), Name: object.GetName()}
			if !which(key) || slices.ContainsFunc(views, func(v View) bool { return v.Key == key }) {
				continue
			}
			// It is there and does not cross, and no mirror or history makes a pair of it.
			p := &pair{kind: snapshot.kind, resource: &snapshot.Resource, key: key}
			view := c.view(snapshot, p)
			view.Tenant, view.LeftOut = object, leftOut(snapshot.kind, object)
			view.TenantState, view.HostState = "", ""
			views = append(views, view)
		}
	}
	return views
}

func (c *computation) view(snapshot KindSnapshot, p *pair) View {
	c.settle(p)
	view := View{
		Key: p.key, Resource: *p.resource, Tenant: p.tenant, Host: p.host, State: p.state,
		HostName: c.Mapping.MirrorName(p.kind, p.key.Namespace, p.key.Name), WhyHashed: c.Mapping.WhyHashed(p.kind, p.key.Namespace, p.key.Name),
	}
	view.TenantState, view.TenantVersion = c.stateOf(p, record.Tenant, p.tenant)
	view.HostState, view.HostVersion = c.stateOf(p, record.Host, p.host)
	if p.narrowed {
		for _, object := range snapshot.Tenant {
			if object.GetNamespace() == p.key.Namespace && object.GetName() == p.key.Name {
				view.LeftOut = leftOut(snapshot.kind, object)
			}
		}
	}
	c.project(p, &view)
	if p.tenant != nil {
		view.References = c.references(p)
	}
	return view
}

// stateOf is how a side stands, and its version as far as there is an object.
func (c *computation) stateOf(p *pair, side record.Side, object *unstructured.Unstructured) (SideState, *record.Version) {
	known := p.state.Baseline
	switch {
	case object == nil && known == nil:
		return Absent, nil
	case object == nil:
		return Deleted, nil
	}
	version := c.version(p, side, object)
	switch {
	case terminating(object):
		return Terminating, &version
	case known == nil:
		return New, &version
	case object.GetUID() != known.Of(side).UID:
		return Recreated, &version
	case c.moved(p, side, object, known):
		return Changed, &version
	}
	return Unchanged, &version
}

// project fills in what the mirror should be, and where it is not. An object that no rule makes sense of has neither.
func (c *computation) project(p *pair, view *View) {
	defer func() { _ = recover() }() // the plan holds such an object, and says why
	var want kinds.Content
	if p.tenant != nil {
		projected := c.Mapping.Project(p.kind, p.tenant, p.host, p.keep)
		view.Projected = projected
		want = kinds.ContentOf(p.kind, record.Host, projected)
	}
	if p.host == nil {
		return
	}
	compared := want
	if probe := c.Probes[p.key]; probe != nil && p.tenant != nil {
		compared = kinds.ContentOf(p.kind, record.Host, probe)
	}
	have := kinds.ContentOf(p.kind, record.Host, p.host)
	for _, path := range kinds.Difference(have, compared) {
		view.Differences = append(view.Differences, Difference{Path: path, Tenant: path.At(compared), Host: path.At(have)})
	}
}

// references are what a tenant object refers to, and where that is on the host.
func (c *computation) references(p *pair) []Reference {
	var found []Reference
	for _, referral := range kinds.Referred(p.kind, p.tenant) {
		kind := kinds.For(referral.Kind)
		one := Reference{
			Referral: referral, HostName: c.Mapping.MirrorName(kind, p.key.Namespace, referral.Name),
		}
		if why := c.missing(referral, p.key.Namespace); why != "" {
			one.Missing = why + " it"
		}
		if carried := c.carried(referral.Kind); carried != nil {
			for _, object := range carried.snapshot.Host {
				if object.GetName() == one.HostName {
					_, owned := c.Mapping.Identify(kind, referral.Kind.Kind, object)
					one.OnHost = owned == kinds.Ours
				}
			}
			name := types.NamespacedName{Namespace: p.key.Namespace, Name: referral.Name}
			switch {
			case carried.snapshot.Unavailable != "":
				one.Missing = "nobody can tell: " + carried.snapshot.Unavailable
			case referral.Optional && carried.tenant[name] == nil:
				one.Missing = "the tenant does not have it, and it is optional"
			}
		}
		found = append(found, one)
	}
	return found
}

// leftOut is why an object of a kind in the policy does not cross; empty where it does.
func leftOut(kind kinds.Kind, object *unstructured.Unstructured) string {
	rules := kind.Rules()
	switch {
	case kinds.IsSystemNamespace(object.GetNamespace()):
		return fmt.Sprintf("namespace %s is the tenant's own control plane's, and nothing in it crosses", object.GetNamespace())
	case !kinds.MayCross(kind, object):
		return "every cluster makes its own, so it never crosses"
	case !rules.CarryFrom(object.GetNamespace()):
		return fmt.Sprintf("the policy carries only objects of the namespaces %q", rules.Namespaces)
	case !rules.Carry(object):
		return fmt.Sprintf("the policy carries only objects that match its selector, %q", rules.Selector)
	}
	return ""
}

// Occupant is what stands under a name on the host.
type Occupant struct {
	Kind string
	// Key is the tenant object whose mirror has the name, there or not; zero where nobody's mirror has it.
	Key record.Key
	// Foreign is what stands there instead of a mirror of this tenant's; empty where nothing does.
	Foreign string
}

// Occupants finds who has a name on the host: the tenant objects whose mirrors have it, and the strangers under it. A kind
// of the snapshot is looked at if which says so.
func Occupants(in Input, hostName string, which func(schema.GroupKind) bool) []Occupant {
	var found []Occupant
	c := newComputation(in)
	for _, snapshot := range c.Snapshot.Kinds {
		group := snapshot.GroupKind()
		if !which(group) || kinds.IsNode(group) {
			continue
		}
		mirrors := false
		for _, p := range c.pairs(snapshot) {
			if c.Mapping.MirrorName(p.kind, p.key.Namespace, p.key.Name) == hostName && (p.tenant != nil || p.host != nil || p.state.Baseline != nil) {
				found = append(found, Occupant{Kind: group.Kind, Key: p.key})
				mirrors = true
			}
		}
		for _, object := range snapshot.Host {
			if mirrors || object.GetName() != hostName {
				continue
			}
			one := Occupant{Kind: group.Kind, Foreign: "an object of the host's own"}
			if _, owned := c.Mapping.Identify(snapshot.kind, group.Kind, object); owned == kinds.Other {
				one.Foreign = "marked as a mirror, but not of an object whose mirror belongs there"
			}
			found = append(found, one)
		}
	}
	return found
}

// Carried are the tenant objects of a kind that the policy carries, sorted by namespace and name.
func Carried(in Input, group schema.GroupKind) []record.Key {
	var keys []record.Key
	c := newComputation(in)
	for _, snapshot := range c.Snapshot.Kinds {
		if snapshot.GroupKind() != group || snapshot.Retired {
			continue
		}
		for _, p := range c.pairs(snapshot) {
			if p.tenant != nil {
				keys = append(keys, p.key)
			}
		}
	}
	return keys
}
