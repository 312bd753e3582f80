package machine

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// childVariable makes this test binary start a machine, with the program that the
// variable names, and wait to be killed.
const childVariable = "SYNCPASS_MACHINE_TEST_CHILD"

func TestMain(m *testing.M) {
	if init := os.Getenv(childVariable); init != "" {
		if err := childMain(init); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
	}
	code := m.Run()
	if err := os.RemoveAll(initFolder); err != nil {
		fmt.Fprintln(os.Stderr, err)
		code = 1
	}
	os.Exit(code)
}

// initFolder is where initProgram builds, "" before that.
var initFolder string

// initProgram builds the first process's program, once.
var initProgram = sync.OnceValues(func() (file string, err error) {
	if initFolder, err = os.MkdirTemp("", "syncpass-machine-"); err != nil {
		return "", err
	}
	file = filepath.Join(initFolder, "init")
	build := exec.Command("go", "build", "-o", file, "./init")
	build.Env = append(os.Environ(), "CGO_ENABLED=0")
	if output, err := build.CombinedOutput(); err != nil {
		return "", fmt.Errorf("go build: %w: %s", err, output)
	}
	return file, nil
})

// childMain never returns without an error: the parent kills this process.
func childMain(init string) error {
	m, err := Start(init)
	if err != nil {
		return err
	}
	if err := m.Run(Process{Name: "sleep", Args: []string{"sleep", "600"}, Log: os.DevNull}); err != nil {
		return err
	}
	fmt.Println(m.PID())
	select {}
}

// builtInit skips a test where there can be no machine.
func builtInit(t *testing.T) string {
	t.Helper()
	if err := Supported(); err != nil {
		t.Skipf("no namespaces can be made here (%v): run the tests as root", err)
	}
	init, err := initProgram()
	require.NoError(t, err)
	return init
}

func newMachine(t *testing.T) *Machine {
	t.Helper()
	m, err := Start(builtInit(t))
	require.NoError(t, err)
	t.Cleanup(func() { assert.NoError(t, m.Stop()) })
	return m
}

// run runs a shell script in the machine and returns what it printed once it has ended.
func run(t *testing.T, m *Machine, script string) string {
	t.Helper()
	log := filepath.Join(t.TempDir(), "log")
	require.NoError(t, m.Run(Process{Name: "sh", Args: []string{"sh", "-c", script}, Env: []string{"GREETING=hello"}, Log: log}))
	select {
	case <-m.Context().Done():
	case <-time.After(30 * time.Second):
		t.Fatal("the script does not end")
	}
	data, err := os.ReadFile(log)
	require.NoError(t, err)
	return string(data)
}

func TestAMachineIsApartFromThisOne(t *testing.T) {
	m := newMachine(t)
	dir := t.TempDir()
	source, target, writable := filepath.Join(dir, "source"), filepath.Join(dir, "target"), filepath.Join(dir, "target", "writable")
	for _, folder := range []string{source, target, filepath.Join(source, "writable")} {
		require.NoError(t, os.Mkdir(folder, 0o700))
	}
	require.NoError(t, m.Mount(
		Mount{Source: "proc", Target: "/proc", Type: "proc"},
		Mount{Source: source, Target: target, ReadOnly: true},
		Mount{Source: dir, Target: writable}))
	output := run(t, m, `echo $GREETING; set -- /proc/[0-9]*; echo $1 and $(($#-1)); ls /proc/sys/net/ipv4/conf
		touch `+target+`/file 2>/dev/null || echo refused; touch `+writable+`/file && echo written`)
	assert.Equal(t, "hello\n/proc/1 and 1\nall\ndefault\nlo\nrefused\nwritten\n", output)
	assert.FileExists(t, filepath.Join(dir, "file"))
	assert.NoDirExists(t, writable, "the mount is the machine's alone")
	mounts, err := os.ReadFile("/proc/self/mountinfo")
	require.NoError(t, err)
	assert.NotContains(t, string(mounts), dir)
}

