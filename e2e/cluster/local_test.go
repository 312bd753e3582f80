package cluster

import (
	"bufio"
	"context"
	"fmt"
	"net"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
)

// childVariable makes this test binary start a cluster and wait to be killed.
const childVariable = "SYNCPASS_CLUSTER_TEST_CHILD"

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
	if _, err := Local().Start(context.Background(), "child", Options{WithoutControllers: true, Log: os.Stderr}); err != nil {
		return err
	}
	fmt.Println("ready")
	select {}
}

// testLog passes progress on to the test's own output, where `go test -v` shows it.
type testLog struct{ t *testing.T }

func (l testLog) Write(p []byte) (int, error) {
	l.t.Logf("%s", p)
	return len(p), nil
}

// needsServers skips a test that starts API servers where only quick tests are wanted.
func needsServers(t *testing.T) {
	t.Helper()
	if testing.Short() {
		t.Skip("starts API servers")
	}
}

// privateTemp points os.TempDir to an empty folder with a short name: the path of
// a Unix socket may have 107 bytes, which t.TempDir would use up.
func privateTemp(t *testing.T) string {
	dir, err := os.MkdirTemp("", "sp")
	require.NoError(t, err)
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	t.Setenv("TMPDIR", dir)
	return dir
}

func TestHostAndTenantStartTogetherAndLeaveNothing(t *testing.T) {
	needsServers(t)
	temp := privateTemp(t)
	_, err := Binaries(t.Context(), testLog{t}, ControlPlane...)
	require.NoError(t, err)
	start := time.Now()
	host, tenant, err := StartPair(t.Context(), Local(), Options{}, Options{})
	require.NoError(t, err)
	t.Logf("host and tenant were ready after %v", time.Since(start).Round(time.Millisecond))
	stopped := false
	t.Cleanup(func() {
		if !stopped {
			_, _ = host.Stop(), tenant.Stop()
		}
	})

	for _, c := range []struct {
		*Cluster
		services string
	}{{host, HostServiceCIDR}, {tenant, TenantServiceCIDR}} {
		t.Run(c.Name, func(t *testing.T) { checkCluster(t, c.Cluster, c.services) })
	}

	dirs := clusterDirs(t, temp)
	require.Len(t, dirs, 2)
	pids := recordedPIDs(t, dirs)
	require.Len(t, pids, 6)
	stopped = true
	start = time.Now()
	require.NoError(t, host.Stop())
	require.NoError(t, tenant.Stop())
	t.Logf("both were gone after %v", time.Since(start).Round(time.Millisecond))
	assert.Empty(t, clusterDirs(t, temp))
	for _, pid := range pids {
		assert.False(t, alive(pid), "process %d still runs", pid)
	}
	require.NoError(t, host.Stop(), "stopping twice is no error")
}

// checkCluster tries what tests rely on: the controllers, the service range, RBAC
// and token authentication, and a kubeconfig that stands by itself.
func checkCluster(t *testing.T, c *Cluster, serviceCIDR string) {
	ctx := t.Context()
	client, err := kubernetes.NewForConfig(c.Config)
	require.NoError(t, err)
	version, err := client.Discovery().ServerVersion()
	require.NoError(t, err)
	assert.Equal(t, KubernetesVersion, version.GitVersion)

	fromFile, err := configFrom(c.Kubeconfig())
	require.NoError(t, err)
	assert.Empty(t, fromFile.CAFile+fromFile.CertFile+fromFile.KeyFile+fromFile.BearerTokenFile)
	assert.Nil(t, fromFile.ExecProvider)
	admin, err := kubernetes.NewForConfig(fromFile)
	require.NoError(t, err)

	namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "team-dev"}}
	_, err = admin.CoreV1().Namespaces().Create(ctx, namespace, metav1.CreateOptions{})
	require.NoError(t, err)
	service := &corev1.Service{ObjectMeta: metav1.ObjectMeta{Name: "web"},
		Spec: corev1.ServiceSpec{Ports: []corev1.ServicePort{{Port: 80}}}}
	service, err = admin.CoreV1().Services("team-dev").Create(ctx, service, metav1.CreateOptions{})
	require.NoError(t, err)
	assert.True(t, netip.MustParsePrefix(serviceCIDR).Contains(netip.MustParseAddr(service.Spec.ClusterIP)),
		"clusterIP %s lies in %s", service.Spec.ClusterIP, serviceCIDR)

	// The controllers make the ServiceAccount without which no Pod is admitted.
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "web"},
		Spec: corev1.PodSpec{Containers: []corev1.Container{{Name: "web", Image: "example.com/web"}}}}
	require.EventuallyWithT(t, func(t *assert.CollectT) {
		_, err := admin.CoreV1().Pods("team-dev").Create(ctx, pod, metav1.CreateOptions{})
		assert.NoError(t, err)
	}, time.Minute, 50*time.Millisecond)

	checkToken(t, c, admin)

	// The namespace's finalizer is only removed once its controller emptied it.
	require.NoError(t, admin.CoreV1().Namespaces().Delete(ctx, "team-dev", metav1.DeleteOptions{}))
	require.EventuallyWithT(t, func(t *assert.CollectT) {
		_, err := admin.CoreV1().Namespaces().Get(ctx, "team-dev", metav1.GetOptions{})
		assert.True(t, apierrors.IsNotFound(err), "%v", err)
	}, 2*time.Minute, 100*time.Millisecond)
}

