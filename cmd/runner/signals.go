package main

import (
	"context"
	"os"
	"syscall"
)

// stopSignal is the cause of a context that a signal cancelled.
type stopSignal struct{ signal syscall.Signal }

func (s stopSignal) Error() string { return "stopped by a signal: " + s.signal.String() }

// Is makes the cause a cancellation like any other.
func (s stopSignal) Is(target error) bool { return target == context.Canceled }

// exitCode is what a shell reports for a process that the signal ended.
func (s stopSignal) exitCode() int { return exitSignal + int(s.signal) }

// stopOnSignal returns a context that the first signal cancels, so that passes stop writing, record what they did, and
// return. The second signal calls exit at once. The returned function ends the watch, and waits for its end.
func stopOnSignal(parent context.Context, signals <-chan os.Signal, exit func(code int)) (context.Context, func()) {
	ctx, cancel := context.WithCancelCause(parent)
	ended, watched := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(watched)
		for {
			select {
			case <-ended:
				return
			case received := <-signals:
				number, _ := received.(syscall.Signal)
				stop := stopSignal{number}
				if ctx.Err() != nil {
					exit(stop.exitCode())
					return
				}
				cancel(stop)
			}
		}
	}()
	return ctx, func() {
		close(ended)
		<-watched
		cancel(context.Canceled)
	}
}
