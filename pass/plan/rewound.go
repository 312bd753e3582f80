package plan

import (
	"fmt"

	"k8s.io/apimachinery/pkg/util/resourceversion"

	"github.com/syncpass/syncpass/record"
)

// lookBack notes where a pair shows that the tenant is at an earlier state than one that it was seen in: its store was
// restored from a backup, or a replica answers that lags behind. What it then lacks or has otherwise, nobody deleted or
// changed since. Since Kubernetes 1.35 the resourceVersions of one resource are in order (https://kep.k8s.io/5504); ones
// that are not even numbers are no evidence.
//
// A restore that lets the resourceVersions go on from a higher number, as etcd advises, does not show here: then the
// guard over deletes is the brake.
func (c *computation) lookBack(snapshot KindSnapshot, p *pair) {
	if c.past != "" || snapshot.TenantVersion == "" {
		return
	}
	for _, seen := range tenantSeenAt(p.state) {
		if order, err := resourceversion.CompareResourceVersion(seen, snapshot.TenantVersion); err == nil && order > 0 {
			c.past = fmt.Sprintf("the tenant went back in time: its list of kind %s is at resourceVersion %s, and %s was seen at %s; it was restored from a backup, or an outdated replica answers",
				p.key.Kind, snapshot.TenantVersion, p.key.Namespace+"/"+p.key.Name, seen)
			return
		}
	}
}

// tenantSeenAt are the resourceVersions that a tenant object is known to have had: at the last agreement, and when a pass
// was about to write whose record is missing.
func tenantSeenAt(state record.State) []string {
	var seen []string
	if state.Baseline != nil {
		seen = append(seen, state.Baseline.Tenant.ResourceVersion)
	}
	if state.Intent != nil && state.Intent.Side == record.Tenant {
		seen = append(seen, state.Intent.Target.ResourceVersion)
	} else if state.Intent != nil {
		seen = append(seen, state.Intent.Source.ResourceVersion)
	}
	return seen
}

// acceptRewound takes the tenant's present state for the one to go on from: no baseline keeps a resourceVersion that
// the tenant has yet to reach again. The hashes still tell what changed.
func (c *computation) acceptRewound() {
	c.plan.History = append(c.plan.History, c.plan.Refreshed...)
	c.plan.Refreshed = nil
	for i := range c.plan.Steps {
		step := &c.plan.Steps[i]
		if step.State.Baseline == nil {
			continue
		}
		baseline := *step.State.Baseline
		baseline.Tenant.ResourceVersion = ""
		step.State.Baseline = &baseline
		c.plan.History = append(c.plan.History, Change{Key: step.Key, State: record.State{
			Baseline: step.State.Baseline, Standing: step.State.Standing,
		}})
	}
}
