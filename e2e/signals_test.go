package e2e

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/syncpass/syncpass/e2e/proxy"
	"github.com/syncpass/syncpass/e2e/scenario"
	"github.com/syncpass/syncpass/e2e/tally"
	"github.com/syncpass/syncpass/pass"
	"github.com/syncpass/syncpass/record"
)

// stopWithin is how long a pass may take to end after a signal, its record included.
const stopWithin = 5 * time.Second

// stopping is one way in which a signal may come upon a request.
type stopping struct {
	name   string
	moment proxy.Moment
	// held says that the request is never answered.
	held bool
}

// TestSignals stops the binary at every request of a pass, with SIGTERM and SIGINT in turns.
func TestSignals(t *testing.T) {
	s := usePlaces(t)
	var stops atomic.Int64
	t.Run("at", func(t *testing.T) {
		for _, way := range []stopping{{"sent", proxy.Before, false}, {"answered", proxy.After, false}, {"held", proxy.Before, true}} {
			t.Run(way.name, func(t *testing.T) {
				t.Parallel()
				m := newMatrix(t, s, "signal-"+way.name, startingPoint{policy: twoWay, begin: layFour, lay: driftBothWays})
				m.begin(t)
				for k := 0; m.stop(t, way, k); k++ {
					require.Less(t, k, mostRequests)
				}
				stops.Add(int64(m.tried))
			})
		}
	})
	if !t.Failed() {
		tally.Line(t, "signals: %d stops at %d ways of coming upon a request, 0 failed", stops.Load(), 3)
	}
}

// stop is one pass stopped at its request number k, and what follows. It returns false where the pass ended before.
func (m *matrix) stop(t *testing.T, way stopping, k int) bool {
	signal := []syscall.Signal{syscall.SIGTERM, syscall.SIGINT}[k%2]
	value := m.lay(t)
	before, reserved := m.look(t), m.reservedBy(t)
	at, took, result := m.runStoppedAt(t, way, k, signal)
	if at == nil {
		m.repair(t)
		return false
	}
	m.tried++
	point := fmt.Sprintf("%s while request %d is %s (%s): %s", signal, k, way.name, value, at)
	require.Less(t, took, stopWithin, "%s: until it has ended", point)
	stopped, exit := resultOf(t, result), 128+int(signal)
	if stopped.Outcome == record.Completed { // the signal came when all was done
		exit = 0
	}
	require.Equal(t, exit, result.Exit, "%s: %s\n%s", point, stopped.Outcome, result.Stderr)
	// Where the record is what gets no answer, the next pass finds out.
	recorded := !way.held || at.Method == http.MethodGet || !strings.Contains(at.Path, "/syncdecisions")
	written, status := changed(before, m.look(t)), m.status(t)
	if recorded && len(written) > 0 {
		require.Equal(t, stopped.ID, status.LastPass.ID, "%s: the record\n%s", point, result.Stderr)
		requireExplained(t, point, status.Entries, []string{stopped.ID}, written)
		for _, e := range status.Entries {
			require.NotContains(t, e.Message, "about to be written", "%s: what the record did not replace", point)
		}
	}
	if !way.held || !isLease(*at) {
		require.Empty(t, m.leaseHolder(t), "%s: the Lease", point)
	}
	m.expireLease(t)
	if status.ReservedBy == reserved {
		require.Empty(t, written, "%s: a pass that has reserved nothing has written", point)
		return true
	}
	results, passes, _ := m.repair(t)
	require.LessOrEqual(t, passes, repairs, "%s: passes until the sides agree", point)
	require.Equal(t, m.want, stateOf(t, m.look(t), value), "%s: what both sides look like at the end", point)
	m.requireNoSkip(t, point, results)
	return true
}

// runStoppedAt runs one pass that gets a signal at a request of it. It returns the request, nil where the pass ended
// before, and how long the process went on.
func (m *matrix) runStoppedAt(t *testing.T, way stopping, k int, signal syscall.Signal) (*proxy.Request, time.Duration, *scenario.Result) {
	process := make(chan *scenario.Process, 1)
	mark := int(m.requests.Mark())
	type moment struct {
		request proxy.Request
		time    time.Time
	}
	at := make(chan moment, 1)
	m.setHooks(func(now proxy.Moment, r proxy.Request) http.Handler {
		if now != way.moment || r.Number != mark+k {
			return nil
		}
		stopped := <-process
		at <- moment{r, time.Now()}
		assert.NoError(t, stopped.Signal(signal))
		if !way.held {
			return nil
		}
		<-stopped.Ended()
		return proxy.Drop
	})
	defer m.setHooks(nil)
	started, err := m.binary.Start(m.s.context(t), map[string]string{"SYNCPASS_CONCURRENCY": "1"}, "pass", "-o", "json")
	require.NoError(t, err)
	process <- started
	result, err := started.Wait()
	require.NoError(t, err)
	select {
	case signalled := <-at:
		return &signalled.request, time.Since(signalled.time), result
	default:
		require.Zero(t, result.Exit, "a pass that nobody stopped\n%s", result.Stderr)
		return nil, 0, nil
	}
}

// resultOf is what one pass printed; zero where it ended before it could.
func resultOf(t *testing.T, result *scenario.Result) pass.Result {
	t.Helper()
	if len(result.Stdout) == 0 {
		return pass.Result{}
	}
	var output passOutput
	require.NoError(t, json.Unmarshal(result.Stdout, &output), "stdout:\n%s", result.Stdout)
	if len(output.Passes) == 0 {
		return pass.Result{}
	}
	return output.Passes[0]
}

