package e2e

import (
	"encoding/json"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
	"sigs.k8s.io/yaml"

	"github.com/syncpass/syncpass/e2e/proxy"
	"github.com/syncpass/syncpass/e2e/scenario"
	"github.com/syncpass/syncpass/pass"
	"github.com/syncpass/syncpass/policy"
	"github.com/syncpass/syncpass/record"
)

// place is one of many tenants on the shared control planes: a host namespace with a TenantCluster and a SyncPolicy that
// carries what is in one tenant namespace, all of one name, and proxies of its own. Tests that stay in their places may
// run side by side, which tests on the whole of both clusters may not.
type place struct {
	s *surroundings
	// name is that of the host namespace, the TenantCluster, the SyncPolicy and the tenant namespace.
	name                       string
	hostProxy, tenantProxy     *proxy.Proxy
	requests                   *proxy.Log
	binary                     scenario.Binary
	hostObjects, tenantObjects dynamic.Interface
}

// usePlaces gives a test the shared control planes, with nothing in them but the places of other tests, for places of its
// own. It may run in parallel with those, and with no other test that uses the suite.
func usePlaces(t *testing.T) *surroundings {
	t.Helper()
	s := suite(t)
	s.placing.Lock()
	defer s.placing.Unlock()
	runner := s.runner(t)
	if s.placed == 0 {
		require.NoError(t, runner.Clean(s.context(t)))
	}
	s.placed++
	t.Cleanup(func() {
		s.placing.Lock()
		defer s.placing.Unlock()
		if s.placed--; s.placed == 0 {
			require.NoError(t, runner.Clean(s.ctx))
		}
	})
	return s
}

// newPlace makes a place. Every resource of the policy is narrowed to the place's namespace in the tenant.
func newPlace(t *testing.T, s *surroundings, name string, spec scenario.Object) *place {
	t.Helper()
	ctx := s.context(t)
	p := &place{s: s, name: name, requests: &proxy.Log{}}
	var err error
	p.hostObjects, err = dynamic.NewForConfig(s.host.Config)
	require.NoError(t, err)
	p.tenantObjects, err = dynamic.NewForConfig(s.tenant.Config)
	require.NoError(t, err)
	t.Cleanup(func() { p.close(t) })

	var hostKubeconfig, tenantKubeconfig []byte
	p.hostProxy, hostKubeconfig, err = s.front(ctx, "host", s.host, p.requests)
	require.NoError(t, err)
	p.tenantProxy, tenantKubeconfig, err = s.front(ctx, "tenant", s.tenant, p.requests)
	require.NoError(t, err)
	path := filepath.Join(t.TempDir(), "host.kubeconfig")
	require.NoError(t, os.WriteFile(path, hostKubeconfig, 0o600))
	p.binary = s.binary(t)
	p.binary.Log = p.requests
	p.binary.Env = map[string]string{
		"SYNCPASS_HOST_KUBECONFIG": path, "HOME": t.TempDir(), "SYNCPASS_NAMESPACE": name, "SYNCPASS_TENANT": name,
	}
	require.NoError(t, s.host.Apply(ctx, documents(t,
		object{"apiVersion": "v1", "kind": "Namespace", "metadata": object{"name": name}},
		object{"apiVersion": "tenantplane.io/v1alpha1", "kind": "TenantCluster", "metadata": object{"namespace": name, "name": name},
			"spec": object{"syncPolicyRef": object{"name": name}}},
		object{"apiVersion": "v1", "kind": "Secret", "metadata": object{"namespace": name, "name": name + "-kubeconfig"},
			"stringData": object{"kubeconfig": string(tenantKubeconfig)}})))
	require.NoError(t, s.tenant.Apply(ctx, documents(t, object{"apiVersion": "v1", "kind": "Namespace", "metadata": object{"name": name}})))
	p.setPolicy(t, spec)
	return p
}

// object is one as it is written down.
type object = map[string]any

func documents(t *testing.T, objects ...object) []byte {
	t.Helper()
	var all []byte
	for _, one := range objects {
		data, err := yaml.Marshal(one)
		require.NoError(t, err)
		all = append(append(all, "---\n"...), data...)
	}
	return all
}

