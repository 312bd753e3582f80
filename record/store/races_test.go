package store

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

// A pass over many pairs makes the history grow from one page to several, and one over few makes it shrink again.
const many, few = 130, 3

func passIDs(l *Loaded) []string {
	var ids []string
	for _, e := range l.Status.Entries {
		ids = append(ids, e.PassID)
	}
	return ids
}

// requireAllIn checks that the pairs are all in the n-th state, and nothing is left over.
func requireAllIn(t require.TestingT, l *Loaded, pairs, n int) {
	require.Empty(t, l.Problems)
	require.Equal(t, pairs, l.History.Len())
	for i := range pairs {
		require.Equal(t, state(i, n), l.History.Get(key(i)))
	}
}

// faulty runs a pass that grows the history on a fresh server, with that done to its k-th request and, if it is to
// die there, to all that follow. It returns the request, empty if the pass did not get that far.
func faulty(t *testing.T, k int, f fault, dies bool) (srv *server, s *Store, request string, err error) {
	srv = newServer(t)
	s = srv.storeOf(t, "pass", "dev")
	require.NoError(t, onePass(t.Context(), s, "p1", few, 1))
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	var mu sync.Mutex
	first := srv.count["pass"]
	srv.before = func(_ string, n int, r string) fault {
		mu.Lock()
		defer mu.Unlock()
		switch {
		case n == first+k:
			request = r
			return f
		case n > first+k && dies:
			cancel()
			return lost
		}
		return none
	}
	err = onePass(ctx, s, "p2", many, 2)
	srv.before = nil
	return srv, s, request, err
}

func TestACrashAtAnyRequestLeavesATrueRecord(t *testing.T) {
	for _, f := range []fault{lost, unanswered} {
		for k := 1; ; k++ {
			srv, s, request, err := faulty(t, k, f, true)
			if request == "" {
				require.NoError(t, err)
				require.Greater(t, k, 7, "the pass has more requests than that")
				break
			}
			l := load(t, s)
			require.Empty(t, l.Problems, "%d: %s", k, request)
			for i := range many {
				// A pair is as it was, or about to be written, or as it was written.
				got := l.History.Get(key(i))
				switch {
				case got.Baseline == nil:
					require.GreaterOrEqual(t, i, few, "a baseline got lost at %d: %s", k, request)
				case got.Baseline.Host.Hash[1] == 1:
					require.Equal(t, state(i, 1).Baseline, got.Baseline)
				default:
					// The head is written last, and has the intents until then.
					if got.Intent != nil {
						require.Equal(t, intent(i), got.Intent)
						got.Intent = nil
					}
					require.Equal(t, state(i, 2), got)
				}
			}
			require.NoError(t, onePass(t.Context(), s, "p3", many, 3), "after a crash at %d: %s", k, request)
			l = load(t, s)
			requireAllIn(t, l, many, 3)
			require.Len(t, srv.names(), l.of(), "pages are left over from a crash at %d: %s", k, request)
		}
	}
}

// Whether a write that got no answer was carried out or not, the pass finds out, goes on, and records nothing twice.
func TestAnAnswerThatGetsLostIsSettled(t *testing.T) {
	for _, f := range []fault{lost, unanswered} {
		for k := 1; ; k++ {
			_, s, request, err := faulty(t, k, f, false)
			require.NoError(t, err, "%d: %s", k, request)
			if request == "" {
				require.Greater(t, k, 7, "the pass has more requests than that")
				break
			}
			l := load(t, s)
			requireAllIn(t, l, many, 2)
			require.EqualValues(t, 2, l.Status.Epoch, "%d: %s", k, request)
			require.Equal(t, []string{"p1", "p2"}, passIDs(l), "%d: %s", k, request)
		}
	}
}

func TestALostAnswerToTheFirstCreateIsSettled(t *testing.T) {
	for _, f := range []fault{lost, unanswered} {
		srv := newServer(t)
		s := srv.store(t, "dev")
		done := false
		srv.before = func(_ string, _ int, r string) fault {
			if r != "POST dev" || done {
				return none
			}
			done = true
			return f
		}
		require.NoError(t, onePass(t.Context(), s, "p1", few, 1))
		require.True(t, done)
		requireAllIn(t, load(t, s), few, 1)
	}
}

