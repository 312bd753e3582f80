package kinds

import (
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"
)

// Equal compares two contents of one side.
func Equal(a, b Content) bool { return equal(a, b) }

// Path is the way to a field, one map key after the other.
type Path []string

// String writes a path dotted, with ["key with dots"].
func (p Path) String() string {
	var text strings.Builder
	for i, key := range p {
		switch {
		case !plainKey(key):
			fmt.Fprintf(&text, "[%q]", key)
		case i > 0:
			text.WriteString("." + key)
		default:
			text.WriteString(key)
		}
	}
	return text.String()
}

func plainKey(key string) bool {
	return key != "" && strings.Trim(key, "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_-") == ""
}

// Difference lists the paths at which two contents of one side differ, sorted. Lists are compared whole, since their
// order carries meaning.
func Difference(from, to Content) []Path {
	var paths []Path
	differ(nil, from, to, &paths)
	slices.SortFunc(paths, slices.Compare)
	return paths
}

func differ(path Path, from, to any, paths *[]Path) {
	if equal(from, to) {
		return
	}
	a, aMap := from.(Content)
	b, bMap := to.(Content)
	// A map that is new or gone is named key by key, like one that changed.
	if (aMap || from == nil) && (bMap || to == nil) && len(a)+len(b) > 0 {
		keys := Content{}
		maps.Copy(keys, a)
		maps.Copy(keys, b)
		for key := range keys {
			differ(append(slices.Clone(path), key), a[key], b[key], paths)
		}
		return
	}
	*paths = append(*paths, path)
}

// At is the value at a path, nil where there is none.
func (p Path) At(content Content) any {
	var value any = content
	for _, key := range p {
		entries, _ := value.(Content)
		value = entries[key]
	}
	return value
}

// AsksWriters is a kind whose rules ask who set which field of a tenant object, by its managedFields. Of all others a
// snapshot does without these sets of fields, which are most of what an object takes in memory.
type AsksWriters interface {
	// AsksWriters does nothing but say so.
	AsksWriters()
}

// ManagedByUs says whether the field at the path, or anything below it, is ours by managedFields, the API server's own
// account of who set each field last
// (https://kubernetes.io/docs/reference/using-api/server-side-apply/#field-management). A field within one that the API
// treats as a whole (a Service's selector) belongs to whoever the whole belongs to.
func ManagedByUs(object metav1.Object, path ...string) bool {
	whole, parted := 0, 0 // how deep a field on the way is ours as a whole, and is anybody's in parts
	for _, entry := range object.GetManagedFields() {
		if entry.FieldsV1 == nil || entry.Subresource != "" {
			continue
		}
		set := &fieldpath.Set{}
		if set.FromJSON(entry.FieldsV1.GetRawReader()) != nil {
			continue
		}
		for i := range path {
			element := fieldpath.PathElement{FieldName: &path[i]}
			member := set.Members.Has(element)
			set = set.WithPrefix(element)
			if !set.Empty() {
				parted = max(parted, i+1)
			}
			if entry.Manager != FieldManager {
				continue
			}
			if i == len(path)-1 && (member || !set.Empty()) {
				return true
			}
			if member && set.Empty() {
				whole = i + 1
			}
		}
	}
	// An empty map is listed like one that is a whole, but then others may own parts of it.
	return whole > parted
}

// equal is equality of JSON values in which an absent map or list equals an empty one only at the top, where
// ContentOf has already dropped the empty ones.
func equal(a, b any) bool { return reflect.DeepEqual(a, b) }

func isEmpty(value any) bool {
	switch value := value.(type) {
	case nil:
		return true
	case Content:
		return len(value) == 0
	case []any:
		return len(value) == 0
	}
	return false
}

// child is a map within a map, nil where there is none.
func child(content Content, field string) Content {
	value, _ := content[field].(Content)
	return value
}

func renameKeys(entries Content, rename func(string) string) Content {
	renamed := make(Content, len(entries))
	for key, value := range entries {
		renamed[rename(key)] = value
	}
	return renamed
}
