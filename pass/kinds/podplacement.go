package kinds

import "slices"

// markAffinity keeps the Pods that a Pod's (anti-)affinity and topology spread count inside the tenant, and inside the
// namespaces that they mean.
func (m Mapping) markAffinity(spec Content, namespace string) {
	affinity := child(spec, "affinity")
	for _, field := range []string{"podAffinity", "podAntiAffinity"} {
		terms := child(affinity, field)
		for _, term := range entries(terms["requiredDuringSchedulingIgnoredDuringExecution"]) {
			m.markTerm(term, namespace)
		}
		for _, weighted := range entries(terms["preferredDuringSchedulingIgnoredDuringExecution"]) {
			m.markTerm(child(weighted, "podAffinityTerm"), namespace)
		}
	}
	for _, constraint := range entries(spec["topologySpreadConstraints"]) {
		if selector := child(constraint, "labelSelector"); selector != nil {
			constraint["labelSelector"] = m.markSelector(selector, namespace)
		}
		renameList(constraint, "matchLabelKeys")
	}
}

// markTerm resolves a term's namespaces into labels, since all mirrors are in one namespace. An empty namespaceSelector
// means all of the tenant's namespaces; one that names them by kubernetes.io/metadata.name, those. One by any other
// label cannot be told from a Pod's labels, and narrows to the Pod's own namespace, which selects too little rather than
// too much.
func (m Mapping) markTerm(term Content, namespace string) {
	if term == nil {
		return
	}
	selector := child(term, "labelSelector")
	if selector == nil {
		return // matches no Pod
	}
	names, _ := term["namespaces"].([]any)
	within, selects := term["namespaceSelector"].(Content)
	delete(term, "namespaces")
	delete(term, "namespaceSelector")
	renameList(term, "matchLabelKeys")
	renameList(term, "mismatchLabelKeys")
	named, known := namespacesOf(within)
	switch {
	case selects && len(within) == 0:
		term["labelSelector"] = m.markSelector(selector, "")
	case len(names) > 0 || selects && known:
		marked := m.markSelector(selector, "")
		namespacesIn(marked, append(append([]any{}, names...), named...))
		term["labelSelector"] = marked
	default:
		term["labelSelector"] = m.markSelector(selector, namespace)
	}
}

// metadataName is the label that every namespace carries its name in.
const metadataName = "kubernetes.io/metadata.name"

// namespacesOf are the namespaces that a selector names one by one; false where it selects by anything else.
func namespacesOf(selector Content) ([]any, bool) {
	labels, expressions := child(selector, "matchLabels"), entries(selector["matchExpressions"])
	if name, found := labels[metadataName]; found && len(labels) == 1 && len(expressions) == 0 {
		return []any{name}, true
	}
	if len(labels) == 0 && len(expressions) == 1 && expressions[0]["key"] == metadataName && expressions[0]["operator"] == "In" {
		values, _ := expressions[0]["values"].([]any)
		return values, true
	}
	return nil, false
}

func renameList(entry Content, field string) {
	keys, _ := entry[field].([]any)
	for i, key := range keys {
		if text, ok := key.(string); ok {
			keys[i] = aliasLabel(text)
		}
	}
}

// pointDNS gives a Pod that asks for cluster DNS the tenant's, where there is one: its server, the search list of the
// tenant's namespace, and then what the user asked for, options included.
func (m Mapping) pointDNS(spec Content, namespace string) {
	if m.Workloads.DNS == "" {
		return
	}
	policy, _ := spec["dnsPolicy"].(string)
	if hostNetwork, _ := spec["hostNetwork"].(bool); policy != "ClusterFirstWithHostNet" && (policy != "ClusterFirst" && policy != "" || hostNetwork) {
		return
	}
	config := child(spec, "dnsConfig")
	if config == nil {
		config = Content{}
	}
	merge := func(field string, first ...any) {
		own, _ := config[field].([]any)
		config[field] = append(first, own...)
	}
	merge("nameservers", m.Workloads.DNS)
	merge("searches", namespace+"."+clusterDomain, clusterDomain, "cluster.local")
	ndots := false
	for _, option := range entries(config["options"]) {
		ndots = ndots || option["name"] == "ndots"
	}
	if !ndots {
		merge("options", Content{"name": "ndots", "value": "5"})
	}
	spec["dnsPolicy"], spec["dnsConfig"] = "None", config
}

// prioritize leaves a Pod the priority class that it names, if it is one of those of the host that tenants' Pods may name.
// The number and the preemption policy are the host's in any case: its admission fills them in from its own class of that
// name, and refuses others than that (https://kubernetes.io/docs/concepts/scheduling-eviction/pod-priority-preemption/).
// Whether the host has the class is for that admission to say too: to ask would take a right over the whole host.
func (m Mapping) prioritize(spec Content) {
	delete(spec, "priority")
	delete(spec, "preemptionPolicy")
	if name, _ := spec["priorityClassName"].(string); !slices.Contains(m.Workloads.PriorityClasses, name) {
		delete(spec, "priorityClassName")
	}
}
