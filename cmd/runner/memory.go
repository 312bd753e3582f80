package main

import (
	"math"
	"runtime"
	"runtime/debug"
	"runtime/metrics"
)

const (
	// smallMemory is what a process may take before garbage is collected at all, in bytes. It is what a pass over a few
	// thousand pairs takes of a Pod that must ask for more in any case.
	smallMemory = 48 << 20
	// largeHeap is from where on so little of smallMemory is free that a pace by what is in use is the better one.
	largeHeap = smallMemory / 2
	// fewCollections is how many collections a process that takes little comes to. One that comes to more takes much one
	// after the other, or smallMemory with something else than its heap, and then the limit alone would never let it be.
	fewCollections = 10
	// largePace is how much of what is in use may come on top as garbage, in percent. Less than Go's 100, since a pass
	// holds much for a short time: it costs a few percent of the processor time, and saves a third of the memory.
	largePace = 40
)

// collectSparingly sets the pace of garbage collection: as memory runs short up to smallMemory, which most passes end
// below, and above by what is in use.
func collectSparingly() {
	debug.SetGCPercent(-1)
	debug.SetMemoryLimit(smallMemory)
	collections := 0
	afterCollection(func() (again bool) {
		if collections++; heapInUse() < largeHeap && collections < fewCollections {
			return true
		}
		debug.SetGCPercent(largePace)
		debug.SetMemoryLimit(math.MaxInt64)
		return false
	})
}

// afterCollection calls f after the next garbage collection, which finds something that nobody refers to, and as long as
// f returns true after each further one.
func afterCollection(f func() (again bool)) {
	runtime.AddCleanup(new(*int), func(struct{}) {
		if f() {
			afterCollection(f)
		}
	}, struct{}{})
}

// heapInUse is what the last collection left, in bytes.
func heapInUse() uint64 {
	sample := []metrics.Sample{{Name: "/gc/heap/live:bytes"}}
	metrics.Read(sample)
	return sample[0].Value.Uint64()
}
