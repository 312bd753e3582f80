package pass

import (
	"maps"
	"reflect"
	"slices"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/syncpass/syncpass/pass/kinds"
)

// Masked stands for a value that is not shown.
const Masked = "***"

var secretKind = schema.GroupKind{Kind: "Secret"}

// isSecret says whether values of a kind are hidden: those of Secrets, of whatever group.
func isSecret(kind string) bool { return kind == secretKind.Kind }

// maskSecret hides what two states of a Secret hold, and still shows which values differ, as kubectl diff does. Only what is
// known to be no secret is left as it is: tools copy whole objects into annotations. Either state may be nil.
func maskSecret(was, is map[string]any) {
	for _, field := range fieldsOf(was, is) {
		switch field {
		case "apiVersion", "kind", "type", "immutable":
		case "metadata":
			before, _ := was[field].(map[string]any)
			after, _ := is[field].(map[string]any)
			maskField(before, after, "annotations")
		default:
			maskField(was, is, field)
		}
	}
}

// marks are the annotations of a mirror that the runner writes itself.
var marks = []string{kinds.AnnotationVirtualNamespace, kinds.AnnotationVirtualName, kinds.AnnotationVirtualUID}

// maskField hides the values of a field's map, or the field where it is none.
func maskField(was, is map[string]any, field string) {
	before, beforeIsMap := was[field].(map[string]any)
	after, afterIsMap := is[field].(map[string]any)
	if _, there := was[field]; there && !beforeIsMap {
		before = map[string]any{field: was[field]}
	}
	if _, there := is[field]; there && !afterIsMap {
		after = map[string]any{field: is[field]}
	}
	before, after = maps.Clone(before), maps.Clone(after)
	for _, name := range fieldsOf(before, after) {
		if field == "annotations" && slices.Contains(marks, name) {
			continue
		}
		old, inBefore := before[name]
		next, inAfter := after[name]
		same := reflect.DeepEqual(old, next)
		switch {
		case inBefore && inAfter && !same:
			before[name], after[name] = Masked+" (before)", Masked+" (after)"
		case inBefore && inAfter:
			before[name], after[name] = Masked, Masked
		case inBefore:
			before[name] = Masked
		default:
			after[name] = Masked
		}
	}
	if _, there := was[field]; there {
		was[field] = before
	}
	if _, there := is[field]; there {
		is[field] = after
	}
}

// fieldsOf are the keys of both maps, sorted.
func fieldsOf(a, b map[string]any) []string {
	all := maps.Clone(a)
	if all == nil {
		all = map[string]any{}
	}
	maps.Copy(all, b)
	return slices.Sorted(maps.Keys(all))
}
