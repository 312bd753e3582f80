package e2e

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/utils/ptr"

	"github.com/syncpass/syncpass/e2e/proxy"
	"github.com/syncpass/syncpass/e2e/scenario"
	"github.com/syncpass/syncpass/e2e/tally"
	"github.com/syncpass/syncpass/pass"
	"github.com/syncpass/syncpass/record"
)

const (
	// repairs is how many passes may be needed after a crash until the sides agree: DESIGN, section 10.
	repairs = 2
	// mostRequests bounds the requests of one pass of a starting point, so that a pass that never ends fails.
	mostRequests = 400
)

// TestCrashMatrix kills the binary at every request of a pass, before the API server has seen it and after it has carried
// it out, and looks at what the next passes make of that, from several starting points.
func TestCrashMatrix(t *testing.T) {
	t.Parallel() // with tests in other places, and with the one of the node that mostly waits
	s := usePlaces(t)
	var points, tried, repaired atomic.Int64
	t.Run("from", func(t *testing.T) {
		for _, from := range startingPoints {
			t.Run(from.name, func(t *testing.T) {
				t.Parallel()
				m := newMatrix(t, s, "crash-"+from.name, from)
				m.run(t)
				points.Add(1)
				tried.Add(int64(m.tried))
				repaired.Add(int64(m.repaired))
				t.Logf("%s: %d crash points, of which %d needed a second pass", from.name, m.tried, m.repaired)
			})
		}
	})
	if !t.Failed() {
		tally.Line(t, "crash matrix: %d crash points from %d starting points, 0 failed, %d needed a second pass", tried.Load(), points.Load(), repaired.Load())
	}
}

// matrix is the crash points of one starting point, one after the other in one place.
type matrix struct {
	*place
	from startingPoint
	// edits counts how often the starting point was laid.
	edits int
	// laid is the value of a starting point that no pass has gone on from yet; empty where there is none.
	laid string
	// want is what both sides look like at the end, and writes how many of each kind it takes, when no pass is killed.
	want   string
	writes map[string]int

	tried, repaired int
}

func newMatrix(t *testing.T, s *surroundings, name string, from startingPoint) *matrix {
	m := &matrix{place: newPlace(t, s, name, from.policy), from: from}
	t.Cleanup(func() {
		// A place has thousands in the end, which usePlaces would remove one by one.
		events := m.objects(record.Host, corev1.SchemeGroupVersion.WithResource("events"))
		assert.NoError(t, events.DeleteCollection(s.ctx, metav1.DeleteOptions{}, metav1.ListOptions{}))
	})
	m.waitForServiceAccounts(t)
	if m.from.concurrency == "" {
		m.from.concurrency = "1"
	}
	return m
}

// begin makes what is the same for all points, and finds out what a pass comes to that is left alone. It returns its
// requests.
func (m *matrix) begin(t *testing.T) []proxy.Request {
	if m.from.begin != nil {
		m.from.begin(t, m.place)
		m.repair(t)
	}
	value := m.lay(t)
	_, passes, requests := m.repair(t)
	m.want, m.writes = stateOf(t, m.look(t), value), appliedWrites(requests, nil)
	require.NotEmpty(t, m.writes, "a pass from here writes nothing")
	require.LessOrEqual(t, passes, repairs, "passes that are left alone")
	return requests
}

func (m *matrix) run(t *testing.T) {
	requests := m.begin(t)
	first := 0
	if m.from.edit != nil {
		// Before a pass reserves its writes, a crash and an edit are an edit.
		first = slices.IndexFunc(requests, writesMore)
	}
	for _, moment := range []proxy.Moment{proxy.Before, proxy.After} {
		for k := first; m.crash(t, k, moment); k++ {
			require.Less(t, k, mostRequests)
		}
	}
}

// lay makes the starting point, with a value that no earlier one had, unless the last one still stands.
func (m *matrix) lay(t *testing.T) string {
	if value := m.laid; value != "" {
		m.laid = ""
		return value
	}
	m.edits++
	value := fmt.Sprintf("value-%04d", m.edits)
	m.from.lay(t, m.place, value)
	return value
}

