package policy

import (
	"fmt"
	"strings"
	"time"

	apivalidation "k8s.io/apimachinery/pkg/api/validation"
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
	// MaxReferences and MaxNamespaces bound what one kind lists. More references would cost the API server more than it
	// lets a rule of a CRD cost.
	MaxReferences = 32
	MaxNamespaces = 100
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
