//go:build !linux

package machine

import "syscall"

func namespaces() *syscall.SysProcAttr { return nil }