func TestTheEndOfAProcessIsReported(t *testing.T) {
	for _, test := range []struct{ script, status string }{
		{"exit 3", "exit status 3"},
		{"exit 0", "exit status 0"},
		{"kill -TERM $$", "signal: terminated"},
	} {
		t.Run(test.script, func(t *testing.T) {
			m := newMachine(t)
			run(t, m, test.script)
			var exit *ExitError
			require.ErrorAs(t, context.Cause(m.Context()), &exit)
			assert.Equal(t, ExitError{Name: "sh", Status: test.status}, *exit)
		})
	}
}

func TestOrphansAreCollected(t *testing.T) {
	m := newMachine(t)
	require.NoError(t, m.Mount(Mount{Source: "proc", Target: "/proc", Type: "proc"}))
	// The inner shell does not wait for what it starts, so that its child becomes an
	// orphan, living or dead. The outer one waits until it is not even a zombie.
	output := run(t, m, `orphan=$(sh -c 'sleep 0 & echo $!'); n=0
		while [ -d /proc/$orphan ] && [ $n -lt 500 ]; do n=$((n+1)); sleep 0.01; done
		[ -d /proc/$orphan ] && echo zombie || echo collected`)
	assert.Equal(t, "collected\n", output)
}

func TestWhatCannotBeDoneIsAnError(t *testing.T) {
	m := newMachine(t)
	assert.ErrorContains(t, m.Mount(Mount{Source: "/no/such", Target: "/mnt"}), "mounting /no/such on /mnt")
	assert.ErrorContains(t, m.Run(Process{Name: "ghost", Args: []string{"/no/such"}, Log: os.DevNull}), "starting ghost")
	assert.ErrorContains(t, m.Run(Process{Name: "ghost", Args: []string{"true"}, Log: "/no/such/log"}), "log of ghost")
	require.NoError(t, m.Context().Err(), "an error is no end")
	_, err := Start("/no/such")
	assert.ErrorIs(t, err, os.ErrNotExist)
}

func TestStopEndsEveryProcess(t *testing.T) {
	m := newMachine(t)
	require.NoError(t, m.Run(Process{Name: "sh", Args: []string{"sh", "-c", "trap '' TERM HUP; sleep 600 & sleep 600"}, Log: os.DevNull}))
	namespace := pidNamespace(t, m.PID())
	require.Eventually(t, func() bool { return len(processesIn(t, namespace)) == 4 }, 30*time.Second, 10*time.Millisecond)
	require.NoError(t, m.Stop())
	assert.Empty(t, processesIn(t, namespace))
	assert.ErrorIs(t, m.Run(Process{Name: "late", Args: []string{"true"}, Log: os.DevNull}), errStopped)
	require.NoError(t, m.Stop(), "stopping twice is no error")
}

func TestAMachineEndsWithTheProcessThatStartedIt(t *testing.T) {
	init := builtInit(t)
	child := exec.Command(os.Args[0])
	child.Env = append(os.Environ(), childVariable+"="+init)
	child.Stderr = os.Stderr
	stdout, err := child.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, child.Start())
	t.Cleanup(func() { _ = child.Process.Kill() })
	var pid int
	_, err = fmt.Fscanln(bufio.NewReader(stdout), &pid)
	require.NoError(t, err, "the child never became ready")
	namespace := pidNamespace(t, pid)
	require.Len(t, processesIn(t, namespace), 2)
	require.NoError(t, child.Process.Kill())
	require.Error(t, child.Wait())
	require.Eventually(t, func() bool { return len(processesIn(t, namespace)) == 0 }, 30*time.Second, 10*time.Millisecond)
}

func pidNamespace(t *testing.T, pid int) string {
	t.Helper()
	namespace, err := os.Readlink(fmt.Sprintf("/proc/%d/ns/pid", pid))
	require.NoError(t, err)
	return namespace
}

// processesIn returns the ids of the living processes of a PID namespace.
func processesIn(t *testing.T, namespace string) (pids []string) {
	t.Helper()
	links, err := filepath.Glob("/proc/[0-9]*/ns/pid")
	require.NoError(t, err)
	for _, link := range links {
		target, err := os.Readlink(link)
		if err != nil {
			// It has ended in the meantime, or is a zombie, which is in no namespace.
			require.True(t, errors.Is(err, os.ErrNotExist) || errors.Is(err, os.ErrPermission), "%v", err)
			continue
		}
		if target == namespace {
			pids = append(pids, strings.Split(link, "/")[2])
		}
	}
	return pids
}
