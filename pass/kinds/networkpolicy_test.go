package kinds

import (
	"testing"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"pgregory.net/rapid"
)

// marked are the labels of a marked selector in namespace default.
func marked(more Content) Content {
	all := Content{LabelTenant: "dev", LabelVirtualNamespace: "default"}
	for key, value := range more {
		all[key] = value
	}
	return Content{"matchLabels": all}
}

// tenantWide are those of one that reaches all of the tenant's namespaces.
func tenantWide(more Content) Content {
	selector := marked(more)
	if _, named := more[LabelVirtualNamespace]; !named {
		delete(child(selector, "matchLabels"), LabelVirtualNamespace)
	}
	return selector
}

func byName(operator string, names ...any) Content {
	return Content{"key": metadataName, "operator": operator, "values": names}
}

func with(selector Content, expressions ...any) Content {
	selector["matchExpressions"] = expressions
	return selector
}

var (
	everything = Content{}
	app        = func(name string) Content { return Content{"matchLabels": Content{"app": name}} }
	noPod      = with(tenantWide(nil), Content{"key": LabelVirtualNamespace, "operator": "DoesNotExist"})
	ipBlock    = Content{"ipBlock": Content{"cidr": "10.0.0.0/8", "except": []any{"10.1.0.0/16"}}}
)

var peerForms = map[string]struct{ tenant, host Content }{
	"Pods of the own namespace":          {Content{"podSelector": app("client")}, Content{"podSelector": marked(Content{"app": "client"})}},
	"all Pods of the own namespace":      {Content{"podSelector": everything}, Content{"podSelector": marked(nil)}},
	"all Pods of all namespaces":         {Content{"namespaceSelector": everything}, Content{"podSelector": tenantWide(nil)}},
	"the same, written out":              {Content{"namespaceSelector": everything, "podSelector": everything}, Content{"podSelector": tenantWide(nil)}},
	"some Pods of all namespaces":        {Content{"namespaceSelector": everything, "podSelector": app("client")}, Content{"podSelector": tenantWide(Content{"app": "client"})}},
	"all Pods of a namespace":            {Content{"namespaceSelector": Content{"matchLabels": Content{metadataName: "b"}}}, Content{"podSelector": tenantWide(Content{LabelVirtualNamespace: "b"})}},
	"the own namespace by its name":      {Content{"namespaceSelector": Content{"matchLabels": Content{metadataName: "default"}}}, Content{"podSelector": marked(nil)}},
	"some Pods of some namespaces":       {Content{"namespaceSelector": Content{"matchExpressions": []any{byName("In", "b", "c")}}, "podSelector": app("client")}, Content{"podSelector": with(tenantWide(Content{"app": "client"}), Content{"key": LabelVirtualNamespace, "operator": "In", "values": []any{"b", "c"}})}},
	"all namespaces but some":            {Content{"namespaceSelector": Content{"matchExpressions": []any{byName("NotIn", "b")}}}, Content{"podSelector": with(tenantWide(nil), Content{"key": LabelVirtualNamespace, "operator": "NotIn", "values": []any{"b"}})}},
	"namespaces by a label":              {Content{"namespaceSelector": app("b")}, Content{"podSelector": noPod}},
	"namespaces by a name and a label":   {Content{"namespaceSelector": Content{"matchLabels": Content{metadataName: "b", "team": "x"}}, "podSelector": app("client")}, Content{"podSelector": noPod}},
	"namespaces by another expression":   {Content{"namespaceSelector": Content{"matchExpressions": []any{byName("In", "b"), Content{"key": "team", "operator": "Exists"}}}}, Content{"podSelector": noPod}},
	"addresses":                          {ipBlock, ipBlock},
	"Pods with reserved labels":          {Content{"podSelector": Content{"matchLabels": Content{LabelTenant: "victim", LabelManagedBy: "Helm"}}}, Content{"podSelector": marked(Content{"alias.tenantplane.io/tenant": "victim", managedByAlias: "Helm"})}},
	"Pods with a reserved label, or not": {Content{"podSelector": Content{"matchExpressions": []any{Content{"key": LabelTenant, "operator": "DoesNotExist"}}}}, Content{"podSelector": with(marked(nil), Content{"key": "alias.tenantplane.io/tenant", "operator": "DoesNotExist"})}},
}

