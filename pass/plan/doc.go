// Package plan decides. Compute is a pure function from a snapshot of both sides, the history, and the policy to a
// plan: exactly one decision, or "unchanged", for every object. It does no I/O, reads no clock and imports no client;
// a test over the import graph keeps it so. The table that it follows is drawn above the code in decide.go.
package plan
