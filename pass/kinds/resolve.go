package kinds

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"

	"github.com/syncpass/syncpass/record"
)

// AnnotationResolve on a mirror says which side's content is to stay in the conflict that its pair is in: tenant or host.
// The next pass does it and takes the annotation off, also where there is no conflict, so that no word lies in wait for
// a later one. On a tenant object it means nothing and never crosses, like everything reserved.
const AnnotationResolve = domain + "/resolve"

// Word is what the annotation on a mirror says about its conflict: the side to keep, empty where there is no annotation or
// where it has another value, which is returned as unknown then.
func Word(mirror metav1.Object) (keep record.Side, unknown string) {
	return word(mirror.GetAnnotations())
}

func word(annotations map[string]string) (keep record.Side, unknown string) {
	switch value := annotations[AnnotationResolve]; record.Side(value) {
	case record.Tenant, record.Host:
		return record.Side(value), ""
	default:
		return "", value
	}
}

// WordBy is the manager, by managedFields, that put the annotation on a mirror (kubectl-annotate, for one); empty where the
// API server keeps no account of it.
func WordBy(mirror metav1.Object) string {
	path := fieldpath.MakePathOrDie("metadata", "annotations", AnnotationResolve)
	for _, entry := range mirror.GetManagedFields() {
		set := &fieldpath.Set{}
		if entry.FieldsV1 != nil && set.FromJSON(entry.FieldsV1.GetRawReader()) == nil && set.Has(path) {
			return entry.Manager
		}
	}
	return ""
}

// WithoutWord is a mirror without the annotation, and otherwise as it is.
func WithoutWord(mirror *unstructured.Unstructured) *unstructured.Unstructured {
	object := mirror.DeepCopy()
	object.SetManagedFields(nil)
	annotations := object.GetAnnotations()
	removeWord(annotations)
	object.SetAnnotations(annotations)
	return object
}

// removeWord takes the annotation off a mirror that a pass writes, unless it has a value that nobody understands: that one
// stays for the person who wrote it to see.
func removeWord(annotations map[string]string) {
	if keep, _ := word(annotations); keep != "" {
		delete(annotations, AnnotationResolve)
	}
}