var networkPolicyCrossings = func() map[string]crossing {
	row := func(tenant, host Content) crossing {
		return crossing{"networking.k8s.io/v1", "NetworkPolicy", Content{"spec": tenant}, Content{"spec": host}, Content{"spec": host}}
	}
	var tenants, hosts []any
	for _, form := range []string{
		"all Pods of all namespaces", "Pods of the own namespace", "the same, written out", "addresses", "namespaces by a label", "the own namespace by its name",
		"all Pods of the own namespace", "namespaces by a name and a label",
	} {
		tenants, hosts = append(tenants, peerForms[form].tenant), append(hosts, peerForms[form].host)
	}
	ports := []any{Content{"port": int64(53), "protocol": "UDP"}}
	all := map[string]crossing{
		"forbids everything to all Pods": row(Content{"podSelector": everything, "policyTypes": []any{"Ingress"}}, Content{"podSelector": marked(nil), "policyTypes": []any{"Ingress"}}),
		"a rule without peers stays open, and one without rules closed": row(
			Content{"podSelector": app("web"), "policyTypes": []any{"Ingress", "Egress"}, "ingress": []any{Content{}, Content{"ports": ports}}, "egress": []any{}},
			Content{"podSelector": marked(Content{"app": "web"}), "policyTypes": []any{"Ingress", "Egress"}, "ingress": []any{Content{}, Content{"ports": ports}}, "egress": []any{}}),
		"an empty list of peers stays empty": row(
			Content{"podSelector": everything, "ingress": []any{Content{"from": []any{}}}, "egress": []any{Content{"to": []any{}, "ports": ports}}},
			Content{"podSelector": marked(nil), "ingress": []any{Content{"from": []any{}}}, "egress": []any{Content{"to": []any{}, "ports": ports}}}),
		"many peers, some of which look the same on the host": row(
			Content{"podSelector": everything, "ingress": []any{Content{"from": tenants}}}, Content{"podSelector": marked(nil), "ingress": []any{Content{"from": hosts}}}),
	}
	for name, form := range peerForms {
		all["from "+name] = row(
			Content{"podSelector": everything, "ingress": []any{Content{"from": []any{form.tenant}}}}, Content{"podSelector": marked(nil), "ingress": []any{Content{"from": []any{form.host}}}})
		all["to "+name] = row(
			Content{"podSelector": everything, "egress": []any{Content{"to": []any{form.tenant}, "ports": ports}}}, Content{"podSelector": marked(nil), "egress": []any{Content{"to": []any{form.host}, "ports": ports}}})
	}
	return all
}()

// What the host's policy has, and the tenant's does not yet, is written in the tenant's terms and comes back the same.
func TestPeersThatTheHostAddedComeBackInTheTenantsTerms(t *testing.T) {
	for name, form := range peerForms {
		t.Run(name, func(t *testing.T) {
			tenant := object("networking.k8s.io/v1", "NetworkPolicy", Content{"spec": Content{"podSelector": Content{}}})
			kind := kindOf(tenant)
			host := stored(mapping.Project(kind, tenant, nil, KeepNone))
			host.Object["spec"] = runtime.DeepCopyJSON(Content{"podSelector": marked(nil), "ingress": []any{Content{"from": []any{form.host}}}})
			back := mapping.Reflect(kind, host, tenant)
			require.Equal(t, host.Object["spec"], mapping.Project(kind, back, host, KeepNone).Object["spec"])
			require.NotContains(t, child(back.Object, "spec")["ingress"], form.host, "the marks are not the tenant's to see")
		})
	}
	hosts := Content{"namespaceSelector": app("monitoring")}
	tenant := object("networking.k8s.io/v1", "NetworkPolicy", Content{"spec": Content{"podSelector": Content{}}})
	host := stored(mapping.Project(kindOf(tenant), tenant, nil, KeepNone))
	host.Object["spec"] = runtime.DeepCopyJSON(Content{"podSelector": marked(nil), "ingress": []any{Content{"from": []any{hosts}}}})
	require.Equal(t, []any{Content{"from": []any{hosts}}}, child(mapping.Reflect(kindOf(tenant), host, tenant).Object, "spec")["ingress"])
}

