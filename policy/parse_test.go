package policy

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/yaml"
)

// example is the policy that the README shows, in full.
const example = `
apiVersion: tenantplane.io/v1alpha1
kind: SyncPolicy
metadata:
  name: default
spec:
  conflictPolicy: manual
  driftDetection:
    enabled: true
    interval: 30s
  explain:
    recordDecisions: true
    retain: 1000
  resources:
    - {apiVersion: v1, kind: Pod, direction: toHost}
    - {apiVersion: v1, kind: Service, direction: bidirectional}
    - {apiVersion: v1, kind: ConfigMap, direction: bidirectional}
    - {apiVersion: v1, kind: Secret, direction: bidirectional}
`

// withSpec is a policy file with this spec, given as the lines below `spec:`.
func withSpec(spec string) string {
	return "apiVersion: tenantplane.io/v1alpha1\nkind: SyncPolicy\nmetadata: {name: default}\nspec:\n  " +
		strings.ReplaceAll(strings.TrimSpace(spec), "\n", "\n  ") + "\n"
}

// oneKind is a resources list without a fault.
const oneKind = "resources: [{apiVersion: v1, kind: ConfigMap, direction: toHost}]\n"

// faultsOf returns the faults of a policy, each as it is printed.
func faultsOf(t *testing.T, err error) []string {
	t.Helper()
	var invalid *InvalidError
	require.ErrorAs(t, err, &invalid)
	faults := make([]string, len(invalid.Faults))
	for i, fault := range invalid.Faults {
		faults[i] = fault.Error()
	}
	return faults
}

func TestTheExampleIsRead(t *testing.T) {
	policy, err := Parse([]byte(example))
	require.NoError(t, err)
	assert.Equal(t, &SyncPolicy{
		TypeMeta:   metav1.TypeMeta{APIVersion: "tenantplane.io/v1alpha1", Kind: "SyncPolicy"},
		ObjectMeta: metav1.ObjectMeta{Name: "default"},
		Spec: SyncPolicySpec{
			ConflictPolicy: Manual,
			DriftDetection: DriftDetection{Enabled: ptr.To(true), Interval: &metav1.Duration{Duration: 30 * time.Second}},
			Explain:        Explain{RecordDecisions: ptr.To(true), Retain: ptr.To(int32(1000))},
			Resources: []Resource{
				{APIVersion: "v1", Kind: "Pod", Direction: ToHost},
				{APIVersion: "v1", Kind: "Service", Direction: Bidirectional},
				{APIVersion: "v1", Kind: "ConfigMap", Direction: Bidirectional},
				{APIVersion: "v1", Kind: "Secret", Direction: Bidirectional},
			},
		},
	}, policy)
}

func TestWhatAPolicyDoesNotSayIsTheDefault(t *testing.T) {
	for name, spec := range map[string]string{
		"nothing but resources":  oneKind,
		"empty groups of fields": oneKind + "driftDetection: {}\nexplain: {}",
		"fields that are null":   oneKind + "conflictPolicy: null\ndriftDetection: {enabled: null, interval: null}\nexplain: null",
	} {
		t.Run(name, func(t *testing.T) {
			policy, err := Parse([]byte(withSpec(spec)))
			require.NoError(t, err)
			want, err := Parse([]byte(withSpec(oneKind + "conflictPolicy: manual\n" +
				"driftDetection: {enabled: true, interval: 30s}\nexplain: {recordDecisions: true, retain: 1000}")))
			require.NoError(t, err)
			assert.Equal(t, want, policy)
		})
	}
}

func TestWhatAPolicySaysStays(t *testing.T) {
	policy, err := Parse([]byte(withSpec(oneKind + "conflictPolicy: host-wins\n" +
		"driftDetection: {enabled: false, interval: 1m30s}\nexplain: {recordDecisions: false, retain: 0}")))
	require.NoError(t, err)
	assert.Equal(t, HostWins, policy.Spec.ConflictPolicy)
	assert.Equal(t, DriftDetection{Enabled: ptr.To(false), Interval: &metav1.Duration{Duration: 90 * time.Second}}, policy.Spec.DriftDetection)
	assert.Equal(t, Explain{RecordDecisions: ptr.To(false), Retain: ptr.To(int32(0))}, policy.Spec.Explain)
}

