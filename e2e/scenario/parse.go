package scenario

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"

	sigsjson "sigs.k8s.io/json"
	"sigs.k8s.io/yaml"
)

// Read reads and parses the file at path.
func Read(path string) (*File, error) {
	data, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	file, err := Parse(data)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	return file, nil
}

// Parse reads a scenario file. Unknown and repeated keys are errors; all errors
// of one kind are reported together.
func Parse(data []byte) (*File, error) {
	asJSON, err := yaml.YAMLToJSONStrict(data)
	if err != nil {
		return nil, err
	}
	file := &File{}
	if err := decode(asJSON, file); err != nil {
		return nil, err
	}
	// The steps are kept as they stand as well: ${} is put in when a step's turn
	// has come, and the step is then decoded again.
	var tree struct {
		Steps []Object `json:"steps"`
	}
	if err := json.Unmarshal(asJSON, &tree); err != nil {
		return nil, err
	}
	for i := range file.Steps {
		file.Steps[i].unresolved = tree.Steps[i]
		for verb := range tree.Steps[i] {
			file.Steps[i].verb = verb
		}
	}
	return file, file.validate()
}

// decode is strict: every unknown key is an error that says its path.
func decode(data []byte, into any) error {
	strict, err := sigsjson.UnmarshalStrict(data, into)
	if err != nil {
		return err
	}
	return errors.Join(strict...)
}

// resolve returns the step with every ${key} in its strings replaced.
func (s Step) resolve(values map[string]string) (Step, error) {
	tree, err := substitute(s.unresolved, values)
	if err != nil {
		return Step{}, err
	}
	data, err := json.Marshal(tree)
	if err != nil {
		return Step{}, err
	}
	resolved := Step{verb: s.verb}
	return resolved, decode(data, &resolved)
}

var countNames = []string{"create", "update", "delete", "skip", "unchanged", "error", "requests"}

// validate finds what the types alone let through.
func (f *File) validate() error {
	var errs []error
	if strings.TrimSpace(f.Name) == "" {
		errs = append(errs, errors.New("name: missing; say the behaviour in a sentence"))
	}
	for i, need := range f.Needs {
		if need != NeedTenantControllers && need != NeedHostNode {
			errs = append(errs, fmt.Errorf("needs[%d]: unknown need %q; known are %s and %s", i, need, NeedTenantControllers, NeedHostNode))
		}
	}
	for name := range f.Files {
		if name == "" || strings.ContainsAny(name, `/\`) || name == ".." {
			errs = append(errs, fmt.Errorf("files: %q is not a plain file name", name))
		}
	}
	if len(f.Steps) == 0 {
		errs = append(errs, errors.New("steps: there are none"))
	}
	for i, step := range f.Steps {
		if err := step.validate(); err != nil {
			errs = append(errs, fmt.Errorf("steps[%d]: %w", i, err))
		}
	}
	return errors.Join(errs...)
}

func (s Step) validate() error {
	if len(s.unresolved) != 1 {
		return fmt.Errorf("a step is a map with one key, this one has %d", len(s.unresolved))
	}
	if s.unresolved[s.verb] == nil {
		return fmt.Errorf("%s: empty; write %s: {} if nothing is to be said", s.verb, s.verb)
	}
	var errs []error
	check := func(where string, err error) {
		if err != nil {
			errs = append(errs, fmt.Errorf("%s.%s: %w", s.verb, where, err))
		}
	}
	objects := func(side string, list []Object) {
		for i, o := range list {
			check(fmt.Sprintf("%s[%d]", side, i), o.ref().validate())
		}
	}
	refs := func(side string, list []Ref) {
		for i, r := range list {
			check(fmt.Sprintf("%s[%d]", side, i), r.validate())
		}
	}
	bindings := func(side string, list []Binding) {
		for i, b := range list {
			check(fmt.Sprintf("%s[%d]", side, i), b.validate())
		}
	}
	expectations := func(side string, list []Expectation) {
		for i, e := range list {
			check(fmt.Sprintf("%s[%d]", side, i), e.validate(side))
		}
	}
	switch {
	case s.Apply != nil, s.Patch != nil, s.PatchStatus != nil:
		for _, o := range []*Objects{s.Apply, s.Patch, s.PatchStatus} {
			if o != nil {
				objects("tenant", o.Tenant)
				objects("host", o.Host)
			}
		}
	case s.Delete != nil:
		refs("tenant", s.Delete.Tenant)
		refs("host", s.Delete.Host)
	case s.Mark != nil:
		refs("tenant", s.Mark.Tenant)
		refs("host", s.Mark.Host)
	case s.Bind != nil:
		bindings("tenant", s.Bind.Tenant)
		bindings("host", s.Bind.Host)
	case s.ForgetHistory != nil:
		if !*s.ForgetHistory {
			return errors.New("forgetHistory: can only be true")
		}
	case s.Pass != nil:
		check("counts", validateCounts(s.Pass.Counts))
	case s.Plan != nil:
		check("counts", validateCounts(s.Plan.Counts))
	case s.Expect != nil:
		expectations("tenant", s.Expect.Tenant)
		expectations("host", s.Expect.Host)
	case s.Run != nil:
		if len(s.Run.Args) == 0 {
			return errors.New("run.args: there are none")
		}
	case s.Save != nil:
		for key, saved := range s.Save {
			check(key, saved.validate())
		}
	}
	return errors.Join(errs...)
}

func validateCounts(counts map[string]int) error {
	for name := range counts {
		if !slices.Contains(countNames, name) {
			return fmt.Errorf("unknown count %q; known are %s", name, strings.Join(countNames, ", "))
		}
	}
	return nil
}

func (r Ref) validate() error {
	if r.APIVersion == "" || r.Kind == "" || r.Metadata.Name == "" {
		return errors.New("apiVersion, kind and metadata.name must be there")
	}
	return nil
}

func (b Binding) validate() error {
	if b.Node == "" {
		return errors.New("node: missing")
	}
	return b.Ref.validate()
}

func (s Saved) validate() error {
	if s.Side != sideTenant && s.Side != sideHost {
		return fmt.Errorf("side: must be tenant or host, not %q", s.Side)
	}
	if _, err := parsePath(s.Path); err != nil {
		return err
	}
	return s.Ref.validate()
}

func (e Expectation) validate(side string) error {
	set := 0
	for _, is := range []bool{e.Has != nil, e.Absent != nil, e.Lacks != nil, e.Unchanged != nil, e.Count != nil, e.Events != nil} {
		if is {
			set++
		}
	}
	if set != 1 {
		return fmt.Errorf("one of has, absent, lacks, unchanged, count and events must be there, not %d of them", set)
	}
	if (e.Lacks != nil) != (len(e.Paths) > 0) {
		return errors.New("lacks and paths belong together")
	}
	if (e.Count != nil) != (e.Path != "") {
		return errors.New("count and path belong together")
	}
	if (e.Count != nil || e.Events != nil) != (e.Is != nil) {
		return errors.New("count and events need an is, the others take none")
	}
	if e.Events != nil && side != sideHost {
		return errors.New("events are counted on the host")
	}
	paths := e.Paths
	if e.Path != "" {
		paths = append(paths, e.Path)
	}
	for _, p := range paths {
		if _, err := parsePath(p); err != nil {
			return err
		}
	}
	for _, r := range []*Ref{e.Absent, e.Lacks, e.Unchanged, e.Count} {
		if r != nil {
			return r.validate()
		}
	}
	if e.Has != nil {
		return e.Has.ref().validate()
	}
	return nil
}
