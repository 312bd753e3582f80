package plan

import (
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/syncpass/syncpass/pass/kinds"
	"github.com/syncpass/syncpass/record"
)

// Resolution is a person's word about the conflict of one pair.
type Resolution struct {
	// Keep is the side whose content, or whose lack of an object, is to stay.
	Keep record.Side
	// Tenant and Host are the two sides as the person saw them, nil where there was no object. The word is about these two
	// alone: where a UID or a content is another by now, nothing is done.
	Tenant, Host *record.Version
	// By is who said so; Why is the reason given, which may be empty.
	By, Why string
}

// word is what a person said about the pair at hand.
type word struct {
	// keep is empty where nobody said anything that can be done; then note is the cause, for the beginning of a message,
	// where no table cuts it off, and fields are the places at fault.
	keep   record.Side
	note   string
	fields []kinds.Path
	// said is who said so and why, in the middle of a sentence.
	said string
}

// hold leaves a pair alone about which only a person can decide, or has settle do what a person has said. settle returns
// why it cannot, where it takes no step.
//
//	what a person said                                        | then
//	--------------------------------------------------------  | ----
//	nothing                                                   | Skip
//	in the input, about the two contents that are there       | the side is kept (Resolved)
//	in the input, about others                                | Skip
//	tenantplane.io/resolve on the mirror: tenant or host      | the side is kept (Resolved), and the annotation taken off
//	tenantplane.io/resolve on the mirror: anything else       | Skip, and the value is named
func (c *computation) hold(p *pair, reason record.Reason, message string, fields []kinds.Path, settle func(word) string) {
	first := len(c.plan.Steps)
	said := c.word(p)
	if said.keep != "" {
		said.note = settle(said)
	}
	if len(c.plan.Steps) == first {
		if said.note != "" {
			message = said.note + "; " + message
		}
		c.skip(p, record.Host, reason, message, slices.Concat(fields, said.fields))
	}
	for i := range c.plan.Steps[first:] {
		c.plan.Steps[first+i].Held = reason
	}
}

// word looks for what a person said about a pair: in the input first, then on the mirror.
func (c *computation) word(p *pair) word {
	if r, given := c.Resolutions[p.key]; given {
		if !c.sees(p, r) {
			return word{note: "somebody changed it since it was shown, so nothing was written: look again"}
		}
		return word{keep: r.Keep, said: saidBy(r.By, r.Why)}
	}
	if p.host == nil {
		return word{}
	}
	keep, unknown := kinds.Word(p.host)
	if unknown != "" {
		return word{
			note:   fmt.Sprintf("the annotation %s on the mirror says %q, and only tenant and host mean anything there", kinds.AnnotationResolve, unknown),
			fields: []kinds.Path{{"metadata", "annotations", kinds.AnnotationResolve}},
		}
	}
	by := "the annotation " + kinds.AnnotationResolve + " on the mirror"
	if manager := kinds.WordBy(p.host); manager != "" {
		by += " (" + plain(manager) + ")"
	}
	return word{keep: keep, said: saidBy(by, "")}
}

func saidBy(by, why string) string {
	if why == "" {
		return "as " + by + " says"
	}
	return "as " + by + " says: " + strings.TrimSpace(why)
}

// sees says whether a pair is still as the person saw it.
func (c *computation) sees(p *pair, r Resolution) bool {
	same := func(side record.Side, object *unstructured.Unstructured, seen *record.Version) bool {
		if object == nil || seen == nil {
			return object == nil && seen == nil
		}
		return object.GetUID() == seen.UID && c.hash(p, side, object) == seen.Hash
	}
	return same(record.Tenant, p.tenant, r.Tenant) && same(record.Host, p.host, r.Host)
}

// wordTaken is why a mirror is written that a person has said something about without need.
const wordTaken = "the annotation " + kinds.AnnotationResolve + " says how to settle a conflict, and there is none; it is taken off the mirror"

// orSettle is what a person can do besides.
const orSettle = "; or say which to keep, by `runner resolve` or by " + kinds.AnnotationResolve + "=tenant or =host on the mirror"

