package main

import (
	"context"
	"log/slog"
	"time"

	"github.com/syncpass/syncpass/policy"
)

// due is the cron schedule of one tenant: first at a given time, which may be past, then at the policy's interval. A
// time that does not fit into the window is never due. It is made of numbers: the cron's own parser of strings panics
// on some of them (https://github.com/robfig/cron/issues/554).
type due struct {
	first time.Time
	every policy.Schedule
	fits  func(time.Time) bool
}

// Next implements cron.Schedule. The cron calls it from one goroutine.
func (d *due) Next(now time.Time) time.Time {
	next := d.every.Next(now)
	if !d.first.IsZero() {
		next, d.first = d.first, time.Time{}
	}
	if !d.fits(next) {
		return time.Time{} // never, to the cron
	}
	if next.Before(now) {
		return now
	}
	return next
}

// cronLog writes the cron's log to ours. It implements cron.Logger.
type cronLog struct {
	log *slog.Logger
	// level of what the cron takes for information.
	level slog.Level
}

// Info implements cron.Logger.
func (l cronLog) Info(message string, keysAndValues ...any) {
	l.log.Log(context.Background(), l.level, "Cron", append([]any{"event", message}, keysAndValues...)...)
}

// Error implements cron.Logger.
func (l cronLog) Error(err error, message string, keysAndValues ...any) {
	l.log.Error("Cron", append([]any{"event", message, "error", err}, keysAndValues...)...)
}
