// Package e2e tests syncpass against real API servers: the binary as a user runs
// it, the manifests as a cluster takes them.
package e2e

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"net"
	"net/url"
	"os"
	"os/signal"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"

	"github.com/syncpass/syncpass/e2e/cluster"
	"github.com/syncpass/syncpass/e2e/node"
	"github.com/syncpass/syncpass/e2e/proxy"
	"github.com/syncpass/syncpass/e2e/scenario"
)

var runnerFlag = flag.String("runner", "", "test this binary instead of one built from cmd/runner")

// startLimit bounds the start of both clusters; building their binaries, the first
// time, is the larger part of it.
const startLimit = 30 * time.Minute

// tokenLifetime outlasts every run of the suite.
const tokenLifetime = 24 * time.Hour

// robot is the ServiceAccount that a run of the binary is, on either side, in a
// namespace that no scenario touches. It has every right: least rights have tests
// of their own.
const robot = `
apiVersion: v1
kind: ServiceAccount
metadata: {namespace: kube-system, name: syncpass-e2e}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRoleBinding
metadata: {name: syncpass-e2e}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: cluster-admin}
subjects: [{kind: ServiceAccount, namespace: kube-system, name: syncpass-e2e}]
`

// surroundings are the two control planes that all tests of the package share. No
// test that uses them may run in parallel with another that uses the same ones.
type surroundings struct {
	// ctx ends when the tests are interrupted.
	ctx context.Context
	// host and tenant are reached directly, with every right.
	host, tenant *cluster.Cluster
	// node runs the host's Pods; nil in most suites.
	node *node.Node
	// hostProxy and tenantProxy are the way that the binary takes; both write to requests.
	hostProxy, tenantProxy *proxy.Proxy
	requests               *proxy.Log
	// hostKubeconfig is a file, for the host proxy.
	hostKubeconfig string
	// tenantKubeconfig is for the tenant proxy.
	tenantKubeconfig []byte
	// dir is a temporary folder.
	dir string
	// build makes the binary, the first time it is called.
	build func() (string, error)
	// scenarios is nil until a test asks for it.
	scenarios *scenario.Runner
	// placing guards placed, the number of tests that have places now.
	placing sync.Mutex
	placed  int
}

// lazySuite is a suite of this process, made when a test first asks for it.
type lazySuite struct {
	sync.Mutex
	*surroundings
	// err is why it could not be started; told, that a test has said so in full.
	err  error
	told bool
	// withNode gives its host a node.
	withNode bool
}

// shared is for all tests but those that need Pods to run, which get hostNode. These are in files whose names come late, and
// so do the scenarios among them: a node takes processor time for as long as it is there.
var shared, hostNode = &lazySuite{}, &lazySuite{withNode: true}

// testsCtx ends when the tests are interrupted.
var testsCtx context.Context

func TestMain(m *testing.M) {
	flag.Parse()
	var interrupt context.CancelCauseFunc
	testsCtx, interrupt = context.WithCancelCause(context.Background())
	signals := make(chan os.Signal, 1)
	signal.Notify(signals, syscall.SIGINT, syscall.SIGTERM)
	go func() {
		got := (<-signals).(syscall.Signal)
		interrupt(fmt.Errorf("the tests were stopped by a signal: %s", got))
		_ = stopAll() // it has said what went wrong
		os.Exit(128 + int(got))
	}()
	code := m.Run()
	if err := stopAll(); err != nil && code == 0 {
		code = 1
	}
	os.Exit(code)
}

// suite returns the control planes, and starts them if no test has before.
func suite(t *testing.T) *surroundings {
	t.Helper()
	return shared.get(t)
}

// nodeSuite returns other control planes, whose host has a node; where none can
// run the test is skipped.
func nodeSuite(t *testing.T) *surroundings {
	t.Helper()
	if lacks := node.Requirements(); len(lacks) > 0 {
		t.Skip(strings.Join(lacks, "; "))
	}
	return hostNode.get(t)
}

