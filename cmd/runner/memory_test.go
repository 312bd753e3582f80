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
		name                string
		inUse, upTo, within int64 // MiB
	}{
		{"little is in use, and is left alone until much of it is garbage", 10, 36, 104},
		{"less than the usual pace needs", 25, 36, 104},
		{"a few thousand pairs", 50, 70, 104},
		{"ten thousand", 70, 84, 104},
		{"more than collecting helps against", 78, 109, unlimited},
		{"a hundred thousand", 600, 840, unlimited},
	} {
		t.Run(test.name, func(t *testing.T) {
			percent, limit := pace(test.inUse << 20)
			assert.InDelta(t, test.upTo, test.inUse+test.inUse*int64(percent)/100, 1)
			assert.Equal(t, test.within, limit>>20)
		})
	}
	percent, _ := pace(0)
	assert.Positive(t, percent)
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
		percent, limit := pace(heapInUse())
		set := debug.SetGCPercent(percent)
		return debug.SetMemoryLimit(-1) == limit && max(set-percent, percent-set) <= percent/10
	}
	require.Eventually(t, asSet, 10*time.Second, 10*time.Millisecond)
	held := make([]byte, mediumHeap)
	require.Eventually(t, func() bool { return asSet() && heapInUse() > mediumHeap }, 10*time.Second, 10*time.Millisecond)
	runtime.KeepAlive(held)
}
