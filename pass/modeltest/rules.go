package modeltest

import (
	"fmt"
	"reflect"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	"github.com/syncpass/syncpass/pass/kinds"
	"github.com/syncpass/syncpass/record"
)

// equality is that both sides of a pair had the same content.
type equality struct {
	pair         string
	tenant, host types.UID
	content      string
}

// lookForEquality notes where both sides are equal, as they are and as a pass sees them.
func (m *Model) lookForEquality(p *Pass) {
	if p != nil {
		for name, tenant := range p.seen[record.Tenant] {
			if host := p.seen[record.Host][name]; host.content == tenant.content {
				m.equal[equality{name, tenant.uid, host.uid, tenant.content}] = true
			}
		}
		return
	}
	for name := range m.ghosts {
		tenant, host := m.tenant(name), m.mirror(name)
		if tenant != nil && host != nil && Content(tenant) == Content(host) {
			m.learnHash(tenant)
			m.equal[equality{name, tenant.GetUID(), host.GetUID(), Content(tenant)}] = true
		}
	}
}

// learnHash remembers how the content of an object is hashed on either side.
func (m *Model) learnHash(object *unstructured.Unstructured) {
	content := Content(object)
	if _, known := m.hashes[record.Tenant][content]; known {
		return
	}
	bare := &unstructured.Unstructured{Object: map[string]any{"data": object.Object["data"]}}
	if leftOut(object) {
		turnLabel(bare)
	}
	for side, hashes := range m.hashes {
		hashes[content] = m.Hasher.Hash(kinds.ContentOf(kind, side, bare))
	}
}

// agreementOf is the content that a baseline is about; false where there is none or nobody can tell.
func (m *Model) agreementOf(pair string, baseline *record.Baseline) (string, bool) {
	if baseline == nil || baseline.Tenant.Hash.IsZero() || baseline.Host.Hash.IsZero() {
		return "", false
	}
	for content, hash := range m.hashes[record.Tenant] {
		if hash == baseline.Tenant.Hash && m.hashes[record.Host][content] == baseline.Host.Hash &&
			m.equal[equality{pair, baseline.Tenant.UID, baseline.Host.UID, content}] {
			return content, true
		}
	}
	return "", false
}

// The rules, as what they promise.
const (
	ruleContained   = "nothing but the policy's kind, at the mapped names, is ever written"
	ruleUnmanaged   = "nothing unmanaged is ever written"
	ruleLostEdit    = "an edit is never lost silently"
	ruleAuthority   = "the side that the policy names as the winner is never written over"
	ruleFalse       = "what is held is in conflict, or nobody can tell"
	ruleOneDecision = "every object has exactly one decision"
	ruleGuard       = "no pass deletes more than the guard lets through"
	ruleTenant      = "nothing is done for another tenant"
	ruleAgreement   = "the record tells of no agreement that never was"
	ruleEpoch       = "the epoch only rises"
	ruleUnknown     = "of a kind that cannot be read, nothing is touched"
	ruleQuiet       = "two quiet passes are enough, and the next one writes nothing"
	ruleWord        = "nothing is resolved that nobody resolved"
	ruleWordLeft    = "no word lies in wait for a later conflict"
	ruleSame        = "once nobody edits, both sides agree or the pair is named"
)

// judgeWrite is asked about each write of a pass that an API server takes, before it does.
func (m *Model) judgeWrite(p *Pass, action record.Action, side record.Side, before, after *unstructured.Unstructured) {
	object := before
	if object == nil {
		object = after
	}
	pair := m.pairOf(side, object.GetName())
	m.note("    pass %d: %s %s %s: %s → %s", p.number, action, side, object.GetName(), Content(before), Content(after))
	p.writes++
	m.staysContained(p, action, side, pair, object)
	m.writesNothingUnmanaged(side, before)
	m.doesNothingForAnotherTenant(p)
	if pair != "" && before != nil {
		m.losesNoEdit(p, action, side, pair, before, after)
	}
	if action == record.Delete && side == record.Host {
		p.deletes++
		m.deletesWithinTheGuard(p, pair)
	}
}

