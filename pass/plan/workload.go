package plan

import (
	"maps"
	"slices"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"

	"github.com/syncpass/syncpass/pass/kinds"
	"github.com/syncpass/syncpass/policy"
	"github.com/syncpass/syncpass/record"
)

// create completes a step that makes a mirror. A Pod's waits for the addresses of Services that the same plan creates,
// and for the Secret with its tokens.
func (c *computation) create(p *pair, step Step) {
	want := c.Mapping.Project(p.kind, p.tenant, nil, p.keep)
	if c.forbidden(p, want) {
		return
	}
	step.Message += c.dangling(p)
	if _, runs := p.kind.(kinds.Runs); runs {
		if tokens, mounts := c.Mapping.TokensOf(p.tenant); mounts {
			step.Tokens = &tokens
		}
		step.Awaits = c.awaited[p.key.Namespace]
	}
	mapping := c.Mapping
	switch {
	case len(step.Awaits) > 0:
		step.Complete = func(addresses map[string]string) *unstructured.Unstructured {
			return c.completed(addresses).Project(p.kind, p.tenant, nil, p.keep)
		}
	case c.Later:
		step.Complete = func(map[string]string) *unstructured.Unstructured {
			return mapping.Project(p.kind, p.tenant, nil, p.keep)
		}
	}
	c.push(p, step, want)
	if c.Later {
		c.plan.Steps[len(c.plan.Steps)-1].Want = nil
	}
}

// forbidden refuses a pair whose mirror may not become want.
func (c *computation) forbidden(p *pair, want *unstructured.Unstructured) bool {
	forbids, ok := p.kind.(kinds.Forbids)
	if !ok {
		return false
	}
	refusal := forbids.Forbidden(c.Mapping, want)
	if refusal != nil {
		c.refuse(p, refusal)
	}
	return refusal != nil
}

// renewal is a step that provides a mirror's tokens anew where they are missing or due; nil where they are neither.
func (c *computation) renewal(p *pair) *Step {
	if _, runs := p.kind.(kinds.Runs); !runs {
		return nil
	}
	tokens, mounts := c.Mapping.TokensOf(p.tenant)
	if !mounts {
		return nil
	}
	message := "the tokens that it mounts are missing on the host"
	if there, found := c.tokens[tokens.SecretName]; found && there.Owner == p.host.GetUID() {
		if c.Now.Before(there.RenewAfter) {
			return nil
		}
		message = "less than half of its tokens' time is left"
	}
	step := c.step(p, record.Update, record.Host, record.TokenRenewed, message)
	step.Have, step.Source, step.Tokens = p.host, p.tenant, &tokens
	// A tenant that grants no token any more, its ServiceAccount being gone, is still told how its Pod is.
	if status := c.status(p); status != nil {
		step.Then = append(step.Then, Write{Side: record.Tenant, Subresource: "status", Object: status})
	}
	return &step
}

// rest leaves a pair as it is, and says so where the mirror has outlived what it was made for.
func (c *computation) rest(p *pair, learned *record.Baseline) {
	if outlives, ok := p.kind.(kinds.Outlives); ok && p.authority == policy.ToHost {
		if why := outlives.Outlived(c.Mapping, p.tenant, p.host); why != "" {
			if c.Recording && learned != nil {
				p.state.Baseline = learned
			}
			c.skip(p, record.Host, record.Immutable, why, nil)
			return
		}
	}
	c.unchanged(p, learned)
}

// status is the tenant object with the status that its mirror reports, nil where it has that already.
func (c *computation) status(p *pair) *unstructured.Unstructured {
	reports, ok := p.kind.(kinds.Reports)
	if !ok || p.host == nil || p.tenant == nil {
		return nil
	}
	status := reports.ReflectStatus(c.Mapping, p.host, p.tenant)
	current, _ := p.tenant.Object["status"].(kinds.Content)
	if status == nil || kinds.Equal(status, current) || len(status) == 0 && len(current) == 0 {
		return nil
	}
	object := p.tenant.DeepCopy()
	object.SetManagedFields(nil)
	object.Object["status"] = runtime.DeepCopyJSON(status)
	return object
}

// report carries the host's status to the tenant.
func (c *computation) report(p *pair, status *unstructured.Unstructured) {
	step := c.step(p, record.Update, record.Tenant, record.StatusChanged, "the host reports another status")
	was, _ := p.tenant.Object["status"].(kinds.Content)
	is, _ := status.Object["status"].(kinds.Content)
	for _, path := range kinds.Difference(was, is) {
		step.Fields = append(step.Fields, append(kinds.Path{"status"}, path...).String())
	}
	step.Want, step.Have, step.Source, step.Subresource = status, p.tenant, p.host, "status"
	c.plan.Steps = append(c.plan.Steps, step)
}

