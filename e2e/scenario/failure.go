package scenario

import (
	"encoding/json"
	"fmt"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"
)

// requestsShown is how many lines of the request log a failure shows, the first ones.
const requestsShown = 200

// failure tells a person what a step came to, and what the last run of the binary
// did.
func (r *run) failure(step int, verb string, err error) error {
	var b strings.Builder
	fmt.Fprintf(&b, "%s\nstep %d of %d, %s:\n%s", r.file.Name, step+1, len(r.file.Steps), verb, indent(err.Error(), "  "))
	if r.last == nil {
		return fmt.Errorf("%s", b.String())
	}
	fmt.Fprintf(&b, "\n\nthe last run of the binary: %s, exit %d, %s", strings.Join(r.last.Args, " "), r.last.Exit, r.last.Took.Round(1e6))
	if r.made != nil {
		fmt.Fprintf(&b, "\ndecisions:\n%s", indent(table(r.made), "  "))
	} else {
		fmt.Fprintf(&b, "\nstdout:\n%s", indent(string(r.last.Stdout), "  "))
	}
	fmt.Fprintf(&b, "\nstderr:\n%s\nrequests (W: changed something):", indent(string(r.last.Stderr), "  "))
	for i, request := range r.last.Requests {
		if i == requestsShown {
			fmt.Fprintf(&b, "\n  … and %d more", len(r.last.Requests)-i)
			break
		}
		fmt.Fprintf(&b, "\n  %s", request)
	}
	return fmt.Errorf("%s", b.String())
}

// yamlOf shows an object without what only the API server reads.
func yamlOf(object *unstructured.Unstructured) string {
	object = object.DeepCopy()
	object.SetManagedFields(nil)
	text, err := yaml.Marshal(object.Object)
	if err != nil {
		return err.Error()
	}
	return string(text)
}

// show is a value on one line.
func show(value any) string {
	text, err := json.Marshal(value)
	if err != nil {
		return err.Error()
	}
	return string(text)
}

func indent(text, by string) string {
	return by + strings.ReplaceAll(strings.TrimRight(text, "\n"), "\n", "\n"+by)
}
