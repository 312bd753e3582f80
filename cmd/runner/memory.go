package main

import (
	"math"
	"runtime"
	"runtime/debug"
	"runtime/metrics"
)

const (
	// smallMemory is what a process may take before garbage is collected at all, in bytes, and smallHeap how much of it the
	// heap may. It is what a pass over a few thousand pairs takes of a Pod that must ask for more in any case.
	smallMemory = 48 << 20
	smallHeap   = 36 << 20
	// mediumMemory is what a pass over ten thousand pairs may take, in bytes, and mediumHeap what its heap is to stay below,
	// as long as leastPace allows.
	mediumMemory = 104 << 20
	mediumHeap   = 84 << 20
	// usualPace is how much of what is in use may come on top as garbage, in percent. Less than Go's 100, since a pass
	// holds much for a short time: it costs a few percent of the processor time, and saves a third of the memory.
	usualPace = 40
	// leastPace is the least that may, in percent: to collect more often takes more time than the memory is worth.
	leastPace = 10
	// fading is the part of what the heap was let grow to beyond smallHeap that is given up with each collection: a
	// pass that has taken memory goes on with it instead of collecting more often, and a process that waits for its next
	// pass comes down again.
	fading = 1.0 / 32
)

// collectSparingly sets the pace of garbage collection, after each one anew.
func collectSparingly() {
	debug.SetGCPercent(-1)
	debug.SetMemoryLimit(smallMemory)
	taken := int64(smallHeap)
	afterEachCollection(func() {
		inUse := heapInUse()
		percent, limit := pace(inUse, taken)
		taken = faded(inUse, percent)
		debug.SetGCPercent(percent)
		debug.SetMemoryLimit(limit)
	})
}

// pace is how much may come on top of what a collection has left in use, in percent, and how much memory may be taken, in
// bytes. taken is what the heap was let grow to before, as far as that has not faded, in bytes.
func pace(inUse, taken int64) (percent int, limit int64) {
	upTo := func(heap int64) int { return int((heap - inUse) * 100 / max(inUse, 1)) }
	if most := upTo(mediumHeap); most >= leastPace {
		return max(min(max(usualPace, upTo(taken)), most), upTo(smallHeap)), mediumMemory
	}
	return usualPace, math.MaxInt64
}

// faded is what the next collection finds taken after this pace, in bytes.
func faded(inUse int64, percent int) int64 {
	taken := inUse + inUse*int64(percent)/100
	return taken - int64(float64(taken-smallHeap)*fading)
}

// afterEachCollection calls f after each garbage collection, which finds something that nobody refers to.
func afterEachCollection(f func()) {
	runtime.AddCleanup(new(*int), func(struct{}) {
		f()
		afterEachCollection(f)
	}, struct{}{})
}

// heapInUse is what the last collection left, in bytes.
func heapInUse() int64 {
	sample := []metrics.Sample{{Name: "/gc/heap/live:bytes"}}
	metrics.Read(sample)
	return int64(sample[0].Value.Uint64())
}
