package record

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/types"
)

func TestANilHistoryIsEmpty(t *testing.T) {
	var h *History
	require.Zero(t, h.Get(Key{Kind: "ConfigMap", Name: "a"}))
	require.Zero(t, h.Len())
	require.Zero(t, h.Pairs())
	require.Empty(t, h.Keys("", "ConfigMap"))
	require.Empty(t, h.KeyID())
	for range h.All() {
		t.Fatal("a key in no history")
	}
	clone := h.Clone()
	clone.Set(Key{Kind: "ConfigMap", Name: "a"}, State{Baseline: baseline(1)})
	require.Equal(t, 1, clone.Len())
}

func TestKeysComeSorted(t *testing.T) {
	h := NewHistory("key")
	want := []Key{
		{Kind: "ConfigMap"},
		{Kind: "ConfigMap", Namespace: "a", Name: "b"},
		{Kind: "ConfigMap", Namespace: "a", Name: "c"},
		{Kind: "ConfigMap", Namespace: "b", Name: "a"},
		{Kind: "Secret", Namespace: "a", Name: "a"},
		{Group: "apps", Kind: "ConfigMap", Namespace: "a", Name: "a"},
	}
	for _, k := range slices.Backward(want) {
		h.Set(k, State{Baseline: baseline(1)})
	}
	var got []Key
	for k := range h.All() {
		got = append(got, k)
	}
	require.Equal(t, want, got)
	require.Equal(t, want[:4], h.Keys("", "ConfigMap"))
	require.Equal(t, want[5:], h.Keys("apps", "ConfigMap"))
	require.Equal(t, 6, h.Len())
	require.Equal(t, 5, h.Pairs(), "a kind is no pair")
}

func TestTheZeroStateForgets(t *testing.T) {
	h := NewHistory("key")
	k := Key{Kind: "ConfigMap", Name: "a"}
	empty := encode(t, h)
	h.Set(k, State{Baseline: baseline(1)})
	require.NotEqual(t, empty, encode(t, h))
	h.Set(k, State{})
	require.Zero(t, h.Len())
	require.Equal(t, empty, encode(t, h))
}

func TestACloneIsIndependent(t *testing.T) {
	h := filled(10)
	before, pages := contents(h), encode(t, h)
	clone := h.Clone()
	for k := range before {
		clone.Set(k, State{Baseline: baseline(99)})
		break
	}
	clone.Rekey("other")
	require.NotEqual(t, pages, encode(t, clone))
	require.Equal(t, before, contents(h))
	require.Equal(t, pages, encode(t, h))
}

func TestWhatNoAPIServerSendsIsNotKept(t *testing.T) {
	long, bad := strings.Repeat("x", maxString+1), "\xff"
	h := NewHistory("key")
	good := State{Baseline: baseline(1), Intent: &Intent{Side: Host}, Standing: &Standing{Reason: Conflict, LastTime: time.Unix(5, 0), Since: time.Unix(5, 0)}}
	for _, k := range []Key{{Kind: long}, {Kind: "A", Name: long}, {Kind: "A", Namespace: bad}, {Kind: "A", Group: bad}, {Kind: "A.b"}, {}} {
		h.Set(k, good)
	}
	require.Zero(t, h.Len())

	k := Key{Kind: "ConfigMap", Name: "a"}
	for _, s := range []string{long, bad} {
		h.Set(k, State{
			Baseline: &Baseline{Host: Version{UID: types.UID(s)}},
			Intent:   &Intent{Side: Host, Path: s},
			Standing: &Standing{Reason: Reason(s)},
		})
		require.Zero(t, h.Get(k))
		partly := good
		partly.Baseline = &Baseline{Tenant: Version{ResourceVersion: s}}
		h.Set(k, partly)
		require.Nil(t, h.Get(k).Baseline)
		require.NotNil(t, h.Get(k).Intent)
		require.NotNil(t, h.Get(k).Standing)
	}
	_, err := Decode(encode(t, h))
	require.NoError(t, err)
}

func TestTimesAreKeptToTheSecond(t *testing.T) {
	h := NewHistory("key")
	k := Key{Kind: "ConfigMap", Name: "a"}
	at := time.Now()
	h.Set(k, State{Standing: &Standing{Reason: Conflict, Since: at, LastTime: at, Count: 1}})
	pages := encode(t, h)
	got, err := Decode(pages)
	require.NoError(t, err)
	require.Equal(t, h.Get(k), got.Get(k))
	require.Equal(t, at.Unix(), got.Get(k).Standing.Since.Unix())
}

func TestRekeyDropsHashesOnly(t *testing.T) {
	h := NewHistory("old")
	k := Key{Kind: "ConfigMap", Name: "a"}
	h.Set(k, State{
		Baseline: baseline(1),
		Intent:   &Intent{Side: Host, Target: baseline(1).Host, Source: baseline(1).Tenant, Want: hash(5), Path: "data.a"},
		Standing: &Standing{Reason: Conflict, Digest: hash(6), Count: 3},
	})
	before := h.Get(k)
	pages := encode(t, h)
	h.Rekey("old")
	require.Equal(t, before, h.Get(k))

	h.Rekey("new")
	require.Equal(t, "new", h.KeyID())
	after := h.Get(k)
	require.Equal(t, before.Baseline.Tenant.UID, after.Baseline.Tenant.UID)
	require.Equal(t, before.Baseline.Host.ResourceVersion, after.Baseline.Host.ResourceVersion)
	require.Equal(t, "data.a", after.Intent.Path)
	require.EqualValues(t, 3, after.Standing.Count)
	for _, hash := range []Hash{
		after.Baseline.Tenant.Hash, after.Baseline.Host.Hash, after.Intent.Want, after.Intent.Target.Hash, after.Intent.Source.Hash, after.Standing.Digest,
	} {
		require.True(t, hash.IsZero())
	}
	require.Equal(t, baseline(1), before.Baseline, "what was handed out must not change")
	require.NotEqual(t, pages, encode(t, h))
}

// A pass that crashed while it was writing pages under a new key leaves both keys behind: hashes of the one must not be
// compared under the other.
func TestPagesOfTwoKeysHaveNoKey(t *testing.T) {
	h := filled(3000)
	old := encode(t, h)
	h.Rekey("new")
	renewed := encode(t, h)
	require.Len(t, renewed, 4)
	torn, err := Decode([]Page{old[0], renewed[1], renewed[2], old[3]})
	require.NoError(t, err)
	require.Empty(t, torn.KeyID())
	torn.Rekey("new")
	whole, err := Decode(encode(t, torn))
	require.NoError(t, err)
	require.Equal(t, "new", whole.KeyID())
	require.Equal(t, 3000, whole.Len())
}
