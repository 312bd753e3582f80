package modeltest

import (
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	"github.com/syncpass/syncpass/pass/kinds"
	"github.com/syncpass/syncpass/record"
)

// Pass is a pass on its way.
type Pass struct {
	// Policy is what the pass goes by.
	Policy Policy
	// Confirmed is what a person let through when the pass began.
	Confirmed string

	m        *Model
	fault    Fault
	number   int
	requests int // that change something, so far
	dead     bool
	seen     map[record.Side]map[string]sight
	words    map[string]record.Side // what persons said about pairs, as the pass saw it
	taken    map[string]bool        // whose words the pass has taken off the mirror
	gone     map[string]int         // how many changing requests it had sent when the tenant last said that it has no such object to cross
	known    *state                 // the SyncDecision when the pass began
	mirrors  int
	deletes  int
	writes   int
	records  int
}

// sight is what a pass saw of one side of a pair.
type sight struct {
	content string
	uid     types.UID
}

// Verdict is what becomes of a request.
type Verdict int

// The verdicts.
const (
	// Goes: the request is carried out and answered.
	Goes Verdict = iota
	// Dies: the process is dead before the request, which nobody sends any more.
	Dies
	// Last: the request is carried out, and the process is dead then.
	Last
	// Unanswered: the request is carried out, and the answer is lost.
	Unanswered
	// Lost: the request is lost on its way.
	Lost
	// Denied: the API server refuses the request for a reason of its own, such as a quota.
	Denied
)

// pass lets one pass run.
func (m *Model) pass(fault Fault) (*Pass, Report) {
	m.Count.Passes++
	p := &Pass{
		m: m, Policy: m.Policy, Confirmed: m.Confirmed, fault: fault, number: m.Count.Passes, known: m.state,
		seen: map[record.Side]map[string]sight{record.Tenant: {}, record.Host: {}}, words: map[string]record.Side{}, taken: map[string]bool{}, gone: map[string]int{},
	}
	m.note("pass %d runs%s", p.number, fault)
	report := m.engine(m, p)
	if report.GuardID != "" && !p.OtherTenant() { // no person takes another tenant for the right one
		m.guarded = report.GuardID
	}
	if p.dead {
		m.Count.Crashes++
	}
	m.judge(p, report)
	m.earlier = m.servers[record.Tenant].clone()
	return p, report
}

// Dead says whether the process of the pass has been killed: nothing of it must go on.
func (p *Pass) Dead() bool { return p.dead }

// ListFails says whether the tenant's list cannot be read.
func (p *Pass) ListFails() bool { return p.fault.Kind == ListUnusable }

// OtherTenant says whether another tenant answers than the one recorded. Where none is recorded, nothing could tell, and
// so none does.
func (p *Pass) OtherTenant() bool {
	return p.fault.Kind == WrongTenant && !p.Policy.Silent && p.known != nil && p.known.tenant == tenantUID
}

// TenantUID is the identity of the tenant that answers.
func (p *Pass) TenantUID() string {
	if p.OtherTenant() {
		return otherUID
	}
	return tenantUID
}

// Turn is the moment before the pass looks whether it may still make its next changing request. It may take long.
func (p *Pass) Turn() {
	if p.fault.Kind != PassBetween || p.requests != p.fault.At {
		return
	}
	p.between(p.fault.Before)
	p.m.depth++
	p.m.pass(Fault{})
	p.m.depth--
	p.between(p.fault.After)
}

// Stalls says whether another pass runs at the next Turn.
func (p *Pass) Stalls() bool { return p.fault.Kind == PassBetween && p.requests == p.fault.At }

// First says whether the pass has sent no changing request yet.
func (p *Pass) First() bool { return p.requests == 0 }

// Arrives says what becomes of the changing request that is sent now. The pass must ask for each, once.
func (p *Pass) Arrives() Verdict {
	at := p.requests == p.fault.At
	p.requests++
	switch {
	case p.dead:
		return Dies
	case !at:
		return Goes
	}
	switch p.fault.Kind {
	case CrashBefore:
		p.dead = true
		return Dies
	case CrashAfter:
		p.dead = true
		return Last
	case AnswerLost:
		return Unanswered
	case RequestLost:
		return Lost
	case Refused:
		return Denied
	case PeopleBetween:
		p.between(p.fault.Before)
	}
	return Goes
}

