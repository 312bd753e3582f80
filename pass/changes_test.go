package pass

import (
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"

	"github.com/syncpass/syncpass/pass/plan"
	"github.com/syncpass/syncpass/record"
)

// objectOf is an object written as YAML; nil for none.
func objectOf(t *testing.T, text string) *unstructured.Unstructured {
	t.Helper()
	if text == "" {
		return nil
	}
	object := &unstructured.Unstructured{}
	require.NoError(t, yaml.Unmarshal([]byte(text), &object.Object))
	return object
}

func stepOf(action record.Action, side record.Side, have, want *unstructured.Unstructured) *plan.Step {
	return &plan.Step{Decision: record.Decision{Action: action, Side: side}, Have: have, Want: want}
}

func TestAChangeIsShownWithoutWhatTheServerKeepsForItself(t *testing.T) {
	have := objectOf(t, `{apiVersion: v1, kind: ConfigMap, metadata: {namespace: ns, name: c, uid: u, resourceVersion: "1", generation: 3, creationTimestamp: "2026-01-01T00:00:00Z",
		managedFields: [{manager: m}], annotations: {kubectl.kubernetes.io/last-applied-configuration: "{}"}}, data: {a: "1"}}`)
	want := objectOf(t, `{apiVersion: v1, kind: ConfigMap, metadata: {namespace: ns, name: c, uid: u, resourceVersion: "1"}, data: {a: "2"}}`)
	changes := changesOf(stepOf(record.Update, record.Host, have, want))
	require.Len(t, changes, 1)
	require.Equal(t, Change{
		Side: record.Host, Kind: "ConfigMap", Namespace: "ns", Name: "c",
		Before: objectOf(t, `{apiVersion: v1, kind: ConfigMap, metadata: {namespace: ns, name: c}, data: {a: "1"}}`).Object,
		After:  objectOf(t, `{apiVersion: v1, kind: ConfigMap, metadata: {namespace: ns, name: c}, data: {a: "2"}}`).Object,
	}, changes[0])
	require.EqualValues(t, "u", have.GetUID(), "the plan's objects stay as they are")
}

func TestWhichObjectsAStepChanges(t *testing.T) {
	const pod, bound = `{apiVersion: v1, kind: Pod, metadata: {namespace: ns, name: p}, spec: {}}`, `{apiVersion: v1, kind: Pod, metadata: {namespace: ns, name: p}, spec: {nodeName: n1}}`
	const one, two = `{apiVersion: v1, kind: ConfigMap, metadata: {namespace: ns, name: c}, data: {a: "1"}}`, `{apiVersion: v1, kind: ConfigMap, metadata: {namespace: ns, name: c}, data: {a: "2"}}`
	const binding = `{apiVersion: v1, kind: Binding, metadata: {namespace: ns, name: p}, target: {kind: Node, name: n1}}`
	with := func(s *plan.Step, edit func(*plan.Step)) *plan.Step { edit(s); return s }
	status := objectOf(t, two)
	for _, test := range []struct {
		name string
		step *plan.Step
		want [][3]string // side, before, after
	}{
		{"a create", stepOf(record.Create, record.Host, nil, objectOf(t, one)), [][3]string{{"host", "", one}}},
		{"an update", stepOf(record.Update, record.Tenant, objectOf(t, one), objectOf(t, two)), [][3]string{{"tenant", one, two}}},
		{"a delete", stepOf(record.Delete, record.Host, objectOf(t, one), nil), [][3]string{{"host", one, ""}}},
		{"a skip", stepOf(record.Skip, record.Host, objectOf(t, one), nil), nil},
		{"a write of nothing", stepOf(record.Update, record.Host, objectOf(t, one), nil), nil},
		{"a write of the same", stepOf(record.Update, record.Host, objectOf(t, one), objectOf(t, one)), nil},
		{"a binding", with(stepOf(record.Update, record.Tenant, objectOf(t, pod), objectOf(t, binding)), func(s *plan.Step) { s.Subresource = plan.Binding }),
			[][3]string{{"tenant", pod, bound}}},
		{"a status on the other side", with(stepOf(record.Update, record.Host, objectOf(t, one), objectOf(t, two)), func(s *plan.Step) {
			s.Source = objectOf(t, pod)
			s.Then = []plan.Write{{Side: record.Tenant, Subresource: "status", Object: objectOf(t, bound)}}
		}), [][3]string{{"host", one, two}, {"tenant", pod, bound}}},
		{"one object by two ways", with(stepOf(record.Update, record.Tenant, objectOf(t, one), status), func(s *plan.Step) {
			s.Then = []plan.Write{{Side: record.Tenant, Subresource: "status", Object: status}}
		}), [][3]string{{"tenant", one, two}}},
	} {
		t.Run(test.name, func(t *testing.T) {
			var got [][3]string
			text := func(object map[string]any) string {
				if object == nil {
					return ""
				}
				data, err := json.Marshal(object)
				require.NoError(t, err)
				return string(data)
			}
			for _, change := range changesOf(test.step) {
				got = append(got, [3]string{string(change.Side), text(change.Before), text(change.After)})
			}
			for i := range test.want {
				for j := 1; j < 3; j++ {
					if test.want[i][j] != "" {
						test.want[i][j] = text(objectOf(t, test.want[i][j]).Object)
					}
				}
			}
			assert.Equal(t, test.want, got)
		})
	}
}

