package e2e

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/yaml"

	"github.com/syncpass/syncpass/record"
)

// stateMetrics is the configuration that kube-state-metrics reads, as far as it is used here.
// https://github.com/kubernetes/kube-state-metrics/blob/main/docs/metrics/extend/customresourcestate-metrics.md
type stateMetrics struct {
	Kind string `json:"kind"`
	Spec struct {
		Resources []struct {
			GroupVersionKind metav1.GroupVersionKind `json:"groupVersionKind"`
			MetricNamePrefix string                  `json:"metricNamePrefix"`
			LabelsFromPath   map[string][]string     `json:"labelsFromPath"`
			Metrics          []stateMetric           `json:"metrics"`
		} `json:"resources"`
	} `json:"spec"`
}

type stateMetric struct {
	Name         string            `json:"name"`
	Help         string            `json:"help"`
	CommonLabels map[string]string `json:"commonLabels"`
	Each         struct {
		Type  string `json:"type"`
		Gauge *struct {
			Path []string `json:"path"`
		} `json:"gauge"`
		StateSet *struct {
			Path      []string `json:"path"`
			LabelName string   `json:"labelName"`
			List      []string `json:"list"`
		} `json:"stateSet"`
	} `json:"each"`
}

func (m stateMetric) path() []string {
	if m.Each.StateSet != nil {
		return m.Each.StateSet.Path
	}
	return m.Each.Gauge.Path
}

func readStateMetrics(t *testing.T) stateMetrics {
	t.Helper()
	data, err := os.ReadFile(filepath.Join(manifestsDir, "monitoring", "kube-state-metrics", "config.yaml"))
	require.NoError(t, err)
	var config stateMetrics
	require.NoError(t, yaml.UnmarshalStrict(data, &config))
	require.Equal(t, "CustomResourceStateMetrics", config.Kind)
	require.Len(t, config.Spec.Resources, 1)
	return config
}

// TestEveryStateMetricIsAFieldOfTheCRD: a path that leads nowhere is a metric without a series, and without an error.
func TestEveryStateMetricIsAFieldOfTheCRD(t *testing.T) {
	data, err := os.ReadFile(filepath.Join(manifestsDir, "crd", "tenantplane.io_syncdecisions.yaml"))
	require.NoError(t, err)
	crd := map[string]any{}
	require.NoError(t, yaml.Unmarshal(data, &crd))
	resource := readStateMetrics(t).Spec.Resources[0]
	assert.Equal(t, metav1.GroupVersionKind{Group: "tenantplane.io", Version: "v1alpha1", Kind: "SyncDecision"}, resource.GroupVersionKind)
	version := crd["spec"].(map[string]any)["versions"].([]any)[0].(map[string]any)
	schema := version["schema"].(map[string]any)["openAPIV3Schema"].(map[string]any)
	for _, metric := range resource.Metrics {
		var segments []string
		for _, segment := range metric.path() {
			segments = append(segments, "properties", segment)
		}
		field, found, err := unstructured.NestedMap(schema, segments...)
		require.NoError(t, err)
		require.True(t, found, "%s: %v is no field", metric.Name, metric.path())
		switch metric.Each.Type {
		case "Gauge":
			assert.True(t, field["type"] == "integer" || field["format"] == "date-time", "%s: %v is no number and no time", metric.Name, metric.path())
		case "StateSet":
			var states []string
			for _, state := range field["enum"].([]any) {
				states = append(states, state.(string))
			}
			assert.Equal(t, states, metric.Each.StateSet.List, metric.Name)
		default:
			t.Errorf("%s: type %q", metric.Name, metric.Each.Type)
		}
	}
}

