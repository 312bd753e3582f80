package policy

import (
	"fmt"
	"time"
)

// Cron is a schedule in the five fields of cron, as a CronJob takes them.
type Cron struct {
	Expression string
	// Longest is the longest time between two starts that the expression leads to.
	Longest time.Duration
	// Even says that every two starts are exactly the interval apart that was asked for.
	Even bool
}

// CronFor is the sparsest schedule of cron that never waits longer than the interval: its nearest step that is not longer,
// and a minute where the interval is shorter than that (what is due within the minute is for the Job to do itself). Cron
// counts its steps from the full hour, from midnight, and from the first of the month, so a step that does not divide
// these is followed by a shorter one there.
//
//	interval     | expression    | starts
//	------------ | ------------- | ---------------------------------------------
//	below 2m     | * * * * *     | every minute
//	5m           | */5 * * * *   | every 5 minutes
//	7m           | */7 * * * *   | every 7 minutes, 4 minutes before a full hour
//	90m          | 0 * * * *     | every hour: cron has no step of one and a half
//	6h           | 0 */6 * * *   | every 6 hours
//	24h          | 0 0 * * *     | every midnight
//	72h          | 0 0 */3 * *   | every third day of a month, and every first
//	7 days       | 0 0 * * 0     | every Sunday
//	above 31d    | 0 0 1 * *     | every first of a month: cron counts no further
func CronFor(interval time.Duration) Cron {
	const day = 24 * time.Hour
	switch {
	case interval < 2*time.Minute:
		return Cron{Expression: "* * * * *", Longest: time.Minute, Even: interval == time.Minute}
	case interval < time.Hour:
		return steps("*/%d * * * *", interval, time.Minute, time.Hour)
	case interval < 2*time.Hour:
		return Cron{Expression: "0 * * * *", Longest: time.Hour, Even: interval == time.Hour}
	case interval < day:
		return steps("0 */%d * * *", interval, time.Hour, day)
	case interval < 2*day:
		return Cron{Expression: "0 0 * * *", Longest: day, Even: interval == day}
	case interval == 7*day:
		return Cron{Expression: "0 0 * * 0", Longest: interval, Even: true}
	case interval < 31*day:
		s := steps("0 0 */%d * *", interval, day, 31*day)
		s.Even = false // months differ in length
		return s
	}
	return Cron{Expression: "0 0 1 * *", Longest: 31 * day}
}

// steps is the schedule whose step is the whole units of the interval, begun anew with every period.
func steps(format string, interval, unit, period time.Duration) Cron {
	count := interval / unit
	step := count * unit
	return Cron{Expression: fmt.Sprintf(format, count), Longest: step, Even: step == interval && period%step == 0}
}
