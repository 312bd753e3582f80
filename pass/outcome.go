package pass

import (
	"context"
	"errors"

	"github.com/syncpass/syncpass/pass/access"
	"github.com/syncpass/syncpass/pass/lease"
	"github.com/syncpass/syncpass/policy"
	"github.com/syncpass/syncpass/record"
	"github.com/syncpass/syncpass/record/store"
)

// InvalidError says that a pass cannot be made with the configuration that there is.
type InvalidError struct{ Err error }

func (e *InvalidError) Error() string { return e.Err.Error() }

// Unwrap returns the cause.
func (e *InvalidError) Unwrap() error { return e.Err }

// OutcomeOf is how a pass ends that err ended, and the one place that says so.
func OutcomeOf(err error) record.Outcome {
	var invalid *InvalidError
	var config *access.ConfigError
	var policyFaults *policy.InvalidError
	switch {
	case err == nil:
		return record.Completed
	case errors.As(err, &invalid), errors.As(err, &config), errors.As(err, &policyFaults), errors.Is(err, record.ErrNewerFormat),
		errors.Is(err, store.ErrTooLarge), errors.Is(err, record.ErrHistoryTooLarge):
		return record.Invalid
	// Before Canceled: a lost lease cancels the pass, and is a cancellation too.
	case errors.Is(err, lease.ErrHeld), errors.Is(err, lease.ErrLost), errors.Is(err, store.ErrSuperseded):
		return record.Locked
	case errors.Is(err, context.Canceled):
		return record.Stopped
	default:
		return record.Unreachable
	}
}

// outcome is how a pass ended that came to its end: the worst of what happened.
func outcome(stopped error, guarded bool, counts record.Counts) record.Outcome {
	switch {
	case stopped != nil:
		return OutcomeOf(stopped)
	case guarded:
		return record.Guarded
	case counts.Error > 0:
		return record.CompletedWithErrors
	default:
		return record.Completed
	}
}

// count adds up decisions.
func count(decisions []record.Decision, unchanged int) record.Counts {
	counts := record.Counts{Unchanged: unchanged}
	for _, d := range decisions {
		switch d.Action {
		case record.Create:
			counts.Create++
		case record.Update:
			counts.Update++
		case record.Delete:
			counts.Delete++
		default:
			counts.Skip++
		}
		if d.Error != "" {
			counts.Error++
		}
	}
	return counts
}
