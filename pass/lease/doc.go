// Package lease holds the Lease that keeps two passes over one tenant from running at the same time.
//
// The Lease is a courtesy that saves work; it is no safety argument. A process can be stopped for minutes right before
// it sends a write, and clocks of two machines differ, so what keeps two passes apart is the compare-and-swap on the
// SyncDecision. The Lease tells the second pass at once that it is not needed, and the first that it has been overtaken.
//
// Unlike client-go's leaderelection, which watches a Lease for a whole duration before it takes it over because it does
// not compare its clock with the holder's, this package takes over a Lease as soon as it has run out by its own record:
// a process that is started for one pass cannot wait.
package lease
