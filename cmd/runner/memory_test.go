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

// sparing is what collectSparingly is called in, and whether it has come to its pace.
func sparing(t *testing.T) (paced func() bool) {
	percent, limit := debug.SetGCPercent(100), debug.SetMemoryLimit(-1)
	t.Cleanup(func() {
		debug.SetGCPercent(percent)
		debug.SetMemoryLimit(limit)
	})
	runtime.GC()
	require.Less(t, heapInUse(), uint64(largeHeap), "what other tests hold")
	collectSparingly()
	return func() bool { return debug.SetMemoryLimit(-1) == math.MaxInt64 }
}

func TestALimitThatCollectionsDoNotHelpAgainstIsGivenUp(t *testing.T) {
	paced := sparing(t)
	require.Eventually(t, func() bool { runtime.GC(); return paced() }, 10*time.Second, time.Millisecond)
}

func TestGarbageIsCollectedAtAPaceOnceMuchIsInUse(t *testing.T) {
	paced := sparing(t)
	runtime.GC()
	assert.False(t, paced(), "little is in use")

	held := make([]byte, largeHeap)
	require.Eventually(t, func() bool { runtime.GC(); return paced() }, 10*time.Second, 10*time.Millisecond)
	assert.Equal(t, largePace, debug.SetGCPercent(largePace))
	runtime.KeepAlive(held)
}
