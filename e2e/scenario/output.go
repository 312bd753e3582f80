package scenario

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"text/tabwriter"
)

// document is what the binary prints for -o json. Fields that no expectation is
// about are left out; unknown ones are no error, so that output may grow.
type document struct {
	FormatVersion string       `json:"formatVersion"`
	DryRun        bool         `json:"dryRun"`
	Passes        []passResult `json:"passes"`
}

type passResult struct {
	ID        string         `json:"id"`
	Tenant    string         `json:"tenant"`
	Namespace string         `json:"namespace"`
	Outcome   string         `json:"outcome"`
	Message   string         `json:"message"`
	PlanID    string         `json:"planID"`
	Counts    map[string]int `json:"counts"`
	Decisions []madeDecision `json:"decisions"`
}

type madeDecision struct {
	Action          string   `json:"action"`
	Side            string   `json:"side"`
	APIVersion      string   `json:"apiVersion"`
	Kind            string   `json:"kind"`
	TenantNamespace string   `json:"tenantNamespace"`
	TenantName      string   `json:"tenantName"`
	HostNamespace   string   `json:"hostNamespace"`
	HostName        string   `json:"hostName"`
	Reason          string   `json:"reason"`
	Message         string   `json:"message"`
	Fields          []string `json:"fields"`
	Error           string   `json:"error"`
}

func (d madeDecision) object() string { return d.TenantNamespace + "/" + d.TenantName }

// parseOutput reads the one pass out of what the binary printed.
func parseOutput(stdout []byte, dryRun bool) (passResult, error) {
	var doc document
	if err := json.Unmarshal(stdout, &doc); err != nil {
		return passResult{}, fmt.Errorf("stdout is not one JSON document: %w", err)
	}
	if major, _, _ := strings.Cut(doc.FormatVersion, "."); major != "1" {
		return passResult{}, fmt.Errorf("formatVersion is %q, not 1.x", doc.FormatVersion)
	}
	if doc.DryRun != dryRun {
		return passResult{}, fmt.Errorf("dryRun is %t, not %t", doc.DryRun, dryRun)
	}
	if len(doc.Passes) != 1 {
		return passResult{}, fmt.Errorf("there are %d passes, not one", len(doc.Passes))
	}
	if p := doc.Passes[0]; p.Tenant != tenantName || p.Namespace != hostNamespace {
		return passResult{}, fmt.Errorf("the pass is over tenant %q in namespace %q, not %s in %s", p.Tenant, p.Namespace, tenantName, hostNamespace)
	}
	return doc.Passes[0], nil
}

// check compares a pass with what it must have come to, the exit code apart.
func (p *Pass) check(got passResult, writes int) []string {
	var faults []string
	if p.Outcome != "" && p.Outcome != got.Outcome {
		faults = append(faults, fmt.Sprintf("outcome: want %s, got %s (%s)", p.Outcome, got.Outcome, got.Message))
	}
	for _, name := range slices.Sorted(maps.Keys(p.Counts)) {
		count, printed := got.Counts[name]
		if !printed {
			faults = append(faults, fmt.Sprintf("counts.%s: want %d, it was not printed", name, p.Counts[name]))
		} else if count != p.Counts[name] {
			faults = append(faults, fmt.Sprintf("counts.%s: want %d, got %d", name, p.Counts[name], count))
		}
	}
	faults = append(faults, p.checkDecisions(got.Decisions)...)
	if p.Writes != nil && *p.Writes != writes {
		faults = append(faults, fmt.Sprintf("writes: want %d, got %d (marked W in the request log)", *p.Writes, writes))
	}
	return faults
}

func (p *Pass) checkDecisions(made []madeDecision) []string {
	var faults []string
	wantedBy := make([][]int, len(made))
	for i, want := range p.Decisions {
		matches := 0
		for j, got := range made {
			if want.matches(got) {
				matches++
				wantedBy[j] = append(wantedBy[j], i)
			}
		}
		if matches != 1 {
			faults = append(faults, fmt.Sprintf("decisions[%d]: want exactly one decision like %s, got %d", i, show(want), matches))
		}
	}
	for j, by := range wantedBy {
		if p.Only && len(by) == 0 {
			faults = append(faults, fmt.Sprintf("decisions: nobody asked for %s %s %s (%s)",
				made[j].Action, made[j].Kind, made[j].object(), made[j].Reason))
		}
		if len(by) > 1 {
			faults = append(faults, fmt.Sprintf("decisions: entries %v all match %s %s %s (%s)",
				by, made[j].Action, made[j].Kind, made[j].object(), made[j].Reason))
		}
	}
	return faults
}

// matches compares on the fields that are given.
func (d Decision) matches(got madeDecision) bool {
	same := func(want, got string) bool { return want == "" || want == got }
	return same(d.Action, got.Action) && same(d.Side, got.Side) && same(d.Kind, got.Kind) &&
		same(d.Reason, got.Reason) && same(d.Object, got.object()) && same(d.Host, got.HostName) &&
		strings.Contains(got.Error, d.Error) && strings.Contains(got.Message, d.Message) &&
		!slices.ContainsFunc(d.Fields, func(field string) bool { return !slices.Contains(got.Fields, field) })
}

// table shows decisions to a person.
func table(made []madeDecision) string {
	if len(made) == 0 {
		return "none\n"
	}
	var b strings.Builder
	w := tabwriter.NewWriter(&b, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, "ACTION\tSIDE\tKIND\tOBJECT\tHOST\tREASON\tFIELDS\tMESSAGE\tERROR")
	for _, d := range made {
		fmt.Fprintf(w, "%s\t%s\t%s\t%s\t%s\t%s\t%s\t%s\t%s\n", d.Action, d.Side, d.Kind, d.object(), d.HostName, d.Reason,
			strings.Join(d.Fields, ","), d.Message, d.Error)
	}
	// Writing to a strings.Builder cannot fail.
	_ = w.Flush()
	return b.String()
}