// checkToken shows that a ServiceAccount may do what a Role lets it do, and no more.
func checkToken(t *testing.T, c *Cluster, admin kubernetes.Interface) {
	ctx := t.Context()
	kubeconfig, err := c.TokenKubeconfig(ctx, "team-dev", "default")
	require.NoError(t, err)
	config, err := configFrom(kubeconfig)
	require.NoError(t, err)
	require.NotEmpty(t, config.BearerToken)
	require.Empty(t, config.CertData)
	user, err := kubernetes.NewForConfig(config)
	require.NoError(t, err)
	_, err = user.CoreV1().ConfigMaps("team-dev").List(ctx, metav1.ListOptions{})
	require.True(t, apierrors.IsForbidden(err), "%v", err)

	role := &rbacv1.Role{ObjectMeta: metav1.ObjectMeta{Name: "reader"},
		Rules: []rbacv1.PolicyRule{{APIGroups: []string{""}, Resources: []string{"configmaps"}, Verbs: []string{"list"}}}}
	_, err = admin.RbacV1().Roles("team-dev").Create(ctx, role, metav1.CreateOptions{})
	require.NoError(t, err)
	binding := &rbacv1.RoleBinding{ObjectMeta: metav1.ObjectMeta{Name: "reader"},
		RoleRef:  rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: "reader"},
		Subjects: []rbacv1.Subject{{Kind: rbacv1.ServiceAccountKind, Namespace: "team-dev", Name: "default"}}}
	_, err = admin.RbacV1().RoleBindings("team-dev").Create(ctx, binding, metav1.CreateOptions{})
	require.NoError(t, err)
	require.EventuallyWithT(t, func(t *assert.CollectT) {
		_, err := user.CoreV1().ConfigMaps("team-dev").List(ctx, metav1.ListOptions{})
		assert.NoError(t, err)
	}, 30*time.Second, 50*time.Millisecond)
}

func TestADetachedClusterIsFoundAndStoppedByAnother(t *testing.T) {
	needsServers(t)
	dir := filepath.Join(privateTemp(t), "host")
	opts := Options{WithoutControllers: true, DetachedDir: dir, Log: testLog{t}}
	_, err := Local().Attach(t.Context(), "host", dir)
	require.ErrorIs(t, err, ErrNotRunning)

	c, err := Local().Start(t.Context(), "host", opts)
	require.NoError(t, err)
	t.Cleanup(func() { _ = c.Stop() })
	_, err = Local().Start(t.Context(), "host", opts)
	require.ErrorContains(t, err, "already runs")

	attached, err := Local().Attach(t.Context(), "host", dir)
	require.NoError(t, err)
	client, err := kubernetes.NewForConfig(attached.Config)
	require.NoError(t, err)
	_, err = client.CoreV1().Namespaces().Get(t.Context(), metav1.NamespaceSystem, metav1.GetOptions{})
	require.NoError(t, err)

	pids := recordedPIDs(t, []string{dir})
	require.Len(t, pids, 2)
	require.NoError(t, attached.Stop())
	assert.NoDirExists(t, dir)
	require.NoError(t, c.Stop(), "stopped already, by another")
	for _, pid := range pids {
		assert.False(t, alive(pid), "process %d still runs", pid)
	}
}

