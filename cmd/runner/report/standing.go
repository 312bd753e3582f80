package report

import (
	"fmt"
	"strings"
	"time"

	"github.com/syncpass/syncpass/pass/kinds"
	"github.com/syncpass/syncpass/record"
)

// table is a list that is cut.
type table struct {
	Rows []held
	// Count is how many there are, More how many of them are not among the rows.
	Count, More int
}

func (t *table) add(h held) {
	t.Count++
	if len(t.Rows) < maxRows {
		t.Rows = append(t.Rows, h)
	} else {
		t.More++
	}
}

// missing says how many rows are; only where some are.
func (t table) missing() string { return fmt.Sprintf("%d more of %d are not shown.", t.More, t.Count) }

// held is one skip that stands.
type held struct {
	// Kind is Kind.group; Object is the tenant's namespace/name, empty where the whole kind is meant; Mirror the host's.
	Kind, Object, Mirror string
	Reason               string
	Since                moment
	// Fields are paths, never values.
	Fields []string
	// Message and Error are empty where the trail has lost the entry.
	Message, Error string
	// Keep are the commands that settle a conflict, one for each side. None: its names are no words for a shell.
	Keep []string
}

// standing are the skips that stand, by what a person has to do about them.
type standing struct {
	conflicts, errors, others table
	withheld                  []held
}

// about finds the entry of a standing skip.
type about struct {
	key    record.Key
	reason record.Reason
}

func standingOf(t Tenant, in Input) standing {
	// Of several entries of a skip the newest counts; they are oldest first.
	entries := map[about]record.Entry{}
	for _, e := range t.Status.Entries {
		if e.Action == record.Skip {
			entries[about{recorded(e.Key()), e.Reason}] = e
		}
	}
	var s standing
	for key, state := range t.History.All() {
		if state.Standing == nil {
			continue
		}
		entry := entries[about{recorded(key), state.Standing.Reason}]
		h := heldOf(key, *state.Standing, entry, in.Now)
		switch {
		case isConflict(state.Standing.Reason):
			h.Keep = keep(in.Command, t, key)
			s.conflicts.add(h)
		case isGuard(state.Standing.Reason):
			s.withheld = append(s.withheld, h)
		case state.Standing.Reason == record.Rejected || h.Error != "":
			s.errors.add(h)
		default:
			s.others.add(h)
		}
	}
	return s
}

// recorded is a key as the trail has it, where names are cleaned.
func recorded(k record.Key) record.Key {
	e := record.EntryOf(record.Decision{Kind: k.Kind, TenantNamespace: k.Namespace, TenantName: k.Name}, "", time.Time{})
	return record.Key{Group: k.Group, Kind: e.Kind, Namespace: e.TenantNamespace, Name: e.TenantName}
}

func heldOf(key record.Key, s record.Standing, e record.Entry, now time.Time) held {
	h := held{
		Kind: plain(key.GroupKind().String()), Reason: plain(string(s.Reason)), Since: momentOf(s.Since, now),
		Object: plain(slashed(key.Namespace, key.Name)), Mirror: plain(slashed(e.HostNamespace, e.HostName)),
		Message: plain(e.Message), Error: plain(e.Error),
	}
	for _, field := range e.Fields {
		h.Fields = append(h.Fields, plain(field))
	}
	return h
}

func slashed(namespace, name string) string {
	if namespace == "" || name == "" {
		return name
	}
	return namespace + "/" + name
}

const alphanumeric = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789"

// word says whether a text is what no shell takes for anything but itself, and no program for a flag.
func word(text string) bool {
	return text != "" && strings.Trim(text, alphanumeric+"._:-") == "" && strings.Contains(alphanumeric, text[:1])
}

// keep are the commands that settle a conflict. The object's names are the tenant's, and a tenant's API server may say what
// it likes: what is no word stays out of anything that a person pastes.
func keep(command string, t Tenant, key record.Key) []string {
	kind := strings.ToLower(key.Kind)
	if key.Group != "" {
		kind += "." + key.Group
	}
	for _, part := range []string{kind, key.Namespace, key.Name, t.Namespace, t.Name} {
		if !word(part) {
			return nil
		}
	}
	var lines []string
	for _, side := range []record.Side{record.Tenant, record.Host} {
		lines = append(lines, fmt.Sprintf("%s resolve %s %s/%s --keep %s -n %s --tenant %s", command, kind, key.Namespace, key.Name, side, t.Namespace, t.Name))
	}
	return lines
}

// guards are what the guards withhold.
type guards struct {
	// Causes are one for each guard that was pulled.
	Causes []cause
	// PlanID names the plan that was withheld, and Confirm lets exactly that one through; empty where the record does not
	// say it.
	PlanID, Confirm string
	Withheld        table
}

// cause is one guard.
type cause struct {
	Reason  string
	Count   int
	Since   moment
	Message string
}

// confirmation is the plan that the end of what a guard says names; empty where it names none. Only the end counts: what
// stands before may quote a tenant.
func confirmation(message string) string {
	const length = 16
	id := message[max(0, len(message)-length):]
	if strings.Trim(id, "0123456789abcdef") != "" || !strings.HasSuffix(message[:len(message)-len(id)], kinds.AnnotationConfirmDeletes+"=") {
		return ""
	}
	return id
}

func guardsOf(t Tenant, withheld []held, now time.Time) *guards {
	if len(withheld) == 0 {
		return nil
	}
	g := &guards{}
	at := map[string]int{}
	for _, h := range withheld {
		i, found := at[h.Reason]
		if !found {
			i = len(g.Causes)
			at[h.Reason] = i
			message, _, _ := strings.Cut(h.Message, "; if it is right, ")
			if _, after, ok := strings.Cut(message, " withheld: "); ok {
				message = after
			}
			g.Causes = append(g.Causes, cause{Reason: h.Reason, Since: h.Since, Message: message})
		}
		g.Causes[i].Count++
		if h.Since.ISO < g.Causes[i].Since.ISO {
			g.Causes[i].Since = h.Since
		}
		g.Withheld.add(h)
	}
	// A plan that changed has new entries, so the newest one names the plan that is withheld now.
	for _, e := range t.Status.Entries {
		if id := confirmation(e.Message); id != "" && e.Action == record.Skip && isGuard(e.Reason) {
			g.PlanID = id
		}
	}
	if g.PlanID != "" && word(t.Namespace) && word(t.Name) {
		g.Confirm = fmt.Sprintf("kubectl annotate -n %s tenantcluster %s --overwrite %s=%s", t.Namespace, t.Name, kinds.AnnotationConfirmDeletes, g.PlanID)
	}
	return g
}
