package machine

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"sync"
	"syscall"
)

// Serve is the life of the machine's first process. It does what requests say
// until they end, which they do at the latest with the process that sends them.
// When it returns the caller must exit: the kernel kills the rest of the machine.
func Serve(requests io.Reader, reports io.Writer) error {
	// Nothing that is mounted here may show outside; a peer group of the machine's
	// own lets mounts travel on to the mount namespaces of containers.
	for _, propagation := range []uintptr{syscall.MS_PRIVATE, syscall.MS_SHARED} {
		if err := syscall.Mount("", "/", "", syscall.MS_REC|propagation, ""); err != nil {
			return fmt.Errorf("changing the propagation of mounts: %w", err)
		}
	}
	s := &server{reports: json.NewEncoder(reports), names: map[int]string{}}
	ended := make(chan os.Signal, 1)
	signal.Notify(ended, syscall.SIGCHLD)
	go func() {
		for range ended {
			s.reap()
		}
	}()
	decoder := json.NewDecoder(requests)
	for {
		var r request
		if err := decoder.Decode(&r); errors.Is(err, io.EOF) {
			return nil
		} else if err != nil {
			return fmt.Errorf("reading a request: %w", err)
		}
		var answer report
		if err := s.do(&r); err != nil {
			answer.Error = err.Error()
		}
		if err := s.send(answer); err != nil {
			return err
		}
	}
}

type server struct {
	sending sync.Mutex
	reports *json.Encoder
	// starting is held while a process is started or ended ones are collected, so
	// that none ends before its name is known.
	starting sync.Mutex
	// names has the processes that were asked for, by process id.
	names map[int]string
}

func (s *server) send(r report) error {
	s.sending.Lock()
	defer s.sending.Unlock()
	return s.reports.Encode(r)
}

func (s *server) do(r *request) error {
	for _, m := range r.Mount {
		if err := m.mount(); err != nil {
			return err
		}
	}
	if r.Run == nil {
		return nil
	}
	return s.run(r.Run)
}

func (m *Mount) mount() error {
	flags := uintptr(syscall.MS_BIND | syscall.MS_REC)
	if m.Type != "" {
		flags = 0
	}
	if err := syscall.Mount(m.Source, m.Target, m.Type, flags, ""); err != nil {
		return fmt.Errorf("mounting %s on %s: %w", m.Source, m.Target, err)
	}
	if !m.ReadOnly {
		return nil
	}
	// The kernel takes no notice of "read-only" in the call that binds.
	if err := syscall.Mount("", m.Target, "", syscall.MS_REMOUNT|syscall.MS_BIND|syscall.MS_RDONLY, ""); err != nil {
		return fmt.Errorf("making %s read-only: %w", m.Target, err)
	}
	return nil
}

func (s *server) run(p *Process) error {
	log, err := os.OpenFile(p.Log, os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o600)
	if err != nil {
		return fmt.Errorf("log of %s: %w", p.Name, err)
	}
	defer log.Close()
	cmd := exec.Command(p.Args[0], p.Args[1:]...)
	cmd.Dir = "/"
	cmd.Env = append(os.Environ(), p.Env...)
	cmd.Stdout, cmd.Stderr = log, log
	s.starting.Lock()
	defer s.starting.Unlock()
	if err := cmd.Start(); err != nil {
		return fmt.Errorf("starting %s: %w", p.Name, err)
	}
	s.names[cmd.Process.Pid] = p.Name
	return nil
}

// reap collects every process that has ended. Orphans are among them: a first
// process inherits those of its PID namespace, and without it they would stay as
// zombies.
func (s *server) reap() {
	s.starting.Lock()
	defer s.starting.Unlock()
	for {
		var status syscall.WaitStatus
		pid, err := syscall.Wait4(-1, &status, syscall.WNOHANG, nil)
		if errors.Is(err, syscall.EINTR) {
			continue
		}
		if err != nil || pid <= 0 {
			return
		}
		if name, ok := s.names[pid]; ok {
			delete(s.names, pid)
			// If nobody listens any more, the machine is about to end.
			_ = s.send(report{Exited: &ExitError{Name: name, Status: statusText(status)}})
		}
	}
}

func statusText(status syscall.WaitStatus) string {
	if status.Signaled() {
		return "signal: " + status.Signal().String()
	}
	return fmt.Sprintf("exit status %d", status.ExitStatus())
}
