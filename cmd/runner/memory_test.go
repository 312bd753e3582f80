package main

import (
	"math"
	"runtime"
	"runtime/debug"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestThePaceOfCollections(t *testing.T) {
	const unlimited = math.MaxInt64 >> 20
	for _, test := range []struct {
		name                       string
		inUse, taken, upTo, within int64 // MiB
	}{
		{"little is in use, and is left alone until much of it is garbage", 10, 36, 36, 104},
		{"less than the usual pace needs", 25, 36, 36, 104},
		{"a few thousand pairs", 50, 36, 70, 104},
		{"ten thousand", 70, 36, 84, 104},
		{"what was taken before is used", 40, 75, 75, 104},
		{"but no more than may be", 40, 300, 84, 104},
		{"more than collecting helps against", 78, 36, 109, unlimited},
		{"a hundred thousand", 600, 36, 840, unlimited},
	} {
		t.Run(test.name, func(t *testing.T) {
			percent, limit := pace(test.inUse<<20, test.taken<<20)
			assert.InDelta(t, test.upTo, test.inUse+test.inUse*int64(percent)/100, 1)
			assert.Equal(t, test.within, limit>>20)
		})
	}
	percent, _ := pace(0, 0)
	assert.Positive(t, percent)
}

// A process that waits for its next pass comes back to what a small one takes.
func TestWhatWasTakenIsGivenBackByAndBy(t *testing.T) {
	after := func(inUse, taken int64) int64 {
		percent, _ := pace(inUse, taken)
		return faded(inUse, percent)
	}
	taken := after(60<<20, smallHeap)
	require.Greater(t, taken, int64(80<<20))
	for range 200 {
		before := taken
		if taken = after(10<<20, taken); before > smallHeap+1<<20 {
			require.Less(t, taken, before)
		}
	}
	require.InDelta(t, smallHeap>>20, taken>>20, 1)
}

func TestThePaceIsSetAfterEachCollection(t *testing.T) {
	percent, limit := debug.SetGCPercent(100), debug.SetMemoryLimit(-1)
	t.Cleanup(func() {
		debug.SetGCPercent(percent)
		debug.SetMemoryLimit(limit)
	})
	collectSparingly()
	// asSet says whether the pace of this moment is that of what is in use, which other goroutines change.
	asSet := func() bool {
		runtime.GC()
		percent, limit := pace(heapInUse(), smallHeap)
		set := debug.SetGCPercent(percent)
		return debug.SetMemoryLimit(-1) == limit && max(set-percent, percent-set) <= percent/10
	}
	require.Eventually(t, asSet, 10*time.Second, 10*time.Millisecond)
	held := make([]byte, mediumHeap)
	require.Eventually(t, func() bool { return asSet() && heapInUse() > mediumHeap }, 10*time.Second, 10*time.Millisecond)
	runtime.KeepAlive(held)
}
