package scenario

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"

	"golang.org/x/sync/errgroup"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/rest"
)

// The fixed surroundings of every file.
const (
	hostNamespace = "team-dev"
	tenantName    = "dev"
	policyName    = "default"
	secretName    = tenantName + "-control-plane-kubeconfig"

	apiVersion = "tenantplane.io/v1alpha1"
)

// confirmAnnotation lets a withheld plan through.
const confirmAnnotation = "tenantplane.io/confirm-deletes"

var (
	tenantClusterRef = Ref{APIVersion: apiVersion, Kind: "TenantCluster", Metadata: RefMeta{Namespace: hostNamespace, Name: tenantName}}
	syncDecisions    = schema.GroupVersionResource{Group: "tenantplane.io", Version: "v1alpha1", Resource: "syncdecisions"}
	syncPolicies     = schema.GroupVersionResource{Group: "tenantplane.io", Version: "v1alpha1", Resource: "syncpolicies"}
	events           = schema.GroupVersionResource{Version: "v1", Resource: "events"}
)

// Environment is what files are run against. The host must serve the kinds of
// tenantplane.io.
type Environment struct {
	// Host and Tenant have every right at the two API servers.
	Host, Tenant *rest.Config
	// TenantKubeconfig is what the binary finds in the tenant's Secret.
	TenantKubeconfig []byte
	// Binary is the runner. Its environment must lead it to the host, and need not
	// name the namespace and the tenant.
	Binary Binary
	// Has is what there is of NeedTenantControllers and NeedHostNode.
	Has []string
	// Before, if set, is called before each step that makes a pass or a plan. It may
	// run the binary in that step's environment, with env put on top.
	Before func(ctx context.Context, run func(env map[string]string, args ...string) (*Result, error)) error
}

// Runner runs files, one at a time.
type Runner struct {
	env          Environment
	host, tenant *side
	// made are the cluster-scoped objects that the present file made, by side.
	made map[*side][]Ref
}

// NewRunner returns a runner for the environment. Namespaces that are there now,
// besides default and those of the surroundings, count as the system's.
func NewRunner(ctx context.Context, env Environment) (*Runner, error) {
	host, err := newSide(sideHost, env.Host)
	if err != nil {
		return nil, err
	}
	tenant, err := newSide(sideTenant, env.Tenant)
	if err != nil {
		return nil, err
	}
	for _, s := range []*side{host, tenant} {
		list, err := s.metadata.Resource(namespaces).List(ctx, metav1.ListOptions{})
		if err != nil {
			return nil, fmt.Errorf("listing the namespaces of the %s: %w", s.name, err)
		}
		for _, namespace := range list.Items {
			if namespace.Name != metav1.NamespaceDefault && namespace.Name != hostNamespace {
				s.system = append(s.system, namespace.Name)
			}
		}
	}
	return &Runner{env: env, host: host, tenant: tenant, made: map[*side][]Ref{}}, nil
}

// Missing returns what the file needs and the environment does not have.
func (r *Runner) Missing(f *File) []string {
	return slices.DeleteFunc(slices.Clone(f.Needs), func(need string) bool { return slices.Contains(r.env.Has, need) })
}

// Clean removes everything from both sides but what every cluster makes for
// itself, the namespace of the surroundings and the system's namespaces.
func (r *Runner) Clean(ctx context.Context) error {
	var group errgroup.Group
	group.Go(func() error {
		return r.host.clean(ctx, []string{metav1.NamespaceDefault, hostNamespace}, r.made[r.host])
	})
	group.Go(func() error { return r.tenant.clean(ctx, []string{metav1.NamespaceDefault}, r.made[r.tenant]) })
	if err := group.Wait(); err != nil {
		return err
	}
	clear(r.made)
	return nil
}

// Lay makes the surroundings on two clean sides: on the host the namespace,
// SyncPolicy with this spec (DefaultPolicy if empty), TenantCluster and the Secret
// with the tenant's kubeconfig, in the tenant the namespaces.
func (r *Runner) Lay(ctx context.Context, policy Object, tenantNamespaces []string) error {
	if len(policy) == 0 {
		policy = DefaultPolicy()
	}
	list, err := r.host.metadata.Resource(syncPolicies).List(ctx, metav1.ListOptions{})
	if err != nil {
		return fmt.Errorf("listing SyncPolicies: %w; are the CRDs of manifests/crd applied?", err)
	}
	for _, other := range list.Items {
		if other.Name != policyName {
			if err := r.host.remove(ctx, syncPolicies, &other); err != nil {
				return err
			}
		}
	}
	host := []Object{
		namespaceObject(hostNamespace),
		{"apiVersion": apiVersion, "kind": "SyncPolicy", "metadata": map[string]any{"name": policyName}, "spec": map[string]any(policy)},
		{"apiVersion": apiVersion, "kind": "TenantCluster",
			"metadata": map[string]any{"namespace": hostNamespace, "name": tenantName},
			"spec":     map[string]any{"syncPolicyRef": map[string]any{"name": policyName}}},
		{"apiVersion": "v1", "kind": "Secret",
			"metadata":   map[string]any{"namespace": hostNamespace, "name": secretName},
			"stringData": map[string]any{"kubeconfig": string(r.env.TenantKubeconfig)}},
	}
	for _, object := range host {
		if _, err := r.host.apply(ctx, object); err != nil {
			return fmt.Errorf("laying %s: %w", object.ref(), err)
		}
	}
	for _, name := range tenantNamespaces {
		if _, err := r.tenant.apply(ctx, namespaceObject(name)); err != nil {
			return fmt.Errorf("laying tenant namespace %s: %w", name, err)
		}
	}
	return nil
}

func namespaceObject(name string) Object {
	return Object{"apiVersion": "v1", "kind": "Namespace", "metadata": map[string]any{"name": name}}
}

// Run runs a file between a cleaning before and one after it. The error of a file
// that does not hold is meant to be read as it stands.
func (r *Runner) Run(ctx context.Context, f *File) (err error) {
	if missing := r.Missing(f); len(missing) > 0 {
		return fmt.Errorf("the file needs %s, which is not here", strings.Join(missing, ", "))
	}
	if err := r.Clean(ctx); err != nil {
		return err
	}
	// What a file made is removed also when the test has run out of time.
	defer func() { err = errors.Join(err, r.Clean(context.WithoutCancel(ctx))) }()
	if err := r.Lay(ctx, f.Policy, f.Namespaces); err != nil {
		return err
	}
	dir, err := os.MkdirTemp("", "syncpass-scenario-")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	run := &run{runner: r, file: f, dir: dir, saved: map[string]string{}, seen: map[seenKey]version{}}
	return run.steps(ctx)
}
