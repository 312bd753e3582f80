package access

import (
	"errors"
	"fmt"
	"net/http"
	"sync/atomic"
	"time"

	utilnet "k8s.io/apimachinery/pkg/util/net"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/dynamic"
	coordinationv1client "k8s.io/client-go/kubernetes/typed/coordination/v1"
	corev1client "k8s.io/client-go/kubernetes/typed/core/v1"
	"k8s.io/client-go/rest"
)

// DefaultRequestTimeout bounds a request where Options do not.
const DefaultRequestTimeout = 15 * time.Second

// Options bound the requests to one API server.
type Options struct {
	// RequestTimeout bounds one request from its first byte sent to the last byte of its answer, the waits that the
	// server asks for and the retries included. The server is told it as well (`?timeout=`), so that it gives up on a
	// write no later than its client does. Zero: DefaultRequestTimeout.
	RequestTimeout time.Duration
	// UserAgent names this program to the server. Empty: client-go's default.
	UserAgent string
	// Observe is told of every request. Nil: nobody is.
	Observe Observe
}

// Cluster is the way to one API server. All clients of a Cluster share their connections; client-side rate limiting is
// off, a server that asks for less (429 with Retry-After) is obeyed. Each answer is bounded: see bounded. Safe for
// concurrent use.
type Cluster struct {
	config     *rest.Config
	transport  http.RoundTripper
	credential []byte
	requests   *atomic.Int64
	observe    Observe

	dynamic      dynamic.Interface
	terse        dynamic.Interface
	core         corev1client.CoreV1Interface
	coordination coordinationv1client.CoordinationV1Interface
	discovery    discovery.DiscoveryInterface
}

// NewHost returns the way to the host cluster. The configuration comes from the operator and is trusted: it may run
// credential plugins, read files and use the proxy of the environment. It is copied, not changed.
func NewHost(config *rest.Config, o Options) (*Cluster, error) {
	c, err := newCluster(rest.CopyConfig(config), o)
	if err != nil {
		return nil, &ConfigError{Problems: []error{fmt.Errorf("host cluster configuration: %w", err)}}
	}
	return c, nil
}

// NewTenant returns the way to a tenant's API server, from a kubeconfig that is not trusted. Its error is a
// *ConfigError that says everything that is wrong with the kubeconfig; see ParseTenantKubeconfig. No request is sent.
func NewTenant(kubeconfig []byte, o Options) (*Cluster, error) {
	config, err := ParseTenantKubeconfig(kubeconfig)
	if err != nil {
		return nil, err
	}
	credential := credentialOf(config)
	c, err := newCluster(config, o)
	if err != nil {
		return nil, &ConfigError{Problems: []error{err}}
	}
	c.credential = credential
	return c, nil
}

func newCluster(config *rest.Config, o Options) (*Cluster, error) {
	config.Timeout = o.RequestTimeout
	if config.Timeout <= 0 {
		config.Timeout = DefaultRequestTimeout
	}
	if o.UserAgent != "" {
		config.UserAgent = o.UserAgent
	}
	config.RateLimiter, config.QPS = nil, -1
	// API servers are near, and compressing a list costs both ends more than sending it.
	config.DisableCompression = true
	config.Wrap(newBounded)
	transport, err := rest.TransportFor(config)
	if err != nil {
		return nil, err
	}
	c := &Cluster{config: config, transport: transport, observe: o.Observe}
	if err := c.connect(); err != nil {
		return nil, err
	}
	return c, nil
}

// connect makes the clients, with a request count of their own, over the transport that there is.
func (c *Cluster) connect() error {
	c.requests = new(atomic.Int64)
	client := &http.Client{
		Timeout:   c.config.Timeout,
		Transport: &retrier{next: &counter{next: c.transport, requests: c.requests, observe: c.observe}, backoff: retryBackoff},
	}
	objects := dynamicConfig(c.config)
	whole, err := rest.UnversionedRESTClientForConfigAndClient(objects, client)
	if err != nil {
		return err
	}
	objects.AcceptContentTypes = acceptMetadata
	metadata, err := rest.UnversionedRESTClientForConfigAndClient(objects, client)
	if err != nil {
		return err
	}
	c.dynamic, c.terse = dynamic.New(whole), dynamic.New(metadata)
	var errs [3]error
	c.core, errs[0] = corev1client.NewForConfigAndClient(c.config, client)
	c.coordination, errs[1] = coordinationv1client.NewForConfigAndClient(c.config, client)
	c.discovery, errs[2] = discovery.NewDiscoveryClientForConfigAndClient(c.config, client)
	return errors.Join(errs[:]...)
}

// ForPass returns a view of the cluster that shares its connections but counts its own requests from zero, so that
// passes that run side by side over one host can each say how many requests they sent.
func (c *Cluster) ForPass() *Cluster {
	view := *c
	if err := view.connect(); err != nil {
		// The same configuration made the clients of c, and nothing of it has changed.
		panic(fmt.Sprintf("access: clients cannot be made a second time: %v", err))
	}
	return &view
}

// Close closes the connections that are idle. The cluster and its views stay usable, and open new ones when needed.
func (c *Cluster) Close() { utilnet.CloseIdleConnectionsFor(c.transport) }

// Dynamic returns the client for objects of any kind.
func (c *Cluster) Dynamic() dynamic.Interface { return c.dynamic }

// Terse returns the client for writes whose answers matter for their metadata alone, which is all that they have.
func (c *Cluster) Terse() dynamic.Interface { return c.terse }

// Core returns the client for Secrets, Events, Namespaces and the other kinds of the core group.
func (c *Cluster) Core() corev1client.CoreV1Interface { return c.core }

// Coordination returns the client for Leases.
func (c *Cluster) Coordination() coordinationv1client.CoordinationV1Interface { return c.coordination }

// Discovery returns the client that asks which kinds the server serves.
func (c *Cluster) Discovery() discovery.DiscoveryInterface { return c.discovery }

// Requests returns how many HTTP requests these clients have sent so far, retries counted one by one.
func (c *Cluster) Requests() int64 { return c.requests.Load() }

// Credential returns the secret part of the tenant's credentials (token and client key), of which keys can be derived
// that only someone who has the tenant's credentials can derive: equal in every process that uses the same kubeconfig,
// different once the credentials have been rotated. It must not be logged or stored. Nil for a host.
func (c *Cluster) Credential() []byte { return c.credential }

// CA returns the certificates that the API server is trusted by, in PEM; nil where the system's are.
func (c *Cluster) CA() []byte { return c.config.CAData }

// Server returns the address of the API server, without credentials.
func (c *Cluster) Server() string { return c.config.Host }
