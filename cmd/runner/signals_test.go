package main

import (
	"context"
	"errors"
	"os"
	"syscall"
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/syncpass/syncpass/pass/access"
)

func TestTheFirstSignalStopsCleanlyAndTheSecondAtOnce(t *testing.T) {
	signals, exits := make(chan os.Signal), make(chan int)
	ctx, stop := stopOnSignal(t.Context(), signals, func(code int) { exits <- code })
	assert.NoError(t, ctx.Err())

	signals <- syscall.SIGTERM
	<-ctx.Done()
	cause := context.Cause(ctx)
	assert.Equal(t, stopSignal{syscall.SIGTERM}, cause)
	assert.ErrorIs(t, cause, context.Canceled)
	assert.False(t, access.Unreachable(cause), "a stop is nothing that an API server did")
	assert.Equal(t, "stopped by a signal: terminated", cause.Error())

	signals <- os.Interrupt
	assert.Equal(t, 130, <-exits)
	stop()
}

func TestWithoutASignalTheWatchEnds(t *testing.T) {
	ctx, stop := stopOnSignal(t.Context(), make(chan os.Signal), nil)
	stop()
	assert.ErrorIs(t, ctx.Err(), context.Canceled)
	assert.False(t, errors.As(context.Cause(ctx), new(stopSignal)))
}
