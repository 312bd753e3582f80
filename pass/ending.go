package pass

import (
	"context"
	"errors"
	"fmt"
	"time"
)

// within is how long something may take after a pass's time is over, and after it was told to stop.
type within struct{ deadline, stop time.Duration }

// What a pass still does then: the record, which must not be lost, the Events, which may, and giving back the Lease. After
// the deadline it fits into the grace that a container gets. After a signal the process ends within five seconds, also
// where an API server does not answer; what could not be recorded the next pass finds out.
var (
	recordWithin  = within{10 * time.Second, 4 * time.Second}
	eventsWithin  = within{13 * time.Second, 4400 * time.Millisecond}
	releaseWithin = within{16 * time.Second, 4800 * time.Millisecond}
)

// outliving is a context that ends a while after ctx does.
func outliving(ctx context.Context, w within) (context.Context, context.CancelFunc) {
	outlives, cancel := context.WithCancelCause(context.WithoutCancel(ctx))
	stop := context.AfterFunc(ctx, func() {
		while := w.deadline
		if errors.Is(context.Cause(ctx), context.Canceled) {
			while = w.stop
		}
		timer := time.NewTimer(while)
		defer timer.Stop()
		select {
		case <-timer.C:
			cancel(fmt.Errorf("not done %s after the end of the pass: %w", while, context.DeadlineExceeded))
		case <-outlives.Done():
		}
	})
	return outlives, func() {
		stop()
		cancel(context.Canceled)
	}
}