func TestAllFaultsOfAPolicyAreReportedTogether(t *testing.T) {
	_, err := Parse([]byte(withSpec(`
conflictPolicy: newest
driftDetection: {enabled: true, interval: 30}
explain: {recordDecisions: true, retain: -1}
resorces: []
resources:
  - {apiVersion: v1, kind: ConfigMap, direction: sideways}
  - {apiVersion: v1, kind: Secret, direction: toHost}
  - {apiVersion: v1, kind: Secret, direction: fromHost}
`)))
	assert.Equal(t, []string{
		`spec.driftDetection.interval: Invalid value: 30: a number where a Go duration such as 30s or 1m30s is wanted`,
		`spec.resorces: Forbidden: unknown field; the fields here are conflictPolicy, driftDetection, explain, resources`,
		`spec.conflictPolicy: Unsupported value: "newest": supported values: "manual", "tenant-wins", "host-wins"`,
		`spec.explain.retain: Invalid value: -1: must be from 0 to 10000 entries`,
		`spec.resources[0].direction: Unsupported value: "sideways": supported values: "toHost", "fromHost", "bidirectional"`,
		`spec.resources[2]: Duplicate value: "Secret": the kind is at spec.resources[1] already, and crosses in one version and one direction; keep one of the two`,
	}, faultsOf(t, err))
	assert.ErrorContains(t, err, `SyncPolicy "default" is invalid: spec.driftDetection.interval: `)
	assert.NotContains(t, err.Error(), "\n")
}

