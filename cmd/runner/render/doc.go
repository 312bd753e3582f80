// Package render writes the manifests that carry out passes over a tenant, or over all tenants of a host: a CronJob, Job or
// Deployment, its ServiceAccount, and the rights that the policy asks for and no others. It starts from the files of package
// manifests, and changes in them what hangs on the tenant, the policy and the settings, so that comments and order stay.
//
// It reads no API server, no file and no environment: the same options give the same bytes.
package render
