package cluster

import "syscall"

// processAttributes puts a child into a session of its own, out of reach of the
// terminal's Ctrl-C, and lets it die with its parent unless it is detached.
func processAttributes(detached bool) *syscall.SysProcAttr {
	attributes := &syscall.SysProcAttr{Setsid: true}
	if !detached {
		attributes.Pdeathsig = syscall.SIGKILL
	}
	return attributes
}
