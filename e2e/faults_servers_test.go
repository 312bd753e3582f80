package e2e

import (
	"context"
	"encoding/base64"
	"fmt"
	"net"
	"net/http"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/syncpass/syncpass/e2e/cluster"
	"github.com/syncpass/syncpass/e2e/proxy"
	"github.com/syncpass/syncpass/record"
)

// faultsOfServers are servers that are away, or serve less than they should.
func faultsOfServers() []fault {
	unrecorded := []string{"the pass did its work but could not record it"}
	rows := []fault{
		{name: "F31 the tenant is down from the start", exit: 7, nothing: true, says: []string{"reading the tenant"},
			spoil: func(_ *testing.T, p *duePlace) { p.from(record.Tenant, 0, proxy.Drop) }},
		{name: "F32 the host is down from the start", exit: 7, nothing: true,
			spoil: func(_ *testing.T, p *duePlace) { p.from(record.Host, 0, proxy.Drop) }},
		fault{name: "F31 nobody listens at the tenant's address", exit: 7, nothing: true, says: []string{"connection refused"}}.
			withTenantAt(func(*testing.T) string { return "127.0.0.1:1" }, ""),
		fault{name: "F33 the tenant's address takes connections and says nothing", exit: 7, nothing: true, env: quick, within: 20 * time.Second}.
			withTenantAt(blackHole, ""),
		fault{name: "F14 the tenant does not know the token any more", exit: 7, nothing: true, says: []string{"the tenant does not accept the credentials, or no longer: renew those in its kubeconfig"}}.
			withTenantAt(nil, "expired"),
		{name: "F32 the host is down once all is written", exit: 7, env: with(quick, oneByOne), says: unrecorded,
			spoil: func(_ *testing.T, p *duePlace) {
				down := make(chan struct{}, 1)
				p.hostProxy.SetHook(func(m proxy.Moment, r proxy.Request) http.Handler {
					switch {
					case m == proxy.After && deleteGone(p, r):
						down <- struct{}{}
					case m == proxy.Before && len(down) > 0:
						return proxy.Drop
					}
					return nil
				})
			}},
		brokenAPI(),
		// The order of the writes is made, pulled, pushed, gone.
		{name: "F31 the tenant is down from its first write on", exit: 3, env: oneByOne,
			spoil:     func(_ *testing.T, p *duePlace) { p.from(record.Tenant, 1, proxy.Drop) },
			decisions: map[string]string{"pulled": "Skip Rejected", "gone": "Skip Rejected"}},
	}
	onHost := []string{"made", "pushed", "gone"}
	for k := range onHost {
		lost := map[string]string{}
		for _, name := range onHost[k:] {
			lost[name] = "Skip Rejected"
		}
		rows = append(rows, fault{name: fmt.Sprintf("F32 the host is down from write %d on", k+1), exit: 7, env: with(quick, oneByOne),
			says: unrecorded, decisions: lost,
			spoil: func(_ *testing.T, p *duePlace) { p.from(record.Host, k+1, proxy.Drop) }})
	}
	return rows
}

// withTenantAt makes the tenant's kubeconfig lead to another address, or carry another token.
func (f fault) withTenantAt(address func(*testing.T) string, token string) fault {
	var before []byte
	f.spoil = func(t *testing.T, p *duePlace) {
		before = p.kubeconfig(t)
		config, err := clientcmd.Load(before)
		require.NoError(t, err)
		if address != nil {
			config.Clusters["tenant"].Server = "https://" + address(t)
		}
		if token != "" {
			config.AuthInfos["tenant"].Token = token
		}
		changed, err := clientcmd.Write(*config)
		require.NoError(t, err)
		p.setKubeconfig(t, changed)
	}
	f.mend = func(t *testing.T, p *duePlace) { p.setKubeconfig(t, before) }
	return f
}

