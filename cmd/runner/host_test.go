package main

import (
	"fmt"
	"math"
	"path/filepath"
	"strconv"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/types"
	"pgregory.net/rapid"
)

func connected(t *testing.T, f *fakeHost, c config) host {
	c.HostKubeconfig = f.serve(t)
	h, err := connectHost(c, "test", nil)
	require.NoError(t, err)
	t.Cleanup(h.cluster.Close)
	return h
}

func TestTenantsAreSelected(t *testing.T) {
	all := tenantNames("team-dev/dev", "team-b/z", "team-dev/alpha", "team-b/a", "team-dev/beta")
	tests := []struct {
		name string
		c    config
		want []types.NamespacedName
	}{
		{"all of the kubeconfig's namespace, sorted", config{}, tenantNames("team-dev/alpha", "team-dev/beta", "team-dev/dev")},
		{"all of another namespace", config{Namespace: "team-b"}, tenantNames("team-b/a", "team-b/z")},
		{"all of the host", config{AllNamespaces: true}, tenantNames("team-b/a", "team-b/z", "team-dev/alpha", "team-dev/beta", "team-dev/dev")},
		{"one, which the pass itself looks for", config{Tenant: "missing"}, tenantNames("team-dev/missing")},
		{"none", config{Namespace: "team-c"}, nil},
		{"one Secret of one tenant", config{Namespace: "team-b", Tenant: "z", TenantKubeconfigSecret: "s"}, tenantNames("team-b/z")},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			tt.c.Shards = 1
			got, err := connected(t, &fakeHost{tenants: all}, tt.c).tenants(t.Context(), tt.c)
			require.NoError(t, err)
			assert.Equal(t, tt.want, append([]types.NamespacedName(nil), got...))
		})
	}
}

func TestOneKubeconfigServesOneTenant(t *testing.T) {
	f := &fakeHost{tenants: tenantNames("a/one", "b/one", "b/two")}
	for _, tt := range []struct {
		c    config
		want string
	}{
		{config{AllNamespaces: true, TenantKubeconfig: "/k"}, "SYNCPASS_TENANT_KUBECONFIG is one tenant's, and there are several TenantClusters (a/one, b/one)"},
		{config{AllNamespaces: true, TenantKubeconfigSecret: "s"}, "SYNCPASS_TENANT_KUBECONFIG_SECRET is one tenant's, and there are several TenantClusters (b/one, b/two)"},
		{config{Namespace: "a", TenantKubeconfig: "/k"}, ""},
	} {
		tt.c.Shards = 1
		_, err := connected(t, f, tt.c).tenants(t.Context(), tt.c)
		if tt.want == "" {
			assert.NoError(t, err)
			continue
		}
		require.ErrorContains(t, err, tt.want)
		assert.Equal(t, exitInvalid, exitCode(err, nil, nil, false))
	}
}

func TestShardsTogetherAreAllTenantsOnce(t *testing.T) {
	f := &fakeHost{}
	for i := range 50 {
		f.tenants = append(f.tenants, types.NamespacedName{Namespace: "team-dev", Name: fmt.Sprintf("t%02d", i)})
	}
	h := connected(t, f, config{})
	var got []types.NamespacedName
	for i := range 3 {
		part, err := h.tenants(t.Context(), config{Shards: 3, ShardIndex: i})
		require.NoError(t, err)
		assert.Greater(t, len(part), 5, "parts are of like size")
		got = append(got, part...)
	}
	assert.ElementsMatch(t, f.tenants, got)
}

// A hash that changed between two versions of the runner would leave a tenant to nobody, or to two, while both run.
func TestShardsStayAsTheyAre(t *testing.T) {
	var got []int
	for _, name := range tenantNames("team-dev/dev", "team-dev/prod", "a/b", "b/a") {
		got = append(got, shardOf(name, 1000))
	}
	assert.Equal(t, []int{468, 518, 250, 887}, got)
}

// Whatever the tenants are called: each is in exactly one part, the parts are of like size, and one part more takes its
// share of tenants from all others while no tenant moves between these.
func TestAFurtherShardTakesItsShareAndMovesNothingElse(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		const tenants = 1000
		shards := rapid.IntRange(1, 20).Draw(t, "shards")
		prefix := rapid.StringMatching("[a-z]{0,20}").Draw(t, "prefix")
		taken, sizes := 0, make([]int, shards)
		for i := range tenants {
			name := types.NamespacedName{Namespace: prefix + strconv.Itoa(i%7), Name: "t" + strconv.Itoa(i)}
			before, after := shardOf(name, shards), shardOf(name, shards+1)
			sizes[before]++
			if after != before {
				require.Equal(t, shards, after, "%s moves between parts that stay", name)
				taken++
			}
		}
		// Six standard deviations of a binomial distribution, which chance exceeds once in 10^9 times.
		share := func(parts int) (mean, slack float64) {
			p := 1 / float64(parts)
			return tenants * p, 6 * math.Sqrt(tenants*p*(1-p))
		}
		mean, slack := share(shards + 1)
		require.InDelta(t, mean, float64(taken), slack, "tenants that the further part takes")
		for shard, size := range sizes {
			mean, slack := share(shards)
			require.InDelta(t, mean, float64(size), slack, "tenants of part %d of %d", shard, shards)
		}
	})
}

func TestListsThatFailSayTheNextStep(t *testing.T) {
	for _, tt := range []struct {
		refuse, code int
		want         string
	}{
		{404, exitInvalid, "does the host have the CRDs (manifests/crd)?"},
		{403, exitInvalid, "let this user list tenantclusters there, or name one by SYNCPASS_TENANT"},
		{401, exitInvalid, "renew the credentials"},
		{507, exitUnreachable, "is it up?"},
	} {
		c := config{Shards: 1, Namespace: "team-dev"}
		_, err := connected(t, &fakeHost{refuse: tt.refuse}, c).tenants(t.Context(), c)
		require.ErrorContains(t, err, tt.want)
		assert.ErrorContains(t, err, "listing the TenantClusters of namespace team-dev on the host http://127.0.0.1:")
		assert.Equal(t, tt.code, exitCode(err, nil, nil, false), "status %d", tt.refuse)
	}
}

func TestHostAccessThatCannotBeUsedIsInvalid(t *testing.T) {
	t.Setenv("KUBERNETES_SERVICE_HOST", "")
	t.Setenv("KUBECONFIG", filepath.Join(t.TempDir(), "none"))
	t.Setenv("HOME", t.TempDir())
	_, err := connectHost(config{}, "test", nil)
	assert.ErrorContains(t, err, "set SYNCPASS_HOST_KUBECONFIG to the host cluster's kubeconfig")
	assert.Equal(t, exitInvalid, exitCode(err, nil, nil, false))

	_, err = connectHost(config{HostKubeconfig: "/does/not/exist"}, "test", nil)
	assert.ErrorContains(t, err, `SYNCPASS_HOST_KUBECONFIG="/does/not/exist"`)
	assert.Equal(t, exitInvalid, exitCode(err, nil, nil, false))
}

func TestKubeconfigOfTheEnvironmentIsUsedOutsideOfPods(t *testing.T) {
	t.Setenv("KUBERNETES_SERVICE_HOST", "")
	t.Setenv("KUBECONFIG", writeKubeconfig(t, "http://127.0.0.1:1"))
	h, err := connectHost(config{}, "test", nil)
	require.NoError(t, err)
	assert.Equal(t, "http://127.0.0.1:1", h.cluster.Server())
	assert.Equal(t, "team-dev", h.namespace)
}
