package kinds

import (
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"
)

// references visits every place of an object that names another object of the same namespace: the entry and its field
// that hold the name, and the kind that is named.
type references func(visit func(entry Content, field string, kind schema.GroupKind))

// renameReferred puts the mirrors' names in the place of the tenant's.
func (m Mapping) renameReferred(namespace string, in references) {
	in(func(entry Content, field string, kind schema.GroupKind) {
		if name, ok := entry[field].(string); ok && name != "" {
			entry[field] = m.MirrorName(For(kind), namespace, name)
		}
	})
}

// restoreReferred is the way back. A name that the tenant's object refers to already is known from there, hashed or not;
// any other mirror's plain name is taken apart. What is left names an object of the host that is no mirror of this
// namespace: it stays as it is, for the tenant to see, although on the tenant's side nothing answers to it and on its
// way to the host it becomes a mirror's name, since a tenant never names the host's own objects.
func (m Mapping) restoreReferred(namespace string, in, known references) {
	type reference struct {
		kind schema.GroupKind
		name string
	}
	names := map[reference]string{}
	known(func(entry Content, field string, kind schema.GroupKind) {
		if name, ok := entry[field].(string); ok && name != "" {
			names[reference{kind, m.MirrorName(For(kind), namespace, name)}] = name
		}
	})
	in(func(entry Content, field string, kind schema.GroupKind) {
		mirror, _ := entry[field].(string)
		name, found := names[reference{kind, mirror}]
		if !found {
			name, found = m.plainName(For(kind), namespace, mirror)
		}
		if found {
			entry[field] = name
		}
	})
}

// plainName is the tenant's name of the mirror of an object in the namespace, where the mirror's name was not hashed.
func (m Mapping) plainName(kind Kind, namespace, mirror string) (string, bool) {
	name, found := strings.CutSuffix(mirror, separator+namespace+separator+m.Tenant)
	return name, found && name != "" && m.MirrorName(kind, namespace, name) == mirror
}

// restoreSelector is the tenant's form of a selector on the host: the one that the tenant has where that is marked to
// the same (several forms are), else the host's without the marks.
func (m Mapping) restoreSelector(selector, tenants Content, namespace string) Content {
	if tenants != nil && equal(m.markSelector(runtime.DeepCopyJSON(tenants), namespace), selector) {
		return runtime.DeepCopyJSON(tenants)
	}
	labels := renameKeys(child(selector, "matchLabels"), func(key string) string { return key })
	delete(labels, LabelTenant)
	delete(labels, LabelVirtualNamespace)
	delete(selector, "matchLabels")
	if len(labels) > 0 {
		selector["matchLabels"] = renameKeys(labels, unaliasLabel)
	}
	for _, expression := range entries(selector["matchExpressions"]) {
		if key, ok := expression["key"].(string); ok {
			expression["key"] = unaliasLabel(key)
		}
	}
	return selector
}

// reportedByOthers says whether somebody else than us was the last to set a field of the object's status, or something
// below it, to another value: a controller of the tenant's own, which would set it again after each of our writes.
func reportedByOthers(object *unstructured.Unstructured, field ...any) bool {
	path := fieldpath.MakePathOrDie(append([]any{"status"}, field...)...)
	for _, entry := range object.GetManagedFields() {
		set := &fieldpath.Set{}
		if entry.Manager == FieldManager || entry.FieldsV1 == nil || set.FromJSON(entry.FieldsV1.GetRawReader()) != nil {
			continue
		}
		for _, element := range path[:len(path)-1] {
			set = set.WithPrefix(element)
		}
		last := path[len(path)-1]
		if set.Members.Has(last) || !set.WithPrefix(last).Empty() {
			return true
		}
	}
	return false
}