// kubeconfig is what the place's Secret leads a pass to the tenant with.
func (p *duePlace) kubeconfig(t *testing.T) []byte {
	t.Helper()
	found, err := p.objects(record.Host, secrets).Get(p.s.context(t), p.name+"-kubeconfig", metav1.GetOptions{})
	require.NoError(t, err)
	encoded, _, err := unstructured.NestedString(found.Object, "data", "kubeconfig")
	require.NoError(t, err)
	data, err := base64.StdEncoding.DecodeString(encoded)
	require.NoError(t, err)
	return data
}

func (p *duePlace) setKubeconfig(t *testing.T, data []byte) {
	t.Helper()
	patch := fmt.Appendf(nil, `{"data":{"kubeconfig":%q}}`, base64.StdEncoding.EncodeToString(data))
	_, err := p.objects(record.Host, secrets).Patch(p.s.context(t), p.name+"-kubeconfig", types.MergePatchType, patch, metav1.PatchOptions{})
	require.NoError(t, err)
}

// blackHole takes connections and never answers on them: the kernel completes the handshakes, and nobody accepts.
func blackHole(t *testing.T) string {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	t.Cleanup(func() { _ = listener.Close() })
	return listener.Addr().String()
}

// brokenAPI is an aggregated API on both sides whose server does not exist, and a policy that names a kind of it.
func brokenAPI() fault {
	const group = "broken.example.com"
	services := schema.GroupVersionResource{Group: "apiregistration.k8s.io", Version: "v1", Resource: "apiservices"}
	return fault{
		name: "F15 an aggregated API of which the policy names a kind is broken",
		spoil: func(t *testing.T, p *duePlace) {
			spec := duePolicy()
			spec["resources"] = append(spec["resources"].([]any), object{"apiVersion": group + "/v1", "kind": "Widget", "direction": "toHost"})
			p.setPolicy(t, spec)
			for _, c := range []*cluster.Cluster{p.s.host, p.s.tenant} {
				require.NoError(t, c.Apply(p.s.context(t), documents(t, object{
					"apiVersion": "apiregistration.k8s.io/v1", "kind": "APIService", "metadata": object{"name": "v1." + group},
					"spec": object{"group": group, "version": "v1", "groupPriorityMinimum": 1000, "versionPriority": 10,
						"insecureSkipTLSVerify": true, "service": object{"namespace": p.name, "name": "nobody"}}})))
				client, err := dynamic.NewForConfig(c.Config)
				require.NoError(t, err)
				t.Cleanup(func() {
					assert.NoError(t, client.Resource(services).Delete(p.s.ctx, "v1."+group, metav1.DeleteOptions{}))
				})
				requireDiscovered(t, p.s, c, func(_ []*metav1.APIResourceList, err error) bool { return discovery.IsGroupDiscoveryFailedError(err) })
			}
		},
		mend:      func(t *testing.T, p *duePlace) { p.setPolicy(t, duePolicy()) },
		decisions: map[string]string{"": "Skip KindUnavailable"},
		says:      []string{group},
	}
}

// requireDiscovered waits until a cluster serves what a test needs.
func requireDiscovered(t *testing.T, s *surroundings, c *cluster.Cluster, is func([]*metav1.APIResourceList, error) bool) {
	t.Helper()
	client, err := discovery.NewDiscoveryClientForConfig(c.Config)
	require.NoError(t, err)
	require.NoError(t, wait.PollUntilContextTimeout(s.context(t), 50*time.Millisecond, time.Minute, true, func(ctx context.Context) (bool, error) {
		_, lists, err := client.ServerGroupsAndResources()
		return is(lists, err), nil
	}), "waiting for cluster %s to serve it", c.Name)
}

// served says whether a kind is among those that a cluster serves.
func served(apiVersion, kind string) func([]*metav1.APIResourceList, error) bool {
	return func(lists []*metav1.APIResourceList, _ error) bool {
		for _, list := range lists {
			for _, resource := range list.APIResources {
				if list.GroupVersion == apiVersion && resource.Kind == kind {
					return true
				}
			}
		}
		return false
	}
}

func not(is func([]*metav1.APIResourceList, error) bool) func([]*metav1.APIResourceList, error) bool {
	return func(lists []*metav1.APIResourceList, err error) bool { return !is(lists, err) }
}
