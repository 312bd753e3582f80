package main

import (
	"context"
	"fmt"
	"sync"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/syncpass/syncpass/policy"
	"github.com/syncpass/syncpass/record"
)

func TestSchedule(t *testing.T) {
	tests := []struct {
		name     string
		policies map[string]policy.Schedule
		unread   map[string]bool
		took     time.Duration
		pass     func(w *world) func(ctx context.Context, tenant string, number int) record.Outcome
		window   time.Duration
		// during, if set, runs beside the scheduler.
		during func(w *world)
		// stop is when a signal comes; 0 is never, for a window that closes.
		stop time.Duration

		want []string
		ends time.Duration
		code int
	}{
		{
			name:     "the first pass starts at once, further ones at the interval",
			policies: map[string]policy.Schedule{"n/dev": every(30 * time.Second)},
			stop:     95 * time.Second,
			want:     []string{"n/dev 0s", "n/dev 30s", "n/dev 1m0s", "n/dev 1m30s"},
			ends:     95 * time.Second,
		},
		{
			name:     "an interval that is no whole number of seconds is kept",
			policies: map[string]policy.Schedule{"n/dev": every(1500 * time.Millisecond)},
			stop:     4 * time.Second,
			want:     []string{"n/dev 0s", "n/dev 1.5s", "n/dev 3s"},
			ends:     4 * time.Second,
		},
		{
			name:     "a pass that still runs is not joined by another",
			policies: map[string]policy.Schedule{"n/dev": every(10 * time.Second)},
			took:     25 * time.Second,
			stop:     56 * time.Second,
			want:     []string{"n/dev 0s", "n/dev 30s"},
			ends:     56 * time.Second,
		},
		{
			name:     "a window of 55s has room for two passes at 30s",
			policies: map[string]policy.Schedule{"n/dev": every(30 * time.Second)},
			took:     2 * time.Second,
			window:   55 * time.Second,
			want:     []string{"n/dev 0s", "n/dev 30s"},
			ends:     32 * time.Second,
		},
		{
			name:     "a window shorter than the interval has room for one pass",
			policies: map[string]policy.Schedule{"n/dev": every(time.Hour)},
			window:   55 * time.Second,
			want:     []string{"n/dev 0s"},
		},
		{
			name:     "a window waits for the tenant that takes longest",
			policies: map[string]policy.Schedule{"n/dev": every(20 * time.Second), "n/slow": every(50 * time.Second)},
			window:   55 * time.Second,
			want:     []string{"n/dev 0s", "n/slow 0s", "n/dev 20s", "n/dev 40s", "n/slow 50s"},
			ends:     50 * time.Second,
		},
		{
			name:     "the exit code of a window is that of the worst pass",
			policies: map[string]policy.Schedule{"n/dev": every(20 * time.Second)},
			window:   55 * time.Second,
			pass: func(*world) func(context.Context, string, int) record.Outcome {
				return func(_ context.Context, _ string, number int) record.Outcome {
					return []record.Outcome{record.CompletedWithErrors, record.Unreachable, record.Completed}[number-1]
				}
			},
			want: []string{"n/dev 0s", "n/dev 20s", "n/dev 40s"},
			ends: 40 * time.Second,
			code: exitUnreachable,
		},
		{
			name:     "a lease that another holds does not end the schedule",
			policies: map[string]policy.Schedule{"n/dev": every(30 * time.Second)},
			window:   55 * time.Second,
			pass: func(*world) func(context.Context, string, int) record.Outcome {
				return func(_ context.Context, _ string, number int) record.Outcome {
					return []record.Outcome{record.Locked, record.Completed}[number-1]
				}
			},
			want: []string{"n/dev 0s", "n/dev 30s"},
			ends: 30 * time.Second,
			code: exitLocked,
		},
		{
			name:     "a pass that panics does not end the schedule, or touch the other tenants'",
			policies: map[string]policy.Schedule{"n/bad": every(20 * time.Second), "n/dev": every(30 * time.Second)},
			window:   55 * time.Second,
			pass: func(*world) func(context.Context, string, int) record.Outcome {
				return func(_ context.Context, tenant string, number int) record.Outcome {
					if tenant == "n/bad" && number < 3 {
						panic("index out of range")
					}
					return record.Completed
				}
			},
			want: []string{"n/bad 0s", "n/dev 0s", "n/bad 20s", "n/dev 30s", "n/bad 40s"},
			ends: 40 * time.Second,
			code: exitUnexpected,
		},
		{
			name:     "a changed interval counts from the start of the pass that read it",
			policies: map[string]policy.Schedule{"n/dev": every(time.Hour)},
			took:     3 * time.Second,
			pass: func(w *world) func(context.Context, string, int) record.Outcome {
				return func(_ context.Context, tenant string, number int) record.Outcome {
					w.set(tenant, every(10*time.Second))
					return record.Completed
				}
			},
			stop: 25 * time.Second,
			want: []string{"n/dev 0s", "n/dev 10s", "n/dev 20s"},
			ends: 25 * time.Second,
		},
		{
			name:     "a longer interval takes the place of the shorter one",
			policies: map[string]policy.Schedule{"n/dev": every(10 * time.Second)},
			pass: func(w *world) func(context.Context, string, int) record.Outcome {
				return func(_ context.Context, tenant string, number int) record.Outcome {
					w.set(tenant, every(25*time.Second))
					return record.Completed
				}
			},
			stop: 45 * time.Second,
			want: []string{"n/dev 0s", "n/dev 25s"},
			ends: 45 * time.Second,
		},
		{
			name:     "a changed interval is noticed within a minute where no pass is due so soon",
			policies: map[string]policy.Schedule{"n/dev": every(time.Hour)},
			during: func(w *world) {
				time.Sleep(30 * time.Second)
				w.set("n/dev", every(50*time.Second))
			},
			stop: 115 * time.Second,
			want: []string{"n/dev 0s", "n/dev 1m0s", "n/dev 1m50s"},
			ends: 115 * time.Second,
		},
		{
			name:     "a paused policy runs nothing until it is resumed",
			policies: map[string]policy.Schedule{"n/dev": {Interval: 30 * time.Second}},
			during: func(w *world) {
				time.Sleep(90 * time.Second)
				w.set("n/dev", every(30*time.Second))
			},
			stop: 160 * time.Second,
			want: []string{"n/dev 2m0s", "n/dev 2m30s"},
			ends: 160 * time.Second,
		},
		{
			name:     "nothing but paused policies closes a window at once",
			policies: map[string]policy.Schedule{"n/dev": {Interval: 30 * time.Second}},
			window:   55 * time.Second,
		},
		{
			name:     "a policy that a pass finds paused has no further pass",
			policies: map[string]policy.Schedule{"n/dev": every(10 * time.Second)},
			pass: func(w *world) func(context.Context, string, int) record.Outcome {
				return func(_ context.Context, tenant string, number int) record.Outcome {
					w.set(tenant, policy.Schedule{Enabled: number < 2, Interval: 10 * time.Second})
					return record.Completed
				}
			},
			stop: 55 * time.Second,
			want: []string{"n/dev 0s", "n/dev 10s"},
			ends: 55 * time.Second,
		},
		{
			name:     "a policy that cannot be read has its pass, which says why, and the default interval",
			policies: map[string]policy.Schedule{"n/dev": every(time.Hour)},
			unread:   map[string]bool{"n/dev": true},
			window:   55 * time.Second,
			pass: func(*world) func(context.Context, string, int) record.Outcome {
				return func(context.Context, string, int) record.Outcome { return record.Invalid }
			},
			want: []string{"n/dev 0s", "n/dev 30s"},
			ends: 30 * time.Second,
			code: exitInvalid,
		},
		{
			name:     "a policy that can no longer be read leaves the schedule as it is",
			policies: map[string]policy.Schedule{"n/dev": every(90 * time.Second)},
			during: func(w *world) {
				time.Sleep(time.Second)
				w.mu.Lock()
				defer w.mu.Unlock()
				w.unread = map[string]bool{"n/dev": true}
			},
			stop: 100 * time.Second,
			want: []string{"n/dev 0s", "n/dev 1m30s"},
			ends: 100 * time.Second,
		},
		{
			name:     "tenants that come and go are noticed",
			policies: map[string]policy.Schedule{"n/old": every(40 * time.Second)},
			during: func(w *world) {
				time.Sleep(50 * time.Second)
				w.mu.Lock()
				defer w.mu.Unlock()
				delete(w.policies, "n/old")
				w.policies["n/new"] = every(40 * time.Second)
			},
			stop: 119 * time.Second,
			want: []string{"n/old 0s", "n/old 40s", "n/new 1m0s", "n/new 1m40s"},
			ends: 119 * time.Second,
		},
		{
			name:     "a host that does not answer leaves the schedule as it is",
			policies: map[string]policy.Schedule{"n/dev": every(40 * time.Second)},
			during: func(w *world) {
				time.Sleep(50 * time.Second)
				w.mu.Lock()
				defer w.mu.Unlock()
				w.unlisted = true
			},
			stop: 90 * time.Second,
			want: []string{"n/dev 0s", "n/dev 40s", "n/dev 1m20s"},
			ends: 90 * time.Second,
		},
		{
			name:     "a signal lets the pass that runs come to its end",
			policies: map[string]policy.Schedule{"n/dev": every(30 * time.Second)},
			pass: func(*world) func(context.Context, string, int) record.Outcome {
				return func(ctx context.Context, _ string, _ int) record.Outcome {
					<-ctx.Done()
					time.Sleep(2 * time.Second) // writing the record
					return record.Stopped
				}
			},
			stop: 10 * time.Second,
			want: []string{"n/dev 0s"},
			ends: 12 * time.Second,
			code: 143,
		},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := &world{policies: tt.policies, unread: tt.unread, took: tt.took}
				if tt.pass != nil {
					w.pass = tt.pass(w)
				}
				s := w.scheduler()
				s.window = tt.window
				ctx, cancel := context.WithCancelCause(t.Context())
				defer cancel(nil)
				if tt.stop > 0 {
					time.AfterFunc(tt.stop, func() { cancel(stopSignal{syscall.SIGTERM}) })
				}
				if tt.during != nil {
					go tt.during(w)
				}
				results, err := s.run(ctx)
				require.NoError(t, err)
				assert.Equal(t, tt.ends, time.Since(w.begun))
				// Passes that start at the same moment come in any order.
				assert.ElementsMatch(t, tt.want, w.starts)
				assert.Equal(t, tt.code, exitCode(nil, context.Cause(ctx), results, false))
				for _, r := range results {
					assert.Empty(t, r.Decisions, "decisions are not kept for ever")
				}
			})
		})
	}
}

