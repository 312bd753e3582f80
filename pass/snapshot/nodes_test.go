package snapshot_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/syncpass/syncpass/pass/kinds"
	"github.com/syncpass/syncpass/pass/plan"
	"github.com/syncpass/syncpass/pass/snapshot"
	"github.com/syncpass/syncpass/policy"
)

const (
	hostPods    = "/api/v1/namespaces/team-dev/pods"
	tenantPods  = "/api/v1/pods"
	tenantNodes = "/api/v1/nodes"
	hostNode    = "/api/v1/nodes/"
)

var (
	pods  = policy.Resource{APIVersion: "v1", Kind: "Pod", Direction: policy.ToHost}
	nodes = policy.Resource{APIVersion: "v1", Kind: "Node", Direction: policy.FromHost}
)

// newNodeSides are sides that serve Pods and Nodes too; Node stands first in the policy, whose order must not matter.
func newNodeSides(t *testing.T, on ...string) *sides {
	s := newSides(t)
	s.request.Mapping = kinds.Mapping{Tenant: "dev", HostNamespace: "team-dev", Owner: metav1.OwnerReference{UID: "owner"}}
	s.request.Resources = []policy.Resource{nodes, pods}
	verbs := metav1.Verbs{"get", "list", "create", "update", "delete"}
	for _, side := range []*api{s.host, s.tenant} {
		side.others["/api/v1"] = always(marshal(metav1.APIResourceList{
			TypeMeta: metav1.TypeMeta{Kind: "APIResourceList", APIVersion: "v1"}, GroupVersion: "v1", APIResources: []metav1.APIResource{
				{Name: "pods", Kind: "Pod", Namespaced: true, Verbs: verbs}, {Name: "nodes", Kind: "Node", Verbs: verbs},
			},
		}))
	}
	items := []string{foreignPod("somebody", "others")}
	for i, node := range on {
		items = append(items, s.mirror(fmt.Sprint("pod-", i), node))
	}
	s.host.lists[hostPods] = always(listOf("Pod", items...))
	s.tenant.lists[tenantPods] = always(listOf("Pod"))
	s.tenant.lists[tenantNodes] = always(listOf("Node"))
	for _, name := range []string{"n1", "n2", "n3", "others"} {
		s.host.lists[hostNode+name] = always(node(name))
	}
	return s
}

func (s *sides) mirror(name, node string) string {
	pod := &unstructured.Unstructured{Object: map[string]any{"spec": map[string]any{}}}
	pod.SetAPIVersion("v1")
	pod.SetKind("Pod")
	pod.SetNamespace("default")
	pod.SetName(name)
	mirror := s.request.Mapping.Project(kinds.For(schema.GroupKind{Kind: "Pod"}), pod, nil, kinds.KeepForeign)
	mirror.SetUID(types.UID(name))
	mirror.SetResourceVersion("5")
	if node != "" {
		mirror.Object["spec"].(map[string]any)["nodeName"] = node
	}
	return marshal(mirror.Object)
}

func foreignPod(name, node string) string {
	return fmt.Sprintf(`{"metadata":{"namespace":"team-dev","name":%q,"uid":"u","resourceVersion":"5"},"spec":{"nodeName":%q}}`, name, node)
}

func listOf(kind string, items ...string) string {
	return fmt.Sprintf(`{"kind":"%sList","apiVersion":"v1","metadata":{"resourceVersion":"9"},"items":[%s]}`, kind, strings.Join(items, ","))
}

func node(name string) string {
	return fmt.Sprintf(`{"kind":"Node","apiVersion":"v1","metadata":{"name":%q,"uid":"uid-%s","resourceVersion":"5"}}`, name, name)
}

func nodeNames(kind plan.KindSnapshot) (tenant, host []string) {
	tenant, host = names(kind)
	slices.Sort(host)
	return tenant, host
}

func TestOfTheHostsNodesThoseAreReadThatOurMirrorsAreOn(t *testing.T) {
	s := newNodeSides(t, "n2", "n1", "n2", "")
	s.tenant.lists[tenantNodes] = always(listOf("Node", node("n1"), node("their-own")))
	taken := s.take(t)
	require.Empty(t, taken.Kinds[0].Unavailable)
	tenant, host := nodeNames(taken.Kinds[0])
	require.Equal(t, []string{"/n1", "/their-own"}, tenant)
	require.Equal(t, []string{"/n1", "/n2"}, host)
	require.Equal(t, "Node", taken.Kinds[0].Host[0].GetKind())
	require.Len(t, s.log.of("host GET /api/v1/nodes"), 2, "each once, and no list: the others are none of our business")
}

// A tenant that names a node, in a Pod or by a Node with our marks, is not shown it for that.
func TestWhatTheTenantSaysMakesNoNodeRead(t *testing.T) {
	s := newNodeSides(t)
	s.tenant.lists[tenantPods] = always(listOf("Pod", `{"metadata":{"namespace":"default","name":"a","uid":"u","resourceVersion":"5"},"spec":{"nodeName":"n1"}}`))
	stub := s.request.Mapping.Stub(&unstructured.Unstructured{Object: map[string]any{"metadata": map[string]any{"name": "n2", "uid": "u", "resourceVersion": "5"}}}, nil)
	stub.SetUID("u")
	stub.SetResourceVersion("5")
	s.tenant.lists[tenantNodes] = always(listOf("Node", marshal(stub.Object)))
	taken := s.take(t)
	require.Len(t, taken.Kinds[0].Tenant, 1)
	require.Empty(t, taken.Kinds[0].Host)
	require.Empty(t, s.log.of("host GET "+hostNode))
}

