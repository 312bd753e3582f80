package monitoring

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"go.yaml.in/yaml/v3"
)

// promtool runs it in a folder that has the rules as rules.yaml.
func promtool(t *testing.T, files map[string][]byte, args ...string) string {
	t.Helper()
	path, err := exec.LookPath("promtool")
	if err != nil {
		t.Skip("promtool is not installed: Debian has it in the package prometheus")
	}
	dir := t.TempDir()
	for name, data := range files {
		if err := os.WriteFile(filepath.Join(dir, name), data, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	command := exec.CommandContext(t.Context(), path, args...)
	command.Dir = dir
	output, err := command.CombinedOutput()
	if err != nil {
		t.Fatalf("promtool %s: %v\n%s", strings.Join(args, " "), err, output)
	}
	return string(output)
}

func TestPromtoolChecksTheRules(t *testing.T) {
	said := promtool(t, map[string][]byte{"rules.yaml": rulesFile(t)}, "check", "rules", "--lint=all", "--lint-fatal", "rules.yaml")
	if !strings.Contains(said, "SUCCESS: 4 rules found") {
		t.Errorf("it says: %s", said)
	}
}

// TestPromtoolSeesTheAlertsFire has the rules run for two hours, and looks which alerts fire when: with the time that each
// waits.
func TestPromtoolSeesTheAlertsFire(t *testing.T) {
	var series, firing []map[string]any
	for _, one := range tenants {
		name, values, _ := strings.Cut(one, "} ")
		series = append(series, map[string]any{"series": name + "}", "values": values})
	}
	for _, test := range []struct {
		at  string
		who []string // alert, severity and tenant
	}{
		{"4m", []string{"GuardPulled critical stuck"}},
		{"9m", []string{"GuardPulled critical stuck", "NoSuccessfulPass critical never"}},
		{"11m", []string{"GuardPulled critical stuck", "NoSuccessfulPass critical never", "NoSuccessfulPass critical stuck"}},
		{"14m", []string{"GuardPulled critical stuck", "NoSuccessfulPass critical never", "NoSuccessfulPass critical stuck"}},
		{"16m", []string{"GuardPulled critical stuck", "NoSuccessfulPass critical never", "NoSuccessfulPass critical stuck",
			"ObjectsFailing warning stuck"}},
		{"70m", []string{"ConflictsOpen warning stuck", "GuardPulled critical stuck", "NoSuccessfulPass critical never",
			"NoSuccessfulPass critical slow", "NoSuccessfulPass critical stuck", "ObjectsFailing warning stuck"}},
	} {
		samples := []map[string]any{}
		for _, who := range test.who {
			words := strings.Fields(who)
			samples = append(samples, map[string]any{"value": 1, "labels": fmt.Sprintf(
				`{__name__="ALERTS", alertname="Syncpass%s", alertstate="firing", namespace="n", severity="%s", tenant="%s"}`, words[0], words[1], words[2])})
		}
		firing = append(firing, map[string]any{"expr": `ALERTS{alertstate="firing"}`, "eval_time": test.at, "exp_samples": samples})
	}
	tests, err := yaml.Marshal(map[string]any{"rule_files": []string{"rules.yaml"}, "evaluation_interval": "1m", "tests": []map[string]any{
		{"interval": "1m", "input_series": series, "promql_expr_test": firing},
	}})
	if err != nil {
		t.Fatal(err)
	}
	promtool(t, map[string][]byte{"rules.yaml": rulesFile(t), "tests.yaml": tests}, "test", "rules", "tests.yaml")
}
