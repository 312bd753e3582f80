package metrics

import (
	"net/http"
	"slices"
	"strconv"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"k8s.io/apimachinery/pkg/types"

	"github.com/syncpass/syncpass/pass"
	"github.com/syncpass/syncpass/pass/access"
	"github.com/syncpass/syncpass/policy"
	"github.com/syncpass/syncpass/record"
)

// Buckets of passes reach from a quiet pass over a small tenant to the default SYNCPASS_PASS_TIMEOUT, those of requests
// to the default SYNCPASS_REQUEST_TIMEOUT; in seconds.
var (
	passBuckets    = []float64{0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 120, 300}
	requestBuckets = []float64{0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 15}
)

// ofTenant are the labels of what is counted per tenant; they come first.
var ofTenant = []string{"namespace", "tenant"}

// Metrics are the metrics of one process. Safe for concurrent use.
type Metrics struct {
	registry *prometheus.Registry

	passes      *prometheus.CounterVec
	duration    *prometheus.HistogramVec
	decisions   *prometheus.CounterVec
	guards      *prometheus.CounterVec
	conflicts   *prometheus.GaugeVec
	pairs       *prometheus.GaugeVec
	failed      *prometheus.GaugeVec
	withheld    *prometheus.GaugeVec
	lastSuccess *prometheus.GaugeVec
	interval    *prometheus.GaugeVec
	requests    *prometheus.CounterVec
	latency     *prometheus.HistogramVec

	mu sync.Mutex
	// known are the tenants there are; nil where nobody has said.
	known map[types.NamespacedName]bool
}

// New returns metrics that have counted nothing yet.
func New() *Metrics {
	m := &Metrics{
		passes: counter("syncpass_passes_total",
			"Passes that ended, by outcome.", "outcome"),
		duration: prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Name: "syncpass_pass_duration_seconds", Buckets: passBuckets,
			Help: "How long passes took, whatever their outcome.",
		}, ofTenant),
		decisions: counter("syncpass_decisions_total",
			"Decisions of passes, by action and reason. A skip that stands is decided by every pass anew.", "action", "reason"),
		guards: counter("syncpass_guards_pulled_total",
			"Passes in which a guard withheld something, by guard.", "guard"),
		conflicts: gauge("syncpass_open_conflicts",
			"Pairs that waited for a person after the last pass that went through: Conflict, NoHistory and HistoryOff."),
		pairs: gauge("syncpass_pairs",
			"Tenant objects of the policy's kinds that the last pass that went through found, or that it kept a mirror of."),
		failed: gauge("syncpass_failed_objects",
			"Objects that an API server, or the Pod Security level, refused in the last pass that went through."),
		withheld: gauge("syncpass_withheld_objects",
			"Objects that a guard withheld in the last pass that went through, until a person confirms the plan."),
		lastSuccess: gauge("syncpass_last_success_timestamp_seconds",
			"When the last pass ended that carried out its whole plan. Open conflicts and refused objects do not stand in its way."),
		interval: gauge("syncpass_interval_seconds",
			"The policy's interval between two passes; 0 while the policy pauses them."),
		requests: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "syncpass_api_requests_total",
			Help: "Requests sent to API servers, retries one by one, by side, verb and status code; the code is none where no answer came.",
		}, []string{"side", "verb", "code"}),
		latency: prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Name: "syncpass_api_request_duration_seconds", Buckets: requestBuckets,
			Help: "How long API servers took until the head of their answer, by side and verb.",
		}, []string{"side", "verb"}),
	}
	m.registry = prometheus.NewPedanticRegistry()
	m.registry.MustRegister(m.passes, m.duration, m.decisions, m.guards, m.conflicts, m.pairs, m.failed, m.withheld, m.lastSuccess, m.interval,
		m.requests, m.latency, collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	return m
}

func counter(name, help string, labels ...string) *prometheus.CounterVec {
	return prometheus.NewCounterVec(prometheus.CounterOpts{Name: name, Help: help}, slices.Concat(ofTenant, labels))
}

func gauge(name, help string) *prometheus.GaugeVec {
	return prometheus.NewGaugeVec(prometheus.GaugeOpts{Name: name, Help: help}, ofTenant)
}