func (l *lazySuite) get(t *testing.T) *surroundings {
	t.Helper()
	if testing.Short() {
		t.Skip("this test starts real control planes, which -short leaves out")
	}
	l.Lock()
	defer l.Unlock()
	if l.surroundings == nil && l.err == nil {
		began := time.Now()
		if l.surroundings, l.err = start(testsCtx, l.withNode); l.err == nil {
			t.Logf("host and tenant started in %s", time.Since(began).Round(time.Millisecond))
		}
	}
	if l.err != nil {
		if l.told {
			t.Fatal("the control planes did not start: see the first test that says so")
		}
		l.told = true
		t.Fatalf("starting the control planes: %v", l.err)
	}
	return l.surroundings
}

// stopAll ends whatever the suites started and removes what they wrote.
func stopAll() error { return errors.Join(shared.stop(), hostNode.stop()) }

func (l *lazySuite) stop() error {
	l.Lock()
	defer l.Unlock()
	if l.surroundings == nil {
		return nil
	}
	err := l.surroundings.stop()
	l.surroundings, l.err = nil, errors.New("they were stopped")
	if err != nil {
		fmt.Fprintln(os.Stderr, "stopping the control planes:", err)
	}
	return err
}

// start brings up both control planes with controllers, the CRDs on the host, and
// the proxies, and the node if one is wanted. What it could not finish it takes down.
func start(ctx context.Context, withNode bool) (s *surroundings, err error) {
	s = &surroundings{ctx: ctx, requests: &proxy.Log{}}
	defer func() {
		if err != nil {
			s, err = nil, errors.Join(err, s.stop())
		}
	}()
	if s.dir, err = os.MkdirTemp("", "syncpass-e2e-"); err != nil {
		return s, err
	}
	s.hostKubeconfig = filepath.Join(s.dir, "host.kubeconfig")
	s.build = sync.OnceValues(func() (string, error) { return buildRunner(s.ctx, s.dir) })

	ctx, cancel := context.WithTimeoutCause(ctx, startLimit, fmt.Errorf("not ready within %s", startLimit))
	defer cancel()
	options := cluster.Options{Log: os.Stderr}
	if withNode {
		if s.node, err = node.Start(ctx, node.Options{Log: os.Stderr}); err != nil {
			return s, err
		}
		options.AdvertiseAddress = s.node.HostAddress
	}
	if s.host, s.tenant, err = cluster.StartPair(ctx, cluster.Local(), options, options); err != nil {
		return s, err
	}
	if withNode {
		if err := s.node.Join(ctx, s.host); err != nil {
			return s, err
		}
	}
	if err := s.host.ApplyCRDs(ctx); err != nil {
		return s, err
	}
	var kubeconfig []byte
	if s.hostProxy, kubeconfig, err = s.front(ctx, "host", s.host, s.requests); err != nil {
		return s, err
	}
	if err := os.WriteFile(s.hostKubeconfig, kubeconfig, 0o600); err != nil {
		return s, err
	}
	s.tenantProxy, s.tenantKubeconfig, err = s.front(ctx, "tenant", s.tenant, s.requests)
	return s, err
}

// front puts a proxy before a cluster, which writes to a log, and returns a kubeconfig for it.
func (s *surroundings) front(ctx context.Context, name string, c *cluster.Cluster, log *proxy.Log) (*proxy.Proxy, []byte, error) {
	if err := c.Apply(ctx, []byte(robot)); err != nil {
		return nil, nil, err
	}
	client, err := kubernetes.NewForConfig(c.Config)
	if err != nil {
		return nil, nil, err
	}
	seconds := int64(tokenLifetime / time.Second)
	token, err := client.CoreV1().ServiceAccounts("kube-system").CreateToken(ctx, "syncpass-e2e",
		&authenticationv1.TokenRequest{Spec: authenticationv1.TokenRequestSpec{ExpirationSeconds: &seconds}}, metav1.CreateOptions{})
	if err != nil {
		return nil, nil, fmt.Errorf("token for the %s: %w", name, err)
	}
	p, err := proxy.Start(name, c.Config, log)
	if err != nil {
		return nil, nil, err
	}
	kubeconfig, err := p.Kubeconfig(token.Status.Token)
	return p, kubeconfig, err
}

