package kinds

import (
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// DNSName is the name that a tenant's Pods call a Service by; those of the Pods behind a headless one end in it.
func DNSName(namespace, service string) string {
	return service + "." + namespace + "." + clusterDomain
}

// Unresolvable is why the rules of manifests/tenant-dns, which ask no API server, cannot find the mirror of a Service by
// the tenant's name for it; empty where they can. They can where the mirror's name is the plain one.
func (m Mapping) Unresolvable(namespace, service string) string {
	return m.WhyHashed(For(schema.GroupKind{Kind: "Service"}), namespace, service)
}
