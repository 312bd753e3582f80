package kinds

import (
	"testing"

	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// What a template says of its Pods is held to the rules of Pods, whatever kind it is in.
func TestATemplatesPodsAreHeldToTheRulesOfPods(t *testing.T) {
	for gk, path := range templates {
		t.Run(gk.String(), func(t *testing.T) {
			pod := Content{
				"nodeName": "control-plane", "serviceAccountName": "admin", "automountServiceAccountToken": true,
				"priorityClassName": "system-node-critical", "containers": []any{Content{"name": "c", "envFrom": []any{Content{"secretRef": Content{"name": "s"}}}}},
				"volumes": []any{Content{"name": "v", "secret": Content{"secretName": "s"}}},
			}
			var value any = Content{
				"metadata": Content{
					"labels": Content{LabelTenant: "other", LabelManagedBy: ManagedBy, "app": "x"}, "annotations": Content{AnnotationVirtualName: "x", "a": "b"},
					"finalizers": []any{"example.com/never"}, "ownerReferences": []any{Content{"uid": "u"}},
				},
				"spec": pod,
			}
			for i := len(path) - 1; i > 0; i-- {
				value = Content{path[i]: value}
			}
			version, _ := schema.GroupVersionKind{Group: gk.Group, Version: "v1", Kind: gk.Kind}.ToAPIVersionAndKind()
			tenant := object(version, gk.Kind, Content{path[0]: value})
			kind := For(gk)
			mirror := mapping.Project(kind, tenant, nil, KeepForeign)

			template := templated{path: path}.template(mirror)
			require.Equal(t, Content{
				"labels": Content{
					LabelTenant: mapping.Tenant, LabelVirtualNamespace: tenant.GetNamespace(), "alias." + LabelTenant: "other", managedByAlias: ManagedBy, "app": "x",
				},
				"annotations": Content{"a": "b"},
			}, template["metadata"])
			spec := child(template, "spec")
			for _, field := range []string{"nodeName", "priorityClassName"} {
				require.NotContains(t, spec, field)
			}
			require.Equal(t, mapping.Workloads.ServiceAccount, spec["serviceAccountName"])
			require.Equal(t, false, spec["automountServiceAccountToken"])
			secret := mapping.MirrorName(secrets, tenant.GetNamespace(), "s")
			require.Equal(t, secret, child(entries(spec["volumes"])[0], "secret")["secretName"])
			require.Equal(t, secret, child(entries(entries(spec["containers"])[0]["envFrom"])[0], "secretRef")["name"])

			require.Equal(t, bare(tenant), bare(mapping.Reflect(kind, mirror, tenant)), "the tenant keeps its own")
			forbids := kind.(Forbids)
			require.Nil(t, forbids.Forbidden(mapping, mirror))
			spec["volumes"] = []any{Content{"name": "t", "projected": Content{"sources": []any{Content{"serviceAccountToken": Content{"path": "t"}}}}}}
			require.Contains(t, forbids.Forbidden(mapping, mirror).Message, "token")
			spec["volumes"] = []any{Content{"name": "t", "projected": Content{"sources": []any{Content{"podCertificate": Content{"signerName": "s"}}}}}}
			require.Contains(t, forbids.Forbidden(mapping, mirror).Message, "certificate")
		})
	}
}

// The attributes of one driver name an object of the Pod's namespace.
func TestASecretProviderClassIsTheTenants(t *testing.T) {
	tenant := object("v1", "Pod", Content{"spec": Content{"containers": []any{}, "volumes": []any{
		Content{"name": "v", "csi": Content{"driver": secretsStore, "volumeAttributes": Content{"secretProviderClass": "c"}}},
		Content{"name": "w", "csi": Content{"driver": "example.com", "volumeAttributes": Content{"secretProviderClass": "c"}}},
	}}})
	mirror := mapping.Project(kindOf(tenant), tenant, nil, KeepForeign)
	volumes := entries(child(mirror.Object, "spec")["volumes"])
	require.Equal(t, mapping.MirrorName(For(secretProviderKind), tenant.GetNamespace(), "c"), child(child(volumes[0], "csi"), "volumeAttributes")["secretProviderClass"])
	require.Equal(t, "c", child(child(volumes[1], "csi"), "volumeAttributes")["secretProviderClass"])
}
