package main

import (
	"bytes"
	"context"
	"log/slog"
	"os"
	"path/filepath"
	"sync/atomic"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/syncpass/syncpass/pass"
	"github.com/syncpass/syncpass/policy"
	"github.com/syncpass/syncpass/record"
)

// sessionWith makes a session that needs no host, because its passes are run.
func sessionWith(c config, log *slog.Logger, run func(context.Context, pass.Options) pass.Result) *session {
	return &session{config: c, log: log, passFuncs: passFuncs{run: run}}
}

func TestPassesRunSideBySideAndAreReportedInOrder(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var running, most atomic.Int32
		s := sessionWith(config{TenantConcurrency: 2}, slog.New(slog.DiscardHandler), func(_ context.Context, o pass.Options) pass.Result {
			most.Store(max(most.Load(), running.Add(1)))
			defer running.Add(-1)
			took := map[string]time.Duration{"a": 3 * time.Second, "b": time.Second}[o.Tenant]
			time.Sleep(took + time.Millisecond)
			return pass.Result{ID: "of-" + o.Tenant, Outcome: record.Completed}
		})
		results := s.passes(t.Context(), tenantNames("n/a", "n/b", "n/c", "m/d"), false)
		var got []string
		for _, r := range results {
			got = append(got, r.Namespace+"/"+r.Tenant+" "+r.ID)
		}
		assert.Equal(t, []string{"n/a of-a", "n/b of-b", "n/c of-c", "m/d of-d"}, got)
		assert.EqualValues(t, 2, most.Load())
	})
}

func TestATenantThatPanicsDoesNotTakeTheOthersDown(t *testing.T) {
	var log bytes.Buffer
	s := sessionWith(config{TenantConcurrency: 1}, slog.New(slog.NewJSONHandler(&log, nil)), func(_ context.Context, o pass.Options) pass.Result {
		if o.Tenant == "b" {
			panic("index out of range")
		}
		return pass.Result{Outcome: record.Completed}
	})
	results := s.passes(t.Context(), tenantNames("n/a", "n/b", "n/c"), false)
	require.Len(t, results, 3)
	assert.Equal(t, record.Completed, results[0].Outcome)
	assert.Equal(t, record.Completed, results[2].Outcome)
	panicked := results[1]
	assert.Equal(t, outcomeFailed, panicked.Outcome)
	assert.Equal(t, "b", panicked.Tenant)
	assert.ErrorContains(t, panicked.Err, "the pass panicked: index out of range")
	assert.False(t, panicked.StartTime.IsZero())
	assert.Equal(t, exitUnexpected, exitCode(nil, nil, results, false))
	assert.Contains(t, log.String(), "passes_test.go", "the stack is in the log")
}

func TestAfterASignalNoFurtherPassStarts(t *testing.T) {
	ctx, cancel := context.WithCancelCause(t.Context())
	s := sessionWith(config{TenantConcurrency: 1}, slog.New(slog.DiscardHandler), func(ctx context.Context, o pass.Options) pass.Result {
		cancel(stopSignal{syscall.SIGTERM})
		return pass.Result{Outcome: record.Completed}
	})
	results := s.passes(ctx, tenantNames("n/a", "n/b"), false)
	assert.Equal(t, record.Completed, results[0].Outcome)
	assert.Equal(t, record.Stopped, results[1].Outcome)
	assert.Equal(t, "not started: stopped by a signal: terminated", results[1].Message)
	assert.Equal(t, 143, exitCode(nil, context.Cause(ctx), results, false))
}

func TestAPassIsGivenTheWholeConfiguration(t *testing.T) {
	file := filepath.Join(t.TempDir(), "policy.yaml")
	require.NoError(t, os.WriteFile(file, []byte("apiVersion: tenantplane.io/v1alpha1\nkind: SyncPolicy\nmetadata: {name: p}\nspec: {resources: [{apiVersion: v1, kind: ConfigMap, direction: toHost}]}\n"), 0o600))
	c := config{
		TenantKubeconfig: "/k", TenantKubeconfigSecret: "s", Policy: file, PassTimeout: 3, RequestTimeout: 1, LeaseDuration: 2,
		Concurrency: 5, TenantConcurrency: 1, MaxDeletePercent: 6, RetireKinds: true,
	}
	var got pass.Options
	s := sessionWith(c, slog.New(slog.DiscardHandler), func(_ context.Context, o pass.Options) pass.Result {
		got = o
		return pass.Result{}
	})
	s.identity, s.userAgent = "me", "syncpass/v1"
	s.passes(t.Context(), tenantNames("team-dev/dev"), true)

	require.NotNil(t, got.Policy)
	assert.Equal(t, "p", got.Policy.Name)
	require.NotNil(t, got.Log)
	got.Policy, got.Log = nil, nil
	require.NotNil(t, got.Begin)
	require.NotNil(t, got.Progress)
	got.Begin, got.Progress = nil, nil // functions cannot be compared
	assert.Equal(t, pass.Options{
		Namespace: "team-dev", Tenant: "dev", TenantKubeconfigFile: "/k", TenantKubeconfigSecret: "s", DryRun: true,
		PassTimeout: 3, RequestTimeout: 1, LeaseDuration: 2, Concurrency: 5, MaxDeletePercent: 6, RetireKinds: true,
		Identity: "me", UserAgent: "syncpass/v1",
	}, got)
}

func TestAPolicyFileThatIsBrokenLaterOnIsAnInvalidPass(t *testing.T) {
	s := sessionWith(config{TenantConcurrency: 1, Policy: filepath.Join(t.TempDir(), "gone.yaml")}, slog.New(slog.DiscardHandler), nil)
	results := s.passes(t.Context(), tenantNames("team-dev/dev"), false)
	assert.Equal(t, record.Invalid, results[0].Outcome)
	assert.ErrorContains(t, results[0].Err, "SYNCPASS_POLICY: open")

	_, err := s.schedule(t.Context(), tenantNames("team-dev/dev")[0])
	assert.ErrorContains(t, err, "SYNCPASS_POLICY: open")
}

func TestAPolicyThatPanicsIsAnErrorOfItsTenant(t *testing.T) {
	s := sessionWith(config{}, slog.New(slog.DiscardHandler), nil)
	s.loadSchedule = func(context.Context, pass.Options) (policy.Schedule, error) { panic("nil map") }
	_, err := s.schedule(t.Context(), tenantNames("team-dev/dev")[0])
	assert.ErrorContains(t, err, "reading the policy panicked: nil map")
}
