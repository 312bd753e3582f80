package scenario

import (
	"bytes"
	"context"
	"fmt"
	"strings"

	"github.com/syncpass/syncpass/e2e/proxy"
)

// faults are what of a step's expectations does not hold.
type faults []string

func (f faults) Error() string { return strings.Join(f, "\n") }

// or is nil if nothing is at fault.
func (f faults) or() error {
	if len(f) == 0 {
		return nil
	}
	return f
}

// pass runs one of the verbs pass and plan.
func (r *run) pass(ctx context.Context, verb string, want Pass) error {
	if before := r.runner.env.Before; before != nil {
		err := before(ctx, func(env map[string]string, args ...string) (*Result, error) { return r.aside(ctx, env, args...) })
		if err != nil {
			return err
		}
	}
	if err := r.binary(ctx, nil, verb, "-o", "json"); err != nil {
		return err
	}
	var found faults
	if r.last.Exit != want.Exit {
		found = append(found, fmt.Sprintf("exit: want %d, got %d", want.Exit, r.last.Exit))
	}
	got, err := parseOutput(r.last.Stdout, verb == "plan")
	if err != nil {
		found = append(found, err.Error())
		return found
	}
	r.made, r.planID = got.Decisions, got.PlanID
	return append(found, want.check(got, proxy.Writes(r.last.Requests))...).or()
}

// other runs the binary in any other way.
func (r *run) other(ctx context.Context, want Run) error {
	if err := r.binary(ctx, want.Env, want.Args...); err != nil {
		return err
	}
	var found faults
	if r.last.Exit != want.Exit {
		found = append(found, fmt.Sprintf("exit: want %d, got %d", want.Exit, r.last.Exit))
	}
	contains := func(stream string, data []byte, substrings []string) {
		for _, s := range substrings {
			if !bytes.Contains(data, []byte(s)) {
				found = append(found, fmt.Sprintf("%s: %q is not in it", stream, s))
			}
		}
	}
	contains("stdout", r.last.Stdout, want.Stdout)
	contains("stderr", r.last.Stderr, want.Stderr)
	for _, s := range want.NotStdout {
		if bytes.Contains(r.last.Stdout, []byte(s)) {
			found = append(found, fmt.Sprintf("stdout: %q is in it and must not be", s))
		}
	}
	return found.or()
}
