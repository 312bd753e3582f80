package kinds

import (
	"maps"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
)

// FieldManager is the name under which every write is made, and by which managedFields tells our fields from others'.
const FieldManager = "syncpass"

// The marks of a mirror. An object is ours only if all of them match and it sits where they say.
const (
	domain = "tenantplane.io"

	LabelManagedBy        = "app.kubernetes.io/managed-by"
	ManagedBy             = "tenantplane"
	LabelTenant           = domain + "/tenant"
	LabelVirtualNamespace = domain + "/virtual-namespace"
	LabelKind             = domain + "/kind"

	AnnotationVirtualNamespace = domain + "/virtual-namespace"
	AnnotationVirtualName      = domain + "/virtual-name"
	AnnotationVirtualUID       = domain + "/virtual-uid"

	// AnnotationConfirmDeletes on the TenantCluster lets exactly the plan of that ID through a guard.
	AnnotationConfirmDeletes = domain + "/confirm-deletes"
)

// Mapping says where one tenant's objects lie on the host.
type Mapping struct {
	// Tenant is the TenantCluster's name, HostNamespace its namespace.
	Tenant, HostNamespace string
	// Owner is the reference to the TenantCluster that every mirror carries, so that host controllers cannot adopt a
	// mirror, kubectl drain accepts it, and deleting the TenantCluster cleans up.
	Owner metav1.OwnerReference
	// Workloads are what Pods find around them.
	Workloads Workloads
}

// Owned tells whose a host object is.
type Owned int

// The kinds of ownership.
const (
	// Foreign: not a mirror of this tenant; never touched.
	Foreign Owned = iota
	// Other: marked as a mirror, but of another tenant object than the one whose place it takes.
	Other
	// Ours: the mirror of the tenant object that its marks name, in the place where it belongs.
	Ours
)

// Identify tells whose mirror a host object is. Every mark is recomputed from the identity that the annotations name,
// so a copy, a forged mark, or another tenant's mirror is never Ours.
//
//	managed-by  tenant   kind, namespace  name recomputed | answer
//	other       any      any              any             | Foreign
//	ours        any      any              elsewhere       | Other
//	ours        ours     ours             here            | Ours
func (m Mapping) Identify(kind Kind, kindName string, host metav1.Object) (types.NamespacedName, Owned) {
	labels, annotations := host.GetLabels(), host.GetAnnotations()
	if labels[LabelManagedBy] != ManagedBy {
		return types.NamespacedName{}, Foreign
	}
	id := types.NamespacedName{Namespace: annotations[AnnotationVirtualNamespace], Name: annotations[AnnotationVirtualName]}
	ours := id.Name != "" && id.Namespace != "" &&
		host.GetNamespace() == m.HostNamespace &&
		host.GetName() == m.MirrorName(kind, id.Namespace, id.Name)
	ours = ours && holds(labels[LabelTenant], m.Tenant) &&
		holds(labels[LabelVirtualNamespace], id.Namespace) &&
		holds(labels[LabelKind], strings.ToLower(kindName))
	if !ours {
		return types.NamespacedName{}, Other
	}
	return id, Ours
}

// holds says whether a label is that of a value. One that is the value itself is: no API server stores a label that
// labelValue would have cut, and to check each one of a list for that is slow.
func holds(label, value string) bool { return label == value || label == labelValue(value) }

// labels are the marks that selectors can use.
func (m Mapping) labels(kindName, namespace string) map[string]string {
	return map[string]string{
		LabelManagedBy:        ManagedBy,
		LabelTenant:           labelValue(m.Tenant),
		LabelVirtualNamespace: labelValue(namespace),
		LabelKind:             labelValue(strings.ToLower(kindName)),
	}
}

// stamp gives a host object labels and annotations with the marks of the mirror of a tenant object among them, and the
// reference to the TenantCluster.
func (m Mapping) stamp(host metav1.Object, labels, annotations map[string]string, kindName string, tenant metav1.Object) {
	maps.Copy(labels, m.labels(kindName, tenant.GetNamespace()))
	host.SetLabels(labels)

	annotations[AnnotationVirtualNamespace] = tenant.GetNamespace()
	annotations[AnnotationVirtualName] = tenant.GetName()
	annotations[AnnotationVirtualUID] = string(tenant.GetUID())
	removeWord(annotations)
	host.SetAnnotations(annotations)

	owners := slices.DeleteFunc(slices.Clone(host.GetOwnerReferences()), func(ref metav1.OwnerReference) bool {
		return ref.Kind == m.Owner.Kind && strings.HasPrefix(ref.APIVersion, domain+"/")
	})
	for i := range owners {
		owners[i].Controller = nil // an object has one controller, and whoever adopted the mirror is none
	}
	host.SetOwnerReferences(append(owners, m.Owner))
}

// Marks is a kind whose content carries marks too, which keep it inside its tenant and so must never be missing.
type Marks interface {
	// Marked says whether a mirror's content has the marks of its tenant object.
	Marked(m Mapping, tenant, mirror *unstructured.Unstructured) bool
	// Mark puts them there, and changes nothing else.
	Mark(m Mapping, tenant, mirror *unstructured.Unstructured)
}

// Stamped says whether a mirror carries the marks that its tenant object's pass would put there, and no word about a
// conflict, which no pass leaves.
func (m Mapping) Stamped(host, tenant metav1.Object) bool {
	annotations := host.GetAnnotations()
	keep, _ := word(annotations)
	return keep == "" && annotations[AnnotationVirtualUID] == string(tenant.GetUID()) &&
		slices.ContainsFunc(host.GetOwnerReferences(), func(ref metav1.OwnerReference) bool { return ref.UID == m.Owner.UID })
}

func nonNil(m map[string]string) map[string]string {
	if m == nil {
		return map[string]string{}
	}
	return m
}
