package e2e

import (
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/syncpass/syncpass/e2e/proxy"
	"github.com/syncpass/syncpass/e2e/scenario"
	"github.com/syncpass/syncpass/e2e/tally"
	"github.com/syncpass/syncpass/pass"
	"github.com/syncpass/syncpass/record"
)

// fault is one row: what goes wrong while a pass has four changes to carry over (see newDuePlace), how that pass must end
// and what it must have done. Once the fault is gone, two passes at most must finish the work, and the next be quiet.
type fault struct {
	// name is the row of the catalogue of faults that it is of, and what happens.
	name string
	env  map[string]string
	// spoil brings the fault about, mend takes it away; what a proxy does, ends by itself.
	spoil, mend func(t *testing.T, p *duePlace)
	// exit is the exit code of the pass.
	exit int
	// nothing: the pass comes to no decision.
	nothing bool
	// skips: every decision is to skip, whatever the reason.
	skips bool
	// decisions are "Action Reason" by the tenant object's name; those of due that are not named come as they are due.
	decisions map[string]string
	// landed are those of due that were done although the decision says Skip.
	landed []string
	// says are texts that the pass's message, its decisions or its log must hold.
	says []string
	// within bounds the time of the pass.
	within time.Duration
	// check looks at what else the pass did.
	check func(t *testing.T, p *duePlace, spoilt spoiltPass)
	// then are decisions that the passes afterwards may come to instead of finishing the work: a person has to.
	then map[string]string
}

// spoiltPass is the pass that met the fault.
type spoiltPass struct {
	pass.Result
	requests []proxy.Request
	took     time.Duration
}

// meet runs the pass that meets a fault.
func (p *duePlace) meet(t *testing.T, f fault) spoiltPass {
	t.Helper()
	result := p.run(t, f.env, "pass", "-o", "json")
	p.calm()
	printed := "stdout:\n" + string(result.Stdout) + "\nstderr:\n" + string(result.Stderr)
	require.Equal(t, f.exit, result.Exit, printed)
	var output passOutput
	require.NoError(t, json.Unmarshal(result.Stdout, &output), printed)
	require.Len(t, output.Passes, 1)
	for _, text := range f.says {
		assert.Contains(t, strings.ReplaceAll(printed, `\"`, `"`), text)
	}
	if f.within > 0 {
		assert.Less(t, result.Took, f.within)
	}
	return spoiltPass{output.Passes[0], result.Requests, result.Took}
}

// calm makes the proxies pass everything on again.
func (p *duePlace) calm() {
	for _, one := range []*proxy.Proxy{p.hostProxy, p.tenantProxy} {
		one.SetHook(nil)
		one.SetFilter(nil)
		one.SetQuery(nil)
	}
}

// requireDecisions compares what a pass decided with what it must have, and returns the names of what it says it did.
func requireDecisions(t *testing.T, f fault, got []record.Decision) []string {
	t.Helper()
	want := map[string]string{}
	if !f.nothing {
		maps.Copy(want, due)
		maps.Copy(want, f.decisions)
		maps.DeleteFunc(want, func(_, decision string) bool { return decision == "" })
	}
	made, done := map[string]string{}, slices.Clone(f.landed)
	for _, d := range got {
		made[d.TenantName] = fmt.Sprintf("%s %s", d.Action, d.Reason)
		if d.Action != record.Skip {
			done = append(done, d.TenantName)
		}
	}
	if f.skips {
		require.NotEmpty(t, got)
		require.Equal(t, f.landed, done, "%+v", got)
	} else {
		require.Equal(t, want, made, "%+v", got)
	}
	return done
}

func (f fault) run(t *testing.T, s *surroundings, name string) {
	t.Parallel()
	p := newDuePlace(t, s, name)
	t.Cleanup(func() { p.leave(t) })
	before := p.uids(t)
	require.Len(t, before, 10)
	if f.spoil != nil {
		f.spoil(t, p)
	}
	spoilt := p.meet(t, f)
	done := requireDecisions(t, f, spoilt.Decisions)
	if f.then == nil {
		assert.Equal(t, before, p.uids(t), "nothing else is deleted or made anew")
		p.requireDone(t, done...)
	}
	if f.check != nil {
		f.check(t, p, spoilt)
	}
	if t.Failed() {
		return
	}
	if f.mend != nil {
		f.mend(t, p)
	}
	p.recover(t, f.then)
	if f.then == nil {
		assert.Equal(t, before, p.uids(t), "nothing else is deleted or made anew")
		p.requireDone(t, "made", "pushed", "pulled", "gone")
	}
}

