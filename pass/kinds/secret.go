package kinds

import (
	"maps"
	"slices"

	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// secret: stored as written (a server folds stringData into data before anyone can read it); its type never changes.
type secret struct{ Generic }

// controlPlaneSecrets are the types that a control plane fills or acts on; on the other side they would become live
// credentials of that side, or another tool's state.
var controlPlaneSecrets = map[string]bool{
	"kubernetes.io/service-account-token": true,
	"bootstrap.kubernetes.io/token":       true,
	"helm.sh/release.v1":                  true,
}

// CrossingFields selects, as far as fields can, the tenant objects of a kind that may cross; empty for all of them. It
// leaves out nothing that Crosses lets cross.
func CrossingFields(kind schema.GroupKind) string {
	if kind != (schema.GroupKind{Kind: "Secret"}) {
		return ""
	}
	var left []fields.Selector
	for _, typeOf := range slices.Sorted(maps.Keys(controlPlaneSecrets)) {
		left = append(left, fields.OneTermNotEqualSelector("type", typeOf))
	}
	return fields.AndSelectors(left...).String()
}

func (s secret) Crosses(o Object) bool { return !controlPlaneSecrets[o.Type] && s.Generic.Crosses(o) }

func (s secret) Immutable(content, want Content) string {
	if !equal(content["type"], want["type"]) {
		return "the type of a Secret cannot change"
	}
	return sealed(content, want)
}

func (s secret) Verbatim() bool { return true }