// TestStateMetricsOfASyncDecision follows the configuration over a SyncDecision and over a further page of its history. It
// does what the documentation of kube-state-metrics says that a gauge and a state set do, not its code.
func TestStateMetricsOfASyncDecision(t *testing.T) {
	ended := metav1.NewMicroTime(time.Date(2026, 3, 1, 12, 0, 2, 500_000_000, time.UTC))
	head := record.SyncDecision{
		ObjectMeta: metav1.ObjectMeta{Namespace: "team-dev", Name: "dev"},
		Status: record.SyncDecisionStatus{
			Conflicts: 2, Pairs: 41, History: &record.Page{Of: 2, Index: 0, Format: 1},
			LastPass: &record.LastPass{
				ID: "p", StartTime: metav1.NewMicroTime(ended.Add(-time.Second)), EndTime: ended, Outcome: record.CompletedWithErrors,
				Counts: record.Counts{Create: 1, Update: 2, Skip: 3, Unchanged: 35, Error: 1, Requests: 24},
			},
		},
	}
	page := record.SyncDecision{
		ObjectMeta: metav1.ObjectMeta{Namespace: "team-dev", Name: "dev-1"},
		Status:     record.SyncDecisionStatus{History: &record.Page{Of: 2, Index: 1, Format: 1}},
	}
	assert.Equal(t, []string{
		`syncpass_record_open_conflicts{namespace="team-dev",tenant="dev"} 2`,
		`syncpass_record_pairs{namespace="team-dev",tenant="dev"} 41`,
		`syncpass_record_last_pass_end_timestamp_seconds{namespace="team-dev",tenant="dev"} 1772366402`,
		`syncpass_record_last_pass_outcome{namespace="team-dev",outcome="Completed",tenant="dev"} 0`,
		`syncpass_record_last_pass_outcome{namespace="team-dev",outcome="CompletedWithErrors",tenant="dev"} 1`,
		`syncpass_record_last_pass_outcome{namespace="team-dev",outcome="Guarded",tenant="dev"} 0`,
		`syncpass_record_last_pass_outcome{namespace="team-dev",outcome="Locked",tenant="dev"} 0`,
		`syncpass_record_last_pass_outcome{namespace="team-dev",outcome="Unreachable",tenant="dev"} 0`,
		`syncpass_record_last_pass_outcome{namespace="team-dev",outcome="Invalid",tenant="dev"} 0`,
		`syncpass_record_last_pass_outcome{namespace="team-dev",outcome="Stopped",tenant="dev"} 0`,
		`syncpass_record_last_pass_decisions{action="Create",namespace="team-dev",tenant="dev"} 1`,
		`syncpass_record_last_pass_decisions{action="Update",namespace="team-dev",tenant="dev"} 2`,
		`syncpass_record_last_pass_decisions{action="Delete",namespace="team-dev",tenant="dev"} 0`,
		`syncpass_record_last_pass_decisions{action="Skip",namespace="team-dev",tenant="dev"} 3`,
		`syncpass_record_last_pass_unchanged_pairs{namespace="team-dev",tenant="dev"} 35`,
		`syncpass_record_last_pass_failed_objects{namespace="team-dev",tenant="dev"} 1`,
		`syncpass_record_last_pass_requests{namespace="team-dev",tenant="dev"} 24`,
	}, stateSeries(t, &head))
	assert.Empty(t, stateSeries(t, &page))
}

// stateSeries are the series of an object.
func stateSeries(t *testing.T, decision *record.SyncDecision) []string {
	t.Helper()
	object, err := runtime.DefaultUnstructuredConverter.ToUnstructured(decision)
	require.NoError(t, err)
	resource := readStateMetrics(t).Spec.Resources[0]
	var lines []string
	for _, metric := range resource.Metrics {
		value, found, err := unstructured.NestedFieldNoCopy(object, metric.path()...)
		require.NoError(t, err)
		if !found {
			continue
		}
		line := func(extra []string, value any) {
			labels := slices.Clone(extra)
			for name, path := range resource.LabelsFromPath {
				text, _, err := unstructured.NestedString(object, path...)
				require.NoError(t, err)
				labels = append(labels, fmt.Sprintf("%s=%q", name, text))
			}
			for name, text := range metric.CommonLabels {
				labels = append(labels, fmt.Sprintf("%s=%q", name, text))
			}
			slices.Sort(labels)
			lines = append(lines, fmt.Sprintf("%s_%s{%s} %v", resource.MetricNamePrefix, metric.Name, strings.Join(labels, ","), value))
		}
		if set := metric.Each.StateSet; set != nil {
			for _, state := range set.List {
				line([]string{fmt.Sprintf("%s=%q", set.LabelName, state)}, map[bool]int{true: 1}[state == value])
			}
			continue
		}
		if text, isText := value.(string); isText {
			at, err := time.Parse(time.RFC3339, text)
			require.NoError(t, err, "%s: a text is a number only if it is a time", metric.Name)
			value = at.Unix()
		}
		line(nil, value)
	}
	return lines
}
