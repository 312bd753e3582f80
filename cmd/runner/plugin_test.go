package main

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// linked is the binary as a process of its own under another name.
func linked(t *testing.T, name string, variables []string, args ...string) (code int, stdout, stderr string) {
	t.Helper()
	cmd := runner(t, variables, args...)
	link := filepath.Join(t.TempDir(), name)
	require.NoError(t, os.Symlink(cmd.Path, link))
	cmd.Path, cmd.Args[0] = link, link
	return exited(t, cmd)
}

func TestAsAPluginItCallsItselfWhatPeopleType(t *testing.T) {
	for _, args := range [][]string{{"--help"}, {"pass", "--help"}, {"explain", "--help"}, {"render", "--help"}} {
		code, stdout, _ := linked(t, "kubectl-syncpass", nil, args...)
		assert.Zero(t, code)
		_, usage, found := strings.Cut(stdout, "\nUsage:\n")
		require.True(t, found, stdout)
		assert.Contains(t, usage, "  kubectl syncpass")
		usage, _, _ = strings.Cut(usage, "\nFlags:") // which say what the image is called
		assert.NotContains(t, usage, "runner")
		assert.NotContains(t, usage, "kubectl-syncpass")
	}
	code, _, stderr := linked(t, "kubectl-syncpass", nil, "plam")
	assert.Equal(t, exitInvalid, code)
	assert.Contains(t, stderr, "did you mean plan? (see 'kubectl syncpass --help')")

	_, stdout, _ := linked(t, "runner", nil, "--help")
	assert.NotContains(t, stdout, "  kubectl syncpass")
	assert.Contains(t, stdout, pluginHelp)
}

func TestACommandToPasteIsWhatPeopleType(t *testing.T) {
	const command = "runner resolve configmap default/runner --keep host"
	assert.Equal(t, command, (&app{}).typed(command))
	assert.Equal(t, "kubectl syncpass resolve configmap default/runner --keep host", (&app{plugin: true}).typed(command))
}

func TestKubectlCompletesThePlugin(t *testing.T) {
	host := "SYNCPASS_HOST_KUBECONFIG=" + (&fakeHost{tenants: tenantNames("team-dev/dev", "team-dev/prod")}).serve(t)
	code, stdout, _ := linked(t, "kubectl_complete-syncpass", []string{host}, "pass", "--tenant", "p")
	assert.Zero(t, code)
	assert.Equal(t, "prod\n:4\n", stdout)
}

func TestEveryShellHasACompletionScript(t *testing.T) {
	for _, shell := range []string{"bash", "zsh", "fish", "powershell"} {
		code, stdout, stderr := called(t, nil, "completion", shell)
		assert.Zero(t, code, stderr)
		assert.Contains(t, stdout, "runner", shell)
		assert.Greater(t, len(stdout), 1000, shell)
	}
}

func TestThereIsAManPageForEachVerb(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "man1")
	t.Setenv("SOURCE_DATE_EPOCH", "1800000000")
	code, stdout, stderr := called(t, nil, "docs", "man", dir)
	require.Zero(t, code, stderr)
	assert.Empty(t, stdout)
	a := app{stdout: &bytes.Buffer{}, stderr: &bytes.Buffer{}, env: environmentOf(nil)}
	for _, verb := range a.rootCommand().Commands() {
		if !verb.IsAvailableCommand() {
			continue
		}
		page, err := os.ReadFile(filepath.Join(dir, "runner-"+verb.Name()+".1"))
		require.NoError(t, err)
		assert.Contains(t, string(page), `.TH "RUNNER-`+strings.ToUpper(verb.Name())+`" "1" "Jan 2027"`)
	}
	page, err := os.ReadFile(filepath.Join(dir, "runner.1"))
	require.NoError(t, err)
	for _, want := range []string{"SYNCPASS_PASS_TIMEOUT", "Exit codes"} {
		assert.Contains(t, string(page), want)
	}

	code, _, stderr = called(t, nil, "docs", "man")
	assert.Equal(t, exitInvalid, code)
	assert.Contains(t, stderr, "man takes one directory")
	code, _, stderr = called(t, nil, "docs")
	assert.Equal(t, exitInvalid, code)
	assert.Contains(t, stderr, "docs takes a form: man")
}
