package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/yaml"

	"github.com/syncpass/syncpass/e2e/cluster"
	"github.com/syncpass/syncpass/e2e/proxy"
	"github.com/syncpass/syncpass/pass/access"
)

const (
	// tokenLifetime outlasts the longest run.
	tokenLifetime = 24 * time.Hour
	// concurrency is how many requests are in flight wherever a pass may have several: SYNCPASS_CONCURRENCY's default.
	concurrency = 16
)

// robot is the ServiceAccount that a pass and the yardsticks are on either side.
const robot = `
apiVersion: v1
kind: ServiceAccount
metadata: {namespace: kube-system, name: syncpass-bench}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRoleBinding
metadata: {name: syncpass-bench}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: cluster-admin}
subjects: [{kind: ServiceAccount, namespace: kube-system, name: syncpass-bench}]
`

// side is one API server and the ways to it.
type side struct {
	name    string
	cluster *cluster.Cluster
	// admin lays and changes what is measured: other connections than those of the yardsticks.
	admin kubernetes.Interface
	// client is the one that a pass makes, for the yardsticks.
	client *access.Cluster
	// direct and proxied are kubeconfigs with one token, since histories are keyed by it.
	direct, proxied []byte
	proxy           *proxy.Proxy
}

// world is a host and a tenant with nothing in them, and the binary that is measured.
type world struct {
	dir, runner  string
	host, tenant *side
	requests     *proxy.Log
}

// startWorld brings both API servers up; close takes them down.
func startWorld(ctx context.Context, runner string, log io.Writer) (w *world, err error) {
	w = &world{runner: runner, requests: &proxy.Log{}}
	defer func() {
		if err != nil {
			w, err = nil, errors.Join(err, w.close())
		}
	}()
	if w.dir, err = os.MkdirTemp("", "syncpass-bench-"); err != nil {
		return w, err
	}
	options := cluster.Options{
		WithoutControllers: true, Log: log,
		// Nothing makes the ServiceAccounts that this plugin wants Pods to have.
		APIServerArgs: []string{"--disable-admission-plugins=ServiceAccount"},
	}
	host, tenant, err := cluster.StartPair(ctx, cluster.Local(), options, options)
	if err != nil {
		return w, err
	}
	w.host, w.tenant = &side{name: "host", cluster: host}, &side{name: "tenant", cluster: tenant}
	if err := host.ApplyCRDs(ctx); err != nil {
		return w, err
	}
	for _, s := range []*side{w.host, w.tenant} {
		if err := s.connect(ctx, w.requests); err != nil {
			return w, fmt.Errorf("access to the %s: %w", s.name, err)
		}
	}
	if w.tenant.client, err = access.NewTenant(w.tenant.direct, access.Options{}); err != nil {
		return w, err
	}
	for name, kubeconfig := range map[string][]byte{directFile: w.host.direct, proxiedFile: w.host.proxied} {
		if err := os.WriteFile(filepath.Join(w.dir, name), kubeconfig, 0o600); err != nil {
			return w, err
		}
	}
	return w, nil
}

// Files in a world's folder: the host's kubeconfigs.
const (
	directFile  = "host.kubeconfig"
	proxiedFile = "host-proxied.kubeconfig"
)

// connect makes the ways to a side; the tenant's own client is made from its kubeconfig.
func (s *side) connect(ctx context.Context, log *proxy.Log) error {
	if err := s.cluster.Apply(ctx, []byte(robot)); err != nil {
		return err
	}
	config := rest.CopyConfig(s.cluster.Config)
	config.ContentType = runtime.ContentTypeProtobuf
	var err error
	if s.admin, err = kubernetes.NewForConfig(config); err != nil {
		return err
	}
	seconds := int64(tokenLifetime / time.Second)
	token, err := s.admin.CoreV1().ServiceAccounts("kube-system").CreateToken(ctx, "syncpass-bench",
		&authenticationv1.TokenRequest{Spec: authenticationv1.TokenRequestSpec{ExpirationSeconds: &seconds}}, metav1.CreateOptions{})
	if err != nil {
		return err
	}
	if s.proxy, err = proxy.Start(s.name, s.cluster.Config, log); err != nil {
		return err
	}
	if s.proxied, err = s.proxy.Kubeconfig(token.Status.Token); err != nil {
		return err
	}
	withToken := rest.AnonymousClientConfig(s.cluster.Config)
	withToken.BearerToken = token.Status.Token
	s.direct = (&cluster.Cluster{Name: s.name, Config: withToken}).Kubeconfig()
	s.client, err = access.NewHost(withToken, access.Options{})
	return err
}

// place is a tenant's place on the host.
type place struct {
	namespace string
	// tenant names the TenantCluster, and the SyncPolicy that it refers to.
	tenant string
}

// mirror is the name of the mirror of a tenant object in the namespace default.
func (p place) mirror(name string) string {
	return name + "-x-" + metav1.NamespaceDefault + "-x-" + p.tenant
}

// document is an object as it is written down.
type document = map[string]any

func documents(all ...document) ([]byte, error) {
	var joined []byte
	for _, one := range all {
		data, err := yaml.Marshal(one)
		if err != nil {
			return nil, err
		}
		joined = append(append(joined, "---\n"...), data...)
	}
	return joined, nil
}

// manifests are what a tenant needs on the host, with a policy of one kind.
func (p place) manifests(kind objectKind) []document {
	return []document{
		{"apiVersion": "v1", "kind": "Namespace", "metadata": document{"name": p.namespace}},
		{"apiVersion": "tenantplane.io/v1alpha1", "kind": "SyncPolicy", "metadata": document{"name": p.tenant}, "spec": document{
			"conflictPolicy": "manual", "resources": []any{document{"apiVersion": "v1", "kind": kind.kind, "direction": kind.direction}}}},
		{"apiVersion": "tenantplane.io/v1alpha1", "kind": "TenantCluster", "metadata": document{"namespace": p.namespace, "name": p.tenant},
			"spec": document{"syncPolicyRef": document{"name": p.tenant}}},
	}
}

// access is the Secret by which passes find the tenant.
func (p place) access(kubeconfig []byte) document {
	return document{"apiVersion": "v1", "kind": "Secret", "metadata": document{"namespace": p.namespace, "name": p.secret()},
		"data": document{"kubeconfig": kubeconfig}}
}

func (p place) secret() string { return p.tenant + "-control-plane-kubeconfig" }

// applyToHost applies documents in their order.
func (w *world) applyToHost(ctx context.Context, all ...document) error {
	manifests, err := documents(all...)
	if err != nil {
		return err
	}
	return w.host.cluster.Apply(ctx, manifests)
}

func (w *world) close() error {
	var errs []error
	for _, s := range []*side{w.host, w.tenant} {
		if s == nil {
			continue
		}
		if s.client != nil {
			s.client.Close()
		}
		if s.proxy != nil {
			errs = append(errs, s.proxy.Close())
		}
		errs = append(errs, s.cluster.Stop())
	}
	return errors.Join(append(errs, os.RemoveAll(w.dir))...)
}
