package policy

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// widget is a policy file with one custom resource, given what else is said of it.
func widget(more string) string {
	return withSpec("resources: [{apiVersion: example.com/v1, kind: Widget, direction: toHost, " + more + "}]")
}

// badPath is what is said of a path that is none.
const badPath = `must be a path such as spec.secretName, spec.rules[*].backend.name or spec.parameters["example.com/secret"], at most 256 characters`

func TestWhatNarrowsAKindAndWhatItRefersToIsRead(t *testing.T) {
	policy, err := Parse([]byte(widget(`references: [{path: "spec.rules[*].backend", kind: Service}, {path: spec.bucket, kind: Bucket, apiVersion: example.com/v1}], ` +
		`selector: {matchLabels: {app: web}, matchExpressions: [{key: tier, operator: NotIn, values: ["1"]}]}, namespaces: [default, team-a]`)))
	require.NoError(t, err)
	resource := policy.Spec.Resources[0]
	assert.Equal(t, Resource{
		APIVersion: "example.com/v1", Kind: "Widget", Direction: ToHost,
		References: []Reference{
			{Path: "spec.rules[*].backend", Kind: "Service"}, {Path: "spec.bucket", Kind: "Bucket", APIVersion: "example.com/v1"},
		},
		Selector: &metav1.LabelSelector{
			MatchLabels:      map[string]string{"app": "web"},
			MatchExpressions: []metav1.LabelSelectorRequirement{{Key: "tier", Operator: metav1.LabelSelectorOpNotIn, Values: []string{"1"}}},
		},
		Namespaces: []string{"default", "team-a"},
	}, resource)
	assert.Equal(t, schema.GroupKind{Kind: "Service"}, resource.References[0].GroupKind(), "v1 where no apiVersion is given")
	assert.Equal(t, schema.GroupKind{Group: "example.com", Kind: "Bucket"}, resource.References[1].GroupKind())

	for name, more := range map[string]string{
		"null":  "references: null, selector: null, namespaces: null",
		"empty": "references: []",
	} {
		t.Run(name, func(t *testing.T) {
			policy, err := Parse([]byte(widget(more)))
			require.NoError(t, err)
			assert.Equal(t, Resource{APIVersion: "example.com/v1", Kind: "Widget", Direction: ToHost}, policy.Spec.Resources[0])
		})
	}
	policy, err = Parse([]byte(widget("selector: {matchLabels: {}, matchExpressions: []}")))
	require.NoError(t, err)
	assert.Equal(t, &metav1.LabelSelector{}, policy.Spec.Resources[0].Selector, "an empty selector is one that selects everything")
}

