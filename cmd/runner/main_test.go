package main

import (
	"bufio"
	"bytes"
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/syncpass/syncpass/pass"
	"github.com/syncpass/syncpass/policy"
	"github.com/syncpass/syncpass/record"
)

// asRunner makes the test binary behave as the runner, with passes that end as the tenant's name says.
const asRunner = "RUNNER_TEST_AS_RUNNER"

func TestMain(m *testing.M) {
	if os.Getenv(asRunner) != "" {
		os.Exit(run(passFuncs{run: passByName, loadSchedule: func(_ context.Context, o pass.Options) (policy.Schedule, error) {
			return policy.Schedule{Enabled: o.Tenant != "paused", Interval: time.Hour}, nil
		}}))
	}
	os.Exit(m.Run())
}

func passByName(ctx context.Context, o pass.Options) pass.Result {
	r := onePass()
	r.Outcome = record.Completed
	switch o.Tenant {
	case "errors":
		r.Outcome = record.CompletedWithErrors
	case "guarded":
		r.Outcome = record.Guarded
	case "locked":
		r.Outcome = record.Locked
	case "traced":
		traced(ctx, o)
	case "panics":
		panic("index out of range")
	case "waits":
		o.Log.Info("Waiting for a signal")
		<-ctx.Done()
		r.Outcome, r.Err = record.Stopped, context.Cause(ctx)
	case "hangs":
		o.Log.Info("Waiting for a signal")
		<-ctx.Done()
		o.Log.Info("Waiting for another")
		<-time.After(time.Minute) // a second signal is to end the wait
	}
	return r
}

// runner is the binary as a process of its own. Its environment is empty but for the variables given.
func runner(t *testing.T, variables []string, args ...string) *exec.Cmd {
	self, err := os.Executable()
	require.NoError(t, err)
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	t.Cleanup(cancel)
	cmd := exec.CommandContext(ctx, self, args...)
	cmd.Env = append([]string{asRunner + "=1", "HOME=" + t.TempDir()}, variables...)
	if dir := os.Getenv("GOCOVERDIR"); dir != "" {
		cmd.Env = append(cmd.Env, "GOCOVERDIR="+dir)
	}
	return cmd
}

// exited runs cmd and returns its exit code and what it printed.
func exited(t *testing.T, cmd *exec.Cmd) (code int, stdout, stderr string) {
	var out, errs bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &errs
	if err := cmd.Run(); err != nil {
		var exit *exec.ExitError
		require.ErrorAs(t, err, &exit)
	}
	return cmd.ProcessState.ExitCode(), out.String(), errs.String()
}

