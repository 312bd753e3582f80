package cluster

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
)

const (
	// readyTimeout is generous: a start takes 3 seconds on an idle machine, and ten
	// times that where several test binaries start clusters on two cores.
	readyTimeout = 2 * time.Minute
	readyPoll    = 50 * time.Millisecond
	requestLimit = 5 * time.Second
	portAttempts = 5

	kubeconfigFile = "kubeconfig"
)

type local struct{}

// Local returns the provider that runs etcd, kube-apiserver and
// kube-controller-manager as processes of this machine; see Binaries for where
// they come from.
func Local() Provider { return local{} }

func (local) Start(ctx context.Context, name string, opts Options) (*Cluster, error) {
	names := ControlPlane
	if opts.WithoutControllers {
		names = []string{Etcd, KubeAPIServer}
	}
	binaries, err := Binaries(ctx, opts.log(), names...)
	if err != nil {
		return nil, err
	}
	for attempt := 1; ; attempt++ {
		c, err := startLocal(ctx, name, opts, binaries)
		var exit *exitError
		if err == nil || attempt == portAttempts || !errors.As(err, &exit) || !exit.portTaken() {
			return c, err
		}
	}
}

func (local) Attach(ctx context.Context, name, detachedDir string) (*Cluster, error) {
	dir, err := filepath.Abs(detachedDir)
	if err != nil {
		return nil, err
	}
	if !running(dir) {
		return nil, fmt.Errorf("cluster %s in %s: %w", name, dir, ErrNotRunning)
	}
	kubeconfig, err := os.ReadFile(filepath.Join(dir, kubeconfigFile))
	if err != nil {
		return nil, fmt.Errorf("attaching to cluster %s: %w", name, err)
	}
	c := &Cluster{Name: name, stop: func() error { return stopFolder(dir) }}
	if c.Config, err = configFrom(kubeconfig); err != nil {
		return nil, fmt.Errorf("attaching to cluster %s: %w", name, err)
	}
	return c, nil
}

// startLocal makes one attempt with one port.
func startLocal(ctx context.Context, name string, opts Options, binaries map[string]string) (_ *Cluster, err error) {
	f, err := newFolder(opts.DetachedDir)
	if err != nil {
		return nil, fmt.Errorf("data folder of cluster %s: %w", name, err)
	}
	var processes []*process
	stop := func() error {
		f.lock.Close()
		err := stopFolder(f.dir)
		for _, p := range processes {
			<-p.exited
		}
		return err
	}
	defer func() {
		if err != nil {
			err = errors.Join(fmt.Errorf("starting cluster %s: %w", name, err), stop())
		}
	}()

	// The context ends early when a component does, with its log as the cause.
	ctx, onExit := context.WithCancelCause(ctx)
	defer onExit(nil)
	ctx, cancel := context.WithTimeoutCause(ctx, readyTimeout, fmt.Errorf("not ready after %v", readyTimeout))
	defer cancel()

	port, err := freePort()
	if err != nil {
		return nil, err
	}
	c, err := configureLocal(f, name, port, opts)
	if err != nil {
		return nil, err
	}
	c.stop = stop
	run := func(component string, args []string) error {
		p, err := startProcess(f, binaries[component], component, args, onExit)
		if p != nil {
			processes = append(processes, p)
		}
		return err
	}
	await := func(component string, condition wait.ConditionWithContextFunc) error {
		err := waitFor(ctx, condition)
		var exit *exitError
		if err == nil || errors.As(err, &exit) {
			return err
		}
		return fmt.Errorf("waiting for %s: %w; the end of its log:\n%s", component, err, logTail(f.path(component+".log")))
	}

	// kube-apiserver itself waits for etcd, so the two start together.
	if err := run(Etcd, etcdArgs(f)); err != nil {
		return nil, err
	}
	if err := run(KubeAPIServer, apiServerArgs(f, port, opts)); err != nil {
		return nil, err
	}
	client, err := kubernetes.NewForConfig(c.Config)
	if err != nil {
		return nil, err
	}
	if err := await(KubeAPIServer, apiServerReady(client)); err != nil {
		return nil, err
	}
	if !opts.WithoutControllers {
		if err := run(KubeControllerManager, controllerManagerArgs(f, opts)); err != nil {
			return nil, err
		}
		if err := await(KubeControllerManager, controllersReady(client)); err != nil {
			return nil, err
		}
	}
	if f.detached {
		// From here on the processes alone hold the lock, as they do once this one
		// is gone: so that Attach and Stop work from here, too.
		f.lock.Close()
	}
	return c, nil
}

