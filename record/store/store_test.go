package store

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	"github.com/syncpass/syncpass/record"
)

var (
	start  = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	tenant = &record.TenantIdentity{UID: "5f1c0a52-0000-4000-8000-00000000aaaa"}
)

func key(i int) record.Key {
	return record.Key{Kind: "ConfigMap", Namespace: "default", Name: fmt.Sprintf("config-%d", i)}
}

// state is the n-th state that a pair can be in. Its UID is so long that 200 pairs fill more than one page.
func state(i, n int) record.State {
	v := record.Version{UID: types.UID(fmt.Sprintf("%0500d", i)), ResourceVersion: fmt.Sprint(1000*i + n)}
	v.Hash[0], v.Hash[1] = byte(i), byte(n)
	return record.State{Baseline: &record.Baseline{Tenant: v, Host: v}}
}

// fill puts pairs 0 to pairs-1 into their n-th state.
func fill(h *record.History, pairs, n int) {
	for i := range pairs {
		h.Set(key(i), state(i, n))
	}
}

func intend(h *record.History, pairs int) {
	for i := range pairs {
		s := h.Get(key(i))
		s.Intent = intent(i)
		h.Set(key(i), s)
	}
}

func intent(i int) *record.Intent {
	v := state(i, 0).Baseline.Host
	return &record.Intent{Side: record.Host, Target: v, Source: v, Path: "data.a"}
}

func entry(passID string) record.Entry {
	return record.EntryOf(record.Decision{
		Action: record.Create, Side: record.Host, APIVersion: "v1", Kind: "ConfigMap", TenantNamespace: "default", TenantName: "config-0",
		HostNamespace: "team-dev", HostName: "config-0-x-default-x-dev", Reason: record.NoMirror, Message: "the tenant object has no mirror yet",
	}, passID, start)
}

func result(passID string, l *Loaded, h *record.History, entries ...record.Entry) Result {
	return Result{
		LastPass: record.LastPass{
			ID: passID, StartTime: metav1.NewMicroTime(start), EndTime: metav1.NewMicroTime(start.Add(time.Second)), Outcome: record.Completed,
			Counts: record.Counts{Create: len(entries)},
		},
		Entries: record.Append(l.Status.Entries, 1000, entries...),
		Tenant:  tenant,
		History: h,
	}
}

func load(t *testing.T, s *Store) *Loaded {
	l, err := s.Load(t.Context())
	require.NoError(t, err)
	return l
}

// onePass is a whole pass that brings so many pairs into their n-th state.
func onePass(ctx context.Context, s *Store, passID string, pairs, n int) error {
	l, err := s.Load(ctx)
	if err != nil {
		return err
	}
	h := l.History.Clone()
	h.Rekey("key")
	intend(h, pairs)
	if err := s.Reserve(ctx, l, Reservation{PassID: passID, Tenant: tenant, History: h}); err != nil {
		return err
	}
	fill(h, pairs, n)
	_, err = s.Record(ctx, l, result(passID, l, h, entry(passID)))
	return err
}

func TestAFirstPassAndAQuietOne(t *testing.T) {
	srv := newServer(t)
	s := srv.store(t, "dev")

	l := load(t, s)
	require.Zero(t, l.Status)
	require.Zero(t, l.Epoch())
	require.Empty(t, l.Problems)
	h := l.History.Clone()
	h.Rekey("key")
	intend(h, 3)
	require.NoError(t, s.Reserve(t.Context(), l, Reservation{PassID: "p1", Tenant: tenant, History: h}))
	require.Equal(t, []string{"POST dev", "PATCH dev/status"}, srv.calls(false))
	require.EqualValues(t, 1, l.Epoch().Number)
	now, err := s.CurrentEpoch(t.Context())
	require.NoError(t, err)
	require.Equal(t, l.Epoch(), now)

	crashed := load(t, s)
	require.NotNil(t, crashed.History.Get(key(1)).Intent, "intents are stored before the first write")
	require.Equal(t, tenant, crashed.Status.Tenant)

	fill(h, 3, 1)
	srv.calls(true)
	written, err := s.Record(t.Context(), l, result("p1", l, h, entry("p1")))
	require.NoError(t, err)
	require.True(t, written)
	require.Equal(t, []string{"PATCH dev/status"}, srv.calls(true))

	head := srv.objects["syncdecisions/dev"]
	owners, _, _ := unstructured.NestedSlice(head, "metadata", "ownerReferences")
	require.Equal(t, []any{map[string]any{
		"apiVersion": "tenantplane.io/v1alpha1", "kind": "TenantCluster", "name": "dev", "uid": string(owner("dev").UID),
		"controller": true, "blockOwnerDeletion": false,
	}}, owners)

	// A quiet pass reads the head once and writes nothing, although its own summary differs.
	l = load(t, s)
	require.Equal(t, []string{"GET dev"}, srv.calls(true))
	require.EqualValues(t, 1, l.Status.Epoch)
	require.EqualValues(t, 3, l.Status.Pairs)
	require.Equal(t, "key", l.History.KeyID())
	require.Equal(t, state(2, 1), l.History.Get(key(2)))
	require.Len(t, l.Status.Entries, 1)
	require.True(t, l.Status.Entries[0].Time.Equal(ptrTo(metav1.NewMicroTime(start))))
	h = l.History.Clone()
	fill(h, 3, 1)
	written, err = s.Record(t.Context(), l, result("p2", l, h))
	require.NoError(t, err)
	require.False(t, written)
	require.Empty(t, srv.calls(true))
}

