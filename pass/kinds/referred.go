package kinds

import (
	"reflect"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// refers is a kind of which it is known where its objects name others.
type refers interface {
	// refersTo visits these places in an object.
	refersTo(object *unstructured.Unstructured) references
}

// known are the places where a kind's own rules find names of other objects; they rename them too.
func known(kind Kind, object *unstructured.Unstructured) references {
	if refers, ok := kind.(refers); ok {
		return refers.refersTo(object)
	}
	return func(func(Content, string, schema.GroupKind)) {}
}

// listed are the places that the policy lists for a kind, without those that the kind's own rules rename: a name that was
// renamed twice would name nothing.
func listed(kind Kind, object *unstructured.Unstructured) references {
	return func(visit func(entry Content, field string, kind schema.GroupKind)) {
		rules := kind.Rules()
		if len(rules.References) == 0 {
			return
		}
		type place struct {
			entry uintptr
			field string
		}
		at := func(entry Content, field string) place { return place{reflect.ValueOf(entry).Pointer(), field} }
		own := map[place]bool{}
		known(kind, object)(func(entry Content, field string, _ schema.GroupKind) { own[at(entry, field)] = true })
		for _, reference := range rules.References {
			follow(object.Object, reference.Path, func(entry Content, field string) {
				if !own[at(entry, field)] {
					visit(entry, field, reference.Kind)
				}
			})
		}
	}
}

// follow visits every place that a path leads to. Where it leads through something else than it says, or to nothing,
// there is none.
func follow(value any, path []string, visit func(entry Content, field string)) {
	if path[0] == EachItem {
		items, _ := value.([]any)
		for i, item := range items {
			name, isText := item.(string)
			switch {
			case len(path) > 1:
				follow(item, path[1:], visit)
			case isText:
				entry := Content{EachItem: name} // a list of names, each visited like the field of a map
				if visit(entry, EachItem); entry[EachItem] != name {
					items[i] = entry[EachItem]
				}
			}
		}
		return
	}
	entry, isMap := value.(Content)
	switch {
	case !isMap:
	case len(path) > 1:
		follow(entry[path[0]], path[1:], visit)
	default:
		visit(entry, path[0])
	}
}

// Unrenamed says whether a mirror has a name of the tenant's at a place that the policy lists, as one does that was made
// before the policy listed it.
func (m Mapping) Unrenamed(kind Kind, tenant, host *unstructured.Unstructured) bool {
	type reference struct {
		kind schema.GroupKind
		name string
	}
	tenants, mirrors := map[reference]bool{}, map[reference]bool{}
	listed(kind, tenant)(func(entry Content, field string, kind schema.GroupKind) {
		if name, ok := entry[field].(string); ok && name != "" {
			tenants[reference{kind, name}] = true
			mirrors[reference{kind, m.MirrorName(For(kind), tenant.GetNamespace(), name)}] = true
		}
	})
	found := false
	listed(kind, host)(func(entry Content, field string, kind schema.GroupKind) {
		if name, ok := entry[field].(string); ok && name != "" {
			found = found || tenants[reference{kind, name}] && !mirrors[reference{kind, name}]
		}
	})
	return found
}

// Referral is an object of the same namespace that a tenant object refers to.
type Referral struct {
	Kind schema.GroupKind
	Name string
	// Optional says that the object is there to be used if it exists, and not missed if not.
	Optional bool
}

// Referred are the objects that a tenant object refers to, as far as its kind or the policy knows, each once and in the
// order of the object's fields. The ConfigMap that every cluster makes in each namespace is left out: a Pod that mounts
// it gets the tenant's CA otherwise.
func Referred(kind Kind, tenant *unstructured.Unstructured) []Referral {
	var found []Referral
	seen := map[Referral]bool{}
	add := func(entry Content, field string, kind schema.GroupKind) {
		name, _ := entry[field].(string)
		namespace, _ := entry["namespace"].(string)
		if name == "" || namespace != "" && namespace != tenant.GetNamespace() || name == RootCA && kind == (schema.GroupKind{Kind: "ConfigMap"}) {
			return
		}
		one := Referral{Kind: kind, Name: name, Optional: entry["optional"] == true}
		if !seen[one] {
			seen[one] = true
			found = append(found, one)
		}
	}
	known(kind, tenant)(add)
	listed(kind, tenant)(add)
	return found
}