// TestEachFaultIsReportedOnceAtItsField: the file has one fault, and one is reported.
func TestEachFaultIsReportedOnceAtItsField(t *testing.T) {
	for name, test := range map[string]struct{ file, want string }{
		"apiVersion is missing": {
			"kind: SyncPolicy\nspec: {" + oneKind + "}", `apiVersion: Required value: must be tenantplane.io/v1alpha1`},
		"apiVersion is another": {
			"apiVersion: tenantplane.io/v1\nkind: SyncPolicy\nspec: {" + oneKind + "}",
			`apiVersion: Unsupported value: "tenantplane.io/v1": supported values: "tenantplane.io/v1alpha1"`},
		"kind is another": {
			"apiVersion: tenantplane.io/v1alpha1\nkind: TenantCluster\nspec: {" + oneKind + "}",
			`kind: Unsupported value: "TenantCluster": supported values: "SyncPolicy"`},
		"kind is a number": {
			"apiVersion: tenantplane.io/v1alpha1\nkind: 1\nspec: {" + oneKind + "}", `kind: Invalid value: 1: a number where SyncPolicy is wanted`},
		"a field beside spec": {
			withSpec(oneKind) + "status: {}", `status: Forbidden: unknown field; the fields here are apiVersion, kind, metadata, spec`},
		"a field is in another case": {
			withSpec(oneKind + "conflictpolicy: manual"),
			`spec.conflictpolicy: Forbidden: unknown field; the fields here are conflictPolicy, driftDetection, explain, resources`},
		"an unknown field in driftDetection": {
			withSpec(oneKind + "driftDetection: {every: 30s}"), `spec.driftDetection.every: Forbidden: unknown field; the fields here are enabled, interval`},
		"an unknown field in explain": {
			withSpec(oneKind + "explain: {keep: 1}"), `spec.explain.keep: Forbidden: unknown field; the fields here are recordDecisions, retain`},
		"an unknown field in a resource": {
			withSpec("resources: [{apiVersion: v1, kind: Pod, direction: toHost, group: x}]"),
			`spec.resources[0].group: Forbidden: unknown field; the fields here are apiVersion, direction, kind, namespaces, references, selector`},
		"an unknown field in metadata": {
			"apiVersion: tenantplane.io/v1alpha1\nkind: SyncPolicy\nmetadata: {nam: x}\nspec: {" + oneKind + "}",
			"metadata.nam: Forbidden: unknown field \"nam\": see `kubectl explain syncpolicy.metadata`"},
		"a field with a name that no terminal should see": {
			withSpec(oneKind + `"\e[31mred\n": 1`),
			`spec."\x1b[31mred\n": Forbidden: unknown field; the fields here are conflictPolicy, driftDetection, explain, resources`},
		"a field stands twice": {
			withSpec(oneKind + "conflictPolicy: manual\nconflictPolicy: host-wins"),
			`spec.conflictPolicy: Duplicate value: the field is there twice; keep one of the two`},
		"a field of a resource stands twice": {
			withSpec("resources: [{apiVersion: v1, kind: Pod, kind: Secret, direction: toHost}]"),
			`spec.resources[0].kind: Duplicate value: the field is there twice; keep one of the two`},
		"metadata is a string": {
			"apiVersion: tenantplane.io/v1alpha1\nkind: SyncPolicy\nmetadata: default\nspec: {" + oneKind + "}",
			`metadata: Invalid value: "default": a string where a map with a name is wanted`},
		"the name is none": {
			"apiVersion: tenantplane.io/v1alpha1\nkind: SyncPolicy\nmetadata: {name: Default}\nspec: {" + oneKind + "}",
			`metadata.name: Invalid value: "Default": a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and must start and end with an alphanumeric character (e.g. 'example.com', regex used for validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')`},
		"spec is missing": {
			"apiVersion: tenantplane.io/v1alpha1\nkind: SyncPolicy", `spec.resources: Required value: list at least one {apiVersion, kind, direction}`},
		"spec is a list": {
			"apiVersion: tenantplane.io/v1alpha1\nkind: SyncPolicy\nspec: []", `spec: Invalid value: a list where a map with conflictPolicy, driftDetection, explain, resources is wanted`},
		"conflictPolicy is a boolean": {
			withSpec(oneKind + "conflictPolicy: off"), `spec.conflictPolicy: Invalid value: false: a boolean where one of manual, tenant-wins, host-wins is wanted`},
		"driftDetection is a string": {
			withSpec(oneKind + "driftDetection: 30s"), `spec.driftDetection: Invalid value: "30s": a string where a map with enabled, interval is wanted`},
		"enabled is a string": {
			withSpec(oneKind + `driftDetection: {enabled: "true"}`),
			`spec.driftDetection.enabled: Invalid value: "true": a string where true or false, without quotes is wanted`},
		"interval has no unit": {
			withSpec(oneKind + `driftDetection: {interval: "30"}`),
			`spec.driftDetection.interval: Invalid value: "30": no Go duration such as 30s or 1m30s`},
		"interval is in days": {
			withSpec(oneKind + `driftDetection: {interval: 1d}`),
			`spec.driftDetection.interval: Invalid value: "1d": no Go duration such as 30s or 1m30s`},
		"interval is below a second": {
			withSpec(oneKind + `driftDetection: {interval: 999ms}`),
			`spec.driftDetection.interval: Invalid value: "999ms": must be at least 1s; to pause the schedule set enabled: false beside it`},
		"interval is negative": {
			withSpec(oneKind + `driftDetection: {interval: -30s}`),
			`spec.driftDetection.interval: Invalid value: "-30s": must be at least 1s; to pause the schedule set enabled: false beside it`},
		"retain is a string": {
			withSpec(oneKind + `explain: {retain: "10"}`), `spec.explain.retain: Invalid value: "10": a string where a whole number is wanted`},
		"retain has a fraction": {
			withSpec(oneKind + `explain: {retain: 1.5}`), `spec.explain.retain: Invalid value: 1.5: a number where a whole number is wanted`},
		"retain is too large": {
			withSpec(oneKind + `explain: {retain: 10001}`), `spec.explain.retain: Invalid value: 10001: must be from 0 to 10000 entries`},
		"retain is larger than a 32-bit number": {
			withSpec(oneKind + `explain: {retain: 4294967297}`),
			`spec.explain.retain: Invalid value: 4294967297: must be from 0 to 10000 entries`},
		"resources is a map": {
			withSpec("resources: {v1: Pod}"), `spec.resources: Invalid value: a map where a list of {apiVersion, kind, direction} is wanted`},
		"resources is empty": {
			withSpec("resources: []"), `spec.resources: Required value: list at least one {apiVersion, kind, direction}`},
		"a resource is a string": {
			withSpec("resources: [v1/Pod]"), `spec.resources[0]: Invalid value: "v1/Pod": a string where a map with apiVersion, direction, kind, namespaces, references, selector is wanted`},
		"a resource is null": {
			withSpec("resources: [null]"), `spec.resources[0]: Invalid value: nothing where a map with apiVersion, direction, kind, namespaces, references, selector is wanted`},
		"the kind of a resource is a boolean": {
			withSpec("resources: [{apiVersion: v1, kind: yes, direction: toHost}]"),
			`spec.resources[0].kind: Invalid value: true: a boolean where a kind such as ConfigMap is wanted`},
		"a long value is cut": {
			withSpec(oneKind + "conflictPolicy: " + strings.Repeat("ö", 1000)),
			`spec.conflictPolicy: Unsupported value: "` + strings.Repeat("ö", 50) + `…": supported values: "manual", "tenant-wins", "host-wins"`},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := Parse([]byte(test.file))
			assert.Equal(t, []string{test.want}, faultsOf(t, err))
		})
	}
}

