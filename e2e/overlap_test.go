package e2e

import (
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	coordinationv1 "k8s.io/api/coordination/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	utiljson "k8s.io/apimachinery/pkg/util/json"
	"k8s.io/client-go/kubernetes/scheme"

	"github.com/syncpass/syncpass/e2e/proxy"
	"github.com/syncpass/syncpass/e2e/scenario"
	"github.com/syncpass/syncpass/e2e/tally"
	"github.com/syncpass/syncpass/record"
)

// pairs is how many times two passes of one tenant are started at once.
const pairs = 50

// stuck is when a test gives up holding a request back, so that it fails and does not hang.
const stuck = time.Minute

// runner is a way of its own to a place's two servers, so that what one process sends can be told from what another does.
type runner struct {
	hostProxy, tenantProxy *proxy.Proxy
	requests               *proxy.Log
	binary                 scenario.Binary
}

func (p *duePlace) runner(t *testing.T) *runner {
	t.Helper()
	ctx := p.s.context(t)
	r := &runner{requests: &proxy.Log{}, binary: p.binary}
	var err error
	var hostKubeconfig, tenantKubeconfig []byte
	r.hostProxy, hostKubeconfig, err = p.s.front(ctx, "host", p.s.host, r.requests)
	require.NoError(t, err)
	t.Cleanup(func() { assert.NoError(t, r.hostProxy.Close()) })
	r.tenantProxy, tenantKubeconfig, err = p.s.front(ctx, "tenant", p.s.tenant, r.requests)
	require.NoError(t, err)
	t.Cleanup(func() { assert.NoError(t, r.tenantProxy.Close()) })
	dir := t.TempDir()
	host, tenant := filepath.Join(dir, "host"), filepath.Join(dir, "tenant")
	require.NoError(t, os.WriteFile(host, hostKubeconfig, 0o600))
	require.NoError(t, os.WriteFile(tenant, tenantKubeconfig, 0o600))
	r.binary.Log = r.requests
	r.binary.Env = with(p.binary.Env, map[string]string{"SYNCPASS_HOST_KUBECONFIG": host, "SYNCPASS_TENANT_KUBECONFIG": tenant})
	return r
}

func (r *runner) setHook(hook proxy.Hook) {
	r.hostProxy.SetHook(hook)
	r.tenantProxy.SetHook(hook)
}

// objectWrite matches what changes an object of a pair.
func objectWrite(p *duePlace, r proxy.Request) bool {
	return r.Method != http.MethodGet && strings.HasPrefix(r.Path, "/api/v1/namespaces/"+p.name+"/configmaps") && !strings.Contains(r.Query, "dryRun")
}

// applied counts the object writes among requests that a server carried out, by method and server.
func applied(p *duePlace, requests []proxy.Request) map[string]int {
	counts := map[string]int{}
	for _, r := range requests {
		if objectWrite(p, r) && r.Status >= 200 && r.Status < 300 {
			counts[r.Method+" "+r.Server]++
		}
	}
	return counts
}

// freeLease answers requests for Leases as if each were free for whoever asks; nil for other requests.
func freeLease(moment proxy.Moment, r proxy.Request) http.Handler {
	if moment != proxy.Before || !strings.Contains(r.Path, "/leases") {
		return nil
	}
	if r.Method == http.MethodGet {
		return proxy.Status(http.StatusNotFound, metav1.StatusReasonNotFound, "no such lease")
	}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if err != nil {
			panic(http.ErrAbortHandler) // the client has gone
		}
		decoded, _, err := scheme.Codecs.UniversalDeserializer().Decode(body, nil, nil)
		lease, ok := decoded.(*coordinationv1.Lease)
		if err != nil || !ok {
			http.Error(w, fmt.Sprintf("no Lease: %v", err), http.StatusBadRequest)
			return
		}
		lease.APIVersion, lease.Kind = coordinationv1.SchemeGroupVersion.String(), "Lease"
		lease.UID, lease.ResourceVersion = "granted", "1"
		data, err := utiljson.Marshal(lease)
		if err != nil {
			panic(err)
		}
		proxy.Body(http.StatusOK, "application/json", data).ServeHTTP(w, r)
	})
}

