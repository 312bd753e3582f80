package e2e

import (
	"encoding/json"
	"maps"
	"os"
	"os/exec"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
)

// podMonitor is the part that is used here of the Prometheus operator's kind.
type podMonitor struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata"`
	Spec              struct {
		Selector            metav1.LabelSelector `json:"selector"`
		PodMetricsEndpoints []struct {
			Port        string `json:"port"`
			Interval    string `json:"interval"`
			HonorLabels bool   `json:"honorLabels"`
		} `json:"podMetricsEndpoints"`
	} `json:"spec"`
}

// requireRunnerAlone fails unless a selector means the form's Pods, and no mirror of a tenant's Pod with their labels.
func requireRunnerAlone(t *testing.T, selector metav1.LabelSelector, form string) {
	t.Helper()
	selects, err := metav1.LabelSelectorAsSelector(&selector)
	require.NoError(t, err)
	runner := podTemplate(t, form).Labels
	assert.True(t, selects.Matches(labels.Set(runner)), "%s does not mean the runner of form %s: %v", selects, form, runner)
	mirror := maps.Clone(runner)
	mirror["tenantplane.io/tenant"] = "dev"
	assert.False(t, selects.Matches(labels.Set(mirror)), "%s means a tenant's Pod too", selects)
}

func TestPrometheusScrapesTheScheduleAndNoTenantsPod(t *testing.T) {
	monitor := find[podMonitor](t, renderForm(t, "monitoring"), "PodMonitor")
	requireRunnerAlone(t, monitor.Spec.Selector, "schedule")
	require.Len(t, monitor.Spec.PodMetricsEndpoints, 1)
	endpoint := monitor.Spec.PodMetricsEndpoints[0]
	assert.True(t, endpoint.HonorLabels, "else the TenantCluster's namespace is replaced by the Pod's")
	var ports []string
	for _, port := range podTemplate(t, "schedule").Spec.Containers[0].Ports {
		ports = append(ports, port.Name)
	}
	assert.Contains(t, ports, endpoint.Port)
}

func TestIsolationLeavesRoomForMonitoring(t *testing.T) {
	network := find[networkingv1.NetworkPolicy](t, renderForm(t, "monitoring/isolation"), "NetworkPolicy")
	for form := range forms {
		requireRunnerAlone(t, network.Spec.PodSelector, form)
	}
}

func TestKubeStateMetricsMayReadSyncDecisionsAndWriteNothing(t *testing.T) {
	objects := renderForm(t, "monitoring/kube-state-metrics")
	for _, rule := range find[rbacv1.ClusterRole](t, objects, "ClusterRole").Rules {
		assert.Equal(t, []string{"list", "watch"}, rule.Verbs)
		assert.NotContains(t, rule.Resources, "secrets")
	}
	assert.Contains(t, find[corev1.ConfigMap](t, objects, "ConfigMap").Data, "config.yaml")
}

func TestTheDashboardIsWhereGrafanasSidecarLooks(t *testing.T) {
	dashboard := find[corev1.ConfigMap](t, renderForm(t, "monitoring"), "ConfigMap")
	assert.Equal(t, "1", dashboard.Labels["grafana_dashboard"])
	assert.True(t, json.Valid([]byte(dashboard.Data["dashboard.json"])))
	assert.Len(t, renderForm(t, "monitoring/pushgateway"), 1)
}

// TestPrometheusTakesTheAlertsAndTheDashboard runs the tests of the module in e2e/monitoring: they judge the alerts and the
// dashboard's queries by Prometheus' own code, whose dependencies stay out of this module.
func TestPrometheusTakesTheAlertsAndTheDashboard(t *testing.T) {
	if testing.Short() {
		t.Skip("it compiles a part of Prometheus, which -short leaves out")
	}
	command := exec.CommandContext(t.Context(), "go", "test", "-mod=readonly", "-count=1", "./...")
	command.Dir, command.Env = "monitoring", append(os.Environ(), "GOFLAGS=", "GOWORK=off")
	output, err := command.CombinedOutput()
	require.NoError(t, err, "%s", output)
}
