package cluster

import (
	"context"
	"errors"
	"fmt"
	"io"
	"sync"

	"golang.org/x/sync/errgroup"
	authenticationv1 "k8s.io/api/authentication/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
)

// Service ranges of the two clusters of a pair. They differ, as they do in life:
// a tenant's clusterIP means nothing on the host.
const (
	HostServiceCIDR   = "10.96.0.0/16"
	TenantServiceCIDR = "10.43.0.0/16"
)

// Provider makes API servers. Its methods may be called concurrently.
type Provider interface {
	// Start returns once the API server is ready and, unless
	// Options.WithoutControllers is set, the controllers have made the
	// ServiceAccount "default" of the namespace "default". A failed start leaves
	// nothing behind. The context bounds the start, not the life of the cluster.
	Start(ctx context.Context, name string, opts Options) (*Cluster, error)
	// Attach returns a cluster that Start, perhaps in an earlier process, left
	// running with this name and Options.DetachedDir. Where none runs the error
	// matches ErrNotRunning.
	Attach(ctx context.Context, name, detachedDir string) (*Cluster, error)
}

// ErrNotRunning is what Attach returns, wrapped, where no cluster runs.
var ErrNotRunning = errors.New("cluster is not running")

// Options of one cluster. The zero value is a cluster with controllers that only
// this machine reaches and that ends with this process.
type Options struct {
	// ServiceCIDR is the range of clusterIPs; HostServiceCIDR if empty.
	ServiceCIDR string
	// WithoutControllers leaves kube-controller-manager out: no ServiceAccount
	// "default", so no Pod can be created, no garbage collection, and namespaces
	// are never finally deleted. For tests of the API server alone. Kind refuses it.
	WithoutControllers bool
	// AdvertiseAddress makes the API server listen on every address and tell its
	// clients, Pods above all, to use this one. If empty it listens on 127.0.0.1
	// alone. Kind refuses it.
	AdvertiseAddress string
	// APIServerArgs are added to the command line of kube-apiserver, after the
	// others, so they win. Kind refuses them.
	APIServerArgs []string
	// DetachedDir lets the cluster outlive this process, until Attach and Stop:
	// the local provider keeps its data in this folder, which must not exist yet
	// or hold a cluster that no longer runs. If empty the data lies in a temporary
	// folder, and the processes die with this one, also when it is killed.
	DetachedDir string
	// Log takes lines of progress, from several goroutines; nil drops them.
	Log io.Writer
}

func (o Options) log() io.Writer {
	if o.Log == nil {
		return io.Discard
	}
	return o.Log
}

func (o Options) serviceCIDR() string {
	if o.ServiceCIDR == "" {
		return HostServiceCIDR
	}
	return o.ServiceCIDR
}

// Cluster is a running API server.
type Cluster struct {
	// Name is the name given to Start.
	Name string
	// Config has the rights of system:masters and no client-side rate limit.
	// Copy it before changing it.
	Config *rest.Config

	stop func() error

	// applying guards applies, which is nil until something is applied.
	applying sync.Mutex
	applies  *applier
}

// Stop ends the cluster and removes its data. Stopping twice is no error.
func (c *Cluster) Stop() error {
	if c.stop == nil {
		return nil
	}
	if err := c.stop(); err != nil {
		return fmt.Errorf("stopping cluster %s: %w", c.Name, err)
	}
	c.stop = nil
	return nil
}

// Kubeconfig returns a kubeconfig with the rights of Config. It carries its
// credentials in itself: it names no file and runs no plugin.
func (c *Cluster) Kubeconfig() []byte {
	return c.kubeconfig(&clientcmdapi.AuthInfo{
		ClientCertificateData: c.Config.CertData,
		ClientKeyData:         c.Config.KeyData,
		Token:                 c.Config.BearerToken,
	})
}

// TokenKubeconfig returns a kubeconfig with the rights of a ServiceAccount, which
// must exist, and a token of one hour for it.
func (c *Cluster) TokenKubeconfig(ctx context.Context, namespace, serviceAccount string) ([]byte, error) {
	client, err := kubernetes.NewForConfig(c.Config)
	if err != nil {
		return nil, err
	}
	token, err := client.CoreV1().ServiceAccounts(namespace).CreateToken(ctx, serviceAccount,
		&authenticationv1.TokenRequest{}, metav1.CreateOptions{})
	if err != nil {
		return nil, fmt.Errorf("token for ServiceAccount %s/%s in cluster %s: %w", namespace, serviceAccount, c.Name, err)
	}
	return c.kubeconfig(&clientcmdapi.AuthInfo{Token: token.Status.Token}), nil
}

func (c *Cluster) kubeconfig(user *clientcmdapi.AuthInfo) []byte {
	config := clientcmdapi.NewConfig()
	config.Clusters[c.Name] = &clientcmdapi.Cluster{Server: c.Config.Host, CertificateAuthorityData: c.Config.CAData}
	config.AuthInfos[c.Name] = user
	config.Contexts[c.Name] = &clientcmdapi.Context{Cluster: c.Name, AuthInfo: c.Name}
	config.CurrentContext = c.Name
	data, err := clientcmd.Write(*config)
	if err != nil {
		// Encoding a value that was built three lines up cannot fail; an error here
		// would be a defect of the encoder.
		panic(fmt.Sprintf("encoding a kubeconfig: %v", err))
	}
	return data
}

// configFrom reads the admin kubeconfig of a cluster, whose credentials lie in
// the file itself.
func configFrom(kubeconfig []byte) (*rest.Config, error) {
	config, err := clientcmd.RESTConfigFromKubeConfig(kubeconfig)
	if err != nil {
		return nil, err
	}
	config.QPS = unlimited
	return config, nil
}

// unlimited turns client-go's own rate limit off; zero would mean 5 a second.
const unlimited = -1

// NewProvider returns the provider of that name: "local", also for the empty
// name, or "kind".
func NewProvider(name string) (Provider, error) {
	switch name {
	case "", "local":
		return Local(), nil
	case "kind":
		return Kind(), nil
	}
	return nil, fmt.Errorf("unknown cluster provider %q: use local (processes on this machine) or kind (needs Docker)", name)
}

// StartPair starts a cluster named "host" and one named "tenant" at once. A
// ServiceCIDR left empty becomes HostServiceCIDR and TenantServiceCIDR. If one
// fails, neither stays.
func StartPair(ctx context.Context, p Provider, hostOptions, tenantOptions Options) (host, tenant *Cluster, err error) {
	if tenantOptions.ServiceCIDR == "" {
		tenantOptions.ServiceCIDR = TenantServiceCIDR
	}
	group, groupCtx := errgroup.WithContext(ctx)
	group.Go(func() (err error) {
		host, err = p.Start(groupCtx, "host", hostOptions)
		return err
	})
	group.Go(func() (err error) {
		tenant, err = p.Start(groupCtx, "tenant", tenantOptions)
		return err
	})
	if err := group.Wait(); err != nil {
		for _, c := range []*Cluster{host, tenant} {
			if c != nil {
				err = errors.Join(err, c.Stop())
			}
		}
		return nil, nil, err
	}
	return host, tenant, nil
}
