package render

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/syncpass/syncpass/pass/kinds"
	"github.com/syncpass/syncpass/policy"
)

// carried is a kind that crosses, and the ways it does so in the policies at hand.
type carried struct {
	schema.GroupVersionKind
	directions []string
	// resource is what the host calls it; guessed, that nobody asked the host. Empty where it does not cross, since it is
	// cluster-scoped.
	resource string
	guessed  bool
	// refused is why it does not cross, whatever the policy says.
	refused string
	// held says that a policy leaves its conflicts to a person.
	held bool
}

func (c carried) isPod() bool    { return c.Group == "" && c.Kind == "Pod" }
func (c carried) isSecret() bool { return c.Group == "" && c.Kind == "Secret" }

// String is the kind with its directions.
func (c carried) String() string { return c.Kind + " (" + strings.Join(c.directions, ", ") + ")" }

// carriedKinds are the kinds of all policies, sorted by group and kind, and whether Node is among them, which has no mirror.
func (o Options) carriedKinds() (all []carried, nodes bool) {
	found := map[schema.GroupKind]*carried{}
	for _, p := range o.Policies {
		for _, r := range p.Spec.Resources {
			kind := schema.FromAPIVersionAndKind(r.APIVersion, r.Kind)
			if kinds.IsNode(kind.GroupKind()) {
				nodes = true
				continue
			}
			c := found[kind.GroupKind()]
			if c == nil {
				c = &carried{GroupVersionKind: kind}
				c.resource, c.guessed = o.resource(kind)
				if refuses, ok := kinds.For(kind.GroupKind()).(kinds.Refuses); ok {
					c.refused = refuses.Refused()
				}
				found[kind.GroupKind()] = c
			}
			if !slices.Contains(c.directions, string(r.Direction)) {
				c.directions = append(c.directions, string(r.Direction))
				slices.Sort(c.directions)
			}
			c.held = c.held || r.Direction == policy.Bidirectional && p.Spec.ConflictPolicy == policy.Manual
		}
	}
	for _, c := range found {
		all = append(all, *c)
	}
	slices.SortFunc(all, func(a, b carried) int { return cmp.Or(cmp.Compare(a.Group, b.Group), cmp.Compare(a.Kind, b.Kind)) })
	return all, nodes
}

// resource is what the host calls a kind. Kubernetes' own kinds follow the rule by which it is guessed; others may not.
func (o Options) resource(kind schema.GroupVersionKind) (name string, guessed bool) {
	if o.Resource != nil {
		if name, known := o.Resource(kind); known {
			return name, false
		}
	}
	plural, _ := meta.UnsafeGuessKindToResource(kind)
	own := !strings.Contains(kind.Group, ".") || strings.HasSuffix(kind.Group, ".k8s.io")
	return plural.Resource, !own
}

// baseRules are the rules of manifests/base/role.yaml.
func baseRules() ([]*yaml.Node, error) {
	base, err := documents("base/role.yaml")
	if err != nil {
		return nil, err
	}
	return at(object(base[0]), "rules").Content, nil
}

// ruleFor is the first rule about a resource, with a comment of its own where one is given.
func ruleFor(rules []*yaml.Node, resource string, comment ...string) *yaml.Node {
	i := slices.IndexFunc(rules, func(rule *yaml.Node) bool { return slices.Contains(words(at(rule, "resources")), resource) })
	rule := *rules[i]
	rule.Content = slices.Clone(rule.Content)
	if len(comment) > 0 {
		rule.HeadComment = remark(strings.Join(comment, " "))
	}
	return &rule
}

// tenantRules are what a pass may do in the tenant's namespace: what every pass needs, as manifests/base/role.yaml has it,
// narrowed down to the one tenant where there is one, and the kinds that cross.
func (o Options) tenantRules() ([]*yaml.Node, error) {
	base, err := baseRules()
	if err != nil {
		return nil, err
	}
	all, _ := o.carriedKinds()
	var rules []*yaml.Node
	add := func(more ...*yaml.Node) { rules = append(rules, more...) }
	if o.Form != Sharded {
		cluster := ruleFor(base, "tenantclusters", "Which policy the tenant names, and the confirmation of a plan that a guard withheld.",
			"Never written: a TenantCluster is its author's.")
		narrow(cluster, []string{"get"}, o.Tenant)
		add(cluster)
	}
	add(ruleFor(base, "syncdecisions"), ruleFor(base, "syncdecisions/status"))
	lease := ruleFor(base, "leases")
	if o.Form != Sharded {
		create := ruleFor(base, "leases", "RBAC cannot narrow this down to a name.")
		narrow(create, []string{"create"})
		narrow(lease, slices.DeleteFunc(words(at(lease, "verbs")), func(verb string) bool { return verb == "create" }), "syncpass-"+o.Tenant)
		lease.HeadComment = remark("The tenant's Lease, one pass at a time. It is released, never deleted: its renewTime tells when the last pass ran.")
		add(lease, create)
	} else {
		add(lease)
	}
	add(ruleFor(base, "events"), o.kubeconfigRule(base, all))
	return append(rules, mirrorRules(base, all)...), nil
}

// narrow gives a rule these verbs, and these names of objects where there are any.
func narrow(rule *yaml.Node, verbs []string, names ...string) {
	put(rule, "verbs", inOneLine(verbs...))
	if len(names) > 0 {
		putAfter(rule, "resources", "resourceNames", inOneLine(names...))
	}
}

