package scenario

import (
	"context"
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/syncpass/syncpass/e2e/proxy"
)

// fakeVariable makes this test binary act as the runner binary: it prints what the
// variable holds, its environment to stderr, and exits with the code 3.
const fakeVariable = "SYNCPASS_SCENARIO_TEST_FAKE"

func TestMain(m *testing.M) {
	if output := os.Getenv(fakeVariable); output != "" {
		fmt.Println(output)
		fmt.Fprintln(os.Stderr, strings.Join(os.Environ(), "\n"))
		os.Exit(3)
	}
	os.Exit(m.Run())
}

func fakeBinary(t *testing.T, output string) Binary {
	t.Helper()
	self, err := os.Executable()
	require.NoError(t, err)
	return Binary{Path: self, Env: map[string]string{fakeVariable: output, "B": "binary's", "C": "binary's"}, Log: &proxy.Log{}}
}

func TestTheBinaryRunsInAnEnvironmentOfItsOwn(t *testing.T) {
	t.Setenv("KUBECONFIG", "/of/the/developer")
	binary := fakeBinary(t, "hello")
	result, err := binary.Run(t.Context(), map[string]string{"C": "run's"}, "pass")
	require.NoError(t, err)
	assert.Equal(t, 3, result.Exit)
	assert.Equal(t, "hello\n", string(result.Stdout))
	assert.Equal(t, []string{"B=binary's", "C=run's", "PATH=" + os.Getenv("PATH"), fakeVariable + "=hello"},
		strings.Split(strings.TrimSpace(string(result.Stderr)), "\n"))
}

func TestABinaryThatCannotBeRunIsAnError(t *testing.T) {
	binary := Binary{Path: "/nowhere", Log: &proxy.Log{}}
	_, err := binary.Run(t.Context(), nil)
	require.ErrorContains(t, err, "/nowhere")
}

func TestABinaryIsStoppedWithTheTest(t *testing.T) {
	ctx, cancel := context.WithCancelCause(t.Context())
	cancel(fmt.Errorf("enough"))
	binary := fakeBinary(t, "hello")
	_, err := binary.Run(ctx, nil)
	require.ErrorContains(t, err, "enough")
}

const printed = `{"formatVersion":"1.0","dryRun":false,"passes":[{"tenant":"dev","namespace":"team-dev","outcome":"CompletedWithErrors","planID":"p1",
 "counts":{"create":1},"decisions":[{"action":"Create","kind":"ConfigMap","tenantNamespace":"default","tenantName":"app","reason":"NoMirror"}]}]}`

// stepOf runs one step of a file against the fake binary.
func stepOf(t *testing.T, output, step string) (*run, error) {
	t.Helper()
	file, err := Parse([]byte(minimal(step)))
	require.NoError(t, err)
	r, _ := fakeRun(t)
	r.runner.env.Binary, r.file = fakeBinary(t, output), file
	return r, r.steps(t.Context())
}

func TestAPassStepRunsTheBinary(t *testing.T) {
	r, err := stepOf(t, printed, "pass: {exit: 3, outcome: CompletedWithErrors, writes: 0, only: true, decisions: [{object: default/app}]}")
	require.NoError(t, err)
	assert.Equal(t, []string{"pass", "-o", "json"}, r.last.Args)
	assert.Equal(t, "p1", r.planID)
	for _, variable := range []string{"SYNCPASS_NAMESPACE=team-dev", "SYNCPASS_TENANT=dev"} {
		assert.Contains(t, string(r.last.Stderr), variable)
	}
}

func TestAFailureTellsWhatAPersonNeeds(t *testing.T) {
	_, err := stepOf(t, printed, "pass: {counts: {create: 2}}")
	for _, want := range []string{
		"something holds\nstep 1 of 1, pass:", "exit: want 0, got 3", "counts.create: want 2, got 1",
		"the last run of the binary: pass -o json, exit 3", "Create        ConfigMap  default/app", "SYNCPASS_TENANT=dev", "requests",
	} {
		assert.ErrorContains(t, err, want)
	}
}

func TestAPassThatPrintsNoDocumentFails(t *testing.T) {
	_, err := stepOf(t, "panic: oh", "pass: {exit: 3}")
	require.ErrorContains(t, err, "stdout is not one JSON document")
	require.ErrorContains(t, err, "stdout:\n  panic: oh")
}

func TestARunStepLooksAtTheStreams(t *testing.T) {
	_, err := stepOf(t, "data", "run: {args: [version], env: {MORE: m}, exit: 3, stdout: [dat], stderr: [MORE=m], notStdout: [MORE]}")
	require.NoError(t, err)
	_, err = stepOf(t, "data", "run: {args: [version], exit: 0, stdout: [x], stderr: [NONE], notStdout: [at]}")
	for _, want := range []string{"exit: want 0, got 3", `stdout: "x" is not in it`, `stderr: "NONE" is not in it`, `stdout: "at" is in it and must not be`} {
		assert.ErrorContains(t, err, want)
	}
}

func TestThereMustBeAPlanToConfirm(t *testing.T) {
	_, err := stepOf(t, printed, "annotateFromLastPass: {}")
	require.ErrorContains(t, err, "the last pass printed no planID")
}
