package main

import (
	"fmt"
	"os"
	"regexp"
	"runtime"
	"strconv"
	"strings"

	"github.com/syncpass/syncpass/e2e/cluster"
)

// Machine is where the results come from.
type Machine struct {
	CPU string `json:"cpu"`
	// Cores is how many threads the operating system runs at once.
	Cores int `json:"cores"`
	// RAMBytes is the memory in all; 0 where that is unknown.
	RAMBytes int64  `json:"ramBytes"`
	OS       string `json:"os"`
	Go       string `json:"go"`
	// Kubernetes is the version of both API servers.
	Kubernetes string `json:"kubernetes"`
	// Load is the load average of the last minute before the first row; above half of Cores the machine was not idle, and
	// the rows tell less.
	Load float64 `json:"load"`
}

func machine() Machine {
	m := Machine{
		CPU: "unknown CPU", Cores: runtime.NumCPU(), OS: runtime.GOOS + "/" + runtime.GOARCH,
		Go: runtime.Version(), Kubernetes: cluster.KubernetesVersion,
	}
	// Where there is no /proc, what is unknown stays so.
	if found := regexp.MustCompile(`(?m)^model name\s*:\s*(.+)$`).FindStringSubmatch(fileText("/proc/cpuinfo")); found != nil {
		m.CPU = found[1]
	}
	if found := regexp.MustCompile(`(?m)^MemTotal:\s*(\d+) kB$`).FindStringSubmatch(fileText("/proc/meminfo")); found != nil {
		kilobytes, _ := strconv.ParseInt(found[1], 10, 64)
		m.RAMBytes = kilobytes << 10
	}
	if fields := strings.Fields(fileText("/proc/loadavg")); len(fields) > 0 {
		m.Load, _ = strconv.ParseFloat(fields[0], 64)
	}
	return m
}

func fileText(path string) string {
	data, err := os.ReadFile(path)
	if err != nil {
		return ""
	}
	return string(data)
}

func (m Machine) String() string {
	text := fmt.Sprintf("%s, %d cores", m.CPU, m.Cores)
	if m.RAMBytes > 0 {
		text += fmt.Sprintf(", %d GiB", (m.RAMBytes+1<<29)>>30)
	}
	text += fmt.Sprintf(", %s, %s, Kubernetes %s", m.OS, m.Go, m.Kubernetes)
	if m.Load > float64(m.Cores)/2 {
		text += fmt.Sprintf("; NOT IDLE: load %.1f before the first row", m.Load)
	}
	return text
}
