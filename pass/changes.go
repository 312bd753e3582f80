package pass

import (
	"reflect"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/syncpass/syncpass/pass/plan"
	"github.com/syncpass/syncpass/record"
)

// Change is what a decision does to one object, for people to read: without what an API server keeps for itself, and
// without the values of Secrets.
type Change struct {
	Side record.Side
	// Kind, Namespace and Name are the object's on that side; Namespace is empty where it has none.
	Kind, Namespace, Name string
	// Before and After are nil where there is no object.
	Before, After map[string]any
}

// changesOf are the objects that a step changes: the one that it is about first, and each only if anything of it that
// people look at changes.
func changesOf(step *plan.Step) []Change {
	var changes []Change
	add := func(side record.Side, before, after *unstructured.Unstructured) {
		if change, differs := changeOf(side, before, after); differs {
			changes = append(changes, change)
		}
	}
	if !step.Writes() {
		return nil
	}
	if step.Want != nil || step.Action == record.Delete {
		add(step.Side, step.Have, becomes(step.Subresource, step.Have, step.Want))
	}
	for _, write := range step.Then {
		before := step.Have
		if write.Side != step.Side {
			before = step.Source
		}
		if write.Object == step.Want {
			continue // it is shown already
		}
		add(write.Side, before, becomes(write.Subresource, before, write.Object))
	}
	return changes
}

// becomes is what an object becomes by a write. A Pod is bound by an object of another kind.
func becomes(subresource string, before, object *unstructured.Unstructured) *unstructured.Unstructured {
	if subresource != plan.Binding || before == nil {
		return object
	}
	node, _, _ := unstructured.NestedString(object.Object, "target", "name")
	bound := before.DeepCopy()
	if err := unstructured.SetNestedField(bound.Object, node, "spec", "nodeName"); err != nil {
		return before // a Pod whose spec is none cannot be bound either
	}
	return bound
}

// changeOf compares two states of an object, and says whether they differ to people.
func changeOf(side record.Side, before, after *unstructured.Unstructured) (Change, bool) {
	object := after
	if object == nil {
		object = before
	}
	change := Change{Side: side, Kind: object.GetKind(), Namespace: object.GetNamespace(), Name: object.GetName()}
	was, is := shown(before), shown(after)
	differs := !reflect.DeepEqual(was, is)
	if isSecret(object.GetKind()) {
		maskSecret(was, is)
	}
	change.Before, change.After = was, is
	return change, differs
}

// noise are the fields of metadata that an API server writes, and which say nothing about what somebody wants.
var noise = []string{"managedFields", "resourceVersion", "uid", "creationTimestamp", "generation", "selfLink"}

// shown is an object as a person wants to see it.
func shown(object *unstructured.Unstructured) map[string]any {
	if object == nil {
		return nil
	}
	content := runtime.DeepCopyJSON(object.Object)
	metadata, _ := content["metadata"].(map[string]any)
	for _, field := range noise {
		delete(metadata, field)
	}
	annotations, _ := metadata["annotations"].(map[string]any)
	if delete(annotations, corev1.LastAppliedConfigAnnotation); len(annotations) == 0 {
		delete(metadata, "annotations")
	}
	return content
}
