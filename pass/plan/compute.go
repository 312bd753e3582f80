package plan

import (
	"cmp"
	"fmt"
	"slices"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/syncpass/syncpass/pass/kinds"
	"github.com/syncpass/syncpass/record"
)

// Compute plans one pass. The same input gives the same plan, in whatever order the snapshot lists its objects.
func Compute(in Input) *Plan {
	c := newComputation(in)
	c.findNodes()
	for _, snapshot := range c.Snapshot.Kinds {
		c.decideKind(snapshot)
	}
	slices.SortStableFunc(c.plan.Steps, func(a, b Step) int {
		return cmp.Or(
			cmp.Compare(a.Weight, b.Weight), cmp.Compare(a.Kind, b.Kind), cmp.Compare(a.APIVersion, b.APIVersion),
			cmp.Compare(a.TenantNamespace, b.TenantNamespace), cmp.Compare(a.TenantName, b.TenantName),
		)
	})
	c.choose()
	c.guard()
	return c.plan
}

// computation is a plan in the making.
type computation struct {
	Input
	plan *Plan
	// mirrors counts the mirrors on the host, which the guard over deletes takes its share of.
	mirrors int
	// emptied are the kinds that the tenant lists nothing of while the host has many mirrors.
	emptied map[schema.GroupKind]bool
	// past says how the tenant went back in time; empty where it did not, as far as pairs were looked at.
	past string
	// services are the tenant's Services by namespace, sorted by name; awaited those of them that this plan creates.
	services map[string][]kinds.ServiceAddress
	awaited  map[string][]record.Key
	// tokens are the Secrets with Pods' tokens, by name.
	tokens map[string]TokenSecret
	// kinds are the kinds of the policy that something was found to refer to, nil for those that it does not name.
	kinds map[schema.GroupKind]*carried
	nodes nodes
	// later is the Mapping by which the steps make their objects; nil until one needs it.
	later *kinds.Mapping
}

// newComputation is a computation that knows what the policy says about each kind, and what Pods find around them.
func newComputation(in Input) *computation {
	c := &computation{Input: in, plan: &Plan{}, kinds: map[schema.GroupKind]*carried{}}
	c.govern()
	c.surround()
	return c
}

// emptiedFrom is how many mirrors make an empty tenant list suspicious.
const emptiedFrom = 10

func (c *computation) decideKind(snapshot KindSnapshot) {
	group := snapshot.GroupKind()
	whole := &pair{
		kind: snapshot.kind, resource: &snapshot.Resource,
		key: record.Key{Group: group.Group, Kind: group.Kind},
	}
	whole.state = c.History.Get(whole.key)
	if snapshot.Unavailable != "" && !c.chosenKind(group) || c.OnlyResolutions && kinds.IsNode(group) {
		return
	}
	if snapshot.Unavailable != "" {
		c.skip(whole, record.Host, record.KindUnavailable, snapshot.Unavailable+"; nothing of this kind is touched, the other kinds go on", nil)
		c.plan.Steps[len(c.plan.Steps)-1].Error = snapshot.Error
		if kinds.IsNode(group) && len(snapshot.Tenant) > 0 {
			c.renewLeases()
		}
		return
	}
	if refuses, ok := whole.kind.(kinds.Refuses); ok {
		c.skip(whole, record.Host, record.KindUnavailable, refuses.Refused(), nil)
		return
	}
	if terms := c.terms(snapshot.kind, snapshot.Resource); !c.OnlyResolutions && (whole.state.Standing != nil || !sameTerms(whole.state, terms)) {
		c.plan.Kinds = append(c.plan.Kinds, Change{Key: whole.key, State: kindState(terms)})
	}

	if kinds.IsNode(group) {
		c.decideNodes(snapshot)
		return
	}
	if !c.OnlyResolutions {
		c.plan.Unchanged += len(snapshot.Quiet)
	}
	tenants, mirrors := len(snapshot.Quiet), len(snapshot.Quiet)
	pairs := c.pairs(snapshot)
	if snapshot.Quiet == nil && c.Recording && c.History.Count(group.Group, group.Kind) == 0 { // it is about to be made all at once
		c.plan.Steps = slices.Grow(c.plan.Steps, len(pairs))
	}
	for i, p := range pairs {
		pairs[i] = nil // as many as a first pass has are not held to the end of it
		if p.tenant != nil || p.malformed != "" {
			tenants++
		}
		if p.host != nil {
			mirrors++
		}
		c.lookBack(snapshot, p)
		if c.chosen(p.key) {
			c.decideSafely(p, c.decide)
		}
	}
	c.mirrors += mirrors
	if tenants == 0 && mirrors >= emptiedFrom && !snapshot.Retired {
		if c.emptied == nil {
			c.emptied = map[schema.GroupKind]bool{}
		}
		c.emptied[group] = true
	}
}

