package main

import (
	"fmt"
	"io"
	"strings"
	"text/tabwriter"
	"unicode"

	"github.com/syncpass/syncpass/pass"
)

// longestCell bounds a cell of a table, in characters: one object's message is not to push all others off the screen.
// The other formats have it whole.
const longestCell = 250

// printTables writes one table for each pass, its counts below it. In a dry run every line says so, as kubectl's do.
func printTables(w io.Writer, wide, dryRun bool, results []pass.Result) error {
	mark := ""
	if dryRun {
		mark = " (dry run)"
	}
	for i, r := range results {
		if i > 0 {
			fmt.Fprintln(w)
		}
		if len(r.Decisions) > 0 {
			if err := printTable(w, wide, mark, r); err != nil {
				return err
			}
		}
		c := r.Counts
		line := fmt.Sprintf("%s: %d create, %d update, %d delete, %d skip, %d unchanged, %d errors (%s)%s",
			passName(r, results), c.Create, c.Update, c.Delete, c.Skip, c.Unchanged, c.Error, r.Outcome, mark)
		if r.Message != "" {
			line += ": " + r.Message
		}
		if _, err := fmt.Fprintln(w, printable(line)); err != nil {
			return err
		}
	}
	return nil
}

func printTable(w io.Writer, wide bool, mark string, r pass.Result) error {
	// The widths and the padding of kubectl's tables.
	table := tabwriter.NewWriter(w, 6, 4, 3, ' ', 0)
	row := func(cells ...string) {
		for i, cell := range cells {
			cells[i] = clipped(longestCell, printable(cell))
		}
		fmt.Fprintln(table, strings.Join(cells, "\t"))
	}
	header := []string{"ACTION", "SIDE", "KIND", "OBJECT", "REASON", "MESSAGE"}
	if wide {
		header = []string{"ACTION", "SIDE", "KIND", "OBJECT", "HOST NAME", "REASON", "FIELDS", "MESSAGE", "ERROR"}
	}
	row(header...)
	for _, d := range r.Decisions {
		action := strings.ToLower(string(d.Action)) + mark
		object := objectName(d.TenantNamespace, d.TenantName)
		cells := []string{action, string(d.Side), d.Kind, object, string(d.Reason), d.Message}
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
	return table.Flush()
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
