package plan

import (
	"fmt"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/utils/ptr"

	"github.com/syncpass/syncpass/pass/kinds"
	"github.com/syncpass/syncpass/policy"
	"github.com/syncpass/syncpass/record"
)

// decide follows this table. Each side is compared with its own last content (the baseline), never with the other
// side, because defaults, webhooks and allocators make the two legitimately differ. "Differ" and "agree" are about
// the mirror that we would write. tenant-wins is toHost and host-wins fromHost once both objects are there.
//
//	tenant          host              | toHost    fromHost  bidirectional, manual
//	--------------  ----------------- | --------  --------  ---------------------
//	new             absent            | create    create    create (NoMirror)
//	same            same              | -         -         -
//	changed         same              | push      pull      push   (TenantChanged)
//	same            changed           | push      pull      pull   (HostChanged)
//	changed         changed, agree    | -         -         -, baseline moves
//	changed         changed, differ   | push      pull      Skip Conflict
//	there           no baseline,agree | -         -         -, baseline set
//	there           no baseline,differ| push      pull      Skip NoHistory
//	same, changed   deleted           | create    create    create (MirrorDeleted)
//	deleted         same, no baseline | delete    delete    delete (TenantDeleted)
//	deleted         changed           | delete    delete    Skip Conflict
//	terminating     there             | delete    delete    delete
//	there           terminating       | Skip Terminating in every direction
//	there           not ours          | Skip NotOwned, NameCollision in every direction
func (c *computation) decide(p *pair) {
	c.settle(p)
	switch {
	case p.malformed != "":
		c.malformed(p, p.malformed)
	case p.retired:
		c.retire(p)
	case p.tenant == nil && p.host == nil:
		c.forget(p)
	case p.tenant == nil:
		c.tenantGone(p)
	case terminating(p.tenant):
		c.tenantTerminating(p)
	case p.host == nil:
		c.mirrorGone(p)
	case terminating(p.host):
		if status := c.status(p); status != nil {
			c.report(p, status)
			return
		}
		c.skip(p, record.Host, record.Terminating, "the mirror is being deleted on the host; it is made again once it is gone", nil)
	default:
		c.place(p)
	}
}

func (c *computation) retire(p *pair) {
	if p.host == nil || terminating(p.host) {
		c.forget(p)
		return
	}
	c.delete(p, record.KindRetired, fmt.Sprintf("%s left the policy and SYNCPASS_RETIRE_KINDS is on", p.resource.Kind))
}

// tenantGone lets the mirror follow a tenant object that is gone, or that the policy does not carry any more: what it
// leaves out it knows nothing of, and a mirror that nobody keeps up would be a lie.
func (c *computation) tenantGone(p *pair) {
	hostMoved := p.state.Baseline != nil && c.moved(p, record.Host, p.host, p.state.Baseline)
	gone, again := "deleted in the tenant", "make the tenant object again"
	if p.narrowed {
		gone, again = "no longer matches the policy's selector and namespaces; it stays in the tenant", "let the tenant object match again"
	}
	switch {
	case terminating(p.host):
		c.unchanged(p, nil)
	case hostMoved && p.authority == policy.Bidirectional:
		c.holdGone(p, gone, again)
	case hostMoved && p.authority == policy.FromHost:
		c.delete(p, record.TenantDeleted, gone+"; the mirror had changes on the host that were not carried over yet")
	default:
		c.delete(p, record.TenantDeleted, gone)
	}
}

// tenantTerminating lets the mirror go with the tenant object. What runs ends on the host first, with the grace that the
// tenant asked for; then the tenant object is finished off, since the tenant has no kubelet that would.
func (c *computation) tenantTerminating(p *pair) {
	_, runs := p.kind.(kinds.Runs)
	switch {
	case p.host == nil && runs:
		c.deleteTenant(p, record.TenantDeleted, "its mirror has ended on the host, so the deletion is completed", ptr.To[int64](0))
	case p.host == nil:
		c.unchanged(p, nil)
	case terminating(p.host):
		if status := c.status(p); status != nil {
			c.report(p, status)
			return
		}
		c.unchanged(p, nil)
	default:
		c.delete(p, record.TenantDeleted, "the tenant object is being deleted")
		c.plan.Steps[len(c.plan.Steps)-1].GraceSeconds = p.tenant.GetDeletionGracePeriodSeconds()
	}
}

// deleteTenant removes a tenant object whose life on the host is over.
func (c *computation) deleteTenant(p *pair, reason record.Reason, message string, grace *int64) {
	step := c.step(p, record.Delete, record.Tenant, reason, message)
	step.Have, step.GraceSeconds = p.tenant, grace
	c.plan.Steps = append(c.plan.Steps, step)
}

func (c *computation) delete(p *pair, reason record.Reason, message string) {
	step := c.step(p, record.Delete, record.Host, reason, message)
	step.Have, step.Source = p.host, p.tenant
	c.plan.Steps = append(c.plan.Steps, step)
}

