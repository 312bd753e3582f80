package node

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"k8s.io/client-go/rest"

	"github.com/syncpass/syncpass/e2e/cluster"
)

// childVariable makes this test binary start a node and wait to be killed.
const childVariable = "SYNCPASS_NODE_TEST_CHILD"

func TestMain(m *testing.M) {
	if os.Getenv(childVariable) != "" {
		if err := childMain(); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
	}
	os.Exit(m.Run())
}

// childMain never returns without an error: the parent kills this process.
func childMain() error {
	n, err := Start(context.Background(), Options{Log: os.Stderr})
	if err != nil {
		return err
	}
	fmt.Println(n.link.number, n.link.index, n.machine.PID(), n.dir)
	select {}
}

// testLog passes progress on to the test's own output, where `go test -v` shows it.
type testLog struct{ t *testing.T }

func (l testLog) Write(p []byte) (int, error) {
	l.t.Logf("%s", p)
	return len(p), nil
}

// needsNode skips a test where no node can run, and gets what is compiled but once.
func needsNode(t *testing.T) {
	t.Helper()
	if testing.Short() {
		t.Skip("starts a node, which -short leaves out")
	}
	if lacks := Requirements(); len(lacks) > 0 {
		t.Skip(strings.Join(lacks, "; "))
	}
	_, err := cluster.Binaries(t.Context(), testLog{t}, append(Components, cluster.ControlPlane...)...)
	require.NoError(t, err)
}

// TestANodeRunsPodsAndLeavesNothing is one test because all of it happens on one node.
func TestANodeRunsPodsAndLeavesNothing(t *testing.T) {
	needsNode(t)
	before := machineState(t)
	began := time.Now()
	n, err := Start(t.Context(), Options{Log: testLog{t}})
	require.NoError(t, err)
	t.Cleanup(func() { assert.NoError(t, n.Stop(), "stopping twice is no error") })
	t.Logf("containerd had its images after %v", time.Since(began).Round(time.Millisecond))

	unreachable := &cluster.Cluster{Name: "local", Config: &rest.Config{Host: "https://127.0.0.1:1"}}
	assert.ErrorContains(t, n.Join(t.Context(), unreachable), "start it with that as its AdvertiseAddress")

	began = time.Now()
	options := cluster.Options{AdvertiseAddress: n.HostAddress, Log: testLog{t}}
	host, tenant, err := cluster.StartPair(t.Context(), cluster.Local(), options, options)
	require.NoError(t, err)
	t.Cleanup(func() { assert.NoError(t, errors.Join(host.Stop(), tenant.Stop())) })
	t.Logf("host and tenant were ready after %v", time.Since(began).Round(time.Millisecond))
	began = time.Now()
	require.NoError(t, n.Join(t.Context(), host))
	t.Logf("the node was ready after %v", time.Since(began).Round(time.Millisecond))

	p := newPods(t, n, host)
	t.Run("a Pod with a ConfigMap in a volume gets ready, and answers the API server's proxy", p.configMapVolume)
	t.Run("a Deployment answers another Pod through its Service, and rolls over to another image", p.deployment)
	t.Run("a Pod is known to the host by its ServiceAccount", p.whoami)
	t.Run("a Pod reaches another API server", func(t *testing.T) { p.whoamiElsewhere(t, tenant) })
	t.Run("an exit code comes back", p.exitCode)
	t.Run("a deleted Pod's containers end", p.deletion)

	namespace := pidNamespace(t, n.machine.PID())
	require.Greater(t, len(processesIn(t, namespace)), 5, "init, containerd, kubelet, kube-proxy, kube-scheduler, shims")
	dir, link := n.dir, *n.link
	began = time.Now()
	require.NoError(t, n.Stop())
	t.Logf("the node was gone after %v", time.Since(began).Round(time.Millisecond))
	assert.Empty(t, processesIn(t, namespace))
	assertNothingLeft(t, dir, link)
	assert.Equal(t, before, machineState(t))
}

func TestANodeEndsWithTheProcessThatStartedIt(t *testing.T) {
	needsNode(t)
	child := exec.Command(os.Args[0])
	child.Env = append(os.Environ(), childVariable+"=1")
	child.Stderr = testLog{t}
	stdout, err := child.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, child.Start())
	t.Cleanup(func() { _ = child.Process.Kill() })
	var link link
	var pid int
	var dir string
	_, err = fmt.Fscanln(bufio.NewReader(stdout), &link.number, &link.index, &pid, &dir)
	require.NoError(t, err, "the child never became ready")
	namespace := pidNamespace(t, pid)
	require.NotEmpty(t, processesIn(t, namespace))
	sweepAt(t, dir)
	require.DirExists(t, dir, "a running node is not swept")

	require.NoError(t, child.Process.Kill())
	_, err = io.Copy(io.Discard, stdout)
	require.NoError(t, err)
	require.Error(t, child.Wait())
	require.Eventually(t, func() bool { return len(processesIn(t, namespace)) == 0 }, 30*time.Second, 10*time.Millisecond)
	require.Eventually(t, func() bool { return !link.exists() }, time.Minute, 10*time.Millisecond, "the link outlives the node")
	require.DirExists(t, dir)
	require.DirExists(t, filepath.Join(cgroupRoot(t), filepath.Base(dir)))
	sweepAt(t, dir)
	assertNothingLeft(t, dir, link)
}

