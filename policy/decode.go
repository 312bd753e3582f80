package policy

import (
	"encoding/json"
	"fmt"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/utils/ptr"
	kjson "sigs.k8s.io/json"
)

// decoder turns a tree of maps, lists and scalars into the types of this package, and goes on after a fault, so that
// all of them are found at once. The strict decoders of the libraries stop at the first value of a wrong type and
// name it by its Go type. A field that is null counts as not set, as everywhere in Kubernetes.
type decoder struct {
	faults field.ErrorList
}

// fields maps the names of an object's fields to what reads each.
type fields map[string]func(path *field.Path, value any)

func (d *decoder) syncPolicy(object map[string]any) *SyncPolicy {
	policy := &SyncPolicy{}
	d.object(nil, object, fields{
		"apiVersion": func(path *field.Path, value any) {
			policy.APIVersion = d.string(path, value, GroupVersion.String())
		},
		"kind":     func(path *field.Path, value any) { policy.Kind = d.string(path, value, syncPolicyKind) },
		"metadata": func(path *field.Path, value any) { d.metadata(path, value, &policy.ObjectMeta) },
		"spec":     func(path *field.Path, value any) { d.spec(path, value, &policy.Spec) },
	})
	d.exactly("apiVersion", policy.APIVersion, GroupVersion.String())
	d.exactly("kind", policy.Kind, syncPolicyKind)
	return policy
}

func (d *decoder) spec(path *field.Path, value any, spec *SyncPolicySpec) {
	d.object(path, value, fields{
		"conflictPolicy": func(path *field.Path, value any) {
			spec.ConflictPolicy = ConflictPolicy(d.string(path, value, "one of "+join(conflictPolicies)))
		},
		"driftDetection": func(path *field.Path, value any) {
			d.object(path, value, fields{
				"enabled":  func(path *field.Path, value any) { spec.DriftDetection.Enabled = d.bool(path, value) },
				"interval": func(path *field.Path, value any) { spec.DriftDetection.Interval = d.duration(path, value) },
			})
		},
		"explain": func(path *field.Path, value any) {
			d.object(path, value, fields{
				"recordDecisions": func(path *field.Path, value any) { spec.Explain.RecordDecisions = d.bool(path, value) },
				"retain":          func(path *field.Path, value any) { spec.Explain.Retain = d.retain(path, value) },
			})
		},
		"resources": func(path *field.Path, value any) { spec.Resources = d.resources(path, value) },
	})
}

// exactly reports a top-level field that has been read and can only have one value.
func (d *decoder) exactly(name, got, want string) {
	path := field.NewPath(name)
	switch {
	case got == want || d.failed(name):
	case got == "":
		d.fault(field.Required(path, "must be "+want))
	default:
		d.fault(field.NotSupported(path, short(got), []string{want}))
	}
}

// metadata reads field by field, so that each gets its own fault and this code needs no list of them.
func (d *decoder) metadata(path *field.Path, value any, meta *metav1.ObjectMeta) {
	object, ok := value.(map[string]any)
	if !ok {
		d.mistyped(path, value, "a map with a name")
		return
	}
	for _, name := range slices.Sorted(maps.Keys(object)) {
		if object[name] == nil {
			continue
		}
		single, err := json.Marshal(map[string]any{name: object[name]})
		if err != nil {
			d.fault(field.Invalid(child(path, name), field.OmitValueType{}, err.Error()))
			continue
		}
		unknown, err := kjson.UnmarshalStrict(single, meta)
		if err != nil {
			d.fault(field.Invalid(child(path, name), field.OmitValueType{}, err.Error()))
		}
		for _, err := range unknown {
			d.fault(field.Forbidden(child(path, name), err.Error()+": see `kubectl explain syncpolicy.metadata`"))
		}
	}
}

// object reads the fields of a map and reports those it does not know.
func (d *decoder) object(path *field.Path, value any, known fields) {
	names := strings.Join(slices.Sorted(maps.Keys(known)), ", ")
	object, ok := value.(map[string]any)
	if !ok {
		d.mistyped(path, value, "a map with "+names)
		return
	}
	for _, name := range slices.Sorted(maps.Keys(object)) {
		read, ok := known[name]
		switch {
		case !ok:
			d.fault(field.Forbidden(child(path, name), "unknown field; the fields here are "+names))
		case object[name] != nil:
			read(child(path, name), object[name])
		}
	}
}

func (d *decoder) string(path *field.Path, value any, want string) string {
	text, ok := value.(string)
	if !ok {
		d.mistyped(path, value, want)
	}
	return text
}

func (d *decoder) bool(path *field.Path, value any) *bool {
	truth, ok := value.(bool)
	if !ok {
		d.mistyped(path, value, "true or false, without quotes")
		return nil
	}
	return &truth
}

func (d *decoder) duration(path *field.Path, value any) *metav1.Duration {
	const want = "Go duration such as 30s or 1m30s"
	text, ok := value.(string)
	if !ok {
		d.mistyped(path, value, "a "+want)
		return nil
	}
	duration, err := time.ParseDuration(text)
	if err != nil {
		d.fault(field.Invalid(path, short(text), "no "+want))
		return nil
	}
	return &metav1.Duration{Duration: duration}
}

func (d *decoder) retain(path *field.Path, value any) *int32 {
	number, ok := value.(int64)
	if !ok {
		d.mistyped(path, value, "a whole number")
		return nil
	}
	if number < math.MinInt32 || number > math.MaxInt32 {
		d.fault(field.Invalid(path, number, retainRange))
		return nil
	}
	return ptr.To(int32(number))
}

// mistyped reports a value that cannot be read, and says what is wanted in its place.
func (d *decoder) mistyped(path *field.Path, value any, want string) {
	shown := any(field.OmitValueType{})
	switch value := value.(type) {
	case string:
		shown = short(value)
	case bool, int64, float64:
		shown = value
	}
	d.fault(field.TypeInvalid(path, shown, fmt.Sprintf("%s where %s is wanted", typeName(value), want)))
}

func (d *decoder) fault(fault *field.Error) {
	d.faults = append(d.faults, fault)
}

// failed reports whether the field at path, or one that contains it, could not be read.
func (d *decoder) failed(path string) bool {
	return slices.ContainsFunc(d.faults, func(fault *field.Error) bool {
		rest, ok := strings.CutPrefix(path, fault.Field)
		return ok && (rest == "" || rest[0] == '.' || rest[0] == '[')
	})
}

// child is path.Child for a name that may hold anything: a fault ends up in logs and on terminals.
func child(path *field.Path, name string) *field.Path {
	if quoted := strconv.QuoteToASCII(short(name)); quoted != `"`+name+`"` {
		return path.Child(quoted)
	}
	return path.Child(name)
}

// short bounds what a fault repeats of its input.
func short(text string) string {
	const limit = 100
	if len(text) <= limit {
		return text
	}
	return strings.ToValidUTF8(text[:limit], "") + "…"
}

// typeName is what people call a value's type in YAML.
func typeName(value any) string {
	switch value.(type) {
	case nil:
		return "nothing"
	case string:
		return "a string"
	case bool:
		return "a boolean"
	case int64, float64:
		return "a number"
	case []any:
		return "a list"
	case map[string]any:
		return "a map"
	}
	return fmt.Sprintf("a %T", value)
}
