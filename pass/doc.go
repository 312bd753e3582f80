// Package pass carries out one complete pass over one tenant: lease, snapshot, plan, guard, apply, record, in that
// order and each once. It decides nothing about objects itself (pass/plan does), reads pairs only through
// pass/snapshot and writes them only through pass/apply. It never exits the process and reads no environment.
package pass