// heldFor is why nobody but a person can decide about a pair whose sides differ and both count; empty where the history tells.
func (c *computation) heldFor(known *record.Baseline, bothMoved bool) (record.Reason, string) {
	switch {
	case known == nil && !c.Recording:
		return record.HistoryOff, "the sides differ, and with explain.recordDecisions off nothing tells which one changed; make them equal" + orSettle
	case known == nil:
		return record.NoHistory, "the sides differ and no agreement is recorded that tells which one changed; make them equal, and it clears itself" + orSettle
	case bothMoved:
		return record.Conflict, "both sides changed since they last agreed, and neither is touched; make them equal, and it clears itself" + orSettle
	}
	return "", ""
}

// settleBoth does what a person said about a pair whose sides differ.
func (c *computation) settleBoth(p *pair, said word, want *unstructured.Unstructured, difference []kinds.Path, parts []kinds.Part) (cannot string) {
	if said.keep == record.Tenant {
		c.update(p, record.Resolved, "the tenant's content is kept, "+said.said, want, difference, parts)
	} else {
		c.pull(p, record.Resolved, "the host's content is kept, "+said.said)
	}
	return ""
}

// settleNothing is for a pair whose tenant object has all that the host's content means there already: that is what both
// agree on from now on.
func (c *computation) settleNothing(p *pair, message string) {
	c.restamp(p)
	step := &c.plan.Steps[len(c.plan.Steps)-1]
	step.Reason, step.Message = record.Resolved, message
}

// holdGone is hold for a mirror that was changed on the host while its tenant object went.
func (c *computation) holdGone(p *pair, gone, again string) {
	message := gone + ", and the mirror was changed on the host, so that stays. Delete it, or " + again + orSettle
	c.hold(p, record.Conflict, message, nil, func(said word) string { return c.settleGone(p, gone, said) })
}

// settleGone does what a person said about such a mirror.
func (c *computation) settleGone(p *pair, gone string, said word) (cannot string) {
	switch {
	case said.keep == record.Tenant:
		c.delete(p, record.Resolved, gone+", and that is kept, "+said.said)
	case p.narrowed:
		return "the host's content cannot be kept, since the tenant object is there and the policy leaves it out"
	default:
		c.makeAgain(p, "the host's content is kept, and the tenant object made again, "+said.said)
	}
	return ""
}

// makeAgain makes the tenant object of a mirror, which no pass does unless a person has said so.
func (c *computation) makeAgain(p *pair, message string) {
	absent := &unstructured.Unstructured{Object: kinds.Content{}}
	absent.SetAPIVersion(p.resource.APIVersion)
	absent.SetKind(p.resource.Kind)
	absent.SetNamespace(p.key.Namespace)
	absent.SetName(p.key.Name)
	step := c.step(p, record.Create, record.Tenant, record.Resolved, message)
	step.Want, step.Source = c.Mapping.Reflect(p.kind, p.host, absent), p.host
	step.Intent = c.intent(p, record.Tenant, nil, p.host, step.Want)
	step.Before = c.takeWord(p)
	c.plan.Steps = append(c.plan.Steps, step)
}

// takeWord is the write that takes a person's word off a mirror; nil where there is none. It goes before a write in the
// tenant, and only if the mirror is still as it was read: so a word is carried out once at most, about what the pass saw,
// and a pass that dies in between has settled nothing. What is written to the mirror itself takes the word along.
func (c *computation) takeWord(p *pair) *Write {
	if keep, _ := kinds.Word(p.host); keep == "" {
		return nil
	}
	return &Write{Side: record.Host, Object: kinds.WithoutWord(p.host)}
}

// chosen says whether a pair is one that this plan is about.
func (c *computation) chosen(key record.Key) bool {
	if !c.OnlyResolutions {
		return true
	}
	_, given := c.Resolutions[key]
	return given
}

// chosenKind says whether it is about any pair of a kind.
func (c *computation) chosenKind(kind schema.GroupKind) bool {
	for key := range c.Resolutions {
		if key.GroupKind() == kind {
			return true
		}
	}
	return !c.OnlyResolutions
}

// choose withholds what a plan about resolutions alone has come to that is none: what a pass would do about the pair, which
// is no longer in conflict.
func (c *computation) choose() {
	for i := range c.plan.Steps {
		step := &c.plan.Steps[i]
		if !c.OnlyResolutions || !step.Writes() || step.Reason == record.Resolved {
			continue
		}
		step.Message = fmt.Sprintf("it is no longer in conflict, so nothing was written: look again. The next pass does it: %s (%s), %s", step.Action, step.Reason, step.Message)
		step.Action, step.Reason = record.Skip, record.Raced
		step.Want, step.Intent = nil, nil
	}
}
