// Package access is the way to an API server: it builds the clients of the host and of a tenant, turns a tenant's
// kubeconfig into a client configuration that cannot harm the process that uses it, and bounds what a server may do
// to its client (redirects, bodies without end, waits without end).
//
// Whoever writes a tenant's kubeconfig, and whoever runs the tenant's API server, is not trusted: see
// [ParseTenantKubeconfig] for what a kubeconfig may hold and [Cluster] for what an answer may do.
//
// The package reads no environment, retries no write, and knows nothing of the objects that pass through it.
package access
