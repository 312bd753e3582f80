package metrics

import (
	"errors"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os/exec"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus/testutil/promlint"
	dto "github.com/prometheus/client_model/go"
	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/model"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/syncpass/syncpass/pass"
	"github.com/syncpass/syncpass/pass/access"
	"github.com/syncpass/syncpass/policy"
	"github.com/syncpass/syncpass/record"
)

var dev = types.NamespacedName{Namespace: "team-dev", Name: "dev"}

var began = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)

// ended is a pass over a tenant, of two seconds.
func ended(tenant types.NamespacedName, outcome record.Outcome, decisions ...record.Decision) pass.Result {
	r := pass.Result{
		Namespace: tenant.Namespace, Tenant: tenant.Name, Outcome: outcome, Decisions: decisions,
		StartTime: metav1.NewMicroTime(began), EndTime: metav1.NewMicroTime(began.Add(2 * time.Second)),
		Schedule: &policy.Schedule{Enabled: true, Interval: 30 * time.Second},
		Counts:   record.Counts{Unchanged: 40},
	}
	for _, d := range decisions {
		if d.Error != "" {
			r.Counts.Error++
		}
	}
	return r
}

func decided(action record.Action, reason record.Reason) record.Decision {
	return record.Decision{Action: action, Reason: reason, Kind: "ConfigMap", TenantName: "app"}
}

// busy is a pass in which everything happens.
func busy(tenant types.NamespacedName) pass.Result {
	refused := decided(record.Skip, record.Rejected)
	refused.Error = "exceeded quota"
	unavailable := decided(record.Skip, record.KindUnavailable)
	unavailable.TenantName = ""
	return ended(tenant, record.Guarded,
		decided(record.Create, record.NoMirror), decided(record.Create, record.NoMirror), decided(record.Update, record.TenantChanged),
		decided(record.Delete, record.TenantDeleted), decided(record.Skip, record.Conflict), decided(record.Skip, record.NoHistory),
		decided(record.Skip, record.GuardMaxDeletes), decided(record.Skip, record.GuardMaxDeletes), decided(record.Skip, record.GuardEmptyTenant),
		refused, unavailable)
}

// scrape is what Prometheus is answered, as it reads it.
func scrape(t *testing.T, m *Metrics) map[string]*dto.MetricFamily {
	t.Helper()
	parser := expfmt.NewTextParser(model.LegacyValidation)
	families, err := parser.TextToMetricFamilies(strings.NewReader(text(t, m)))
	require.NoError(t, err)
	return families
}

func text(t *testing.T, m *Metrics) string {
	t.Helper()
	answer := httptest.NewRecorder()
	m.Handler(slog.New(slog.DiscardHandler)).ServeHTTP(answer, httptest.NewRequest(http.MethodGet, "/metrics", nil))
	require.Equal(t, http.StatusOK, answer.Code, answer.Body)
	return answer.Body.String()
}

// value is that of the one series with these labels, given as name=value and sorted. A histogram's is its count.
func value(t *testing.T, families map[string]*dto.MetricFamily, name string, labels ...string) (float64, bool) {
	t.Helper()
	for _, metric := range families[name].GetMetric() {
		var has []string
		for _, label := range metric.Label {
			has = append(has, label.GetName()+"="+label.GetValue())
		}
		if !assert.ObjectsAreEqual(labels, has) {
			continue
		}
		switch {
		case metric.Counter != nil:
			return metric.Counter.GetValue(), true
		case metric.Gauge != nil:
			return metric.Gauge.GetValue(), true
		default:
			return float64(metric.Histogram.GetSampleCount()), true
		}
	}
	return 0, false
}