func TestAFileThatIsNoPolicyAtAllIsRefused(t *testing.T) {
	for name, test := range map[string]struct{ file, want string }{
		"it is empty":                   {"", "holds 0 YAML documents"},
		"it is all comments":            {"---\n# nothing\n---\n", "holds 0 YAML documents"},
		"it holds two policies":         {example + "---" + example, "holds 2 YAML documents where exactly one SyncPolicy is wanted"},
		"a second one stands after ...": {example + "...\n" + example, "as YAML: "},
		"it is a list":                  {"- a\n- b\n", "holds a list where a SyncPolicy is wanted"},
		"it is a word":                  {"default", "holds a string where a SyncPolicy is wanted"},
		"it is no YAML":                 {"spec: {", "as YAML: "},
		"it has tabs":                   {"spec:\n\tresources: []", "as YAML: "},
		"a number is not in JSON":       {"spec: .inf", "as YAML: "},
		"a list is a key":               {"{[a]: b}", "as YAML: "},
		"it is over a mebibyte":         {"# " + strings.Repeat("x", MaxBytes), "over the limit of 1048576"},
		"its anchors multiply": {
			"a: &a [x, x, x, x, x, x, x, x, x]\nb: &b [*a, *a, *a, *a, *a, *a, *a, *a, *a]\nc: &c [*b, *b, *b, *b, *b, *b, *b, *b, *b]\n" +
				"d: &d [*c, *c, *c, *c, *c, *c, *c, *c, *c]\ne: &e [*d, *d, *d, *d, *d, *d, *d, *d, *d]\nf: &f [*e, *e, *e, *e, *e, *e, *e, *e, *e]\n" +
				"g: [*f, *f, *f, *f, *f, *f, *f, *f, *f]\n", "excessive aliasing"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := Parse([]byte(test.file))
			require.Error(t, err)
			assert.Contains(t, err.Error(), test.want)
			assert.Less(t, len(err.Error()), 500)
		})
	}
}

