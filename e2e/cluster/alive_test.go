package cluster

import (
	"fmt"
	"os"
	"syscall"
)

// alive tells whether the process exists and is no zombie: those have no command
// line, and stay for ever in a container whose first process does not wait for orphans.
func alive(pid int) bool {
	if syscall.Kill(pid, 0) != nil {
		return false
	}
	commandLine, err := os.ReadFile(fmt.Sprintf("/proc/%d/cmdline", pid))
	return err != nil || len(commandLine) > 0
}