func TestAComponentThatEndsIsReportedWithItsLog(t *testing.T) {
	needsNode(t)
	n, err := Start(t.Context(), Options{Log: testLog{t}})
	require.NoError(t, err)
	t.Cleanup(func() { _ = n.Stop() })
	require.NoError(t, n.run(kubelet, binFolder+"/"+kubelet, "--no-such-flag"))
	never := func(context.Context) (bool, error) { return false, nil }
	for _, err := range []error{n.await(t.Context(), kubeProxy, never), n.Stop()} {
		assert.ErrorContains(t, err, "kubelet ended by itself (exit status 1)")
		assert.ErrorContains(t, err, "--no-such-flag")
	}
}

func TestControlGroupsAreRemovedWithAllBelowThem(t *testing.T) {
	needsNode(t)
	name := "syncpass-test-" + strconv.Itoa(os.Getpid())
	require.NoError(t, makeCgroups(name))
	t.Cleanup(func() { assert.NoError(t, removeCgroups(name)) })
	inner := filepath.Join(cgroupRoot(t), name, "kubepods", "pod")
	require.NoError(t, os.MkdirAll(inner, 0o755))
	require.ErrorIs(t, makeCgroups(name), os.ErrExist)
	require.NoDirExists(t, inner, "a failure leaves nothing")
	require.NoError(t, makeCgroups(name))
	require.NoError(t, removeCgroups(name))
	require.NoError(t, removeCgroups(name), "what is gone need not be removed")
	assert.NoDirExists(t, filepath.Join(cgroupRoot(t), name))
}

// sweepAt sweeps as if the folder had been made an hour ago.
func sweepAt(t *testing.T, dir string) {
	t.Helper()
	anHourAgo := time.Now().Add(-time.Hour)
	require.NoError(t, os.Chtimes(dir, anHourAgo, anHourAgo))
	sweep(filepath.Dir(dir))
}

func cgroupRoot(t *testing.T) string {
	t.Helper()
	roots, err := hierarchies()
	require.NoError(t, err)
	return roots[0]
}

func assertNothingLeft(t *testing.T, dir string, link link) {
	t.Helper()
	assert.NoDirExists(t, dir)
	mounts, err := os.ReadFile("/proc/self/mountinfo")
	require.NoError(t, err)
	assert.NotContains(t, string(mounts), dir)
	assert.False(t, link.exists())
	roots, err := hierarchies()
	require.NoError(t, err)
	for _, root := range roots {
		assert.NoDirExists(t, filepath.Join(root, filepath.Base(dir)))
	}
}

// machineState is what a node could change for all of this machine: iptables
// rules, and the settings of the kernel that a kubelet or a kube-proxy likes to change.
func machineState(t *testing.T) map[string]string {
	t.Helper()
	rules, err := exec.CommandContext(t.Context(), "iptables-save").Output()
	require.NoError(t, err)
	state := map[string]string{}
	for _, line := range strings.Split(string(rules), "\n") {
		if strings.HasPrefix(line, "-A ") {
			state[line] = "rule"
		}
	}
	settings := []string{"net/ipv4/ip_forward", "net/ipv4/conf/all/route_localnet", "net/netfilter/nf_conntrack_max"}
	for name := range sysctls {
		settings = append(settings, name)
	}
	for _, name := range settings {
		value, err := os.ReadFile(filepath.Join("/proc/sys", name))
		if errors.Is(err, os.ErrNotExist) {
			continue
		}
		require.NoError(t, err)
		state[name] = strings.TrimSpace(string(value))
	}
	return state
}

func pidNamespace(t *testing.T, pid int) string {
	t.Helper()
	namespace, err := os.Readlink(fmt.Sprintf("/proc/%d/ns/pid", pid))
	require.NoError(t, err)
	return namespace
}

// processesIn returns the ids of the living processes of a PID namespace.
func processesIn(t *testing.T, namespace string) (pids []string) {
	t.Helper()
	links, err := filepath.Glob("/proc/[0-9]*/ns/pid")
	require.NoError(t, err)
	for _, link := range links {
		// An error means that it has ended in the meantime.
		if target, err := os.Readlink(link); err == nil && target == namespace {
			pids = append(pids, strings.Split(link, "/")[2])
		}
	}
	return pids
}
