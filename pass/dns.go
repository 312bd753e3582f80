package pass

import (
	"context"
	"fmt"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/syncpass/syncpass/pass/kinds"
	"github.com/syncpass/syncpass/pass/plan"
	"github.com/syncpass/syncpass/pass/snapshot"
	"github.com/syncpass/syncpass/record"
)

// DNSName is how the tenant's Pods call a Service.
type DNSName struct {
	// Name is the Service's full name in the tenant; a headless one's Pods have theirs below it.
	Name string `json:"name"`
	// Resolves says whether the DNS of manifests/tenant-dns can serve it, not whether there is one.
	Resolves bool `json:"resolves"`
	// Message is why it does not resolve and what to do about it; empty where it does.
	Message string `json:"message"`
}

// UnresolvedService is a Service of the tenant that its DNS cannot serve.
type UnresolvedService struct {
	TenantNamespace string `json:"tenantNamespace"`
	TenantName      string `json:"tenantName"`
	HostName        string `json:"hostName"`
	DNSName
}

// DNSExplanation lists the Services that the tenant's DNS cannot serve.
type DNSExplanation struct {
	Tenant    string `json:"tenant"`
	Namespace string `json:"namespace"`
	// Services is how many Services of the tenant the policy carries to the host.
	Services int `json:"services"`
	// Unresolved are those of them whose names do not resolve, sorted by namespace and name.
	Unresolved []UnresolvedService `json:"unresolved"`
}

var serviceKind = schema.GroupKind{Kind: "Service"}

// dnsName is the name of the Service that an object is; nil for any other kind.
func dnsName(m kinds.Mapping, key record.Key) *DNSName {
	if key.GroupKind() != serviceKind {
		return nil
	}
	name := &DNSName{Name: kinds.DNSName(key.Namespace, key.Name), Resolves: true}
	if problem := m.Unresolvable(key.Namespace, key.Name); problem != "" {
		name.Resolves = false
		name.Message = fmt.Sprintf("%s, so the mirror's name ends in a digest, which the rules of manifests/tenant-dns cannot work out; "+
			"rename the Service, or give it a shorter name beside its own: a Service of type ExternalName with externalName %s", problem, name.Name)
	}
	return name
}

// ExplainDNS looks at all Services of the tenant without writing anything.
func ExplainDNS(ctx context.Context, o Options) (*DNSExplanation, error) {
	return look(ctx, o, (*run).explainDNS)
}

func (r *run) explainDNS(_ context.Context, taken plan.Snapshot, resources snapshot.Resources) (*DNSExplanation, error) {
	if _, err := findKind(r.target.policy, resources, serviceKind.Kind); err != nil {
		return nil, err
	}
	for _, kind := range taken.Kinds {
		if kind.GroupKind() == serviceKind && kind.Unavailable != "" {
			return nil, fmt.Errorf("which Services there are is not known: %s", kind.Unavailable)
		}
	}
	m := r.target.mapping
	e := &DNSExplanation{Tenant: r.Tenant, Namespace: r.Namespace, Unresolved: []UnresolvedService{}}
	for _, key := range plan.Carried(r.input(taken), serviceKind) {
		e.Services++
		if name := dnsName(m, key); !name.Resolves {
			e.Unresolved = append(e.Unresolved, UnresolvedService{
				TenantNamespace: key.Namespace, TenantName: key.Name,
				HostName: m.MirrorName(kinds.For(serviceKind), key.Namespace, key.Name), DNSName: *name,
			})
		}
	}
	return e, nil
}
