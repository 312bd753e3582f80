//go:build linux

// Package main is the first process of a machine; see package machine.
package main

import (
	"fmt"
	"os"

	"github.com/syncpass/syncpass/e2e/node/machine"
)

func main() {
	if err := machine.Serve(os.Stdin, os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}
