// Package record holds what syncpass remembers: the vocabulary of decisions, the SyncDecision type, the trail of
// decisions with its retention, and the history (baselines, intents and standing skips of every pair) with the codec
// that packs it into pages. It is pure: no client, no clock. Package record/store reads and writes it.
//
// +kubebuilder:object:generate=true
// +groupName=tenantplane.io
// +versionName=v1alpha1
package record