// kindState is what history keeps of a kind itself when it can be read.
func kindState(terms record.Hash) record.State {
	if terms.IsZero() {
		return record.State{}
	}
	return record.State{Baseline: &record.Baseline{Tenant: record.Version{Hash: terms}}}
}

// decideSafely decides about one pair, and holds it where its content breaks a rule's assumptions: one malformed object
// must not stop the others, nor cost its own mirror.
func (c *computation) decideSafely(p *pair, decide func(*pair)) {
	steps, undecided := len(c.plan.Steps), len(c.plan.Undecided)
	defer func() {
		if cause := recover(); cause != nil {
			c.plan.Steps, c.plan.Undecided = c.plan.Steps[:steps], c.plan.Undecided[:undecided]
			c.malformed(p, fmt.Sprint(cause))
		}
	}()
	decide(p)
}

// malformed holds a pair whose tenant object cannot be understood.
func (c *computation) malformed(p *pair, cause string) {
	c.refuse(p, &kinds.Refusal{Message: "the object is malformed, so neither side is touched; correct it in the tenant", Detail: cause})
}

// skip decides that nothing happens, and why.
func (c *computation) skip(p *pair, side record.Side, reason record.Reason, message string, fields []kinds.Path) {
	step := c.step(p, record.Skip, side, reason, message)
	step.Fields = texts(fields)
	c.plan.Steps = append(c.plan.Steps, step)
}

func (c *computation) step(p *pair, action record.Action, side record.Side, reason record.Reason, message string) Step {
	d := c.decision(p, action, side, reason)
	d.Message = message
	return Step{Decision: d, Key: p.key, Weight: p.kind.Weight(), State: p.state, Rules: p.kind.Rules()}
}

// unchanged counts a pair about which nothing is decided, and keeps what was learned of it.
func (c *computation) unchanged(p *pair, learned *record.Baseline) {
	c.plan.Unchanged++
	next := record.State{Baseline: p.state.Baseline}
	if learned != nil {
		next.Baseline = learned
	}
	switch {
	case !c.Recording:
	case p.settled || p.state.Standing != nil || p.state.Intent != nil || !sameAgreement(p.state.Baseline, next.Baseline):
		c.plan.History = append(c.plan.History, Change{Key: p.key, State: next})
	case next.Baseline != nil && *next.Baseline != *p.state.Baseline:
		c.plan.Refreshed = append(c.plan.Refreshed, Change{Key: p.key, State: next})
	}
}

// forget drops the history of a pair that neither side has any more.
func (c *computation) forget(p *pair) {
	if p.state != (record.State{}) {
		c.plan.History = append(c.plan.History, Change{Key: p.key})
	}
}

// sameAgreement compares baselines but for their resourceVersions.
func sameAgreement(a, b *record.Baseline) bool {
	if a == nil || b == nil {
		return a == b
	}
	return a.Tenant.UID == b.Tenant.UID && a.Host.UID == b.Host.UID && a.Tenant.Hash == b.Tenant.Hash && a.Host.Hash == b.Host.Hash
}

func texts(fields []kinds.Path) []string {
	list := make([]string, 0, len(fields))
	for _, field := range fields {
		list = append(list, field.String())
	}
	return list
}
