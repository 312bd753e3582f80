package scenario

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/syncpass/syncpass/e2e/proxy"
)

// runLimit is how long one run of the binary may take. The longest that a file
// asks for is a schedule with a window below one minute.
const runLimit = 3 * time.Minute

// settleLimit is how long the requests of an exited process may stay open.
const settleLimit = 10 * time.Second

// Binary is the built runner binary and the surroundings it is run in.
type Binary struct {
	// Path is the executable.
	Path string
	// Args come before the arguments of every run.
	Args []string
	// Env is its whole environment.
	Env map[string]string
	// Log takes the requests it sends, by way of the proxies.
	Log *proxy.Log
}

// Result is one run of the binary.
type Result struct {
	// Args are the arguments of this run.
	Args []string
	// Exit is the exit code; 128 and the number if a signal ended it.
	Exit           int
	Stdout, Stderr []byte
	// Requests are those that it sent.
	Requests []proxy.Request
	Took     time.Duration
}

// Run runs the binary with the arguments, env put on top of the environment, and
// waits until it has exited and its last request has ended. Any exit code is a
// Result; an error means that it could not be run to its end.
func (b *Binary) Run(ctx context.Context, env map[string]string, args ...string) (*Result, error) {
	ctx, cancel := context.WithTimeout(ctx, runLimit)
	defer cancel()
	mark, start := b.Log.Mark(), time.Now()
	var stdout, stderr bytes.Buffer
	cmd := exec.CommandContext(ctx, b.Path, slices.Concat(b.Args, args)...)
	cmd.Stdout, cmd.Stderr, cmd.Env = &stdout, &stderr, b.environ(env)
	cmd.Cancel = func() error { return cmd.Process.Signal(syscall.SIGTERM) }
	cmd.WaitDelay = 10 * time.Second

	err := cmd.Run()
	result := &Result{Args: args, Stdout: stdout.Bytes(), Stderr: stderr.Bytes(), Took: time.Since(start)}
	if ctx.Err() != nil {
		result.Requests = b.Log.Since(mark)
		return result, fmt.Errorf("%s %s did not end in time: %w", b.Path, strings.Join(args, " "), context.Cause(ctx))
	}
	if exit, ok := errors.AsType[*exec.ExitError](err); ok {
		result.Exit = exit.ExitCode()
		if status, ok := exit.Sys().(syscall.WaitStatus); ok && status.Signaled() {
			result.Exit = 128 + int(status.Signal())
		}
	} else if err != nil {
		return nil, fmt.Errorf("running %s: %w", b.Path, err)
	}
	settle, cancel := context.WithTimeout(ctx, settleLimit)
	defer cancel()
	result.Requests, err = b.Log.Settled(settle, mark)
	return result, err
}

// environ is nothing of this process's environment but PATH: a variable set by
// the person who runs the tests must not change what a scenario says.
func (b *Binary) environ(env map[string]string) []string {
	all := map[string]string{"PATH": os.Getenv("PATH")}
	maps.Copy(all, b.Env)
	maps.Copy(all, env)
	environ := make([]string, 0, len(all))
	for _, name := range slices.Sorted(maps.Keys(all)) {
		environ = append(environ, name+"="+all[name])
	}
	return environ
}
