package kinds

import (
	"fmt"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// templated: a kind whose controller on the host makes Pods of a template, for tenants that have no controllers of their
// own. These Pods are held to what mirrored Pods are held to: they run under the one ServiceAccount that has no rights, get
// no token of the host's, name mirrors alone, carry the tenant's marks and nobody else's, and are within the Pod Security
// level. A custom resource with a template in it is known to its own controller only, and crosses as it is.
type templated struct {
	Generic
	// path leads to the template.
	path []string
}

// templates are the built-in kinds with a template, and where it is.
var templates = map[schema.GroupKind][]string{
	{Kind: "PodTemplate"}:                {"template"},
	{Kind: "ReplicationController"}:      {"spec", "template"},
	{Group: "apps", Kind: "ReplicaSet"}:  {"spec", "template"},
	{Group: "apps", Kind: "Deployment"}:  {"spec", "template"},
	{Group: "apps", Kind: "StatefulSet"}: {"spec", "template"},
	{Group: "apps", Kind: "DaemonSet"}:   {"spec", "template"},
	{Group: "batch", Kind: "Job"}:        {"spec", "template"},
	{Group: "batch", Kind: "CronJob"}:    {"spec", "jobTemplate", "spec", "template"},
}

// template is the template of an object, nil where it has none.
func (t templated) template(object *unstructured.Unstructured) Content {
	content := object.Object
	for _, field := range t.path {
		content = child(content, field)
	}
	return content
}

func (t templated) refersTo(object *unstructured.Unstructured) references {
	return podReferences(child(t.template(object), "spec"))
}

// Project holds the template to the rules of mirrored Pods. Selectors follow the labels.
func (t templated) Project(m Mapping, tenant, _, mirror *unstructured.Unstructured) {
	template, namespace := t.template(mirror), tenant.GetNamespace()
	if template == nil {
		return
	}
	metadata := child(template, "metadata")
	if metadata == nil {
		metadata = Content{}
		template["metadata"] = metadata
	}
	labels := renameKeys(child(metadata, "labels"), aliasLabel)
	labels[LabelTenant], labels[LabelVirtualNamespace] = labelValue(m.Tenant), labelValue(namespace)
	metadata["labels"] = labels
	for key := range child(metadata, "annotations") {
		if strings.HasPrefix(key, domain+"/") {
			delete(child(metadata, "annotations"), key)
		}
	}
	delete(metadata, "ownerReferences")
	delete(metadata, "finalizers")
	for _, holder := range []Content{child(mirror.Object, "spec"), child(child(child(mirror.Object, "spec"), "jobTemplate"), "spec")} {
		aliasSelector(holder)
	}

	spec := child(template, "spec")
	if spec == nil {
		return
	}
	m.confine(spec)
	spec["serviceAccount"] = m.Workloads.ServiceAccount // the older name, which an API server fills in
	m.renameReferred(namespace, podReferences(spec))
	m.markAffinity(spec, namespace)
}

// aliasSelector renames the labels that a selector is about, as the template's are; a ReplicationController's is a map.
func aliasSelector(holder Content) {
	selector := child(holder, "selector")
	switch {
	case selector == nil:
	case selector["matchLabels"] == nil && selector["matchExpressions"] == nil:
		holder["selector"] = renameKeys(selector, aliasLabel)
	default:
		if labels := child(selector, "matchLabels"); labels != nil {
			selector["matchLabels"] = renameKeys(labels, aliasLabel)
		}
		for _, expression := range entries(selector["matchExpressions"]) {
			if key, ok := expression["key"].(string); ok {
				expression["key"] = aliasLabel(key)
			}
		}
	}
}

// Reflect leaves the tenant its template and its selectors: what the host has of them is in the host's terms.
func (t templated) Reflect(_ Mapping, _, tenant, object *unstructured.Unstructured) {
	last := len(t.path) - 1
	to, from := object.Object, tenant.Object
	for _, field := range t.path[:last] {
		to, from = child(to, field), child(from, field)
		if to == nil || from == nil {
			return
		}
		keepOwn(to, from, "selector")
	}
	keepOwn(to, from, t.path[last])
}

// keepOwn gives a field the value that it has in own, or takes it away where own has none.
func keepOwn(to, own Content, field string) {
	if delete(to, field); own[field] != nil {
		to[field] = runtime.DeepCopyJSONValue(own[field])
	}
}

// Forbidden holds the template to the Pod Security level, as the Pods that are made of it, and refuses tokens of the host:
// the tenant's own are bound to a Pod of the tenant's, and there is none.
func (t templated) Forbidden(m Mapping, mirror *unstructured.Unstructured) *Refusal {
	template := t.template(mirror)
	spec := child(template, "spec")
	tokens := 0
	eachToken(spec, func(Content, Content) { tokens++ })
	if tokens > 0 {
		return &Refusal{
			Message: "its Pods ask for tokens, which the host would issue for itself; take the serviceAccountToken sources out of its template, or let the tenant's own controllers make its Pods",
			Detail:  fmt.Sprintf("%d serviceAccountToken sources", tokens),
		}
	}
	annotations, _, _ := unstructured.NestedStringMap(template, "metadata", "annotations")
	return refusePod(m, annotations, spec)
}
