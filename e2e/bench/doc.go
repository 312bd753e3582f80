// Command bench measures what a pass costs, on real API servers, and sets each
// number beside two yardsticks measured in the same run, with the same clients:
//
//	floor  the bare API calls that the row cannot do without, at the same
//	       concurrency and as early as a pass may send them
//	loop   what is usual without syncpass: one object after the other, GET both
//	       sides, compare, write; no client-side rate limit
//
// What is measured is the binary as a user runs it, one process a pass, started
// directly at the API servers. Requests, bytes and writes come from one more pass
// of each row that goes through proxies and whose time is not taken.
//
//	go run ./e2e/bench -quick               under five minutes
//	go run ./e2e/bench -json bench.json     everything
//	go run ./e2e/bench -from bench.json -chart docs/bench.svg
//
// The API servers have no controllers, which would compete for the processors, so
// objects have no more in them than a tenant and the API server put there, and
// Pods stay Pending.
//
// Parts of a pass have Go benchmarks of their own, for benchstat:
//
//	go test -run '^$' -bench . -count 10 ./pass/plan ./pass/kinds ./record
//
// The program judges itself against the bars in bars.go, and says so in its
// table. It does not fail for a bar that is missed: a busy machine misses them too.
package main