// Two passes of one tenant: the first is stopped before its k-th request, the second then runs to its j-th, the first
// goes on to its end, and then the second. At least one gets through, and what is recorded is what the last one to get
// through did.
func TestOverlappingPassesNeverMix(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		from := rapid.SampledFrom([]int{few, many}).Draw(rt, "pairs before")
		pairs := map[string]int{
			"first":  rapid.SampledFrom([]int{few, many}).Draw(rt, "pairs of the first"),
			"second": rapid.SampledFrom([]int{few, many}).Draw(rt, "pairs of the second"),
		}
		k, j := rapid.IntRange(1, 20).Draw(rt, "k"), rapid.IntRange(1, 21).Draw(rt, "j")

		srv := newServer(t)
		defer srv.Close()
		require.NoError(rt, onePass(t.Context(), srv.store(t, "dev"), "p0", from, 1))

		errs := map[string]error{}
		var mu sync.Mutex
		run := func(name string, n int) chan struct{} {
			done := make(chan struct{})
			go func() {
				defer close(done)
				err := replace(t, srv.storeOf(t, name, "dev"), name, pairs[name], n)
				mu.Lock()
				defer mu.Unlock()
				errs[name] = err
			}()
			return done
		}
		// Pages are written several at once: whoever comes to the point of change first opens it, the others wait too.
		startSecond, resumeFirst, resumeSecond := make(chan struct{}), make(chan struct{}), make(chan struct{})
		var startOnce, resumeOnce sync.Once
		srv.before = func(client string, n int, _ string) fault {
			switch {
			case client == "first" && n >= k:
				startOnce.Do(func() { close(startSecond) })
				<-resumeFirst
			case client == "second" && n >= j:
				resumeOnce.Do(func() { close(resumeFirst) })
				<-resumeSecond
			}
			return none
		}
		first := run("first", 2)
		select {
		case <-startSecond:
		case <-first:
		}
		second := run("second", 3)
		go func() {
			<-second // it may end before its j-th request
			resumeOnce.Do(func() { close(resumeFirst) })
		}()
		<-first
		close(resumeSecond)
		<-second
		srv.before = nil

		for name, err := range errs {
			if err != nil {
				require.ErrorIs(rt, err, ErrSuperseded, name)
			}
		}
		require.False(rt, errs["first"] != nil && errs["second"] != nil, "one must get through: %v", errs)
		l, err := srv.store(t, "dev").Load(t.Context())
		require.NoError(rt, err)
		ids := passIDs(l)
		for name, err := range errs {
			require.Equal(rt, err == nil, slices.Contains(ids, name), "%s: %v; the trail is %v", name, err, ids)
		}
		last := ids[len(ids)-1]
		requireAllIn(rt, l, pairs[last], map[string]int{"first": 2, "second": 3}[last])
	})
}

// replace is onePass, but leaves only so many pairs.
func replace(t *testing.T, s *Store, passID string, pairs, n int) error {
	l, err := s.Load(t.Context())
	if err != nil {
		return err
	}
	h := l.History.Clone()
	for k := range h.All() {
		h.Delete(k)
	}
	intend(h, pairs)
	if err := s.Reserve(t.Context(), l, Reservation{PassID: passID, History: h}); err != nil {
		return err
	}
	h = h.Clone()
	fill(h, pairs, n)
	_, err = s.Record(t.Context(), l, result(passID, l, h, entry(passID)))
	return err
}

func TestTheEpochIsRaisedOncePerPassThatWrites(t *testing.T) {
	srv := newServer(t)
	s := srv.store(t, "dev")
	for i := range 5 {
		require.NoError(t, onePass(t.Context(), s, fmt.Sprint("p", i), []int{few, many}[i%2], i))
		epoch, err := s.CurrentEpoch(t.Context())
		require.NoError(t, err)
		require.EqualValues(t, i+1, epoch.Number)
		require.Equal(t, fmt.Sprint("p", i), epoch.PassID)
	}
	require.True(t, strings.HasPrefix(srv.names()[1], "dev-history-"))
}