func buildRunner(ctx context.Context, dir string) (string, error) {
	if *runnerFlag != "" {
		return filepath.Abs(*runnerFlag)
	}
	return cluster.BuildRunner(ctx, dir)
}

// binary is the binary under test, led to the host by way of the proxy.
func (s *surroundings) binary(t *testing.T) scenario.Binary {
	t.Helper()
	path, err := s.build()
	if err != nil {
		t.Fatal(err)
	}
	env := map[string]string{"SYNCPASS_HOST_KUBECONFIG": s.hostKubeconfig, "HOME": s.dir}
	if s.node != nil {
		// The proxy in the tenant's kubeconfig listens where no Pod can reach it.
		server, err := url.Parse(s.tenant.Config.Host)
		if err != nil {
			t.Fatal(err)
		}
		env["SYNCPASS_TENANT_API_ENDPOINT"] = net.JoinHostPort(s.node.HostAddress, server.Port())
	}
	return scenario.Binary{Path: path, Env: env, Log: s.requests}
}

// runner is the runner of scenario files, for tests that need its surroundings too.
func (s *surroundings) runner(t *testing.T) *scenario.Runner {
	t.Helper()
	if s.scenarios == nil {
		s.scenarios = s.runnerIn(t, s.environment(t))
	}
	return s.scenarios
}

// environment is what scenario files are run against.
func (s *surroundings) environment(t *testing.T) scenario.Environment {
	t.Helper()
	has := []string{scenario.NeedTenantControllers}
	if s.node != nil {
		has = append(has, scenario.NeedHostNode)
	}
	return scenario.Environment{
		Host: s.host.Config, Tenant: s.tenant.Config, TenantKubeconfig: s.tenantKubeconfig,
		Binary: s.binary(t),
		Has:    has,
	}
}

func (s *surroundings) runnerIn(t *testing.T, environment scenario.Environment) *scenario.Runner {
	t.Helper()
	made, err := scenario.NewRunner(t.Context(), environment)
	if err != nil {
		t.Fatal(err)
	}
	return made
}

// clients lead to both sides, past the proxies and with every right.
func (s *surroundings) clients(t *testing.T) (host, tenant kubernetes.Interface) {
	t.Helper()
	host, err := kubernetes.NewForConfig(s.host.Config)
	if err != nil {
		t.Fatal(err)
	}
	if tenant, err = kubernetes.NewForConfig(s.tenant.Config); err != nil {
		t.Fatal(err)
	}
	return host, tenant
}

// context is the test's, ended early when the tests are interrupted, so that a
// running binary is told to stop.
func (s *surroundings) context(t *testing.T) context.Context {
	ctx, cancel := context.WithCancelCause(t.Context())
	t.Cleanup(func() { cancel(nil) })
	detach := context.AfterFunc(s.ctx, func() { cancel(context.Cause(s.ctx)) })
	t.Cleanup(func() { detach() })
	return ctx
}

func (s *surroundings) stop() error {
	var errs []error
	for _, p := range []*proxy.Proxy{s.hostProxy, s.tenantProxy} {
		if p != nil {
			errs = append(errs, p.Close())
		}
	}
	if s.node != nil {
		errs = append(errs, s.node.Stop())
	}
	for _, c := range []*cluster.Cluster{s.host, s.tenant} {
		if c != nil {
			errs = append(errs, c.Stop())
		}
	}
	return errors.Join(append(errs, os.RemoveAll(s.dir))...)
}