func (m *Model) pairOf(side record.Side, name string) string {
	if side == record.Host {
		return m.pairs[name]
	}
	if m.ghosts[name] == nil {
		return ""
	}
	return name
}

// staysContained: nothing but the policy's kind, at the mapped names, is ever written; and in the tenant, objects are
// changed and never deleted, and made again only where a person has said so.
func (m *Model) staysContained(p *Pass, action record.Action, side record.Side, pair string, object *unstructured.Unstructured) {
	namespace := hostNamespace
	if side == record.Tenant {
		namespace = tenantNamespace
	}
	retires := p.Policy.Retire && action == record.Delete && side == record.Host
	switch {
	case pair == "", object.GetNamespace() != namespace, object.GroupVersionKind() != ConfigMaps:
		m.Breaks(ruleContained, "%s of %s %s %s/%s", action, side, object.GetKind(), object.GetNamespace(), object.GetName())
	case side == record.Tenant && action != record.Update && !(action == record.Create && p.settles(pair, side)):
		m.Breaks(ruleContained, "%s in the tenant", action)
	case p.Policy.Absent && !retires:
		m.Breaks(ruleContained, "%s of %s, whose kind is not in the policy", action, pair)
	case p.ListFails() && !retires:
		m.Breaks(ruleUnknown, "%s of %s", action, pair)
	}
}

// writesNothingUnmanaged: what passes overwrite or delete on the host was made by a pass, and still carries its mark.
func (m *Model) writesNothingUnmanaged(side record.Side, before *unstructured.Unstructured) {
	if side == record.Host && before != nil && !m.ours(before) {
		m.Breaks(ruleUnmanaged, "%s was written over, which no pass made", before.GetName())
	}
}

// doesNothingForAnotherTenant: a pass that another tenant answers than the one recorded writes nothing, unless a person
// has confirmed.
func (m *Model) doesNothingForAnotherTenant(p *Pass) {
	if p.OtherTenant() && p.Confirmed == "" {
		m.Breaks(ruleTenant, "a write")
	}
}

// losesNoEdit: a write overwrites or deletes what both sides once agreed on, unless the policy names a winner. Where a
// pass could not record an agreement, the one recorded before counts too. That the tenant deleted an object carries over
// where no agreement is known.
func (m *Model) losesNoEdit(p *Pass, action record.Action, side record.Side, pair string, before, after *unstructured.Unstructured) {
	g, was := m.ghosts[pair], Content(before)
	authority := p.Policy.authority()
	settled := p.settles(pair, side)
	switch {
	case action == record.Delete && p.Policy.Absent: // retired
	case action == record.Delete:
		unknown := g.agreed == "" || g.forgotten || g.loose && g.recorded == "" || p.Policy.Silent
		if authority == "" && !unknown && !settled && !g.was(side, was) {
			m.Breaks(ruleLostEdit, "%s of %s deletes %q, which was never agreed on (agreed: %q)", side, pair, was, g.agreed)
		}
		if m.Policy.carries(m.tenant(pair)) && !p.heardGone(pair) {
			m.Breaks(ruleLostEdit, "the mirror of %s is deleted while the tenant has %q", pair, Content(m.tenant(pair)))
		}
	case was == Content(after):
	case authority == side:
		m.Breaks(ruleAuthority, "%s of %s: %q becomes %q", side, pair, was, Content(after))
	case authority == "" && !settled && !g.was(side, was):
		m.Breaks(ruleLostEdit, "%s of %s: %q becomes %q, but was never agreed on (agreed: %q)", side, pair, was, Content(after), g.agreed)
	}
}

