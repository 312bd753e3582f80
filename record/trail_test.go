package record

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"pgregory.net/rapid"
)

func TestStand(t *testing.T) {
	start := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	prev := &Standing{Reason: Conflict, Digest: hash(1), Since: start, LastTime: start.Add(time.Hour), Count: 3}
	last := prev.LastTime
	fresh := func(at time.Time, reason Reason, digest Hash) Standing {
		return Standing{Reason: reason, Digest: digest, Since: at, LastTime: at, Count: 1}
	}
	refreshed := func(at time.Time) Standing {
		next := *prev
		next.LastTime, next.Count = at, 4
		return next
	}
	rekeyed := *prev
	rekeyed.Digest = Hash{}
	countless := *prev
	countless.Count = math.MaxInt32
	for name, test := range map[string]struct {
		prev    *Standing
		reason  Reason
		digest  Hash
		now     time.Time
		next    Standing
		verdict Verdict
	}{
		"a skip that was not there before is new":            {nil, Conflict, hash(1), last, fresh(last, Conflict, hash(1)), New},
		"another reason is new":                              {prev, NoHistory, hash(1), last, fresh(last, NoHistory, hash(1)), New},
		"the same reason about something else is new":        {prev, Conflict, hash(2), last, fresh(last, Conflict, hash(2)), New},
		"the same a pass later is silent":                    {prev, Conflict, hash(1), last.Add(30 * time.Second), *prev, Silent},
		"the same just before 30 minutes is silent":          {prev, Conflict, hash(1), last.Add(StandingRefresh - time.Second), *prev, Silent},
		"the same after 30 minutes is refreshed":             {prev, Conflict, hash(1), last.Add(StandingRefresh), refreshed(last.Add(StandingRefresh)), Refresh},
		"a clock that is back a little is silent":            {prev, Conflict, hash(1), last.Add(-time.Minute), *prev, Silent},
		"a clock that is back far does not silence for long": {prev, Conflict, hash(1), last.Add(-time.Hour), refreshed(last.Add(-time.Hour)), Refresh},
		"a new hash key alone is no news":                    {&rekeyed, Conflict, hash(9), last, func() Standing { s := *prev; s.Digest = hash(9); return s }(), Silent},
		"a new hash key does not hide another reason":        {&rekeyed, Rejected, hash(9), last, fresh(last, Rejected, hash(9)), New},
		"the count stays at its end":                         {&countless, Conflict, hash(1), last.Add(time.Hour), func() Standing { s := countless; s.LastTime = last.Add(time.Hour); return s }(), Refresh},
	} {
		t.Run(name, func(t *testing.T) {
			next, verdict := Stand(test.prev, test.reason, test.digest, test.now)
			require.Equal(t, test.next, next)
			require.Equal(t, test.verdict, verdict)
		})
	}
}

// However often passes run, a skip that stands is written once in 30 minutes.
func TestAStandingSkipIsWrittenAtMostTwiceAnHour(t *testing.T) {
	now := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	var prev *Standing
	written := 0
	for range 10 * 120 { // ten hours of passes every 30 seconds
		next, verdict := Stand(prev, Conflict, hash(1), now)
		if verdict != Silent {
			written++
		}
		prev, now = &next, now.Add(30*time.Second)
	}
	require.Equal(t, 20, written)
	require.EqualValues(t, 20, prev.Count)
}

func decision(name string) Decision {
	return Decision{
		Action: Skip, Side: Host, APIVersion: "apps/v1", Kind: "Deployment", TenantNamespace: "default", TenantName: name,
		HostNamespace: "team-dev", HostName: name + "-x-default-x-dev", Reason: Conflict, Message: "both sides changed",
		Fields: []string{"spec.replicas"},
	}
}

func TestAppendKeepsTheNewest(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		retain := rapid.IntRange(-1, 8).Draw(t, "retain")
		var all, trail []Entry
		for range rapid.IntRange(0, 6).Draw(t, "passes") {
			var added []Entry
			for range rapid.IntRange(0, 5).Draw(t, "decisions") {
				added = append(added, EntryOf(decision(fmt.Sprint(len(all)+len(added))), "pass", time.Unix(0, 0)))
			}
			all = append(all, added...)
			before := slices.Clone(trail)
			next := Append(trail, retain, added...)
			require.Equal(t, before, trail)
			trail = next
		}
		require.LessOrEqual(t, len(trail), max(0, retain))
		want := all[len(all)-min(len(all), max(0, retain)):]
		require.Len(t, trail, len(want))
		for i := range want {
			require.Equal(t, want[i], trail[i])
		}
	})
}

