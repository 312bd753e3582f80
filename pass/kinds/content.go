package kinds

import (
	"iter"
	"maps"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/syncpass/syncpass/record"
)

// Keep says what becomes of labels and annotations that stand only on the written side.
type Keep int

const (
	// KeepNone: the written side is to have exactly what crosses.
	KeepNone Keep = iota
	// KeepForeign: what another manager than us put on the mirror stays; what we once carried there and the tenant has
	// since removed goes.
	KeepForeign
)

// ContentOf is what counts of an object on one side, in the words of that side's mirror: everything but metadata and
// status and what is the side's own, plus its labels and annotations without the reserved ones. Two contents of one
// side can be compared and hashed; contents of different sides cannot, since defaults and allocations differ.
func ContentOf(kind Kind, side record.Side, object *unstructured.Unstructured) Content {
	content := bare(object)
	kind.Disown(side, content)
	if hashed, ok := kind.(statusHashed); ok {
		if counts := hashed.statusHashed(side, child(object.Object, "status")); !isEmpty(counts) {
			content["status"] = runtime.DeepCopyJSONValue(counts)
		}
	}
	metadata := Content{}
	setStrings(metadata, "labels", crossingLabels(side, object))
	setStrings(metadata, "annotations", crossingAnnotations(object))
	if len(metadata) > 0 {
		content["metadata"] = metadata
	}
	for field, value := range content {
		if isEmpty(value) {
			delete(content, field)
		}
	}
	return content
}

// Project is the mirror that a tenant object should have. host is the mirror as it stands, nil for a create.
func (m Mapping) Project(kind Kind, tenant, host *unstructured.Unstructured, keep Keep) *unstructured.Unstructured {
	content := bare(tenant)
	kind.Disown(record.Tenant, content)
	mirror := &unstructured.Unstructured{Object: Content{}}
	if host == nil {
		mirror.SetNamespace(m.HostNamespace)
		mirror.SetName(m.MirrorName(kind, tenant.GetNamespace(), tenant.GetName()))
	} else {
		takeMetadata(mirror, host)
	}
	maps.Copy(mirror.Object, content)
	mirror.SetGroupVersionKind(tenant.GroupVersionKind())

	labels := maps.Collect(crossingLabels(record.Tenant, tenant))
	annotations := maps.Collect(crossingAnnotations(tenant))
	if host != nil {
		carryOver(labels, host.GetLabels(), func(key string) bool {
			return markLabel(key) || keep == KeepForeign && foreign(host, "labels", key)
		})
		carryOver(annotations, host.GetAnnotations(), func(key string) bool {
			return ownAnnotation(key) || keep == KeepForeign && foreign(host, "annotations", key)
		})
	}
	m.stamp(mirror, labels, annotations, kind.Name(), tenant)
	m.renameReferred(tenant.GetNamespace(), listed(kind, mirror)) // first, while all of the content is still the tenant's
	kind.Project(m, tenant, host, mirror)
	return mirror
}

// Reflect is the tenant object as its mirror says it should be.
func (m Mapping) Reflect(kind Kind, host, tenant *unstructured.Unstructured) *unstructured.Unstructured {
	content := bare(host)
	kind.Disown(record.Host, content)
	object := &unstructured.Unstructured{Object: Content{}}
	takeMetadata(object, tenant)
	maps.Copy(object.Object, content)
	object.SetGroupVersionKind(tenant.GroupVersionKind())

	labels := map[string]string{}
	for key, value := range crossingLabels(record.Host, host) {
		labels[unaliasLabel(key)] = value
	}
	object.SetLabels(labels)
	annotations := maps.Collect(crossingAnnotations(host))
	carryOver(annotations, tenant.GetAnnotations(), ownAnnotation)
	object.SetAnnotations(annotations)
	m.restoreReferred(tenant.GetNamespace(), listed(kind, object), listed(kind, tenant))
	kind.Reflect(m, host, tenant, object)
	return object
}

// Restamp is a mirror with its marks put right and nothing else changed.
func (m Mapping) Restamp(kind Kind, host, tenant *unstructured.Unstructured) *unstructured.Unstructured {
	mirror := host.DeepCopy()
	mirror.SetManagedFields(nil)
	m.stamp(mirror, nonNil(host.GetLabels()), nonNil(host.GetAnnotations()), kind.Name(), tenant)
	if marks, ok := kind.(Marks); ok {
		marks.Mark(m, tenant, mirror)
	}
	return mirror
}

// bare is a deep copy of an object without apiVersion, kind, metadata and status.
func bare(object *unstructured.Unstructured) Content {
	content := Content{}
	for field, value := range object.Object {
		switch field {
		case "apiVersion", "kind", "metadata", "status":
		default:
			content[field] = runtime.DeepCopyJSONValue(value)
		}
	}
	return content
}

// takeMetadata gives object the metadata of the object that it is written over: UID and resourceVersion, which the
// write is conditional on, finalizers and owners, which never cross; and the status, which a plain update keeps.
func takeMetadata(object, current *unstructured.Unstructured) {
	if metadata, found := current.Object["metadata"]; found {
		object.Object["metadata"] = runtime.DeepCopyJSONValue(metadata)
	}
	object.SetManagedFields(nil)
	if status, found := current.Object["status"]; found {
		object.Object["status"] = runtime.DeepCopyJSONValue(status)
	}
}

// crossingLabels are the labels of one side that cross, under their keys on the mirror.
func crossingLabels(side record.Side, object *unstructured.Unstructured) iter.Seq2[string, string] {
	return func(yield func(key, value string) bool) {
		for key, value := range texts(object, "labels") {
			if side == record.Tenant {
				key = aliasLabel(key)
			} else if markLabel(key) {
				continue
			}
			if !yield(key, value) {
				return
			}
		}
	}
}

func crossingAnnotations(object *unstructured.Unstructured) iter.Seq2[string, string] {
	return func(yield func(key, value string) bool) {
		for key, value := range texts(object, "annotations") {
			if !ownAnnotation(key) && !yield(key, value) {
				return
			}
		}
	}
}

// texts are an object's labels or annotations as its getters tell them, without the copy that these make each time.
func texts(object *unstructured.Unstructured, field string) iter.Seq2[string, string] {
	return func(yield func(key, value string) bool) {
		entries, _, _ := unstructured.NestedFieldNoCopy(object.Object, "metadata", field)
		values, _ := entries.(map[string]any)
		for key, value := range values {
			text, _ := value.(string) // null counts as empty
			if !yield(key, text) {
				return
			}
		}
	}
}

// carryOver takes the current entries that stay into wanted, unless it has them already.
func carryOver(wanted, current map[string]string, stays func(key string) bool) {
	for key, value := range current {
		if _, found := wanted[key]; !found && stays(key) {
			wanted[key] = value
		}
	}
}

func setStrings(content Content, field string, values iter.Seq2[string, string]) {
	entries := Content{}
	for key, value := range values {
		entries[key] = value
	}
	if len(entries) > 0 {
		content[field] = entries
	}
}

// foreign says whether a label or annotation of a mirror is somebody else's.
func foreign(host metav1.Object, field, key string) bool {
	return !ManagedByUs(host, "metadata", field, key)
}
