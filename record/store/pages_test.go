package store

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/syncpass/syncpass/record"
)

func TestOnlyChangedPagesAreWritten(t *testing.T) {
	srv := newServer(t)
	s := srv.store(t, "dev")
	require.NoError(t, onePass(t.Context(), s, "p1", 400, 1))
	of := load(t, s).of()
	require.Greater(t, of, 2)
	require.Len(t, srv.names(), of)

	l := load(t, s)
	h := l.History.Clone()
	name := ""
	for i := range 400 { // a pair that is not on page 0
		h.Set(key(i), state(i, 2))
		pages, err := h.Encode()
		require.NoError(t, err)
		if at := slices.IndexFunc(pages, func(p record.Page) bool { return p.Index > 0 && !l.pages[s.pageName(of, int(p.Index))].is(p) }); at > 0 {
			name = s.pageName(of, at)
			break
		}
		h.Set(key(i), state(i, 1))
	}
	srv.calls(true)
	written, err := s.Record(t.Context(), l, result("p2", l, h))
	require.NoError(t, err)
	require.True(t, written)
	require.Equal(t, []string{"PATCH dev/status", "PUT " + name + "/status", "PATCH dev/status"}, srv.calls(true),
		"the epoch is raised before a page is touched, and the head refers to the page after it is written")
}

func TestAQuietPassListsThePagesInChunks(t *testing.T) {
	srv := newServer(t)
	s := srv.store(t, "dev")
	require.NoError(t, onePass(t.Context(), s, "p1", 200, 1))
	for i := 1; i < 4*listLimit; i++ { // left over from a larger set
		name := s.pageName(4*listLimit, i)
		srv.put("syncdecisions/"+name, map[string]any{"metadata": map[string]any{
			"name": name, "uid": string(newUID(i)), "labels": map[string]any{labelHistoryOf: "dev"},
		}})
	}
	srv.calls(true)
	srv.expire = 2
	l := load(t, s)
	require.Empty(t, l.Problems)
	require.Equal(t, 200, l.History.Len())
	require.Len(t, srv.calls(true), 1+2+2+4, "the head, two lists that expired at their second chunk, and one of four chunks")
	written, err := s.Record(t.Context(), l, result("p2", l, l.History))
	require.NoError(t, err)
	require.False(t, written)
	require.Empty(t, srv.calls(true))

	require.NoError(t, onePass(t.Context(), s, "p3", 200, 2))
	require.Len(t, srv.names(), load(t, s).of(), "a pass that writes removes what was left over")

	for i := 1; i < 4*listLimit; i++ {
		name := s.pageName(4*listLimit, i)
		srv.put("syncdecisions/"+name, map[string]any{"metadata": map[string]any{
			"name": name, "uid": string(newUID(i)), "labels": map[string]any{labelHistoryOf: "dev"},
		}})
	}
	srv.expire = listRestarts
	_, err = s.Load(t.Context())
	require.ErrorContains(t, err, "expired")
}

func TestTheSetOfPagesGrowsAndShrinks(t *testing.T) {
	srv := newServer(t)
	s := srv.store(t, "dev")
	for i, pairs := range []int{10, 200, 600, 10, 600, 200, 0} {
		l := load(t, s)
		require.Empty(t, l.Problems)
		h := l.History.Clone()
		for k := range h.All() {
			h.Delete(k)
		}
		h.Rekey("key")
		fill(h, pairs, i)
		if i%2 == 0 { // either Reserve or Record changes the set
			require.NoError(t, s.Reserve(t.Context(), l, Reservation{PassID: fmt.Sprint(i), History: h}))
			require.Len(t, srv.names(), l.of(), "the old set is gone")
		}
		_, err := s.Record(t.Context(), l, result(fmt.Sprint(i), l, h))
		require.NoError(t, err)
		got := load(t, s)
		require.Empty(t, got.Problems)
		require.Equal(t, pairs, got.History.Len())
		require.Len(t, srv.names(), got.of(), "the old set is gone")
	}
	require.Equal(t, []string{"dev"}, srv.names())
}

// A pass that ends before its pages are there has written no object, and so announces none.
func TestTheTrailWaitsForThePagesWhereTheirNumberChanges(t *testing.T) {
	srv := newServer(t)
	s := srv.store(t, "dev")
	require.NoError(t, onePass(t.Context(), s, "p1", 10, 1))
	l := load(t, s)
	h := l.History.Clone()
	fill(h, 600, 2)
	reserve := func() error {
		return s.Reserve(t.Context(), l, Reservation{PassID: "p2", Tenant: tenant, History: h, Entries: []record.Entry{entry("p2")}})
	}
	srv.before = func(_ string, _ int, request string) fault {
		if strings.HasPrefix(request, "PUT ") {
			return lost
		}
		return none
	}
	require.Error(t, reserve())
	ended := load(t, s)
	require.Equal(t, "p2", ended.Status.ReservedBy)
	require.Len(t, ended.Status.Entries, 1)
	require.Equal(t, "p1", ended.Status.Entries[0].PassID)
	require.Equal(t, 10, ended.History.Len())

	srv.before, l = nil, ended
	require.NoError(t, reserve())
	reserved := load(t, s)
	require.Equal(t, "p2", reserved.Status.Entries[0].PassID)
	require.Equal(t, 600, reserved.History.Len())
}

func TestNamesOfPages(t *testing.T) {
	srv := newServer(t)
	long := strings.Repeat("a", 240) + ".b"
	seen := map[string]bool{}
	for _, tenant := range []string{"dev", "dev-history-4-1", "a.b", long, long + "c", strings.Repeat("x.", 100) + "y"} {
		s := srv.store(t, tenant)
		require.LessOrEqual(t, len(s.labelValue()), 63)
		for _, of := range []int{2, 4, record.MaxPages} {
			for _, i := range []int{1, of - 1} {
				name := s.pageName(of, i)
				require.LessOrEqual(t, len(name), 253)
				require.Regexp(t, `^[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*$`, name)
				require.True(t, s.isPageName(name))
				require.False(t, srv.store(t, tenant+"z").isPageName(name))
				if of != 2 || i == 1 && of-1 == 1 && !seen[name] {
					require.False(t, seen[name], name)
				}
				seen[name] = true
			}
		}
	}
	for _, name := range []string{"", "dev", "dev-history-2-1", "dev-history-2-1-aaaaaaaaaaaaaaaa", "a-b-c"} {
		require.False(t, srv.store(t, "dev").isPageName(name))
	}
}
