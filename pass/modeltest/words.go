package modeltest

import (
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/syncpass/syncpass/pass/kinds"
	"github.com/syncpass/syncpass/record"
)

// settles says whether a write to a side is what a person has said about a pair in conflict: the mirror carried the word
// when the pass saw it, and of a write in the tenant, the pass has taken it off before.
func (p *Pass) settles(pair string, side record.Side) bool {
	said := p.words[pair] == record.Tenant && side == record.Host || p.words[pair] == record.Host && side == record.Tenant && p.taken[pair]
	return said && p.Policy.manual() && (p.bothMoved(pair) || p.inDoubt(pair) || p.Policy.Silent)
}

// takes says whether a write takes a word off a mirror and leaves the content as it is.
func takes(side record.Side, before, after *unstructured.Unstructured) bool {
	if side != record.Host || before == nil || after == nil {
		return false
	}
	was, _ := kinds.Word(before)
	is, _ := kinds.Word(after)
	return was != "" && is == "" && Content(before) == Content(after)
}

// resolvesWhatSomebodySaid: nothing is resolved that nobody resolved.
func (m *Model) resolvesWhatSomebodySaid(p *Pass, d record.Decision) {
	if d.Reason == record.Resolved && p.words[d.TenantName] == "" {
		m.Breaks(ruleWord, "%s of %s", d.Action, d.TenantName)
	}
}

// leavesNoWord: once nobody edits, a mirror carries no word any more, unless its pair is held for another reason than that
// only a person can decide, or cannot be settled so: nothing makes a tenant object match the policy that is there and does not.
func (m *Model) leavesNoWord(pair string, held record.Reason) {
	mirror := m.mirror(pair)
	if mirror == nil || m.Policy.Absent {
		return
	}
	keep, _ := kinds.Word(mirror)
	waits := held == record.Conflict || held == record.NoHistory || held == record.HistoryOff
	leftOut := m.tenant(pair) != nil && !m.Policy.carries(m.tenant(pair))
	if keep != "" && (held == "" || waits && !(leftOut && keep == record.Host)) {
		m.Breaks(ruleWordLeft, "of %s, to keep the %s's", pair, keep)
	}
}
