package scenario

import (
	"fmt"
	"strconv"
	"strings"
)

// parsePath takes a path apart: names between dots, ["names with dots"] and [0].
// A part is a string (a key) or an int (an index).
func parsePath(path string) ([]any, error) {
	bad := func(cause string) ([]any, error) {
		return nil, fmt.Errorf("path %q: %s; write it as data.x, metadata.labels[\"a/b\"] or spec.ports[0].port", path, cause)
	}
	var parts []any
	rest := path
	for rest != "" {
		switch {
		case strings.HasPrefix(rest, `["`):
			end := strings.Index(rest, `"]`)
			if end < 0 {
				return bad(`[" without "]`)
			}
			parts, rest = append(parts, rest[2:end]), rest[end+2:]
		case rest[0] == '[':
			end := strings.IndexByte(rest, ']')
			if end < 0 {
				return bad("[ without ]")
			}
			index, err := strconv.Atoi(rest[1:end])
			if err != nil || index < 0 {
				return bad("no index between [ and ]")
			}
			parts, rest = append(parts, index), rest[end+1:]
		default:
			if len(parts) > 0 {
				if rest[0] != '.' {
					return bad("a dot is missing")
				}
				rest = rest[1:]
			}
			end := strings.IndexAny(rest, ".[")
			if end < 0 {
				end = len(rest)
			}
			if end == 0 {
				return bad("a name is missing")
			}
			parts, rest = append(parts, rest[:end]), rest[end:]
		}
	}
	if len(parts) == 0 {
		return bad("it is empty")
	}
	return parts, nil
}

// lookup returns what is at the path in a tree, and whether anything is.
func lookup(tree any, path string) (value any, found bool, err error) {
	parts, err := parsePath(path)
	if err != nil {
		return nil, false, err
	}
	for _, part := range parts {
		switch part := part.(type) {
		case string:
			fields, _ := tree.(map[string]any)
			if tree, found = fields[part]; !found {
				return nil, false, nil
			}
		case int:
			list, _ := tree.([]any)
			if part >= len(list) {
				return nil, false, nil
			}
			tree = list[part]
		}
	}
	return tree, true, nil
}
