package policy

import (
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
)

// What a policy means where it is silent. The CRD carries the same defaults, so an object from an API server has them
// already; a policy from a file gets them here.
const (
	DefaultConflictPolicy        = Manual
	DefaultEnabled               = true
	DefaultInterval              = 30 * time.Second
	DefaultRecordDecisions       = true
	DefaultRetain          int32 = 1000
)

// DefaultReferenceVersion is the apiVersion of what a reference names, where it gives none. The field stays empty.
const DefaultReferenceVersion = "v1"

// SetDefaults fills in what is not set. It judges nothing: a value that is set stays, valid or not.
func (s *SyncPolicy) SetDefaults() {
	spec := &s.Spec
	if spec.ConflictPolicy == "" {
		spec.ConflictPolicy = DefaultConflictPolicy
	}
	if spec.DriftDetection.Enabled == nil {
		spec.DriftDetection.Enabled = ptr.To(DefaultEnabled)
	}
	if spec.DriftDetection.Interval == nil {
		spec.DriftDetection.Interval = &metav1.Duration{Duration: DefaultInterval}
	}
	if spec.Explain.RecordDecisions == nil {
		spec.Explain.RecordDecisions = ptr.To(DefaultRecordDecisions)
	}
	if spec.Explain.Retain == nil {
		spec.Explain.Retain = ptr.To(DefaultRetain)
	}
}
