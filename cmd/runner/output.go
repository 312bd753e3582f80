package main

import (
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/yaml"

	"github.com/syncpass/syncpass/pass"
	"github.com/syncpass/syncpass/record"
)

// formatVersion is the version of the document that -o json and yaml print. A field that is added raises the minor
// number; one that goes, or changes its meaning, the major.
const formatVersion = "1.0"

// diffFormatVersion is that of a document with diffs, which nobody gets who did not ask for them.
const diffFormatVersion = "1.1"

// document is what -o json and -o yaml print.
type document struct {
	FormatVersion string        `json:"formatVersion"`
	DryRun        bool          `json:"dryRun"`
	Passes        []pass.Result `json:"passes"`
}

// outputFormat is the value of the -o flag.
type outputFormat string

var outputFormats = []outputFormat{"table", "wide", "json", "yaml", "name"}

// String implements pflag.Value.
func (f *outputFormat) String() string { return string(*f) }

// Type implements pflag.Value; it is shown in the help.
func (f *outputFormat) Type() string { return "format" }

// Set implements pflag.Value.
func (f *outputFormat) Set(value string) error {
	if !slices.Contains(outputFormats, outputFormat(value)) {
		return fmt.Errorf("accepted are %s", formatNames())
	}
	*f = outputFormat(value)
	return nil
}

func formatNames() string {
	names := make([]string, len(outputFormats))
	for i, f := range outputFormats {
		names[i] = string(f)
	}
	return strings.Join(names, ", ")
}

// printResults writes the results to w. Nothing but data goes there.
func printResults(w io.Writer, format outputFormat, dryRun bool, results []pass.Result) error {
	return printing{format: format, dryRun: dryRun}.print(w, results)
}

// printing is how results are to be printed.
type printing struct {
	format outputFormat
	dryRun bool
	// diff says that the results have the changes that their decisions make, to be printed as well.
	diff bool
	// colour says that a person reads it on a terminal that shows colours.
	colour bool
}

func (p printing) print(w io.Writer, results []pass.Result) error {
	switch p.format {
	case "json", "yaml":
		return p.printDocument(w, results)
	case "name":
		return printNames(w, results)
	default:
		return p.printTables(w, results)
	}
}

func (p printing) printDocument(w io.Writer, results []pass.Result) error {
	clean := make([]pass.Result, len(results))
	for i, r := range results {
		clean[i] = withoutNulls(r)
	}
	if p.diff {
		return p.printDiffDocument(w, clean)
	}
	return printStructured(w, p.format, document{FormatVersion: formatVersion, DryRun: p.dryRun, Passes: clean})
}

// diffDocument is a document whose decisions come with what they change.
type diffDocument struct {
	FormatVersion string       `json:"formatVersion"`
	DryRun        bool         `json:"dryRun"`
	Passes        []diffResult `json:"passes"`
}

type diffResult struct {
	pass.Result
	Decisions []diffDecision `json:"decisions"`
}

type diffDecision struct {
	record.Decision
	// Diff is the unified diff of what the decision changes, empty where that is nothing.
	Diff string `json:"diff"`
}

func (p printing) printDiffDocument(w io.Writer, results []pass.Result) error {
	d := diffDocument{FormatVersion: diffFormatVersion, DryRun: p.dryRun, Passes: make([]diffResult, len(results))}
	for i, r := range results {
		d.Passes[i] = diffResult{Result: r, Decisions: make([]diffDecision, len(r.Decisions))}
		for j, decision := range r.Decisions {
			d.Passes[i].Decisions[j].Decision = decision
			if j >= len(r.Changes) {
				continue
			}
			var err error
			if d.Passes[i].Decisions[j].Diff, err = unifiedDiff(r.Changes[j]); err != nil {
				return err
			}
		}
	}
	return printStructured(w, p.format, d)
}

// printStructured writes a document as YAML or JSON.
func printStructured(w io.Writer, format outputFormat, document any) error {
	if format == "yaml" {
		text, err := yaml.Marshal(document)
		if err != nil {
			return fmt.Errorf("printing the results as YAML: %w", err)
		}
		_, err = w.Write(text)
		return err
	}
	encoder := json.NewEncoder(w)
	encoder.SetEscapeHTML(false)
	encoder.SetIndent("", "  ")
	return encoder.Encode(document)
}

// withoutNulls replaces the lists that are nil by empty ones: a script can loop over them without looking.
func withoutNulls(r pass.Result) pass.Result {
	decisions := make([]record.Decision, len(r.Decisions))
	for i, d := range r.Decisions {
		if d.Fields == nil {
			d.Fields = []string{}
		}
		decisions[i] = d
	}
	r.Decisions = decisions
	return r
}

// printNames writes one line for each decision, kind.group/namespace/name in the tenant. A decision about a whole kind
// has no name, and no line.
func printNames(w io.Writer, results []pass.Result) error {
	for _, r := range results {
		for _, d := range r.Decisions {
			if d.TenantName == "" {
				continue
			}
			kind := strings.ToLower(d.Kind)
			// What cannot be parsed is no group either; the kind alone is all there is.
			if gv, err := schema.ParseGroupVersion(d.APIVersion); err == nil && gv.Group != "" {
				kind += "." + gv.Group
			}
			if _, err := fmt.Fprintln(w, printable(kind+"/"+objectName(d.TenantNamespace, d.TenantName))); err != nil {
				return err
			}
		}
	}
	return nil
}

func objectName(namespace, name string) string {
	if namespace == "" {
		return name
	}
	return namespace + "/" + name
}
