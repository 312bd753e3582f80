package pass

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/syncpass/syncpass/pass/kinds"
	"github.com/syncpass/syncpass/pass/plan"
	"github.com/syncpass/syncpass/pass/snapshot"
	"github.com/syncpass/syncpass/policy"
	"github.com/syncpass/syncpass/record"
)

// Explanation says where a tenant object lands and why there, how both sides stand, and what the next pass does about it.
type Explanation struct {
	Tenant    string `json:"tenant"`
	Namespace string `json:"namespace"`
	// Policy is the SyncPolicy, PolicyPath the place in it that carries the kind, ConflictPolicy whose word counts where both
	// sides may change.
	Policy          string                `json:"policy"`
	PolicyPath      string                `json:"policyPath"`
	APIVersion      string                `json:"apiVersion"`
	Kind            string                `json:"kind"`
	Direction       policy.Direction      `json:"direction"`
	ConflictPolicy  policy.ConflictPolicy `json:"conflictPolicy"`
	TenantNamespace string                `json:"tenantNamespace"`
	TenantName      string                `json:"tenantName"`
	// TenantUID and HostUID are empty where the object does not exist.
	TenantUID     string `json:"tenantUID"`
	HostNamespace string `json:"hostNamespace"`
	HostName      string `json:"hostName"`
	HostUID       string `json:"hostUID"`
	// HostNameReason is why the mirror has that name.
	HostNameReason string `json:"hostNameReason"`
	// LeftOut is why the tenant object does not cross, although its kind is in the policy; empty where it does.
	LeftOut string `json:"leftOut"`
	// DNS is how the tenant's Pods call it, where it is a Service; nil for any other kind.
	DNS *DNSName `json:"dns"`
	// Agreed says whether history knows when both sides last agreed; TenantState and HostState are how each side stands
	// since: Absent, Deleted, New, Recreated, Unchanged, Changed or Terminating (see plan.SideState). They are empty for a
	// Node, which has no mirror, and for what is left out.
	Agreed      bool   `json:"agreed"`
	TenantState string `json:"tenantState"`
	HostState   string `json:"hostState"`
	// Differences are where the mirror is not as the tenant object asks for, in the mirror's words.
	Differences []Difference `json:"differences"`
	// Conflict is what waits for a person; nil where nothing does.
	Conflict *Conflict `json:"conflict"`
	// Next is what the next pass decides; nil where it leaves the pair as it is.
	Next *record.Decision `json:"next"`
	// Decisions are the last ones in the trail, oldest first.
	Decisions []record.Entry `json:"decisions"`
	// References are the objects that it refers to, in the order of its fields.
	References []Reference `json:"references"`
	// Projected is the mirror as it should be, and masked for a Secret.
	Projected map[string]any `json:"projected"`
}

// Difference is a place at which the sides differ.
type Difference struct {
	Field string `json:"field"`
	// Tenant is what the tenant object asks for, Host what the mirror has; nil where that is nothing, and masked for a Secret.
	Tenant any `json:"tenant"`
	Host   any `json:"host"`
}

// Reference is an object that a tenant object refers to, and where that leads on the host.
type Reference struct {
	Kind     string `json:"kind"`
	Name     string `json:"name"`
	Optional bool   `json:"optional"`
	// HostName is the name that the mirror refers to; OnHost says whether that is there.
	HostName string `json:"hostName"`
	OnHost   bool   `json:"onHost"`
	// Message is what there is to know about it; empty where it is there.
	Message string `json:"message"`
}

// Explain looks at one tenant object without writing anything. kind is a kind or a resource name, as kubectl takes them; a
// Node has no namespace.
func Explain(ctx context.Context, o Options, kind string, object types.NamespacedName) (*Explanation, error) {
	return explain(ctx, o, func(r *run, _ plan.Input, resources snapshot.Resources) (record.Key, error) {
		resource, err := findKind(r.target.policy, resources, kind)
		if err != nil {
			return record.Key{}, err
		}
		group := schema.FromAPIVersionAndKind(resource.APIVersion, resource.Kind)
		key := record.Key{Group: group.Group, Kind: group.Kind, Namespace: object.Namespace, Name: object.Name}
		if key.Namespace == "" && !kinds.IsNode(key.GroupKind()) {
			return record.Key{}, &InvalidError{Err: fmt.Errorf("%s %s is of no namespace: name it as NAMESPACE/NAME. Of what has no namespace nothing crosses, but Nodes are shown to the tenant", resource.Kind, object.Name)}
		}
		return key, nil
	})
}

