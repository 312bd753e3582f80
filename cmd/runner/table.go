package main

import (
	"bytes"
	"cmp"
	"fmt"
	"io"
	"slices"
	"strings"
	"text/tabwriter"
	"unicode"

	"github.com/syncpass/syncpass/pass"
	"github.com/syncpass/syncpass/record"
)

// longestCell bounds a cell of a table, in characters: one object's message is not to push all others off the screen.
// The other formats have it whole.
const longestCell = 250

// printTables writes one table for each pass, what its decisions change below it, and its counts last. In a dry run every
// line says so, as kubectl's do.
func (p printing) printTables(w io.Writer, results []pass.Result) error {
	mark := ""
	if p.dryRun {
		mark = " (dry run)"
	}
	for i, r := range results {
		if i > 0 {
			fmt.Fprintln(w)
		}
		r = bySide(r)
		if len(r.Decisions) > 0 {
			if err := p.printTable(w, mark, r); err != nil {
				return err
			}
		}
		if err := p.printDiffs(w, r.Changes); err != nil {
			return err
		}
		c := r.Counts
		line := fmt.Sprintf("%s: %d create, %d update, %d delete, %d skip, %d unchanged, %d errors (%s)%s",
			passName(r, results), c.Create, c.Update, c.Delete, c.Skip, c.Unchanged, c.Error, r.Outcome, mark)
		if r.Undecided > 0 {
			line += fmt.Sprintf(": %d undecided", r.Undecided)
		}
		if r.Message != "" {
			line += ": " + r.Message
		}
		if _, err := fmt.Fprintln(w, printable(line)); err != nil {
			return err
		}
	}
	return nil
}

// bySide is a result whose decisions come by the side that they write, and on each side in the order that they had.
func bySide(r pass.Result) pass.Result {
	order := make([]int, len(r.Decisions))
	for i := range order {
		order[i] = i
	}
	slices.SortStableFunc(order, func(a, b int) int { return cmp.Compare(r.Decisions[a].Side, r.Decisions[b].Side) })
	decisions, changes := make([]record.Decision, 0, len(order)), make([][]pass.Change, 0, len(r.Changes))
	for _, i := range order {
		decisions = append(decisions, r.Decisions[i])
		if i < len(r.Changes) {
			changes = append(changes, r.Changes[i])
		}
	}
	r.Decisions, r.Changes = decisions, changes
	return r
}

func (p printing) printTable(w io.Writer, mark string, r pass.Result) error {
	var text bytes.Buffer
	// The widths and the padding of kubectl's tables.
	table := tabwriter.NewWriter(&text, 6, 4, 3, ' ', 0)
	row := func(cells ...string) {
		for i, cell := range cells {
			cells[i] = clipped(longestCell, printable(cell))
		}
		fmt.Fprintln(table, strings.Join(cells, "\t"))
	}
	wide := p.format == "wide"
	header := []string{"ACTION", "SIDE", "KIND", "OBJECT", "REASON", "MESSAGE"}
	if wide {
		header = []string{"ACTION", "SIDE", "KIND", "OBJECT", "HOST NAME", "REASON", "FIELDS", "MESSAGE", "ERROR"}
	}
	row(header...)
	for _, d := range r.Decisions {
		action := strings.ToLower(string(d.Action)) + mark
		object := objectName(d.TenantNamespace, d.TenantName)
		message := d.Message
		if d.Error != "" {
			message += ": " + d.Error
		}
		cells := []string{action, string(d.Side), d.Kind, object, string(d.Reason), message}
		if wide {
			cells = []string{action, string(d.Side), d.Kind, object, d.HostName, string(d.Reason), strings.Join(d.Fields, ","), d.Message, d.Error}
		}
		for i, cell := range cells {
			if cell == "" {
				cells[i] = "-" // so that columns can be counted
			}
		}
		row(cells...)
	}
	if err := table.Flush(); err != nil {
		return err
	}
	if p.colour {
		return paintActions(w, text.String(), r.Decisions)
	}
	_, err := text.WriteTo(w)
	return err
}

// actionColours tell actions apart at a glance.
var actionColours = map[record.Action]string{record.Create: green, record.Update: yellow, record.Delete: red, record.Skip: magenta}

// paintActions writes a table with each decision's action in its colour. It begins the line, so the columns stay as they are.
func paintActions(w io.Writer, table string, decisions []record.Decision) error {
	row := -1 // the header
	for line := range strings.Lines(table) {
		if row >= 0 && row < len(decisions) {
			action := decisions[row].Action
			line = paint(actionColours[action], line[:len(action)]) + line[len(action):]
		}
		if _, err := io.WriteString(w, line); err != nil {
			return err
		}
		row++
	}
	return nil
}

// passName is the tenant's name, with its namespace where the passes are of more than one.
func passName(r pass.Result, all []pass.Result) string {
	for _, other := range all {
		if other.Namespace != r.Namespace {
			return r.Namespace + "/" + r.Tenant
		}
	}
	return r.Tenant
}

// printable makes text that came from a cluster fit for a terminal: one line of bounded length, without control
// characters, escape sequences and invisible or text-reordering characters (CVE-2021-25743).
func printable(s string) string {
	const longest = 4096
	return clipped(longest, strings.Map(func(r rune) rune {
		switch {
		case unicode.IsSpace(r):
			return ' '
		case r == unicode.ReplacementChar || !unicode.IsPrint(r):
			return -1
		}
		return r
	}, s))
}

// clipped cuts text to a number of characters.
func clipped(longest int, s string) string {
	if len(s) <= longest {
		return s
	}
	runes := []rune(s)
	if len(runes) <= longest {
		return s
	}
	return string(runes[:longest]) + "…"
}
