package main

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"syscall"
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/syncpass/syncpass/pass"
	"github.com/syncpass/syncpass/record"
)

func resultsOf(outcomes ...record.Outcome) []pass.Result {
	var results []pass.Result
	for _, outcome := range outcomes {
		results = append(results, pass.Result{Outcome: outcome})
	}
	return results
}

func TestExitCodes(t *testing.T) {
	differing := []pass.Result{{Outcome: record.Completed, Counts: record.Counts{Delete: 1}}}
	skipping := []pass.Result{{Outcome: record.Completed, Counts: record.Counts{Skip: 3, Unchanged: 5}}}
	tests := []struct {
		name        string
		err, cause  error
		results     []pass.Result
		differences bool
		want        int
	}{
		{name: "nothing to do", want: 0},
		{name: "complete", results: resultsOf(record.Completed), want: 0},
		{name: "complete with errors", results: resultsOf(record.CompletedWithErrors), want: 3},
		{name: "guarded", results: resultsOf(record.Guarded), want: 4},
		{name: "invalid", results: resultsOf(record.Invalid), want: 5},
		{name: "locked", results: resultsOf(record.Locked), want: 6},
		{name: "unreachable", results: resultsOf(record.Unreachable), want: 7},
		{name: "panicked", results: resultsOf(outcomeFailed), want: 1},
		{name: "an outcome nobody knows", results: resultsOf("Puzzled"), want: 1},
		{name: "stopped by SIGINT", cause: stopSignal{syscall.SIGINT}, results: resultsOf(record.Stopped), want: 130},
		{name: "stopped by SIGTERM", cause: fmt.Errorf("pass: %w", stopSignal{syscall.SIGTERM}), results: resultsOf(record.Stopped), want: 143},
		{name: "a signal that came after the last write", cause: stopSignal{syscall.SIGTERM}, results: resultsOf(record.Completed), want: 0},
		{name: "stopped by nobody", results: resultsOf(record.Stopped), want: 1},
		{name: "the highest of several tenants", results: resultsOf(record.Guarded, record.Unreachable, record.Completed, outcomeFailed), want: 7},
		{name: "differences not asked for", results: differing, want: 0},
		{name: "differences asked for", results: differing, differences: true, want: 10},
		{name: "skips are no differences", results: skipping, differences: true, want: 0},
		{name: "an error that says nothing more", err: errors.New("disk full"), want: 1},
		{name: "an error that knows its code", err: fmt.Errorf("starting: %w", invalid(errors.New("bad"))), want: 5},
		{name: "the higher of error and results", err: errors.New("disk full"), results: resultsOf(record.Guarded), want: 4},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			assert.Equal(t, tt.want, exitCode(tt.err, tt.cause, tt.results, tt.differences))
		})
	}
}

func TestFailuresOfTheHostAreClassed(t *testing.T) {
	stopped, cancel := context.WithCancelCause(t.Context())
	cancel(stopSignal{syscall.SIGTERM})
	refused := &url.Error{Op: "Get", URL: "https://host", Err: syscall.ECONNREFUSED}
	assert.Equal(t, 7, exitCode(hostFailure(t.Context(), refused), nil, nil, false))
	assert.Equal(t, 143, exitCode(hostFailure(stopped, refused), nil, nil, false))
	assert.Equal(t, 5, exitCode(hostFailure(t.Context(), errors.New("forbidden")), nil, nil, false))
}
