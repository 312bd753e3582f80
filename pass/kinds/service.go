package kinds

import (
	"fmt"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/syncpass/syncpass/record"
)

// service: each side allocates its own addresses and ports, and selectors carry the marks on the host, so that a
// Service selects only its own tenant namespace's Pods.
type service struct{ Generic }

// allocated are the spec fields that a side's own allocators fill.
var allocated = []string{"clusterIPs", "ipFamilies", "healthCheckNodePort"}

func (s service) ValidName(name string) []string { return labelName(name) }

func (s service) Crosses(o Object) bool {
	return (o.Namespace != "default" || o.Name != "kubernetes") && s.Generic.Crosses(o)
}

// Project renames the selector's keys like labels, adds the marks to it, and takes from the mirror what the host has
// allocated. A Service without a selector stays without one.
func (s service) Project(m Mapping, namespace string, content, host Content) {
	spec := child(content, "spec")
	if selector := child(spec, "selector"); len(selector) > 0 {
		selector = renameKeys(selector, aliasLabel)
		selector[LabelTenant] = labelValue(m.Tenant)
		selector[LabelVirtualNamespace] = labelValue(namespace)
		spec["selector"] = selector
	}
	adoptAllocated(spec, child(host, "spec"))
}

// Reflect is Project's way back.
func (s service) Reflect(_ Mapping, _ string, content, tenant Content) {
	spec := child(content, "spec")
	if selector := child(spec, "selector"); len(selector) > 0 {
		delete(selector, LabelTenant)
		delete(selector, LabelVirtualNamespace)
		spec["selector"] = renameKeys(selector, unaliasLabel)
	}
	adoptAllocated(spec, child(tenant, "spec"))
}

// Disown removes what the side has allocated. The cluster IP `None` is no allocation: it makes a Service headless.
func (s service) Disown(_ record.Side, content Content) {
	spec := child(content, "spec")
	if spec["clusterIP"] != "None" {
		delete(spec, "clusterIP")
	}
	for _, field := range allocated {
		delete(spec, field)
	}
	for _, port := range ports(spec) {
		delete(port, "nodePort")
	}
}

// Immutable: a cluster IP, once set, cannot change to or from `None`, unless an ExternalName lies between
// (https://kubernetes.io/docs/reference/kubernetes-api/service-resources/service-v1/).
func (s service) Immutable(content, want Content) string {
	have, need := child(content, "spec"), child(want, "spec")
	if have["type"] == "ExternalName" || need["type"] == "ExternalName" {
		return ""
	}
	if (have["clusterIP"] == "None") != (need["clusterIP"] == "None") {
		return "a Service cannot become headless, or stop being so, in place"
	}
	return ""
}

// adoptAllocated takes into spec what the written side has allocated in current, as far as spec's type has use for it.
func adoptAllocated(spec, current Content) {
	headless := spec["clusterIP"] == "None"
	if spec == nil || spec["type"] == "ExternalName" || headless != (current["clusterIP"] == "None") {
		return
	}
	for _, field := range append([]string{"clusterIP"}, allocated...) {
		if value, found := current[field]; found && (field != "healthCheckNodePort" || spec["externalTrafficPolicy"] == "Local") {
			spec[field] = value
		}
	}
	if spec["type"] != "NodePort" && spec["type"] != "LoadBalancer" {
		return
	}
	nodePorts := map[string]any{}
	for _, port := range ports(current) {
		if nodePort, found := port["nodePort"]; found {
			nodePorts[portKey(port)] = nodePort
		}
	}
	for _, port := range ports(spec) {
		if nodePort, found := nodePorts[portKey(port)]; found {
			port["nodePort"] = nodePort
		}
	}
}

// portKey tells the ports of one Service apart: the API wants names unique, and number and protocol together too.
func portKey(port Content) string {
	return fmt.Sprintf("%q %v %q", port["name"], port["port"], port["protocol"])
}

// ports are the ports of a Service's spec, for changing in place.
func ports(spec Content) []Content {
	list, _, _ := unstructured.NestedFieldNoCopy(spec, "ports")
	items, _ := list.([]any)
	found := make([]Content, 0, len(items))
	for _, item := range items {
		if port, ok := item.(Content); ok {
			found = append(found, port)
		}
	}
	return found
}
