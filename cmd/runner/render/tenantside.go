package render

import (
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"

	"github.com/syncpass/syncpass/pass/kinds"
)

const (
	// tenantNamespace is where the account in the tenant is: nothing of it crosses, and who may do something there may do
	// everything in the tenant anyway.
	tenantNamespace = "kube-system"
	// tenantName is what everything in the tenant is called.
	tenantName = "syncpass"
	// nodeLeases is where the Leases are by which a cluster knows that its Nodes live.
	nodeLeases = "kube-node-lease"
)

// TenantRights writes what is needed in the tenant: a ServiceAccount, whose token the kubeconfig on the host is to carry, and
// the rights that the policy's kinds and directions take there, and no others.
func TenantRights(o Options) ([]byte, error) {
	if err := o.check(); err != nil {
		return nil, err
	}
	_, nodes := o.carriedKinds()
	metadata := func(namespace string) *yaml.Node {
		m := mapping("name", tenantName)
		if namespace != "" {
			put(m, "namespace", text(namespace))
		}
		put(m, "labels", mapping("app.kubernetes.io/name", "syncpass"))
		return m
	}
	const rbac = "rbac.authorization.k8s.io"
	bound := func(kind, namespace, role string) *yaml.Node {
		return document(nil, "apiVersion", rbac+"/v1", "kind", kind, "metadata", metadata(namespace),
			"roleRef", mapping("apiGroup", rbac, "kind", role, "name", tenantName),
			"subjects", list(mapping("kind", "ServiceAccount", "name", tenantName, "namespace", tenantNamespace)))
	}
	account := document(nil, "apiVersion", "v1", "kind", "ServiceAccount", "metadata", metadata(tenantNamespace), "automountServiceAccountToken", truth(false))
	account.HeadComment = remark("What syncpass needs in tenant " + o.Tenant + " itself, by " + summary(o.Policies) + ": not for the host. " +
		"The kubeconfig on the host carries a token of this account, such as `kubectl create token " + tenantName + " -n " + tenantNamespace + " --duration 8760h` makes." +
		"\nMake it anew when the kinds or directions of that policy change: runner render --side tenant")
	all := []*yaml.Node{
		account,
		document(nil, "apiVersion", rbac+"/v1", "kind", "ClusterRole", "metadata", metadata(""), "rules", list(o.inTenant()...)),
		bound("ClusterRoleBinding", "", "ClusterRole"),
	}
	if nodes {
		all = append(all,
			document(nil, "apiVersion", rbac+"/v1", "kind", "Role", "metadata", metadata(nodeLeases), "rules", list(
				rule("The stubs' heartbeats, without which the tenant takes them for dead.", "coordination.k8s.io", []string{"leases"}, []string{"list", "create", "update", "delete"}))),
			bound("RoleBinding", nodeLeases, "Role"))
	}
	return encode(all)
}

// rule is one with a comment.
func rule(comment, group string, resources, verbs []string, names ...string) *yaml.Node {
	node := mapping("apiGroups", inOneLine(group), "resources", inOneLine(resources...))
	if len(names) > 0 {
		put(node, "resourceNames", inOneLine(names...))
	}
	put(node, "verbs", inOneLine(verbs...))
	node.HeadComment = remark(comment)
	return node
}

// inTenant are the rights in the tenant, in all namespaces, since objects cross from all.
func (o Options) inTenant() []*yaml.Node {
	all, nodes := o.carriedKinds()
	rules := []*yaml.Node{rule("Which tenant it is.", "", []string{"namespaces"}, []string{"get"}, "kube-system")}
	rules = append(rules, contentRules(all)...)
	rules = append(rules, rulesOf(all, carried.madeAgain, "", "create",
		"To make an object again that the tenant deleted and the host changed, once a person says so: runner resolve --keep host.")...)
	rules = append(rules, rulesOf(all, carried.reports, "/status", "update", "What the host reports of them.")...)
	if slices.ContainsFunc(all, carried.isPod) {
		rules = append(rules,
			rule("The tokens that Pods mount, each bound to its Pod.", "", []string{"serviceaccounts/token"}, []string{"create"}),
			rule("The CA that comes with them.", "", []string{"configmaps"}, []string{"get"}, "kube-root-ca.crt"))
	}
	if nodes {
		rules = append(rules,
			rule("Stubs of the nodes that the Pods run on.", "", []string{"nodes"}, []string{"list", "create", "update", "delete"}),
			rule("What the host reports of them.", "", []string{"nodes/status"}, []string{"update"}),
			rule("Pods are shown on them.", "", []string{"pods/binding"}, []string{"create"}))
	}
	return rules
}

// contentRules are the rights on what crosses: to read it, and to write it where the host may change it. A Pod that ended on
// the host is deleted for its controller to make another.
func contentRules(all []carried) []*yaml.Node {
	var rules []*yaml.Node
	for _, way := range []struct {
		comment string
		verbs   []string
		is      func(carried) bool
	}{
		{"Read only, as they cross toHost.", []string{"get", "list"}, func(c carried) bool { return !c.isPod() && !c.comesBack() }},
		{"The host's changes come back.", []string{"get", "list", "update"}, func(c carried) bool { return !c.isPod() && c.comesBack() }},
		{"A Pod that ended on the host is deleted, for its controller to make another.", []string{"get", "list", "delete"}, func(c carried) bool { return c.isPod() && !c.comesBack() }},
		{"A Pod that ended on the host is deleted, for its controller to make another; the host's changes come back.", []string{"get", "list", "update", "delete"},
			func(c carried) bool { return c.isPod() && c.comesBack() }},
	} {
		for _, group := range groupsOf(all) {
			var names, guessed []string
			for _, c := range all {
				if c.Group == group && c.resource != "" && way.is(c) {
					names = append(names, c.resource)
					if c.guessed {
						guessed = append(guessed, c.resource+" is guessed from the kind "+c.Kind+".")
					}
				}
			}
			if len(names) > 0 {
				rules = append(rules, rule(strings.Join(append([]string{way.comment}, guessed...), " "), group, names, way.verbs))
			}
		}
	}
	return rules
}

// rulesOf are the rules that grant one verb on some of the kinds, or on a subresource of theirs: one rule for each group.
func rulesOf(all []carried, is func(carried) bool, subresource, verb, comment string) []*yaml.Node {
	var rules []*yaml.Node
	for _, group := range groupsOf(all) {
		var names []string
		for _, c := range all {
			if c.Group == group && is(c) {
				names = append(names, c.resource+subresource)
			}
		}
		if len(names) > 0 {
			rules = append(rules, rule(comment, group, names, []string{verb}))
		}
	}
	return rules
}

func groupsOf(all []carried) []string {
	var groups []string
	for _, c := range all {
		groups = append(groups, c.Group)
	}
	return slices.Compact(groups) // they are sorted by it
}

// comesBack says whether the host's content may be written to the tenant.
func (c carried) comesBack() bool {
	return c.refused == "" && slices.ContainsFunc(c.directions, func(d string) bool { return d != "toHost" })
}

// madeAgain says whether a person may have a tenant object of the kind made again.
func (c carried) madeAgain() bool { return c.comesBack() && c.held && c.resource != "" }

// reports says whether the host's status of an object is written to the tenant.
func (c carried) reports() bool {
	_, reports := kinds.For(c.GroupKind()).(kinds.Reports)
	return reports && c.refused == ""
}
