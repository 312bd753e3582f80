package main

import (
	"bytes"
	"context"
	"io"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/syncpass/syncpass/pass"
	"github.com/syncpass/syncpass/record"
)

// oneConflict is a ConfigMap that both sides changed.
func oneConflict() pass.Conflict {
	since := metav1.NewTime(time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC))
	return pass.Conflict{
		Reason: record.Conflict, Message: "both sides changed since they last agreed", Since: &since, Seen: "0123456789ab",
		Kind: "ConfigMap", TenantNamespace: "default", TenantName: "app", HostName: "app-x-default-x-dev",
		TenantState: "Changed", HostState: "Changed",
		Differences: []pass.Difference{
			{Field: "data.a", Tenant: "tenant", Host: "host\x1b[31m"},
			{Field: "data.log", Tenant: strings.Repeat("the same text ", 10) + "and then a tenant's end", Host: strings.Repeat("the same text ", 10) + "and then another"},
			{Field: "immutable", Tenant: true},
		},
	}
}

func deletedSecret() pass.Conflict {
	return pass.Conflict{
		Reason: record.Conflict, Seen: "ba9876543210", Kind: "Secret", TenantNamespace: "default", TenantName: "db", HostName: "db-x-default-x-dev",
		TenantState: "Deleted", HostState: "Changed", Differences: []pass.Difference{{Field: "data.password", Host: pass.Masked}},
	}
}

// desk is the verb with what is open, and what it does about that.
type desk struct {
	conflicts []pass.Conflict
	findErr   error
	result    pass.Result
	asks      bool
	answer    string
	// interrupted has SIGINT come before anybody types.
	interrupted bool

	asked    []string
	verdicts []pass.Verdict
}

func (d *desk) run(t *testing.T, args ...string) (code int, stdout, stderr string) {
	t.Helper()
	kubeconfig := writeKubeconfig(t, "http://127.0.0.1:1")
	var out, errs bytes.Buffer
	ctx, stop := context.WithCancelCause(t.Context())
	defer stop(nil)
	var stdin io.Reader = strings.NewReader(d.answer)
	if d.interrupted {
		keyboard, typed := io.Pipe()
		defer typed.Close()
		stdin = keyboard
	}
	a := &app{
		stdin: stdin, stdout: &out, stderr: &errs, asks: d.asks, tty: d.asks,
		env: func(name string) (string, bool) {
			value, set := map[string]string{"SYNCPASS_HOST_KUBECONFIG": kubeconfig, "SYNCPASS_TENANT": "dev", "SYNCPASS_LOG_FORMAT": "text"}[name]
			return value, set
		},
		passFuncs: passFuncs{
			findConflicts: func(_ context.Context, _ pass.Options, kind string, object types.NamespacedName) ([]pass.Conflict, error) {
				d.asked = append(d.asked, kind+" "+object.String())
				if d.interrupted {
					stop(stopSignal{syscall.SIGINT})
				}
				return d.conflicts, d.findErr
			},
			resolve: func(_ context.Context, _ pass.Options, v pass.Verdict) pass.Result {
				d.verdicts = append(d.verdicts, v)
				return d.result
			},
		},
	}
	code = a.execute(ctx, append([]string{"resolve"}, args...))
	return code, out.String(), errs.String()
}

// settled is a result in which so many conflicts are settled.
func settled(decisions ...record.Decision) pass.Result {
	r := pass.Result{Tenant: "dev", Namespace: "team-dev", Outcome: record.Completed, Decisions: decisions}
	for _, d := range decisions {
		if d.Action == record.Update {
			r.Counts.Update++
		} else {
			r.Counts.Skip++
		}
	}
	return r
}

var (
	done = record.Decision{Action: record.Update, Side: record.Host, Kind: "ConfigMap", TenantNamespace: "default", TenantName: "app",
		Reason: record.Resolved, Message: "the tenant's content is kept, as alice@laptop says"}
	stale = record.Decision{Action: record.Skip, Side: record.Host, Kind: "ConfigMap", TenantNamespace: "default", TenantName: "app",
		Reason: record.Conflict, Message: "both sides changed; somebody changed it since it was shown, so nothing was written: look again"}
)

func TestResolveShowsAsksAndSettles(t *testing.T) {
	d := &desk{conflicts: []pass.Conflict{oneConflict()}, result: settled(done), asks: true, answer: "y\n"}
	code, stdout, stderr := d.run(t, "configmap", "default/app", "--keep", "tenant", "--message", "OPS-12")
	require.Equal(t, exitOK, code, stderr)
	golden(t, "resolve.txt", stdout)
	require.Contains(t, stderr, "Keep the tenant's content and settle this conflict? [y/N] ")
	require.Equal(t, []string{"configmap default/app"}, d.asked)
	require.Len(t, d.verdicts, 1)
	require.Equal(t, record.Tenant, d.verdicts[0].Keep)
	require.Equal(t, d.conflicts, d.verdicts[0].Conflicts)
	require.Equal(t, "OPS-12", d.verdicts[0].Why)
	require.Regexp(t, `^.+@.+$`, d.verdicts[0].By)
}

func TestResolveAllShowsThemAll(t *testing.T) {
	d := &desk{conflicts: []pass.Conflict{oneConflict(), deletedSecret()}, result: settled(done, stale), asks: true, answer: "Yes\n"}
	code, stdout, stderr := d.run(t, "--all", "--keep", "host")
	require.Equal(t, exitErrors, code)
	golden(t, "resolve-all.txt", stdout)
	require.Contains(t, stderr, "settle these 2 conflicts? [y/N] ")
	require.Contains(t, stderr, "error: 1 of 2 conflicts were not settled")
}

