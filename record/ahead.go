package record

import (
	"slices"
	"strings"
	"time"
)

// What stands at the end of the message of an entry that was written ahead, and what takes its place when the pass that
// wrote it did not come to record its end. Each is true at any moment at which it can be read.
const (
	noteAhead = "; about to be written"
	noteFound = "; the pass ended before it could record this, and the next one found nothing left to do about it"
	noteOpen  = "; the pass ended before it could record whether this was done"
)

// Ahead is the entry of a write that a pass is about to make in the pass at that time. It is stored before the write, so
// that the trail explains the write also where the pass dies before it can record what it did. A pass that records its
// end replaces it.
func Ahead(d Decision, passID string, at time.Time) Entry {
	e := EntryOf(d, passID, at)
	e.Message = withNote(e.Message, noteAhead)
	return e
}

// Abandoned brings the entries up to date that a pass wrote ahead and never replaced, which is how a pass that was killed
// leaves them. settled says whether the pair has been looked at since, with nothing left to do about it. It returns the
// whole trail and the entries changed in it, for their Events; the slice given is not changed.
func Abandoned(entries []Entry, settled func(Key) bool) (all, changed []Entry) {
	all = slices.Clone(entries)
	for i := range all {
		e := &all[i]
		message, ahead := strings.CutSuffix(e.Message, noteAhead)
		if !ahead {
			continue
		}
		note := noteOpen
		if settled(e.Key()) {
			note = noteFound
		}
		e.Message = withNote(message, note)
		changed = append(changed, *e)
	}
	return all, changed
}

// withNote is a message with a note at its end, which stays whole where the two are too long together.
func withNote(message, note string) string { return Plain(message, MaxMessage-len(note)) + note }