func TestAPolicyMayBeWrittenInManyWays(t *testing.T) {
	want, err := Parse([]byte(example))
	require.NoError(t, err)
	asJSON, err := yaml.YAMLToJSON([]byte(example))
	require.NoError(t, err)
	for name, file := range map[string]string{
		"as JSON":                           string(asJSON),
		"after a separator":                 "---\n# Source: chart/policy.yaml" + example,
		"with empty documents around it":    "---\n---" + example + "---\n# the end\n---\n",
		"with Windows line ends":            strings.ReplaceAll(example, "\n", "\r\n"),
		"with a byte order mark":            "\ufeff" + strings.TrimSpace(example),
		"with a document end":               example + "...\n",
		"without a line end":                strings.TrimSpace(example),
		"with anchors and aliases":          strings.Replace(strings.Replace(example, "direction: bidirectional", "direction: &two bidirectional", 1), "ConfigMap, direction: bidirectional", "ConfigMap, direction: *two", 1),
		"with the interval in other units":  strings.Replace(example, "30s", "0.5m", 1),
		"with what the API server fills in": strings.Replace(example, "name: default", "name: default\n  creationTimestamp: null", 1),
	} {
		t.Run(name, func(t *testing.T) {
			policy, err := Parse([]byte(file))
			require.NoError(t, err)
			assert.Equal(t, want, policy)
		})
	}
}

func TestAnObjectFromTheAPIIsReadAsStrictlyAsAFile(t *testing.T) {
	object := func() map[string]any {
		return map[string]any{
			"apiVersion": "tenantplane.io/v1alpha1",
			"kind":       "SyncPolicy",
			"metadata": map[string]any{
				"name":              "default",
				"uid":               "5e4b1f3c-0000-4000-8000-000000000000",
				"resourceVersion":   "12",
				"generation":        int64(1),
				"creationTimestamp": "2026-01-02T03:04:05Z",
				"managedFields": []any{map[string]any{
					"manager": "kubectl", "operation": "Apply", "apiVersion": "tenantplane.io/v1alpha1", "time": "2026-01-02T03:04:05Z",
					"fieldsType": "FieldsV1", "fieldsV1": map[string]any{"f:spec": map[string]any{"f:conflictPolicy": map[string]any{}}},
				}},
			},
			"spec": map[string]any{
				"explain":   map[string]any{"retain": int64(7)},
				"resources": []any{map[string]any{"apiVersion": "v1", "kind": "Secret", "direction": "toHost"}},
			},
		}
	}
	policy, err := FromObject(object())
	require.NoError(t, err)
	assert.Equal(t, "default", policy.Name)
	assert.Equal(t, int64(1), policy.Generation)
	assert.Equal(t, ptr.To(int32(7)), policy.Spec.Explain.Retain)
	assert.Equal(t, Manual, policy.Spec.ConflictPolicy)

	loose := object()
	loose["spec"].(map[string]any)["prune"] = true
	loose["spec"].(map[string]any)["conflictPolicy"] = int64(3)
	_, err = FromObject(loose)
	assert.Equal(t, []string{
		`spec.conflictPolicy: Invalid value: 3: a number where one of manual, tenant-wins, host-wins is wanted`,
		`spec.prune: Forbidden: unknown field; the fields here are conflictPolicy, driftDetection, explain, resources`,
	}, faultsOf(t, err))
}

// FuzzParse: whatever the bytes, Parse returns a policy or an error; and a policy that it returns is valid, complete,
// and the same after it was written and read again.
func FuzzParse(f *testing.F) {
	f.Add([]byte(example))
	seeds, err := filepath.Glob("testdata/policies/*")
	require.NoError(f, err)
	require.NotEmpty(f, seeds)
	for _, seed := range seeds {
		data, err := os.ReadFile(seed)
		require.NoError(f, err)
		f.Add(data)
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		policy, err := Parse(data)
		if err != nil {
			require.NotEmpty(t, err.Error())
			return
		}
		require.Empty(t, Validate(policy))
		defaulted := policy.DeepCopy()
		defaulted.SetDefaults()
		require.Equal(t, policy, defaulted, "a parsed policy lacks a default")

		written, err := yaml.Marshal(policy)
		require.NoError(t, err)
		again, err := Parse(written)
		require.NoError(t, err, "written as\n%s", written)
		require.Equal(t, policy, again)
	})
}
