package plan

import (
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/syncpass/syncpass/policy"
	"github.com/syncpass/syncpass/record"
)

// View is one pair as a plan sees it.
type View struct {
	Resource     policy.Resource
	HostName     string
	Tenant, Host *unstructured.Unstructured
	State        record.State
	// Projected is the mirror that the tenant object should have: as it would be made now, or as the one there would be
	// updated. Nil where there is no tenant object.
	Projected *unstructured.Unstructured
}

// Look finds one pair in what a plan is computed from; false where neither side nor history knows it.
func Look(in Input, key record.Key) (View, bool) {
	c := newComputation(in)
	for _, snapshot := range c.Snapshot.Kinds {
		if snapshot.GroupKind() != key.GroupKind() {
			continue
		}
		for _, p := range c.pairs(snapshot) {
			if p.key != key {
				continue
			}
			view := View{
				Resource: p.resource, Tenant: p.tenant, Host: p.host, State: p.state,
				HostName: c.Mapping.MirrorName(p.kind, key.Namespace, key.Name),
			}
			if p.tenant != nil {
				view.Projected = c.Mapping.Project(p.kind, p.tenant, p.host, p.keep)
			}
			return view, true
		}
	}
	return View{}, false
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
