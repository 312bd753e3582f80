package policy

import (
	"maps"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// What is wanted in the place of a value of the wrong type.
const (
	wantAPIVersion = "a group and version such as v1 or apps/v1"
	wantKind       = "a kind such as ConfigMap"
	wantKey        = "a label key such as app.kubernetes.io/name"
	wantValue      = "a label value (in quotes, if it looks like something else)"
)

func (d *decoder) resources(path *field.Path, value any) []Resource {
	return decodeList(d, path, value, "a list of {apiVersion, kind, direction}", func(resource *Resource) fields {
		return fields{
			"apiVersion": func(path *field.Path, value any) { resource.APIVersion = d.string(path, value, wantAPIVersion) },
			"kind":       func(path *field.Path, value any) { resource.Kind = d.string(path, value, wantKind) },
			"direction": func(path *field.Path, value any) {
				resource.Direction = Direction(d.string(path, value, "one of "+join(directions)))
			},
			"references": func(path *field.Path, value any) { resource.References = d.references(path, value) },
			"selector":   func(path *field.Path, value any) { resource.Selector = d.selector(path, value) },
			"namespaces": func(path *field.Path, value any) {
				resource.Namespaces = d.strings(path, value, "a list of the tenant's namespaces", "the name of a namespace")
			},
		}
	})
}

func (d *decoder) references(path *field.Path, value any) []Reference {
	return decodeList(d, path, value, "a list of {path, kind}", func(reference *Reference) fields {
		return fields{
			"path": func(path *field.Path, value any) {
				reference.Path = d.string(path, value, "a path such as spec.secretName")
			},
			"kind":       func(path *field.Path, value any) { reference.Kind = d.string(path, value, wantKind) },
			"apiVersion": func(path *field.Path, value any) { reference.APIVersion = d.string(path, value, wantAPIVersion) },
		}
	})
}

func (d *decoder) selector(path *field.Path, value any) *metav1.LabelSelector {
	selector := &metav1.LabelSelector{}
	d.object(path, value, fields{
		"matchLabels": func(path *field.Path, value any) { selector.MatchLabels = d.labels(path, value) },
		"matchExpressions": func(path *field.Path, value any) {
			selector.MatchExpressions = d.requirements(path, value)
		},
	})
	return selector
}

func (d *decoder) requirements(path *field.Path, value any) []metav1.LabelSelectorRequirement {
	const want = "a list of {key, operator, values}"
	return decodeList(d, path, value, want, func(requirement *metav1.LabelSelectorRequirement) fields {
		return fields{
			"key": func(path *field.Path, value any) { requirement.Key = d.string(path, value, wantKey) },
			"operator": func(path *field.Path, value any) {
				requirement.Operator = metav1.LabelSelectorOperator(d.string(path, value, "one of In, NotIn, Exists, DoesNotExist"))
			},
			"values": func(path *field.Path, value any) {
				if requirement.Values = d.strings(path, value, "a list of label values", wantValue); len(requirement.Values) == 0 {
					requirement.Values = nil
				}
			},
		}
	})
}

// labels reads a map of strings. An entry that is null is a fault, since leaving it out would select more.
func (d *decoder) labels(path *field.Path, value any) map[string]string {
	object, ok := value.(map[string]any)
	if !ok {
		d.mistyped(path, value, "a map of label keys and values")
		return nil
	}
	if len(object) == 0 {
		return nil
	}
	labels := make(map[string]string, len(object))
	for _, key := range slices.Sorted(maps.Keys(object)) {
		labels[key] = d.string(child(path, key), object[key], wantValue)
	}
	return labels
}

// strings reads a list of strings; an empty one is not the same as none.
func (d *decoder) strings(path *field.Path, value any, want, wantItem string) []string {
	list, ok := value.([]any)
	if !ok {
		d.mistyped(path, value, want)
		return nil
	}
	texts := make([]string, len(list))
	for i, item := range list {
		texts[i] = d.string(path.Index(i), item, wantItem)
	}
	return texts
}

// decodeList reads a list of objects, each by the fields that known gives for it; an empty list is none. An element that
// cannot be read keeps its place, so that the others are reported at theirs.
func decodeList[T any](d *decoder, path *field.Path, value any, want string, known func(*T) fields) []T {
	list, ok := value.([]any)
	if !ok {
		d.mistyped(path, value, want)
		return nil
	}
	if len(list) == 0 {
		return nil
	}
	elements := make([]T, len(list))
	for i, element := range list {
		d.object(path.Index(i), element, known(&elements[i]))
	}
	return elements
}
