package kinds

import (
	"k8s.io/apimachinery/pkg/api/validation"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/syncpass/syncpass/record"
)

// systemNamespaces hold a control plane's own objects, which never cross.
var systemNamespaces = map[string]bool{"kube-system": true, "kube-public": true, "kube-node-lease": true}

// IsSystemNamespace says whether a namespace is one of those.
func IsSystemNamespace(namespace string) bool { return systemNamespaces[namespace] }

// Generic serves any namespaced kind, custom resources too: the content crosses as it is.
type Generic struct {
	GroupKind schema.GroupKind
	rules     Rules
}

// Group is the kind's API group.
func (g Generic) Group() string { return g.GroupKind.Group }

// Name is the kind's name.
func (g Generic) Name() string { return g.GroupKind.Kind }

// Weight sorts the built-in kinds that others refer to before, and those that run after, all others.
func (g Generic) Weight() Weight {
	switch g.GroupKind.Group {
	case "":
		switch g.GroupKind.Kind {
		case "ConfigMap", "Secret", "ServiceAccount", "PersistentVolumeClaim":
			return Config
		case "Service", "Endpoints":
			return Network
		case "Pod", "ReplicationController":
			return Workload
		}
	case "discovery.k8s.io":
		return Network
	case "apps", "batch":
		return Workload
	}
	return Dependent
}

// ValidName takes DNS subdomains, which every API server takes for nearly every kind; a StatefulSet gives its name to Pods
// as their hostname, and must have one without dots.
func (g Generic) ValidName(name string) []string {
	if g.GroupKind == (schema.GroupKind{Group: "apps", Kind: "StatefulSet"}) {
		return validation.NameIsDNSLabel(name, false)
	}
	return subdomainName(name)
}

// MaxNameLength leaves room behind the names of three kinds. A longer CronJob, or Job with that many completions, would be
// refused (https://github.com/kubernetes/kubernetes/blob/v1.37.2/pkg/apis/batch/validation/validation.go), a longer
// StatefulSet taken, and then never get a Pod (https://github.com/kubernetes/kubernetes/issues/64023).
func (g Generic) MaxNameLength() int {
	switch g.GroupKind {
	case schema.GroupKind{Group: "batch", Kind: "CronJob"}, schema.GroupKind{Group: "batch", Kind: "Job"},
		schema.GroupKind{Group: "apps", Kind: "StatefulSet"}:
		return maxParentLength
	}
	return maxNameLength
}

// Crosses leaves out the system namespaces and what every cluster makes for itself in each namespace.
func (g Generic) Crosses(o Object) bool {
	switch {
	case systemNamespaces[o.Namespace]:
		return false
	case g.GroupKind == schema.GroupKind{Kind: "ServiceAccount"}:
		return o.Name != "default"
	case g.GroupKind == schema.GroupKind{Kind: "Endpoints"}:
		return o.Namespace != "default" || o.Name != "kubernetes"
	case g.GroupKind == schema.GroupKind{Group: "discovery.k8s.io", Kind: "EndpointSlice"}:
		return o.Namespace != "default" || o.Name != "kubernetes"
	}
	return true
}

// Project leaves the content as it is.
func (g Generic) Project(Mapping, *unstructured.Unstructured, *unstructured.Unstructured, *unstructured.Unstructured) {
}

// Reflect leaves the content as it is.
func (g Generic) Reflect(Mapping, *unstructured.Unstructured, *unstructured.Unstructured, *unstructured.Unstructured) {
}

// Disown removes nothing.
func (g Generic) Disown(record.Side, Content) {}

// Immutable knows no immutable field: the API server's own answer decides.
func (g Generic) Immutable(Content, Content) string { return "" }

// Rules are the policy's.
func (g Generic) Rules() Rules { return g.rules }

// Verbatim is false: a server may default any field of a kind that we do not know.
func (g Generic) Verbatim() bool { return false }
