package report

import (
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
)

// writeMarkdown writes GitHub's flavour. Whatever was not written by this package stands in code, where nothing is a link,
// a mention, an image or a tag.
func writeMarkdown(w io.Writer, p page) error {
	parts := []string{"# syncpass report", "Made " + p.Now.Text + sources + "`runner plan` shows it.", "## Tenants"}
	if len(p.Tenants) == 0 {
		parts = append(parts, "There is no TenantCluster.")
	} else {
		parts = append(parts, p.waiting()+".", p.markdown())
	}
	for _, s := range p.Tenants {
		parts = append(parts, s.markdown()...)
	}
	parts = append(parts, phases)
	if _, err := io.WriteString(w, strings.Join(parts, "\n\n")+"\n"); err != nil {
		return fmt.Errorf("writing the report: %w", err)
	}
	return nil
}

// markdown is the table of all tenants.
func (p page) markdown() string {
	var rows [][]string
	for _, s := range p.Tenants {
		outcome, began := "nothing recorded", "not known"
		if s.Last != nil {
			outcome = code(s.Last.Outcome)
		}
		if s.Began != nil {
			began = s.Began.markdown()
		}
		rows = append(rows, slices.Concat([]string{code(s.title()), outcome, began, s.Due.markdown()}, digits(s.open())))
	}
	return markdownTable([]string{"Tenant", "Recorded outcome", "Last pass began", "Next pass due"}, []string{"Pairs", "Conflicts", "Withheld", "Errors"}, rows)
}

// markdown is the section about one tenant, part by part.
func (s section) markdown() []string {
	parts := []string{"## " + code(s.title())}
	for _, problem := range s.Problems {
		parts = append(parts, "**Problem:** "+code(problem))
	}
	parts = append(parts, s.factsMarkdown())
	if s.Unrecorded {
		parts = append(parts, unrecorded)
	}
	if s.Guards != nil {
		parts = append(parts, s.Guards.markdown()...)
	}
	parts = append(parts, s.Conflicts.conflictsMarkdown()...)
	parts = append(parts, s.Errors.markdown("Errors by object", refused)...)
	parts = append(parts, "### Pairs by kind and state")
	parts = append(parts, s.pairsMarkdown()...)
	parts = append(parts, "### Decisions over time")
	parts = append(parts, s.Plot.markdown()...)
	return append(parts, s.Others.markdown("Held for other reasons", standingSkips)...)
}

func (s section) factsMarkdown() string {
	policy, began := "not known", "not known"
	if s.Policy != "" {
		policy = fmt.Sprintf("%s, conflicts: %s, every %s", code(s.Policy), code(s.Winner), s.Interval)
	}
	if s.Began != nil {
		began = "began " + s.Began.markdown()
	}
	facts := []string{"Policy: " + policy, "Last pass: " + began, "Next pass due: " + s.Due.markdown()}
	if last := s.Last; last != nil {
		facts = append(facts,
			fmt.Sprintf("Last recorded: %s, ended %s, took %s, pass %s", code(last.Outcome), last.Ended.markdown(), last.Took, code(last.ID)),
			"It did: "+last.did())
		if last.Message != "" {
			facts = append(facts, "It said: "+code(last.Message))
		}
	}
	return list(facts)
}

func (g guards) markdown() []string {
	parts := []string{"### Withheld by guards"}
	for _, c := range g.Causes {
		part := fmt.Sprintf("**%s** holds %d back since %s", code(c.Reason), c.Count, c.Since.markdown())
		if c.Message != "" {
			part += ": " + code(c.Message)
		}
		parts = append(parts, part)
	}
	if g.Confirm != "" {
		parts = append(parts, fmt.Sprintf("If that is right, this lets exactly plan %s through in the next pass: %s", code(g.PlanID), code(g.Confirm)))
	} else {
		parts = append(parts, "The record does not name the plan; `runner plan` does.")
	}
	var objects []string
	for _, h := range g.Withheld.Rows {
		objects = append(objects, h.markdown())
	}
	return g.Withheld.cutMarkdown(append(parts, list(objects)))
}

// conflictsMarkdown is the table of open conflicts under its heading, nothing where there is none.
func (t table) conflictsMarkdown() []string {
	if t.Count == 0 {
		return nil
	}
	var rows [][]string
	for _, h := range t.Rows {
		differs, settle := "not recorded", codes(h.Keep)
		switch {
		case len(h.Fields) > 0:
			differs = codes(h.Fields)
		case h.Message != "":
			differs = code(h.Message)
		}
		if len(h.Keep) == 0 {
			settle = "its name is none to paste into a shell: see `runner resolve --help`"
		}
		rows = append(rows, []string{h.markdown(), code(h.Reason), h.Since.markdown(), differs, settle})
	}
	return t.cutMarkdown([]string{
		"### Open conflicts",
		"Pairs whose two sides differ, and wait for a person to say which one to keep. Fields are paths; values are not recorded.",
		markdownTable([]string{"Object of the tenant", "Reason", "Since", "Differs in", "Settle it by one of"}, nil, rows),
	})
}