// leaseHolder is who holds the place's Lease; empty for nobody.
func (p *place) leaseHolder(t *testing.T) string {
	t.Helper()
	lease, err := p.objects(record.Host, leasesResource).Get(p.s.context(t), "syncpass-"+p.name, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		return ""
	}
	require.NoError(t, err)
	holder, _, err := unstructured.NestedString(lease.Object, "spec", "holderIdentity")
	require.NoError(t, err)
	return holder
}

// TestAPassEndsWithItsDeadline gives a pass less time than it needs: each request is answered in less than its own time, and all
// together take longer than the pass has.
func TestAPassEndsWithItsDeadline(t *testing.T) {
	s := usePlaces(t)
	deadlines := map[string]string{"SYNCPASS_REQUEST_TIMEOUT": "1s", "SYNCPASS_LEASE_DURATION": "2s", "SYNCPASS_PASS_TIMEOUT": "3s", "SYNCPASS_CONCURRENCY": "1"}
	// An answer may be on its way for this long when the time is over, and the record has its own time.
	const within = 3*time.Second + stopWithin
	for name, slow := range map[string]func(proxy.Request) bool{
		"reads":  func(r proxy.Request) bool { return r.Method == http.MethodGet },
		"writes": func(r proxy.Request) bool { return r.Method != http.MethodGet && isCollection(r, "configmaps") },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := newPlace(t, s, "deadline-"+name, twoWay)
			p.make(t, from(configMap, "x", "c1", "c2", "c3", "c4", "c5", "c6"))
			p.setHooks(func(now proxy.Moment, r proxy.Request) http.Handler {
				if now == proxy.Before && slow(r) {
					<-time.After(700 * time.Millisecond)
				}
				return nil
			})
			result := p.run(t, deadlines, "pass", "-o", "json")
			require.Equal(t, 7, result.Exit, "%s", result.Stderr)
			require.Less(t, result.Took, within)
			ended := resultOf(t, result)
			require.Equal(t, record.Unreachable, ended.Outcome)
			require.Contains(t, ended.Message, "SYNCPASS_PASS_TIMEOUT (3s)")
			require.Empty(t, p.leaseHolder(t))
			if name == "writes" {
				require.Equal(t, ended.ID, p.status(t).LastPass.ID, "the record of what was done")
				require.Positive(t, ended.Counts.Create)
			}

			p.setHooks(nil)
			repaired, _ := p.pass(t, 0, nil)
			require.Equal(t, 6, repaired.Counts.Create+ended.Counts.Create)
			_, requests := p.pass(t, 0, nil)
			require.True(t, isQuiet(requests))
		})
	}
}

// TestAClockThatJumpsDoesNoHarm moves every time that is stored by an hour, which is what a pass sees whose clock was set
// by an hour the other way: it decides as ever, and no Lease is in its way.
func TestAClockThatJumpsDoesNoHarm(t *testing.T) {
	s := usePlaces(t)
	for name, jump := range map[string]time.Duration{"ahead": time.Hour, "back": -time.Hour} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := newPlace(t, s, "clock-"+name, twoWay)
			p.waitForServiceAccounts(t)
			layConflict(t, p)
			layPods(t, p)
			p.pass(t, 0, nil)
			driftBothWays(t, p, "moved")
			p.shiftTimes(t, -jump)

			after, _ := p.pass(t, 0, nil)
			var decided []string
			for _, d := range after.Decisions {
				decided = append(decided, fmt.Sprintf("%s %s %s/%s", d.Action, d.Reason, d.Kind, d.TenantName))
			}
			require.ElementsMatch(t, []string{
				"Skip Conflict ConfigMap/held",
				"Update TenantChanged ConfigMap/down", "Update HostChanged ConfigMap/up",
				"Update TenantChanged Secret/down", "Update HostChanged Secret/up",
				"Update TenantChanged Service/down", "Update HostChanged Service/up",
			}, decided)
			_, requests := p.pass(t, 0, nil)
			require.True(t, isQuiet(requests))
		})
	}
}

// shiftTimes moves the times in the SyncDecision, and makes the Lease one that is held, and was renewed at that distance
// from now.
func (p *place) shiftTimes(t *testing.T, by time.Duration) {
	t.Helper()
	ctx := p.s.context(t)
	status := p.status(t)
	shift := func(at *metav1.MicroTime) { at.Time = at.Add(by) }
	shift(&status.LastPass.StartTime)
	shift(&status.LastPass.EndTime)
	for i := range status.Entries {
		shift(&status.Entries[i].Time)
		if status.Entries[i].LastTime != nil {
			shift(status.Entries[i].LastTime)
		}
	}
	history, err := record.Decode([]record.Page{*status.History})
	require.NoError(t, err)
	for key, state := range history.All() {
		if state.Standing != nil {
			standing := *state.Standing
			standing.Since, standing.LastTime = standing.Since.Add(by), standing.LastTime.Add(by)
			state.Standing = &standing
			history.Set(key, state)
		}
	}
	pages, err := history.Encode()
	require.NoError(t, err)
	status.History = &pages[0]
	decision := p.decision(t)
	data, err := json.Marshal(status)
	require.NoError(t, err)
	var fields object
	require.NoError(t, json.Unmarshal(data, &fields))
	decision.Object["status"] = fields
	_, err = p.objects(record.Host, syncDecisions).UpdateStatus(ctx, decision, metav1.UpdateOptions{})
	require.NoError(t, err)

	p.setRenewal(t, "somebody", time.Now().Add(by))
}
