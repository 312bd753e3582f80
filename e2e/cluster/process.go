package cluster

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"sync"
)

// starter is the one thread that starts child processes. Linux sends a child its
// parent-death signal when the *thread* that started it ends, and Go ends
// threads as it likes; this goroutine keeps its thread for the life of the process.
var starter = sync.OnceValue(func() chan<- func() {
	work := make(chan func())
	go func() {
		runtime.LockOSThread()
		for f := range work {
			f()
		}
	}()
	return work
})

// startOnLastingThread starts a command from a thread that lives as long as this process.
func startOnLastingThread(cmd *exec.Cmd) error {
	result := make(chan error, 1)
	starter() <- func() { result <- cmd.Start() }
	return <-result
}

// process is one component of a local cluster, running.
type process struct {
	name    string
	logFile string
	// exited is closed once the process has ended and has been waited for.
	exited chan struct{}
}

// startProcess runs a component with its output in <folder>/<name>.log and its
// process id in <folder>/<name>.pid. When it ends, onExit is called with an error
// that shows the end of its log.
func startProcess(f *folder, binary, name string, args []string, onExit context.CancelCauseFunc) (*process, error) {
	p := &process{name: name, logFile: f.path(name + ".log"), exited: make(chan struct{})}
	log, err := os.OpenFile(p.logFile, os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o600)
	if err != nil {
		return nil, fmt.Errorf("log of %s: %w", name, err)
	}
	defer log.Close()
	cmd := exec.Command(binary, args...)
	cmd.Dir = f.dir
	cmd.Stdout, cmd.Stderr = log, log
	// A third less processor time until kube-apiserver is ready, for 100 MiB more
	// memory. A GOGC of the user's comes later in the list, and wins.
	cmd.Env = append([]string{"GOGC=400"}, os.Environ()...)
	// The child inherits the lock of its folder, so that the lock is free exactly
	// when no process of the cluster lives any more.
	cmd.ExtraFiles = []*os.File{f.lock}
	cmd.SysProcAttr = processAttributes(f.detached)
	if err := startOnLastingThread(cmd); err != nil {
		return nil, fmt.Errorf("starting %s: %w", name, err)
	}
	go func() {
		err := cmd.Wait()
		onExit(&exitError{name: name, cause: err, log: logTail(p.logFile)})
		close(p.exited)
	}()
	pid := strconv.Itoa(cmd.Process.Pid)
	if err := os.WriteFile(f.path(name+".pid"), []byte(pid), 0o600); err != nil {
		return p, fmt.Errorf("recording the process id of %s: %w", name, err)
	}
	return p, nil
}

// exitError says that a component ended before it was told to.
type exitError struct {
	name  string
	cause error
	log   string
}

func (e *exitError) Error() string {
	cause := "exit status 0"
	if e.cause != nil {
		cause = e.cause.Error()
	}
	return fmt.Sprintf("%s ended by itself (%s); the end of its log:\n%s", e.name, cause, e.log)
}

func (e *exitError) Unwrap() error { return e.cause }

// portTaken tells whether the component ended because another process got hold
// of its port between our choosing and its listening.
func (e *exitError) portTaken() bool { return strings.Contains(e.log, "address already in use") }

// logTail returns the last lines of a log, at most 3000 bytes.
func logTail(file string) string {
	const limit = 3000
	data, err := os.ReadFile(file)
	if err != nil {
		return err.Error()
	}
	return strings.TrimSpace(string(data[max(0, len(data)-limit):]))
}

// killRecorded kills the processes whose ids lie in the folder. An id that by now
// belongs to a process with another command line is left alone.
func killRecorded(dir string) error {
	files, err := filepath.Glob(filepath.Join(dir, "*.pid"))
	if err != nil {
		return err
	}
	for _, file := range files {
		data, err := os.ReadFile(file)
		if err != nil {
			return err
		}
		pid, err := strconv.Atoi(string(data))
		if err != nil {
			return fmt.Errorf("%s holds no process id: %w", file, err)
		}
		// Where there is no /proc the lock of the folder alone must do as proof.
		commandLine, err := os.ReadFile(fmt.Sprintf("/proc/%d/cmdline", pid))
		if err == nil && !strings.Contains(string(commandLine), dir) {
			continue
		}
		// The data is thrown away, so there is nothing to end gracefully for; and a
		// process that is gone already is what we want.
		if p, err := os.FindProcess(pid); err == nil {
			_ = p.Kill()
		}
	}
	return nil
}