// kubeconfigRule is the right to read the tenant's kubeconfig: the Secrets by whose names it is looked for, and no other
// one, unless other Secrets must be read anyway.
func (o Options) kubeconfigRule(base []*yaml.Node, all []carried) *yaml.Node {
	switch {
	case o.Form == Sharded:
		return ruleFor(base, "secrets", "The tenants' kubeconfigs, whose Secrets are named after them.")
	case slices.ContainsFunc(all, carried.isPod):
		return ruleFor(base, "secrets", "The tenant's kubeconfig, and the Secrets with the tenant's tokens that its Pods mount.")
	}
	rule := ruleFor(base, "secrets", "The tenant's kubeconfig, by the names under which it is looked for.")
	narrow(rule, words(at(rule, "verbs")), o.KubeconfigSecrets...)
	return rule
}

// mirrorRules are the rights on mirrors: a rule for each API group, and Pods by themselves.
func mirrorRules(base []*yaml.Node, all []carried) []*yaml.Node {
	groups := map[string][]carried{}
	pods, secrets := false, false
	for _, c := range all {
		pods, secrets = pods || c.isPod(), secrets || c.isSecret()
		if !c.isPod() {
			groups[c.Group] = append(groups[c.Group], c)
		}
	}
	var rules []*yaml.Node
	for _, group := range slices.Sorted(maps.Keys(groups)) {
		rules = append(rules, groupRules(base, group, groups[group])...)
	}
	if !pods {
		return rules
	}
	i := slices.IndexFunc(all, carried.isPod)
	rules = append(rules,
		ruleFor(base, "pods", "Mirrors of "+all[i].String()+". Whoever may create Pods can run them as any ServiceAccount of the namespace:",
			"keep none with further rights there."),
		ruleFor(base, "pods/status"))
	if !secrets {
		tokens := ruleFor(base, "secrets", "The Secrets with the tenant's tokens that its Pods mount. Each belongs to its Pod and goes with it.")
		narrow(tokens, []string{"list", "create", "update"})
		rules = append(rules, tokens)
	}
	return rules
}

// groupRules are the rights on the mirrors of one API group. The verbs are the same for all directions: a fromHost mirror
// is made and deleted as the tenant says, and keeps its marks.
func groupRules(base []*yaml.Node, group string, all []carried) []*yaml.Node {
	var rules []*yaml.Node
	var names, what, apart []string
	for _, c := range all {
		switch {
		case c.resource == "":
			apart = append(apart, c.Kind+" does not cross: it is cluster-scoped.")
			continue
		case c.refused != "":
			rule := ruleFor(base, "configmaps", upperFirst(c.refused)+".")
			put(rule, "apiGroups", inOneLine(group))
			put(rule, "resources", inOneLine(c.resource))
			narrow(rule, []string{"list"})
			rules = append(rules, rule)
			continue
		case c.guessed:
			apart = append(apart, fmt.Sprintf("%s is guessed from the kind %s: `kubectl api-resources` of the host knows.", c.resource, c.Kind))
		case c.isSecret():
			apart = append(apart, "RBAC cannot narrow a list down to mirrors: keep no Secrets of others in a tenant's host namespace.")
		}
		names, what = append(names, c.resource), append(what, c.String())
	}
	if len(names) == 0 {
		return rules
	}
	rule := ruleFor(base, "configmaps", append([]string{"Mirrors of " + strings.Join(what, ", ") + "."}, apart...)...)
	apiGroups := inOneLine(group)
	put(rule, "apiGroups", apiGroups)
	put(rule, "resources", inOneLine(names...))
	return append([]*yaml.Node{rule}, rules...)
}

func upperFirst(s string) string { return strings.ToUpper(s[:1]) + s[1:] }

// clusterRules are the rights in the whole cluster.
func (o Options) clusterRules() ([]*yaml.Node, error) {
	reader, err := documents("base/policyreader.yaml")
	if err != nil {
		return nil, err
	}
	policies := at(object(reader[0]), "rules").Content[0]
	if o.Form == Sharded {
		base, err := baseRules()
		if err != nil {
			return nil, err
		}
		policies.HeadComment = remark("The policies that they name. Not to list them, and not to write them.")
		rules := []*yaml.Node{
			ruleFor(base, "tenantclusters", "Which tenants there are, which policy each names, and the confirmation of a plan that a guard withheld.",
				"Never written: a TenantCluster is its author's."), policies}
		return o.withNodes(rules)
	}
	policies.HeadComment = remark("SyncPolicies are cluster-scoped, so this right must be too. The tenant's alone, and not to write it.")
	narrow(policies, words(at(policies, "verbs")), o.Policies[0].Name)
	return o.withNodes([]*yaml.Node{policies})
}

// withNodes adds the right to read Nodes where a policy shows them.
func (o Options) withNodes(rules []*yaml.Node) ([]*yaml.Node, error) {
	if _, nodes := o.carriedKinds(); !nodes {
		return rules, nil
	}
	reader, err := documents("nodes/nodereader.yaml")
	if err != nil {
		return nil, err
	}
	rule := at(object(reader[0]), "rules").Content[0]
	rule.HeadComment = remark("The nodes that Pods of the tenant run on, which RBAC cannot narrow it down to. None is listed, and none written.")
	return append(rules, rule), nil
}

// summary is the policies' names and what they carry, for a person.
func summary(policies []*policy.SyncPolicy) string {
	var names []string
	for _, p := range policies {
		names = append(names, p.Name)
	}
	slices.Sort(names)
	names = slices.Compact(names)
	if len(names) == 1 {
		return "SyncPolicy " + names[0]
	}
	return "the SyncPolicies " + strings.Join(names, ", ")
}
