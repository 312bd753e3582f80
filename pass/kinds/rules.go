package kinds

import (
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// Rules are what a policy says about a kind beyond what the kind itself knows. The zero value says nothing, and carries
// every object.
type Rules struct {
	// References are further places that name objects of the same namespace.
	References []Reference
	// Selector, where set, selects the tenant objects that are carried by their labels.
	Selector labels.Selector
	// Namespaces, where there are any, are those of the tenant whose objects are carried.
	Namespaces []string
}

// Reference is a place in the objects of a kind that names an object of another, or the same, kind.
type Reference struct {
	// Path leads there, one map key after the other; EachItem stands for every item of a list. It does not lead into the
	// metadata or the status, which are no content.
	Path []string
	// Kind of the object that is named.
	Kind schema.GroupKind
}

// EachItem is the element of a Reference's path that stands for every item of a list.
const EachItem = ""

// Carry says whether a tenant object is one that the policy carries.
func (r Rules) Carry(object metav1.Object) bool {
	return r.CarryFrom(object.GetNamespace()) && (r.Selector == nil || r.Selector.Matches(labels.Set(object.GetLabels())))
}

// CarryFrom says whether the policy carries anything from a namespace of the tenant.
func (r Rules) CarryFrom(namespace string) bool {
	return len(r.Namespaces) == 0 || slices.Contains(r.Namespaces, namespace)
}