// parts are what only a subresource may change of a mirror.
func (c *computation) parts(p *pair, tenantMoved bool) []kinds.Part {
	partial, ok := p.kind.(kinds.Partial)
	if !ok || p.authority != policy.ToHost {
		return nil
	}
	var parts []kinds.Part
	for _, part := range partial.Parts(c.Mapping, p.tenant, p.host, tenantMoved) {
		if part.Refusal != nil {
			p.withheld = part.Refusal
		}
		if part.Object != nil {
			parts = append(parts, part)
		}
	}
	return parts
}

// owed decides about a pair in which nothing changed, and whose mirror lacks a part that it is owed until it has it:
// one that is withheld, or was when it was asked for. It returns false where there is none.
func (c *computation) owed(p *pair) bool {
	partial, ok := p.kind.(kinds.Partial)
	if !ok || p.authority != policy.ToHost || !partial.Owed(p.tenant, p.host) {
		return false
	}
	if parts := c.parts(p, false); len(parts) > 0 {
		c.update(p, record.TenantChanged, "its mirror lacks what the tenant asked for before", c.Mapping.Restamp(p.kind, p.host, p.tenant), nil, parts)
		return true
	}
	if p.withheld != nil {
		c.refuse(p, p.withheld)
	}
	return p.withheld != nil
}

// refuse keeps a tenant object, or a part of it, from the host. A mirror that is there stays as it is.
func (c *computation) refuse(p *pair, refusal *kinds.Refusal) {
	c.skip(p, record.Host, record.Rejected, refusal.Message, nil)
	c.plan.Steps[len(c.plan.Steps)-1].Error = refusal.Detail
}

// surround gives Pods what they find around them: the Services of their namespace, and which keys the ConfigMaps and
// Secrets have that their environment is filled from.
func (c *computation) surround() {
	found := map[string][]kinds.ServiceAddress{}
	config := map[[3]string][]string{}
	c.awaited = map[string][]record.Key{}
	c.tokens = map[string]TokenSecret{}
	for _, snapshot := range c.Snapshot.Kinds {
		for _, tokens := range snapshot.Tokens {
			c.tokens[tokens.Name] = tokens
		}
		if snapshot.Resource.APIVersion != "v1" || snapshot.Unavailable != "" {
			continue
		}
		switch snapshot.Resource.Kind {
		case "Service":
			c.findServices(snapshot, found)
		case "ConfigMap", "Secret":
			for _, object := range snapshot.Tenant {
				config[[3]string{snapshot.Resource.Kind, object.GetNamespace(), object.GetName()}] = keysOf(object)
			}
		}
	}
	c.services = found
	c.Mapping.Workloads.Services = func(namespace string) []kinds.ServiceAddress { return found[namespace] }
	c.Mapping.Workloads.Keys = func(kind, namespace, name string) []string { return config[[3]string{kind, namespace, name}] }
}

// findServices finds the Services that have an address on the host, and those that are about to get one.
func (c *computation) findServices(snapshot KindSnapshot, found map[string][]kinds.ServiceAddress) {
	kind := snapshot.kind
	mirrors := map[types.NamespacedName]*unstructured.Unstructured{}
	for _, object := range snapshot.Host {
		if id, owned := c.Mapping.Identify(kind, snapshot.Resource.Kind, object); owned == kinds.Ours {
			mirrors[id] = object
		}
	}
	objects := slices.SortedFunc(slices.Values(snapshot.Tenant), func(a, b *unstructured.Unstructured) int {
		return slices.Compare([]string{a.GetNamespace(), a.GetName()}, []string{b.GetNamespace(), b.GetName()})
	})
	for _, object := range objects {
		if !kinds.Crosses(kind, object) || terminating(object) {
			continue
		}
		address := kinds.AddressOf(object)
		if len(address.Ports) == 0 {
			continue
		}
		namespace := object.GetNamespace()
		if mirror := mirrors[types.NamespacedName{Namespace: namespace, Name: object.GetName()}]; mirror != nil {
			if address.IP = kinds.ClusterIP(mirror); address.IP != "" {
				found[namespace] = append(found[namespace], address)
			}
			continue
		}
		found[namespace] = append(found[namespace], address) // without an IP yet: no variables come of it
		c.awaited[namespace] = append(c.awaited[namespace], record.Key{Kind: "Service", Namespace: namespace, Name: object.GetName()})
	}
}

// completed is the mapping with the addresses that Services were given meanwhile.
func (c *computation) completed(addresses map[string]string) kinds.Mapping {
	mapping := c.Mapping
	mapping.Workloads.Services = func(namespace string) []kinds.ServiceAddress {
		services := slices.Clone(c.services[namespace])
		for i := range services {
			if services[i].IP == "" {
				services[i].IP = addresses[services[i].Name]
			}
		}
		return services
	}
	return mapping
}

func keysOf(object *unstructured.Unstructured) []string {
	var keys []string
	for _, field := range []string{"data", "binaryData"} {
		values, _ := object.Object[field].(kinds.Content)
		keys = slices.AppendSeq(keys, maps.Keys(values))
	}
	return keys
}
