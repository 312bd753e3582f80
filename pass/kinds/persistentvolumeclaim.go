package kinds

import (
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"

	"github.com/syncpass/syncpass/record"
)

// persistentVolumeClaim: what the tenant asks for is asked of the host once, and bound there. All that the API lets
// change in a claim is its size, which grows from the tenant to the host, and the class of its attributes. A mirror is
// never replaced: its data would be lost.
//
//	tenant's storageClassName | host's
//	absent                    | the host's own choice, and no drift
//	""                        | "": no class
//	a name                    | the host's class of that name
type persistentVolumeClaim struct{ Generic }

// AsksWriters implements [AsksWriters]: see ReflectStatus.
func (c persistentVolumeClaim) AsksWriters() {}

// Disown removes the volume, which is one of each side's own. The annotations of binding are reserved as well.
func (c persistentVolumeClaim) Disown(_ record.Side, content Content) {
	delete(child(content, "spec"), "volumeName")
}

// Project asks for the claim at a create. Afterwards it takes over from the mirror all that cannot change, which the
// host's defaults and webhooks may have decided, and asks for a larger size, or another class of attributes.
//
// A tenant claim that was deleted and made again takes up its mirror; where it asks for another volume than that, the
// difference stays in, for the host to refuse and a person to see.
func (c persistentVolumeClaim) Project(m Mapping, tenant, host, mirror *unstructured.Unstructured) {
	spec := child(mirror.Object, "spec")
	if spec == nil {
		return
	}
	namespace := tenant.GetNamespace()
	for _, field := range []string{"dataSource", "dataSourceRef"} {
		keepInNamespace(child(spec, field), namespace)
	}
	m.renameReferred(namespace, c.refersTo(mirror))
	if host == nil {
		return
	}
	current := runtime.DeepCopyJSON(child(host.Object, "spec"))
	takeAbsent(spec, current, "volumeName", "storageClassName", "volumeAttributesClassName")
	size := larger(requested(spec), requested(current))
	if host.GetAnnotations()[AnnotationVirtualUID] == string(tenant.GetUID()) && current != nil {
		attributes, found := spec["volumeAttributesClassName"]
		spec = current
		if found {
			spec["volumeAttributesClassName"] = attributes
		}
		mirror.Object["spec"] = spec
	}
	if requests := child(child(spec, "resources"), "requests"); requests != nil && size != nil {
		requests["storage"] = size
	}
}

func (c persistentVolumeClaim) refersTo(object *unstructured.Unstructured) references {
	spec := child(object.Object, "spec")
	return func(visit func(entry Content, field string, kind schema.GroupKind)) {
		visitTyped(child(spec, "dataSource"), visit)
		visitTyped(child(spec, "dataSourceRef"), visit)
	}
}

// Reflect leaves the tenant's claim as it is, but for the class of attributes: what the host grew is in the status.
func (c persistentVolumeClaim) Reflect(_ Mapping, _, tenant, object *unstructured.Unstructured) {
	own := runtime.DeepCopyJSON(child(tenant.Object, "spec"))
	if own == nil {
		return
	}
	const class = "volumeAttributesClassName"
	if _, asked := own[class]; asked {
		delete(own, class)
		takeAbsent(own, child(object.Object, "spec"), class)
	}
	object.Object["spec"] = own
}

// ReflectStatus reports phase, capacity and conditions. Bound without a volume in the tenant is what makes `kubectl get`
// and `helm --wait` right and lets the tenant ask for more space, and a volume controller of the tenant's leaves such a
// claim at most Pending: only one with volumeName and the annotations of binding would be Lost, and these do not cross.
// What a controller of the tenant's has set since is its own, so that none is contradicted more than once.
func (c persistentVolumeClaim) ReflectStatus(_ Mapping, host, tenant *unstructured.Unstructured) Content {
	reported, current := child(host.Object, "status"), child(tenant.Object, "status")
	if len(reported) == 0 {
		return nil
	}
	status := runtime.DeepCopyJSON(reported)
	if reportedByOthers(tenant, "phase") {
		for _, field := range []string{"phase", "capacity", "accessModes", "currentVolumeAttributesClassName"} {
			delete(status, field)
			takeAbsent(status, current, field)
		}
	}
	conditions := mergeConditions(tenant, entries(status["conditions"]), entries(current["conditions"]))
	if delete(status, "conditions"); len(conditions) > 0 {
		status["conditions"] = conditions
	}
	if equal(status, current) {
		return nil
	}
	return status
}

// mergeConditions are the host's conditions and those that the tenant's own controllers have set, in the order that the
// tenant has them in already.
func mergeConditions(tenant *unstructured.Unstructured, reported, current []Content) []any {
	fresh := map[string]Content{}
	for _, condition := range reported {
		fresh[conditionType(condition)] = condition
	}
	var merged []any
	for _, condition := range current {
		kind := conditionType(condition)
		if reportedByOthers(tenant, "conditions", fieldpath.KeyByFields("type", kind)) {
			merged = append(merged, runtime.DeepCopyJSON(condition))
		} else if there := fresh[kind]; there != nil {
			merged = append(merged, there)
		}
		delete(fresh, kind)
	}
	for _, condition := range reported {
		if there := fresh[conditionType(condition)]; there != nil {
			merged = append(merged, there)
		}
		delete(fresh, conditionType(condition))
	}
	return merged
}

// conditionType is what tells a condition from the others of an object.
func conditionType(condition Content) string {
	kind, _ := condition["type"].(string)
	return kind
}

// keepInNamespace drops the namespace of a reference. A tenant's own ReferenceGrants cannot be asked here, so a name in
// another namespace becomes one that no object bears, and the claim waits for it on the host.
func keepInNamespace(reference Content, namespace string) {
	other, _ := reference["namespace"].(string)
	name, named := reference["name"].(string)
	delete(reference, "namespace")
	if other != "" && other != namespace && named {
		reference["name"] = other + "/" + name
	}
}

// takeAbsent takes fields that a spec does not have from another.
func takeAbsent(spec, from Content, fields ...string) {
	for _, field := range fields {
		value, found := from[field]
		if _, has := spec[field]; found && !has {
			spec[field] = runtime.DeepCopyJSONValue(value)
		}
	}
}

func requested(spec Content) any {
	return child(child(spec, "resources"), "requests")["storage"]
}

// larger is the size that is asked for where the host has one already: never a smaller one, which no volume shrinks to,
// and in the host's words where they are equal, since 1024Mi is 1Gi.
func larger(asked, current any) any {
	a, aText := asked.(string)
	b, bText := current.(string)
	if !aText || !bText {
		return asked
	}
	wanted, err := resource.ParseQuantity(a)
	if err != nil {
		return asked // for the host to refuse
	}
	if has, err := resource.ParseQuantity(b); err == nil && wanted.Cmp(has) <= 0 {
		return current
	}
	return asked
}
