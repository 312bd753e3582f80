package main

import (
	"context"
	"errors"
	"fmt"

	"github.com/syncpass/syncpass/pass"
	"github.com/syncpass/syncpass/pass/access"
	"github.com/syncpass/syncpass/record"
)

// The exit codes. 2 is not among them: a Go panic ends a process with it. A process stopped by a signal ends with
// 128 plus the signal's number, after it has recorded what it did.
const (
	exitOK          = 0
	exitUnexpected  = 1
	exitErrors      = 3
	exitGuarded     = 4
	exitInvalid     = 5
	exitLocked      = 6
	exitUnreachable = 7
	exitDifferences = 10
	exitSignal      = 128
)

// exitCodes says what each code means, for people.
var exitCodes = []struct{ code, meaning string }{
	{"0", "complete; open conflicts do not fail a pass"},
	{"1", "unexpected error"},
	{"2", "reserved: a Go panic"},
	{"3", "complete, but at least one object failed"},
	{"4", "a guard withheld something"},
	{"5", "configuration or policy invalid"},
	{"6", "another pass holds the lease"},
	{"7", "an API server unreachable, or the deadline passed"},
	{"10", "plan --exit-code found differences"},
	{"130, 143", "stopped by SIGINT or SIGTERM, after a clean stop"},
}

// outcomeFailed is the outcome of a pass that ended in a way that no outcome of package record stands for: a panic.
const outcomeFailed record.Outcome = "Failed"

// failure is an error that knows the exit code it leads to.
type failure struct {
	code int
	// err is what is printed; nil where the results, printed elsewhere, say it all.
	err error
}

func (f *failure) Error() string {
	if f.err == nil {
		return fmt.Sprintf("exit code %d", f.code)
	}
	return f.err.Error()
}

func (f *failure) Unwrap() error { return f.err }

// exitCode turns what happened into the number that the process ends with: the highest of what err and the results ask
// for. cause is why the context of the passes was cancelled, nil if it was not. In a dry run with differences asked
// for, planned writes count, and so does what nobody could tell.
func exitCode(err, cause error, results []pass.Result, differences bool) int {
	code := exitOK
	if err != nil {
		code = exitUnexpected
		if f := (*failure)(nil); errors.As(err, &f) {
			code = f.code
		}
	}
	for _, r := range results {
		code = max(code, outcomeCode(r.Outcome, cause))
		if differences && r.Counts.Create+r.Counts.Update+r.Counts.Delete+r.Undecided > 0 {
			code = max(code, exitDifferences)
		}
	}
	return code
}

func outcomeCode(outcome record.Outcome, cause error) int {
	switch outcome {
	case record.Completed:
		return exitOK
	case record.CompletedWithErrors:
		return exitErrors
	case record.Guarded:
		return exitGuarded
	case record.Invalid:
		return exitInvalid
	case record.Locked:
		return exitLocked
	case record.Unreachable:
		return exitUnreachable
	case record.Stopped:
		if s := (stopSignal{}); errors.As(cause, &s) {
			return s.exitCode()
		}
	}
	return exitUnexpected
}

// invalid marks err as a fault of the configuration.
func invalid(err error) error { return &failure{code: exitInvalid, err: err} }

// hostFailure classes an error of a request to the host cluster.
func hostFailure(ctx context.Context, err error) error {
	f := &failure{code: exitInvalid, err: err}
	s := stopSignal{}
	switch {
	case errors.As(context.Cause(ctx), &s):
		f.code = s.exitCode()
	case access.Unreachable(err):
		f.code = exitUnreachable
	}
	return f
}
