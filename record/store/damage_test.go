package store

import (
	"testing"

	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/syncpass/syncpass/record"
)

func TestDamageIsNamedAndRepaired(t *testing.T) {
	for name, test := range map[string]struct {
		damage func(srv *server, page string)
		says   []string
		left   func(n int) bool
	}{
		"a page was deleted": {
			func(srv *server, page string) { srv.remove("syncdecisions/" + page) },
			[]string{"page 1 of the history", "is missing", "no baseline"},
			func(n int) bool { return n > 0 && n < 200 },
		},
		"a page was edited": {
			func(srv *server, page string) {
				srv.edit("syncdecisions/"+page, func(o *unstructured.Unstructured) {
					_ = unstructured.SetNestedField(o.Object, "AAAA", "status", "history", "data")
				})
			},
			[]string{"page 1 of the history", "no baseline"},
			func(n int) bool { return n > 0 && n < 200 },
		},
		"a page is no page": {
			func(srv *server, page string) {
				srv.edit("syncdecisions/"+page, func(o *unstructured.Unstructured) { o.Object["status"] = "none" })
			},
			[]string{"page 1 of the history", "no baseline"},
			func(n int) bool { return n > 0 && n < 200 },
		},
		"the head is malformed": {
			func(srv *server, _ string) {
				srv.edit("syncdecisions/dev", func(o *unstructured.Unstructured) {
					_ = unstructured.SetNestedField(o.Object, "many", "status", "pairs")
				})
			},
			[]string{"SyncDecision team-dev/dev", "malformed", "taken as lost"},
			func(n int) bool { return n == 0 },
		},
		"the history was removed from the head": {
			func(srv *server, _ string) {
				srv.edit("syncdecisions/dev", func(o *unstructured.Unstructured) { unstructured.RemoveNestedField(o.Object, "status", "history") })
			},
			[]string{"SyncDecision team-dev/dev", "200 pairs is gone"},
			func(n int) bool { return n == 0 },
		},
	} {
		t.Run(name, func(t *testing.T) {
			srv := newServer(t)
			s := srv.store(t, "dev")
			require.NoError(t, onePass(t.Context(), s, "p1", 200, 1))
			page := s.pageName(load(t, s).of(), 1)
			test.damage(srv, page)

			l := load(t, s)
			require.Len(t, l.Problems, 1)
			for _, part := range test.says {
				require.ErrorContains(t, l.Problems[0], part)
			}
			require.True(t, test.left(l.History.Len()), "%d pairs left", l.History.Len())
			for k, st := range l.History.All() {
				require.NotEmpty(t, k.Name)
				require.NotNil(t, st.Baseline)
			}
			require.EqualValues(t, 1, l.Status.Epoch)

			require.NoError(t, onePass(t.Context(), s, "p2", 200, 2))
			got := load(t, s)
			require.Empty(t, got.Problems)
			require.Equal(t, 200, got.History.Len())
			require.EqualValues(t, 2, got.Status.Epoch)
			require.Len(t, srv.names(), got.of())
		})
	}
}

func TestANewerFormatIsLeftAlone(t *testing.T) {
	srv := newServer(t)
	s := srv.store(t, "dev")
	require.NoError(t, onePass(t.Context(), s, "p1", 3, 1))
	srv.edit("syncdecisions/dev", func(o *unstructured.Unstructured) {
		_ = unstructured.SetNestedField(o.Object, int64(record.Format+1), "status", "history", "format")
	})
	l, err := s.Load(t.Context())
	require.ErrorIs(t, err, record.ErrNewerFormat)
	require.ErrorContains(t, err, "SyncDecision team-dev/dev")
	require.Nil(t, l)
}

func TestStrangersAreNamedAndLeftAlone(t *testing.T) {
	srv := newServer(t)
	s := srv.store(t, "dev")
	require.NoError(t, onePass(t.Context(), s, "p1", 3, 1))

	// Somebody's SyncDecision stands where a page is to be.
	other := srv.store(t, s.pageName(2, 1))
	require.NoError(t, onePass(t.Context(), other, "p1", 1, 1))
	l := load(t, s)
	fill(l.History, 200, 1)
	_, err := s.Record(t.Context(), l, result("p2", l, l.History))
	require.ErrorContains(t, err, "stands where a page of the history of tenant \"dev\" belongs")
	require.ErrorContains(t, err, s.pageName(2, 1))
	require.Equal(t, 1, load(t, other).History.Len())
	require.Equal(t, 3, load(t, s).History.Len())

	// A TenantCluster has the name of a page.
	srv.edit("syncdecisions/"+s.pageName(2, 1), func(o *unstructured.Unstructured) {
		o.SetLabels(map[string]string{labelHistoryOf: "dev"})
	})
	_, err = other.Load(t.Context())
	require.ErrorContains(t, err, "give the TenantCluster")

	// An object has the label, but not the name of a page of dev: it is not removed as left over.
	require.NoError(t, onePass(t.Context(), srv.store(t, "prod"), "p1", 1, 1))
	srv.edit("syncdecisions/prod", func(o *unstructured.Unstructured) { o.SetLabels(map[string]string{labelHistoryOf: "dev"}) })
	require.NoError(t, onePass(t.Context(), s, "p3", 200, 2))
	require.Contains(t, srv.names(), "prod")
}

func TestAnEarlierTenantClusterIsNoticed(t *testing.T) {
	srv := newServer(t)
	s := srv.store(t, "dev")
	require.NoError(t, onePass(t.Context(), s, "p1", 3, 1))
	s.owner.UID = "5f1c0a52-0000-4000-8000-000000000002"
	l := load(t, s)
	require.Len(t, l.Problems, 1)
	require.ErrorContains(t, l.Problems[0], "garbage collection may remove it")
	require.Equal(t, 3, l.History.Len())
}
