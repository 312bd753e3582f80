// Package tally shows what families of tests have counted, also where `go test` keeps the output of passed tests to itself.
package tally

import (
	"fmt"
	"os"
	"testing"
)

// Variable names the file that Line appends to, which `make test` prints at its end; unset, lines are in the tests' logs only.
const Variable = "SYNCPASS_TEST_TALLY"

// Line logs one line about a whole family of tests, such as how many crash points were tried.
func Line(t testing.TB, format string, args ...any) {
	t.Helper()
	t.Logf(format, args...)
	path := os.Getenv(Variable)
	if path == "" {
		return
	}
	// Packages are tested side by side: a line is one write to the end of the file.
	file, err := os.OpenFile(path, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
	if err != nil {
		t.Errorf("%s: %v", Variable, err)
		return
	}
	_, err = fmt.Fprintf(file, format+"\n", args...)
	if closeErr := file.Close(); err == nil {
		err = closeErr
	}
	if err != nil {
		t.Errorf("%s: %v", Variable, err)
	}
}
