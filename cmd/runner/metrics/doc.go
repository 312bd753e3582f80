// Package metrics counts what passes come to, in Prometheus' terms: it serves what `runner schedule` has counted, and
// pushes what a run that ends has. docs/metrics.md lists the metrics.
//
// Labels are bounded: namespaces and names of TenantClusters, and constants of this program. A tenant that is gone takes
// its series with it. The package has a registry of its own, reads no environment, and never fails a pass.
package metrics
