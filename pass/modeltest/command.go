package modeltest

import (
	"fmt"
	"strings"

	"pgregory.net/rapid"

	"github.com/syncpass/syncpass/policy"
	"github.com/syncpass/syncpass/record"
)

// What is what happens.
type What int

// What can happen, the simple before the odd: a failing history shrinks towards the front.
const (
	Nothing What = iota
	APass
	Edits
	Deletes
	LosesRecord
	LabelsOut
	Strips
	Occupies
	Copies
	BacksUp
	Restores
	RestoresAhead
	Rebuilds
	ChangesPolicy
	Confirms
	Herds
	Thins
	Resolves
)

// Command is one thing that happens.
type Command struct {
	What What
	Side record.Side
	Pair string
	Text string
	// Fault is what goes wrong with a pass.
	Fault Fault
	// Policy is the new one.
	Policy Policy
	// Many is how many of the herd are deleted.
	Many int
}

// FaultKind is what goes wrong with a pass.
type FaultKind int

// The faults, at one of the changing requests of a pass where that says something.
const (
	NoFault FaultKind = iota
	CrashBefore
	CrashAfter
	AnswerLost
	RequestLost
	Refused
	PeopleBetween
	PassBetween
	ListUnusable
	ListOld
	WrongTenant
)

// Fault is what goes wrong with a pass. The requests that change something are counted from 0; the first of a pass that
// writes reserves, the last records.
type Fault struct {
	Kind FaultKind
	At   int
	// Before and After are what people do, before and after the pass that comes between.
	Before, After []Command
}

func (f Fault) String() string {
	switch f.Kind {
	case CrashBefore:
		return fmt.Sprintf(", and is killed before write %d", f.At)
	case CrashAfter:
		return fmt.Sprintf(", and is killed after write %d", f.At)
	case AnswerLost:
		return fmt.Sprintf(", and the answer to write %d is lost", f.At)
	case RequestLost:
		return fmt.Sprintf(", and write %d is lost on its way", f.At)
	case Refused:
		return fmt.Sprintf(", and write %d is refused", f.At)
	case PeopleBetween:
		return fmt.Sprintf(", and people are quicker than write %d", f.At)
	case PassBetween:
		return fmt.Sprintf(", and stands still before write %d while another pass takes over", f.At)
	case ListUnusable:
		return ", and the tenant's list cannot be read"
	case ListOld:
		return ", and the tenant's list is an old one"
	case WrongTenant:
		return ", and the kubeconfig leads to another tenant"
	}
	return ""
}

// GoString is how a failing test prints a drawn command.
func (c Command) GoString() string { return c.String() }

func (c Command) String() string {
	switch c.What {
	case Nothing:
		return "nothing happens"
	case Edits:
		return fmt.Sprintf("the %s edits %s := %s", c.Side, c.Pair, c.Text)
	case Deletes:
		return fmt.Sprintf("the %s deletes %s", c.Side, c.Pair)
	case LosesRecord:
		return "the SyncDecision is deleted"
	case LabelsOut:
		return fmt.Sprintf("the tenant turns the label sync=no of %s on or off", c.Pair)
	case Strips:
		return fmt.Sprintf("the host takes the mark off the mirror of %s", c.Pair)
	case Occupies:
		return fmt.Sprintf("the host makes an object of its own where the mirror of %s belongs", c.Pair)
	case Copies:
		return fmt.Sprintf("the host copies the mirror of %s, marks and all", c.Pair)
	case BacksUp:
		return fmt.Sprintf("the %s is backed up", c.Side)
	case Restores:
		return fmt.Sprintf("the %s is restored from its backup, resourceVersions and all", c.Side)
	case RestoresAhead:
		return fmt.Sprintf("the %s is restored from its backup, with resourceVersions that go on", c.Side)
	case Rebuilds:
		return "the tenant's objects are made anew from a backup, with other UIDs"
	case ChangesPolicy:
		return "the policy becomes " + c.Policy.String()
	case Confirms:
		return "a person confirms what the guard withheld last"
	case Resolves:
		edit := ""
		if c.Text != "" {
			edit = ", and edits it := " + c.Text
		}
		return fmt.Sprintf("a person annotates the mirror of %s to keep the %s's content%s", c.Pair, c.Side, edit)
	case Herds:
		return fmt.Sprintf("the tenant makes %d objects", herdSize)
	case Thins:
		return fmt.Sprintf("the tenant deletes %d of the %d objects", c.Many, herdSize)
	}
	return "a pass runs" + c.Fault.String()
}

func (p Policy) String() string {
	words := []string{string(p.Direction)}
	if p.Direction == policy.Bidirectional {
		words = append(words, string(p.Conflict))
	}
	for _, flag := range []struct {
		is   bool
		says string
	}{
		{p.Absent, "without the kind"}, {p.Retire, "retiring kinds"}, {p.Silent, "recording nothing"}, {p.Selecting, "leaving out sync=no"},
	} {
		if flag.is {
			words = append(words, flag.says)
		}
	}
	return strings.Join(words, ", ")
}

