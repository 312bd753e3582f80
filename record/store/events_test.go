package store

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/syncpass/syncpass/record"
)

func (s *server) recorder(t *testing.T, concurrency int) *Recorder {
	return NewRecorder(s.events(t), "team-dev", owner("dev"), "runner-abc", concurrency)
}

func (s *server) eventList(t *testing.T) []corev1.Event {
	s.mu.Lock()
	defer s.mu.Unlock()
	var events []corev1.Event
	for key, o := range s.objects {
		if strings.HasPrefix(key, "events/") {
			var e corev1.Event
			b, err := json.Marshal(o)
			require.NoError(t, err)
			require.NoError(t, json.Unmarshal(b, &e))
			events = append(events, e)
		}
	}
	return events
}

func TestOneEventPerDecision(t *testing.T) {
	srv := newServer(t)
	r := srv.recorder(t, 4)
	var entries []record.Entry
	for i := range 40 {
		e := entry("p1")
		e.TenantName = fmt.Sprint("config-", i)
		entries = append(entries, e)
	}
	require.NoError(t, r.Record(t.Context(), entries...))
	require.Len(t, srv.eventList(t), 40)
	require.NoError(t, r.Record(t.Context(), entries...))
	require.Len(t, srv.eventList(t), 40, "doing it again doubles nothing")

	again := entry("p2")
	require.NoError(t, r.Record(t.Context(), again))
	require.Len(t, srv.eventList(t), 41, "the same decision of another pass is another one")
}

func TestAPassWritesNoMoreThanSoManyEventsAndWarningsFirst(t *testing.T) {
	srv := newServer(t)
	var entries []record.Entry
	for i := range MaxEvents + 20 {
		e := entry("p1")
		e.TenantName = fmt.Sprint("config-", i)
		if i > MaxEvents {
			e.Action, e.Reason = record.Skip, record.Conflict
		}
		entries = append(entries, e)
	}
	require.ErrorContains(t, srv.recorder(t, 16).Record(t.Context(), entries...), "20 Events were not written")
	written := srv.eventList(t)
	require.Len(t, written, MaxEvents)
	warnings := 0
	for _, event := range written {
		if event.Type == corev1.EventTypeWarning {
			warnings++
		}
	}
	require.Equal(t, 19, warnings, "all that a person should look at")
}

func TestWhatAnEventSays(t *testing.T) {
	srv := newServer(t)
	e := entry("p1")
	e.Action, e.Reason = record.Skip, record.Rejected
	e.Message, e.Error = "the host refused the object", "exceeded quota\x1b[31m\nline two "+strings.Repeat("x", 2000)
	require.NoError(t, srv.recorder(t, 1).Record(t.Context(), e))
	got := srv.eventList(t)[0]
	require.Equal(t, corev1.ObjectReference{
		APIVersion: "tenantplane.io/v1alpha1", Kind: "TenantCluster", Namespace: "team-dev", Name: "dev", UID: owner("dev").UID,
	}, got.InvolvedObject)
	require.Equal(t, &corev1.ObjectReference{APIVersion: "v1", Kind: "ConfigMap", Namespace: "team-dev", Name: "config-0-x-default-x-dev"}, got.Related)
	require.Equal(t, "Warning", got.Type)
	require.Equal(t, "Rejected", got.Reason)
	require.Equal(t, "Skip", got.Action)
	require.True(t, strings.HasPrefix(got.Message, "ConfigMap default/config-0: the host refused the object: exceeded quota[31m line two xxx"), got.Message)
	require.LessOrEqual(t, len(got.Message), 1024)
	require.Equal(t, "syncpass", got.ReportingController)
	require.Equal(t, "runner-abc", got.ReportingInstance)
	require.EqualValues(t, 1, got.Count)
	require.True(t, got.FirstTimestamp.Time.Equal(start))
	require.True(t, got.LastTimestamp.Time.Equal(start))
	require.Regexp(t, `^dev\.[0-9a-f]{20}$`, got.Name)
}

func TestTypesOfEvents(t *testing.T) {
	for reason, want := range map[record.Reason]string{
		record.Conflict: "Warning", record.NoHistory: "Warning", record.HistoryOff: "Warning", record.NotOwned: "Warning",
		record.NameCollision: "Warning", record.Rejected: "Warning", record.Immutable: "Warning", record.KindUnavailable: "Warning",
		record.GuardMaxDeletes: "Warning", record.GuardEmptyTenant: "Warning", record.GuardTenantIdentity: "Warning",
		record.Raced: "Normal", record.Terminating: "Normal", record.NotAttempted: "Normal",
	} {
		require.Equal(t, want, eventType(record.Entry{Action: record.Skip, Reason: reason}), reason)
	}
	for _, action := range []record.Action{record.Create, record.Update, record.Delete} {
		require.Equal(t, "Normal", eventType(record.Entry{Action: action, Reason: record.TenantDeleted}))
	}
	require.Equal(t, "Warning", eventType(record.Entry{Action: record.Update, Error: "refused"}))
}

func TestARefreshedSkipKeepsItsEvent(t *testing.T) {
	srv := newServer(t)
	r := srv.recorder(t, 1)
	e := entry("p1")
	e.Action, e.Reason = record.Skip, record.Conflict
	require.NoError(t, r.Record(t.Context(), e))

	last := metav1.NewMicroTime(start.Add(time.Hour))
	e.Count, e.LastTime = 3, &last
	require.NoError(t, r.Record(t.Context(), e))
	events := srv.eventList(t)
	require.Len(t, events, 1)
	require.EqualValues(t, 3, events[0].Count)
	require.True(t, events[0].FirstTimestamp.Time.Equal(start))
	require.True(t, events[0].LastTimestamp.Time.Equal(last.Time))

	srv.remove("events/" + events[0].Name) // Events expire after an hour
	require.NoError(t, r.Record(t.Context(), e))
	events = srv.eventList(t)
	require.Len(t, events, 1)
	require.EqualValues(t, 3, events[0].Count)
	require.True(t, events[0].FirstTimestamp.Time.Equal(start))
}

func TestOneRefusedEventDoesNotStopTheOthers(t *testing.T) {
	srv := newServer(t)
	var entries []record.Entry
	for i := range 10 {
		e := entry("p1")
		e.TenantName = fmt.Sprint("config-", i)
		entries = append(entries, e)
	}
	srv.before = func(_ string, n int, _ string) fault {
		if n == 3 || n == 7 {
			return lost
		}
		return none
	}
	err := srv.recorder(t, 1).Record(t.Context(), entries...)
	require.ErrorContains(t, err, "the Event of NoMirror of ConfigMap default/config-2")
	require.ErrorContains(t, err, "the Event of NoMirror of ConfigMap default/config-6")
	require.Len(t, srv.eventList(t), 8)
}

func TestRecordingEventsEndsWithItsContext(t *testing.T) {
	srv := newServer(t)
	ctx, cancel := context.WithCancelCause(t.Context())
	var once sync.Once
	srv.before = func(string, int, string) fault {
		once.Do(func() { cancel(errors.New("the pass was stopped")) })
		return none
	}
	entries := make([]record.Entry, 100)
	for i := range entries {
		entries[i] = entry(fmt.Sprint("p", i))
	}
	err := srv.recorder(t, 1).Record(ctx, entries...)
	require.ErrorContains(t, err, "Events were not written: the pass was stopped")
	require.LessOrEqual(t, len(srv.calls(true)), 2, "nothing is sent once the context has ended")
}
