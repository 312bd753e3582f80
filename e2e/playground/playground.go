package main

import (
	"context"
	_ "embed"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/yaml"

	"github.com/syncpass/syncpass/e2e/cluster"
)

// What objects/host.yaml calls things.
const (
	hostNamespace = "team-dev"
	tenantName    = "dev"
)

var (
	//go:embed objects/host.yaml
	hostObjects []byte
	//go:embed objects/tenant.yaml
	tenantObjects []byte
)

// playground is one invocation.
type playground struct {
	provider cluster.Provider
	// dir holds what `up` leaves running: a folder and a kubeconfig per cluster.
	dir string
	// out takes data, progress what a person waits with.
	out, progress io.Writer
}

// names of the two clusters, in the order in which they are shown.
var names = []string{"host", "tenant"}

func (p *playground) clusterDir(name string) string { return filepath.Join(p.dir, name) }
func (p *playground) kubeconfig(name string) string { return filepath.Join(p.dir, name+".kubeconfig") }

// up brings host and tenant up, or finds them running, and prints the exports to
// use them.
func (p *playground) up(ctx context.Context) error {
	clusters, err := p.attach(ctx)
	if err != nil {
		return err
	}
	switch len(clusters) {
	case 0:
		if clusters, err = p.startDetached(ctx); err != nil {
			return err
		}
	case 1:
		return fmt.Errorf("only the %s of the playground still runs, and a new partner would be another cluster than it knows: "+
			"run `make down`, then up again", clusters[0].Name)
	}
	for _, c := range clusters {
		if err := os.WriteFile(p.kubeconfig(c.Name), c.Kubeconfig(), 0o600); err != nil {
			return err
		}
	}
	if err := prepareHost(ctx, clusters[0], clusters[1]); err != nil {
		return fmt.Errorf("%w; if a cluster is broken, `make down` and up again", err)
	}
	fmt.Fprintf(p.progress, "Host and tenant run, and the host knows the tenant: its TenantCluster, policy and kubeconfig are there.\n"+
		"With these exports, `go run ./cmd/runner plan` shows what a pass would do; `eval \"$(make up)\"` sets them.\n"+
		"Stop both with: make down\n")
	fmt.Fprintf(p.out, "export KUBECONFIG=%s\nexport TENANT_KUBECONFIG=%s\nexport SYNCPASS_NAMESPACE=%s\n", p.kubeconfig("host"), p.kubeconfig("tenant"), hostNamespace)
	return nil
}

// attach returns those of host and tenant that run.
func (p *playground) attach(ctx context.Context) ([]*cluster.Cluster, error) {
	var clusters []*cluster.Cluster
	for _, name := range names {
		c, err := p.provider.Attach(ctx, name, p.clusterDir(name))
		if errors.Is(err, cluster.ErrNotRunning) {
			continue
		}
		if err != nil {
			return nil, err
		}
		clusters = append(clusters, c)
	}
	return clusters, nil
}

func (p *playground) startDetached(ctx context.Context) ([]*cluster.Cluster, error) {
	if err := os.MkdirAll(p.dir, 0o700); err != nil {
		return nil, err
	}
	fmt.Fprintln(p.progress, "Starting a host and a tenant API server ...")
	options := func(name string) cluster.Options {
		return cluster.Options{DetachedDir: p.clusterDir(name), Log: p.progress}
	}
	host, tenant, err := cluster.StartPair(ctx, p.provider, options("host"), options("tenant"))
	return []*cluster.Cluster{host, tenant}, err
}

// down stops what up left running, and removes its folder.
func (p *playground) down(ctx context.Context) error {
	clusters, err := p.attach(ctx)
	if err != nil {
		return err
	}
	for _, c := range clusters {
		if err := c.Stop(); err != nil {
			return err
		}
		fmt.Fprintln(p.progress, "stopped", c.Name)
	}
	if len(clusters) == 0 {
		fmt.Fprintln(p.progress, "nothing is running")
	}
	return p.removeFiles()
}

// removeFiles removes what up made, and the folder if nothing else is in it: with
// -dir it may be anybody's.
func (p *playground) removeFiles() error {
	for _, name := range names {
		if err := errors.Join(os.RemoveAll(p.clusterDir(name)), os.RemoveAll(p.kubeconfig(name))); err != nil {
			return err
		}
	}
	_ = os.Remove(p.dir)
	return nil
}

// prepareHost applies what a pass needs: CRDs, namespace, policy, TenantCluster,
// and the Secret through which the tenant is reached.
func prepareHost(ctx context.Context, host, tenant *cluster.Cluster) error {
	if err := host.ApplyCRDs(ctx); err != nil {
		return err
	}
	secret, err := yaml.Marshal(&corev1.Secret{
		TypeMeta:   metav1.TypeMeta{APIVersion: "v1", Kind: "Secret"},
		ObjectMeta: metav1.ObjectMeta{Name: tenantName + "-control-plane-kubeconfig", Namespace: hostNamespace},
		Data:       map[string][]byte{"kubeconfig": tenant.Kubeconfig()},
	})
	if err != nil {
		return err
	}
	for _, manifests := range [][]byte{hostObjects, secret} {
		if err := host.Apply(ctx, manifests); err != nil {
			return err
		}
	}
	return nil
}
