// Package controlplane holds no code. Its module pins the versions of etcd and
// of the Kubernetes binaries that e2e/cluster builds when a machine does not
// have them yet, as tool dependencies: the checked-in go.sum says exactly what
// is built. It is a module of its own so that Kubernetes' dependencies stay out
// of the go.mod of syncpass; nothing may import it.
package controlplane