func TestResolveWritesNothingUnlessSomebodySaysYes(t *testing.T) {
	for name, test := range map[string]struct {
		asks     bool
		answer   string
		args     []string
		code     int
		verdicts int
		stderr   string
	}{
		"no":                       {true, "n\n", nil, exitInvalid, 0, "the answer was not yes"},
		"nothing":                  {true, "", nil, exitInvalid, 0, "the answer was not yes"},
		"something else":           {true, "maybe\n", nil, exitInvalid, 0, "the answer was not yes"},
		"no terminal":              {false, "y\n", nil, exitInvalid, 0, "run it again with --yes"},
		"no terminal, and --yes":   {false, "", []string{"--yes"}, exitOK, 1, ""},
		"what explain showed":      {false, "", []string{"--yes", "--seen", "0123456789ab"}, exitOK, 1, ""},
		"not what explain showed":  {false, "", []string{"--yes", "--seen", "ffffffffffff"}, exitErrors, 0, "it was changed since explain showed it"},
		"an answer without an end": {true, "y", nil, exitOK, 1, ""},
	} {
		t.Run(name, func(t *testing.T) {
			d := &desk{conflicts: []pass.Conflict{oneConflict()}, result: settled(done), asks: test.asks, answer: test.answer}
			code, stdout, stderr := d.run(t, append([]string{"configmap", "default/app", "--keep", "tenant"}, test.args...)...)
			require.Equal(t, test.code, code, stderr)
			require.Len(t, d.verdicts, test.verdicts)
			require.Contains(t, stderr, test.stderr)
			require.Contains(t, stdout, "ConfigMap default/app and its mirror team-dev/app-x-default-x-dev", "it is shown in any case")
		})
	}
}

func TestASignalEndsTheQuestion(t *testing.T) {
	d := &desk{conflicts: []pass.Conflict{oneConflict()}, result: settled(done), asks: true, interrupted: true}
	code, _, stderr := d.run(t, "configmap", "default/app", "--keep", "tenant")
	require.Equal(t, 130, code)
	require.Empty(t, d.verdicts)
	require.Contains(t, stderr, "nothing was written: stopped by a signal: interrupt")
}

func TestResolveTakesANameAsPlanPrintsIt(t *testing.T) {
	d := &desk{conflicts: []pass.Conflict{oneConflict()}, result: settled(done)}
	code, _, stderr := d.run(t, "configmap/default/app", "--keep", "tenant", "--yes")
	require.Equal(t, exitOK, code, stderr)
	require.Equal(t, []string{"configmap default/app"}, d.asked)
}

func TestHowResolveEnds(t *testing.T) {
	guarded := settled(record.Decision{Action: record.Skip, Reason: record.GuardEmptyTenant, Kind: "ConfigMap", TenantName: "app", Message: "withheld"})
	guarded.Outcome, guarded.Message, guarded.PlanID = record.Guarded, "1 changes withheld", "1a2b"
	locked := pass.Result{Tenant: "dev", Outcome: record.Locked, Err: &pass.InvalidError{Err: context.Canceled}}
	for name, test := range map[string]struct {
		desk desk
		args []string
		code int
		says string
	}{
		"somebody changed it meanwhile":  {desk{conflicts: []pass.Conflict{oneConflict()}, result: settled(stale)}, nil, exitErrors, "1 of 1 conflicts were not settled"},
		"it is in agreement by now":      {desk{conflicts: []pass.Conflict{oneConflict()}, result: settled()}, nil, exitErrors, "in agreement by now"},
		"a guard withholds it":           {desk{conflicts: []pass.Conflict{oneConflict()}, result: guarded}, nil, exitGuarded, "1 of 1"},
		"another pass is on its way":     {desk{conflicts: []pass.Conflict{oneConflict()}, result: locked}, nil, exitLocked, "error: "},
		"there is no such conflict":      {desk{findErr: &pass.InvalidError{Err: context.Canceled}}, nil, exitInvalid, "error: "},
		"an API server does not answer":  {desk{findErr: context.DeadlineExceeded}, nil, exitUnreachable, "error: "},
		"--all, and no conflict is open": {desk{}, []string{"--all"}, exitOK, ""},
	} {
		t.Run(name, func(t *testing.T) {
			args := test.args
			if args == nil {
				args = []string{"configmap", "default/app"}
			}
			code, stdout, stderr := test.desk.run(t, append(args, "--keep", "tenant", "--yes")...)
			require.Equal(t, test.code, code, stderr)
			require.Contains(t, stderr, test.says)
			if test.args != nil {
				require.Equal(t, "dev: no conflict is open, so there is nothing to resolve\n", stdout)
			}
		})
	}
}

func TestResolveTakesAnObjectAndASide(t *testing.T) {
	for name, args := range map[string][]string{
		"nothing":                 {},
		"no side":                 {"configmap", "default/app"},
		"a side that is none":     {"configmap", "default/app", "--keep", "both"},
		"no object":               {"configmap", "--keep", "host"},
		"a name by itself":        {"configmap", "app", "--keep", "host"},
		"--all and an object":     {"configmap", "default/app", "--all", "--keep", "host"},
		"--all and one seen":      {"--all", "--keep", "host", "--seen", "0123456789ab"},
		"a reason without an end": {"configmap", "default/app", "--keep", "host", "--message", strings.Repeat("x", longestWhy+1)},
	} {
		t.Run(name, func(t *testing.T) {
			d := &desk{conflicts: []pass.Conflict{oneConflict()}}
			code, stdout, stderr := d.run(t, args...)
			require.Equal(t, exitInvalid, code)
			require.Empty(t, stdout)
			require.Contains(t, stderr, "resolve")
			require.Empty(t, d.asked)
		})
	}
}
