// Package machine makes a machine out of this one: processes in mount, PID and
// network namespaces of their own. Whatever they mount, whatever network devices
// and firewall rules they make and whatever processes they leave behind ends with
// the first of them, which ends with the process that started it, however that
// dies. What is left to clean up are files and control groups.
//
// One half of the package runs in the process that wants a machine (Start), the
// other in the machine's first process (Serve), whose program is in the folder init.
//
// The package knows nothing of Kubernetes, and imports nothing but the standard
// library: its first process is to be small and quick to build. It needs Linux and
// the right to make namespaces.
package machine