// waitFor polls until the condition holds. If the context ends first, the error is its cause.
func waitFor(ctx context.Context, condition wait.ConditionWithContextFunc) error {
	err := wait.PollUntilContextCancel(ctx, readyPoll, true, condition)
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	return err
}

// apiServerReady asks /readyz, which fails until every post-start hook is through,
// so that the RBAC roles and the system namespaces are there.
func apiServerReady(client kubernetes.Interface) wait.ConditionWithContextFunc {
	return func(ctx context.Context) (bool, error) {
		ctx, cancel := context.WithTimeout(ctx, requestLimit)
		defer cancel()
		return client.Discovery().RESTClient().Get().AbsPath("/readyz").Do(ctx).Error() == nil, nil
	}
}

// controllersReady waits for what a Pod needs to be admitted, and what shows that
// the controllers work.
func controllersReady(client kubernetes.Interface) wait.ConditionWithContextFunc {
	return func(ctx context.Context) (bool, error) {
		ctx, cancel := context.WithTimeout(ctx, requestLimit)
		defer cancel()
		_, err := client.CoreV1().ServiceAccounts(metav1.NamespaceDefault).Get(ctx, "default", metav1.GetOptions{})
		if err == nil || apierrors.IsNotFound(err) || ctx.Err() != nil {
			return err == nil, nil
		}
		return false, err
	}
}

// freePort returns a TCP port that was free a moment ago. Start tries another one
// if it is taken by the time kube-apiserver listens.
func freePort() (int, error) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return 0, fmt.Errorf("looking for a free port: %w", err)
	}
	defer listener.Close()
	return listener.Addr().(*net.TCPAddr).Port, nil
}

// configureLocal writes keys and kubeconfigs, and returns the cluster they make.
func configureLocal(f *folder, name string, port int, opts Options) (*Cluster, error) {
	ca, err := newAuthority(name)
	if err != nil {
		return nil, err
	}
	var addresses []string
	if opts.AdvertiseAddress != "" {
		addresses = []string{opts.AdvertiseAddress}
	}
	serving, err := ca.serving(opts.serviceCIDR(), addresses...)
	if err != nil {
		return nil, err
	}
	kubeletClient, err := ca.client("kube-apiserver-kubelet-client", "system:masters")
	if err != nil {
		return nil, err
	}
	if err := writeServiceAccountKeys(f.path(serviceAccountKey), f.path(serviceAccountPublicKey)); err != nil {
		return nil, err
	}
	server := "https://" + net.JoinHostPort("127.0.0.1", strconv.Itoa(port))
	controllers, err := newLocalCluster(name, server, ca, "system:kube-controller-manager")
	if err != nil {
		return nil, err
	}
	admin, err := newLocalCluster(name, server, ca, "syncpass-e2e-admin", "system:masters")
	if err != nil {
		return nil, err
	}
	return admin, writeFiles(map[string][]byte{
		f.path(caCertificate):         ca.pem,
		f.path(servingCertificate):    serving.certificate,
		f.path(servingKey):            serving.key,
		f.path(kubeletClientCert):     kubeletClient.certificate,
		f.path(kubeletClientKey):      kubeletClient.key,
		f.path(controllersKubeconfig): controllers.Kubeconfig(),
		f.path(kubeconfigFile):        admin.Kubeconfig(),
	})
}

// newLocalCluster returns access to the API server as one user.
func newLocalCluster(name, server string, ca *authority, user string, groups ...string) (*Cluster, error) {
	pair, err := ca.client(user, groups...)
	if err != nil {
		return nil, err
	}
	return &Cluster{Name: name, Config: &rest.Config{
		Host:            server,
		TLSClientConfig: rest.TLSClientConfig{CAData: ca.pem, CertData: pair.certificate, KeyData: pair.key},
		QPS:             unlimited,
	}}, nil
}
