package render

import (
	"fmt"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"
)

// Manifests writes the manifests, each a YAML document of its own, in an order in which they can be applied. Rights come
// before what uses them.
func Manifests(o Options) ([]byte, error) {
	if err := o.check(); err != nil {
		return nil, err
	}
	o.TenantNamespaces = slices.Compact(slices.Sorted(slices.Values(o.TenantNamespaces)))
	var all []*yaml.Node
	for _, part := range []func() ([]*yaml.Node, error){o.account, o.tenantRights, o.clusterRights, o.workload} {
		documents, err := part()
		if err != nil {
			return nil, err
		}
		all = append(all, documents...)
	}
	all[0].HeadComment = remark(o.heading())
	return encode(all)
}

// heading says what this is, and how to have it again.
func (o Options) heading() string {
	about := fmt.Sprintf("syncpass for TenantCluster %s/%s, by %s.", o.Namespace, o.Tenant, summary(o.Policies))
	if o.Form == Sharded {
		about = "syncpass for all TenantClusters of the host, by " + summary(o.Policies) + "."
	}
	whose := "that policy"
	if len(o.Policies) > 1 {
		whose = "those policies"
	}
	return about + fmt.Sprintf("\nMake it anew when the kinds or the interval of %s change: runner render --form %s", whose, o.Form)
}

// metadata is an object's, with the labels that all have.
func (o Options) metadata(name string) *yaml.Node {
	return mapping("name", name, "namespace", o.Namespace, "labels", o.labels())
}

func (o Options) labels() *yaml.Node {
	labels := mapping("app.kubernetes.io/name", "syncpass")
	if o.Form != Sharded {
		// Not the name itself where that has no room in a label.
		put(labels, "app.kubernetes.io/instance", text(strings.TrimPrefix(o.name(), "syncpass-")))
	}
	return labels
}

// account is the identity that the passes have.
func (o Options) account() ([]*yaml.Node, error) {
	all, err := documents("base/serviceaccount.yaml")
	if err != nil {
		return nil, err
	}
	put(object(all[0]), "metadata", o.metadata(o.name()))
	return all, nil
}

// tenantRights are the rights in the tenant's namespace, or in each that has tenants.
func (o Options) tenantRights() ([]*yaml.Node, error) {
	rules, err := o.tenantRules()
	if err != nil {
		return nil, err
	}
	if o.Form != Sharded {
		return []*yaml.Node{
			o.role("Role", o.metadata(o.name()), rules, "The rights of a pass in the tenant's namespace: what the policy's kinds take, and nothing else.",
				"No `watch`: nothing runs between passes. There is no rule for other namespaces, so a mirror can be nowhere else."),
			o.binding("RoleBinding", o.metadata(o.name()), "Role", o.name()),
		}, nil
	}
	all := []*yaml.Node{o.role("ClusterRole", o.clusterMetadata("tenant"), rules, "The rights of a pass in a tenant's namespace: what the policies' kinds take,",
		"and nothing else. They count only where a RoleBinding below grants them.")}
	for _, namespace := range o.TenantNamespaces {
		metadata := o.metadata("syncpass-shards")
		put(metadata, "namespace", text(namespace))
		all = append(all, o.binding("RoleBinding", metadata, "ClusterRole", o.clusterName("tenant")))
	}
	return all, nil
}

// clusterRights are the rights in the whole cluster.
func (o Options) clusterRights() ([]*yaml.Node, error) {
	rules, err := o.clusterRules()
	if err != nil {
		return nil, err
	}
	metadata := o.clusterMetadata("shards")
	name := o.clusterName("shards")
	return []*yaml.Node{o.role("ClusterRole", metadata, rules), o.binding("ClusterRoleBinding", metadata, "ClusterRole", name)}, nil
}

func (o Options) clusterMetadata(what string) *yaml.Node {
	metadata := o.metadata(o.clusterName(what))
	drop(metadata, "namespace")
	return metadata
}

func document(comment []string, pairs ...any) *yaml.Node {
	content := mapping(pairs...)
	if len(comment) > 0 {
		content.Content[0].HeadComment = remark(strings.Join(comment, " "))
	}
	return &yaml.Node{Kind: yaml.DocumentNode, Content: []*yaml.Node{content}}
}

func (o Options) role(kind string, metadata *yaml.Node, rules []*yaml.Node, comment ...string) *yaml.Node {
	return document(comment, "apiVersion", "rbac.authorization.k8s.io/v1", "kind", kind, "metadata", metadata, "rules", list(rules...))
}

func (o Options) binding(kind string, metadata *yaml.Node, roleKind, role string) *yaml.Node {
	return document(nil, "apiVersion", "rbac.authorization.k8s.io/v1", "kind", kind, "metadata", metadata,
		"roleRef", mapping("apiGroup", "rbac.authorization.k8s.io", "kind", roleKind, "name", role),
		"subjects", list(mapping("kind", "ServiceAccount", "name", o.name(), "namespace", o.Namespace)))
}
