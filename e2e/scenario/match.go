package scenario

import (
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"
)

// differences compares a part of an object with the object: what of want is not
// in got. A map matches if all of its fields do, a list of maps with a name if
// every named map has a match of that name; anything else must be equal.
func differences(want, got any) []string {
	return differ("", want, got)
}

func differ(path string, want, got any) []string {
	switch want := want.(type) {
	case map[string]any:
		fields, ok := got.(map[string]any)
		if !ok {
			return []string{difference(path, want, got)}
		}
		var all []string
		for _, key := range slices.Sorted(maps.Keys(want)) {
			value, found := fields[key]
			if !found {
				all = append(all, fmt.Sprintf("%s: want %s, there is none", join(path, key), show(want[key])))
				continue
			}
			all = append(all, differ(join(path, key), want[key], value)...)
		}
		return all
	case []any:
		if names, named := namesOf(want); named {
			return differNamed(path, want, names, got)
		}
	}
	if !equal(want, got) {
		return []string{difference(path, want, got)}
	}
	return nil
}

// differNamed compares a list of maps that all have a name. The other list may
// have more, and maps without a name.
func differNamed(path string, want []any, names []string, got any) []string {
	list, ok := got.([]any)
	if !ok {
		return []string{difference(path, want, got)}
	}
	var all []string
	for i, name := range names {
		at := fmt.Sprintf("%s[name=%s]", path, name)
		found := false
		var closest []string
		for _, item := range list {
			if fields, _ := item.(map[string]any); fields["name"] != name {
				continue
			}
			left := differ(at, want[i], item)
			if !found || len(left) < len(closest) {
				found, closest = true, left
			}
		}
		if !found {
			closest = []string{at + ": there is none"}
		}
		all = append(all, closest...)
	}
	return all
}

// namesOf returns the names of a list of maps; named is false if it is something
// else, is empty, or has a name twice.
func namesOf(list []any) (names []string, named bool) {
	for _, item := range list {
		fields, _ := item.(map[string]any)
		name, ok := fields["name"].(string)
		if !ok || slices.Contains(names, name) {
			return nil, false
		}
		names = append(names, name)
	}
	return names, len(names) > 0
}

// equal compares exactly, but for the Go type of a number: 1 is 1.0 in JSON.
func equal(want, got any) bool {
	return reflect.DeepEqual(normal(want), normal(got))
}

func normal(value any) any {
	switch value := value.(type) {
	case int64:
		return float64(value)
	case map[string]any:
		result := make(map[string]any, len(value))
		for key, v := range value {
			result[key] = normal(v)
		}
		return result
	case []any:
		result := make([]any, len(value))
		for i, v := range value {
			result[i] = normal(v)
		}
		return result
	default:
		return value
	}
}

func difference(path string, want, got any) string {
	return fmt.Sprintf("%s: want %s, got %s", path, show(want), show(got))
}

func join(path, key string) string {
	switch {
	case strings.ContainsAny(key, ".[]"):
		return path + `["` + key + `"]`
	case path == "":
		return key
	default:
		return path + "." + key
	}
}
