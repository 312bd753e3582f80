package kinds

import (
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

func TestWhatTenantDNSCannotServeSaysWhy(t *testing.T) {
	for name, test := range map[string]struct{ service, namespace, tenant, want string }{
		"a plain name":                {service: "web", namespace: "shop", tenant: "dev"},
		"63 characters":               {service: strings.Repeat("a", 50), namespace: "shop", tenant: "dev"},
		"64 characters":               {service: strings.Repeat("a", 51), namespace: "shop", tenant: "dev", want: "is 1 characters too long"},
		"a separator in a part":       {service: "a-x-b", namespace: "shop", tenant: "dev", want: "a-x-b-x-shop-x-dev can be read in more than one way"},
		"a separator over a seam":     {service: "a-x", namespace: "shop", tenant: "dev", want: "can be read in more than one way"},
		"a digit at the beginning":    {service: "1st", namespace: "shop", tenant: "dev", want: "is no name that every host takes"},
		"a tenant with a dot":         {service: "web", namespace: "shop", tenant: "dev.example", want: "is no name that every host takes"},
		"a name that is all too long": {service: strings.Repeat("a", 63), namespace: strings.Repeat("n", 63), tenant: "dev", want: "is 72 characters too long"},
	} {
		t.Run(name, func(t *testing.T) {
			got := Mapping{Tenant: test.tenant}.Unresolvable(test.namespace, test.service)
			if test.want == "" {
				require.Empty(t, got)
				return
			}
			require.Contains(t, got, test.want)
		})
	}
	require.Equal(t, "web.shop.svc.cluster.local", DNSName("shop", "web"))
}

// What is said to resolve does: the mirror's name is the one that the rule makes of the tenant's, and the way back, which
// takes the answer apart at the separators, gives the tenant's.
func TestWhatTenantDNSServesIsTheMirror(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		service, namespace, tenant := drawPart(t, "service"), drawPart(t, "namespace"), drawPart(t, "tenant")
		m := Mapping{Tenant: tenant}
		mirror, ruled := m.MirrorName(services, namespace, service), service+"-x-"+namespace+"-x-"+tenant
		require.Equal(t, mirror == ruled, m.Unresolvable(namespace, service) == "")
		if mirror == ruled {
			back := regexp.MustCompile(`^([^.]+)-x-([^.]+)-x-` + regexp.QuoteMeta(tenant) + `$`).FindStringSubmatch(mirror)
			require.Equal(t, []string{mirror, service, namespace}, back)
		}
	})
}