func TestAPassIsCounted(t *testing.T) {
	m := New()
	m.Pass(busy(dev))
	m.Pass(ended(dev, record.Completed, decided(record.Skip, record.Conflict)))
	families := scrape(t, m)
	for _, tt := range []struct {
		name   string
		labels []string
		want   float64
	}{
		{"syncpass_passes_total", []string{"outcome=Guarded"}, 1},
		{"syncpass_passes_total", []string{"outcome=Completed"}, 1},
		{"syncpass_pass_duration_seconds", nil, 2},
		{"syncpass_decisions_total", []string{"action=Create", "reason=NoMirror"}, 2},
		{"syncpass_decisions_total", []string{"action=Skip", "reason=Conflict"}, 2},
		{"syncpass_guards_pulled_total", []string{"guard=GuardMaxDeletes"}, 1},
		{"syncpass_guards_pulled_total", []string{"guard=GuardEmptyTenant"}, 1},
		{"syncpass_open_conflicts", nil, 1},
		{"syncpass_pairs", nil, 41},
		{"syncpass_failed_objects", nil, 0},
		{"syncpass_withheld_objects", nil, 0},
		{"syncpass_interval_seconds", nil, 30},
		{"syncpass_last_success_timestamp_seconds", nil, float64(began.Add(2 * time.Second).Unix())},
	} {
		labels := append([]string{"namespace=team-dev", "tenant=dev"}, tt.labels...)
		slices.Sort(labels)
		got, found := value(t, families, tt.name, labels...)
		require.True(t, found, "%s %v: %v", tt.name, labels, families[tt.name])
		assert.Equal(t, tt.want, got, "%s %v", tt.name, labels)
	}
}

func TestTheStateIsThatOfTheLastPassThatWentThrough(t *testing.T) {
	m := New()
	m.Pass(ended(dev, record.Completed))
	m.Pass(busy(dev))
	unreachable := ended(dev, record.Unreachable)
	unreachable.Counts, unreachable.Schedule, unreachable.Err = record.Counts{}, nil, errors.New("no answer")
	unreachable.EndTime = metav1.NewMicroTime(began.Add(time.Hour))
	m.Pass(unreachable)
	families := scrape(t, m)
	for name, want := range map[string]float64{
		"syncpass_open_conflicts": 2, "syncpass_failed_objects": 1, "syncpass_withheld_objects": 3, "syncpass_interval_seconds": 30,
		"syncpass_pairs": 40 + 3 + 6, // unchanged, written, held
		"syncpass_last_success_timestamp_seconds": float64(began.Add(2 * time.Second).Unix()),
	} {
		got, _ := value(t, families, name, "namespace=team-dev", "tenant=dev")
		assert.Equal(t, want, got, name)
	}
}

func TestWhatCountsAsASuccess(t *testing.T) {
	for outcome, success := range map[record.Outcome]bool{
		record.Completed: true, record.CompletedWithErrors: true, record.Guarded: false, record.Locked: false, record.Unreachable: false,
		record.Invalid: false, record.Stopped: false, "Failed": false,
	} {
		m := New()
		m.Pass(ended(dev, outcome))
		_, found := scrape(t, m)["syncpass_last_success_timestamp_seconds"]
		assert.Equal(t, success, found, outcome)
	}
}

func TestThePausedHaveTheIntervalZero(t *testing.T) {
	m := New()
	m.Pass(ended(dev, record.Completed))
	paused := ended(dev, record.Completed)
	paused.Schedule = &policy.Schedule{Interval: 30 * time.Second}
	m.Pass(paused)
	none, found := value(t, scrape(t, m), "syncpass_interval_seconds", "namespace=team-dev", "tenant=dev")
	assert.True(t, found)
	assert.Zero(t, none)

	m.Pass(ended(dev, record.Completed))
	m.Keep([]types.NamespacedName{dev})
	m.Scheduled(dev, policy.Schedule{Enabled: true, Interval: time.Hour})
	hourly, _ := value(t, scrape(t, m), "syncpass_interval_seconds", "namespace=team-dev", "tenant=dev")
	assert.EqualValues(t, 3600, hourly)
	m.Scheduled(dev, policy.Schedule{Interval: time.Hour})
	m.Scheduled(types.NamespacedName{Namespace: "team-dev", Name: "gone"}, policy.Schedule{Enabled: true, Interval: time.Hour})
	none, _ = value(t, scrape(t, m), "syncpass_interval_seconds", "namespace=team-dev", "tenant=dev")
	assert.Zero(t, none, "without any pass")
	assert.Len(t, scrape(t, m)["syncpass_interval_seconds"].Metric, 1, "a tenant that is gone has none")
}

