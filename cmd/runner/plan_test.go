package main

import (
	"encoding/base64"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// planFolders are the files of an offline plan, in folders tenant and host and the file policy.yaml.
func planFolders(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	secret := func(namespace, name, value string) string {
		return "{apiVersion: v1, kind: Secret, metadata: {namespace: " + namespace + ", name: " + name + ", uid: u, resourceVersion: \"1\", annotations: {kubectl.kubernetes.io/last-applied-configuration: '{\"stringData\":{\"password\":\"" + value + "\"}}'}}, data: {password: " +
			base64.StdEncoding.EncodeToString([]byte(value)) + "}}\n"
	}
	mirror := strings.Replace(secret("team-dev", "login-x-default-x-dev", "hunter2-on-the-host"), "annotations: {", `labels: {app.kubernetes.io/managed-by: tenantplane, tenantplane.io/tenant: dev, tenantplane.io/virtual-namespace: default, tenantplane.io/kind: secret},
  ownerReferences: [{apiVersion: tenantplane.io/v1alpha1, kind: TenantCluster, name: dev, uid: owner, controller: true, blockOwnerDeletion: false}],
  annotations: {tenantplane.io/virtual-namespace: default, tenantplane.io/virtual-name: login, tenantplane.io/virtual-uid: u, `, 1)
	for name, text := range map[string]string{
		"tenant/app.yaml":           "{apiVersion: v1, kind: ConfigMap, metadata: {name: app, namespace: default}, data: {mode: fast}}\n",
		"tenant/secrets/login.yaml": secret("default", "login", "hunter2-in-the-tenant"),
		"tenant/secrets/new.yaml":   "{apiVersion: v1, kind: Secret, metadata: {name: new, namespace: default}, stringData: {token: hunter2-as-text}}\n",
		"host/dev.yaml":             "{apiVersion: tenantplane.io/v1alpha1, kind: TenantCluster, metadata: {namespace: team-dev, name: dev, uid: owner}}\n---\n" + mirror,
		"host/list.json":            `{"apiVersion":"v1","kind":"List","items":[]}`,
		"policy.yaml": "apiVersion: tenantplane.io/v1alpha1\nkind: SyncPolicy\nmetadata: {name: default}\nspec:\n  resources:\n" +
			"  - {apiVersion: v1, kind: ConfigMap, direction: bidirectional}\n  - {apiVersion: v1, kind: Secret, direction: toHost}\n",
	} {
		path := filepath.Join(dir, filepath.FromSlash(name))
		require.NoError(t, os.MkdirAll(filepath.Dir(path), 0o755))
		require.NoError(t, os.WriteFile(path, []byte(text), 0o600))
	}
	return dir
}

// offlineArgs are the arguments of an offline plan.
func offlineArgs(dir string, more ...string) []string {
	return append([]string{"plan", "--tenant-dir", filepath.Join(dir, "tenant"), "--host-dir", filepath.Join(dir, "host"), "--policy", filepath.Join(dir, "policy.yaml")}, more...)
}

func TestAPlanFromFilesTakesNoClusterAndNoEnvironment(t *testing.T) {
	dir := planFolders(t)
	for _, test := range []struct {
		file string
		args []string
		code int
	}{
		{"offline-table.txt", nil, 0},
		{"offline-wide.txt", []string{"-o", "wide", "--exit-code"}, 10},
		{"offline-diff.txt", []string{"--diff"}, 0},
		{"offline-diff-colour.txt", []string{"--diff", "--color=always"}, 0},
		{"offline-name.txt", []string{"-o", "name"}, 0},
	} {
		t.Run(test.file, func(t *testing.T) {
			code, stdout, stderr := exited(t, runner(t, nil, offlineArgs(dir, test.args...)...))
			assert.Equal(t, test.code, code, "stderr: %s", stderr)
			assert.Contains(t, stderr, "there is no SyncDecision")
			golden(t, test.file, stdout)
		})
	}
}

func TestAPlanFromFilesWithoutDifferences(t *testing.T) {
	dir := planFolders(t)
	require.NoError(t, os.RemoveAll(filepath.Join(dir, "tenant", "secrets")))
	require.NoError(t, os.Remove(filepath.Join(dir, "tenant", "app.yaml")))
	require.NoError(t, os.WriteFile(filepath.Join(dir, "tenant", "none.yaml"), []byte("# nothing\n"), 0o600))
	require.NoError(t, os.WriteFile(filepath.Join(dir, "host", "dev.yaml"), []byte("{apiVersion: tenantplane.io/v1alpha1, kind: TenantCluster, metadata: {namespace: team-dev, name: dev}}"), 0o600))
	code, stdout, stderr := exited(t, runner(t, nil, offlineArgs(dir, "--exit-code")...))
	require.Zero(t, code, "%s", stderr)
	require.Equal(t, "dev: 0 create, 0 update, 0 delete, 0 skip, 0 unchanged, 0 errors (Completed) (dry run)\n", stdout)
}

// No form of output, and no log at whatever level, has a value of a Secret in it.
func TestAPlanPrintsNoValueOfASecret(t *testing.T) {
	dir := planFolders(t)
	for _, format := range outputFormats {
		args := []string{"-o", string(format)}
		if format != "name" {
			args = append(args, "--diff")
		}
		code, stdout, stderr := exited(t, runner(t, []string{"SYNCPASS_LOG_LEVEL=debug"}, offlineArgs(dir, args...)...))
		require.Zero(t, code, "%s", stderr)
		for _, value := range []string{"hunter2-on-the-host", "hunter2-in-the-tenant", "hunter2-as-text"} {
			for _, form := range []string{value, base64.StdEncoding.EncodeToString([]byte(value))} {
				assert.NotContains(t, stdout+stderr, form, format)
			}
		}
		if format != "name" {
			assert.Contains(t, stdout, "*** (before)", format)
			assert.Contains(t, stdout, "*** (after)", format)
		}
	}
}

func TestADiffIsAFieldOfTheDocument(t *testing.T) {
	_, stdout, stderr := exited(t, runner(t, nil, offlineArgs(planFolders(t), "-o", "json", "--diff")...))
	var got struct {
		FormatVersion string
		DryRun        bool
		Passes        []struct {
			Tenant    string
			Decisions []struct{ Action, Kind, TenantName, Diff string }
		}
	}
	require.NoError(t, json.Unmarshal([]byte(stdout), &got), "%s", stderr)
	require.Equal(t, "1.1", got.FormatVersion)
	require.True(t, got.DryRun)
	require.Equal(t, "dev", got.Passes[0].Tenant)
	require.Len(t, got.Passes[0].Decisions, 3)
	for _, d := range got.Passes[0].Decisions {
		require.Contains(t, d.Diff, "+++ host "+d.Kind+" team-dev/"+d.TenantName+"-x-default-x-dev\t(dry run)\n@@ ")
	}
}

func TestWhatAPlanRefuses(t *testing.T) {
	dir := planFolders(t)
	bad := filepath.Join(t.TempDir(), "bad.yaml")
	require.NoError(t, os.WriteFile(bad, []byte("apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\n---\nkind: {\n"), 0o600))
	onePolicy, err := os.ReadFile(filepath.Join(dir, "policy.yaml"))
	require.NoError(t, err)
	twoPolicies := filepath.Join(t.TempDir(), "two.yaml")
	require.NoError(t, os.WriteFile(twoPolicies, append(append(onePolicy, "---\n"...), onePolicy...), 0o600))
	for _, test := range []struct {
		name      string
		variables []string
		args      []string
		stderr    []string
	}{
		{"one side", nil, []string{"plan", "--tenant-dir", dir}, []string{"--tenant-dir and --host-dir go together"}},
		{"a record of clusters", nil, []string{"plan", "--record", dir}, []string{"--record and --tenant-kubeconfig go with --tenant-dir and --host-dir"}},
		{"diffs of names", nil, []string{"plan", "--diff", "-o", "name"}, []string{"--diff goes with -o table, wide, json and yaml"}},
		{"a colour that is none", nil, []string{"plan", "--color", "red"}, []string{"accepted are auto, always, never"}},
		{"a policy that is not there", nil, []string{"plan", "--policy", filepath.Join(dir, "none.yaml")}, []string{"--policy: open "}},
		{"a policy that is none", nil, []string{"plan", "--policy", filepath.Join(dir, "host", "list.json")}, []string{"--policy=", `SyncPolicy \"\"`}},
		{"a bad file", nil, []string{"plan", "--tenant-dir", bad, "--host-dir", filepath.Join(dir, "host")}, []string{"bad.yaml: document 2: it is no YAML"}},
		{"two policies in a file", nil, []string{"plan", "--policy", twoPolicies}, []string{"--policy=", "holds 2 YAML documents", "put it into a file of its own"}},
		{"a record that is none", nil, offlineArgs(dir, "--record", filepath.Join(dir, "policy.yaml")), []string{"policy.yaml: there is no SyncDecision team-dev/dev in it", "kubectl get syncdecisions"}},
		{"a kubeconfig that is none", nil, offlineArgs(dir, "--tenant-kubeconfig", filepath.Join(dir, "policy.yaml")), []string{"the tenant's kubeconfig from file", "it is no kubeconfig"}},
		{"a folder that is not there", nil, []string{"plan", "--tenant-dir", filepath.Join(dir, "none"), "--host-dir", filepath.Join(dir, "host")}, []string{"name a folder of YAML or JSON files"}},
		{"a tenant that is not in the files", []string{"SYNCPASS_TENANT=prod"}, offlineArgs(dir), []string{"have only team-dev/dev"}},
		{"a variable that cannot be read", []string{"SYNCPASS_MAX_DELETE_PERCENT=many"}, offlineArgs(dir), []string{"SYNCPASS_MAX_DELETE_PERCENT"}},
		{"diffs of a pass", nil, []string{"pass", "--diff"}, []string{"unknown flag: --diff"}},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			code, stdout, stderr := exited(t, runner(t, test.variables, test.args...))
			assert.Equal(t, exitInvalid, code, "stderr: %s", stderr)
			assert.Empty(t, stdout)
			for _, want := range test.stderr {
				assert.Contains(t, stderr, want)
			}
		})
	}
}

func TestTheFlagsOfAPlanAreCompleted(t *testing.T) {
	for flag, want := range map[string]string{
		"--color": "auto\nalways\nnever\n:4\n", "--tenant-dir": ":0\n", "--policy": ":0\n",
	} {
		_, stdout, _ := exited(t, runner(t, nil, "__complete", "plan", flag, ""))
		assert.Equal(t, want, stdout, flag)
	}
}

func TestPlanHelp(t *testing.T) {
	_, stdout, _ := exited(t, runner(t, nil, "plan", "--help"))
	golden(t, "help-plan.txt", stdout)
}