func TestNoMorePassesRunAtATimeThanAllowed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := &world{policies: map[string]policy.Schedule{}, took: 20 * time.Second}
		for i := range 6 {
			w.policies[fmt.Sprint("n/t", i)] = every(30 * time.Second)
		}
		s := w.scheduler()
		s.window, s.concurrency = 55*time.Second, 1
		_, err := s.run(t.Context())
		require.NoError(t, err)
		assert.Equal(t, 1, w.most)
		for name := range w.policies {
			assert.NotZero(t, w.passes[name], "%s had no pass: a window too short for all tenants would starve it in every window", name)
		}
	})
}

func TestAScheduleNeedsAListOfTenantsToStart(t *testing.T) {
	w := &world{unlisted: true}
	_, err := w.scheduler().run(t.Context())
	assert.EqualError(t, err, "no answer")
}

func TestHealthOfASchedule(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := &world{policies: map[string]policy.Schedule{"n/dev": every(time.Hour), "n/paused": {}}, took: 10 * time.Minute}
		s := w.scheduler()
		s.hung = 5 * time.Minute
		ctx, cancel := context.WithCancel(t.Context())
		var ended sync.WaitGroup
		ended.Go(func() { _, _ = s.run(ctx) })

		time.Sleep(4 * time.Minute)
		assert.NoError(t, s.alive())
		assert.False(t, s.isReady(), "the first pass still runs")
		time.Sleep(2 * time.Minute)
		assert.EqualError(t, s.alive(), "the pass of n/dev has not ended for 6m0s")
		time.Sleep(5 * time.Minute)
		assert.NoError(t, s.alive(), "the pass has ended after all")
		assert.True(t, s.isReady())

		cancel()
		ended.Wait()
		time.Sleep(4 * time.Minute)
		assert.ErrorContains(t, s.alive(), "the cron has not run a job for")
		assert.True(t, s.isReady())
	})
}
