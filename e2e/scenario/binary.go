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
	process, err := b.Start(ctx, env, args...)
	if err != nil {
		return nil, err
	}
	return process.Wait()
}

// Process is a run of the binary on its way. Wait must follow.
type Process struct {
	cmd            *exec.Cmd
	log            *proxy.Log
	mark           proxy.Mark
	ctx            context.Context
	cancel         context.CancelFunc
	stdout, stderr bytes.Buffer
	result         Result
	start          time.Time
	// ended is closed when the process is dead; err is how it ended.
	ended chan struct{}
	err   error
}

// Start starts the binary as Run does, and does not wait.
func (b *Binary) Start(ctx context.Context, env map[string]string, args ...string) (*Process, error) {
	p := &Process{log: b.Log, mark: b.Log.Mark(), start: time.Now(), ended: make(chan struct{}), result: Result{Args: args}}
	p.ctx, p.cancel = context.WithTimeout(ctx, runLimit)
	p.cmd = exec.CommandContext(p.ctx, b.Path, slices.Concat(b.Args, args)...)
	p.cmd.Stdout, p.cmd.Stderr, p.cmd.Env = &p.stdout, &p.stderr, b.environ(env)
	p.cmd.Cancel = func() error { return p.cmd.Process.Signal(syscall.SIGTERM) }
	p.cmd.WaitDelay = 10 * time.Second
	if err := p.cmd.Start(); err != nil {
		defer p.cancel()
		if p.ctx.Err() != nil {
			return nil, p.late()
		}
		return nil, fmt.Errorf("running %s: %w", b.Path, err)
	}
	go func() {
		defer close(p.ended)
		p.err = p.cmd.Wait()
		p.result.Took = time.Since(p.start)
	}()
	return p, nil
}

// Signal sends the process a signal. One that has ended gets none, without an error.
func (p *Process) Signal(signal os.Signal) error {
	if err := p.cmd.Process.Signal(signal); !errors.Is(err, os.ErrProcessDone) {
		return err
	}
	return nil
}

// Ended is closed once the process is dead.
func (p *Process) Ended() <-chan struct{} { return p.ended }

// PID is the process's id.
func (p *Process) PID() int { return p.cmd.Process.Pid }

// Kill ends the process as kill -9 does, and returns when it is dead.
func (p *Process) Kill() error {
	err := p.Signal(syscall.SIGKILL)
	<-p.ended
	return err
}

// Wait waits as Run does. It is called once.
func (p *Process) Wait() (*Result, error) {
	<-p.ended
	defer p.cancel()
	result := &p.result
	result.Stdout, result.Stderr = p.stdout.Bytes(), p.stderr.Bytes()
	if p.ctx.Err() != nil {
		result.Requests = p.log.Since(p.mark)
		return result, p.late()
	}
	if exit, ok := errors.AsType[*exec.ExitError](p.err); ok {
		result.Exit = exit.ExitCode()
		if status, ok := exit.Sys().(syscall.WaitStatus); ok && status.Signaled() {
			result.Exit = 128 + int(status.Signal())
		}
	} else if p.err != nil {
		return nil, fmt.Errorf("running %s: %w", p.cmd.Path, p.err)
	}
	settle, cancel := context.WithTimeout(p.ctx, settleLimit)
	defer cancel()
	var err error
	result.Requests, err = p.log.Settled(settle, p.mark)
	return result, err
}

func (p *Process) late() error {
	return fmt.Errorf("%s did not end in time: %w", strings.Join(p.cmd.Args, " "), context.Cause(p.ctx))
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
