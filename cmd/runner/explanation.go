package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/syncpass/syncpass/pass"
	"github.com/syncpass/syncpass/policy"
	"github.com/syncpass/syncpass/record"
)

// printExplanation writes what a person asks first: where and why, how it stands, what next; then where the sides differ,
// and what it refers to.
func printExplanation(w io.Writer, e *pass.Explanation) error {
	table := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	row := func(name, format string, args ...any) {
		fmt.Fprintf(table, "%s:\t%s\n", name, record.Plain(fmt.Sprintf(format, args...), record.MaxMessage))
	}
	row("Object", "%s %s of tenant %s%s", e.Kind, objectName(e.TenantNamespace, e.TenantName), e.Tenant, existence(e.TenantUID))
	row("Mirror", "%s %s on the host%s", e.Kind, objectName(e.HostNamespace, e.HostName), existence(e.HostUID))
	row("Name", "%s", e.HostNameReason)
	row("Direction", "%s", direction(e))
	if e.LeftOut != "" {
		row("Left out", "%s", e.LeftOut)
	}
	if e.DNS != nil && e.DNS.Resolves {
		row("DNS", "%s, served by manifests/tenant-dns", e.DNS.Name)
	} else if e.DNS != nil {
		row("DNS", "%s does not resolve: %s", e.DNS.Name, e.DNS.Message)
	}
	if e.Agreed {
		row("History", "both sides have agreed before")
	} else {
		row("History", "no agreement of both sides is recorded")
	}
	if e.TenantState != "" {
		row("Tenant", "%s", states[e.TenantState])
		row("Host", "%s", states[e.HostState])
	}
	if e.Next == nil {
		row("Next pass", "leaves it as it is")
	} else {
		row("Next pass", "%s on the %s, %s: %s", strings.ToLower(string(e.Next.Action)), e.Next.Side, e.Next.Reason, strings.Join([]string{e.Next.Message, e.Next.Error}, " "))
		if len(e.Next.Fields) > 0 {
			row("Differs in", "%s", strings.Join(e.Next.Fields, ", "))
		}
	}
	if e.Conflict != nil {
		row("Conflict", "%s, %s", e.Conflict.Reason, since(e.Conflict))
		for _, command := range e.Conflict.Settle {
			row("Settle it by", "%s", command)
		}
	}
	for _, entry := range e.Decisions {
		row(entry.Time.UTC().Format("2006-01-02 15:04:05"), "%s on the %s, %s: %s", strings.ToLower(string(entry.Action)), entry.Side, entry.Reason, strings.Join([]string{entry.Message, entry.Error}, " "))
	}
	if err := table.Flush(); err != nil {
		return err
	}
	if err := printDifferences(w, e.Differences); err != nil {
		return err
	}
	return printReferences(w, e.References)
}

func existence(uid string) string {
	if uid == "" {
		return " (there is none)"
	}
	return ""
}

// direction says what carries the object, and who wins.
func direction(e *pass.Explanation) string {
	text := string(e.Direction)
	if e.PolicyPath != "" {
		text += fmt.Sprintf(", by %s of SyncPolicy %s", e.PolicyPath, e.Policy)
	}
	if e.Direction == policy.Bidirectional {
		text += fmt.Sprintf("; conflictPolicy %s", e.ConflictPolicy)
	}
	return text
}

// states are how a side may stand, in words.
var states = map[string]string{
	"Absent":      "there is no object, and no agreement tells of one",
	"Deleted":     "deleted since the last agreement",
	"New":         "there, and no agreement tells of it",
	"Recreated":   "deleted and made again since the last agreement",
	"Unchanged":   "unchanged since the last agreement",
	"Changed":     "changed since the last agreement",
	"Terminating": "being deleted",
}

func since(c *pass.Conflict) string {
	if c.Since == nil {
		return "not recorded by a pass yet"
	}
	return "since " + c.Since.UTC().Format(time.RFC3339)
}

// printDifferences writes one line for each place at which the sides differ.
func printDifferences(w io.Writer, differences []pass.Difference) error {
	if len(differences) == 0 {
		return nil
	}
	fmt.Fprintln(w)
	table := tabwriter.NewWriter(w, 6, 4, 3, ' ', 0)
	fmt.Fprintln(table, "FIELD\tTENANT\tHOST")
	for _, d := range differences {
		tenant, host := shown(d.Tenant), shown(d.Host)
		tenant, host = apart(tenant, host)
		fmt.Fprintf(table, "%s\t%s\t%s\n", clipped(longestCell, printable(d.Field)), tenant, host)
	}
	return table.Flush()
}

// shown is a value on one line.
func shown(value any) string {
	if value == nil {
		return "-"
	}
	if value == pass.Masked {
		return pass.Masked
	}
	var text bytes.Buffer
	encoder := json.NewEncoder(&text)
	encoder.SetEscapeHTML(false)
	if err := encoder.Encode(value); err != nil {
		return "?" // what came from an API server can be encoded again
	}
	return printable(strings.TrimSpace(text.String()))
}

// apart cuts two long values to where they begin to differ.
func apart(a, b string) (string, string) {
	const longest, before = 60, 15
	if len(a) <= longest && len(b) <= longest {
		return a, b
	}
	one, other := []rune(a), []rune(b)
	from := 0
	for from < len(one) && from < len(other) && one[from] == other[from] {
		from++
	}
	cut := func(text []rune) string {
		start := max(0, min(from-before, len(text)))
		head := ""
		if start > 0 {
			head = "…"
		}
		return head + clipped(longest, string(text[start:]))
	}
	return cut(one), cut(other)
}

// printReferences writes one line for each object that another refers to.
func printReferences(w io.Writer, references []pass.Reference) error {
	if len(references) == 0 {
		return nil
	}
	fmt.Fprintln(w)
	table := tabwriter.NewWriter(w, 6, 4, 3, ' ', 0)
	fmt.Fprintln(table, "REFERS TO\tNAME\tON THE HOST\tTHERE\tMESSAGE")
	for _, r := range references {
		there, message := "yes", r.Message
		if !r.OnHost {
			there = "no"
		}
		if message == "" {
			message = "-"
		}
		fmt.Fprintf(table, "%s\t%s\t%s\t%s\t%s\n", r.Kind, clipped(longestCell, printable(r.Name)), clipped(longestCell, printable(r.HostName)), there, clipped(longestCell, printable(message)))
	}
	return table.Flush()
}