// deletesWithinTheGuard: at most half of the mirrors, once ten or more are to go; none where the tenant lists nothing
// while there are ten mirrors; unless a person has confirmed.
func (m *Model) deletesWithinTheGuard(p *Pass, pair string) {
	confirmed := p.Confirmed != ""
	switch {
	case confirmed:
	case p.deletes >= 10 && p.deletes*100 > MaxDeletePercent*p.mirrors:
		m.Breaks(ruleGuard, "%s is the %dth of %d mirrors to be deleted", pair, p.deletes, p.mirrors)
	case len(p.seen[record.Tenant]) == 0 && p.mirrors >= 10 && !p.Policy.Absent:
		m.Breaks(ruleGuard, "%s is deleted for a tenant that lists nothing", pair)
	}
}

// written moves what the model knows after a write.
func (m *Model) written(p *Pass, action record.Action, side record.Side, before, after *unstructured.Unstructured) {
	m.Count.Writes++
	object := before
	if object == nil {
		object = after
	}
	pair := m.pairOf(side, object.GetName())
	g := m.ghosts[pair]
	if g == nil {
		return
	}
	if action == record.Delete {
		*g = ghost{unrecorded: g.unrecorded}
		return
	}
	if takes(side, before, after) {
		p.taken[pair] = true
		return
	}
	tenant, host := p.seen[record.Tenant][pair].uid, p.seen[record.Host][pair].uid
	if side == record.Host {
		host = after.GetUID()
	} else {
		tenant = after.GetUID()
	}
	m.learnHash(after)
	g.agree(Content(after), tenant)
	g.misled = g.misled || p.Policy.Silent && g.unrecorded != ""
	g.loose = g.loose || !p.Policy.manual() || p.Policy.Silent
	m.equal[equality{pair, tenant, host, Content(after)}] = true
}

// judgeRecord is asked about each swap of the SyncDecision, before it happens.
func (m *Model) judgeRecord(p *Pass, history *record.History, epoch int64) {
	if m.state != nil && epoch < m.state.epoch {
		m.Breaks(ruleEpoch, "from %d to %d", m.state.epoch, epoch)
	}
	for name := range m.ghosts {
		baseline := history.Get(key(name)).Baseline
		m.leavesTheOthersHistory(p, name, history)
		if baseline == nil || baseline.Tenant.Hash.IsZero() || baseline.Host.Hash.IsZero() {
			continue
		}
		if _, was := m.agreementOf(name, baseline); !was && !m.ghosts[name].misled {
			m.Breaks(ruleAgreement, "of %s, with %+v", name, *baseline)
		}
	}
	pages, err := history.Encode()
	if err == nil {
		_, err = record.Decode(pages)
	}
	if err != nil {
		m.Breaks("the history survives packing", "%v", err)
	}
}

// leavesTheOthersHistory: what a pass finds of another tenant changes nothing of what is known of the recorded one, unless
// a person has confirmed.
func (m *Model) leavesTheOthersHistory(p *Pass, name string, history *record.History) {
	if !p.OtherTenant() || p.Confirmed != "" || p.known != m.state {
		return
	}
	before, after := m.state.history.Get(key(name)), history.Get(key(name))
	if !reflect.DeepEqual(before.Baseline, after.Baseline) || !reflect.DeepEqual(before.Intent, after.Intent) {
		m.Breaks(ruleTenant, "what is remembered of %s changes", name)
	}
}

// judge is asked about what a pass says of itself.
func (m *Model) judge(p *Pass, report Report) {
	if !report.Decided {
		return
	}
	for _, d := range report.Decisions {
		if d.Action == record.Skip && d.TenantName != "" {
			m.holdsForAReason(p, d)
		}
		m.resolvesWhatSomebodySaid(p, d)
	}
	m.decidesOnce(p, report)
}