func (c *computation) mirrorGone(p *pair) {
	if p.occupant != nil {
		if p.marked {
			c.skip(p, record.Host, record.NameCollision, "a mirror of another object stands at this name; it is never taken over. See its tenantplane.io annotations", nil)
			return
		}
		c.skip(p, record.Host, record.NotOwned, "an object that is not ours stands at this name; it is never taken over. Rename or delete it, and the mirror is made", nil)
		return
	}
	if runs, ok := p.kind.(kinds.Runs); ok {
		switch {
		case runs.Finished(p.tenant):
			c.unchanged(p, p.state.Baseline)
			return
		case runs.Bound(p.tenant) && hadMirror(p):
			c.deleteTenant(p, record.MirrorDeleted, "its mirror was evicted or deleted on the host, and it is bound to a node; its controller makes another", nil)
			return
		}
	}
	reason, message := record.NoMirror, "has no mirror on the host yet"
	if known := p.state.Baseline; known != nil && known.Tenant.UID == p.tenant.GetUID() {
		reason, message = record.MirrorDeleted, "the mirror was deleted on the host and comes back from the tenant"
	}
	c.create(p, c.step(p, record.Create, record.Host, reason, message))
}

func (c *computation) bothThere(p *pair) {
	if _, runs := p.kind.(kinds.Runs); runs && p.host.GetAnnotations()[kinds.AnnotationVirtualUID] != string(p.tenant.GetUID()) {
		c.delete(p, record.TenantRecreated, "the tenant object was deleted and made again; what ran for the old one ends, and the new one gets a mirror of its own")
		return
	}
	if renewal := c.renewal(p); renewal != nil {
		c.plan.Steps = append(c.plan.Steps, *renewal)
		return
	}
	known := p.state.Baseline
	tenantMoved := known == nil || c.moved(p, record.Tenant, p.tenant, known)
	hostMoved := known == nil || c.moved(p, record.Host, p.host, known)
	p.unrenamed = !tenantMoved && !hostMoved && c.unrenamed(p)
	if !tenantMoved && !hostMoved && !p.unrenamed {
		if !c.stamped(p) {
			c.restamp(p)
			return
		}
		if status := c.status(p); status != nil && !kinds.StatusCounts(p.kind) {
			c.report(p, status)
			return
		}
		if !c.owed(p) {
			c.rest(p, c.refreshed(p))
		}
		return
	}

	tenantMoved = tenantMoved || p.unrenamed
	want := c.Mapping.Project(p.kind, p.tenant, p.host, p.keep)
	difference := c.difference(p, want)
	// Where the outcome hangs on whether the sides agree, a difference that the host's own defaults explain is none.
	hangs := known == nil || tenantMoved && hostMoved && p.authority == policy.Bidirectional
	if len(difference) > 0 && hangs && !p.kind.Verbatim() {
		probe, probed := c.Probes[p.key]
		switch {
		case !probed:
			step := c.step(p, record.Update, record.Host, record.TenantChanged, "")
			step.Want, step.Have = want, p.host
			c.plan.Undecided = append(c.plan.Undecided, step)
		case probe != nil:
			difference = c.difference(p, probe)
		}
	}
	parts := c.parts(p, tenantMoved)
	if len(difference) == 0 && len(parts) == 0 {
		switch status := c.status(p); {
		case !c.stamped(p):
			c.restamp(p)
		case status != nil:
			c.report(p, status)
		case p.withheld != nil:
			c.refuse(p, p.withheld)
		default:
			c.rest(p, c.agreement(p))
		}
		return
	}

	switch p.authority {
	case policy.ToHost:
		reason, message := c.pushReason(p, tenantMoved, hostMoved, difference)
		c.update(p, reason, message, want, difference, parts)
	case policy.FromHost:
		reason, message := pullReason(p, tenantMoved, hostMoved)
		c.pull(p, reason, message)
	default:
		reason, message := c.heldFor(known, tenantMoved && hostMoved)
		switch {
		case reason != "":
			c.hold(p, reason, message, difference, func(said word) string { return c.settleBoth(p, said, want, difference, parts) })
		case tenantMoved:
			c.update(p, record.TenantChanged, p.changed(), want, difference, parts)
		default:
			reason, message = pullReason(p, tenantMoved, hostMoved)
			c.pull(p, reason, message)
		}
	}
}

