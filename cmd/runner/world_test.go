package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/syncpass/syncpass/pass"
	"github.com/syncpass/syncpass/policy"
	"github.com/syncpass/syncpass/record"
)

// world is what a scheduler sees: tenants with policies, and passes that take their time.
type world struct {
	mu sync.Mutex
	// policies of the tenants there are, by namespace/name.
	policies map[string]policy.Schedule
	unread   map[string]bool // policies that cannot be read
	unlisted bool
	took     time.Duration
	// pass, if set, is called in a pass with its number, from 1; nil is a pass that completes.
	pass func(ctx context.Context, tenant string, number int) record.Outcome

	begun  time.Time
	starts []string // "<tenant> <time since the beginning>"
	passes map[string]int
	most   int // passes at a time
	now    int
}

func every(interval time.Duration) policy.Schedule {
	return policy.Schedule{Enabled: true, Interval: interval}
}

func (w *world) set(tenant string, s policy.Schedule) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.policies[tenant] = s
}

func (w *world) list(context.Context) ([]types.NamespacedName, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.unlisted {
		return nil, errors.New("no answer")
	}
	var names []types.NamespacedName
	for name := range w.policies {
		names = append(names, tenantNames(name)...)
	}
	return names, nil
}

func (w *world) load(_ context.Context, t types.NamespacedName) (policy.Schedule, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.unread[t.String()] {
		return policy.Schedule{}, errors.New("no policy")
	}
	return w.policies[t.String()], nil
}

func (w *world) run(ctx context.Context, o pass.Options) pass.Result {
	w.mu.Lock()
	name := o.Namespace + "/" + o.Tenant
	w.starts = append(w.starts, fmt.Sprint(name, " ", time.Since(w.begun)))
	w.passes[name]++
	number := w.passes[name]
	w.now++
	w.most = max(w.most, w.now)
	w.mu.Unlock()
	defer func() {
		w.mu.Lock()
		defer w.mu.Unlock()
		w.now--
	}()

	time.Sleep(w.took)
	outcome := record.Completed
	if w.pass != nil {
		outcome = w.pass(ctx, name, number)
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	result := pass.Result{ID: fmt.Sprint(number), Outcome: outcome, Decisions: []record.Decision{{}}}
	if s, found := w.policies[name]; found && !w.unread[name] {
		result.Schedule = &s
	}
	return result
}

// scheduler makes one over the world. Its passes go through a session, as those of the verb do.
func (w *world) scheduler() *scheduler {
	w.passes = map[string]int{}
	w.begun = time.Now()
	s := newScheduler(slog.New(slog.DiscardHandler))
	session := sessionWith(config{}, s.log, w.run)
	s.list, s.load = w.list, w.load
	s.pass = func(ctx context.Context, t types.NamespacedName) pass.Result { return session.pass(ctx, t, false) }
	s.concurrency = 4
	return s
}
