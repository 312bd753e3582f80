package report

import (
	"fmt"
	"slices"
)

// element is the page's section about one tenant.
func (s section) element() fragment {
	parts := []fragment{element("h2", at("id", s.Anchor), text(s.title()))}
	for _, problem := range s.Problems {
		parts = append(parts, element("p", at("class", "alert"), text(problem)))
	}
	parts = append(parts, s.facts())
	if s.Unrecorded {
		parts = append(parts, paragraph(text(unrecorded)))
	}
	if s.Guards != nil {
		parts = append(parts, s.Guards.element())
	}
	parts = append(parts, s.conflicts(), s.Errors.element("Errors by object", refused), heading("Pairs by kind and state"), s.pairs(),
		heading("Decisions over time"), s.decisions(), s.Others.element("Held for other reasons", standingSkips))
	return block("section", at("aria-labelledby", s.Anchor), parts...)
}

// facts are the terms at the top of the section.
func (s section) facts() fragment {
	term := func(name string, content ...fragment) fragment {
		return slices.Concat(element("dt", nil, text(name)), element("dd", nil, content...))
	}
	policy, began := text("not known"), text("not known")
	if s.Policy != "" {
		policy = text(fmt.Sprintf("%s, conflicts: %s, every %s", s.Policy, s.Winner, s.Interval))
	}
	if s.Began != nil {
		began = append(text("began "), momentElement(*s.Began)...)
	}
	terms := []fragment{term("Policy", policy), term("Last pass", began), term("Next pass due", s.Due.element())}
	if last := s.Last; last != nil {
		terms = append(terms,
			term("Last recorded", text(last.Outcome+", ended "), momentElement(last.Ended), text(", took "+last.Took+", pass "), verbatim(last.ID)),
			term("It did", text(last.did())))
		if last.Message != "" {
			terms = append(terms, term("It said", text(last.Message)))
		}
	}
	return block("dl", nil, terms...)
}

func (g guards) element() fragment {
	parts := []fragment{heading("Withheld by guards")}
	for _, c := range g.Causes {
		message := ""
		if c.Message != "" {
			message = ": " + c.Message
		}
		parts = append(parts, paragraph(element("strong", at("class", "alert"), text(c.Reason)),
			text(fmt.Sprintf(" holds %d back since ", c.Count)), momentElement(c.Since), text(message)))
	}
	if g.Confirm != "" {
		parts = append(parts,
			paragraph(text("If that is right, this lets exactly plan "), verbatim(g.PlanID), text(" through in the next pass:")),
			paragraph(command(g.Confirm)))
	} else {
		parts = append(parts, paragraph(text("The record does not name the plan; "), verbatim("runner plan"), text(" does.")))
	}
	var objects fragment
	for _, h := range g.Withheld.Rows {
		objects = append(objects, element("li", nil, h.object())...)
	}
	return lines(append(parts, block("details", nil, element("summary", nil, text(fmt.Sprintf("What is withheld (%d)", g.Withheld.Count))),
		element("ul", nil, objects), g.Withheld.cut()))...)
}

// object names what is held.
func (h held) object() fragment {
	if h.Object == "" {
		return append(text(h.Kind+" "), quiet("as a whole")...)
	}
	return append(text(h.Kind+" "), verbatim(h.Object)...)
}

// cut says how many rows are missing.
func (t table) cut() fragment {
	if t.More == 0 {
		return nil
	}
	return element("p", at("class", "quiet"), text(t.missing()))
}

// conflicts are the pairs that wait for a person.
func (s section) conflicts() fragment {
	if s.Conflicts.Count == 0 {
		return nil
	}
	var rows []fragment
	for _, h := range s.Conflicts.Rows {
		differs, settle := quiet("not recorded"), fragment(nil)
		switch {
		case len(h.Fields) > 0:
			var paths fragment
			for _, path := range h.Fields {
				paths = append(paths, element("li", nil, verbatim(path))...)
			}
			differs = element("ul", at("class", "plain"), paths)
		case h.Message != "":
			differs = text(h.Message)
		}
		for _, line := range h.Keep {
			settle = append(settle, command(line)...)
		}
		if len(h.Keep) == 0 {
			settle = element("span", at("class", "quiet"), text("Its name is none to paste into a shell: see "), verbatim("runner resolve --help"), text("."))
		}
		rows = append(rows, row(slices.Concat(h.object(), element("br", nil), quiet(h.Reason)), cell(momentElement(h.Since)), cell(differs), broadCell(settle)))
	}
	return lines(heading("Open conflicts"), wide("Open conflicts of "+s.title(), grid{
		class:   "rows",
		caption: "Pairs whose two sides differ, and wait for a person to say which one to keep; fields are paths, values are not recorded",
		texts:   []string{"Object of the tenant", "Since", "Differs in", "Settle it by one of"},
		rows:    rows,
	}.element()), s.Conflicts.cut())
}

