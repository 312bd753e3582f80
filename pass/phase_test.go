package pass

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/require"

	"github.com/syncpass/syncpass/pass/access"
	"github.com/syncpass/syncpass/pass/modeltest"
)

// watcher writes down what it is told of passes.
type watcher struct {
	lock sync.Mutex
	told []string
	// requests are counted by the pass, from 1, and the phase that they were sent in; none is "".
	passes   int
	requests map[string]int
}

type phaseKey struct{}

func (w *watcher) begin(ctx context.Context, phase Phase) (context.Context, func(error)) {
	w.lock.Lock()
	defer w.lock.Unlock()
	if phase == PhaseLoad {
		w.passes++
	}
	told := len(w.told)
	w.told = append(w.told, fmt.Sprintf("pass %d: %s", w.passes, phase))
	return context.WithValue(ctx, phaseKey{}, phase), func(err error) {
		w.lock.Lock()
		defer w.lock.Unlock()
		end := "done"
		if err != nil {
			end = string(OutcomeOf(err))
		}
		w.told[told] += " " + end
	}
}

func (w *watcher) progress(done, total int) {
	w.lock.Lock()
	defer w.lock.Unlock()
	w.told[len(w.told)-1] += fmt.Sprintf(" %d/%d", done, total)
}

func (w *watcher) observe(ctx context.Context, _ access.Request) func(int) {
	w.lock.Lock()
	defer w.lock.Unlock()
	phase, _ := ctx.Value(phaseKey{}).(Phase)
	w.requests[fmt.Sprintf("pass %d: %s", w.passes, phase)]++
	return func(int) {}
}

// watched are passes that follow each other, with what happens between them.
func watched(t *testing.T, commands ...modeltest.Command) *watcher {
	w := &watcher{requests: map[string]int{}}
	synctest.Test(t, func(t *testing.T) {
		c := newCircuit()
		c.begin, c.progress, c.observe = w.begin, w.progress, w.observe
		m := modeltest.Live(c.pass, modeltest.Without{}, commands)
		require.Empty(t, m.Broken)
	})
	return w
}

func TestAPassTellsOfItsPhasesWritesAndRequests(t *testing.T) {
	w := watched(t, modeltest.Command{What: modeltest.Herds}, modeltest.Command{What: modeltest.APass}, modeltest.Command{What: modeltest.APass})
	require.Equal(t, []string{
		"pass 1: load done", "pass 1: lease done", "pass 1: snapshot done", "pass 1: plan done", "pass 1: reserve done",
		"pass 1: apply 0/12 1/12 2/12 3/12 4/12 5/12 6/12 7/12 8/12 9/12 10/12 11/12 12/12 done",
		"pass 2: load done", "pass 2: lease done", "pass 2: snapshot done", "pass 2: plan done", "pass 2: apply 0/0 done", "pass 2: record done",
	}, slices.Concat(w.told[:6], w.told[8:14]))
	require.ElementsMatch(t, []string{"pass 1: record done", "pass 1: events done"}, w.told[6:8], "these two go on side by side")
	for _, phase := range []Phase{PhaseLease, PhaseSnapshot, PhaseReserve, PhaseRecord} {
		require.NotZero(t, w.requests["pass 1: "+string(phase)], "%s sends requests of its own", phase)
	}
	require.Equal(t, 12, w.requests["pass 1: apply"])
	require.Equal(t, 12, w.requests["pass 1: events"])
	require.Equal(t, 1, w.requests["pass 1: "], "outside of all phases the Lease is given back")
	require.Zero(t, w.requests["pass 2: apply"])
}

func TestAPassTellsWhichPhaseFailed(t *testing.T) {
	refused := modeltest.Command{What: modeltest.APass, Fault: modeltest.Fault{Kind: modeltest.Refused, At: 0}}
	w := watched(t, modeltest.Command{What: modeltest.Herds}, refused)
	require.Equal(t, []string{
		"pass 1: load done", "pass 1: lease done", "pass 1: snapshot done", "pass 1: plan done", "pass 1: reserve Unreachable",
	}, w.told[:5])
	require.Equal(t, "pass 2: load done", w.told[5], "what follows a reservation that failed is the next pass")
}
