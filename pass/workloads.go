package pass

import (
	"cmp"
	"fmt"
	"net"
	"net/url"
	"strings"

	"github.com/syncpass/syncpass/pass/kinds"
	"github.com/syncpass/syncpass/policy"
)

// workloads are the surroundings of the tenant's Pods on the host.
func workloads(o Options, cluster *policy.TenantCluster, server string) (kinds.Workloads, error) {
	endpoint := cmp.Or(o.TenantAPIEndpoint, cluster.Status.Endpoint, server)
	host, port, err := splitEndpoint(endpoint)
	if err != nil {
		return kinds.Workloads{}, &InvalidError{Err: fmt.Errorf(
			"the tenant's API endpoint %q: %w; give it as host:port in SYNCPASS_TENANT_API_ENDPOINT, or in the TenantCluster's status.endpoint", endpoint, err)}
	}
	security, err := kinds.NewPodSecurity(cmp.Or(o.PodSecurity, "baseline"))
	if err != nil {
		return kinds.Workloads{}, &InvalidError{Err: err}
	}
	return kinds.Workloads{
		ServiceAccount: cmp.Or(o.WorkloadServiceAccount, "default"),
		APIHost:        host, APIPort: port,
		DNS:         o.TenantDNS,
		PodSecurity: security, PriorityClasses: o.PriorityClasses,
	}, nil
}

// splitEndpoint takes host:port, a bare host, or a URL.
func splitEndpoint(endpoint string) (host, port string, err error) {
	address := endpoint
	if strings.Contains(endpoint, "://") {
		parsed, err := url.Parse(endpoint)
		if err != nil {
			return "", "", err
		}
		address = parsed.Host
	}
	if host, port, err = net.SplitHostPort(address); err == nil {
		return host, port, nil
	}
	host, port, err = net.SplitHostPort(address + ":443")
	return host, port, err
}