// holdsForAReason: a pair is held in conflict where both sides moved away from what was agreed on, for want of a
// recorded agreement where there is none, and for what stands in its place where something does.
func (m *Model) holdsForAReason(p *Pass, d record.Decision) {
	g := m.ghosts[d.TenantName]
	if g == nil {
		m.Breaks(ruleFalse, "%s of %s, which is nowhere", d.Reason, d.TenantName)
		return
	}
	tenant, tenantThere := p.seen[record.Tenant][d.TenantName]
	host, hostThere := p.seen[record.Host][d.TenantName]
	if p.OtherTenant() {
		return // what this pass saw is another tenant
	}
	differ, moved := !tenantThere || !hostThere || tenant.content != host.content, p.bothMoved(d.TenantName)
	holds := true
	switch d.Reason {
	case record.Conflict:
		holds = p.Policy.manual() && differ && (moved || p.inDoubt(d.TenantName))
	case record.NoHistory:
		holds = p.Policy.manual() && differ && (moved || g.agreed == "" || g.forgotten || g.loose || g.excused && g.recorded == "")
	case record.HistoryOff:
		holds = p.Policy.manual() && p.Policy.Silent && differ
	case record.NotOwned, record.NameCollision:
		holds = !hostThere
	case record.GuardTenantIdentity:
		holds = p.OtherTenant() || p.fault.Kind == ListOld || m.wentBack
	case record.GuardMaxDeletes, record.GuardEmptyTenant:
		holds = p.mirrors >= 10
	case record.Raced, record.Rejected, record.NotAttempted:
		holds = p.fault.Kind != NoFault
	default:
		holds = false
	}
	if !holds && !(p.fault.Kind == PassBetween) {
		m.Breaks(ruleFalse, "pass %d: %s of %s with tenant %q and host %q (agreed: %q)", p.number, d.Reason, d.TenantName, tenant.content, host.content, g.agreed)
	}
}

// decidesOnce: each object that a pass sees and that crosses, and each mirror of ours, has one decision or is counted as
// unchanged.
func (m *Model) decidesOnce(p *Pass, report Report) {
	decided := map[string]int{}
	for _, d := range report.Decisions {
		decided[d.TenantName]++
	}
	there := map[string]bool{}
	if p.ListFails() && !(p.Policy.Absent && p.Policy.Retire) || p.Policy.Absent && !p.Policy.Retire {
		// Then the kind as a whole has one decision, or none.
		if report.Unchanged > 0 || len(report.Decisions) > 1 {
			m.Breaks(ruleOneDecision, "%d decisions and %d unchanged about a kind that is not to be looked at", len(report.Decisions), report.Unchanged)
		}
		return
	}
	for name := range p.seen[record.Host] {
		there[name] = true
	}
	if !p.Policy.Absent {
		for name := range p.seen[record.Tenant] {
			there[name] = true
		}
	}
	for name, times := range decided {
		if times > 1 || !there[name] {
			m.Breaks(ruleOneDecision, "%q has %d, and being there is %t", name, times, there[name])
		}
	}
	if len(decided)+report.Unchanged != len(there) {
		m.Breaks(ruleOneDecision, "%d decisions and %d unchanged of %d pairs", len(decided), report.Unchanged, len(there))
	}
}

// judgeQuiet is asked about the third pass after which nothing happened but passes.
func (m *Model) judgeQuiet(p *Pass, report Report) {
	if !report.Decided {
		m.Breaks(ruleQuiet, "the third one did not come to its end: %s", report.Failed)
	}
	if p.writes > 0 || p.records > 0 {
		m.Breaks(ruleQuiet, "the third one made %d writes and %d records", p.writes, p.records)
	}
	held := map[string]record.Reason{}
	for _, d := range report.Decisions {
		if d.Action == record.Skip {
			held[d.TenantName] = d.Reason
		}
	}
	for _, name := range m.names() {
		tenant, host := Content(m.tenant(name)), Content(m.mirror(name))
		if !m.Policy.carries(m.tenant(name)) {
			tenant = Gone
		}
		m.leavesNoWord(name, held[name])
		if m.Policy.Absent || held[name] != "" || tenant == host {
			continue
		}
		m.Breaks(ruleSame, "%s stays different without a word: %s", name, fmt.Sprintf("tenant %q, host %q", tenant, host))
	}
}