func (p *Pass) between(commands []Command) {
	p.m.depth++
	for _, c := range commands {
		if p.m.people(c) {
			p.m.note("%s", c)
		}
	}
	p.m.depth--
	p.m.lookForEquality(nil)
}

// saw notes what a pass reads.
func (p *Pass) saw(side record.Side, list []*unstructured.Unstructured) {
	p.seen[side] = map[string]sight{}
	for _, object := range list {
		p.note(side, object)
	}
	if side == record.Host {
		p.mirrors = len(p.seen[side])
	}
	p.m.lookForEquality(p)
}

// sawAgain notes what a pass reads of one object after the list. What it reads once it has begun to write is not what its
// plan is made of.
func (p *Pass) sawAgain(side record.Side, object *unstructured.Unstructured) {
	if p.seen[side] == nil || p.records > 0 {
		return
	}
	p.note(side, object)
	p.m.lookForEquality(p)
}

// asked notes what the tenant answered about one object.
func (p *Pass) asked(name string, object *unstructured.Unstructured) {
	delete(p.gone, name)
	if !p.Policy.carries(object) {
		p.gone[name] = p.requests
	}
}

// heardGone says whether the tenant has answered that it has no such object to cross, and the pass has done nothing else
// between that and the request that it sends now. Two servers take no request together: later, no pass can know.
func (p *Pass) heardGone(name string) bool {
	requests, heard := p.gone[name]
	return heard && requests >= p.requests-1
}

// missed notes that an object which the list had is gone.
func (p *Pass) missed(side record.Side, name string) {
	if p.seen[side] == nil || p.records > 0 {
		return
	}
	if side == record.Host {
		name = p.m.pairs[name]
	}
	delete(p.seen[side], name)
}

func (p *Pass) note(side record.Side, object *unstructured.Unstructured) {
	pair := object.GetName()
	if side == record.Host {
		if !p.m.ours(object) {
			return
		}
		pair = p.m.pairs[object.GetName()]
		p.words[pair], _ = kinds.Word(object)
	} else if !p.Policy.carries(object) {
		delete(p.seen[side], pair) // an old list may have had it as one that crosses
		return
	}
	p.seen[side][pair] = sight{Content(object), object.GetUID()}
	p.m.learnHash(object)
}

// Recorded stores the SyncDecision as a pass swaps it: its history, its epoch, the tenant that it belongs to, and
// whatever else the engine keeps there.
func (m *Model) Recorded(p *Pass, history *record.History, epoch int64, tenant string, opaque any) {
	p.records++
	m.judgeRecord(p, history, epoch)
	m.state = &state{history: history.Clone(), epoch: epoch, tenant: tenant, opaque: opaque}
	for _, name := range m.names() {
		g := m.ghosts[name]
		remembered := history.Get(key(name))
		g.unrecorded = ""
		g.excused = g.excused || remembered.Intent == nil && p.leftNoTrace(name)
		if remembered.Intent != nil {
			g.unrecorded = remembered.Intent.Side
		}
		content, known := m.agreementOf(name, remembered.Baseline)
		if !known {
			continue
		}
		g.recorded = content
		tenant, host := p.seen[record.Tenant][name], p.seen[record.Host][name]
		if tenant.content == content && host.content == content && tenant.uid == remembered.Baseline.Tenant.UID && host.uid == remembered.Baseline.Host.UID {
			g.agree(content, tenant.uid)
		}
		if mirror := m.mirror(name); g.recorded == g.agreed && remembered.Baseline.Tenant.UID == g.uid && mirror != nil && remembered.Baseline.Host.UID == mirror.GetUID() {
			g.loose = false
		}
	}
}

func key(name string) record.Key {
	return record.Key{Kind: ConfigMaps.Kind, Namespace: tenantNamespace, Name: name}
}

// settle lets nothing happen any more but passes: two are enough to make both sides agree, or to name what they cannot
// decide, and the next one writes nothing.
func (m *Model) settle() {
	m.note("nobody edits any more")
	m.pass(Fault{})
	m.pass(Fault{})
	p, report := m.pass(Fault{})
	m.judgeQuiet(p, report)
}