func ptrTo[T any](v T) *T { return &v }

func TestWhatIsNewIsRecordedWithoutAReservation(t *testing.T) {
	for name, change := range map[string]func(r *Result){
		"an entry":      func(r *Result) { r.Entries = record.Append(r.Entries, 1000, entry("p2")) },
		"a baseline":    func(r *Result) { r.History.Set(key(0), state(0, 2)) },
		"a conflict":    func(r *Result) { r.Conflicts = 1 },
		"an outcome":    func(r *Result) { r.LastPass.Outcome = record.Guarded },
		"an identity":   func(r *Result) { r.Tenant = &record.TenantIdentity{UID: "another"} },
		"another key":   func(r *Result) { r.History.Rekey("another") },
		"a pair less":   func(r *Result) { r.History.Delete(key(0)) },
		"a larger set":  func(r *Result) { fill(r.History, 300, 1) },
		"a shorter one": func(r *Result) { r.Entries = nil },
	} {
		t.Run(name, func(t *testing.T) {
			srv := newServer(t)
			s := srv.store(t, "dev")
			require.NoError(t, onePass(t.Context(), s, "p1", 3, 1))
			l := load(t, s)
			r := result("p2", l, l.History.Clone())
			change(&r)
			written, err := s.Record(t.Context(), l, r)
			require.NoError(t, err)
			require.True(t, written)

			got := load(t, s)
			require.Empty(t, got.Problems)
			require.EqualValues(t, 2, got.Status.Epoch, "whoever writes raises the epoch")
			require.Equal(t, "p2", got.Status.ReservedBy)
			require.Equal(t, "p2", got.Status.LastPass.ID)
			require.Equal(t, r.History.Len(), got.History.Len())
			require.Len(t, got.Status.Entries, len(r.Entries))
			written, err = s.Record(t.Context(), got, Result{
				LastPass: r.LastPass, Conflicts: r.Conflicts, Entries: got.Status.Entries, Tenant: r.Tenant, History: got.History,
			})
			require.NoError(t, err)
			require.False(t, written, "the same again is no news")
		})
	}
}

func TestASecondPassIsSuperseded(t *testing.T) {
	srv := newServer(t)
	s := srv.store(t, "dev")
	require.NoError(t, onePass(t.Context(), s, "p1", 3, 1))
	first, second := load(t, s), load(t, s)
	require.NoError(t, s.Reserve(t.Context(), first, Reservation{PassID: "p2", History: first.History}))

	err := s.Reserve(t.Context(), second, Reservation{PassID: "p3", History: second.History})
	require.ErrorIs(t, err, ErrSuperseded)
	require.ErrorContains(t, err, `epoch 2 now, raised by pass "p2"`)
	_, err = s.Record(t.Context(), second, result("p3", second, second.History, entry("p3")))
	require.ErrorIs(t, err, ErrSuperseded)

	written, err := s.Record(t.Context(), first, result("p2", first, first.History, entry("p2")))
	require.NoError(t, err)
	require.True(t, written)
	require.Len(t, load(t, s).Status.Entries, 2)
}

func TestTwoFirstPassesMakeOneSyncDecision(t *testing.T) {
	srv := newServer(t)
	s := srv.store(t, "dev")
	first, second := load(t, s), load(t, s)
	require.NoError(t, s.Reserve(t.Context(), first, Reservation{PassID: "p1", History: first.History}))
	require.ErrorIs(t, s.Reserve(t.Context(), second, Reservation{PassID: "p2", History: second.History}), ErrSuperseded)
}

