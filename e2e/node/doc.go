// Package node runs a real Kubernetes node on this machine for tests: containerd,
// kubelet and kube-proxy, and kube-scheduler besides, so that Pods of a cluster of
// package cluster really run. It needs root and a few Debian packages (see
// Requirements), and neither Docker nor a registry: images are packed from static
// binaries and imported.
//
// The node is a machine of its own as package machine makes them: its mounts,
// network devices, iptables rules and processes are out of sight of this one, and
// end with the process that started it. Here there are only a folder in the
// temporary folder, control groups named like it (syncpass-node-…), and one end of
// the link that leads to the node, with the route to its Pods. Stop removes them;
// where the process was killed, the kernel removes the link, and the next Start the rest.
//
// The package knows nothing of syncpass: it must not import any package of this
// module outside e2e, so that no test gets its node from the code under test.
package node
