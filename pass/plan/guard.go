package plan

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"

	"github.com/syncpass/syncpass/pass/kinds"
	"github.com/syncpass/syncpass/record"
)

// judgedFrom is how many planned deletes the guard over deletes starts to judge at: below that a share says little.
const judgedFrom = 10

// guard withholds what a broken view could have planned: everything where another tenant answers than the one recorded, or
// an earlier state of it, the deletes of a kind that the tenant suddenly lists nothing of, all deletes where they are too
// many. A person lets exactly the withheld plan through by its ID.
func (c *computation) guard() {
	reason, withheld := c.judge()
	id := c.guardID(withheld)
	confirmed := len(withheld) > 0 && id == c.Confirmed
	if c.past != "" && (len(withheld) == 0 || confirmed) {
		c.acceptRewound()
	}
	if confirmed {
		return
	}
	if c.otherTenant() || c.past != "" && len(withheld) > 0 {
		// What another tenant looks like says nothing about the pairs of the recorded one.
		c.plan.OtherTenant, c.plan.History, c.plan.Refreshed, c.plan.Leases = true, nil, nil, nil
	}
	if len(withheld) == 0 {
		return
	}
	c.plan.GuardID = id
	how := fmt.Sprintf("if it is right, let exactly this plan through: kubectl annotate -n %s tenantcluster %s --overwrite %s=%s",
		c.Mapping.HostNamespace, c.Mapping.Tenant, kinds.AnnotationConfirmDeletes, id)
	for _, i := range withheld {
		step := &c.plan.Steps[i]
		step.Message = fmt.Sprintf("%s (%s) withheld: %s; %s", step.Action, step.Reason, c.cause(reason[i]), how)
		step.Action, step.Reason = record.Skip, reason[i]
		step.Want, step.Complete, step.Intent = nil, nil, nil
	}
	c.plan.GuardMessage = fmt.Sprintf("%d changes withheld: %s; %s", len(withheld), c.cause(reason[withheld[0]]), how)
}

// judge names the steps to be withheld, by their index, and the guard that withholds each.
func (c *computation) judge() (map[int]record.Reason, []int) {
	reasons := map[int]record.Reason{}
	deletes := 0
	for i := range c.plan.Steps {
		// A stub Node that is deleted has no Pod on it by three accounts, the last of them asked right before, and is made
		// again with the next Pod; so the guards over deletes do not count it.
		if step := &c.plan.Steps[i]; step.Action == record.Delete && !step.OfNode() {
			deletes++
		}
	}
	tooMany := deletes >= judgedFrom && deletes*100 > c.MaxDeletePercent*c.mirrors
	var withheld []int
	for i := range c.plan.Steps {
		step := &c.plan.Steps[i]
		switch {
		case !step.Writes():
			continue
		case c.otherTenant(), c.past != "":
			reasons[i] = record.GuardTenantIdentity
		case step.Action != record.Delete, step.OfNode():
			continue
		case c.emptied[step.Key.GroupKind()]:
			reasons[i] = record.GuardEmptyTenant
		case tooMany:
			reasons[i] = record.GuardMaxDeletes
		default:
			continue
		}
		withheld = append(withheld, i)
	}
	return reasons, withheld
}

// otherTenant says that the tenant which answers is not the one that the history belongs to.
func (c *computation) otherTenant() bool {
	return c.RecordedTenantUID != "" && c.RecordedTenantUID != c.Snapshot.TenantUID
}

func (c *computation) cause(reason record.Reason) string {
	switch reason {
	case record.GuardTenantIdentity:
		if !c.otherTenant() {
			return c.past
		}
		return fmt.Sprintf("another tenant answers behind the kubeconfig: kube-system has UID %q, recorded is %q", c.Snapshot.TenantUID, c.RecordedTenantUID)
	case record.GuardEmptyTenant:
		return fmt.Sprintf("the tenant lists no object of this kind that the policy carries while the host has %d or more mirrors", emptiedFrom)
	default:
		return fmt.Sprintf("the plan deletes more than %d %% of the %d mirrors", c.MaxDeletePercent, c.mirrors)
	}
}

// guardID is a hash over what is withheld: the tenant that answered, and each object by side, kind, name and UID. A
// plan that would delete anything else has another ID.
func (c *computation) guardID(withheld []int) string {
	hash := sha256.New()
	write := func(parts ...string) {
		for _, part := range parts {
			fmt.Fprintf(hash, "%d:%s", len(part), part)
		}
	}
	write(c.Snapshot.TenantUID)
	for _, i := range withheld {
		step := &c.plan.Steps[i]
		write(string(step.Action), string(step.Side), step.Key.Group, step.Key.Kind, step.Key.Namespace, step.Key.Name)
		if step.Have != nil {
			write(string(step.Have.GetUID()))
		}
	}
	return hex.EncodeToString(hash.Sum(nil))[:16]
}