// A peer allows on the host a Pod that it allows in the tenant, and no other: for all Pods of this tenant, of others and
// of the host's own, and for every form of peer but those by labels of namespaces, which allow fewer.
func TestAPeerAllowsNoMoreThanInTheTenant(t *testing.T) {
	draw := func(t *rapid.T, what string, keys ...string) labels.Set {
		set := labels.Set{}
		for _, key := range keys {
			if value := rapid.SampledFrom([]string{"", "a", "b", "default", "dev"}).Draw(t, what+key); value != "" {
				set[key] = value
			}
		}
		return set
	}
	selectorOf := func(t *rapid.T, what string, keys ...string) Content {
		selector := Content{}
		matched := Content{}
		for key, value := range draw(t, what+" label ", keys...) {
			matched[key] = value
		}
		if len(matched) > 0 {
			selector["matchLabels"] = matched
		}
		if rapid.Bool().Draw(t, what+" has an expression") {
			expression := Content{"key": rapid.SampledFrom(keys).Draw(t, what+" key"), "operator": rapid.SampledFrom([]string{"In", "NotIn", "Exists", "DoesNotExist"}).Draw(t, what+" operator")}
			if expression["operator"] == "In" || expression["operator"] == "NotIn" {
				expression["values"] = []any{"a", "default"}
			}
			selector["matchExpressions"] = []any{expression}
		}
		return selector
	}
	matches := func(t *rapid.T, selector any, set labels.Set) bool {
		typed := &metav1.LabelSelector{}
		require.NoError(t, runtime.DefaultUnstructuredConverter.FromUnstructured(selector.(Content), typed))
		compiled, err := metav1.LabelSelectorAsSelector(typed)
		require.NoError(t, err)
		return compiled.Matches(set)
	}
	rapid.Check(t, func(t *rapid.T) {
		peer := Content{}
		if rapid.Bool().Draw(t, "selects Pods") {
			peer["podSelector"] = selectorOf(t, "pods", "app", LabelTenant)
		}
		named := rapid.Bool().Draw(t, "names namespaces")
		if spaces := rapid.Bool().Draw(t, "selects namespaces"); spaces && named {
			peer["namespaceSelector"] = selectorOf(t, "namespaces", metadataName)
		} else if spaces {
			peer["namespaceSelector"] = selectorOf(t, "namespaces", metadataName, "team")
		}
		if len(peer) == 0 {
			return // no API server takes it
		}
		namespace := rapid.SampledFrom([]string{"default", "a", "b"}).Draw(t, "namespace of the Pod")
		namespaceLabels := labels.Set{metadataName: namespace, "team": "a"}
		pod := object("v1", "Pod", Content{"spec": Content{"containers": []any{}}})
		pod.SetNamespace(namespace)
		pod.SetLabels(draw(t, "pod ", "app", LabelTenant))

		allowed := peer["podSelector"] == nil || matches(t, peer["podSelector"], pod.GetLabels())
		if within, found := peer["namespaceSelector"]; found {
			allowed = allowed && matches(t, within, namespaceLabels)
		} else {
			allowed = allowed && namespace == "default"
		}

		policy := object("networking.k8s.io/v1", "NetworkPolicy", Content{"spec": Content{"ingress": []any{Content{"from": []any{peer}}}}})
		host := peers(child(mapping.Project(kindOf(policy), policy, nil, KeepNone).Object, "spec"))
		require.Len(t, host, 1, "a peer never goes away: a rule without peers allows everything")
		require.NotContains(t, host[0], "namespaceSelector", "all mirrors are in one namespace")
		mirror := mapping.Project(kindOf(pod), pod, nil, KeepNone)
		got := matches(t, host[0]["podSelector"], mirror.GetLabels())
		if _, byLabel := inNamespacesOf(peer); byLabel {
			require.False(t, got && !allowed)
		} else {
			require.Equal(t, allowed, got)
		}
		foreign := mapping
		foreign.Tenant = "prod"
		require.False(t, matches(t, host[0]["podSelector"], foreign.Project(kindOf(pod), pod, nil, KeepNone).GetLabels()), "never another tenant's")
		require.False(t, matches(t, host[0]["podSelector"], pod.GetLabels()) && pod.GetLabels()[LabelTenant] != "dev", "never a Pod without our marks")
	})
}

// inNamespacesOf says whether a peer selects namespaces by a label other than their name.
func inNamespacesOf(peer Content) (Content, bool) {
	within := child(peer, "namespaceSelector")
	return within, !inNamespaces(Content{"matchLabels": Content{}}, runtime.DeepCopyJSON(within))
}

func TestASelectorThatIsAbsentSelectsItsNamespaceOnly(t *testing.T) {
	tenant := object("networking.k8s.io/v1", "NetworkPolicy", Content{"spec": Content{"policyTypes": []any{"Ingress"}}})
	mirror := mapping.Project(kindOf(tenant), tenant, nil, KeepNone)
	selector, _, _ := unstructured.NestedMap(mirror.Object, "spec", "podSelector")
	require.Equal(t, marked(nil), selector)
	require.Equal(t, tenant.Object["spec"], mapping.Reflect(kindOf(tenant), stored(mirror), tenant).Object["spec"])
}
