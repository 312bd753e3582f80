package policy

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
)

var start = time.Date(2026, 1, 2, 3, 4, 0, 0, time.UTC)

// passesIn returns when passes start in a window that opens at start, each of which takes that long.
func passesIn(s Schedule, window, takes time.Duration) []time.Duration {
	var starts []time.Duration
	for next := start; len(starts) < 10 && s.Fits(next, start, window); {
		starts = append(starts, next.Sub(start))
		done := next.Add(takes)
		if next = s.Next(next); next.Before(done) {
			next = done
		}
	}
	return starts
}

func TestPassesFillTheirWindow(t *testing.T) {
	const s = time.Second
	for name, test := range map[string]struct {
		interval, window, takes time.Duration
		want                    []time.Duration
	}{
		"a one-minute CronJob reaches an interval of 30s":       {30 * s, 55 * s, 2 * s, []time.Duration{0, 30 * s}},
		"a window of the whole minute makes no third pass":      {30 * s, 60 * s, 2 * s, []time.Duration{0, 30 * s}},
		"an interval longer than the window makes one pass":     {5 * time.Minute, 55 * s, 2 * s, []time.Duration{0}},
		"a short interval fills it":                             {10 * s, 55 * s, 2 * s, []time.Duration{0, 10 * s, 20 * s, 30 * s, 40 * s, 50 * s}},
		"a pass that overruns its interval is followed at once": {10 * s, 55 * s, 25 * s, []time.Duration{0, 25 * s, 50 * s}},
		"a pass that overruns the window is the last":           {30 * s, 55 * s, 70 * s, []time.Duration{0}},
	} {
		t.Run(name, func(t *testing.T) {
			assert.Equal(t, test.want, passesIn(Schedule{Enabled: true, Interval: test.interval}, test.window, test.takes))
		})
	}
	t.Run("a window of zero never closes", func(t *testing.T) {
		assert.Len(t, passesIn(Schedule{Enabled: true, Interval: time.Hour}, 0, 2*s), 10)
	})
}

func TestTheScheduleIsThePolicysOrTheDefault(t *testing.T) {
	policy := &SyncPolicy{}
	assert.Equal(t, Schedule{Enabled: true, Interval: 30 * time.Second}, policy.Schedule())
	policy.Spec.DriftDetection = DriftDetection{Enabled: ptr.To(false), Interval: &metav1.Duration{Duration: time.Minute}}
	assert.Equal(t, Schedule{Enabled: false, Interval: time.Minute}, policy.Schedule())
}
