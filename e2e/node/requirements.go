package node

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"

	"github.com/syncpass/syncpass/e2e/node/machine"
)

// packages are the Debian packages that a node is made of, besides those that
// every Debian has.
var packages = []string{"containerd", "runc", "containernetworking-plugins", "iptables", "iproute2"}

// programs are looked for on PATH.
var programs = []string{"containerd", "containerd-shim-runc-v2", "ctr", "runc", "iptables", "iptables-restore", "ip",
	"mount", "nsenter"}

// pluginFolders are where distributions, and the project itself, install CNI plugins.
var pluginFolders = []string{"/usr/lib/cni", "/opt/cni/bin", "/usr/libexec/cni"}

// plugins are those that the node's network is made of.
var plugins = []string{"ptp", "host-local", "portmap", "loopback"}

const cgroupFolder = "/sys/fs/cgroup"

// Requirements returns what this machine lacks to run a node, each with what to do
// about it; nothing if a node can run. A test that needs a node skips with them.
func Requirements() []string {
	if runtime.GOOS != "linux" {
		return []string{"a node needs Linux: run the tests in a virtual machine"}
	}
	if os.Geteuid() != 0 {
		return []string{"a node needs root: run the tests as root, in a virtual machine for example"}
	}
	var missing []string
	for _, program := range programs {
		if _, err := exec.LookPath(program); err != nil {
			missing = append(missing, program)
		}
	}
	if pluginFolder() == "" {
		missing = append(missing, "the CNI plugins "+strings.Join(plugins, ", "))
	}
	var lacks []string
	if len(missing) > 0 {
		lacks = append(lacks, fmt.Sprintf("a node needs %s: apt-get install --no-install-recommends %s",
			strings.Join(missing, ", "), strings.Join(packages, " ")))
	}
	if err := machine.Supported(); err != nil {
		lacks = append(lacks, fmt.Sprintf("a node needs namespaces of its own (%v): in a container, that takes --privileged", err))
	}
	if err := tryCgroups(); err != nil {
		lacks = append(lacks, fmt.Sprintf("a node needs control groups of its own (%v): in a container, that takes --privileged", err))
	}
	return lacks
}

// pluginFolder returns the folder that has all plugins, or "".
func pluginFolder() string {
	for _, folder := range pluginFolders {
		if hasPlugins(folder) {
			return folder
		}
	}
	return ""
}

func hasPlugins(folder string) bool {
	for _, plugin := range plugins {
		if _, err := os.Stat(filepath.Join(folder, plugin)); err != nil {
			return false
		}
	}
	return true
}