func TestProcess(t *testing.T) {
	host := "SYNCPASS_HOST_KUBECONFIG=" + (&fakeHost{tenants: tenantNames("team-dev/dev", "team-b/errors", "team-b/guarded")}).serve(t)
	down := "SYNCPASS_HOST_KUBECONFIG=" + writeKubeconfig(t, "http://127.0.0.1:1")
	badPolicy := filepath.Join(t.TempDir(), "policy.yaml")
	require.NoError(t, os.WriteFile(badPolicy, []byte(`
apiVersion: tenantplane.io/v1alpha1
kind: SyncPolicy
metadata: {name: default}
spec:
  conflictPolicy: newest
  driftDetection: {interval: 30}
  resorces: []
  resources: [{apiVersion: v1, kind: Secret, direction: sideways}]
`), 0o600))

	tests := []struct {
		name           string
		variables      []string
		args           []string
		code           int
		stdout, stderr []string
		silent         bool // nothing on stdout
	}{
		{name: "version", args: []string{"version"}, stdout: []string{"runner ", "(commit "}},
		{name: "version, as a flag", args: []string{"--version"}, stdout: []string{"runner ", "(commit "}},
		{name: "help on a verb", args: []string{"help", "resolve"}, stdout: []string{"Settles a conflict"}},
		{name: "help on no verb", args: []string{"help", "resolv"}, code: exitInvalid, stderr: []string{`unknown verb "resolv", did you mean resolve? (see 'runner --help')`}, silent: true},
		{name: "help", args: []string{"pass", "--help"}, stdout: []string{"runner pass [flags]", "table, wide, json, yaml, name"}},
		{name: "the default verb is pass", variables: []string{host}, stdout: []string{"dev: 1 create, 1 update", "(Completed)"}},
		{name: "pass", args: []string{"pass"}, variables: []string{host}, stdout: []string{"dev: 1 create, 1 update", "(Completed)"}},
		{name: "plan", args: []string{"plan", "-o", "json"}, variables: []string{host}, stdout: []string{`"dryRun": true`}},
		{name: "plan with differences", args: []string{"plan", "--exit-code"}, variables: []string{host}, code: 10, stdout: []string{"create (dry run)"}},
		{name: "the worst of several tenants", variables: []string{host, "SYNCPASS_NAMESPACE=team-b"}, code: 4,
			stdout: []string{"errors: 1 create", "(CompletedWithErrors)", "guarded: 1 create", "(Guarded)"}},
		{name: "all namespaces", variables: []string{host, "SYNCPASS_ALL_NAMESPACES=true"}, code: 4,
			stdout: []string{"team-b/errors: ", "team-b/guarded: ", "team-dev/dev: "}},
		{name: "a lease that another holds", variables: []string{host, "SYNCPASS_TENANT=locked"}, code: 6, stdout: []string{"locked: ", "(Locked)"}},
		{name: "a panic", variables: []string{host, "SYNCPASS_TENANT=panics"}, code: 1, stdout: []string{"panics: ", "(Failed)"}, stderr: []string{"index out of range", "goroutine"}},
		{name: "an unknown flag", args: []string{"plan", "--dry-run"}, code: 5, silent: true, stderr: []string{"error: unknown flag: --dry-run (see 'runner plan --help')"}},
		{name: "an unknown format", args: []string{"-o", "xml"}, code: 5, silent: true, stderr: []string{"accepted are table, wide, json, yaml, name"}},
		{name: "an unknown verb", args: []string{"plam"}, code: 5, silent: true, stderr: []string{`error: unknown verb "plam", did you mean plan?`}},
		{name: "arguments nobody takes", args: []string{"pass", "dev"}, code: 5, silent: true, stderr: []string{`runner pass takes no arguments, and got ["dev"]`}},
		{name: "every fault of configuration and policy together", code: 5, silent: true,
			variables: []string{host, "SYNCPASS_LOG_FORMAT=text", "SYNCPASS_CONCURRENCY=0", "SYNCPASS_SHARDS=x", "SYNCPASS_POLICY=" + badPolicy, "SYNCPASS_TENANTS=dev"},
			stderr: []string{"\nerror: SYNCPASS_CONCURRENCY=\"0\": is below 1", "error: SYNCPASS_SHARDS=\"x\": cannot be read", ": spec.conflictPolicy: ",
				": spec.driftDetection.interval: ", ": spec.resorces: ", ": spec.resources[0].direction: ", "nearest=SYNCPASS_TENANT"}},
		{name: "faults in a log for machines", code: 5, silent: true, variables: []string{"SYNCPASS_CONCURRENCY=0"},
			stderr: []string{`"level":"ERROR","msg":"Failed","error":"SYNCPASS_CONCURRENCY=\"0\": is below 1`}},
		{name: "no host", code: 5, silent: true, stderr: []string{"set SYNCPASS_HOST_KUBECONFIG"}},
		{name: "a host that is down", variables: []string{down}, code: 7, silent: true, stderr: []string{"connection refused"}},
		{name: "a schedule on a host that is down", args: []string{"schedule"}, variables: []string{down}, code: 7, silent: true, stderr: []string{"connection refused"}},
		{name: "a namespace without tenants", variables: []string{host, "SYNCPASS_NAMESPACE=empty"}, code: 5, silent: true,
			stderr: []string{`there is no TenantCluster in namespace \"empty\" (from -n or SYNCPASS_NAMESPACE)`}},
		{name: "a part of a Job without tenants", variables: []string{host, "SYNCPASS_SHARDS=1000", "JOB_COMPLETION_INDEX=1"}, stderr: []string{"No TenantCluster to look after"}, silent: true},
		{name: "a window that closes", args: []string{"schedule"}, variables: []string{host, "SYNCPASS_WINDOW=5s", "SYNCPASS_NAMESPACE=team-b", "SYNCPASS_METRICS_ADDR=127.0.0.1:0"},
			code: 4, silent: true, stderr: []string{`"msg":"Tenant scheduled","namespace":"team-b","tenant":"errors"`}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			code, stdout, stderr := exited(t, runner(t, tt.variables, tt.args...))
			assert.Equal(t, tt.code, code, "stderr: %s", stderr)
			for _, want := range tt.stdout {
				assert.Contains(t, stdout, want)
			}
			for _, want := range tt.stderr {
				assert.Contains(t, stderr, want)
			}
			if tt.silent {
				assert.Empty(t, stdout)
			}
		})
	}
}