// A SyncDecision that was deleted and made again is another one, even where its epoch has come to the same number.
func TestADeletedSyncDecisionSupersedes(t *testing.T) {
	srv := newServer(t)
	s := srv.store(t, "dev")
	zombie := load(t, s)
	require.NoError(t, s.Reserve(t.Context(), zombie, Reservation{PassID: "p1", History: zombie.History}))
	srv.remove("syncdecisions/dev")

	now, err := s.CurrentEpoch(t.Context())
	require.NoError(t, err)
	require.NotEqual(t, zombie.Epoch(), now)
	_, err = s.Record(t.Context(), zombie, result("p1", zombie, zombie.History))
	require.ErrorIs(t, err, ErrSuperseded)
	require.ErrorContains(t, err, "deleted")

	require.NoError(t, onePass(t.Context(), s, "p1", 1, 1))
	now, err = s.CurrentEpoch(t.Context())
	require.NoError(t, err)
	require.Equal(t, zombie.Epoch().Number, now.Number)
	require.NotEqual(t, zombie.Epoch(), now)
	_, err = s.Record(t.Context(), zombie, result("p1", zombie, zombie.History))
	require.ErrorIs(t, err, ErrSuperseded)
}

func TestASyncDecisionRestoredFromABackupSupersedes(t *testing.T) {
	srv := newServer(t)
	s := srv.store(t, "dev")
	l := load(t, s)
	require.NoError(t, s.Reserve(t.Context(), l, Reservation{PassID: "p1", History: l.History}))
	srv.edit("syncdecisions/dev", func(o *unstructured.Unstructured) { o.SetUID("another, with the same status") })
	_, err := s.Record(t.Context(), l, result("p1", l, l.History))
	require.ErrorIs(t, err, ErrSuperseded)
}

func TestMetadataMayChangeUnderAPass(t *testing.T) {
	srv := newServer(t)
	s := srv.store(t, "dev")
	l := load(t, s)
	require.NoError(t, s.Reserve(t.Context(), l, Reservation{PassID: "p1", History: l.History}))
	srv.edit("syncdecisions/dev", func(o *unstructured.Unstructured) { o.SetLabels(map[string]string{"team": "a"}) })
	_, err := s.Record(t.Context(), l, result("p1", l, l.History, entry("p1")))
	require.NoError(t, err)
	require.Len(t, load(t, s).Status.Entries, 1)

	l = load(t, s)
	require.NoError(t, s.Reserve(t.Context(), l, Reservation{PassID: "p2", History: l.History}))
	srv.edit("syncdecisions/dev", func(o *unstructured.Unstructured) {
		require.NoError(t, unstructured.SetNestedField(o.Object, int64(7), "status", "conflicts"))
	})
	_, err = s.Record(t.Context(), l, result("p2", l, l.History, entry("p2")))
	require.ErrorIs(t, err, ErrSuperseded, "a status that was edited by hand is not overwritten")
}

func TestTheCRDMustBeThere(t *testing.T) {
	srv := newServer(t)
	srv.noCRD = true
	_, err := srv.store(t, "dev").Load(t.Context())
	require.ErrorContains(t, err, "apply manifests/crd")
}

func TestATooLargeRecordIsShortenedOnce(t *testing.T) {
	srv := newServer(t)
	s := srv.store(t, "dev")
	l := load(t, s)
	var entries []record.Entry
	for i := range 100 {
		entries = append(entries, entry(fmt.Sprint("p", i)))
	}
	srv.maxBytes = 20_000
	require.NoError(t, s.Reserve(t.Context(), l, Reservation{PassID: "p1", History: l.History}))
	r := result("p1", l, l.History, entries...)
	r.LastPass.Message = "all done"
	_, err := s.Record(t.Context(), l, r)
	require.NoError(t, err)
	got := load(t, s).Status
	require.Len(t, got.Entries, 25)
	require.Equal(t, "p99", got.Entries[24].PassID)
	require.Equal(t, "all done; the trail was shortened from 100 to 25 entries, since the SyncDecision was too large", got.LastPass.Message)

	l = load(t, s)
	srv.maxBytes = 2000
	srv.calls(true)
	err = s.Reserve(t.Context(), l, Reservation{PassID: "p2", History: l.History})
	require.ErrorIs(t, err, ErrTooLarge)
	require.ErrorContains(t, err, "retain")
	require.Len(t, srv.calls(true), 2, "it is terminal after the trail was shortened once")
	require.EqualValues(t, 1, load(t, s).Status.Epoch)
}