func TestWithoutNodeInThePolicyNoNodeIsRead(t *testing.T) {
	s := newNodeSides(t, "n1")
	s.request.Resources = []policy.Resource{pods}
	s.take(t)
	require.Empty(t, s.log.of("/api/v1/nodes"))
}

func TestANodeThatIsGoneIsLeftOut(t *testing.T) {
	s := newNodeSides(t, "n1", "n2")
	s.host.lists[hostNode+"n1"] = refuses(http.StatusNotFound, metav1.StatusReasonNotFound)
	taken := s.take(t)
	_, host := nodeNames(taken.Kinds[0])
	require.Equal(t, []string{"/n2"}, host)
	require.Empty(t, taken.Kinds[0].Unavailable)
}

// The right to read nodes is an option; without it Node is unavailable and everything else is as it was.
func TestANodeThatMayNotBeReadMakesNodeUnavailable(t *testing.T) {
	s := newNodeSides(t, "n1", "n2")
	s.tenant.lists[tenantNodes] = always(listOf("Node", node("n1")))
	s.host.lists[hostNode+"n2"] = refuses(http.StatusForbidden, metav1.StatusReasonForbidden)
	taken := s.take(t)
	require.Contains(t, taken.Kinds[0].Unavailable, "manifests/nodes")
	require.Contains(t, taken.Kinds[0].Error, "refused")
	require.Contains(t, taken.Kinds[0].Error, "n2")
	require.Empty(t, taken.Kinds[0].Host)
	require.Len(t, taken.Kinds[0].Tenant, 1, "the stubs that there are live on")
	require.Empty(t, taken.Kinds[1].Unavailable)
	require.NotEmpty(t, taken.Kinds[1].Host)
}

func TestWhatElseMakesNodeUnavailable(t *testing.T) {
	for _, test := range []struct {
		name, want string
		lay        func(s *sides)
	}{
		{"the tenant's list is refused", "tenant", func(s *sides) {
			s.tenant.lists[tenantNodes] = refuses(http.StatusForbidden, metav1.StatusReasonForbidden)
		}},
		{"the tenant's list is none", "tenant", func(s *sides) { s.tenant.lists[tenantNodes] = always(`{"kind":"Status"}`) }},
		{"a Node in a namespace", "tenant", func(s *sides) { s.tenant.lists[tenantNodes] = always(listOf("Node", item("default", "n1"))) }},
		{"the Pods are unknown", "Pods", func(s *sides) { s.host.lists[hostPods] = refuses(http.StatusForbidden, metav1.StatusReasonForbidden) }},
		{"the policy has no Pods", "Pods", func(s *sides) { s.request.Resources = []policy.Resource{nodes} }},
		{"the host has trouble", "host", func(s *sides) {
			s.host.lists[hostNode+"n1"] = refuses(http.StatusConflict, metav1.StatusReasonConflict)
		}},
	} {
		t.Run(test.name, func(t *testing.T) {
			s := newNodeSides(t, "n1")
			test.lay(s)
			taken := s.take(t)
			require.Contains(t, taken.Kinds[0].Unavailable, test.want)
			require.Empty(t, taken.Kinds[0].Host)
		})
	}
}

func TestAHostThatDoesNotAnswerForItsNodesIsUnreachable(t *testing.T) {
	s := newNodeSides(t, "n1")
	s.host.lists[hostNode+"n1"] = refuses(http.StatusUnauthorized, metav1.StatusReasonUnauthorized)
	_, _, err := snapshot.Take(t.Context(), s.request)
	unreachable := &snapshot.UnreachableError{}
	require.ErrorAs(t, err, &unreachable)
}

func TestASideThatIsAwaySaysWhatToLookAt(t *testing.T) {
	refused := &url.Error{Op: "Get", URL: "https://127.0.0.1:1/api", Err: errors.New("connection refused")}
	require.EqualError(t, &snapshot.UnreachableError{Side: "tenant", Err: refused}, "reading the tenant: "+refused.Error()+
		"; is the tenant's API server up, and can this machine reach the address in the kubeconfig?")
	require.EqualError(t, &snapshot.UnreachableError{Side: "host", Err: context.Canceled}, "reading the host: context canceled")
}

// Of a kind that left the policy only the tenant has something to retire.
func TestRetiredNodesAreReadInTheTenant(t *testing.T) {
	s := newNodeSides(t, "n1")
	s.request.Resources, s.request.Retired = []policy.Resource{pods}, []schema.GroupKind{{Kind: "Node"}}
	s.tenant.lists[tenantNodes] = always(listOf("Node", node("n1")))
	taken, resources, err := snapshot.Take(t.Context(), s.request)
	require.NoError(t, err)
	require.True(t, taken.Kinds[1].Retired)
	require.Empty(t, taken.Kinds[1].Unavailable)
	require.Len(t, taken.Kinds[1].Tenant, 1)
	require.Empty(t, s.log.of("host GET "+hostNode))
	require.Equal(t, "nodes", resources["tenant"][schema.GroupVersionKind{Version: "v1", Kind: "Node"}].Resource)
}
