// Package store keeps a tenant's SyncDecision on the host: it reads the record and the history, swaps them for the
// next by compare-and-swap on resourceVersion, and writes the Events of decisions.
//
// The SyncDecision named after the TenantCluster, the head, holds the trail, the epoch and page 0 of the history. What
// keeps two passes of one tenant apart is a swap of the head, and nothing else:
//
//   - Whoever swaps the head raises the epoch by one and signs it with its pass id. A pass that finds another epoch, or
//     another signature, has been superseded and writes nothing more.
//   - Further pages are written by the pass that holds the epoch only, and before the head that refers to them. A page
//     states agreements that were true when it was written, so a set torn by a crash is stale at worst.
//   - Names of pages contain how many there are. A change of the number writes a new set beside the old one, swaps the
//     head, and then removes the old set.
//
// The package decides nothing about objects, retries nothing without a bound, keeps nothing between calls but what
// Load returned, and starts nothing that outlives a call.
package store
