// Package policy holds the SyncPolicy and TenantCluster types, their strict parsing, defaults and validation, and the
// arithmetic of a policy's schedule. It does no I/O and knows no client: what it judges is handed to it.
//
// +groupName=tenantplane.io
// +versionName=v1alpha1
package policy

//go:generate go tool controller-gen object crd paths=. paths=../record output:crd:dir=../manifests/crd
