package kinds

import (
	"testing"

	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

func TestWhatAPolicyCarriesOfAKind(t *testing.T) {
	web := labels.SelectorFromSet(labels.Set{"app": "web"})
	for name, test := range map[string]struct {
		rules Rules
		want  bool
	}{
		"no rules carry everything":                   {Rules{}, true},
		"a selector that the labels meet":             {Rules{Selector: web}, true},
		"a selector that they do not meet":            {Rules{Selector: labels.SelectorFromSet(labels.Set{"app": "db"})}, false},
		"a selector for a label that is not there":    {Rules{Selector: labels.SelectorFromSet(labels.Set{"tier": "a"})}, false},
		"a selector that selects everything":          {Rules{Selector: labels.Everything()}, true},
		"its namespace among several":                 {Rules{Namespaces: []string{"team-a", "default"}}, true},
		"other namespaces":                            {Rules{Namespaces: []string{"team-a", "default-2"}}, false},
		"both, of which the namespace is another":     {Rules{Selector: web, Namespaces: []string{"team-a"}}, false},
		"both, and both are met":                      {Rules{Selector: web, Namespaces: []string{"default"}}, true},
		"the label as the mirror would have it, only": {Rules{Selector: labels.SelectorFromSet(labels.Set{LabelTenant: "dev"})}, false},
	} {
		t.Run(name, func(t *testing.T) {
			object := configMap1(nil)
			setLabel(object, "app", "web")
			require.Equal(t, test.want, test.rules.Carry(object))
			require.Equal(t, test.want, Crosses(With(schema.GroupKind{Kind: "ConfigMap"}, test.rules), object))
		})
	}
	system := configMap1(nil)
	system.SetName("kube-root-ca.crt")
	require.False(t, Crosses(With(schema.GroupKind{Kind: "ConfigMap"}, Rules{Selector: labels.Everything()}), system), "no policy makes a system object cross")
}

// A kind that a policy says something about can still do all that it could.
func TestRulesLeaveAKindWhatItIs(t *testing.T) {
	rules := Rules{Namespaces: []string{"default"}}
	for _, row := range crossings() {
		kind := schema.FromAPIVersionAndKind(row.apiVersion, row.kind).GroupKind()
		require.IsType(t, For(kind), With(kind, rules))
		require.Equal(t, rules, With(kind, rules).Rules())
	}
	_, runs := With(schema.GroupKind{Kind: "Pod"}, rules).(Runs)
	require.True(t, runs)
}

// listing is a widget of the tenant's with these contents, under a policy that lists where it names others.
func listing(content Content, references ...Reference) (Kind, *unstructured.Unstructured) {
	return With(schema.GroupKind{Group: "example.com", Kind: "Widget"}, Rules{References: references}), object("example.com/v1", "Widget", content)
}

func reference(kind string, path ...string) Reference {
	return Reference{Path: path, Kind: schema.GroupKind{Kind: kind}}
}