// TestEachFaultOfAResourceIsReportedOnceAtItsField: the file has one fault, and one is reported.
func TestEachFaultOfAResourceIsReportedOnceAtItsField(t *testing.T) {
	for name, test := range map[string]struct{ file, want string }{
		"references are a map": {
			widget("references: {path: spec.a, kind: Secret}"), `spec.resources[0].references: Invalid value: a map where a list of {path, kind} is wanted`},
		"a reference is a path alone": {
			widget("references: [spec.a]"), `spec.resources[0].references[0]: Invalid value: "spec.a": a string where a map with apiVersion, kind, path is wanted`},
		"an unknown field in a reference": {
			widget("references: [{path: spec.a, kind: Secret, name: x}]"),
			`spec.resources[0].references[0].name: Forbidden: unknown field; the fields here are apiVersion, kind, path`},
		"a reference without a path": {
			widget("references: [{kind: Secret}]"), `spec.resources[0].references[0].path: Required value: a path such as spec.secretName`},
		"a reference without a kind": {
			widget("references: [{path: spec.a}]"), `spec.resources[0].references[0].kind: Required value: a kind such as ConfigMap`},
		"a path is a number": {
			widget("references: [{path: 1, kind: Secret}]"), `spec.resources[0].references[0].path: Invalid value: 1: a number where a path such as spec.secretName is wanted`},
		"the path of a reference is none": {
			widget("references: [{path: spec..a, kind: Secret}]"),
			"spec.resources[0].references[0].path: Invalid value: \"spec..a\": " + badPath},
		"the path of a reference leads into metadata": {
			widget("references: [{path: metadata.name, kind: Secret}]"),
			`spec.resources[0].references[0].path: Invalid value: "metadata.name": must not lead into metadata, status, apiVersion, kind, which hold no references`},
		"a reference to a qualified kind": {
			widget("references: [{path: spec.a, kind: Secret.core}]"),
			`spec.resources[0].references[0].kind: Invalid value: "Secret.core": must be the name of a kind such as ConfigMap: letters, digits and dashes, at most 63`},
		"a reference to a version that is none": {
			widget("references: [{path: spec.a, kind: Bucket, apiVersion: a/b/c}]"),
			`spec.resources[0].references[0].apiVersion: Invalid value: "a/b/c": must be a version such as v1, or a group and version such as apps/v1`},
		"two references at one path": {
			widget(`references: [{path: spec.a, kind: Secret}, {path: "spec[\"a\"]", kind: ConfigMap}]`),
			`spec.resources[0].references[1].path: Duplicate value: "spec[\"a\"]": the field is at spec.resources[0].references[0] already, and names one kind; keep one of the two`},
		"references in a Secret": {
			withSpec("resources: [{apiVersion: v1, kind: Secret, direction: toHost, references: [{path: data.a, kind: Secret}]}]"),
			`spec.resources[0].references: Forbidden: a Secret holds values, which are no references; leave it out`},
		"a Node by its labels": {
			withSpec("resources: [{apiVersion: v1, kind: Node, direction: fromHost, selector: {}}]"),
			`spec.resources[0].selector: Forbidden: which Nodes cross follows from the Pods on them alone; leave it out`},
		"a Node by a namespace": {
			withSpec("resources: [{apiVersion: v1, kind: Node, direction: fromHost, namespaces: [a]}]"),
			`spec.resources[0].namespaces: Forbidden: which Nodes cross follows from the Pods on them alone; leave it out`},
		"a Node's references": {
			withSpec("resources: [{apiVersion: v1, kind: Node, direction: fromHost, references: [{path: spec.a, kind: Secret}]}]"),
			`spec.resources[0].references: Forbidden: which Nodes cross follows from the Pods on them alone; leave it out`},
		"selector is a string": {
			widget("selector: app=web"), `spec.resources[0].selector: Invalid value: "app=web": a string where a map with matchExpressions, matchLabels is wanted`},
		"labels without matchLabels": {
			widget("selector: {app: web}"), `spec.resources[0].selector.app: Forbidden: unknown field; the fields here are matchExpressions, matchLabels`},
		"matchLabels is a list": {
			widget("selector: {matchLabels: [app]}"), `spec.resources[0].selector.matchLabels: Invalid value: a list where a map of label keys and values is wanted`},
		"a label is a boolean": {
			widget("selector: {matchLabels: {sync: yes}}"),
			`spec.resources[0].selector.matchLabels.sync: Invalid value: true: a boolean where a label value (in quotes, if it looks like something else) is wanted`},
		"a label is null, and would select more if it were left out": {
			widget("selector: {matchLabels: {sync: null}}"),
			`spec.resources[0].selector.matchLabels.sync: Invalid value: nothing where a label value (in quotes, if it looks like something else) is wanted`},
		"a label key is none": {
			widget("selector: {matchLabels: {a/b/c: x}}"),
			`spec.resources[0].selector.matchLabels: Invalid value: "a/b/c": a valid label key must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character (e.g. 'MyName',  or 'my.name',  or '123-abc', regex used for validation is '([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]') with an optional DNS subdomain prefix and '/' (e.g. 'example.com/MyName')`},
		"an operator that there is not": {
			widget("selector: {matchExpressions: [{key: app, operator: Is, values: [web]}]}"),
			`spec.resources[0].selector.matchExpressions[0].operator: Invalid value: "Is": not a valid selector operator`},
		"an operator without its values": {
			widget("selector: {matchExpressions: [{key: app, operator: In}]}"),
			"spec.resources[0].selector.matchExpressions[0].values: Required value: must be specified when `operator` is 'In' or 'NotIn'"},
		"a value is a number": {
			widget("selector: {matchExpressions: [{key: app, operator: In, values: [1]}]}"),
			`spec.resources[0].selector.matchExpressions[0].values[0]: Invalid value: 1: a number where a label value (in quotes, if it looks like something else) is wanted`},
		"an unknown field in a requirement": {
			widget("selector: {matchExpressions: [{key: app, op: In, operator: Exists}]}"),
			`spec.resources[0].selector.matchExpressions[0].op: Forbidden: unknown field; the fields here are key, operator, values`},
		"namespaces is a string": {
			widget("namespaces: default"), `spec.resources[0].namespaces: Invalid value: "default": a string where a list of the tenant's namespaces is wanted`},
		"namespaces is empty": {
			widget("namespaces: []"), `spec.resources[0].namespaces: Required value: list at least one namespace, or leave the field out for all of them`},
		"a namespace is a pattern": {
			widget(`namespaces: [default, "team-*"]`),
			`spec.resources[0].namespaces[1]: Invalid value: "team-*": must be the name of a namespace: lower-case letters, digits and dashes, at most 63`},
		"a namespace stands twice": {
			widget("namespaces: [a, b, a]"), `spec.resources[0].namespaces[2]: Duplicate value: "a"`},
		"a namespace is null": {
			widget("namespaces: [a, null]"), `spec.resources[0].namespaces[1]: Invalid value: nothing where the name of a namespace is wanted`},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := Parse([]byte(test.file))
			assert.Equal(t, []string{test.want}, faultsOf(t, err))
		})
	}
}

// The library walks a map of labels in any order.
func TestTheFaultsOfASelectorComeInOneOrder(t *testing.T) {
	for range 20 {
		_, err := Parse([]byte(widget(`selector: {matchLabels: {b: "!", a: "?", "c/d/e": x}}`)))
		var got []any
		var invalid *InvalidError
		require.ErrorAs(t, err, &invalid)
		for _, fault := range invalid.Faults {
			got = append(got, fault.BadValue)
		}
		require.Equal(t, []any{"!", "?", "c/d/e"}, got)
	}
}
