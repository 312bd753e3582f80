package report

import (
	"cmp"
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/util/duration"

	"github.com/syncpass/syncpass/record"
)

// maxRows bounds the rows of one table: a page that nobody can open helps nobody.
const maxRows = 200

// What both forms say in the same words.
const (
	sources = ", from what the host cluster remembers: TenantClusters, SyncPolicies, SyncDecisions and the Leases of the passes. " +
		"No tenant was asked, so what changed since a tenant's last pass is not on this page; "
	unrecorded    = "The policy has nothing recorded (explain.recordDecisions: false); what follows is from before, if there is anything."
	refused       = "Objects that an API server, or the Pod Security level, refused; each pass tries again"
	oneColumn     = "Each pair is in one column. Unconfirmed: a write was sent, and no pass has seen yet whether it landed"
	standingSkips = "Skips that stand; each pass looks again"
	phases        = "How long each phase of a pass takes is not in the record; the metrics and traces of the runner have it."
)

// page is all that is shown. Its texts are one line each, without control characters, and not escaped.
type page struct {
	Now     moment
	Tenants []section
}

// waiting says how many tenants wait for a person.
func (p page) waiting() string {
	n := 0
	for _, s := range p.Tenants {
		if s.waits() {
			n++
		}
	}
	return fmt.Sprintf("%d of %d wait for a person. The outcome is that of the last pass that had something to record", n, len(p.Tenants))
}

// section is what the page says about one tenant.
type section struct {
	// Anchor is the id of the section in the page.
	Anchor          string
	Namespace, Name string
	// Policy is the SyncPolicy's name, Winner its conflictPolicy, Interval how often passes are due; empty where it is unknown.
	Policy, Winner, Interval string
	// Unrecorded: the policy has nothing written down.
	Unrecorded bool
	Last       *lastPass
	// Began is when the newest pass took the Lease.
	Began *moment
	Due   due

	Pairs     []kindRow
	Total     kindRow
	Plot      *plot
	Conflicts table
	Guards    *guards
	Errors    table
	Others    table
	Problems  []string
}

// waits says whether something waits for a person.
func (s section) waits() bool {
	return s.Conflicts.Count > 0 || s.Guards != nil || s.Errors.Count > 0 || len(s.Problems) > 0
}

func (s section) title() string { return s.Namespace + "/" + s.Name }

// open counts pairs, conflicts, what guards withhold, and errors.
func (s section) open() []int {
	withheld := 0
	if s.Guards != nil {
		withheld = s.Guards.Withheld.Count
	}
	return []int{s.Total.All, s.Conflicts.Count, withheld, s.Errors.Count}
}

// lastPass is the newest pass that had something to record.
type lastPass struct {
	ID, Outcome, Message, Took string
	Ended                      moment
	Counts                     record.Counts
}

func (l lastPass) did() string {
	c := l.Counts
	return fmt.Sprintf("%d created, %d updated, %d deleted, %d skipped, %d unchanged, errors: %d, requests: %d",
		c.Create, c.Update, c.Delete, c.Skip, c.Unchanged, c.Error, c.Requests)
}

// due is when the next pass is.
type due struct {
	// Text is the whole answer where there is no time, and what stands before the time where there is.
	Text string
	At   *moment
}

// moment is a time, for machines, for people, and as a distance from now.
type moment struct{ ISO, Text, Distance string }

const timeLayout = "2006-01-02 15:04:05 UTC"

func momentOf(t, now time.Time) moment {
	t = t.UTC().Truncate(time.Second)
	m := moment{ISO: t.Format(time.RFC3339), Text: t.Format(timeLayout), Distance: "now"}
	switch distance := now.Truncate(time.Second).Sub(t); {
	case distance > 0:
		m.Distance = duration.HumanDuration(distance) + " ago"
	case distance < 0:
		m.Distance = "in " + duration.HumanDuration(-distance)
	}
	return m
}

func pageOf(in Input) page {
	p := page{Now: momentOf(in.Now, in.Now)}
	for i, tenant := range in.Tenants {
		p.Tenants = append(p.Tenants, sectionOf(fmt.Sprintf("tenant-%d", i+1), tenant, in))
	}
	return p
}

func sectionOf(anchor string, t Tenant, in Input) section {
	s := section{Anchor: anchor, Namespace: plain(t.Namespace), Name: plain(t.Name), Due: dueOf(t, in.Now)}
	for _, problem := range t.Problems {
		s.Problems = append(s.Problems, plain(problem))
	}
	if p := t.Policy; p != nil {
		s.Policy, s.Winner, s.Interval = plain(p.Name), plain(string(p.Spec.ConflictPolicy)), spell(p.Schedule().Interval)
		s.Unrecorded = p.Spec.Explain.RecordDecisions != nil && !*p.Spec.Explain.RecordDecisions
		s.Policy = cmp.Or(s.Policy, "from a file")
	}
	if last := t.Status.LastPass; last != nil {
		s.Last = &lastPass{
			ID: plain(last.ID), Outcome: plain(string(last.Outcome)), Message: plain(last.Message),
			Ended: momentOf(last.EndTime.Time, in.Now), Counts: last.Counts,
			Took: last.EndTime.Sub(last.StartTime.Time).Round(time.Millisecond).String(),
		}
	}
	if t.Run != nil {
		began := momentOf(t.Run.Began, in.Now)
		s.Began = &began
	}
	s.Pairs, s.Total = pairsOf(t)
	s.Plot = plotOf(t.Status.Entries, in.Now)
	standing := standingOf(t, in)
	s.Conflicts, s.Errors, s.Others = standing.conflicts, standing.errors, standing.others
	s.Guards = guardsOf(t, standing.withheld, in.Now)
	return s
}

// dueOf says when the next pass is due, by the policy's interval and the beginning of the one before. What starts it is not
// looked at: a CronJob, a schedule, or nobody.
func dueOf(t Tenant, now time.Time) due {
	if t.Run != nil && t.Run.Holder != "" {
		return due{Text: "a pass is running"}
	}
	if t.Policy == nil {
		return due{Text: "not known, since the policy could not be read"}
	}
	schedule := t.Policy.Schedule()
	if !schedule.Enabled {
		return due{Text: "never, the policy is paused (driftDetection.enabled: false)"}
	}
	if t.Run == nil {
		return due{Text: "not known, since no pass has left its Lease"}
	}
	next := schedule.Next(t.Run.Began)
	at := momentOf(next, now)
	if next.After(now) {
		return due{At: &at}
	}
	return due{Text: "since", At: &at}
}

// plain is what may be shown of a text that somebody else wrote.
func plain(s string) string { return record.Plain(s, record.MaxMessage) }
