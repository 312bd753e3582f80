package plan_test

import (
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"pgregory.net/rapid"

	"github.com/syncpass/syncpass/pass/plan"
	"github.com/syncpass/syncpass/record"
)

// fault is what happens to a pass, at one of its writes where that says something.
type fault int

const (
	noFault fault = iota
	crashBeforeReserving
	crashAfterReserving
	crashBeforeWriting
	crashAfterWriting
	crashBeforeRecording
	answerLost   // the write landed, the answer did not arrive
	requestLost  // the write did not land, and that is not known
	userBetween  // a user edits before the write
	passBetween  // another pass takes over before the write; the fence notices
	listUnusable // the list of the tenant fails
	listOld      // the list of the tenant is from some time ago
	faults       // how many there are
)

// command is one thing that happens.
type command struct {
	what  int // below 2: a user edits a side; 2, 3: deletes on one; 4: the history is lost; else a pass
	name  int
	text  int
	fault fault
	at    int
	other int // side of the user's edit in between
}

var (
	texts    = []string{"1", "2", "3"}
	bothSide = []record.Side{record.Tenant, record.Host}
)

func drawCommand(t *rapid.T) command {
	return command{
		what: rapid.SampledFrom([]int{0, 0, 0, 1, 1, 2, 3, 4, 5, 5, 5, 5, 5}).Draw(t, "what"),
		name: rapid.IntRange(0, 1).Draw(t, "name"), text: rapid.IntRange(0, 2).Draw(t, "text"),
		fault: fault(rapid.IntRange(0, int(faults)-1).Draw(t, "fault")), at: rapid.IntRange(0, 1).Draw(t, "at"),
		other: rapid.IntRange(0, 1).Draw(t, "other"),
	}
}

func (m *model) do(c command) {
	switch {
	case c.what < 2:
		m.userEdits(bothSide[c.what], names[c.name], texts[c.text])
	case c.what < 4:
		m.userDeletes(bothSide[c.what-2], names[c.name])
	case c.what == 4:
		m.loseHistory()
	default:
		m.pass(c)
		m.look()
	}
}

// pass is one pass, as package pass makes it, with a fault.
func (m *model) pass(c command) *plan.Plan {
	history, err := record.Decode(m.pages)
	if err != nil {
		m.breaks("P6: %v", err)
		return nil
	}
	history.Rekey(hasher.KeyID())
	loaded := m.version
	in := m.input(history, c.fault == listOld)
	if c.fault == listUnusable {
		in.Snapshot.Kinds[0].Unavailable = "listing it on the tenant failed"
	}
	planned := plan.Compute(in)
	m.note("pass with fault %d: %s", c.fault, outcome(planned))
	m.judgeSkips(planned, in)
	if c.fault == crashBeforeReserving {
		return planned
	}

	learn := func() {
		remember(history, planned.History)
		for _, step := range planned.Steps {
			if step.Intent != nil {
				state := step.State
				state.Intent = step.Intent
				history.Set(step.Key, state)
			}
		}
	}
	if planned.Writes() > 0 {
		learn()
		if !m.swap(loaded, history) {
			return planned
		}
		loaded = m.version
		m.epoch++
		m.learned(planned, in)
	}
	if c.fault == crashAfterReserving {
		return planned
	}
	if !m.write(c, planned, history) || c.fault == crashBeforeRecording {
		return planned
	}
	if planned.Writes() == 0 {
		learn()
	}
	if planned.Writes() == 0 && len(planned.History) == 0 && !changed(planned, history) || !m.swap(loaded, history) {
		return planned
	}
	m.learned(planned, in)
	return planned
}

// changed says whether a skip's intent was settled, which is worth a write.
func changed(planned *plan.Plan, history *record.History) bool {
	for _, step := range planned.Steps {
		if known := history.Get(step.Key); known != step.State {
			history.Set(step.Key, step.State)
			return true
		}
	}
	return false
}

// write carries the steps out. It returns false where the pass breaks off.
func (m *model) write(c command, planned *plan.Plan, history *record.History) bool {
	epoch, fenced := m.epoch, false
	for i, k := 0, 0; i < len(planned.Steps); i++ {
		step := &planned.Steps[i]
		if !step.Writes() {
			continue
		}
		state := record.State{Baseline: step.State.Baseline}
		at := k == c.at
		k++
		if at {
			switch c.fault {
			case crashBeforeWriting:
				return false
			case userBetween:
				m.userEdits(bothSide[c.other], names[c.name], texts[c.text])
			case passBetween:
				m.pass(command{})
				fenced = m.epoch != epoch
			}
		}
		if fenced {
			history.Set(step.Key, state)
			continue
		}
		if at && c.fault == requestLost {
			state.Intent = step.Intent
			history.Set(step.Key, state)
			continue
		}
		object, err := m.carryOut(step)
		if at && c.fault == crashAfterWriting {
			return false
		}
		switch {
		case at && c.fault == answerLost:
			state.Intent = step.Intent
		case err != nil:
		default:
			state = record.State{Baseline: baselineOf(step, object)}
		}
		history.Set(step.Key, state)
	}
	return true
}

