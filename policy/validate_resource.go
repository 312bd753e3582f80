package policy

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	metav1validation "k8s.io/apimachinery/pkg/apis/meta/v1/validation"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

func validateResources(path *field.Path, resources []Resource) field.ErrorList {
	switch {
	case len(resources) == 0:
		return field.ErrorList{field.Required(path, "list at least one {apiVersion, kind, direction}")}
	case len(resources) > MaxResources:
		return field.ErrorList{field.TooMany(path, len(resources), MaxResources)}
	}
	var faults field.ErrorList
	seen := make(map[schema.GroupKind]int, len(resources))
	for i, resource := range resources {
		at := path.Index(i)
		kind, ok := groupKind(at, resource, &faults)
		if resource.Direction == "" {
			faults = append(faults, field.Required(at.Child("direction"), "must be one of "+join(directionsOf(kind))))
		} else {
			faults = append(faults, supported(at.Child("direction"), resource.Direction, directionsOf(kind))...)
		}
		if kind == (schema.GroupKind{Kind: "Node"}) {
			faults = append(faults, validateNode(at, resource)...)
		} else {
			faults = append(faults, validateReferences(at.Child("references"), kind, resource.References)...)
			faults = append(faults, validateSelector(at.Child("selector"), resource.Selector)...)
			faults = append(faults, validateNamespaces(at.Child("namespaces"), resource.Namespaces)...)
		}
		if !ok {
			continue
		}
		if reason := reserved(kind); reason != "" {
			faults = append(faults, field.Forbidden(at.Child("kind"), fmt.Sprintf("%s never crosses, as %s; take it off the list", kind, reason)))
		}
		first, listed := seen[kind]
		if !listed {
			seen[kind] = i
			continue
		}
		fault := field.Duplicate(at, kind.String())
		fault.Detail = fmt.Sprintf("the kind is at %s already, and crosses in one version and one direction; keep one of the two", path.Index(first))
		faults = append(faults, fault)
	}
	return faults
}

// groupKind returns the group and kind of a resource if both are well formed.
func groupKind(path *field.Path, resource Resource, faults *field.ErrorList) (schema.GroupKind, bool) {
	group, ok := validGroup(path.Child("apiVersion"), resource.APIVersion, faults)
	if !validKind(path.Child("kind"), resource.Kind, faults) || !ok {
		return schema.GroupKind{}, false
	}
	return schema.GroupKind{Group: group, Kind: resource.Kind}, true
}

// validGroup returns the group of an apiVersion.
func validGroup(path *field.Path, apiVersion string, faults *field.ErrorList) (string, bool) {
	if apiVersion == "" {
		*faults = append(*faults, field.Required(path, "a group and version such as v1 or apps/v1"))
		return "", false
	}
	group, version, grouped := strings.Cut(apiVersion, "/")
	if !grouped {
		group, version = "", apiVersion
	}
	if len(validation.IsDNS1035Label(version)) > 0 || grouped && len(validation.IsDNS1123Subdomain(group)) > 0 {
		*faults = append(*faults, field.Invalid(path, short(apiVersion), "must be a version such as v1, or a group and version such as apps/v1"))
		return "", false
	}
	return group, true
}

// validKind applies the rule that a CustomResourceDefinition's kind is held to.
func validKind(path *field.Path, kind string, faults *field.ErrorList) bool {
	switch {
	case kind == "":
		*faults = append(*faults, field.Required(path, "a kind such as ConfigMap"))
	case len(validation.IsDNS1035Label(strings.ToLower(kind))) > 0:
		*faults = append(*faults, field.Invalid(path, short(kind), "must be the name of a kind such as ConfigMap: letters, digits and dashes, at most 63"))
	default:
		return true
	}
	return false
}

// validateNode refuses what would do nothing.
func validateNode(path *field.Path, resource Resource) field.ErrorList {
	const reason = "which Nodes cross follows from the Pods on them alone; leave it out"
	var faults field.ErrorList
	for _, given := range []struct {
		name string
		set  bool
	}{
		{"references", len(resource.References) > 0}, {"selector", resource.Selector != nil}, {"namespaces", resource.Namespaces != nil},
	} {
		if given.set {
			faults = append(faults, field.Forbidden(path.Child(given.name), reason))
		}
	}
	return faults
}

func validateReferences(path *field.Path, kind schema.GroupKind, references []Reference) field.ErrorList {
	switch {
	case len(references) > 0 && kind == schema.GroupKind{Kind: "Secret"}:
		return field.ErrorList{field.Forbidden(path, "a Secret holds values, which are no references; leave it out")}
	case len(references) > MaxReferences:
		return field.ErrorList{field.TooMany(path, len(references), MaxReferences)}
	}
	var faults field.ErrorList
	var seen []Path
	for i, reference := range references {
		at := path.Index(i)
		to, err := ParsePath(reference.Path)
		switch first := slices.IndexFunc(seen, func(other Path) bool { return slices.Equal(other, to) }); {
		case reference.Path == "":
			faults = append(faults, field.Required(at.Child("path"), "a path such as spec.secretName"))
		case err != nil:
			faults = append(faults, field.Invalid(at.Child("path"), short(reference.Path), err.Error()))
		case first >= 0:
			fault := field.Duplicate(at.Child("path"), reference.Path)
			fault.Detail = fmt.Sprintf("the field is at %s already, and names one kind; keep one of the two", path.Index(first))
			faults = append(faults, fault)
		}
		seen = append(seen, to) // also a nil one, which no path equals, so that the others keep their places
		validKind(at.Child("kind"), reference.Kind, &faults)
		if reference.APIVersion != "" {
			validGroup(at.Child("apiVersion"), reference.APIVersion, &faults)
		}
	}
	return faults
}

// validateSelector asks the library, which says neither in which order it reports nor bounds what it repeats.
func validateSelector(path *field.Path, selector *metav1.LabelSelector) field.ErrorList {
	faults := metav1validation.ValidateLabelSelector(selector, metav1validation.LabelSelectorValidationOptions{}, path)
	slices.SortStableFunc(faults, func(a, b *field.Error) int {
		return cmp.Or(cmp.Compare(a.Field, b.Field), cmp.Compare(fmt.Sprint(a.BadValue), fmt.Sprint(b.BadValue)), cmp.Compare(a.Detail, b.Detail))
	})
	for _, fault := range faults {
		if text, ok := fault.BadValue.(string); ok {
			fault.BadValue = short(text)
		}
	}
	return faults
}

func validateNamespaces(path *field.Path, namespaces []string) field.ErrorList {
	switch {
	case namespaces != nil && len(namespaces) == 0:
		return field.ErrorList{field.Required(path, "list at least one namespace, or leave the field out for all of them")}
	case len(namespaces) > MaxNamespaces:
		return field.ErrorList{field.TooMany(path, len(namespaces), MaxNamespaces)}
	}
	var faults field.ErrorList
	for i, namespace := range namespaces {
		at := path.Index(i)
		switch {
		case slices.Contains(namespaces[:i], namespace):
			faults = append(faults, field.Duplicate(at, short(namespace)))
		case len(validation.IsDNS1123Label(namespace)) > 0:
			faults = append(faults, field.Invalid(at, short(namespace), "must be the name of a namespace: lower-case letters, digits and dashes, at most 63"))
		}
	}
	return faults
}
