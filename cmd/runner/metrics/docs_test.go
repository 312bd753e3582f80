package metrics

import (
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

var update = flag.Bool("update", false, "write the table in docs/metrics.md anew")

const (
	document   = "../../../docs/metrics.md"
	monitoring = "../../../manifests/monitoring/"
)

// described are the metrics that are registered, whether they have a series or not: name and labels.
func described(t *testing.T) map[string][]string {
	t.Helper()
	description := regexp.MustCompile(`^Desc\{fqName: "([^"]+)", .*variableLabels: \{([^}]*)\}\}$`)
	descriptions := make(chan *prometheus.Desc)
	go func() {
		defer close(descriptions)
		New().registry.Describe(descriptions)
	}()
	found := map[string][]string{}
	for d := range descriptions {
		parts := description.FindStringSubmatch(d.String())
		require.NotNil(t, parts, d)
		if strings.HasPrefix(parts[1], "syncpass_") {
			found[parts[1]] = strings.Split(parts[2], ",")
		}
	}
	require.NotEmpty(t, found)
	return found
}

// table is the metrics as docs/metrics.md lists them.
func table(t *testing.T) string {
	t.Helper()
	families := scrape(t, filled())
	var rows []string
	for name, labels := range described(t) {
		family, found := families[name]
		require.True(t, found, "%s has no series after a pass in which everything happens", name)
		rows = append(rows, fmt.Sprintf("| `%s` | %s | %s | %s |\n", name, strings.ToLower(family.GetType().String()), strings.Join(labels, ", "), family.GetHelp()))
	}
	slices.Sort(rows)
	return "| metric | type | labels | meaning |\n| --- | --- | --- | --- |\n" + strings.Join(rows, "")
}

func TestEveryMetricIsDocumented(t *testing.T) {
	data, err := os.ReadFile(document)
	require.NoError(t, err)
	before, rest, found := strings.Cut(string(data), "<!-- metrics -->\n")
	require.True(t, found)
	listed, after, found := strings.Cut(rest, "<!-- end -->\n")
	require.True(t, found)
	if *update {
		require.NoError(t, os.WriteFile(document, []byte(before+"<!-- metrics -->\n"+table(t)+"<!-- end -->\n"+after), 0o644))
		return
	}
	assert.Equal(t, table(t), listed, "see the comment above the table in docs/metrics.md")
}

// TestAlertsAndDashboardAskForMetricsThatExist: a misspelt metric is an alert that never fires.
func TestAlertsAndDashboardAskForMetricsThatExist(t *testing.T) {
	exist := []string{}
	for name := range described(t) {
		exist = append(exist, name, name+"_bucket", name+"_sum", name+"_count")
	}
	used := map[string]bool{}
	for _, file := range []string{"prometheusrule.yaml", "dashboard.json"} {
		data, err := os.ReadFile(monitoring + file)
		require.NoError(t, err)
		names := regexp.MustCompile(`\bsyncpass_[a-z_]+`).FindAllString(string(data), -1)
		assert.Subset(t, exist, names, file)
		for _, name := range names {
			used[strings.TrimSuffix(strings.TrimSuffix(strings.TrimSuffix(name, "_bucket"), "_sum"), "_count")] = true
		}
	}
	for name := range described(t) {
		assert.True(t, used[name], "neither an alert nor the dashboard shows %s", name)
	}
}

func TestTheDashboardHasOneTitleAPanelAndOneDatasource(t *testing.T) {
	data, err := os.ReadFile(monitoring + "dashboard.json")
	require.NoError(t, err)
	type datasource struct{ Type, UID string }
	var dashboard struct {
		Title  string
		Panels []struct {
			ID                 int
			Title, Description string
			Datasource         datasource
			GridPos            struct{ X, Y, W, H int }
			Targets            []struct {
				RefID, Expr string
				Datasource  datasource
			}
		}
	}
	require.NoError(t, json.Unmarshal(data, &dashboard))
	require.NotEmpty(t, dashboard.Panels)
	ids, taken := map[int]bool{}, map[[2]int]string{}
	for _, panel := range dashboard.Panels {
		assert.NotEmpty(t, panel.Title)
		assert.NotEmpty(t, panel.Description, panel.Title)
		assert.False(t, ids[panel.ID], "%s: its id is taken", panel.Title)
		ids[panel.ID] = true
		for x := panel.GridPos.X; x < panel.GridPos.X+panel.GridPos.W; x++ {
			for y := panel.GridPos.Y; y < panel.GridPos.Y+panel.GridPos.H; y++ {
				assert.Empty(t, taken[[2]int{x, y}], "%s lies over another panel", panel.Title)
				taken[[2]int{x, y}] = panel.Title
			}
		}
		assert.LessOrEqual(t, panel.GridPos.X+panel.GridPos.W, 24, panel.Title)
		for _, target := range panel.Targets {
			assert.Equal(t, datasource{"prometheus", "${datasource}"}, target.Datasource, panel.Title)
			assert.NotEmpty(t, target.Expr, panel.Title)
		}
	}
}