// ExplainHost looks at the tenant object whose mirror has a name on the host. kind may be empty where only one kind has
// such a mirror.
func ExplainHost(ctx context.Context, o Options, kind, hostName string) (*Explanation, error) {
	return explain(ctx, o, func(r *run, in plan.Input, resources snapshot.Resources) (record.Key, error) {
		which := func(schema.GroupKind) bool { return true }
		if kind != "" {
			resource, err := findKind(r.target.policy, resources, kind)
			if err != nil {
				return record.Key{}, err
			}
			asked := schema.FromAPIVersionAndKind(resource.APIVersion, resource.Kind).GroupKind()
			which = func(group schema.GroupKind) bool { return group == asked }
		}
		return onlyMirror(plan.Occupants(in, hostName, which), r.Options, hostName)
	})
}

// onlyMirror is the one pair among what has a name on the host.
func onlyMirror(found []plan.Occupant, o Options, hostName string) (record.Key, error) {
	var keys []record.Key
	var strangers, names []string
	for _, one := range found {
		names = append(names, one.Kind)
		if one.Foreign == "" {
			keys = append(keys, one.Key)
		} else {
			strangers = append(strangers, fmt.Sprintf("%s %s/%s is %s", one.Kind, o.Namespace, hostName, one.Foreign))
		}
	}
	switch {
	case len(keys) == 1:
		return keys[0], nil
	case len(keys) > 1:
		return record.Key{}, &InvalidError{Err: fmt.Errorf("objects of the kinds %s have mirrors named %s; name one of these kinds before --host", strings.Join(names, ", "), hostName)}
	case len(strangers) > 0:
		return record.Key{}, &InvalidError{Err: fmt.Errorf("no tenant object is behind it: %s", strings.Join(strangers, "; "))}
	}
	return record.Key{}, &InvalidError{Err: fmt.Errorf("there is no mirror %s/%s of a kind in the policy, and no tenant object whose mirror would have that name; `kubectl get KIND -n %s -l %s=%s` lists mirrors on the host", o.Namespace, hostName, o.Namespace, kinds.LabelTenant, o.Tenant)}
}

// explain looks at the pair that find names.
func explain(ctx context.Context, o Options, find func(*run, plan.Input, snapshot.Resources) (record.Key, error)) (*Explanation, error) {
	return look(ctx, o, func(r *run, ctx context.Context, taken plan.Snapshot, resources snapshot.Resources) (*Explanation, error) {
		key, err := find(r, r.input(taken), resources)
		if err != nil {
			return nil, err
		}
		in, planned := r.planFrom(ctx, r.input(taken), r.writer(resources))
		if err := available(taken, key); err != nil {
			return nil, err
		}
		if kinds.IsNode(key.GroupKind()) {
			return r.explainNode(key, in, planned)
		}
		view, found := plan.Look(in, key)
		if !found {
			return nil, &InvalidError{Err: unknown(key)}
		}
		return r.explanation(view, planned), nil
	})
}

// available is an error where nothing is known of a kind.
func available(taken plan.Snapshot, key record.Key) error {
	for _, kind := range taken.Kinds {
		if kind.GroupKind() == key.GroupKind() && kind.Unavailable != "" {
			return fmt.Errorf("nothing is known about %s %s, and nothing of its kind is touched: %s", key.Kind, types.NamespacedName{Namespace: key.Namespace, Name: key.Name}, strings.TrimSpace(kind.Unavailable+" "+kind.Error))
		}
	}
	return nil
}

func unknown(key record.Key) error {
	if kinds.IsSystemNamespace(key.Namespace) {
		return fmt.Errorf("%s %s/%s: the tenant does not have it, and nothing in namespace %s crosses", key.Kind, key.Namespace, key.Name, key.Namespace)
	}
	return fmt.Errorf("%s %s/%s: neither the tenant nor the history knows it; see `kubectl get %s -n %s` in the tenant", key.Kind, key.Namespace, key.Name, strings.ToLower(key.Kind), key.Namespace)
}

// look reads what a pass would, and has tell make of it what a person asked for, within the time that a pass has.
func look[T any](ctx context.Context, o Options, tell func(*run, context.Context, plan.Snapshot, snapshot.Resources) (T, error)) (nothing T, err error) {
	ctx, cancel := context.WithTimeout(ctx, o.PassTimeout)
	defer cancel()
	o.Host = o.Host.ForPass()
	r := &run{Options: o, readAll: true}
	r.DryRun = true
	if err := r.load(ctx); err != nil {
		return nothing, err
	}
	defer r.tenant.Close()
	taken, resources, err := r.read(ctx)
	if err != nil {
		return nothing, err
	}
	return tell(r, ctx, taken, resources)
}