// gate holds requests back until it is opened.
type gate struct {
	open chan struct{}
	once sync.Once
}

func newGate() *gate { return &gate{open: make(chan struct{})} }

func (g *gate) Open() { g.once.Do(func() { close(g.open) }) }

func (g *gate) wait() {
	select {
	case <-g.open:
	case <-time.After(stuck):
	}
}

type overlapTest struct {
	name string
	run  func(t *testing.T, s *surroundings, place string)
}

// TestOverlap: whatever two passes of one tenant do at the same time, no change is lost and nothing is made twice.
func TestOverlap(t *testing.T) {
	t.Parallel() // with the one test of the node that mostly waits, and with the crash matrix, both in places of their own
	s := usePlaces(t)
	var turnedAway, failed atomic.Int64
	tests := []overlapTest{
		{"F28 pairs of passes under the Lease", func(t *testing.T, s *surroundings, place string) { overlap(t, s, place, true, &turnedAway) }},
		{"F28 pairs of passes without a Lease", func(t *testing.T, s *surroundings, place string) { overlap(t, s, place, false, &turnedAway) }},
		{leaseLost.name, leaseLost.run},
	}
	for k := 1; k <= len(due); k++ {
		tests = append(tests,
			overlapTest{fmt.Sprintf("F29 a pass stands still at write %d, which lands at once", k), func(t *testing.T, s *surroundings, place string) { standStill(t, s, place, k, false) }},
			overlapTest{fmt.Sprintf("F29 a pass stands still at write %d, which lands late", k), func(t *testing.T, s *surroundings, place string) { standStill(t, s, place, k, true) }})
	}
	t.Run("tests", func(t *testing.T) {
		for i, test := range tests {
			t.Run(test.name, func(t *testing.T) {
				t.Cleanup(func() {
					if t.Failed() {
						failed.Add(1)
					}
				})
				test.run(t, s, fmt.Sprintf("overlap-%d", i))
			})
		}
	})
	tally.Line(t, "two at once: %d pairs of passes (%d turned away or superseded) and %d passes that lost their lease, %d tests failed",
		2*pairs, turnedAway.Load(), len(tests)-2, failed.Load())
}

// overlap starts two passes at once, again and again, with changes on both sides in between.
func overlap(t *testing.T, s *surroundings, name string, leased bool, turnedAway *atomic.Int64) {
	t.Parallel()
	p := &duePlace{newPlace(t, s, name, duePolicy())}
	for i := range reused {
		p.set(t, record.Tenant, fmt.Sprintf("t-%d", i), "0")
		p.set(t, record.Tenant, fmt.Sprintf("h-%d", i), "0")
	}
	p.pass(t, 0, nil)
	two := [2]*runner{p.runner(t), p.runner(t)}
	for round := range pairs {
		turnedAway.Add(p.pair(t, two, round, leased))
		if t.Failed() {
			t.Fatalf("in round %d", round)
		}
	}
}

// reused is how many objects of each side take turns in being changed.
const reused = 5

