package monitoring

import (
	"encoding/json"
	"fmt"
	"log/slog"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/common/model"
	"github.com/prometheus/prometheus/model/rulefmt"
	"github.com/prometheus/prometheus/promql/parser"
	"go.yaml.in/yaml/v3"
)

const manifests = "../../manifests/monitoring/"

var promQL = parser.NewParser(parser.Options{})

func read(t *testing.T, file string) []byte {
	t.Helper()
	data, err := os.ReadFile(manifests + file)
	if err != nil {
		t.Fatal(err)
	}
	return data
}

// rulesFile is what the Prometheus Operator makes of the manifest: a file of rules.
func rulesFile(t *testing.T) []byte {
	t.Helper()
	var manifest struct{ Spec yaml.Node }
	if err := yaml.Unmarshal(read(t, "prometheusrule.yaml"), &manifest); err != nil {
		t.Fatal(err)
	}
	file, err := yaml.Marshal(&manifest.Spec)
	if err != nil {
		t.Fatal(err)
	}
	return file
}

// rules are the alerts by name, as Prometheus reads them: without fields that it does not know, and with templates that
// it can carry out.
func rules(t *testing.T) map[string]rulefmt.Rule {
	t.Helper()
	groups, errs := rulefmt.Parse(rulesFile(t), false, model.LegacyValidation, promQL, slog.New(slog.DiscardHandler))
	for _, err := range errs {
		t.Error(err)
	}
	if groups == nil {
		t.FailNow()
	}
	found := map[string]rulefmt.Rule{}
	for _, group := range groups.Groups {
		for _, rule := range group.Rules {
			found[rule.Alert] = rule
		}
	}
	return found
}

func TestEachAlertSaysHowBadItIsAndWhatToDo(t *testing.T) {
	all := rules(t)
	if len(all) != 4 {
		t.Errorf("%d alerts, want 4", len(all))
	}
	for name, rule := range all {
		if severity := rule.Labels["severity"]; severity != "warning" && severity != "critical" {
			t.Errorf("%s: severity %q", name, severity)
		}
		if !strings.Contains(rule.Annotations["summary"], "{{ $labels.tenant }}") || rule.Annotations["description"] == "" {
			t.Errorf("%s: it does not say which tenant, or what to do", name)
		}
	}
}

// tenants to whom everything happens: a sample a minute, for two hours.
var tenants = []string{
	`syncpass_passes_total{namespace="n",tenant="well",outcome="Completed"} 1+2x120`,
	`syncpass_last_success_timestamp_seconds{namespace="n",tenant="well"} 0+60x120`,
	`syncpass_interval_seconds{namespace="n",tenant="well"} 30x120`,
	`syncpass_passes_total{namespace="n",tenant="stuck",outcome="Completed"} 1x120`,
	`syncpass_passes_total{namespace="n",tenant="stuck",outcome="Unreachable"} 0+2x120`,
	`syncpass_last_success_timestamp_seconds{namespace="n",tenant="stuck"} 0x120`,
	`syncpass_interval_seconds{namespace="n",tenant="stuck"} 30x120`,
	`syncpass_passes_total{namespace="n",tenant="slow",outcome="Completed"} 1x120`,
	`syncpass_last_success_timestamp_seconds{namespace="n",tenant="slow"} 0x120`,
	`syncpass_interval_seconds{namespace="n",tenant="slow"} 600x120`,
	`syncpass_passes_total{namespace="n",tenant="paused",outcome="Completed"} 1x120`,
	`syncpass_last_success_timestamp_seconds{namespace="n",tenant="paused"} 0x120`,
	`syncpass_interval_seconds{namespace="n",tenant="paused"} 30x2 0x118`,
	`syncpass_passes_total{namespace="n",tenant="never",outcome="Invalid"} 1+2x120`,
	`syncpass_passes_total{namespace="n",tenant="never",outcome="Unreachable"} 1x120`,
	`syncpass_open_conflicts{namespace="n",tenant="well"} 0x120`,
	`syncpass_open_conflicts{namespace="n",tenant="stuck"} 2x120`,
	`syncpass_withheld_objects{namespace="n",tenant="well"} 0x120`,
	`syncpass_withheld_objects{namespace="n",tenant="stuck"} 12x120`,
	`syncpass_failed_objects{namespace="n",tenant="well"} 0x120`,
	`syncpass_failed_objects{namespace="n",tenant="stuck"} 1x120`,
}

// TestAlerts evaluates the alerts; the time that `for` adds comes on top.
func TestAlerts(t *testing.T) {
	memory := store{}
	for _, series := range tenants {
		memory.load(t, time.Minute, series)
	}
	all := rules(t)
	for _, test := range []struct {
		alert string
		at    time.Duration
		want  string // tenants and values
	}{
		{"SyncpassNoSuccessfulPass", 5 * time.Minute, "never 12"},
		{"SyncpassNoSuccessfulPass", 6 * time.Minute, "never 14, stuck 360"},
		{"SyncpassNoSuccessfulPass", 51 * time.Minute, "never 104, slow 3060, stuck 3060"},
		{"SyncpassConflictsOpen", time.Minute, "stuck 2"},
		{"SyncpassGuardPulled", time.Minute, "stuck 12"},
		{"SyncpassObjectsFailing", time.Minute, "stuck 1"},
	} {
		t.Run(fmt.Sprintf("%s after %s", test.alert, test.at), func(t *testing.T) {
			var fires []string
			for _, sample := range memory.evaluate(t, all[test.alert].Expr, test.at) {
				if namespace := sample.Metric.Get("namespace"); namespace != "n" {
					t.Errorf("it is for namespace %q", namespace)
				}
				fires = append(fires, fmt.Sprintf("%s %v", sample.Metric.Get("tenant"), sample.F))
			}
			slices.Sort(fires)
			if got := strings.Join(fires, ", "); got != test.want {
				t.Errorf("it fires for %q, and should for %q", got, test.want)
			}
		})
	}
}

// TestPrometheusUnderstandsTheDashboard parses each query, as Grafana sends it.
func TestPrometheusUnderstandsTheDashboard(t *testing.T) {
	var dashboard struct {
		Panels []struct {
			Title   string
			Targets []struct{ Expr string }
		}
	}
	if err := json.Unmarshal(read(t, "dashboard.json"), &dashboard); err != nil {
		t.Fatal(err)
	}
	queries := 0
	filledIn := strings.NewReplacer("$__rate_interval", "2m", "$namespace", "team-dev", "$tenant", ".*")
	for _, panel := range dashboard.Panels {
		for _, target := range panel.Targets {
			queries++
			if _, err := promQL.ParseExpr(filledIn.Replace(target.Expr)); err != nil {
				t.Errorf("%s: %v", panel.Title, err)
			}
		}
	}
	if queries == 0 {
		t.Error("the dashboard asks for nothing")
	}
}
