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
	switch format {
	case "json", "yaml":
		return printDocument(w, format, dryRun, results)
	case "name":
		return printNames(w, results)
	default:
		return printTables(w, format == "wide", dryRun, results)
	}
}

func printDocument(w io.Writer, format outputFormat, dryRun bool, results []pass.Result) error {
	d := document{FormatVersion: formatVersion, DryRun: dryRun, Passes: make([]pass.Result, len(results))}
	for i, r := range results {
		d.Passes[i] = withoutNulls(r)
	}
	return printStructured(w, format, d)
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
