package kinds

// configMap: stored as written; sealed by `immutable: true`.
type configMap struct{ Generic }

func (c configMap) Crosses(o Object) bool {
	return o.Name != RootCA && c.Generic.Crosses(o)
}

func (c configMap) Immutable(content, want Content) string { return sealed(content, want) }

func (c configMap) Verbatim() bool { return true }

// sealed says why a ConfigMap or Secret with `immutable: true` cannot become want: neither its data nor the seal
// itself may change (https://kubernetes.io/docs/concepts/configuration/configmap/#configmap-immutable).
func sealed(content, want Content) string {
	if content["immutable"] != true {
		return ""
	}
	if want["immutable"] != true {
		return "immutable: true cannot be taken back"
	}
	for _, field := range []string{"data", "binaryData"} {
		if !equal(content[field], want[field]) {
			return field + " of an immutable object cannot change"
		}
	}
	return ""
}
