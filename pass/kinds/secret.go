package kinds

// secret: stored as written (a server folds stringData into data before anyone can read it); its type never changes.
type secret struct{ Generic }

// controlPlaneSecrets are the types that a control plane fills or acts on; on the other side they would become live
// credentials of that side, or another tool's state.
var controlPlaneSecrets = map[string]bool{
	"kubernetes.io/service-account-token": true,
	"bootstrap.kubernetes.io/token":       true,
	"helm.sh/release.v1":                  true,
}

func (s secret) Crosses(o Object) bool { return !controlPlaneSecrets[o.Type] && s.Generic.Crosses(o) }

func (s secret) Immutable(content, want Content) string {
	if !equal(content["type"], want["type"]) {
		return "the type of a Secret cannot change"
	}
	return sealed(content, want)
}

func (s secret) Verbatim() bool { return true }
