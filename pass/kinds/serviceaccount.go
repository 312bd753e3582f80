package kinds

import (
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/syncpass/syncpass/record"
)

// serviceAccount: its name, labels and annotations only. What it can do, and the credentials that it names, belong to the
// control plane that it is an account of; mirrored Pods run under none of them.
type serviceAccount struct{ Generic }

// credentials are the fields of a ServiceAccount that each side has for itself.
var credentials = []string{"secrets", "imagePullSecrets", "automountServiceAccountToken"}

// Project keeps the host's credentials.
func (s serviceAccount) Project(_ Mapping, _, host, mirror *unstructured.Unstructured) {
	if host != nil {
		keepCredentials(mirror, host)
	}
}

// Reflect keeps the tenant's credentials.
func (s serviceAccount) Reflect(_ Mapping, _, tenant, object *unstructured.Unstructured) {
	keepCredentials(object, tenant)
}

// Disown removes the credentials.
func (s serviceAccount) Disown(_ record.Side, content Content) {
	for _, field := range credentials {
		delete(content, field)
	}
}

func keepCredentials(object, current *unstructured.Unstructured) {
	for _, field := range credentials {
		if value, found := current.Object[field]; found {
			object.Object[field] = runtime.DeepCopyJSONValue(value)
		}
	}
}
