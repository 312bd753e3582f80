// Package apply carries a plan out, and is the only package that writes pairs and the only place where a write can be a
// dry run. Every write is conditional on what the plan saw: an update on the resourceVersion, a delete on UID and
// resourceVersion after the tenant was asked once more, a create on the name being free. It decides nothing; what it
// could not do it returns as a Skip with the cause. Besides pairs it writes what goes with them: the Secrets with a Pod's
// tokens, and the Leases of stub Nodes.
package apply
