package main

import (
	"context"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/robfig/cron/v3"
	"golang.org/x/sync/errgroup"
	"k8s.io/apimachinery/pkg/types"

	"github.com/syncpass/syncpass/pass"
	"github.com/syncpass/syncpass/policy"
)

// refreshInterval is how often a schedule looks for tenants that came or went, and for the policies of tenants whose
// passes do not read them at least that often.
const refreshInterval = time.Minute

// scheduler runs passes over tenants, each at its policy's interval, by an internal cron.
type scheduler struct {
	// list returns the tenants there are now.
	list func(context.Context) ([]types.NamespacedName, error)
	// load says when passes over a tenant are due, without running one.
	load func(context.Context, types.NamespacedName) (policy.Schedule, error)
	// pass runs one pass. It is never called for a tenant while it runs for that tenant.
	pass func(context.Context, types.NamespacedName) pass.Result
	// window is how long after the start passes may begin; 0 is for ever.
	window time.Duration
	// concurrency is how many passes may run at a time.
	concurrency int
	// hung is how long a pass takes that will never end; 0 is for ever.
	hung time.Duration
	log  *slog.Logger

	started time.Time
	cron    *cron.Cron
	slots   chan struct{}
	// over is closed when no further pass fits into the window.
	over func()

	mu       sync.Mutex
	lastBeat time.Time
	ready    bool
	tenants  map[types.NamespacedName]*scheduledTenant
}

// scheduledTenant is a tenant and its place in the schedule. One that went from the host stays here, paused, so that
// it is the same one if it comes back while its last pass still runs.
type scheduledTenant struct {
	name types.NamespacedName
	// job runs one pass, or does nothing while one runs already. It stays the same when the schedule changes.
	job cron.Job
	// schedule is the policy's; entry is the job's place in the cron, 0 while nothing is due.
	schedule policy.Schedule
	entry    cron.EntryID

	lastStart time.Time // zero before the first pass
	running   bool
	worst     *pass.Result // nil before the end of the first pass
}

func newScheduler(log *slog.Logger) *scheduler {
	return &scheduler{
		log:     log,
		cron:    cron.New(cron.WithLocation(time.UTC), cron.WithLogger(cronLog{log: log, level: slog.LevelDebug})),
		tenants: map[types.NamespacedName]*scheduledTenant{},
	}
}

// run runs passes until ctx is cancelled or no further pass fits into the window, and returns after the last one has
// ended, with the worst result of each tenant. A list of tenants that cannot be had at the start is an error; later on,
// the schedule stays as it is.
func (s *scheduler) run(ctx context.Context) ([]pass.Result, error) {
	over := make(chan struct{})
	s.over = sync.OnceFunc(func() { close(over) })
	s.slots = make(chan struct{}, s.concurrency)
	s.started = time.Now()

	names, err := s.list(ctx)
	if err != nil {
		return nil, err
	}
	s.adapt(ctx, names)
	refresh := guarded(s.log, func() { s.refresh(ctx) })
	s.cron.Schedule(cron.Every(refreshInterval), cron.FuncJob(func() {
		s.beat()
		refresh.Run()
	}))
	s.beat()
	s.cron.Start()
	s.settle()

	select {
	case <-ctx.Done():
	case <-over:
	}
	<-s.cron.Stop().Done() // the passes that run see ctx end by themselves

	s.mu.Lock()
	defer s.mu.Unlock()
	var results []pass.Result
	for _, name := range slices.SortedFunc(maps.Keys(s.tenants), compareNames) {
		if r := s.tenants[name].worst; r != nil {
			results = append(results, *r)
		}
	}
	return results, nil
}

// guarded makes a job that survives a panic, and of which at most one run goes on at a time; the cron by itself sees
// to neither.
func guarded(log *slog.Logger, run func()) cron.Job {
	l := cronLog{log: log, level: slog.LevelInfo}
	return cron.NewChain(cron.Recover(l), cron.SkipIfStillRunning(l)).Then(cron.FuncJob(run))
}

// refresh looks for what changed on the host.
func (s *scheduler) refresh(ctx context.Context) {
	names, err := s.list(ctx)
	if err != nil {
		s.log.Warn("The tenants cannot be listed; the schedule stays as it is", "error", printable(err.Error()))
		return
	}
	s.adapt(ctx, names)
	s.settle()
}

// adapt makes the schedule that of the tenants there are now.
func (s *scheduler) adapt(ctx context.Context, names []types.NamespacedName) {
	for name, t := range s.known() {
		if !slices.Contains(names, name) {
			s.place(t, policy.Schedule{})
		}
	}
	var group errgroup.Group
	group.SetLimit(s.concurrency)
	for _, name := range names {
		t, isNew := s.tenant(ctx, name)
		if !isNew && s.readBySoonPass(t) {
			continue
		}
		group.Go(func() error {
			schedule, err := s.load(ctx, name)
			switch {
			case err == nil:
				s.place(t, schedule)
			case isNew:
				// The pass at once finds the same, and has an outcome for it.
				s.place(t, policy.Schedule{Enabled: true, Interval: policy.DefaultInterval})
			default:
				s.log.Warn("The policy cannot be read; the tenant's schedule stays as it is",
					"namespace", name.Namespace, "tenant", name.Name, "error", printable(err.Error()))
			}
			return nil
		})
	}
	_ = group.Wait() // none returns an error
}

