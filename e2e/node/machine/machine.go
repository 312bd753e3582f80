package machine

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os/exec"
	"strings"
	"sync"
)

// Machine is running processes in namespaces of their own. Its methods must not
// be called concurrently.
type Machine struct {
	cmd      *exec.Cmd
	stdin    io.Closer
	requests *json.Encoder
	answers  chan string
	stderr   strings.Builder
	ctx      context.Context
	stop     func() error
}

var errNotLinux = errors.New("a machine can only be made on Linux")

// errStopped is the cause that a machine's context has after Stop.
var errStopped = errors.New("the machine was stopped")

// Start starts a machine with the program init as its first process: one that
// calls Serve.
func Start(init string) (*Machine, error) {
	m := &Machine{cmd: exec.Command(init), answers: make(chan string)}
	m.cmd.SysProcAttr = namespaces()
	if m.cmd.SysProcAttr == nil {
		return nil, errNotLinux
	}
	m.cmd.Stderr = &m.stderr
	// The pipe of requests is what the machine hangs on by: the kernel closes it
	// when this process is gone, and the first process exits.
	requests, err := m.cmd.StdinPipe()
	if err != nil {
		return nil, err
	}
	reports, err := m.cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if err := m.cmd.Start(); err != nil {
		return nil, fmt.Errorf("starting a process in namespaces of its own: %w", err)
	}
	m.stdin, m.requests = requests, json.NewEncoder(requests)
	var end context.CancelCauseFunc
	m.ctx, end = context.WithCancelCause(context.Background())
	listened := make(chan struct{})
	go func() {
		defer close(listened)
		m.listen(json.NewDecoder(reports), end)
	}()
	m.stop = sync.OnceValue(func() error {
		end(errStopped)
		closeErr := m.stdin.Close()
		<-listened
		// It returns once the kernel has killed every process of the namespace.
		if err := m.cmd.Wait(); err != nil {
			return fmt.Errorf("first process of the machine: %w: %s", err, strings.TrimSpace(m.stderr.String()))
		}
		return closeErr
	})
	return m, nil
}

// listen takes reports until the first process ends.
func (m *Machine) listen(reports *json.Decoder, end context.CancelCauseFunc) {
	for {
		var r report
		if err := reports.Decode(&r); err != nil {
			end(fmt.Errorf("the machine's first process ended: %w", err))
			return
		}
		if r.Exited != nil {
			end(r.Exited)
			continue
		}
		select {
		case m.answers <- r.Error:
		case <-m.ctx.Done():
		}
	}
}

// PID is the process id of the machine's first process, outside of the machine.
func (m *Machine) PID() int { return m.cmd.Process.Pid }

// Context ends when a process of the machine, or all of it, has ended by itself;
// its cause then matches *ExitError or says what is known.
func (m *Machine) Context() context.Context { return m.ctx }

// Mount mounts, one after the other.
func (m *Machine) Mount(mounts ...Mount) error { return m.ask(request{Mount: mounts}) }

// Run starts a process, and does not wait for it.
func (m *Machine) Run(p Process) error { return m.ask(request{Run: &p}) }

func (m *Machine) ask(r request) error {
	if err := m.requests.Encode(r); err != nil {
		return errors.Join(err, context.Cause(m.ctx))
	}
	select {
	case answer := <-m.answers:
		if answer != "" {
			return errors.New(answer)
		}
		return nil
	case <-m.ctx.Done():
		return context.Cause(m.ctx)
	}
}

// Stop kills every process of the machine and returns when they are gone, and
// with them its mounts. Stopping twice is no error.
func (m *Machine) Stop() error { return m.stop() }

// Supported returns nil if this process may make a machine, or the reason why not.
func Supported() error {
	cmd := exec.Command("true")
	if cmd.SysProcAttr = namespaces(); cmd.SysProcAttr == nil {
		return errNotLinux
	}
	return cmd.Run()
}
