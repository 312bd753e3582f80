// Package cluster starts real Kubernetes API servers for tests, for the demo and
// for trying things out by hand, and takes them down without a trace.
//
// Two providers stand behind one interface. Local, the default, runs etcd,
// kube-apiserver and kube-controller-manager as child processes: no container
// runtime, no node, ready within seconds, with RBAC, real service accounts and
// real token authentication. Kind runs a full cluster in containers through
// sigs.k8s.io/kind, where Docker is.
//
// The package knows nothing of syncpass: it must not import any other package
// of this module, so that no test gets its control planes from the code under
// test. Local needs a Unix system.
package cluster
