// Package kinds knows how an object of each kind looks on either side: the name and marks of its mirror, what its
// content is, how the tenant's content is projected to the host and the host's reflected to the tenant, which fields
// are a side's own, and what the API does not let change. One file per kind that needs rules of its own; every other
// namespaced kind is served by the generic one.
//
// It is pure: it imports no client, reads no clock, and never decides what happens to a pair (package plan does).
package kinds
