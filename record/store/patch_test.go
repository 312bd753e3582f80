package store

import (
	"encoding/json"
	"fmt"
	"slices"
	"testing"

	jsonpatch "github.com/evanphx/json-patch/v5"
	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"pgregory.net/rapid"

	"github.com/syncpass/syncpass/record"
)

// TestAPatchGivesTheNextStatus is all that a patch has to do, whatever the two have in common.
func TestAPatchGivesTheNextStatus(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		old := drawStatus(t, "old")
		next := drawStatus(t, "next")
		if rapid.Bool().Draw(t, "goes on") {
			next.Entries = goOn(t, old.Entries)
		}
		patch, err := statusPatch("uid", "7", &old, next)
		require.NoError(t, err)
		requireStatus(t, next, applied(t, old, patch))
	})
}

// goOn is a trail as a pass leaves it: without the oldest entries, with some brought up to date, and with new ones.
func goOn(t *rapid.T, entries []record.Entry) []record.Entry {
	kept := slices.Clone(entries[rapid.IntRange(0, len(entries)).Draw(t, "dropped"):])
	kept = kept[:rapid.IntRange(0, len(kept)).Draw(t, "kept")]
	for i := range kept {
		if rapid.IntRange(0, 3).Draw(t, "stands") == 0 {
			kept[i].Count++
		}
	}
	return append(kept, drawEntries(t, "added")...)
}

func drawEntries(t *rapid.T, label string) []record.Entry {
	var entries []record.Entry
	for range rapid.IntRange(0, 6).Draw(t, label) {
		entries = append(entries, entry(fmt.Sprint("p", rapid.IntRange(0, 3).Draw(t, "pass"))))
	}
	return entries
}

func drawStatus(t *rapid.T, label string) record.SyncDecisionStatus {
	status := record.SyncDecisionStatus{
		Epoch: int64(rapid.IntRange(1, 3).Draw(t, label+" epoch")), Conflicts: int32(rapid.IntRange(0, 1).Draw(t, "conflicts")),
		Entries: drawEntries(t, label+" entries"),
	}
	if rapid.Bool().Draw(t, "history") {
		status.History = &record.Page{Of: 1, Format: 1, Data: []byte{byte(rapid.IntRange(0, 2).Draw(t, "data"))}}
	}
	if rapid.Bool().Draw(t, "tenant") {
		status.Tenant = &record.TenantIdentity{UID: "u"}
	}
	return status
}

func applied(t require.TestingT, old record.SyncDecisionStatus, patch []byte) record.SyncDecisionStatus {
	text, err := json.Marshal(record.SyncDecision{ObjectMeta: metav1.ObjectMeta{Name: "dev", UID: "other", ResourceVersion: "3"}, Status: old})
	require.NoError(t, err)
	decoded, err := jsonpatch.DecodePatch(patch)
	require.NoError(t, err)
	text, err = decoded.Apply(text)
	require.NoError(t, err)
	var got record.SyncDecision
	require.NoError(t, json.Unmarshal(text, &got))
	require.EqualValues(t, "uid", got.UID, "another object is a conflict")
	require.Equal(t, "7", got.ResourceVersion, "another version is a conflict")
	return got.Status
}

// requireStatus compares what is stored of two.
func requireStatus(t require.TestingT, want, got record.SyncDecisionStatus) {
	require.True(t, equality.Semantic.DeepEqual(want, got), "want %v\ngot %v", want, got)
}

// A head is nearly all trail, which a small change must not send once more.
func TestASmallChangeIsASmallPatch(t *testing.T) {
	var entries []record.Entry
	for i := range 1000 {
		entries = append(entries, entry(fmt.Sprint("p", i)))
	}
	old := record.SyncDecisionStatus{Epoch: 1, Entries: entries}
	next := record.SyncDecisionStatus{Epoch: 2, Entries: append(slices.Clone(entries[1:]), entry("new"))}
	patch, err := statusPatch("uid", "7", &old, next)
	require.NoError(t, err)
	require.Less(t, len(patch), 1000)
	requireStatus(t, next, applied(t, old, patch))
}

// What stands in a malformed head is not known, so all of it is replaced.
func TestAHeadThatCouldNotBeReadIsReplaced(t *testing.T) {
	next := record.SyncDecisionStatus{Epoch: 2, Entries: []record.Entry{entry("new")}}
	patch, err := statusPatch("uid", "7", nil, next)
	require.NoError(t, err)
	requireStatus(t, next, applied(t, record.SyncDecisionStatus{Epoch: 9, Conflicts: 4, Entries: []record.Entry{entry("old")}}, patch))
}
