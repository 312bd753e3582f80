package policy

import "time"

// Schedule is when passes are due while nobody starts them by hand.
type Schedule struct {
	// Enabled false means that no pass is due until the policy says otherwise.
	Enabled bool
	// Interval is the time from the start of one pass to the start of the next, at least MinInterval.
	Interval time.Duration
}

// Schedule returns the policy's driftDetection, with the defaults for what is not set.
func (s *SyncPolicy) Schedule() Schedule {
	schedule := Schedule{Enabled: DefaultEnabled, Interval: DefaultInterval}
	if enabled := s.Spec.DriftDetection.Enabled; enabled != nil {
		schedule.Enabled = *enabled
	}
	if interval := s.Spec.DriftDetection.Interval; interval != nil {
		schedule.Interval = interval.Duration
	}
	return schedule
}

// Next is when the pass after the one that started at last is due. After a pass that took longer than the interval
// this lies in the past: the next one is due at once.
func (s Schedule) Next(last time.Time) time.Time {
	return last.Add(s.Interval)
}

// Fits reports whether a pass that starts at next still belongs to the window of that length that opened at started.
// A pass due just as the window closes does not: it is the first one of whoever opens the next window. A window of
// zero never closes.
func (s Schedule) Fits(next, started time.Time, window time.Duration) bool {
	return window <= 0 || next.Before(started.Add(window))
}