// crash is one crash point: a pass killed at its request number k, counted from 0, and what follows, which is the next crash
// point's where there is nothing to repair. It returns false where the
// pass ended before it came to that request.
func (m *matrix) crash(t *testing.T, k int, moment proxy.Moment) bool {
	value := m.lay(t)
	point := fmt.Sprintf("killed %s request %d (%s)", map[proxy.Moment]string{proxy.Before: "before", proxy.After: "after"}[moment], k, value)
	reserved, before := m.reservedBy(t), m.look(t)
	killedAt, requests := m.runKilledAt(t, k, moment)
	if killedAt == nil {
		m.repair(t)
		return false
	}
	m.tried++
	point += ": " + killedAt.String()
	crashed, during := m.reservedBy(t), before
	if crashed == reserved {
		require.Empty(t, appliedWrites(requests, killedAt), "%s: a pass that has reserved nothing has written", point)
	} else {
		during = m.look(t)
	}
	if m.from.edit == nil && isQuiet(requests) {
		// It has asked for no change of anything. Where it has made none either, what the next pass finds is the starting
		// point itself, and so the next crash point goes on from there, until one has something to repair.
		require.Empty(t, changed(before, m.look(t)), "%s: what a pass has changed that sent no write", point)
		m.expireLease(t)
		m.laid = value
		return true
	}
	edited, between := value, during
	if m.from.edit != nil {
		edited = value + "-again"
		m.from.edit(t, m.place, edited)
		between = m.look(t)
	}
	m.expireLease(t)
	results, passes, later := m.repair(t)
	require.LessOrEqual(t, passes, repairs, "%s: passes until the sides agree", point)
	if passes == repairs {
		m.repaired++
	}
	after := m.look(t)
	if m.from.settled != nil {
		m.from.settled(t, m.place, point, results, value, edited)
	} else {
		require.Equal(t, m.want, stateOf(t, after, edited), "%s: what both sides look like, and at the end of a pass without a crash", point)
		m.requireNoSkip(t, point, results)
	}
	if m.from.edit == nil && m.from.concurrency == "1" {
		total := appliedWrites(requests, killedAt)
		for what, count := range appliedWrites(later, nil) {
			total[what] += count
		}
		require.Equal(t, m.writes, total, "%s: writes that were made, in all", point)
	}
	var ids []string
	for _, result := range results {
		ids = append(ids, result.ID)
	}
	entries := m.status(t).Entries
	requireExplained(t, point, entries, []string{crashed}, changed(before, during))
	requireExplained(t, point, entries, ids, changed(between, after))
	return true
}

// runKilledAt runs one pass that is killed at a request of it, and returns that request and all that it sent; nil where
// the pass ended before.
func (m *matrix) runKilledAt(t *testing.T, k int, moment proxy.Moment) (*proxy.Request, []proxy.Request) {
	process := make(chan *scenario.Process, 1)
	mark := int(m.requests.Mark())
	at := make(chan proxy.Request, 1)
	hook := func(now proxy.Moment, r proxy.Request) http.Handler {
		if now != moment || r.Number != mark+k {
			return nil
		}
		killed := <-process
		assert.NoError(t, killed.Kill())
		at <- r
		return proxy.Drop
	}
	m.setHooks(hook)
	defer m.setHooks(nil)
	started, err := m.binary.Start(m.s.context(t), map[string]string{"SYNCPASS_CONCURRENCY": m.from.concurrency}, "pass", "-o", "json")
	require.NoError(t, err)
	process <- started
	result, err := started.Wait()
	require.NoError(t, err)
	select {
	case r := <-at:
		require.Equal(t, 128+9, result.Exit)
		return &r, result.Requests
	default:
		require.Zero(t, result.Exit, "a pass that nobody killed\n%s", result.Stderr)
		return nil, nil
	}
}

func (p *place) setHooks(hook proxy.Hook) {
	p.hostProxy.SetHook(hook)
	p.tenantProxy.SetHook(hook)
}

