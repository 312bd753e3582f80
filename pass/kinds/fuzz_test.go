package kinds

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/types"
)

// FuzzMirrorNames: two triples of name, namespace and tenant never lead to one mirror, also where two tenants share a
// host namespace; and from its mirror each object is recognised.
func FuzzMirrorNames(f *testing.F) {
	f.Add("a", "n-x-b", "t", "a", "n", "b-x-t")
	f.Add("a", "b", "t", "a", "b", "t-2")
	f.Add("a-x-b", "c", "t", "a", "b-x-c", "t")
	f.Add(strings.Repeat("a", 63), "b", "t", strings.Repeat("a", 62), "b", "t")
	f.Fuzz(func(t *testing.T, name, namespace, tenant, otherName, otherNamespace, otherTenant string) {
		m, other := Mapping{Tenant: tenant, HostNamespace: "shared"}, Mapping{Tenant: otherTenant, HostNamespace: "shared"}
		for _, kind := range allKinds {
			mirror := m.MirrorName(kind, namespace, name)
			checkName(t, kind, mirror)
			if name != otherName || namespace != otherNamespace || tenant != otherTenant {
				require.NotEqual(t, mirror, other.MirrorName(kind, otherNamespace, otherName))
			}
		}
		if name == "" || namespace == "" {
			return
		}
		made := object("example.com/v1", configMaps.Name(), nil)
		made.SetName(name)
		made.SetNamespace(namespace)
		id, owned := m.Identify(configMaps, configMaps.Name(), m.Project(configMaps, made, nil, KeepNone))
		require.Equal(t, Ours, owned)
		require.Equal(t, types.NamespacedName{Namespace: namespace, Name: name}, id)
		if tenant != otherTenant {
			_, owned = other.Identify(configMaps, configMaps.Name(), m.Project(configMaps, made, nil, KeepNone))
			require.NotEqual(t, Ours, owned, "another tenant's mirror")
		}
	})
}

// FuzzLabels: a label that crosses is the same one when it comes back, and never one of our marks.
func FuzzLabels(f *testing.F) {
	f.Add("app", "web")
	f.Add(LabelTenant, "another")
	f.Add("alias."+LabelTenant, "x")
	f.Add("foo.tenantplane.io/x", "y")
	f.Fuzz(func(t *testing.T, key, value string) {
		tenant := object("v1", configMaps.Name(), nil)
		tenant.SetNamespace("default")
		tenant.SetName("app")
		tenant.SetLabels(map[string]string{key: value})
		mirror := mapping.Project(configMaps, tenant, nil, KeepNone)
		_, owned := mapping.Identify(configMaps, configMaps.Name(), mirror)
		require.Equal(t, Ours, owned, "whatever labels the tenant writes, the mirror is recognised")
		back := mapping.Reflect(configMaps, mirror, tenant)
		again := mapping.Project(configMaps, back, mirror, KeepNone)
		require.Equal(t, mirror.GetLabels(), again.GetLabels(), "what came back does not cross to the same")
		for kept := range back.GetLabels() {
			require.Equal(t, key, kept)
		}
	})
}