func TestAppendBoundsTheTrailInBytes(t *testing.T) {
	big := decision("a")
	big.Message, big.Error = strings.Repeat("m", 5000), strings.Repeat("e", 5000)
	for range 40 {
		big.Fields = append(big.Fields, strings.Repeat("f", 500))
	}
	var added []Entry
	for i := range 200 {
		added = append(added, EntryOf(big, fmt.Sprint(i), time.Unix(int64(i), 0)))
	}
	trail := Append(nil, math.MaxInt32, added[:198]...)
	trail = Append(trail, math.MaxInt32, added[198:]...)
	size := 0
	for _, e := range trail {
		size += entrySize(e)
	}
	require.LessOrEqual(t, size, MaxTrail)
	require.Greater(t, size, MaxTrail-20_000)
	require.Equal(t, "199", trail[len(trail)-1].PassID)

	small := make([]Entry, MaxEntries+5)
	for i := range small {
		small[i].PassID = fmt.Sprint(i)
	}
	require.LessOrEqual(t, len(Append(nil, math.MaxInt32, small...)), MaxEntries)
}

func TestEntryOfIsBoundedAndClean(t *testing.T) {
	d := decision("a")
	d.Message = "line one\nline \x1b[31mtwo\x00 \u202eowt" + strings.Repeat("ä", 2000)
	d.Error = strings.Repeat("e", 5000)
	d.Fields = nil
	for i := range 40 {
		d.Fields = append(d.Fields, fmt.Sprintf("data.%d\n", i))
	}
	at := time.Date(2026, 3, 1, 12, 0, 0, 123456789, time.FixedZone("X", 3600))
	e := EntryOf(d, "p1", at)
	require.True(t, strings.HasPrefix(e.Message, "line one line [31mtwo owtää"), "%q", e.Message)
	require.LessOrEqual(t, len(e.Message), MaxMessage)
	require.True(t, utf8.ValidString(e.Message))
	require.True(t, strings.HasSuffix(e.Message, "ä…"))
	require.Len(t, e.Error, MaxError)
	require.Len(t, e.Fields, MaxFields+1)
	require.Equal(t, "data.31", e.Fields[MaxFields-1])
	require.Equal(t, "… and 8 more", e.Fields[MaxFields])
	require.Equal(t, "2026-03-01T11:00:00.123456Z", e.Time.Format(metav1.RFC3339Micro))
	require.Equal(t, Key{Group: "apps", Kind: "Deployment", Namespace: "default", Name: "a"}, e.Key())
	require.Equal(t, d.Key(), e.Key())
}

func TestPlain(t *testing.T) {
	for in, want := range map[string]string{
		"":                   "",
		"as it is":           "as it is",
		" a\tb\r\nc ":        "a b  c",
		"\x1b]0;title\x07ok": "]0;titleok",
		"a\u202eb\u2066c":    "abc",
		"\xff\xfe":           "\ufffd\ufffd",
		"0123456789":         "0123456789",
		"01234567890":        "0123456…",
		"ääääää":             "äää…",
		"          x":        "x",
	} {
		require.Equal(t, want, Plain(in, 10), "%q", in)
	}
	rapid.Check(t, func(t *rapid.T) {
		limit := rapid.IntRange(3, 40).Draw(t, "limit")
		got := Plain(rapid.String().Draw(t, "text"), limit)
		require.LessOrEqual(t, len(got), limit)
		require.True(t, utf8.ValidString(got))
	})
}

func TestRefreshEntry(t *testing.T) {
	at := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	old, other, newest := EntryOf(decision("a"), "p1", at), EntryOf(decision("b"), "p2", at), EntryOf(decision("a"), "p3", at)
	rejected := decision("a")
	rejected.Reason = Rejected
	trail := []Entry{old, other, newest, EntryOf(rejected, "p4", at)}
	k := decision("a").Key()

	got, ok := RefreshEntry(trail, k, Standing{Reason: Conflict, LastTime: at.Add(time.Hour), Count: 2})
	require.True(t, ok)
	require.Equal(t, "p3", got.PassID)
	require.EqualValues(t, 2, got.Count)
	require.Equal(t, at.Add(time.Hour), got.LastTime.Time)
	require.Equal(t, got, trail[2])
	require.Equal(t, []Entry{old, other}, trail[:2])

	_, ok = RefreshEntry(trail, k, Standing{Reason: NoHistory})
	require.False(t, ok)
	k.Group = ""
	_, ok = RefreshEntry(trail, k, Standing{Reason: Conflict})
	require.False(t, ok, "the same kind of another group is another pair")
}
