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

func TestGarbageIsCollectedAtAPaceOnceMuchIsInUse(t *testing.T) {
	percent, limit := debug.SetGCPercent(100), debug.SetMemoryLimit(-1)
	defer func() {
		debug.SetGCPercent(percent)
		debug.SetMemoryLimit(limit)
	}()
	paced := func() bool { return debug.SetMemoryLimit(-1) == math.MaxInt64 }
	runtime.GC()
	require.Less(t, heapInUse(), uint64(largeHeap), "what other tests hold")
	debug.SetMemoryLimit(1 << 30)
	collectSparingly()
	for range 3 {
		runtime.GC()
		runtime.Gosched()
	}
	assert.False(t, paced(), "little is in use")

	held := make([]byte, largeHeap)
	require.Eventually(t, func() bool { runtime.GC(); return paced() }, 10*time.Second, 10*time.Millisecond)
	assert.Equal(t, largePace, debug.SetGCPercent(largePace))
	runtime.KeepAlive(held)
}