// Pass counts a pass that has ended. One over a tenant that Keep has not named does not count: it was on its way when
// the tenant went.
func (m *Metrics) Pass(r pass.Result) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.known != nil && !m.known[types.NamespacedName{Namespace: r.Namespace, Name: r.Tenant}] {
		return
	}
	m.passes.WithLabelValues(r.Namespace, r.Tenant, string(r.Outcome)).Inc()
	m.duration.WithLabelValues(r.Namespace, r.Tenant).Observe(r.EndTime.Sub(r.StartTime.Time).Seconds())
	if r.Schedule != nil {
		m.scheduled(r.Namespace, r.Tenant, *r.Schedule)
	}
	if r.Outcome == record.Completed || r.Outcome == record.CompletedWithErrors {
		m.lastSuccess.WithLabelValues(r.Namespace, r.Tenant).Set(float64(r.EndTime.UnixMicro()) / 1e6)
	}
	m.decided(r)
}

// decided counts the decisions of a pass.
func (m *Metrics) decided(r pass.Result) {
	waiting, withheld, kept := 0, map[record.Reason]int{}, r.Counts.Unchanged
	for i := range r.Decisions {
		d := &r.Decisions[i]
		m.decisions.WithLabelValues(r.Namespace, r.Tenant, string(d.Action), string(d.Reason)).Inc()
		switch d.Reason {
		case record.Conflict, record.NoHistory, record.HistoryOff:
			waiting++
		case record.GuardMaxDeletes, record.GuardEmptyTenant, record.GuardTenantIdentity:
			withheld[d.Reason]++
		}
		if d.TenantName != "" && d.Action != record.Delete { // a decision without a name is about its whole kind
			kept++
		}
	}
	total := 0
	for guard, objects := range withheld {
		m.guards.WithLabelValues(r.Namespace, r.Tenant, string(guard)).Inc()
		total += objects
	}
	switch r.Outcome {
	case record.Completed, record.CompletedWithErrors, record.Guarded:
		m.conflicts.WithLabelValues(r.Namespace, r.Tenant).Set(float64(waiting))
		m.pairs.WithLabelValues(r.Namespace, r.Tenant).Set(float64(kept))
		m.failed.WithLabelValues(r.Namespace, r.Tenant).Set(float64(r.Counts.Error))
		m.withheld.WithLabelValues(r.Namespace, r.Tenant).Set(float64(total))
	}
}

// Scheduled says at which interval a tenant has passes, if any: while its policy pauses them, no pass does.
func (m *Metrics) Scheduled(tenant types.NamespacedName, s policy.Schedule) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.known == nil || m.known[tenant] {
		m.scheduled(tenant.Namespace, tenant.Name, s)
	}
}

func (m *Metrics) scheduled(namespace, tenant string, s policy.Schedule) {
	var interval time.Duration // a Pushgateway keeps a series that is no longer there
	if s.Enabled {
		interval = s.Interval
	}
	m.interval.WithLabelValues(namespace, tenant).Set(interval.Seconds())
}

// Keep names the tenants there are. The series of all others go.
func (m *Metrics) Keep(tenants []types.NamespacedName) {
	m.mu.Lock()
	defer m.mu.Unlock()
	before := m.known
	m.known = make(map[types.NamespacedName]bool, len(tenants))
	for _, tenant := range tenants {
		m.known[tenant] = true
	}
	for tenant := range before {
		if !m.known[tenant] {
			m.forget(tenant)
		}
	}
}

func (m *Metrics) forget(tenant types.NamespacedName) {
	labels := prometheus.Labels{"namespace": tenant.Namespace, "tenant": tenant.Name}
	for _, vector := range []interface {
		DeletePartialMatch(prometheus.Labels) int
	}{m.passes, m.duration, m.decisions, m.guards, m.conflicts, m.pairs, m.failed, m.withheld, m.lastSuccess, m.interval} {
		vector.DeletePartialMatch(labels)
	}
}

// Request counts a request to an API server: the status code of its answer, 0 where none came, and how long it took.
func (m *Metrics) Request(side record.Side, r access.Request, status int, took time.Duration) {
	m.requests.WithLabelValues(string(side), r.Verb, code(status)).Inc()
	m.latency.WithLabelValues(string(side), r.Verb).Observe(took.Seconds())
}

// code is a status code as a label. A tenant's server may answer with any number: those that mean nothing share one
// series.
func code(status int) string {
	switch {
	case status == 0:
		return "none"
	case http.StatusText(status) == "":
		return "other"
	}
	return strconv.Itoa(status)
}
