package kinds

import (
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

func TestReservedLabelsMoveToAnAlias(t *testing.T) {
	for _, test := range []struct{ tenant, mirror string }{
		{"app", "app"},
		{"example.com/app", "example.com/app"},
		{"app.kubernetes.io/name", "app.kubernetes.io/name"},
		{"app.kubernetes.io/managed-by", "app-kubernetes-io.tenantplane.io/managed-by"},
		{"app-kubernetes-io.tenantplane.io/managed-by", "alias.app-kubernetes-io.tenantplane.io/managed-by"},
		{"tenantplane.io/tenant", "alias.tenantplane.io/tenant"},
		{"tenantplane.io/anything", "alias.tenantplane.io/anything"},
		{"alias.tenantplane.io/tenant", "alias.alias.tenantplane.io/tenant"},
		{"isolation.tenantplane.io/exempt", "alias.isolation.tenantplane.io/exempt"},
		{"nottenantplane.io/tenant", "nottenantplane.io/tenant"},
		{"alias.example.com/a", "alias.example.com/a"},
		{"tenantplane.io", "tenantplane.io"},
	} {
		require.Equal(t, test.mirror, aliasLabel(test.tenant))
		require.Equal(t, test.tenant, unaliasLabel(test.mirror))
	}
}

func drawLabelKey(t *rapid.T, of string) string {
	return rapid.OneOf(
		rapid.StringMatching(`((alias|a|app-kubernetes-io|isolation)\.){0,3}(tenantplane\.io|app\.kubernetes\.io|example\.com)/(tenant|managed-by|kind|virtual-namespace|a)`),
		rapid.StringMatching(`[a-z.]{0,8}/?[a-z]{1,8}`),
		rapid.String(),
	).Draw(t, of)
}

// What a tenant calls a label is never taken for a mark, never for another label, and comes back as it was.
func TestAliasesAreOneToOneAndNeverAMark(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		a, b := drawLabelKey(t, "a"), drawLabelKey(t, "b")
		require.False(t, markLabel(aliasLabel(a)), "%q becomes the mark %q", a, aliasLabel(a))
		require.Equal(t, a, unaliasLabel(aliasLabel(a)))
		if a != b {
			require.NotEqual(t, aliasLabel(a), aliasLabel(b))
		}
		// A label of the host crosses under a key that comes back to it, or it does not cross.
		if !markLabel(b) {
			require.Equal(t, b, aliasLabel(unaliasLabel(b)), "the host's label %q comes back as another one", b)
		}
	})
}

func TestOwnAnnotationsNeverCross(t *testing.T) {
	for _, key := range []string{
		"tenantplane.io/virtual-uid", "tenantplane.io/confirm-deletes", "kubectl.kubernetes.io/last-applied-configuration",
		"deployment.kubernetes.io/revision", "pv.kubernetes.io/bind-completed", "volume.kubernetes.io/selected-node",
		"field.cattle.io/publicEndpoints", // B47
	} {
		require.True(t, ownAnnotation(key), key)
	}
	for _, key := range []string{"app", "example.com/tenantplane.io", "kubectl.kubernetes.io/restartedAt", "nottenantplane.io/a"} {
		require.False(t, ownAnnotation(key), key)
	}
}
