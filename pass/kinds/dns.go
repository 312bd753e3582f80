package kinds

import (
	"fmt"
	"strings"

	"k8s.io/apimachinery/pkg/runtime/schema"
)

// DNSName is the name that a tenant's Pods call a Service by; those of the Pods behind a headless one end in it.
func DNSName(namespace, service string) string {
	return service + "." + namespace + "." + clusterDomain
}

// Unresolvable is why the rules of manifests/tenant-dns, which ask no API server, cannot find the mirror of a Service by
// the tenant's name for it; empty where they can. They can where the mirror's name is the plain one.
func (m Mapping) Unresolvable(namespace, service string) string {
	kind := For(schema.GroupKind{Kind: "Service"})
	plain := service + separator + namespace + separator + m.Tenant
	if m.MirrorName(kind, namespace, service) == plain {
		return ""
	}
	if over := len(plain) - kind.MaxNameLength(); over > 0 {
		return fmt.Sprintf("%s is %d characters too long for the name of a Service", plain, over)
	}
	if faults := kind.ValidName(plain); len(faults) > 0 {
		return fmt.Sprintf("%s is no name that every host takes for a Service: %s", plain, strings.Join(faults, "; "))
	}
	return fmt.Sprintf("%s can be read in more than one way, because of the %s in it that is no separator", plain, separator)
}
