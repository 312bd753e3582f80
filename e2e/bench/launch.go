package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"syscall"
	"time"
)

// launchVerb makes this program start another one and measure it.
//
// Linux counts the memory of whoever starts a process as the process' own peak,
// until it has memory of its own (exec_mmap in fs/exec.c keeps the largest of
// both). This program holds tens of thousands of objects, so it starts what it
// measures through a copy of itself that holds nothing.
const launchVerb = "launch-and-measure"

// usage is what one process took.
type usage struct {
	// Wall is from its start to its end, CPU what it took of all processors.
	Wall, CPU time.Duration
	// PeakRSS is the most memory that it had resident at once, in bytes.
	PeakRSS int64
	Exit    int
}

// launch carries out launchVerb: args are the file for the usage, the binary, and its arguments.
func launch(args []string) error {
	if len(args) < 2 {
		return fmt.Errorf("%s: a file and a command are needed", launchVerb)
	}
	command := exec.Command(args[1], args[2:]...)
	command.Stdout, command.Stderr = os.Stdout, os.Stderr
	began := time.Now()
	err := command.Run()
	measured := usage{Wall: time.Since(began)}
	if _, exited := errors.AsType[*exec.ExitError](err); err != nil && !exited {
		return err
	}
	state := command.ProcessState
	measured.Exit = state.ExitCode()
	measured.CPU = state.UserTime() + state.SystemTime()
	if taken, ok := state.SysUsage().(*syscall.Rusage); ok {
		measured.PeakRSS = taken.Maxrss
		if runtime.GOOS == "linux" { // in KiB there, in bytes elsewhere
			measured.PeakRSS <<= 10
		}
	}
	data, err := json.Marshal(measured)
	if err != nil {
		return err
	}
	return os.WriteFile(args[0], data, 0o600)
}

// measure runs a binary to whatever exit, with this environment alone, and returns what it took and printed. Its output
// goes to files in dir, so that nothing here works while it does.
func measure(ctx context.Context, dir string, env []string, binary string, args ...string) (taken usage, stdout, stderr []byte, err error) {
	self, err := os.Executable()
	if err != nil {
		return taken, nil, nil, err
	}
	usageFile := filepath.Join(dir, "usage")
	command := exec.CommandContext(ctx, self, append([]string{launchVerb, usageFile, binary}, args...)...)
	command.Env = env
	// The group takes the measured process along when ctx ends.
	command.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	command.Cancel = func() error { return syscall.Kill(-command.Process.Pid, syscall.SIGTERM) }
	command.WaitDelay = 10 * time.Second
	var outputs [2]*os.File
	for i, name := range []string{"stdout", "stderr"} {
		if outputs[i], err = os.Create(filepath.Join(dir, name)); err != nil {
			return taken, nil, nil, err
		}
		defer outputs[i].Close()
	}
	command.Stdout, command.Stderr = outputs[0], outputs[1]
	runErr := command.Run()
	if stdout, err = os.ReadFile(outputs[0].Name()); err != nil {
		return taken, nil, nil, err
	}
	if stderr, err = os.ReadFile(outputs[1].Name()); err != nil {
		return taken, nil, nil, err
	}
	if runErr != nil {
		return taken, stdout, stderr, fmt.Errorf("running %s: %w\n%s", binary, errors.Join(runErr, context.Cause(ctx)), stderr)
	}
	data, err := os.ReadFile(usageFile)
	if err == nil {
		err = json.Unmarshal(data, &taken)
	}
	return taken, stdout, stderr, err
}