// about is what there is to say of any pair.
func (r *run) about(key record.Key, planned *plan.Plan) *Explanation {
	p := r.target.policy
	e := &Explanation{
		Tenant: r.Tenant, Namespace: r.Namespace, Policy: p.Name, Kind: key.Kind, ConflictPolicy: p.Spec.ConflictPolicy,
		TenantNamespace: key.Namespace, TenantName: key.Name, HostNamespace: r.Namespace,
		Differences: []Difference{}, Decisions: []record.Entry{}, References: []Reference{},
	}
	for i, resource := range p.Spec.Resources {
		if schema.FromAPIVersionAndKind(resource.APIVersion, resource.Kind).GroupKind() == key.GroupKind() {
			e.APIVersion, e.Direction, e.PolicyPath = resource.APIVersion, resource.Direction, fmt.Sprintf("spec.resources[%d]", i)
		}
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
	return e
}

func (r *run) explanation(view plan.View, planned *plan.Plan) *Explanation {
	e := r.about(view.Key, planned)
	e.HostName, e.TenantUID, e.HostUID = view.HostName, uidOf(view.Tenant), uidOf(view.Host)
	e.HostNameReason = "it is <name>-x-<namespace>-x-<tenant>"
	if view.WhyHashed != "" {
		e.HostNameReason = "it is cut and ends in a digest, since " + view.WhyHashed
	}
	e.LeftOut, e.DNS = view.LeftOut, dnsName(r.target.mapping, view.Key)
	e.Agreed, e.TenantState, e.HostState = view.State.Baseline != nil, string(view.TenantState), string(view.HostState)
	e.Differences = differences(view)
	for i := range planned.Steps {
		if planned.Steps[i].Key == view.Key && planned.Steps[i].Held != "" {
			conflict := r.conflict(&planned.Steps[i], view)
			e.Conflict = &conflict
		}
	}
	e.References = r.references(view)
	if view.Projected != nil {
		e.Projected = view.Projected.Object
		if isSecret(view.Key.Kind) {
			maskSecret(nil, e.Projected)
		}
	}
	return e
}

// differences are those of a view, without the values of a Secret.
func differences(view plan.View) []Difference {
	found := make([]Difference, 0, len(view.Differences))
	for _, one := range view.Differences {
		d := Difference{Field: one.Path.String(), Tenant: one.Tenant, Host: one.Host}
		if isSecret(view.Key.Kind) {
			d.Tenant, d.Host = maskedValue(d.Tenant), maskedValue(d.Host)
		}
		found = append(found, d)
	}
	return found
}

func maskedValue(value any) any {
	if value == nil {
		return nil
	}
	return Masked
}

// references are those of a view, and the ServiceAccount of a Pod, which is not the tenant's on the host.
func (r *run) references(view plan.View) []Reference {
	found := make([]Reference, 0, len(view.References)+1)
	for _, one := range view.References {
		e := Reference{Kind: one.Kind.Kind, Name: one.Name, Optional: one.Optional, HostName: one.HostName, OnHost: one.OnHost}
		switch {
		case one.OnHost:
		case one.Missing != "":
			e.Message = one.Missing
		default:
			e.Message = "its mirror is not there yet"
		}
		found = append(found, e)
	}
	if view.Key.GroupKind() != (schema.GroupKind{Kind: "Pod"}) || view.Tenant == nil {
		return found
	}
	tokens, mounts := r.target.mapping.TokensOf(view.Tenant)
	account := Reference{
		Kind: "ServiceAccount", Name: tokens.ServiceAccount, HostName: r.target.mapping.Workloads.ServiceAccount, OnHost: true,
		Message: "the mirror runs as this ServiceAccount of the host, and mounts no token",
	}
	if mounts {
		account.Message = "the mirror runs as this ServiceAccount of the host, and mounts the tenant's tokens from Secret " + tokens.SecretName
	}
	return slices.Insert(found, 0, account)
}

// explainNode is for a Node, which is the host's own.
func (r *run) explainNode(key record.Key, in plan.Input, planned *plan.Plan) (*Explanation, error) {
	e := r.about(key, planned)
	e.HostNamespace, e.HostName = "", key.Name
	e.HostNameReason = "it is no mirror: while a Pod of the tenant runs on this node of the host, the tenant is shown a stub of it under the same name"
	known := e.Next != nil
	for _, snapshot := range in.Snapshot.Kinds {
		if snapshot.GroupKind() != key.GroupKind() {
			continue
		}
		for side, list := range map[*string][]*unstructured.Unstructured{&e.TenantUID: snapshot.Tenant, &e.HostUID: snapshot.Host} {
			for _, node := range list {
				if node.GetName() == key.Name {
					*side, known = string(node.GetUID()), true
				}
			}
		}
	}
	if !known {
		return nil, &InvalidError{Err: fmt.Errorf("%s %s: no Pod of the tenant runs on a node of the host by that name, and the tenant has no such Node", key.Kind, key.Name)}
	}
	return e, nil
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