// rapid prefers what stands at the front of a list, and shrinks towards it; so lists begin with what says least, and mix
// what follows. usual are the commands of every history, as often as they come; unusual those of the histories in which
// more is at stake, eight times among the others.
var (
	usual = []What{
		Nothing, Edits, APass, Edits, APass, Deletes, Edits, APass, APass, Edits, Deletes, APass, Edits, APass, APass, Edits, Edits,
	}
	unusual = [][]What{
		{LosesRecord},
		{Resolves},
		{LabelsOut, ChangesPolicy},
		{Resolves, Edits, Resolves, ChangesPolicy, LosesRecord, Resolves, BacksUp, Restores},
		{ChangesPolicy},
		{Strips, Occupies, Copies},
		{BacksUp, Restores, RestoresAhead, Rebuilds},
		{LosesRecord, BacksUp, Restores, ChangesPolicy},
		{Herds, Thins, Confirms},
		{Herds, Thins, Confirms, LabelsOut, ChangesPolicy, BacksUp, Restores, LosesRecord},
	}
	faults = []FaultKind{
		NoFault, CrashAfter, PeopleBetween, NoFault, CrashBefore, AnswerLost, NoFault, PassBetween, NoFault, RequestLost, CrashAfter, NoFault,
		CrashBefore, PassBetween, AnswerLost, ListOld, Refused, ListUnusable, WrongTenant,
	}
	sides = []record.Side{record.Tenant, record.Host}
	texts = []string{"1", "2", "3"}
)

// Histories draws histories, in which passes fail in all ways, or only in those given.
func Histories(ways ...FaultKind) *rapid.Generator[[]Command] {
	if len(ways) == 0 {
		ways = faults
	}
	return rapid.Custom(func(t *rapid.T) []Command {
		odd := rapid.IntRange(0, 2*len(unusual)).Draw(t, "odd")
		var all []What
		for i, what := range usual {
			if all = append(all, what); odd > 0 && i%2 == 1 {
				these := unusual[odd%len(unusual)]
				all = append(all, these[i/2%len(these)])
			}
		}
		return rapid.SliceOfN(rapid.Custom(func(t *rapid.T) Command {
			return drawCommand(t, rapid.SampledFrom(all).Draw(t, "what"), ways)
		}), 10, 24).Draw(t, "history")
	})
}

func drawCommand(t *rapid.T, what What, ways []FaultKind) Command {
	c := Command{What: what}
	switch what {
	case APass:
		c.Fault = drawFault(t, ways)
	case ChangesPolicy:
		c.Policy = drawPolicy(t)
	case Thins:
		c.Many = rapid.IntRange(1, herdSize).Draw(t, "many")
	case BacksUp, Restores, RestoresAhead:
		c.Side = rapid.SampledFrom(sides).Draw(t, "side")
	case Nothing, LosesRecord, Rebuilds, Confirms, Herds:
	default:
		c.Pair = rapid.SampledFrom(pairNames).Draw(t, "pair")
		c.Side = record.Host
		if what == LabelsOut {
			c.Side = record.Tenant
		}
		if what == Edits || what == Deletes || what == Resolves {
			c.Side = rapid.SampledFrom(sides).Draw(t, "side")
		}
		if what == Edits || what == Resolves && rapid.Bool().Draw(t, "edits") {
			c.Text = rapid.SampledFrom(texts).Draw(t, "text")
		}
	}
	return c
}

func drawFault(t *rapid.T, ways []FaultKind) Fault {
	f := Fault{Kind: rapid.SampledFrom(ways).Draw(t, "fault")}
	if f.Kind == NoFault || f.Kind >= ListUnusable {
		return f
	}
	f.At = rapid.IntRange(0, 4).Draw(t, "at")
	if f.Kind < PeopleBetween {
		return f
	}
	f.Before = drawPeople(t)
	if f.Kind == PassBetween {
		f.After = drawPeople(t)
	}
	return f
}

// drawPeople is what people do in the middle of a pass.
func drawPeople(t *rapid.T) []Command {
	return rapid.SliceOfN(rapid.Custom(func(t *rapid.T) Command {
		return drawCommand(t, rapid.SampledFrom([]What{Edits, Edits, Edits, Deletes, Resolves}).Draw(t, "what"), nil)
	}), 0, 2).Draw(t, "people")
}

func drawPolicy(t *rapid.T) Policy {
	rarely := func(name string) bool { return rapid.IntRange(0, 4).Draw(t, name) == 4 }
	return Policy{
		Direction: rapid.SampledFrom([]policy.Direction{policy.Bidirectional, policy.Bidirectional, policy.Bidirectional, policy.ToHost, policy.FromHost}).Draw(t, "direction"),
		Conflict:  rapid.SampledFrom([]policy.ConflictPolicy{policy.Manual, policy.Manual, policy.TenantWins, policy.HostWins}).Draw(t, "conflict"),
		Absent:    rarely("absent"), Retire: rarely("retire"), Silent: rarely("silent"), Selecting: rapid.Bool().Draw(t, "selecting"),
	}
}
