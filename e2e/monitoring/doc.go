// Package monitoring has the tests of manifests/monitoring that need the code of Prometheus: its parsers and its query
// engine. It is a module of its own so that Prometheus' dependencies stay out of the go.mod of syncpass; package e2e runs
// it.
package monitoring
