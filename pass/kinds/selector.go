package kinds

// markSelector makes a label selector of the tenant select on the host what it selects in the tenant: keys are renamed
// like labels, and the marks keep it inside the tenant, and inside the namespace where one is given. Without the marks
// it would match other tenants' objects, and equal labels of other namespaces.
func (m Mapping) markSelector(selector Content, namespace string) Content {
	if selector == nil {
		selector = Content{}
	}
	matched := renameKeys(child(selector, "matchLabels"), aliasLabel)
	matched[LabelTenant] = labelValue(m.Tenant)
	if namespace != "" {
		matched[LabelVirtualNamespace] = labelValue(namespace)
	}
	selector["matchLabels"] = matched
	for _, expression := range entries(selector["matchExpressions"]) {
		if key, ok := expression["key"].(string); ok {
			expression["key"] = aliasLabel(key)
		}
	}
	return selector
}

// namespacesIn adds to a marked selector that the namespace is one of several.
func namespacesIn(selector Content, namespaces []any) {
	values := make([]any, 0, len(namespaces))
	for _, namespace := range namespaces {
		if name, ok := namespace.(string); ok {
			values = append(values, labelValue(name))
		}
	}
	expressions, _ := selector["matchExpressions"].([]any)
	selector["matchExpressions"] = append(expressions, Content{"key": LabelVirtualNamespace, "operator": "In", "values": values})
}

// entries are the maps in a list, for changing in place.
func entries(list any) []Content {
	items, _ := list.([]any)
	found := make([]Content, 0, len(items))
	for _, item := range items {
		if entry, ok := item.(Content); ok {
			found = append(found, entry)
		}
	}
	return found
}
