package record

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func TestAnEntryWrittenAheadIsReplacedByWhatTheNextPassFinds(t *testing.T) {
	ahead := func(name string) Entry {
		return Ahead(Decision{Action: Create, APIVersion: "v1", Kind: "ConfigMap", TenantNamespace: "default", TenantName: name, Message: "has no mirror"},
			"dead", time.Unix(0, 0))
	}
	recorded := EntryOf(Decision{Action: Create, APIVersion: "v1", Kind: "ConfigMap", TenantName: "old", Message: "done"}, "before", time.Unix(0, 0))
	require.Equal(t, "has no mirror; about to be written", ahead("a").Message)

	given := []Entry{recorded, ahead("found"), ahead("open")}
	all, changed := Abandoned(given, func(k Key) bool { return k.Name == "found" })
	require.Equal(t, []string{"done", "has no mirror" + noteFound, "has no mirror" + noteOpen}, messages(all))
	require.Equal(t, all[1:], changed)
	require.Equal(t, "dead", all[1].PassID, "the entry stays that of the pass that wrote")
	require.Equal(t, "has no mirror; about to be written", given[1].Message, "the slice given is not changed")

	again, changed := Abandoned(all, func(Key) bool { return true })
	require.Equal(t, all, again, "what was settled stays so")
	require.Empty(t, changed)
}

func TestTheNoteOfAnEntryWrittenAheadIsNeverCutOff(t *testing.T) {
	e := Ahead(Decision{Action: Update, APIVersion: "v1", Kind: "ConfigMap", Message: strings.Repeat("long ", MaxMessage)}, "dead", time.Unix(0, 0))
	require.LessOrEqual(t, len(e.Message), MaxMessage)
	all, changed := Abandoned([]Entry{e}, func(Key) bool { return false })
	require.Len(t, changed, 1)
	require.LessOrEqual(t, len(all[0].Message), MaxMessage)
	require.True(t, strings.HasSuffix(all[0].Message, noteOpen))
}

func messages(entries []Entry) []string {
	var all []string
	for _, e := range entries {
		all = append(all, e.Message)
	}
	return all
}
