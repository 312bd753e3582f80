package main

import (
	"fmt"
	"runtime"
	"runtime/debug"
)

// version is set when a release is built: -ldflags "-X main.version=v1.2.3". Without it, what the Go toolchain knows
// about the module's version stands in.
var version string

// build is what a binary knows about its own making.
type build struct{ version, commit string }

func thisBuild() build {
	b := build{version: version, commit: "unknown"}
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return b
	}
	if b.version == "" {
		b.version = info.Main.Version
	}
	dirty := ""
	for _, setting := range info.Settings {
		switch setting.Key {
		case "vcs.revision":
			b.commit = setting.Value
		case "vcs.modified":
			if setting.Value == "true" {
				dirty = ", modified"
			}
		}
	}
	b.commit += dirty
	return b
}

func (b build) String() string {
	return fmt.Sprintf("runner %s (commit %s, %s %s/%s)", b.version, b.commit, runtime.Version(), runtime.GOOS, runtime.GOARCH)
}

// userAgent names this program to API servers, and in the managedFields of what it writes.
func (b build) userAgent() string { return "syncpass/" + b.version }
