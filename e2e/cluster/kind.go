package cluster

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"

	"k8s.io/client-go/kubernetes"
	"sigs.k8s.io/kind/pkg/apis/config/v1alpha4"
	kindcluster "sigs.k8s.io/kind/pkg/cluster"
	"sigs.k8s.io/kind/pkg/exec"
	kindlog "sigs.k8s.io/kind/pkg/log"
)

type kind struct{}

// Kind returns the provider that runs each cluster as a container, with the
// Kubernetes version of the sigs.k8s.io/kind that go.mod names. It needs a running
// Docker, nerdctl or podman. A cluster outlives a killed process; `kind get
// clusters` shows it and `kind delete cluster` removes it.
func Kind() Provider { return kind{} }

// kindSerial tells apart the clusters that this process makes.
var kindSerial atomic.Int64

func (kind) Start(ctx context.Context, name string, opts Options) (*Cluster, error) {
	if opts.WithoutControllers || opts.AdvertiseAddress != "" || len(opts.APIServerArgs) > 0 {
		return nil, errors.New("the kind provider has no WithoutControllers, AdvertiseAddress or APIServerArgs: use the local provider")
	}
	provider, _, err := kindProvider(opts.log())
	if err != nil {
		return nil, err
	}
	kindName := fmt.Sprintf("syncpass-%s-%d-%d", name, os.Getpid(), kindSerial.Add(1))
	if opts.DetachedDir != "" {
		kindName = detachedKindName(name)
	}
	if err := createKind(provider, kindName, opts.serviceCIDR()); err != nil {
		return nil, fmt.Errorf("starting kind cluster %s: %w", kindName, err)
	}
	c, err := kindCluster(provider, name, kindName)
	if err == nil {
		err = awaitKind(ctx, c)
	}
	if err != nil {
		return nil, errors.Join(fmt.Errorf("starting kind cluster %s: %w", kindName, err), deleteKind(provider, kindName))
	}
	return c, nil
}

func (kind) Attach(_ context.Context, name, _ string) (*Cluster, error) {
	provider, existing, err := kindProvider(io.Discard)
	if err != nil {
		return nil, err
	}
	kindName := detachedKindName(name)
	if !slices.Contains(existing, kindName) {
		return nil, fmt.Errorf("kind cluster %s: %w", kindName, ErrNotRunning)
	}
	return kindCluster(provider, name, kindName)
}

// detachedKindName is the same in every process, for Attach to find it.
func detachedKindName(name string) string { return "syncpass-" + name }

// kindProvider returns kind on a container runtime that answers, and the names of
// the clusters it has.
func kindProvider(log io.Writer) (*kindcluster.Provider, []string, error) {
	const nextStep = "start Docker (`docker ps` must succeed), or use the local provider, which needs no containers"
	runtime, err := kindcluster.DetectNodeProvider()
	if err != nil {
		return nil, nil, fmt.Errorf("the kind provider found no docker, nerdctl or podman on PATH: %w; %s", err, nextStep)
	}
	provider := kindcluster.NewProvider(runtime, kindcluster.ProviderWithLogger(kindLogger{log}))
	existing, err := provider.List()
	if err != nil {
		var output string
		if failed := exec.RunErrorForError(err); failed != nil {
			output = ": " + strings.TrimSpace(string(failed.Output))
		}
		return nil, nil, fmt.Errorf("the container runtime that kind would use does not answer: %w%s; %s", err, output, nextStep)
	}
	return provider, existing, nil
}

func createKind(provider *kindcluster.Provider, kindName, serviceCIDR string) error {
	return withScratchKubeconfig(func(kubeconfig string) error {
		return provider.Create(kindName,
			kindcluster.CreateWithV1Alpha4Config(&v1alpha4.Cluster{
				TypeMeta:   v1alpha4.TypeMeta{APIVersion: "kind.x-k8s.io/v1alpha4", Kind: "Cluster"},
				Nodes:      []v1alpha4.Node{{Role: v1alpha4.ControlPlaneRole}},
				Networking: v1alpha4.Networking{ServiceSubnet: serviceCIDR},
			}),
			kindcluster.CreateWithWaitForReady(readyTimeout),
			kindcluster.CreateWithKubeconfigPath(kubeconfig),
		)
	})
}

func deleteKind(provider *kindcluster.Provider, kindName string) error {
	return withScratchKubeconfig(func(kubeconfig string) error { return provider.Delete(kindName, kubeconfig) })
}

// withScratchKubeconfig keeps kind away from the user's own kubeconfig, which it
// would otherwise write to, and whose current context it would change.
func withScratchKubeconfig(f func(path string) error) error {
	dir, err := os.MkdirTemp("", "syncpass-kind-")
	if err != nil {
		return err
	}
	return errors.Join(f(filepath.Join(dir, kubeconfigFile)), os.RemoveAll(dir))
}

func kindCluster(provider *kindcluster.Provider, name, kindName string) (*Cluster, error) {
	kubeconfig, err := provider.KubeConfig(kindName, false)
	if err != nil {
		return nil, fmt.Errorf("kubeconfig of kind cluster %s: %w", kindName, err)
	}
	config, err := configFrom([]byte(kubeconfig))
	if err != nil {
		return nil, fmt.Errorf("kubeconfig of kind cluster %s: %w", kindName, err)
	}
	return &Cluster{Name: name, Config: config, stop: func() error { return deleteKind(provider, kindName) }}, nil
}

// awaitKind holds a new cluster to what Provider promises. kind waits for the
// node, and no more than a warning comes of it if that takes too long.
func awaitKind(ctx context.Context, c *Cluster) error {
	ctx, cancel := context.WithTimeoutCause(ctx, readyTimeout, fmt.Errorf("not ready after %v", readyTimeout))
	defer cancel()
	client, err := kubernetes.NewForConfig(c.Config)
	if err != nil {
		return err
	}
	if err := waitFor(ctx, apiServerReady(client)); err != nil {
		return err
	}
	return waitFor(ctx, controllersReady(client))
}

// kindLogger passes kind's ordinary messages on, and drops its debug output.
type kindLogger struct{ w io.Writer }

func (l kindLogger) Warn(message string)          { l.Info(message) }
func (l kindLogger) Error(message string)         { l.Info(message) }
func (l kindLogger) Info(message string)          { fmt.Fprintln(l.w, strings.TrimRight(message, "\n")) }
func (l kindLogger) Warnf(f string, args ...any)  { l.Infof(f, args...) }
func (l kindLogger) Errorf(f string, args ...any) { l.Infof(f, args...) }
func (l kindLogger) Infof(f string, args ...any)  { l.Info(fmt.Sprintf(f, args...)) }
func (kindLogger) Enabled() bool                  { return true }

func (l kindLogger) V(level kindlog.Level) kindlog.InfoLogger {
	if level > 0 {
		return kindlog.NoopInfoLogger{}
	}
	return l
}