// markdown is the table under its heading, nothing where it is empty.
func (t table) markdown(title, caption string) []string {
	if t.Count == 0 {
		return nil
	}
	var rows [][]string
	for _, h := range t.Rows {
		mirror, cause := "", "the trail has lost it"
		if h.Mirror != "" {
			mirror = code(h.Mirror)
		}
		switch {
		case h.Message != "" && h.Error != "":
			cause = code(h.Message) + ": " + code(h.Error)
		case h.Message+h.Error != "":
			cause = code(h.Message + h.Error)
		}
		rows = append(rows, []string{h.markdown(), mirror, code(h.Reason), h.Since.markdown(), cause})
	}
	return t.cutMarkdown([]string{
		"### " + title, caption + ".",
		markdownTable([]string{"Object of the tenant", "Its mirror", "Reason", "Since", "Cause"}, nil, rows),
	})
}

// cutMarkdown adds how many rows are missing, where some are.
func (t table) cutMarkdown(parts []string) []string {
	if t.More > 0 {
		return append(parts, t.missing())
	}
	return parts
}

func (s section) pairsMarkdown() []string {
	if len(s.Pairs) == 0 {
		return []string{"None is known."}
	}
	var rows [][]string
	for _, r := range s.Pairs {
		rows = append(rows, append([]string{code(r.Kind), code(r.Direction)}, digits(r.counts())...))
	}
	rows = append(rows, append([]string{"All kinds |"}, digits(s.Total.counts())...))
	return []string{oneColumn + ".", markdownTable([]string{"Kind", "Direction"}, states, rows)}
}

func (p *plot) markdown() []string {
	if p == nil {
		return []string{"The trail has no decision."}
	}
	var rows [][]string
	for _, b := range p.Buckets {
		if b.All > 0 {
			rows = append(rows, append([]string{b.Start.Text}, digits(b.Counts[:])...))
		}
	}
	return []string{
		fmt.Sprintf("Decisions that the trail still has: %d; one character for %s, from %s to %s. A skip that stands counts once, when it began.",
			p.All, p.Step, p.From.Text, p.To.Text),
		"    " + p.spark() + "|",
		markdownTable([]string{"From"}, seriesNames(), rows),
	}
}

func (m moment) markdown() string { return fmt.Sprintf("%s (%s)", m.Text, m.Distance) }

func (d due) markdown() string {
	switch {
	case d.At == nil:
		return d.Text
	case d.Text == "":
		return d.At.markdown()
	}
	return d.Text + " " + d.At.markdown()
}

func (h held) markdown() string {
	if h.Object == "" {
		return code(h.Kind) + " as a whole"
	}
	return code(h.Kind) + " " + code(h.Object)
}

// markdownTable has columns of text, then columns of numbers.
func markdownTable(texts, numbers []string, rows [][]string) string {
	line := func(cells []string) string { return "| " + strings.Join(cells, " | ") + " |" }
	lines := []string{
		line(slices.Concat(texts, numbers)),
		line(slices.Concat(slices.Repeat([]string{"---"}, len(texts)), slices.Repeat([]string{"---:"}, len(numbers)))),
	}
	for _, row := range rows {
		lines = append(lines, line(row))
	}
	return strings.Join(lines, "\n")
}

func list(items []string) string { return "- " + strings.Join(items, "\n- ") }

func digits(numbers []int) []string {
	texts := make([]string, len(numbers))
	for i, n := range numbers {
		texts[i] = strconv.Itoa(n)
	}
	return texts
}

func codes(texts []string) string {
	all := make([]string, len(texts))
	for i, text := range texts {
		all[i] = code(text)
	}
	return strings.Join(all, ", ")
}

// simple says whether a text means nothing to Markdown between two backticks, in a table or outside of one.
func simple(text string) bool {
	return text != "" && !strings.HasSuffix(text, " ") && !strings.ContainsAny(text, "`|\\<>&")
}

// code is a text as code. Where backticks cannot hold it, every character that could mean something is written by its number:
// Markdown takes such a character for itself and nothing else (https://spec.commonmark.org/0.31.2/#entity-and-numeric-character-references).
func code(text string) string {
	text = plain(text)
	if simple(text) {
		return "`" + text + "`"
	}
	var b strings.Builder
	b.WriteString("<code>")
	for _, r := range text {
		if r < 0x80 && r != ' ' && (r < '0' || r > '9') && (r < 'A' || r > 'Z') && (r < 'a' || r > 'z') {
			fmt.Fprintf(&b, "&#%d;", r)
		} else {
			b.WriteRune(r)
		}
	}
	b.WriteString("</code>")
	return b.String()
}