// element is the table under its heading, nothing where it is empty.
func (t table) element(title, caption string) fragment {
	if t.Count == 0 {
		return nil
	}
	var rows []fragment
	for _, h := range t.Rows {
		var mirror fragment
		if h.Mirror != "" {
			mirror = verbatim(h.Mirror)
		}
		cause := text(h.Message + h.Error)
		switch {
		case h.Message != "" && h.Error != "":
			cause = text(h.Message + ": " + h.Error)
		case cause == nil:
			cause = quiet("The trail has lost it.")
		}
		rows = append(rows, row(h.object(), cell(mirror), cell(text(h.Reason)), cell(momentElement(h.Since)), broadCell(cause)))
	}
	return lines(heading(title), wide(caption, grid{
		class: "rows", caption: caption, texts: []string{"Object of the tenant", "Its mirror", "Reason", "Since", "Cause"}, rows: rows,
	}.element()), t.cut())
}

// pairs is the table of pairs.
func (s section) pairs() fragment {
	if len(s.Pairs) == 0 {
		return paragraph(text("None is known."))
	}
	var rows []fragment
	for _, r := range s.Pairs {
		rows = append(rows, row(text(r.Kind), cell(text(r.Direction)), numbers(r.counts()...)))
	}
	return wide("Pairs of "+s.title()+" by kind and state", grid{
		class:   "pairs",
		caption: oneColumn,
		texts:   []string{"Kind", "Direction"}, numbers: states, rows: rows,
		foot: element("tr", nil, element("th", at("scope", "row", "colspan", "2"), text("All kinds")), numbers(s.Total.counts()...)),
	}.element())
}

// decisions are the plot, and its numbers.
func (s section) decisions() fragment {
	p := s.Plot
	if p == nil {
		return paragraph(text("The trail has no decision."))
	}
	var legend fragment
	for i, action := range series {
		legend = append(legend, element("li", nil, element("i", at("class", class(action))), text(fmt.Sprintf("%s %d", action, p.Totals[i])))...)
	}
	var rows []fragment
	for _, b := range p.Buckets {
		if b.All > 0 {
			rows = append(rows, row(element("time", at("datetime", b.Start.ISO), text(b.Start.Text)), numbers(b.Counts[:]...)))
		}
	}
	return lines(
		block("figure", nil,
			element("figcaption", nil, text(fmt.Sprintf("Decisions that the trail still has: %d; one bar for %s. A skip that stands counts once, when it began.", p.All, p.Step))),
			element("ul", at("class", "legend"), legend),
			wide("Plot of decisions over time", p.picture(s.Anchor+"-plot"))),
		block("details", nil,
			element("summary", nil, text("The same as a table")),
			wide("Decisions of "+s.title()+" over time", grid{
				caption: "Decisions of each " + p.Step + " that had any", texts: []string{"From"}, numbers: seriesNames(), rows: rows,
			}.element())))
}

// picture is the plot as SVG, which id names.
func (p *plot) picture(id string) fragment {
	n := func(x float64) string { return fmt.Sprint(x) }
	label := func(s, anchor string, place ...string) fragment {
		return element("text", at(append(place, "text-anchor", anchor)...), text(s))
	}
	parts := []fragment{element("title", at("id", id), text(fmt.Sprintf("Decisions from %s to %s; the same numbers are in the table below", p.From.Text, p.To.Text)))}
	for _, l := range p.Lines {
		parts = append(parts, append(element("line", at("x1", n(p.Left), "x2", n(p.Right), "y1", n(l.Y), "y2", n(l.Y))),
			label(fmt.Sprint(l.Label), "end", "x", n(p.Left), "dx", "-8", "y", n(l.Y), "dy", "4")...))
	}
	for _, b := range p.Bars {
		parts = append(parts, element("rect", at("class", b.Class, "x", n(b.X), "y", n(b.Y), "width", n(b.Width), "height", n(b.Height)),
			element("title", nil, text(b.Title))))
	}
	for _, t := range p.Ticks {
		parts = append(parts, label(t.Text, t.Place, "x", n(t.X), "y", n(p.Bottom), "dy", "20"))
	}
	return block("svg", at("viewBox", fmt.Sprintf("0 0 %d %d", p.Width, p.Height), "role", "img", "aria-labelledby", id), parts...)
}