func TestAKilledParentLeavesNoChildAndItsFolderIsSwept(t *testing.T) {
	needsServers(t)
	temp := privateTemp(t)
	_, err := Binaries(t.Context(), testLog{t}, Etcd, KubeAPIServer)
	require.NoError(t, err)
	child := exec.Command(os.Args[0])
	child.Env = append(os.Environ(), childVariable+"=1")
	child.Stderr = testLog{t}
	stdout, err := child.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, child.Start())
	t.Cleanup(func() { _ = child.Process.Kill() })
	line, err := bufio.NewReader(stdout).ReadString('\n')
	require.NoError(t, err, "the child never became ready")
	require.Equal(t, "ready\n", line)

	dirs := clusterDirs(t, temp)
	require.Len(t, dirs, 1)
	pids := recordedPIDs(t, dirs)
	require.Len(t, pids, 2)
	sweepAt(t, dirs[0])
	require.DirExists(t, dirs[0], "a running cluster is not swept")

	require.NoError(t, child.Process.Kill())
	require.Error(t, child.Wait())
	require.Eventually(t, func() bool { return !running(dirs[0]) && !alive(pids[0]) && !alive(pids[1]) },
		30*time.Second, 20*time.Millisecond, "etcd and kube-apiserver outlive their parent")
	require.DirExists(t, dirs[0])
	sweepAt(t, dirs[0])
	require.NoDirExists(t, dirs[0])
}

// sweepAt sweeps as if the folder had been made an hour ago.
func sweepAt(t *testing.T, dir string) {
	t.Helper()
	anHourAgo := time.Now().Add(-time.Hour)
	require.NoError(t, os.Chtimes(dir, anHourAgo, anHourAgo))
	sweep(filepath.Dir(dir))
}

func TestAPortTakenByAnotherIsSeenAndNothingStays(t *testing.T) {
	needsServers(t)
	temp := privateTemp(t)
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	defer listener.Close()
	port := strconv.Itoa(listener.Addr().(*net.TCPAddr).Port)
	binaries, err := Binaries(t.Context(), testLog{t}, Etcd, KubeAPIServer)
	require.NoError(t, err)
	_, err = startLocal(t.Context(), "host", Options{WithoutControllers: true, APIServerArgs: []string{"--secure-port=" + port}}, binaries)
	var exit *exitError
	require.ErrorAs(t, err, &exit)
	assert.True(t, exit.portTaken(), "%v", err)
	assert.Empty(t, clusterDirs(t, temp))
}

func TestAComponentThatCannotStartIsReportedWithItsLog(t *testing.T) {
	needsServers(t)
	temp := privateTemp(t)
	_, err := Local().Start(t.Context(), "host", Options{WithoutControllers: true, APIServerArgs: []string{"--no-such-flag"}, Log: testLog{t}})
	assert.ErrorContains(t, err, "starting cluster host")
	assert.ErrorContains(t, err, "kube-apiserver ended by itself")
	assert.ErrorContains(t, err, "--no-such-flag")
	assert.Empty(t, clusterDirs(t, temp))
}

func clusterDirs(t *testing.T, temp string) []string {
	t.Helper()
	dirs, err := filepath.Glob(filepath.Join(temp, folderPattern+"*"))
	require.NoError(t, err)
	return dirs
}

func recordedPIDs(t *testing.T, dirs []string) (pids []int) {
	t.Helper()
	for _, dir := range dirs {
		files, err := filepath.Glob(filepath.Join(dir, "*.pid"))
		require.NoError(t, err)
		for _, file := range files {
			data, err := os.ReadFile(file)
			require.NoError(t, err)
			pid, err := strconv.Atoi(string(data))
			require.NoError(t, err)
			require.True(t, alive(pid), "%s names a living process", file)
			pids = append(pids, pid)
		}
	}
	return pids
}
