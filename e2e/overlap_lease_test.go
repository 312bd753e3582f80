package e2e

import (
	"context"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	coordinationv1 "k8s.io/api/coordination/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/wait"

	"github.com/syncpass/syncpass/e2e/proxy"
	"github.com/syncpass/syncpass/e2e/scenario"
	"github.com/syncpass/syncpass/record"
)

// leaseLost is a pass whose Lease another takes while its first write is under way.
var leaseLost = fault{
	name: "F28 a Lease is taken by another half-way", exit: 6, env: with(quick, oneByOne), says: []string{"the lease was lost", `was taken by "another"`},
	spoil: func(t *testing.T, p *duePlace) {
		p.hostProxy.SetHook(func(m proxy.Moment, r proxy.Request) http.Handler {
			if m != proxy.After || !createMade(p, r) {
				return nil
			}
			p.takeLease(t)
			return proxy.Hang // until the request timeout; a renewal is due before
		})
	},
	decisions: map[string]string{"made": "Skip Rejected", "pushed": "Skip NotAttempted", "pulled": "Skip NotAttempted", "gone": "Skip NotAttempted"},
	landed:    []string{"made"},
	check: func(t *testing.T, p *duePlace, _ spoiltPass) {
		require.Equal(t, "another", p.lease(t).Object["spec"].(object)["holderIdentity"], "it is not ours to give back")
	},
}

func (p *duePlace) lease(t *testing.T) *unstructured.Unstructured {
	found, err := p.objects(record.Host, leases).Get(p.s.ctx, "syncpass-"+p.name, metav1.GetOptions{})
	require.NoError(t, err)
	return found
}

// takeLease makes another the holder.
func (p *duePlace) takeLease(t *testing.T) {
	lease := p.lease(t)
	spec := lease.Object["spec"].(object)
	spec["holderIdentity"], spec["renewTime"] = "another", time.Now().UTC().Format(metav1.RFC3339Micro)
	spec["leaseTransitions"] = spec["leaseTransitions"].(int64) + 1
	_, err := p.objects(record.Host, leases).Update(p.s.ctx, lease, metav1.UpdateOptions{})
	assert.NoError(t, err)
}

var leases = coordinationv1.SchemeGroupVersion.WithResource("leases")

// stop makes a process stand still, and returns when all of it does: on a busy machine its other threads run on until the
// one that the kernel gave the signal to has been scheduled.
func stop(t *testing.T, p *duePlace, process *scenario.Process) {
	assert.NoError(t, process.Signal(syscall.SIGSTOP))
	err := wait.PollUntilContextTimeout(p.s.ctx, time.Millisecond, stuck, true, func(context.Context) (bool, error) {
		threads, err := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/stat", process.PID()))
		if err != nil || len(threads) == 0 {
			return false, fmt.Errorf("process %d has no threads: %w", process.PID(), err)
		}
		for _, thread := range threads {
			stat, err := os.ReadFile(thread)
			if err == nil && !strings.Contains(string(stat), ") T ") {
				return false, nil
			}
		}
		return true, nil
	})
	assert.NoError(t, err)
}

// standStill stops a pass at its k-th write until its Lease has run out and another pass has done the work, and then
// lets it go on. The write in flight lands before that other pass, or after it.
func standStill(t *testing.T, s *surroundings, name string, k int, late bool) {
	t.Parallel()
	p := newDuePlace(t, s, name)
	paused := p.runner(t)
	processes := make(chan *scenario.Process, 1)
	stopped, land, landed := newGate(), newGate(), newGate()
	var writes atomic.Int64
	paused.setHook(func(m proxy.Moment, r proxy.Request) http.Handler {
		if m == proxy.Before && objectWrite(p, r) && writes.Add(1) == int64(k) {
			stop(t, p, <-processes)
			stopped.Open()
			if late {
				land.wait()
			}
		}
		if m == proxy.After && objectWrite(p, r) && writes.Load() == int64(k) {
			landed.Open() // or was refused
		}
		return nil
	})
	env := with(quick, oneByOne)
	process, err := paused.binary.Start(p.s.context(t), env, "pass", "-o", "json")
	require.NoError(t, err)
	t.Cleanup(func() { _ = process.Kill() }) // one that stands still would outlive a failed test
	processes <- process
	stopped.wait()

	var other *scenario.Result
	for deadline := time.Now().Add(stuck); ; {
		other = p.run(t, env, "pass", "-o", "json")
		if other.Exit != 6 || time.Now().After(deadline) {
			break
		}
	}
	require.Zero(t, other.Exit, "stdout:\n%s\nstderr:\n%s", other.Stdout, other.Stderr)
	p.requireDone(t, "made", "pushed", "pulled", "gone")
	p.set(t, record.Tenant, "made", "5")
	p.set(t, record.Host, "pulled", "6")
	p.set(t, record.Tenant, "pushed", "7")

	land.Open()
	landed.wait()
	mark := paused.requests.Mark()
	require.NoError(t, process.Signal(syscall.SIGCONT))
	result := ended(t, process)
	require.Equal(t, 6, result.Exit, "stdout:\n%s\nstderr:\n%s", result.Stdout, result.Stderr)
	for _, r := range paused.requests.Since(mark) {
		require.False(t, objectWrite(p, r), "it wrote after it woke up: %s", r)
		require.False(t, storing(p, r) && r.Status < 300, "it recorded what it knew from before: %s", r)
	}
	p.recover(t, nil)
	p.requireBoth(t, "made", "5", "5")
	p.requireBoth(t, "pulled", "6", "6")
	p.requireBoth(t, "pushed", "7", "7")
	p.requireBoth(t, "gone", "", "")
	p.requireBoth(t, "kept", "1", "1")
}
