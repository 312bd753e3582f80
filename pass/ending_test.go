package pass

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
)

func TestWhatOutlivesAPassEndsSoonerAfterASignal(t *testing.T) {
	signal := errors.Join(errors.New("SIGTERM"), context.Canceled)
	for name, test := range map[string]struct {
		end  func(context.Context) (context.Context, context.CancelFunc)
		want time.Duration
	}{
		"the pass was stopped": {func(ctx context.Context) (context.Context, context.CancelFunc) {
			ctx, cancel := context.WithCancelCause(ctx)
			cancel(signal)
			return ctx, func() {}
		}, recordWithin.stop},
		"its time was over": {func(ctx context.Context) (context.Context, context.CancelFunc) {
			return context.WithTimeout(ctx, 0)
		}, recordWithin.deadline},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				ended, cancel := test.end(t.Context())
				defer cancel()
				began := time.Now()
				ctx, stop := outliving(ended, recordWithin)
				defer stop()
				require.NoError(t, ctx.Err(), "it outlives the pass")
				<-ctx.Done()
				require.Equal(t, test.want, time.Since(began))
				require.ErrorIs(t, context.Cause(ctx), context.DeadlineExceeded)
			})
		})
	}
	require.Less(t, releaseWithin.stop, 5*time.Second)
}
