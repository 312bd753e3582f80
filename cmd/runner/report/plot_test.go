package report

import (
	"math"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"pgregory.net/rapid"

	"github.com/syncpass/syncpass/record"
)

func TestThePlotHasEveryDecisionOnceAndStaysInItsPicture(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var entries []record.Entry
		for range rapid.IntRange(1, 60).Draw(t, "entries") {
			// From centuries before to years ahead of this clock.
			age := time.Duration(rapid.Int64Range(-1<<56, math.MaxInt64).Draw(t, "age"))
			if rapid.Bool().Draw(t, "recent") {
				age %= 48 * time.Hour
			}
			entries = append(entries, record.Entry{Time: metav1.NewMicroTime(now.Add(-age)), Action: rapid.SampledFrom(series).Draw(t, "action")})
		}
		p := plotOf(entries, now)
		require.Equal(t, len(entries), p.All)
		require.LessOrEqual(t, len(p.Buckets), maxBuckets)
		sum := 0
		for _, b := range p.Buckets {
			sum += b.All
		}
		require.Equal(t, len(entries), sum)
		for _, b := range p.Bars {
			require.Greater(t, b.Height, 0.0)
			require.GreaterOrEqual(t, b.X, float64(plotLeft))
			require.LessOrEqual(t, b.X+b.Width, float64(plotRight)+0.02)
			require.GreaterOrEqual(t, b.Y, float64(plotTop)-0.01)
			require.LessOrEqual(t, b.Y+b.Height, float64(plotBottom)+0.02)
		}
		require.LessOrEqual(t, len(p.Lines), 6)
		require.Len(t, []rune(p.spark()), len(p.Buckets))
	})
	require.Nil(t, plotOf(nil, now))
}

func TestABarStandsForARoundTime(t *testing.T) {
	for _, test := range []struct {
		span time.Duration
		want string
	}{
		{0, "1m"}, {40 * time.Minute, "1m"}, {3 * time.Hour, "5m"}, {26 * time.Hour, "1h"}, {30 * 24 * time.Hour, "1d"}, {40 * 24 * time.Hour, "1d"},
		{10 * 365 * 24 * time.Hour, "112d"},
	} {
		step, start, n := buckets(now.Add(-test.span), now)
		require.Equal(t, test.want, spell(step), test.span)
		require.LessOrEqual(t, n, maxBuckets)
		require.False(t, start.After(now.Add(-test.span)))
		require.True(t, start.Add(time.Duration(n)*step).After(now))
	}
}

func TestTheGridHasFewLines(t *testing.T) {
	for highest, want := range map[int]int{1: 1, 5: 1, 6: 2, 10: 2, 11: 5, 25: 5, 26: 10, 99: 20, 10000: 2000} {
		require.Equal(t, want, gridUnit(highest), highest)
	}
}
