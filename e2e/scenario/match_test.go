package scenario

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"sigs.k8s.io/yaml"
)

func object(t *testing.T, text string) map[string]any {
	t.Helper()
	var o Object
	require.NoError(t, yaml.Unmarshal([]byte(text), &o))
	return o
}

func TestDifferences(t *testing.T) {
	for _, test := range []struct {
		name, want, got string
		differences     []string
	}{
		{"the same", "{a: 1, b: [x, {c: d}]}", "{a: 1, b: [x, {c: d}]}", nil},
		{"a map may have more", "{m: {a: x}}", "{m: {a: x, b: y}, n: z}", nil},
		{"a whole number is a number", "{a: 1.0}", "{a: 1}", nil},
		{"a number is no string", `{a: "1"}`, "{a: 1}", []string{`a: want "1", got 1`}},
		{"a quantity is compared as it is written", "{cpu: 1000m}", `{cpu: "1"}`, []string{`cpu: want "1000m", got "1"`}},
		{"a field that is not there", "{a: {b: x}}", "{a: {}}", []string{`a.b: want "x", there is none`}},
		{"null must be there", "{a: null}", "{}", []string{"a: want null, there is none"}},
		{"a map where a string is", "{a: {b: x}}", "{a: b}", []string{`a: want {"b":"x"}, got "b"`}},
		{"a key with dots", "{l: {a.b/c: x}}", "{l: {a.b/c: z}}", []string{`l["a.b/c"]: want "x", got "z"`}},
		{"a list of strings is exact", "{l: [a]}", "{l: [a, b]}", []string{`l: want ["a"], got ["a","b"]`}},
		{"the order of a list counts", "{l: [a, b]}", "{l: [b, a]}", []string{`l: want ["a","b"], got ["b","a"]`}},
		{"maps without a name are exact", "{l: [{ip: 1}]}", "{l: [{ip: 1, more: 2}]}", []string{`l: want [{"ip":1}], got [{"ip":1,"more":2}]`}},
		{"an empty list is exact", "{l: []}", "{l: [{name: a}]}", []string{`l: want [], got [{"name":"a"}]`}},
		{"maps with a name match by name, in any order, and may have more", "{l: [{name: b, v: 2}, {name: a}]}", "{l: [{name: a, v: 1}, {name: x}, {name: b, v: 2, w: 3}]}", nil},
		{"a named map that is not there", "{l: [{name: b}]}", "{l: [{name: a}]}", []string{"l[name=b]: there is none"}},
		{"a named map that differs", "{l: [{name: a, v: {w: 1}}]}", "{l: [{name: a, v: {w: 2}}]}", []string{"l[name=a].v.w: want 1, got 2"}},
		{"named maps beside one without a name", "{l: [{name: a}]}", "{l: [{port: 1}, {name: a}]}", nil},
		{"a name that is there twice matches either", "{l: [{name: a, v: 2}]}", "{l: [{name: a, v: 1}, {name: a, v: 2}]}", nil},
		{"a name that is asked for twice is exact", "{l: [{name: a}, {name: a}]}", "{l: [{name: a}]}", []string{`l: want [{"name":"a"},{"name":"a"}], got [{"name":"a"}]`}},
		{"named maps where a map is", "{l: [{name: a}]}", "{l: {name: a}}", []string{`l: want [{"name":"a"}], got {"name":"a"}`}},
		{"all differences are told, in order", "{b: 1, a: 1}", "{b: 2, a: 2}", []string{"a: want 1, got 2", "b: want 1, got 2"}},
	} {
		t.Run(test.name, func(t *testing.T) {
			assert.Equal(t, test.differences, differences(object(t, test.want), object(t, test.got)))
		})
	}
}

func TestAnObjectIsReplacedButForTheServersFields(t *testing.T) {
	there := object(t, "{metadata: {name: a, uid: u, resourceVersion: '7', labels: {old: x}, finalizers: [f], annotations: {x: z}}, data: {a: '1'}, immutable: true}")
	wanted := object(t, "{metadata: {name: a, labels: {new: x}}, data: {b: '2'}}")
	got := replaced(unstructuredOf(there), unstructuredOf(wanted))
	assert.Equal(t, object(t, "{metadata: {name: a, uid: u, resourceVersion: '7', labels: {new: x}}, data: {b: '2'}}"), got.Object)
	assert.NotContains(t, wanted["metadata"], "uid", "what was asked for is not changed")
}
