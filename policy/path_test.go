package policy

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestPathsAreRead(t *testing.T) {
	for text, want := range map[string]Path{
		"spec.secretName":                       {"spec", "secretName"},
		"secretName":                            {"secretName"},
		"spec.rules[*].backend.name":            {"spec", "rules", EachItem, "backend", "name"},
		"spec.names[*]":                         {"spec", "names", EachItem},
		"spec.grid[*][*].name":                  {"spec", "grid", EachItem, EachItem, "name"},
		`spec.parameters["example.com/secret"]`: {"spec", "parameters", "example.com/secret"},
		`["a.b"].c`:                             {"a.b", "c"},
		`spec["[*]"].name`:                      {"spec", "[*]", "name"},
		`spec["metadata"].name`:                 {"spec", "metadata", "name"},
		"spec.metadata.name":                    {"spec", "metadata", "name"},
		"spec.0.a_b-c":                          {"spec", "0", "a_b-c"},
		"metadatas.name":                        {"metadatas", "name"},
		strings.Repeat("a", maxPathLength):      {strings.Repeat("a", maxPathLength)},
	} {
		t.Run(text, func(t *testing.T) {
			path, err := ParsePath(text)
			require.NoError(t, err)
			assert.Equal(t, want, path)
		})
	}
}

func TestWhatIsNoPathIsRefused(t *testing.T) {
	for _, text := range []string{
		"", ".", ".spec", "spec.", "spec..a", "spec.a b", "spec[0].a", "spec[a]", "spec['a']", `spec[""]`, `spec["a]`, `spec["a\"b"]`, "$.spec", "{.spec.a}",
		"spec.[*].a", "[*].a", "spec/a", "spec.*", "spec[*]a", `spec["a"]b`, strings.Repeat("a", maxPathLength+1),
	} {
		t.Run(text, func(t *testing.T) {
			_, err := ParsePath(text)
			assert.EqualError(t, err, badPath)
		})
	}
	for _, root := range rootless {
		for _, text := range []string{root, root + ".name", `["` + root + `"]`, `["` + root + `"].name`, root + `["name"]`, root + "[*]"} {
			t.Run(text, func(t *testing.T) {
				_, err := ParsePath(text)
				assert.ErrorContains(t, err, "must not lead into metadata, status")
			})
		}
	}
}