func (s *scheduler) known() map[types.NamespacedName]*scheduledTenant {
	s.mu.Lock()
	defer s.mu.Unlock()
	return maps.Clone(s.tenants)
}

// tenant returns the tenant of that name, made if it is new.
func (s *scheduler) tenant(ctx context.Context, name types.NamespacedName) (t *scheduledTenant, isNew bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	t, found := s.tenants[name]
	if !found {
		t = &scheduledTenant{name: name}
		t.job = guarded(s.log.With("namespace", name.Namespace, "tenant", name.Name), func() { s.turn(ctx, t) })
		s.tenants[name] = t
	}
	return t, !found
}

// readBySoonPass says that the tenant's passes read its policy as often as a refresh would.
func (s *scheduler) readBySoonPass(t *scheduledTenant) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return t.schedule.Enabled && t.schedule.Interval <= refreshInterval
}

// place puts the tenant where its schedule says: the first pass at once, further ones at the interval, counted from
// the start of the last.
func (s *scheduler) place(t *scheduledTenant, schedule policy.Schedule) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if t.schedule == schedule {
		return
	}
	s.log.Info("Tenant scheduled", "namespace", t.name.Namespace, "tenant", t.name.Name, "enabled", schedule.Enabled, "interval", schedule.Interval.String())
	t.schedule = schedule
	if t.entry != 0 {
		s.cron.Remove(t.entry)
		t.entry = 0
	}
	if schedule.Enabled {
		first := s.started
		if !t.lastStart.IsZero() {
			first = schedule.Next(t.lastStart)
		}
		t.entry = s.cron.Schedule(&due{first: first, every: schedule, fits: s.fits}, t.job)
	}
}

func (s *scheduler) fits(next time.Time) bool {
	return policy.Schedule{}.Fits(next, s.started, s.window)
}

// turn is a tenant's turn: one pass, once a slot is free.
func (s *scheduler) turn(ctx context.Context, t *scheduledTenant) {
	defer s.settle()
	select {
	case s.slots <- struct{}{}:
		defer func() { <-s.slots }()
	case <-ctx.Done():
		return
	}
	if !s.begin(t) {
		return
	}
	defer s.end(t)
	result := s.pass(ctx, t.name)
	for _, line := range errorLines(result.Err) {
		s.log.Error("Pass failed", "namespace", t.name.Namespace, "tenant", t.name.Name, "error", printable(line))
	}
	s.keep(t, result, context.Cause(ctx))
	if result.Schedule != nil {
		s.place(t, *result.Schedule)
	}
}

// begin says whether the turn is still due after the wait for a slot. The first one always is: where a window is too
// short for all tenants, each has its pass nevertheless.
func (s *scheduler) begin(t *scheduledTenant) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	now := time.Now()
	if !t.schedule.Enabled || !t.lastStart.IsZero() && !s.fits(now) {
		return false
	}
	t.lastStart, t.running = now, true
	return true
}

func (s *scheduler) end(t *scheduledTenant) {
	s.mu.Lock()
	defer s.mu.Unlock()
	t.running = false
}

// keep remembers the result if none of this tenant was worse; of equal ones, the newest.
func (s *scheduler) keep(t *scheduledTenant, result pass.Result, cause error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if t.worst == nil || outcomeCode(result.Outcome, cause) >= outcomeCode(t.worst.Outcome, cause) {
		result.Decisions = nil // counted and logged, and too large to be kept for ever
		t.worst = &result
	}
}

// settle draws the conclusions of what has just changed: whether every tenant has had its first pass, and whether a
// further one fits into the window.
func (s *scheduler) settle() {
	s.mu.Lock()
	defer s.mu.Unlock()
	waiting, more := false, false
	for _, t := range s.tenants {
		if t.entry == 0 {
			more = more || t.running
			continue
		}
		waiting = waiting || t.worst == nil
		more = more || t.running || !s.cron.Entry(t.entry).Next.IsZero()
	}
	s.ready = s.ready || !waiting
	if s.window > 0 && !more {
		s.over()
	}
}

// beat notes that the cron runs its jobs.
func (s *scheduler) beat() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.lastBeat = time.Now()
}

// alive says why the process should be started anew; nil if it should not.
func (s *scheduler) alive() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	now := time.Now()
	if silent := now.Sub(s.lastBeat); !s.lastBeat.IsZero() && silent > 3*refreshInterval {
		return fmt.Errorf("the cron has not run a job for %s", silent.Round(time.Second))
	}
	for _, name := range slices.SortedFunc(maps.Keys(s.tenants), compareNames) {
		t := s.tenants[name]
		if took := now.Sub(t.lastStart); t.running && s.hung > 0 && took > s.hung {
			return fmt.Errorf("the pass of %s has not ended for %s", name, took.Round(time.Second))
		}
	}
	return nil
}

// isReady says that every tenant there was at the start has had its first pass, or is paused.
func (s *scheduler) isReady() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.ready
}