// recover makes the passes that follow a fault: two at most until the work is done, then a quiet one. A Lease that was not
// given back runs out first.
func (p *duePlace) recover(t *testing.T, then map[string]string) {
	t.Helper()
	var last pass.Result
	completed := 0
	for deadline := time.Now().Add(time.Minute); completed < 2; {
		result := p.run(t, nil, "pass", "-o", "json")
		if result.Exit == 6 && completed == 0 && time.Now().Before(deadline) {
			continue // the pass before could not give back its Lease
		}
		require.Zero(t, result.Exit, "stdout:\n%s\nstderr:\n%s", result.Stdout, result.Stderr)
		last = decodePass(t, result)
		if completed++; len(last.Decisions) == 0 {
			break
		}
	}
	quiet, requests := p.pass(t, 0, nil)
	made := map[string]string{}
	for _, d := range quiet.Decisions {
		made[d.TenantName] = fmt.Sprintf("%s %s", d.Action, d.Reason)
	}
	require.Equal(t, len(then), len(made), "%+v", quiet.Decisions)
	for name, decision := range then {
		require.Equal(t, decision, made[name])
	}
	requireNoWriteButTheLease(t, requests)
}

func decodePass(t *testing.T, result *scenario.Result) pass.Result {
	t.Helper()
	var output passOutput
	require.NoError(t, json.Unmarshal(result.Stdout, &output), "%s", result.Stdout)
	require.Len(t, output.Passes, 1)
	return output.Passes[0]
}

// match picks the requests that a fault is about.
type match func(p *duePlace, r proxy.Request) bool

// writing matches the write of a ConfigMap to a side.
func writing(side record.Side, method, name string) match {
	return func(p *duePlace, r proxy.Request) bool {
		path := "/api/v1/namespaces/" + p.name + "/configmaps"
		if method != http.MethodPost {
			path += "/" + p.at(side, name)
		}
		return r.Method == method && r.Path == path && !strings.Contains(r.Query, "dryRun")
	}
}

// listing matches the lists of a kind.
func listing(resource string) match {
	return func(_ *duePlace, r proxy.Request) bool {
		return r.Method == http.MethodGet && strings.HasPrefix(r.Path, "/api/v1") && strings.HasSuffix(r.Path, "/"+resource)
	}
}

// answer lets handlers answer a side's matching requests, one after the other; the last answers all further ones. Nil
// lets a request pass.
func answer(side record.Side, moment proxy.Moment, matches match, handlers ...http.Handler) func(*testing.T, *duePlace) {
	return func(_ *testing.T, p *duePlace) {
		var seen atomic.Int64
		p.proxyOf(side).SetHook(func(m proxy.Moment, r proxy.Request) http.Handler {
			if m != moment || !matches(p, r) {
				return nil
			}
			return handlers[min(int(seen.Add(1)), len(handlers))-1]
		})
	}
}

// upTo repeats a handler so many times, and lets all further requests pass.
func upTo(times int, handler http.Handler) []http.Handler {
	return append(slices.Repeat([]http.Handler{handler}, times), nil)
}

func (p *duePlace) proxyOf(side record.Side) *proxy.Proxy {
	if side == record.Host {
		return p.hostProxy
	}
	return p.tenantProxy
}

// TestFaults: whatever fails between the binary and real API servers, a pass ends with the exit code that says so, has
// done what it says and nothing out of an incomplete view, and the passes after it finish the work.
func TestFaults(t *testing.T) {
	s := usePlaces(t)
	rows := slices.Concat(faultsOfWrites(), faultsOfPeople(), faultsOfReads(), faultsOfLists(), faultsOfServers(), faultsOfAdmission())
	runRows(t, s, "fault", rows, kindsThatGo, "faulty servers: %d faults in %d rows of the catalogue, %d failed")
}

// runRows runs rows, and tests that are none, side by side in places of their own, and tells their numbers.
func runRows(t *testing.T, s *surroundings, family string, rows []fault, others map[string]func(*testing.T, *surroundings, string), line string) {
	t.Helper()
	tests := maps.Clone(others)
	for _, row := range rows {
		require.NotContains(t, tests, row.name)
		tests[row.name] = row.run
	}
	var failed atomic.Int64
	numbers := map[string]bool{}
	t.Run("rows", func(t *testing.T) {
		for i, name := range slices.Sorted(maps.Keys(tests)) {
			numbers[name[:len("F01")]] = true
			t.Run(name, func(t *testing.T) {
				t.Cleanup(func() {
					if t.Failed() {
						failed.Add(1)
					}
				})
				tests[name](t, s, fmt.Sprintf("%s-%d", family, i))
			})
		}
	})
	tally.Line(t, line, len(tests), len(numbers), failed.Load())
}