// repair makes passes until one writes nothing. It returns those that wrote something, how many they were, and their
// requests.
func (m *matrix) repair(t *testing.T) (results []pass.Result, passes int, requests []proxy.Request) {
	for range repairs + 1 {
		result, sent := m.pass(t, 0, map[string]string{"SYNCPASS_CONCURRENCY": m.from.concurrency})
		if isQuiet(sent) {
			return append(results, result), passes, requests
		}
		passes++
		results, requests = append(results, result), append(requests, sent...)
	}
	sent := ""
	for _, r := range requests {
		if writesMore(r) {
			sent += "\n" + r.String()
		}
	}
	require.Fail(t, "passes that never come to an end", "the last: %+v\nwhat they wrote:%s", results[repairs].Decisions, sent)
	return nil, 0, nil
}

// isQuiet says whether a pass has written nothing but its Lease.
func isQuiet(requests []proxy.Request) bool { return !slices.ContainsFunc(requests, writesMore) }

// writesMore says whether a request asks for a change of anything but the Lease.
func writesMore(r proxy.Request) bool {
	return r.Method != http.MethodGet && !isLease(r) && !strings.Contains(r.Query, "dryRun=All")
}

// expireLease makes the Lease of a dead pass look as it will once its time is over.
func (p *place) expireLease(t *testing.T) {
	t.Helper()
	if holder := p.leaseHolder(t); holder != "" {
		p.setRenewal(t, holder, time.Now().Add(-time.Hour))
	}
}

// setRenewal says who holds the Lease and when they renewed it.
func (p *place) setRenewal(t *testing.T, holder string, at time.Time) {
	t.Helper()
	leases := p.objects(record.Host, leasesResource)
	lease, err := leases.Get(p.s.context(t), "syncpass-"+p.name, metav1.GetOptions{})
	require.NoError(t, err)
	require.NoError(t, unstructured.SetNestedField(lease.Object, at.UTC().Format(metav1.RFC3339Micro), "spec", "renewTime"))
	require.NoError(t, unstructured.SetNestedField(lease.Object, holder, "spec", "holderIdentity"))
	_, err = leases.Update(p.s.context(t), lease, metav1.UpdateOptions{})
	require.NoError(t, err)
}

var leasesResource = schema.GroupVersionResource{Group: "coordination.k8s.io", Version: "v1", Resource: "leases"}

// TestTheLeaseOfAKilledPassRunsOut waits for what the crash matrix does not: a killed pass holds its Lease for its
// duration and no longer.
func TestTheLeaseOfAKilledPassRunsOut(t *testing.T) {
	s := usePlaces(t)
	p := newPlace(t, s, "crash-lease", scenario.DefaultPolicy())
	p.apply(t, record.Tenant, "{apiVersion: v1, kind: ConfigMap, metadata: {name: c}, data: {in: x}}")
	short := map[string]string{"SYNCPASS_REQUEST_TIMEOUT": "1s", "SYNCPASS_LEASE_DURATION": "2s"}
	for name, value := range short {
		p.binary.Env[name] = value
	}
	process := make(chan *scenario.Process, 1)
	p.setHooks(func(now proxy.Moment, r proxy.Request) http.Handler {
		if now != proxy.Before || r.Method != http.MethodPost || !isCollection(r, "configmaps") {
			return nil
		}
		assert.NoError(t, (<-process).Kill())
		return proxy.Drop
	})
	started, err := p.binary.Start(s.context(t), nil, "pass")
	require.NoError(t, err)
	process <- started
	killed, err := started.Wait()
	require.NoError(t, err)
	require.Equal(t, 128+9, killed.Exit, "%s", killed.Stderr)
	p.setHooks(nil)

	died := time.Now()
	held := p.run(t, nil, "pass")
	require.Equal(t, 6, held.Exit, "%s", held.Stderr)
	err = wait.PollUntilContextTimeout(s.context(t), 100*time.Millisecond, 10*time.Second, true, func(context.Context) (bool, error) {
		return p.run(t, nil, "pass").Exit == 0, nil
	})
	require.NoError(t, err)
	require.Less(t, time.Since(died), 5*time.Second, "how long the Lease of a dead pass was in the way")
	var decision record.SyncDecision
	data, err := json.Marshal(p.decision(t))
	require.NoError(t, err)
	require.NoError(t, json.Unmarshal(data, &decision))
	require.Equal(t, 1, ptr.Deref(decision.Status.LastPass, record.LastPass{}).Counts.Create)
}