// pair starts two passes at once over one change of each sort, and says how many of the two did not come to their end.
// Of three rounds, one has the first pass wait with its writes until the second has ended and somebody has gone on
// editing, and one (where no Lease keeps them apart) has both plan before either reserves.
func (p *duePlace) pair(t *testing.T, two [2]*runner, round int, leased bool) (turnedAway int64) {
	t.Helper()
	inTenant, onHost := fmt.Sprintf("t-%d", round%reused), fmt.Sprintf("h-%d", round%reused)
	made, gone := fmt.Sprintf("n-%d", round), fmt.Sprintf("n-%d", round-1)
	value := fmt.Sprint(round + 1)
	edit := func(value string) {
		p.set(t, record.Tenant, inTenant, value)
		p.set(t, record.Host, onHost, value)
	}
	edit(value)
	p.set(t, record.Tenant, made, value)
	if round > 0 {
		p.remove(t, record.Tenant, gone)
	}

	held, together := round%3 == 1, round%3 == 0 && !leased
	arrived, goOn := newGate(), newGate()
	var reserving atomic.Int64
	for i, one := range two {
		one.setHook(func(m proxy.Moment, r proxy.Request) http.Handler {
			switch {
			case m != proxy.Before:
			case held && i == 0 && objectWrite(p, r):
				arrived.Open()
				goOn.wait()
			case together && storing(p, r):
				if reserving.Add(1) == 2 {
					goOn.Open()
				}
				goOn.wait()
			}
			if !leased {
				return freeLease(m, r)
			}
			return nil
		})
	}
	mark := [2]proxy.Mark{two[0].requests.Mark(), two[1].requests.Mark()}
	first := two[0].start(t, p)
	if held {
		arrived.wait()
	}
	second := two[1].start(t, p)
	results := [2]*scenario.Result{1: ended(t, second)}
	if held {
		value += "+"
		edit(value)
		goOn.Open()
	}
	results[0] = ended(t, first)
	for i, result := range results {
		require.Contains(t, []int{0, 6}, result.Exit, "pass %d of round %d:\n%s\n%s", i, round, result.Stdout, result.Stderr)
		if result.Exit == 6 {
			turnedAway++
		}
	}
	require.Less(t, turnedAway, int64(2), "one of two gets through")
	switch {
	case held && leased:
		require.Equal(t, 6, results[1].Exit, "the Lease was held")
	case held:
		require.Equal(t, 6, results[0].Exit, "another pass has written since it reserved")
	case together:
		require.EqualValues(t, 1, turnedAway, "one of two wins the swap")
	}
	if leased {
		requireApart(t, p, results)
	}

	requests := slices.Concat(two[0].requests.Since(mark[0]), two[1].requests.Since(mark[1]))
	for passes := 0; ; passes++ {
		require.Less(t, passes, 3, "two passes make both sides agree")
		after, sent := p.pass(t, 0, nil)
		requests = append(requests, sent...)
		if len(after.Decisions) == 0 {
			break
		}
	}
	p.requireBoth(t, inTenant, value, value)
	p.requireBoth(t, onHost, value, value)
	p.requireBoth(t, made, fmt.Sprint(round+1), fmt.Sprint(round+1))
	p.requireBoth(t, gone, "", "")
	want := map[string]int{"POST host": 1, "PUT host": 1, "PUT tenant": 1}
	if held {
		want["PUT host"], want["PUT tenant"] = 2, 2
	}
	if round > 0 {
		want["DELETE host"] = 1
	}
	require.Equal(t, want, applied(p, requests), "nothing is done twice, in round %d", round)
	return turnedAway
}

func (r *runner) start(t *testing.T, p *duePlace) *scenario.Process {
	t.Helper()
	process, err := r.binary.Start(p.s.context(t), nil, "pass", "-o", "json")
	require.NoError(t, err)
	return process
}

func ended(t *testing.T, process *scenario.Process) *scenario.Result {
	t.Helper()
	result, err := process.Wait()
	require.NoError(t, err)
	return result
}

// requireApart fails if both passes wrote objects and did so at the same time.
func requireApart(t *testing.T, p *duePlace, results [2]*scenario.Result) {
	t.Helper()
	var from, to [2]time.Time
	for i, result := range results {
		for _, r := range result.Requests {
			if objectWrite(p, r) {
				if from[i].IsZero() {
					from[i] = r.Start
				}
				to[i] = r.Start
			}
		}
	}
	if !from[0].IsZero() && !from[1].IsZero() {
		require.True(t, to[0].Before(from[1]) || to[1].Before(from[0]), "both write: %v to %v, and %v to %v", from[0], to[0], from[1], to[1])
	}
}
