//go:build !linux

package cluster

import "syscall"

// processAttributes puts a child into a session of its own, out of reach of the
// terminal's Ctrl-C. Only Linux can tie its life to its parent's: elsewhere the
// children of a killed parent stay until they are stopped by hand.
func processAttributes(bool) *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Setsid: true}
}
