package record

import (
	"encoding/json"
	"fmt"
	"math"
	"slices"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// StandingRefresh is how often at most the entry and the Event of a standing skip are written again.
const StandingRefresh = 30 * time.Minute

// Bounds of one entry; what it says may come from a tenant. Lengths are in bytes.
const (
	// MaxMessage is also what the API allows an Event's message.
	MaxMessage = 1024
	// MaxError bounds the cause that an API server gave.
	MaxError = 512
	// MaxCause bounds it where a pass shows more of it than the trail keeps.
	MaxCause = 4096
	// MaxFields is how many paths are named; one more element says how many are not.
	MaxFields = 32

	maxField  = 256
	maxName   = 253
	maxKind   = 63
	maxPassID = 64
)

// MaxEntries bounds the trail in entries, whatever spec.explain.retain says; the CRD takes no more.
const MaxEntries = 10000

// MaxTrail bounds the trail in bytes of JSON, whatever spec.explain.retain says. With one page of history it stays
// below the 1.5 MiB that etcd takes in one request by default.
const MaxTrail = 768 << 10

// Verdict says what a skip that was decided means for the trail.
type Verdict int

// The verdicts.
const (
	// New: the skip was not there before, or is about something else now: a new entry and a new Event.
	New Verdict = iota
	// Silent: it stands as it did; nothing is written.
	Silent
	// Refresh: it stands, and its entry and Event have not been refreshed for StandingRefresh.
	Refresh
)

// Stand decides whether a skip is news. Prev is the pair's Standing as remembered, nil if none; digest tells what the
// skip is about. Next is what to remember from now on; after Silent it is *prev (but for a digest that got lost).
//
//	prev                                    | verdict
//	none, another reason, another digest    | New
//	same, refreshed less than 30 min ago    | Silent
//	same, refreshed longer ago              | Refresh
//	same, refreshed 30 min or more from now | Refresh: the clock was wrong then, or is now
//
// A previous digest of zero (Rekey made it so) is the same as any.
func Stand(prev *Standing, reason Reason, digest Hash, now time.Time) (next Standing, verdict Verdict) {
	now = toSecond(now)
	if prev == nil || prev.Reason != reason || prev.Digest != digest && !prev.Digest.IsZero() {
		return Standing{Reason: reason, Digest: digest, Since: now, LastTime: now, Count: 1}, New
	}
	next = *prev
	next.Digest = digest
	if now.Sub(prev.LastTime).Abs() < StandingRefresh {
		return next, Silent
	}
	next.LastTime = now
	if next.Count < math.MaxInt32 {
		next.Count++
	}
	return next, Refresh
}

// EntryOf is the entry of a decision taken in the pass at that time. Texts are cut to their bounds and cleaned of what
// does not print.
func EntryOf(d Decision, passID string, at time.Time) Entry {
	return Entry{
		Time:            metav1.NewMicroTime(at.UTC().Truncate(time.Microsecond)),
		Action:          d.Action,
		Side:            d.Side,
		APIVersion:      Plain(d.APIVersion, maxName),
		Kind:            Plain(d.Kind, maxKind),
		TenantNamespace: Plain(d.TenantNamespace, maxName),
		TenantName:      Plain(d.TenantName, maxName),
		HostNamespace:   Plain(d.HostNamespace, maxName),
		HostName:        Plain(d.HostName, maxName),
		Reason:          d.Reason,
		Message:         Plain(d.Message, MaxMessage),
		Error:           Plain(d.Error, MaxError),
		Fields:          plainFields(d.Fields),
		PassID:          Plain(passID, maxPassID),
		Count:           1,
	}
}

// Append adds new entries, in their order, and drops the oldest: all beyond retain or MaxEntries entries, and all beyond
// MaxTrail bytes. The slices given are not changed.
func Append(entries []Entry, retain int, added ...Entry) []Entry {
	all := slices.Concat(entries, added)
	all = all[max(0, len(all)-min(max(0, retain), MaxEntries)):]
	size := 0
	for i, e := range slices.Backward(all) {
		if size += entrySize(e); size > MaxTrail {
			return all[i+1:]
		}
	}
	return all
}

// RefreshEntry brings the entry of a standing skip up to date: the newest Skip of that pair with s.Reason. It changes
// the slice in place and returns the entry, for its Event. It returns false where the trail has none any more; the
// skip is then not written again, since retain is what was asked for.
func RefreshEntry(entries []Entry, k Key, s Standing) (Entry, bool) {
	for i := range slices.Backward(entries) {
		e := &entries[i]
		if e.Action != Skip || e.Reason != s.Reason || e.Key() != k {
			continue
		}
		last := metav1.NewMicroTime(s.LastTime)
		e.Count, e.LastTime = s.Count, &last
		return *e, true
	}
	return Entry{}, false
}

// Key is the pair that the entry is about.
func (e Entry) Key() Key { return keyOf(e.APIVersion, e.Kind, e.TenantNamespace, e.TenantName) }

// Key is the pair that the decision is about.
func (d Decision) Key() Key { return keyOf(d.APIVersion, d.Kind, d.TenantNamespace, d.TenantName) }

func keyOf(apiVersion, kind, namespace, name string) Key {
	return Key{Group: schema.FromAPIVersionAndKind(apiVersion, kind).Group, Kind: kind, Namespace: namespace, Name: name}
}

// Plain is s in one line, without control characters, terminal escapes and text direction marks, cut to limit bytes (at least 3).
// It is for whatever a person reads and a tenant may have written.
func Plain(s string, limit int) string {
	const ellipsis = "…"
	var b strings.Builder
	cut := false
	for _, r := range strings.TrimSpace(s) {
		switch {
		case unicode.IsSpace(r):
			b.WriteByte(' ')
		case unicode.IsPrint(r):
			b.WriteRune(r)
		}
		if cut = b.Len() > limit; cut {
			break
		}
	}
	plain := b.String()
	if !cut {
		return plain
	}
	end := max(0, limit-len(ellipsis))
	for end > 0 && !utf8.RuneStart(plain[end]) {
		end--
	}
	return plain[:end] + ellipsis
}

func plainFields(fields []string) []string {
	if len(fields) == 0 {
		return nil
	}
	plain := make([]string, 0, min(len(fields), MaxFields+1))
	for _, f := range fields[:min(len(fields), MaxFields)] {
		plain = append(plain, Plain(f, maxField))
	}
	if more := len(fields) - MaxFields; more > 0 {
		plain = append(plain, fmt.Sprintf("… and %d more", more))
	}
	return plain
}

// entrySize is the entry's size in the SyncDecision, in bytes.
func entrySize(e Entry) int {
	b, err := json.Marshal(e)
	if err != nil { // only a time that JSON cannot write; such an entry must not be kept
		return MaxTrail + 1
	}
	return len(b)
}
