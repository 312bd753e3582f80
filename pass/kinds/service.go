package kinds

import (
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"

	"github.com/syncpass/syncpass/record"
)

// service: each side allocates its own addresses and ports, and selectors carry the marks on the host, so that a
// Service selects only its own tenant namespace's Pods.
type service struct{ Generic }

// AsksWriters implements [AsksWriters]: a node port that somebody wrote down is asked for on the host, and addresses are
// reported as an Ingress' are.
func (s service) AsksWriters() {}

// allocated are the spec fields that a side's own allocators fill, and externalIPs, which its own administrators do: whoever
// may set them takes for himself what others send to any address that he names (CVE-2020-8554).
var allocated = []string{"clusterIPs", "ipFamilies", "healthCheckNodePort", externalIPs}

const externalIPs = "externalIPs"

// trafficPolicy comes with node ports, or with externalIPs alone.
const trafficPolicy = "externalTrafficPolicy"

// inside says that nothing but externalIPs would lead to a Service from outside of its cluster.
func inside(spec Content) bool { return spec["type"] != "NodePort" && spec["type"] != "LoadBalancer" }

func (s service) ValidName(name string) []string { return labelName(name) }

func (s service) Crosses(o Object) bool {
	return (o.Namespace != "default" || o.Name != "kubernetes") && s.Generic.Crosses(o)
}

// Project renames the selector's keys like labels, adds the marks to it, and takes from the mirror what the host has
// allocated. A Service without a selector stays without one. A node port that was asked for, and not just allocated, is
// asked of the host too when the mirror is made.
func (s service) Project(m Mapping, tenant, host, mirror *unstructured.Unstructured) {
	spec := child(mirror.Object, "spec")
	if selector := child(spec, "selector"); len(selector) > 0 {
		selector = renameKeys(selector, aliasLabel)
		selector[LabelTenant] = labelValue(m.Tenant)
		selector[LabelVirtualNamespace] = labelValue(tenant.GetNamespace())
		spec["selector"] = selector
	}
	if name, ok := spec["externalName"].(string); ok {
		spec["externalName"] = m.clusterName(name)
	}
	if host == nil {
		takeNodePorts(spec, askedPorts(tenant))
	} else {
		adoptAllocated(spec, child(host.Object, "spec"))
	}
	hosts := host != nil && child(host.Object, "spec")["ipFamilyPolicy"] == requireDualStack
	if spec["ipFamilyPolicy"] == requireDualStack && !hosts {
		spec["ipFamilyPolicy"] = preferDualStack
	}
}

// A Service that requires two address families is refused by a host that has one; one that prefers them gets what the
// host has, and on a host with two the same.
const (
	requireDualStack = "RequireDualStack"
	preferDualStack  = "PreferDualStack"
)

// Marked says whether a selector still has the marks; without them the Service would select other tenants' Pods.
func (s service) Marked(m Mapping, tenant, mirror *unstructured.Unstructured) bool {
	selector := child(child(mirror.Object, "spec"), "selector")
	return len(selector) == 0 ||
		selector[LabelTenant] == labelValue(m.Tenant) && selector[LabelVirtualNamespace] == labelValue(tenant.GetNamespace())
}

// Mark puts the marks into a selector.
func (s service) Mark(m Mapping, tenant, mirror *unstructured.Unstructured) {
	if selector := child(child(mirror.Object, "spec"), "selector"); len(selector) > 0 {
		selector[LabelTenant] = labelValue(m.Tenant)
		selector[LabelVirtualNamespace] = labelValue(tenant.GetNamespace())
	}
}

// clusterDomain is what the names of a cluster's Services end in, unless it was set up otherwise.
const clusterDomain = "svc.cluster.local"

// clusterName is the host's name of a Service where an ExternalName is that of one in the tenant's own cluster, which on the
// host would be another Service or none. Any other name is the same everywhere.
func (m Mapping) clusterName(name string) string {
	labels := strings.SplitN(strings.TrimSuffix(name, "."), ".", 3)
	if len(labels) < 3 || labels[0] == "" || labels[1] == "" || labels[2] != clusterDomain && labels[2] != "svc" {
		return name
	}
	return m.reference("Service", labels[1], labels[0]) + "." + m.HostNamespace + "." + clusterDomain
}

// Reflect is Project's way back.
func (s service) Reflect(m Mapping, _, tenant, object *unstructured.Unstructured) {
	spec, own := child(object.Object, "spec"), child(tenant.Object, "spec")
	if selector := child(spec, "selector"); len(selector) > 0 {
		delete(selector, LabelTenant)
		delete(selector, LabelVirtualNamespace)
		spec["selector"] = renameKeys(selector, unaliasLabel)
	}
	if spec["ipFamilyPolicy"] == preferDualStack && own["ipFamilyPolicy"] == requireDualStack {
		spec["ipFamilyPolicy"] = requireDualStack
	}
	if name, ok := own["externalName"].(string); ok && m.clusterName(name) == spec["externalName"] {
		spec["externalName"] = name
	}
	adoptAllocated(spec, own)
}

