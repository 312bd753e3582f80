package kinds

import (
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/syncpass/syncpass/record"
)

// Workloads are the surroundings that a tenant's Pods find on the host.
type Workloads struct {
	// ServiceAccount is the host ServiceAccount that all mirrored Pods run under, which should have no rights.
	ServiceAccount string
	// APIHost and APIPort are where Pods reach the tenant's API server; empty leaves the host's in their environment.
	APIHost, APIPort string
	// DNS is the address of the tenant's DNS server, empty where Pods use the host's.
	DNS string
	// PodSecurity is the level that Pods are held to.
	PodSecurity PodSecurity
	// PriorityClasses are the priority classes of the host that Pods may name; a Pod that names another gets the host's
	// default.
	PriorityClasses []string
	// Services are the tenant's Services of a namespace with the addresses of their mirrors, sorted by name.
	Services func(namespace string) []ServiceAddress
	// Keys are the keys of a ConfigMap or Secret of the tenant, as far as they are known.
	Keys func(kind, namespace, name string) []string
}

// ServiceAddress is a tenant's Service as its Pods reach it on the host.
type ServiceAddress struct {
	Name string
	// IP is the mirror's cluster IP.
	IP    string
	Ports []ServicePort
}

// ServicePort is a port of a Service.
type ServicePort struct {
	Name, Protocol string
	Port           int64
}

// Runs is a kind whose objects run on a node of the host, and so have a life that its mirror follows.
type Runs interface {
	// Finished says that the tenant object has come to its end and must not run again.
	Finished(tenant *unstructured.Unstructured) bool
	// Bound says that the tenant object is bound to a node, so that a lost mirror cannot simply be made again: it could
	// come to run on another one.
	Bound(tenant *unstructured.Unstructured) bool
}

// Outlives is a kind whose mirrors may outlive the surroundings that they were made for.
type Outlives interface {
	// Outlived says what a mirror still has of surroundings that have changed since, and what to do about it; empty where it
	// is up to date.
	Outlived(m Mapping, tenant, host *unstructured.Unstructured) string
}

// Reports is a kind whose status on the host is reported to the tenant.
type Reports interface {
	// ReflectStatus is the status that the tenant object should have by its mirror's; nil leaves it as it is.
	ReflectStatus(m Mapping, host, tenant *unstructured.Unstructured) Content
}

// Partial is a kind of which some parts change through subresources only.
type Partial interface {
	// Parts are what the tenant asks for and only a subresource of the mirror may change. changed says that the tenant
	// object changed; where only the mirror did, what the host made of it stays.
	Parts(m Mapping, tenant, host *unstructured.Unstructured, changed bool) []Part
	// Owed says whether there is a part that the mirror is owed until it has it, whatever changed since: one that was
	// withheld may be allowed by now.
	Owed(tenant, host *unstructured.Unstructured) bool
}

// Part is such a part: the mirror to write through the subresource, and the field that it changes.
type Part struct {
	Subresource, Field string
	// Object is nil where all of the part is withheld.
	Object *unstructured.Unstructured
	// Refusal is why the part, or some of it, is withheld from the host; nil where nothing is.
	Refusal *Refusal
}

// StatusCounts says whether a kind's status counts as content when a side is asked whether it changed.
func StatusCounts(kind Kind) bool {
	_, counts := kind.(statusHashed)
	return counts
}

// AddressOf is a tenant's Service, without the address that it has on the host; it has no ports where it is headless or
// an ExternalName.
func AddressOf(service *unstructured.Unstructured) ServiceAddress {
	address := ServiceAddress{Name: service.GetName()}
	spec := child(service.Object, "spec")
	if spec["type"] == "ExternalName" || spec["clusterIP"] == "None" {
		return address
	}
	for _, port := range entries(spec["ports"]) {
		one := ServicePort{Protocol: "TCP"}
		one.Name, _ = port["name"].(string)
		one.Port, _ = port["port"].(int64)
		if protocol, _ := port["protocol"].(string); protocol != "" {
			one.Protocol = protocol
		}
		address.Ports = append(address.Ports, one)
	}
	return address
}

// ClusterIP is the address of a Service, empty where it has none.
func ClusterIP(service *unstructured.Unstructured) string {
	ip, _, _ := unstructured.NestedString(service.Object, "spec", "clusterIP")
	if ip == "None" {
		return ""
	}
	return ip
}

// statusHashed is a kind of whose status something counts as content when a side is asked whether it changed. For a status
// that is reported, that keeps a field that the tenant's API server does not store from being written for ever.
type statusHashed interface {
	// statusHashed is what counts of a side's status; nil for nothing.
	statusHashed(side record.Side, status Content) any
}

// LeavesOut is a kind of which something that a tenant asks for never comes to the host, where the object comes without.
type LeavesOut interface {
	// LeftOut names it, and says why; empty where the tenant object asks for nothing of it.
	LeftOut(tenant *unstructured.Unstructured) string
}