func baselineOf(step *plan.Step, written *unstructured.Unstructured) *record.Baseline {
	if written == nil {
		return nil
	}
	w := manual()
	if step.Side == record.Tenant {
		return w.baseline(written, step.Source)
	}
	return w.baseline(step.Source, written)
}

// learned moves the agreements that a swap of the SyncDecision has recorded: both sides were seen to be equal.
func (m *model) learned(planned *plan.Plan, in plan.Input) {
	for _, change := range planned.History {
		name := change.Key.Name
		tenant, host := observed(in, name)
		if tenant != nil && change.State.Baseline != nil && content(tenant) == content(host) {
			m.agree(name, content(tenant), tenant)
		}
	}
	// So has a step that only puts marks right.
	for _, step := range planned.Steps {
		tenant, host := observed(in, step.TenantName)
		if step.Intent != nil && step.Have != nil && content(tenant) == content(host) {
			m.agree(step.TenantName, content(tenant), tenant)
		}
	}
}

// observed is what a pass saw of a pair.
func observed(in plan.Input, name string) (tenant, host *unstructured.Unstructured) {
	for _, object := range in.Snapshot.Kinds[0].Tenant {
		if object.GetName() == name {
			tenant = object
		}
	}
	for _, object := range in.Snapshot.Kinds[0].Host {
		if strings.HasPrefix(object.GetName(), name+"-x-") {
			host = object
		}
	}
	return tenant, host
}

// judgeSkips checks that what a pass holds is in conflict: both sides moved away from what was agreed (P2).
func (m *model) judgeSkips(planned *plan.Plan, in plan.Input) {
	for _, step := range planned.Steps {
		if step.Reason != record.Conflict && step.Reason != record.NoHistory {
			continue
		}
		name := step.TenantName
		tenant, host := observed(in, name)
		agreed, known := m.agreed[name]
		moved := tenant == nil || content(tenant) != agreed.content || tenant.GetUID() != agreed.uid
		if known && !(moved && content(host) != agreed.content) && !m.excused[name] && !m.forgotten[name] {
			m.breaks("P2: %s of %s with tenant %q and host %q, agreed %q", step.Reason, name, content(tenant), content(host), agreed.content)
		}
	}
}

// settle checks that three quiet passes are enough, and that a fourth writes nothing (P3).
func (m *model) settle() {
	for range 2 {
		m.pass(command{})
	}
	before := m.sides()
	last := m.pass(command{})
	held := map[string]bool{}
	for _, step := range last.Steps {
		held[step.TenantName] = true
		if step.Writes() {
			m.breaks("P3: the third quiet pass still writes: %s", outcome(last))
		}
	}
	for _, name := range names {
		tenant, host := content(m.stores[record.Tenant][name]), content(m.stores[record.Host][name])
		if !held[name] && tenant != host {
			m.breaks("P3: %s stays different without a word: tenant %q, host %q", name, tenant, host)
		}
	}
	version := m.version
	m.pass(command{})
	if m.sides() != before || m.version != version {
		m.breaks("P3: the fourth quiet pass writes")
	}
}

// live is one history: what happens, and then quiet.
func live(commands []command) *model {
	m := newModel()
	for _, c := range commands {
		m.do(c)
	}
	m.settle()
	return m
}

// TestModel runs some 2,000 random histories of edits, crashes, lost answers and overlapping passes over the planner,
// and holds them to the promises:
//
//	P1  no write overwrites or deletes what was not agreed on
//	P2  what is held is in conflict, or nobody can tell
//	P3  three quiet passes make both sides agree or name the conflict, and then nothing is written
//	P5  every write goes where the mapping says
//	P6  the history survives packing
//	P7  the same history gives the same trace
//
// For more of them: go test ./pass/plan -run TestModel -rapid.checks=50000
func TestModel(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		for range 20 {
			commands := rapid.SliceOfN(rapid.Custom(drawCommand), 1, 14).Draw(t, "commands")
			m := live(commands)
			if len(m.broken) > 0 {
				t.Fatalf("%v\n%s", m.broken[0], strings.Join(m.trace, "\n"))
			}
			if again := live(commands); strings.Join(m.trace, "\n") != strings.Join(again.trace, "\n") {
				t.Fatalf("P7: the same history gives two traces")
			}
		}
	})
}
