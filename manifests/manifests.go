// Package manifests holds the kustomizations that install syncpass, for the verb `render`, which starts from the same
// files: what is said about a Pod, a Job or a right is said in one place.
//
// It holds files and knows nothing about them; package render does.
package manifests

import "embed"

// Files are the manifests that `render` starts from, by their paths in this folder.
//
//go:embed base/serviceaccount.yaml base/role.yaml base/policyreader.yaml nodes/nodereader.yaml
//go:embed cronjob/cronjob.yaml job/job.yaml schedule/deployment.yaml
//go:embed sharded/cronjob.yaml sharded/rights.yaml sharded/tenant/rolebinding.yaml
var Files embed.FS