// No value of a Secret is in a change, wherever tools put it; and which of them differ can still be seen.
func TestValuesOfSecretsAreNotShown(t *testing.T) {
	have := objectOf(t, `{apiVersion: v1, kind: Secret, type: Opaque, metadata: {namespace: ns, name: s, labels: {app: web},
		annotations: {tenantplane.io/virtual-name: s, tool.example.com/applied: HIDDEN1, kubectl.kubernetes.io/last-applied-configuration: HIDDEN2}},
		data: {same: HIDDEN3, changed: HIDDEN4, gone: HIDDEN5}, odd: HIDDEN6, nested: {deep: {deeper: [HIDDEN7]}}}`)
	want := objectOf(t, `{apiVersion: v1, kind: Secret, type: Opaque, immutable: true, metadata: {namespace: ns, name: s, labels: {app: web},
		annotations: {tenantplane.io/virtual-name: s, tool.example.com/applied: HIDDEN8}},
		data: {same: HIDDEN3, changed: HIDDEN9, new: HIDDEN10}, stringData: {text: HIDDEN11}, odd: HIDDEN6}`)
	update := changesOf(stepOf(record.Update, record.Host, have, want))[0]
	require.Equal(t, objectOf(t, `{apiVersion: v1, kind: Secret, type: Opaque, metadata: {namespace: ns, name: s, labels: {app: web},
		annotations: {tenantplane.io/virtual-name: s, tool.example.com/applied: "*** (before)"}},
		data: {same: "***", changed: "*** (before)", gone: "***"}, odd: {odd: "***"}, nested: {deep: "***"}}`).Object, update.Before)
	require.Equal(t, objectOf(t, `{apiVersion: v1, kind: Secret, type: Opaque, immutable: true, metadata: {namespace: ns, name: s, labels: {app: web},
		annotations: {tenantplane.io/virtual-name: s, tool.example.com/applied: "*** (after)"}},
		data: {same: "***", changed: "*** (after)", new: "***"}, stringData: {text: "***"}, odd: {odd: "***"}}`).Object, update.After)

	for _, step := range []*plan.Step{
		stepOf(record.Create, record.Host, nil, want), stepOf(record.Delete, record.Host, have, nil), stepOf(record.Update, record.Tenant, want, have),
	} {
		changes := changesOf(step)
		require.Len(t, changes, 1)
		text, err := json.Marshal(changes)
		require.NoError(t, err)
		require.NotContains(t, string(text), "HIDDEN")
	}
	custom := objectOf(t, `{apiVersion: example.com/v1, kind: Secret, metadata: {name: s}, spec: {value: HIDDEN12}}`)
	text, err := json.Marshal(changesOf(stepOf(record.Create, record.Host, nil, custom)))
	require.NoError(t, err)
	require.NotContains(t, string(text), "HIDDEN", "a Secret of whatever group")

	require.Contains(t, have.Object["data"], "gone", "the plan's objects stay as they are")
	require.Equal(t, "HIDDEN4", have.Object["data"].(map[string]any)["changed"])
}