// ReflectStatus reports the addresses of the load balancer, and none for a Service that is not of that type.
func (s service) ReflectStatus(_ Mapping, host, tenant *unstructured.Unstructured) Content {
	if !balanced(tenant) || !balanced(host) {
		return reflectLoadBalancer(nil, tenant)
	}
	return reflectLoadBalancer(child(child(host.Object, "status"), "loadBalancer"), tenant)
}

func balanced(object *unstructured.Unstructured) bool {
	return child(object.Object, "spec")["type"] == "LoadBalancer"
}

// LeftOut names the addresses that the tenant asked for.
func (s service) LeftOut(tenant *unstructured.Unstructured) string {
	if isEmpty(child(tenant.Object, "spec")[externalIPs]) {
		return ""
	}
	return "its spec.externalIPs do not cross, since they could take over what others send to these addresses"
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
	if inside(spec) {
		delete(spec, trafficPolicy)
	}
	for _, port := range entries(spec["ports"]) {
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
	if policy, found := current[trafficPolicy]; found && inside(spec) && !isEmpty(current[externalIPs]) {
		spec[trafficPolicy] = policy
	}
	checked := spec["type"] == "LoadBalancer" && spec["externalTrafficPolicy"] == "Local"
	for _, field := range append([]string{"clusterIP"}, allocated...) {
		if value, found := current[field]; found && (field != "healthCheckNodePort" || checked) {
			spec[field] = value
		}
	}
	takeNodePorts(spec, entries(current["ports"]))
}

// takeNodePorts gives spec's ports the node ports of the same ports in from, where spec's type has any.
func takeNodePorts(spec Content, from []Content) {
	if spec["type"] != "NodePort" && spec["type"] != "LoadBalancer" {
		return
	}
	nodePorts := map[string]any{}
	for _, port := range from {
		if nodePort, found := port["nodePort"]; found {
			nodePorts[portKey(port)] = nodePort
		}
	}
	for _, port := range entries(spec["ports"]) {
		if nodePort, found := nodePorts[portKey(port)]; found {
			port["nodePort"] = nodePort
		}
	}
}

// askedPorts are the ports of a Service whose node port somebody wrote down. What an API server allocates is in nobody's
// managedFields.
func askedPorts(object *unstructured.Unstructured) []Content {
	written := &fieldpath.Set{}
	for _, entry := range object.GetManagedFields() {
		set := &fieldpath.Set{}
		if entry.FieldsV1 != nil && set.FromJSON(entry.FieldsV1.GetRawReader()) == nil {
			written = written.Union(set)
		}
	}
	var asked []Content
	for _, port := range entries(child(object.Object, "spec")["ports"]) {
		number, isNumber := port["port"].(int64)
		protocol, isText := port["protocol"].(string)
		if isNumber && isText && written.Has(fieldpath.MakePathOrDie("spec", "ports", fieldpath.KeyByFields("port", number, "protocol", protocol), "nodePort")) {
			asked = append(asked, port)
		}
	}
	return asked
}

// portKey tells the ports of one Service apart: the API wants names unique, and number and protocol together too.
func portKey(port Content) string {
	return fmt.Sprintf("%q %v %q", port["name"], port["port"], port["protocol"])
}

// Yields is a kind with content that a host may have no room for, and that is better made without it than not at all.
type Yields interface {
	// Yield is a mirror whose create was refused, without what can be given up of the fields that the host's API server
	// named in its refusal (spec.ports[0].nodePort), and what was given up; nil where nothing can be.
	Yield(mirror *unstructured.Unstructured, refused []string) (*unstructured.Unstructured, string)
}

// Yield gives up node ports that are taken, or out of the host's range: the host allocates others.
func (s service) Yield(mirror *unstructured.Unstructured, refused []string) (*unstructured.Unstructured, string) {
	yielded := mirror.DeepCopy()
	var given []string
	for i, port := range entries(child(yielded.Object, "spec")["ports"]) {
		nodePort, found := port["nodePort"]
		if found && slices.Contains(refused, fmt.Sprintf("spec.ports[%d].nodePort", i)) {
			delete(port, "nodePort")
			given = append(given, fmt.Sprint(nodePort))
		}
	}
	if len(given) == 0 {
		return nil, ""
	}
	return yielded, "the host does not give node port " + strings.Join(given, ", ") + "; it allocated another"
}
