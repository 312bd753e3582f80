package pass

import (
	"context"
	"fmt"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/syncpass/syncpass/pass/plan"
	"github.com/syncpass/syncpass/pass/snapshot"
	"github.com/syncpass/syncpass/policy"
	"github.com/syncpass/syncpass/record"
)

// Explanation says where a tenant object lands, how it stands, and what the next pass does about it.
type Explanation struct {
	Tenant          string           `json:"tenant"`
	Namespace       string           `json:"namespace"`
	APIVersion      string           `json:"apiVersion"`
	Kind            string           `json:"kind"`
	Direction       policy.Direction `json:"direction"`
	TenantNamespace string           `json:"tenantNamespace"`
	TenantName      string           `json:"tenantName"`
	// TenantUID and HostUID are empty where the object does not exist.
	TenantUID     string `json:"tenantUID"`
	HostNamespace string `json:"hostNamespace"`
	HostName      string `json:"hostName"`
	HostUID       string `json:"hostUID"`
	// DNS is how the tenant's Pods call it, where it is a Service; nil for any other kind.
	DNS *DNSName `json:"dns"`
	// Agreed says whether history knows when both sides last agreed.
	Agreed bool `json:"agreed"`
	// Next is what the next pass decides; nil where it leaves the pair as it is.
	Next *record.Decision `json:"next"`
	// Decisions are the last ones in the trail, oldest first.
	Decisions []record.Entry `json:"decisions"`
	// Projected is the mirror as it should be. Values of a Secret are left out.
	Projected map[string]any `json:"projected"`
}

// masked stands for a value that is not shown.
const masked = "***"

// Explain looks at one tenant object without writing anything. kind is a kind or a resource name, as kubectl takes them.
func Explain(ctx context.Context, o Options, kind string, object types.NamespacedName) (*Explanation, error) {
	limited, cancel := context.WithTimeout(ctx, o.PassTimeout)
	defer cancel()
	r, taken, resources, err := look(limited, o)
	if err != nil {
		return nil, err
	}
	defer r.tenant.Close()
	resource, err := findKind(r.target.policy, resources, kind)
	if err != nil {
		return nil, err
	}
	group := schema.FromAPIVersionAndKind(resource.APIVersion, resource.Kind)
	key := record.Key{Group: group.Group, Kind: group.Kind, Namespace: object.Namespace, Name: object.Name}
	view, found := plan.Look(r.input(taken), key)
	if !found {
		return nil, &InvalidError{Err: fmt.Errorf("%s %s: neither the tenant nor the history knows it; see `kubectl get %s -n %s` in the tenant", resource.Kind, object, strings.ToLower(resource.Kind), object.Namespace)}
	}
	return r.explanation(resource, key, view, r.plan(limited, taken, r.writer(resources))), nil
}

// look reads what a pass would. Of its results, the run's tenant is the caller's to close.
func look(ctx context.Context, o Options) (*run, plan.Snapshot, snapshot.Resources, error) {
	o.Host = o.Host.ForPass()
	r := &run{Options: o, readAll: true}
	r.DryRun = true
	if err := r.load(ctx); err != nil {
		return nil, plan.Snapshot{}, nil, err
	}
	if err := r.loadRecord(ctx); err != nil {
		r.tenant.Close()
		return nil, plan.Snapshot{}, nil, err
	}
	taken, resources, err := r.take(ctx)
	if err != nil {
		r.tenant.Close()
		return nil, plan.Snapshot{}, nil, err
	}
	return r, taken, resources, nil
}

func (r *run) explanation(resource policy.Resource, key record.Key, view plan.View, planned *plan.Plan) *Explanation {
	e := &Explanation{
		Tenant: r.Tenant, Namespace: r.Namespace, APIVersion: resource.APIVersion, Kind: resource.Kind, Direction: resource.Direction,
		TenantNamespace: key.Namespace, TenantName: key.Name, HostNamespace: r.Namespace, HostName: view.HostName,
		TenantUID: uidOf(view.Tenant), HostUID: uidOf(view.Host), Agreed: view.State.Baseline != nil,
		DNS:       dnsName(r.target.mapping, key),
		Decisions: []record.Entry{},
	}
	for i := range planned.Steps {
		if planned.Steps[i].Key == key {
			e.Next = &planned.Steps[i].Decision
		}
	}
	if r.loaded != nil {
		for _, entry := range r.loaded.Status.Entries {
			if entry.Key() == key {
				e.Decisions = append(e.Decisions, entry)
			}
		}
	}
	if view.Projected != nil {
		e.Projected = view.Projected.Object
		if resource.APIVersion == "v1" && resource.Kind == "Secret" {
			data, _ := e.Projected["data"].(map[string]any)
			for name := range data {
				data[name] = masked
			}
		}
	}
	return e
}

// findKind finds the policy's kind that a person means: by kind, resource name, or either with the group.
func findKind(p *policy.SyncPolicy, resources snapshot.Resources, asked string) (policy.Resource, error) {
	var names []string
	for _, resource := range p.Spec.Resources {
		kind := schema.FromAPIVersionAndKind(resource.APIVersion, resource.Kind)
		plural := resources[record.Tenant][kind].Resource
		for _, name := range []string{resource.Kind, plural} {
			if strings.EqualFold(asked, name) || strings.EqualFold(asked, name+"."+kind.Group) {
				return resource, nil
			}
		}
		names = append(names, resource.Kind)
	}
	return policy.Resource{}, &InvalidError{Err: fmt.Errorf("kind %q is not in SyncPolicy %q, which has %s; name one of these, or add it to spec.resources", asked, p.Name, strings.Join(names, ", "))}
}

func uidOf(object *unstructured.Unstructured) string {
	if object == nil {
		return ""
	}
	return string(object.GetUID())
}

// ObjectNames lists the tenant's objects of one of the policy's kinds as namespace/name: as many as a shell can offer
// somebody who types one.
func ObjectNames(ctx context.Context, o Options, kind string) ([]string, error) {
	loaded, err := loadTarget(ctx, o)
	if err != nil {
		return nil, err
	}
	tenant, err := connectTenant(ctx, o)
	if err != nil {
		return nil, err
	}
	defer tenant.Close()
	var all []schema.GroupVersionKind
	for _, resource := range loaded.policy.Spec.Resources {
		all = append(all, schema.FromAPIVersionAndKind(resource.APIVersion, resource.Kind))
	}
	return snapshot.Names(ctx, tenant, all, kind)
}
