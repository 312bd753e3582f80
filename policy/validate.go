package policy

import (
	"fmt"
	"strings"
	"time"

	apivalidation "k8s.io/apimachinery/pkg/api/validation"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// Limits of a policy. The CRD states the same ones.
const (
	// MinInterval is the shortest time between the starts of two passes.
	MinInterval = time.Second
	// MinRetain keeps no trail at all, while baselines and Events go on.
	MinRetain int32 = 0
	// MaxRetain is far above what fits: an entry takes some 400 bytes, and etcd takes objects of about 1.5 MiB. It
	// refuses a slip of the keyboard; the record itself is bounded in bytes as well.
	MaxRetain int32 = 10000
	// MaxResources is more kinds than people list, and about as many as the API server allows a rule of a CRD to compare
	// each with each.
	MaxResources = 100
)

var (
	conflictPolicies = []ConflictPolicy{Manual, TenantWins, HostWins}
	directions       = []Direction{ToHost, FromHost, Bidirectional}

	retainRange = fmt.Sprintf("must be from %d to %d entries", MinRetain, MaxRetain)
)

// Validate reports everything that keeps the policy from being carried out, at most one fault for each field, in the
// order of the fields. What is not set is judged as its default. It does not ask whether a kind exists or is
// namespaced: that depends on both API servers, and a pass skips such a kind and goes on with the others.
func Validate(policy *SyncPolicy) field.ErrorList {
	var faults field.ErrorList
	if policy.Name != "" {
		path := field.NewPath("metadata", "name")
		for _, message := range apivalidation.NameIsDNSSubdomain(policy.Name, false) {
			faults = append(faults, field.Invalid(path, short(policy.Name), message))
		}
	}

	spec, path := &policy.Spec, field.NewPath("spec")
	if spec.ConflictPolicy != "" {
		faults = append(faults, supported(path.Child("conflictPolicy"), spec.ConflictPolicy, conflictPolicies)...)
	}
	if interval := spec.DriftDetection.Interval; interval != nil && interval.Duration < MinInterval {
		faults = append(faults, field.Invalid(path.Child("driftDetection", "interval"), interval.Duration.String(),
			fmt.Sprintf("must be at least %s; to pause the schedule set enabled: false beside it", MinInterval)))
	}
	if retain := spec.Explain.Retain; retain != nil && (*retain < MinRetain || *retain > MaxRetain) {
		faults = append(faults, field.Invalid(path.Child("explain", "retain"), *retain, retainRange))
	}
	return append(faults, validateResources(path.Child("resources"), spec.Resources)...)
}

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

func supported[T ~string](path *field.Path, value T, values []T) field.ErrorList {
	for _, v := range values {
		if value == v {
			return nil
		}
	}
	return field.ErrorList{field.NotSupported(path, T(short(string(value))), values)}
}

func join[T ~string](values []T) string {
	texts := make([]string, len(values))
	for i, value := range values {
		texts[i] = string(value)
	}
	return strings.Join(texts, ", ")
}