// pushReason says why the tenant's content is written over a mirror that the tenant is the authority for.
func (c *computation) pushReason(p *pair, tenantMoved, hostMoved bool, difference []kinds.Path) (record.Reason, string) {
	known := p.state.Baseline != nil
	if p.resource.Direction == policy.Bidirectional {
		if known && tenantMoved && !hostMoved {
			return record.TenantChanged, p.changed()
		}
		return record.TenantWins, "the sides differ, and the policy is tenant-wins"
	}
	drifted := hostMoved && !tenantMoved && len(difference) > 0
	if !known {
		// Without a baseline the API server still knows who set the differing fields last, those that there are.
		drifted = false
		for _, path := range difference {
			drifted = drifted || path.At(p.host.Object) != nil && !kinds.ManagedByUs(p.host, path...)
		}
	}
	if drifted {
		return record.HostDrifted, "changed on the host, where the tenant is the authority; repaired"
	}
	return record.TenantChanged, p.changed()
}

// update writes the tenant's content over the mirror.
func (c *computation) update(p *pair, reason record.Reason, message string, want *unstructured.Unstructured, difference []kinds.Path, parts []kinds.Part) {
	step := c.step(p, record.Update, record.Host, reason, message)
	step.Fields = texts(difference)
	step.Have = p.host
	for _, part := range parts {
		step.Fields = append(step.Fields, part.Field)
		step.Then = append(step.Then, Write{Side: record.Host, Subresource: part.Subresource, Object: part.Object})
	}
	if status := c.status(p); status != nil {
		step.Then = append(step.Then, Write{Side: record.Tenant, Subresource: "status", Object: status})
	}
	if why := p.kind.Immutable(p.host.Object, want.Object); why != "" {
		step.Replace = true
		step.Message += "; the mirror is deleted and made again, since " + why
		step.Then = nil
		c.create(p, step)
		return
	}
	// A Pod that is there runs what it runs. The Pods of a template are made anew when it changes.
	if _, runs := p.kind.(kinds.Runs); !runs && c.forbidden(p, want) {
		return
	}
	step.Message += c.dangling(p)
	c.push(p, step, want)
}

// restamp puts a mirror's marks right and leaves its content alone.
func (c *computation) restamp(p *pair) {
	if agreed := c.agreement(p); agreed != nil {
		agreed.Host.ResourceVersion = "" // a pair without its marks is looked at again
		p.state.Baseline = agreed        // whatever becomes of the marks
	}
	step := c.step(p, record.Update, record.Host, record.TenantChanged, "the tenant object was deleted and made again; the mirror's marks follow")
	if p.host.GetAnnotations()[kinds.AnnotationVirtualUID] == string(p.tenant.GetUID()) {
		step.Reason, step.Message = record.HostDrifted, "a mark or the reference to the TenantCluster was removed from the mirror; it comes back"
		if c.takeWord(p) != nil {
			step.Message = wordTaken
		}
	}
	step.Fields = []string{"metadata"}
	step.Have = p.host
	c.push(p, step, c.Mapping.Restamp(p.kind, p.host, p.tenant))
}

// stamped says whether a mirror has all the marks that tie it to its tenant object and keep it inside its tenant.
func (c *computation) stamped(p *pair) bool {
	marks, ok := p.kind.(kinds.Marks)
	return c.Mapping.Stamped(p.host, p.tenant) && (!ok || marks.Marked(c.Mapping, p.tenant, p.host))
}

// push completes a step that writes the host.
func (c *computation) push(p *pair, step Step, want *unstructured.Unstructured) {
	step.Want, step.Source = want, p.tenant
	step.Intent = c.intent(p, record.Host, p.host, p.tenant, want)
	c.plan.Steps = append(c.plan.Steps, step)
}

// pullReason says why the host's content is written over the tenant object.
func pullReason(p *pair, tenantMoved, hostMoved bool) (record.Reason, string) {
	if p.state.Baseline != nil && hostMoved && (!tenantMoved || p.resource.Direction == policy.FromHost) {
		return record.HostChanged, "changed on the host"
	}
	return record.HostWins, "the sides differ, and the host is the authority"
}

// pull writes the host's content over the tenant object.
func (c *computation) pull(p *pair, reason record.Reason, message string) {
	want := c.Mapping.Reflect(p.kind, p.host, p.tenant)
	difference := kinds.Difference(kinds.ContentOf(p.kind, record.Tenant, p.tenant), kinds.ContentOf(p.kind, record.Tenant, want))
	if len(difference) == 0 {
		switch {
		case reason == record.Resolved:
			c.settleNothing(p, message)
		case !c.stamped(p):
			c.restamp(p)
		default:
			c.unchanged(p, c.agreement(p))
		}
		return
	}
	if why := p.kind.Immutable(p.tenant.Object, want.Object); why != "" {
		c.skip(p, record.Tenant, record.Immutable, message+", but "+why+"; delete the tenant object and make it again with the host's content", difference)
		return
	}
	step := c.step(p, record.Update, record.Tenant, reason, message)
	step.Fields = texts(difference)
	step.Want, step.Have, step.Source = want, p.tenant, p.host
	step.Intent = c.intent(p, record.Tenant, p.tenant, p.host, want)
	step.Before = c.takeWord(p)
	c.plan.Steps = append(c.plan.Steps, step)
}
