package kinds

import (
	"slices"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
)

// networkPolicy: all mirrors are in one namespace, so every selector of Pods is kept inside the tenant and its
// namespaces by labels. What a policy allows on the host is what it allows in the tenant, or less; never more.
//
//	peer in the tenant                            | peer on the host
//	podSelector                                   | those Pods of the policy's own tenant namespace
//	namespaceSelector {}                          | all Pods of the tenant
//	namespaceSelector by kubernetes.io/metadata.name | the tenant's Pods in these namespaces
//	namespaceSelector by any other label          | no Pod: a Pod's labels do not tell its namespace's
//	namespaceSelector and podSelector             | both together
//	ipBlock                                       | as it is
//	no peers (from or to absent or empty)         | as it is: any source or destination, within the host's own limits
type networkPolicy struct{ Generic }

// Project marks the selectors.
func (n networkPolicy) Project(m Mapping, tenant, _, mirror *unstructured.Unstructured) {
	spec := child(mirror.Object, "spec")
	if spec == nil {
		return
	}
	namespace := tenant.GetNamespace()
	spec["podSelector"] = m.markSelector(child(spec, "podSelector"), namespace)
	for _, peer := range peers(spec) {
		m.markPeer(peer, namespace)
	}
}

// Reflect is Project's way back: a peer that one of the tenant's is projected to is that one, since several forms of a
// peer look the same on the host; any other is written in the tenant's terms.
func (n networkPolicy) Reflect(m Mapping, _, tenant, object *unstructured.Unstructured) {
	spec, own := child(object.Object, "spec"), child(tenant.Object, "spec")
	if spec == nil {
		return
	}
	namespace := tenant.GetNamespace()
	selector := child(own, "podSelector")
	restored := m.restoreSelector(child(spec, "podSelector"), selector, namespace)
	spec["podSelector"] = restored
	if own != nil && selector == nil && len(restored) == 0 {
		delete(spec, "podSelector")
	}
	known := peers(own)
	for _, peer := range peers(spec) {
		at := slices.IndexFunc(known, func(one Content) bool {
			one = runtime.DeepCopyJSON(one)
			m.markPeer(one, namespace)
			return equal(one, peer)
		})
		if at < 0 {
			m.restorePeer(peer, namespace)
			continue
		}
		clear(peer)
		for field, value := range runtime.DeepCopyJSON(known[at]) {
			peer[field] = value
		}
		known = slices.Delete(known, at, at+1) // the next one of the same look is the tenant's next one
	}
}

// peers are the sources and destinations of all rules of a NetworkPolicy, for changing in place.
func peers(spec Content) []Content {
	var all []Content
	for _, rule := range entries(spec["ingress"]) {
		all = append(all, entries(rule["from"])...)
	}
	for _, rule := range entries(spec["egress"]) {
		all = append(all, entries(rule["to"])...)
	}
	return all
}

func (m Mapping) markPeer(peer Content, namespace string) {
	selector, pods := peer["podSelector"].(Content)
	within, spaces := peer["namespaceSelector"].(Content)
	switch {
	case spaces:
		marked := m.markSelector(selector, "")
		if !inNamespaces(marked, within) {
			marked = m.nothing()
		}
		delete(peer, "namespaceSelector")
		peer["podSelector"] = marked
	case pods:
		peer["podSelector"] = m.markSelector(selector, namespace)
	}
}

// nothing selects no Pod, since every mirror carries the label of its namespace. A peer that cannot be told must not go
// away instead: a rule without peers allows everything.
func (m Mapping) nothing() Content {
	return Content{
		"matchLabels":      Content{LabelTenant: labelValue(m.Tenant)},
		"matchExpressions": []any{Content{"key": LabelVirtualNamespace, "operator": "DoesNotExist"}},
	}
}

// inNamespaces adds the requirements of a namespaceSelector to a marked selector of Pods, where all of them are about
// the namespace's name, which a mirror carries in a label; false where they are not.
func inNamespaces(marked, within Content) bool {
	labels := child(marked, "matchLabels")
	for key, value := range child(within, "matchLabels") {
		name, ok := value.(string)
		if key != metadataName || !ok {
			return false
		}
		labels[LabelVirtualNamespace] = labelValue(name)
	}
	expressions, _ := marked["matchExpressions"].([]any)
	for _, expression := range entries(within["matchExpressions"]) {
		if expression["key"] != metadataName {
			return false
		}
		expression["key"] = LabelVirtualNamespace
		values, _ := expression["values"].([]any)
		for i, value := range values {
			if name, ok := value.(string); ok {
				values[i] = labelValue(name)
			}
		}
		expressions = append(expressions, expression)
	}
	if len(expressions) > 0 {
		marked["matchExpressions"] = expressions
	}
	return true
}

// restorePeer writes a peer that carries the marks in the tenant's terms; any other is the host's own and stays.
func (m Mapping) restorePeer(peer Content, namespace string) {
	selector := child(peer, "podSelector")
	labels := child(selector, "matchLabels")
	if labels[LabelTenant] != labelValue(m.Tenant) || peer["namespaceSelector"] != nil {
		return
	}
	var pods, spaces []any
	for _, expression := range entries(selector["matchExpressions"]) {
		if expression["key"] == LabelVirtualNamespace {
			expression["key"] = metadataName
			spaces = append(spaces, expression)
		} else {
			pods = append(pods, expression)
		}
	}
	if delete(selector, "matchExpressions"); len(pods) > 0 {
		selector["matchExpressions"] = pods
	}
	if name, one := labels[LabelVirtualNamespace]; !one || name != labelValue(namespace) || len(spaces) > 0 {
		within := Content{}
		if one {
			within["matchLabels"] = Content{metadataName: name}
		}
		if len(spaces) > 0 {
			within["matchExpressions"] = spaces
		}
		peer["namespaceSelector"] = within
	}
	peer["podSelector"] = m.restoreSelector(selector, nil, namespace)
}