func TestProcessIsStoppedBySignals(t *testing.T) {
	host := "SYNCPASS_HOST_KUBECONFIG=" + (&fakeHost{}).serve(t)
	tests := []struct {
		name, tenant string
		args         []string
		// signals are sent one by one, each once the process says that it waits.
		signals []os.Signal
		code    int
		stdout  string
	}{
		{"a pass", "waits", []string{"pass"}, []os.Signal{syscall.SIGTERM}, 143, "(Stopped)"},
		{"a pass by the keyboard", "waits", []string{"pass"}, []os.Signal{os.Interrupt}, 130, "(Stopped)"},
		{"a schedule", "waits", []string{"schedule"}, []os.Signal{syscall.SIGTERM}, 143, ""},
		{"a pass that does not end", "hangs", []string{"pass"}, []os.Signal{syscall.SIGTERM, os.Interrupt}, 130, ""},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			cmd := runner(t, []string{host, "SYNCPASS_TENANT=" + tt.tenant, "SYNCPASS_METRICS_ADDR=127.0.0.1:0"}, tt.args...)
			var stdout bytes.Buffer
			cmd.Stdout = &stdout
			stderr, err := cmd.StderrPipe()
			require.NoError(t, err)
			require.NoError(t, cmd.Start())
			left := tt.signals
			for lines := bufio.NewScanner(stderr); lines.Scan(); {
				if strings.Contains(lines.Text(), "Waiting for") && len(left) > 0 {
					require.NoError(t, cmd.Process.Signal(left[0]))
					left = left[1:]
				}
			}
			_ = cmd.Wait() // the exit code says it all
			assert.Empty(t, left)
			assert.Equal(t, tt.code, cmd.ProcessState.ExitCode())
			assert.Contains(t, stdout.String(), tt.stdout)
		})
	}
}

func TestLastWordsAreLeftWhereTheKubeletLooks(t *testing.T) {
	file := filepath.Join(t.TempDir(), "termination-log")
	require.NoError(t, os.WriteFile(file, nil, 0o600))
	kubeconfig := (&fakeHost{}).serve(t)
	for _, tt := range []struct {
		variables map[string]string
		args      []string
		want      string
	}{
		{map[string]string{"SYNCPASS_TENANT": "guarded"}, []string{"plan"}, `{"exitCode":4,"passes":[{"id":"20260301T120000Z-abcde","tenant":"guarded","namespace":"team-dev","outcome":"Guarded"`},
		{map[string]string{"SYNCPASS_SHARDS": "0"}, []string{"schedule"}, `{"exitCode":5,"errors":["SYNCPASS_SHARDS=\"0\": is below 1; accepted: a whole number from 1 on"],"passes":[]}`},
		{nil, []string{"version"}, ""},
	} {
		require.NoError(t, os.Truncate(file, 0))
		a := app{stdout: &bytes.Buffer{}, stderr: &bytes.Buffer{}, terminationFile: file, passFuncs: passFuncs{run: passByName}}
		a.env = func(name string) (string, bool) {
			if name == "SYNCPASS_HOST_KUBECONFIG" {
				return kubeconfig, true
			}
			value, set := tt.variables[name]
			return value, set
		}
		a.execute(t.Context(), tt.args)
		got, err := os.ReadFile(file)
		require.NoError(t, err)
		if tt.want == "" {
			assert.Empty(t, string(got))
		}
		assert.True(t, strings.HasPrefix(string(got), tt.want), "%s", got)
	}
}
