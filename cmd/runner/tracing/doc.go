// Package tracing makes OpenTelemetry traces of passes: a span for a pass, for each of its phases, and for each request
// to an API server. The standard OTEL_ variables say where they go; without them nothing is made and nothing runs.
//
// A span says how long something took and how it ended, with the names of what it was about: never what an object holds,
// nor the text of an answer. API servers are not told of the trace: a tenant's is not trusted. The package never fails
// a pass.
package tracing
