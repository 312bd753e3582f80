package policy

import (
	"testing"
	"time"

	"github.com/robfig/cron/v3"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

func TestCronFor(t *testing.T) {
	const day = 24 * time.Hour
	for _, tt := range []struct {
		name     string
		interval time.Duration
		want     Cron
	}{
		{"what is due within a minute is the Job's", time.Second, Cron{"* * * * *", time.Minute, false}},
		{"the default", 30 * time.Second, Cron{"* * * * *", time.Minute, false}},
		{"a minute", time.Minute, Cron{"* * * * *", time.Minute, true}},
		{"a minute and a half is a minute", 90 * time.Second, Cron{"* * * * *", time.Minute, false}},
		{"5m divides the hour", 5 * time.Minute, Cron{"*/5 * * * *", 5 * time.Minute, true}},
		{"7m does not", 7 * time.Minute, Cron{"*/7 * * * *", 7 * time.Minute, false}},
		{"seconds are no minutes", 5*time.Minute + 30*time.Second, Cron{"*/5 * * * *", 5 * time.Minute, false}},
		{"45m is followed by 15m", 45 * time.Minute, Cron{"*/45 * * * *", 45 * time.Minute, false}},
		{"an hour", time.Hour, Cron{"0 * * * *", time.Hour, true}},
		{"90m is an hour", 90 * time.Minute, Cron{"0 * * * *", time.Hour, false}},
		{"6h divides the day", 6 * time.Hour, Cron{"0 */6 * * *", 6 * time.Hour, true}},
		{"5h does not", 5 * time.Hour, Cron{"0 */5 * * *", 5 * time.Hour, false}},
		{"a day", day, Cron{"0 0 * * *", day, true}},
		{"36h is a day", 36 * time.Hour, Cron{"0 0 * * *", day, false}},
		{"days begin anew with the month", 3 * day, Cron{"0 0 */3 * *", 3 * day, false}},
		{"a week", 7 * day, Cron{"0 0 * * 0", 7 * day, true}},
		{"cron counts to a month", 31 * day, Cron{"0 0 1 * *", 31 * day, false}},
		{"and no further", 400 * day, Cron{"0 0 1 * *", 31 * day, false}},
	} {
		t.Run(tt.name, func(t *testing.T) { assert.Equal(t, tt.want, CronFor(tt.interval)) })
	}
}

// The parser is the one of the CronJob controller (https://github.com/kubernetes/kubernetes/tree/master/pkg/controller/cronjob).
func TestCronNeverWaitsLongerThanTheInterval(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		interval := time.Duration(rapid.Int64Range(int64(MinInterval), int64(60*24*time.Hour)).Draw(t, "interval")).Truncate(time.Second)
		if rapid.Bool().Draw(t, "whole minutes") {
			interval = max(interval.Truncate(time.Minute), time.Minute)
		}
		got := CronFor(interval)
		schedule, err := cron.ParseStandard(got.Expression)
		require.NoError(t, err)
		at := time.Date(2027, 1, 1, 0, 0, 0, 0, time.UTC).Add(-time.Second)
		at = schedule.Next(at)
		longest, even := time.Duration(0), true
		for range 200 {
			next := schedule.Next(at)
			gap := next.Sub(at)
			longest, even = max(longest, gap), even && gap == interval
			at = next
		}
		require.LessOrEqual(t, longest, max(interval, time.Minute), "no pass is later than asked for")
		require.Equal(t, longest, got.Longest)
		require.Equal(t, even, got.Even)
	})
}
