package main

import (
	"bytes"
	"log/slog"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"

	"github.com/syncpass/syncpass/policy"
)

func TestAJobSurvivesAPanicAndIsNotJoinedByItself(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var log bytes.Buffer
		runs := 0
		job := guarded(slog.New(slog.NewTextHandler(&log, nil)), func() {
			runs++
			if runs == 1 {
				time.Sleep(time.Second)
				panic("index out of range")
			}
		})
		var first sync.WaitGroup
		first.Go(job.Run)
		synctest.Wait()
		job.Run()
		assert.Equal(t, 1, runs)
		assert.Contains(t, log.String(), "level=INFO msg=Cron event=skip")

		first.Wait()
		assert.Contains(t, log.String(), `level=ERROR msg=Cron event=panic error="index out of range"`)
		assert.Contains(t, log.String(), "cron_test.go", "the stack is in the log")
	})
}

func TestWhenATenantIsDue(t *testing.T) {
	start := time.Date(2026, 3, 1, 12, 0, 0, 500, time.UTC)
	at := func(d time.Duration) time.Time { return start.Add(d) }
	fits := func(next time.Time) bool { return next.Before(at(55 * time.Second)) }
	for _, tt := range []struct {
		name       string
		first, now time.Time
		want       time.Time
	}{
		{"at the first time", at(10 * time.Second), start, at(10 * time.Second)},
		{"at once, where the first time is past", start, at(70 * time.Second), at(70 * time.Second)},
		{"never, where the first time does not fit", at(55 * time.Second), start, time.Time{}},
		{"at the interval", time.Time{}, at(20 * time.Second), at(50 * time.Second)},
		{"never, where the interval does not fit", time.Time{}, at(25 * time.Second), time.Time{}},
	} {
		d := &due{first: tt.first, every: policy.Schedule{Enabled: true, Interval: 30 * time.Second}, fits: fits}
		assert.Equal(t, tt.want, d.Next(tt.now), tt.name)
	}
}
