package machine

import "syscall"

// namespaces puts a child into namespaces, and a session, of its own.
func namespaces() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{
		Setsid:     true,
		Cloneflags: syscall.CLONE_NEWNS | syscall.CLONE_NEWPID | syscall.CLONE_NEWNET,
	}
}
