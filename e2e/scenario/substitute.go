package scenario

import (
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// placeholder is ${key}.
var placeholder = regexp.MustCompile(`\$\{([A-Za-z0-9_.-]+)\}`)

// values are what ${key} may stand for at this moment.
func (r *run) values() map[string]string {
	values := maps.Clone(r.saved)
	values["dir"] = r.dir
	values["now"] = time.Now().UTC().Format(metav1.RFC3339Micro)
	return values
}

// substitute returns a copy of a tree with every ${key} in its strings replaced.
func substitute(tree any, values map[string]string) (any, error) {
	switch tree := tree.(type) {
	case string:
		return substituteString(tree, values)
	case map[string]any:
		result := make(map[string]any, len(tree))
		for _, key := range slices.Sorted(maps.Keys(tree)) { // so that of several faults it is always the same one that is told
			var err error
			if result[key], err = substitute(tree[key], values); err != nil {
				return nil, err
			}
		}
		return result, nil
	case []any:
		result := make([]any, len(tree))
		for i, value := range tree {
			var err error
			if result[i], err = substitute(value, values); err != nil {
				return nil, err
			}
		}
		return result, nil
	default:
		return tree, nil
	}
}

func substituteString(s string, values map[string]string) (string, error) {
	var unknown []string
	result := placeholder.ReplaceAllStringFunc(s, func(found string) string {
		key := placeholder.FindStringSubmatch(found)[1]
		value, known := values[key]
		if !known {
			unknown = append(unknown, found)
		}
		return value
	})
	if unknown != nil {
		known := slices.Sorted(maps.Keys(values))
		return "", fmt.Errorf("%s in %q was never saved; known here are %s", strings.Join(unknown, ", "), s, strings.Join(known, ", "))
	}
	return result, nil
}

// substituteAll replaces in the values of a map.
func substituteAll(m, values map[string]string) (map[string]string, error) {
	result := make(map[string]string, len(m))
	for _, key := range slices.Sorted(maps.Keys(m)) {
		var err error
		if result[key], err = substituteString(m[key], values); err != nil {
			return nil, fmt.Errorf("%s: %w", key, err)
		}
	}
	return result, nil
}