// setPolicy makes this the place's policy, narrowed to its namespace.
func (p *place) setPolicy(t *testing.T, spec scenario.Object) {
	t.Helper()
	narrowed := (&unstructured.Unstructured{Object: object(spec)}).DeepCopy().Object
	for _, resource := range narrowed["resources"].([]any) {
		resource.(object)["namespaces"] = []any{p.name}
	}
	require.NoError(t, p.s.host.Apply(p.s.context(t), documents(t, object{
		"apiVersion": "tenantplane.io/v1alpha1", "kind": "SyncPolicy", "metadata": object{"name": p.name}, "spec": narrowed,
	})))
}

// apply applies YAML documents to one side; objects that name no namespace go to the place's.
func (p *place) apply(t *testing.T, side record.Side, manifests string) {
	t.Helper()
	c := p.s.tenant
	if side == record.Host {
		c = p.s.host
	}
	require.NoError(t, c.ApplyIn(p.s.context(t), p.name, []byte(manifests)))
}

// objects are one side's objects of a kind in the place.
func (p *place) objects(side record.Side, resource schema.GroupVersionResource) dynamic.ResourceInterface {
	if side == record.Host {
		return p.hostObjects.Resource(resource).Namespace(p.name)
	}
	return p.tenantObjects.Resource(resource).Namespace(p.name)
}

// mirror is the host name of an object of the place, as long as it is short and free of "-x-".
func (p *place) mirror(name string) string { return name + "-x-" + p.name + "-x-" + p.name }

// run runs the binary once, to whatever exit.
func (p *place) run(t *testing.T, env map[string]string, args ...string) *scenario.Result {
	t.Helper()
	result, err := p.binary.Run(p.s.context(t), env, args...)
	require.NoError(t, err)
	return result
}

// pass makes one pass, which must end with this exit code, and returns what it printed.
func (p *place) pass(t *testing.T, exit int, env map[string]string) (pass.Result, []proxy.Request) {
	t.Helper()
	result := p.run(t, env, "pass", "-o", "json")
	require.Equal(t, exit, result.Exit, "stdout:\n%s\nstderr:\n%s", result.Stdout, result.Stderr)
	var output passOutput
	require.NoError(t, json.Unmarshal(result.Stdout, &output), "stdout:\n%s", result.Stdout)
	require.Len(t, output.Passes, 1)
	return output.Passes[0], result.Requests
}

// decision is the place's SyncDecision, nil if there is none.
func (p *place) decision(t *testing.T) *unstructured.Unstructured {
	t.Helper()
	found, err := p.objects(record.Host, policy.GroupVersion.WithResource("syncdecisions")).Get(p.s.context(t), p.name, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		return nil
	}
	require.NoError(t, err)
	return found
}

// close ends the place's proxies and removes what is in no namespace; usePlaces empties the rest.
func (p *place) close(t *testing.T) {
	for _, running := range []*proxy.Proxy{p.hostProxy, p.tenantProxy} {
		if running != nil {
			assert.NoError(t, running.Close())
		}
	}
	err := p.hostObjects.Resource(policy.SyncPolicyResource).Delete(p.s.ctx, p.name, metav1.DeleteOptions{})
	if !apierrors.IsNotFound(err) {
		assert.NoError(t, err)
	}
}

func TestPlacesAreApart(t *testing.T) {
	s := usePlaces(t)
	for _, name := range []string{"here", "there"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := newPlace(t, s, name, scenario.DefaultPolicy())
			p.apply(t, record.Tenant, "{apiVersion: v1, kind: ConfigMap, metadata: {name: c}, data: {in: "+name+"}}")
			first, _ := p.pass(t, 0, nil)
			require.Equal(t, 1, first.Counts.Create)
			mirror, err := p.objects(record.Host, corev1.SchemeGroupVersion.WithResource("configmaps")).Get(t.Context(), p.mirror("c"), metav1.GetOptions{})
			require.NoError(t, err)
			require.Equal(t, object{"in": name}, mirror.Object["data"])
			require.NotNil(t, p.decision(t))
			quiet, requests := p.pass(t, 0, nil)
			require.Equal(t, 1, quiet.Counts.Unchanged)
			requireNoWriteButTheLease(t, requests)
		})
	}
}
