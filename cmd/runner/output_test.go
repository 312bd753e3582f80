package main

import (
	"bytes"
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/yaml"

	"github.com/syncpass/syncpass/pass"
	"github.com/syncpass/syncpass/record"
)

var update = flag.Bool("update", false, "write the golden files anew")

// golden compares got with a file in testdata, or writes that file.
func golden(t *testing.T, name, got string) {
	t.Helper()
	path := filepath.Join("testdata", name)
	if *update {
		require.NoError(t, os.WriteFile(path, []byte(got), 0o644))
	}
	want, err := os.ReadFile(path)
	require.NoError(t, err, "go test ./cmd/runner -update writes it")
	assert.Equal(t, string(want), got, "go test ./cmd/runner -update accepts a change")
}

// onePass is a pass with a decision of every action.
func onePass() pass.Result {
	start := time.Date(2026, 3, 1, 12, 0, 0, 5000, time.UTC)
	return pass.Result{
		ID: "20260301T120000Z-abcde", Tenant: "dev", Namespace: "team-dev", Outcome: record.CompletedWithErrors,
		StartTime: metav1.NewMicroTime(start), EndTime: metav1.NewMicroTime(start.Add(1500 * time.Millisecond)),
		Counts: record.Counts{Create: 1, Update: 1, Delete: 1, Skip: 3, Unchanged: 41, Error: 1, Requests: 12},
		Decisions: []record.Decision{
			{Action: record.Create, Side: record.Host, APIVersion: "v1", Kind: "ConfigMap", TenantNamespace: "default", TenantName: "app",
				HostNamespace: "team-dev", HostName: "app-x-default-x-dev", Reason: record.NoMirror, Message: "the tenant object has no mirror yet"},
			{Action: record.Skip, Side: record.Host, APIVersion: "v1", Kind: "ConfigMap", TenantNamespace: "default", TenantName: "settings",
				HostNamespace: "team-dev", HostName: "settings-x-default-x-dev", Reason: record.Conflict, Message: "both sides changed",
				Fields: []string{"data.a", "data.b"}},
			{Action: record.Skip, Side: record.Host, APIVersion: "v1", Kind: "Secret", TenantNamespace: "default", TenantName: "token",
				HostNamespace: "team-dev", HostName: "token-x-default-x-dev", Reason: record.Rejected, Message: "the host refused the write", Error: "exceeded quota <count/secrets>"},
			{Action: record.Update, Side: record.Tenant, APIVersion: "apps/v1", Kind: "Deployment", TenantNamespace: "web", TenantName: "front",
				HostNamespace: "team-dev", HostName: "front-x-web-x-dev", Reason: record.HostChanged, Fields: []string{"spec.replicas"}, Message: "the host's change is carried to the tenant"},
			{Action: record.Delete, Side: record.Host, APIVersion: "v1", Kind: "Service", TenantNamespace: "web", TenantName: "old",
				HostNamespace: "team-dev", HostName: "old-x-web-x-dev", Reason: record.TenantDeleted, Message: "the tenant object is gone"},
			{Action: record.Skip, Side: record.Host, APIVersion: "stable.example.com/v1", Kind: "CronTab", Reason: record.KindUnavailable, Message: "the host does not serve it"},
		},
	}
}

func TestOutput(t *testing.T) {
	quiet := pass.Result{ID: "20260301T120001Z-fghij", Tenant: "dev", Namespace: "team-b", Outcome: record.Guarded, PlanID: "1a2b3c",
		Message: "12 of 20 mirrors would be deleted", Counts: record.Counts{Unchanged: 8, Requests: 9}}
	hostile := pass.Result{Tenant: "dev", Namespace: "team-dev", Outcome: record.Completed, Message: "ends\nhere\x1b[2J", Decisions: []record.Decision{{
		Action: record.Skip, Side: record.Host, Kind: "Pod\tkind", TenantNamespace: "a", TenantName: "b\x1b[31m", Reason: record.Rejected,
		Message: "first line\r\nerror: forged\u202e\u200b\u009b31m " + strings.Repeat("long ", 100), Error: "\xff\xfe broken",
	}}}
	tests := []struct {
		file    string
		format  outputFormat
		dryRun  bool
		results []pass.Result
	}{
		{"table.txt", "table", false, []pass.Result{onePass()}},
		{"table-plan.txt", "table", true, []pass.Result{onePass()}},
		{"table-two-namespaces.txt", "table", false, []pass.Result{onePass(), quiet}},
		{"table-hostile.txt", "table", false, []pass.Result{hostile}},
		{"wide.txt", "wide", false, []pass.Result{onePass()}},
		{"wide-hostile.txt", "wide", false, []pass.Result{hostile}},
		{"name.txt", "name", false, []pass.Result{onePass()}},
		{"pass.json", "json", false, []pass.Result{onePass(), quiet}},
		{"plan.yaml", "yaml", true, []pass.Result{onePass()}},
		{"none.json", "json", false, nil},
	}
	for _, tt := range tests {
		t.Run(tt.file, func(t *testing.T) {
			var out bytes.Buffer
			require.NoError(t, printResults(&out, tt.format, tt.dryRun, tt.results))
			golden(t, tt.file, out.String())
		})
	}
}

func TestListsAreNeverNull(t *testing.T) {
	for _, format := range []outputFormat{"json", "yaml"} {
		for _, results := range [][]pass.Result{nil, {{}}, {{Decisions: []record.Decision{{}}}}} {
			var out bytes.Buffer
			require.NoError(t, printResults(&out, format, false, results))
			var got struct {
				Passes []struct {
					Decisions []struct{ Fields []string }
				}
			}
			require.NoError(t, yaml.Unmarshal(out.Bytes(), &got))
			require.NotNil(t, got.Passes)
			for _, p := range got.Passes {
				require.NotNil(t, p.Decisions)
				for _, d := range p.Decisions {
					assert.NotNil(t, d.Fields)
				}
			}
		}
	}
}

func TestAResultThatIsPrintedIsNotChanged(t *testing.T) {
	r := onePass()
	require.NoError(t, printResults(&bytes.Buffer{}, "json", false, []pass.Result{r}))
	assert.Equal(t, onePass(), r)
}

type brokenPipe struct{}

func (brokenPipe) Write([]byte) (int, error) { return 0, os.ErrClosed }

func TestOutputThatCannotBeWrittenIsAnError(t *testing.T) {
	for _, format := range outputFormats {
		assert.ErrorIs(t, printResults(brokenPipe{}, format, false, []pass.Result{onePass()}), os.ErrClosed, format)
	}
}

func TestHelp(t *testing.T) {
	var out bytes.Buffer
	a := app{stdout: &out, stderr: &out}
	assert.Equal(t, exitOK, a.execute(t.Context(), []string{"--help"}))
	golden(t, "help.txt", out.String())
}