func TestATenantThatIsGoneTakesItsSeriesWithIt(t *testing.T) {
	m := New()
	other := types.NamespacedName{Namespace: "team-dev", Name: "other"}
	m.Keep([]types.NamespacedName{dev, other})
	m.Pass(busy(dev))
	m.Pass(ended(dev, record.Completed))
	m.Pass(ended(other, record.Completed))
	m.Keep([]types.NamespacedName{other})
	m.Pass(busy(dev)) // was on its way
	all := text(t, m)
	assert.NotContains(t, all, `tenant="dev"`)
	assert.Contains(t, all, `syncpass_pairs{namespace="team-dev",tenant="other"} 40`)

	m.Keep([]types.NamespacedName{dev, other})
	m.Pass(ended(dev, record.Completed))
	assert.Contains(t, text(t, m), `syncpass_passes_total{namespace="team-dev",outcome="Completed",tenant="dev"} 1`)
}

func TestRequestsAreCountedBySide(t *testing.T) {
	m := New()
	list := access.Request{Verb: "list", Resource: "secrets", Method: "GET", Path: "/api/v1/secrets"}
	m.Request(record.Tenant, list, 200, time.Second)
	m.Request(record.Tenant, list, 200, time.Second)
	m.Request(record.Host, list, 0, time.Second)
	for status := 600; status < 999; status++ {
		m.Request(record.Tenant, list, status, time.Second)
	}
	families := scrape(t, m)
	assert.Len(t, families["syncpass_api_requests_total"].Metric, 3, "a server cannot make series by its answers")
	for _, tt := range []struct {
		code, side string
		want       float64
	}{{"200", "tenant", 2}, {"none", "host", 1}, {"other", "tenant", 399}} {
		got, _ := value(t, families, "syncpass_api_requests_total", "code="+tt.code, "side="+tt.side, "verb=list")
		assert.Equal(t, tt.want, got, tt.code)
	}
	got, _ := value(t, families, "syncpass_api_request_duration_seconds", "side=host", "verb=list")
	assert.EqualValues(t, 1, got)
}

func TestPromtoolsLibraryFindsNothingToSay(t *testing.T) {
	m := filled()
	problems, err := promlint.New(strings.NewReader(text(t, m))).Lint()
	require.NoError(t, err)
	assert.Empty(t, problems)
}

// TestPromtoolItselfFindsNothingToSay asks the tool, whose rules are newer or older than the library's.
func TestPromtoolItselfFindsNothingToSay(t *testing.T) {
	path, err := exec.LookPath("promtool")
	if err != nil {
		t.Skip("promtool is not installed: Debian has it in the package prometheus")
	}
	command := exec.CommandContext(t.Context(), path, "check", "metrics")
	command.Stdin = strings.NewReader(text(t, filled()))
	said, err := command.CombinedOutput()
	assert.NoError(t, err)
	assert.Empty(t, string(said))
}

// filled has at least one series of every metric.
func filled() *Metrics {
	m := New()
	m.Pass(busy(dev))
	m.Pass(ended(dev, record.Completed))
	m.Request(record.Host, access.Request{Verb: "list"}, 200, time.Second)
	return m
}

func TestTheProcessIsMeasuredToo(t *testing.T) {
	families := scrape(t, New())
	assert.Contains(t, families, "go_goroutines")
	assert.Contains(t, families, "process_resident_memory_bytes")
}
