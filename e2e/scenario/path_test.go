package scenario

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestLookup(t *testing.T) {
	tree := map[string]any{
		"data":     map[string]any{"x": "1", "empty": nil},
		"metadata": map[string]any{"labels": map[string]any{"a.b/c": "label", "plain": "p"}},
		"list":     []any{map[string]any{"name": "first"}, []any{"nested"}},
	}
	for _, test := range []struct {
		path  string
		want  any
		found bool
	}{
		{"data.x", "1", true},
		{"data.empty", nil, true},
		{"data.y", nil, false},
		{"data.x.y", nil, false},
		{`metadata.labels["a.b/c"]`, "label", true},
		{`metadata.labels["plain"]`, "p", true},
		{`metadata.labels["none"]`, nil, false},
		{`["data"].x`, "1", true},
		{"list[0].name", "first", true},
		{"list[1][0]", "nested", true},
		{"list[2]", nil, false},
		{"list.x", nil, false},
		{"data[0]", nil, false},
	} {
		t.Run(test.path, func(t *testing.T) {
			value, found, err := lookup(tree, test.path)
			require.NoError(t, err)
			assert.Equal(t, test.found, found)
			assert.Equal(t, test.want, value)
		})
	}
}

func TestAPathThatIsNone(t *testing.T) {
	for path, cause := range map[string]string{
		"":         "it is empty",
		".a":       "a name is missing",
		"a.":       "a name is missing",
		"a..b":     "a name is missing",
		"a[":       "[ without ]",
		"a[x]":     "no index",
		"a[-1]":    "no index",
		`a["b]`:    `[" without "]`,
		"a[0]b":    "a dot is missing",
		`a["b"]c`:  "a dot is missing",
		`a["b"].`:  "a name is missing",
		`a["b"].[`: "a name is missing",
	} {
		t.Run(path, func(t *testing.T) {
			_, _, err := lookup(map[string]any{}, path)
			require.ErrorContains(t, err, cause)
		})
	}
}
