package record

import (
	"cmp"
	"iter"
	"maps"
	"slices"
	"strings"
	"time"
	"unicode/utf8"
)

// maxString bounds every string of the history, in bytes. What Kubernetes names is shorter (253); a longer one comes
// from an API server that lies.
const maxString = 512

// History is what is remembered of every pair of one tenant. A nil *History is an empty one to every method that only
// reads. It is not safe for use by several goroutines at once.
//
// +kubebuilder:object:generate=false
type History struct {
	keyID  string
	states map[Key]State
	// intents are the keys of the states that have one, and intended about how many bytes these take packed.
	intents  map[Key]struct{}
	intended int
	// pages are the packed pages, their number a power of two; nil where the page must be packed again.
	pages []*Page
}

// NewHistory is an empty history of one page whose hashes are made with the key that keyID names.
func NewHistory(keyID string) *History {
	return &History{keyID: keyID, states: map[Key]State{}, intents: map[Key]struct{}{}, pages: make([]*Page, 1)}
}

// KeyID names the key of the content hashes; empty where it is unknown or not the same for all pages.
func (h *History) KeyID() string {
	if h == nil {
		return ""
	}
	return h.keyID
}

// Rekey says that hashes are made with another key from now on. The hashes there were compare with nothing any more and
// become zero; resourceVersions and UIDs stay, and intents too, which can then no longer be seen to have landed by
// content alone. It does nothing where the key is the same.
func (h *History) Rekey(keyID string) {
	if h.keyID == keyID {
		return
	}
	h.keyID = keyID
	clear(h.pages)
	for k, s := range h.states {
		if s.Baseline != nil {
			b := *s.Baseline
			b.Tenant.Hash, b.Host.Hash = Hash{}, Hash{}
			s.Baseline = &b
		}
		if s.Intent != nil {
			i := *s.Intent
			i.Target.Hash, i.Source.Hash, i.Want = Hash{}, Hash{}, Hash{}
			s.Intent = &i
		}
		if s.Standing != nil {
			st := *s.Standing
			st.Digest = Hash{}
			s.Standing = &st
		}
		h.states[k] = s
	}
}

// Get is what is remembered of the pair; the zero State where nothing is.
func (h *History) Get(k Key) State {
	if h == nil {
		return State{}
	}
	return h.states[k]
}

// Set remembers s of the pair. The zero State forgets it. A part with a string that no API server has reason to send
// (over 512 bytes, or no UTF-8) is left out, which makes it "no baseline": one hostile object must not spoil the page
// for the others.
func (h *History) Set(k Key, s State) {
	s = s.storable()
	if s == (State{}) || !k.storable() {
		h.Delete(k)
		return
	}
	before := h.states[k]
	if before.equal(s) {
		return
	}
	h.states[k] = s
	h.touch(k, before, s)
}

// Delete forgets the pair.
func (h *History) Delete(k Key) {
	if before, ok := h.states[k]; ok {
		delete(h.states, k)
		h.touch(k, before, State{})
	}
}

// touch has the pages packed again that a change is on.
func (h *History) touch(k Key, before, after State) {
	own := pageOf(k, len(h.pages))
	if !(State{Intent: before.Intent}).equal(State{Intent: after.Intent}) {
		was := h.ahead()
		h.forgetIntent(k, before.Intent)
		h.keepIntent(k, after.Intent)
		switch is := h.ahead(); {
		case was != is:
			h.moveIntents()
			h.pages[own] = nil
		case is:
			h.pages[0] = nil
		default:
			h.pages[own] = nil
		}
	}
	if before.Intent, after.Intent = nil, nil; !before.equal(after) {
		h.pages[own] = nil
	}
}

func (h *History) keepIntent(k Key, i *Intent) {
	if i != nil {
		h.intents[k] = struct{}{}
		h.intended += intentSize(k, i)
	}
}

func (h *History) forgetIntent(k Key, i *Intent) {
	if i != nil {
		delete(h.intents, k)
		h.intended -= intentSize(k, i)
	}
}

// intentSize is about what an intent takes packed, in bytes.
func intentSize(k Key, i *Intent) int {
	size := len(k.Group) + len(k.Kind) + len(k.Namespace) + len(k.Name) + len(i.Side) + len(i.Path) + 4*hashSize
	for _, v := range []Version{i.Target, i.Source} {
		size += len(v.UID) + len(v.ResourceVersion)
	}
	return size
}

// Len is how many keys there are, kinds included.
func (h *History) Len() int {
	if h == nil {
		return 0
	}
	return len(h.states)
}

// Pairs is how many pairs there are: keys with a name.
func (h *History) Pairs() int {
	n := 0
	if h != nil {
		for k := range h.states {
			if k.Name != "" {
				n++
			}
		}
	}
	return n
}

// Count is how many pairs of a kind are remembered.
func (h *History) Count(group, kind string) int {
	n := 0
	for k := range h.Of(group, kind) {
		if k.Name != "" {
			n++
		}
	}
	return n
}

// Of are the keys of one kind, in no order.
func (h *History) Of(group, kind string) iter.Seq[Key] {
	return func(yield func(Key) bool) {
		if h == nil {
			return
		}
		for k := range h.states {
			if k.Group == group && k.Kind == kind && !yield(k) {
				return
			}
		}
	}
}

// Keys are the keys of one kind, sorted by namespace and name.
func (h *History) Keys(group, kind string) []Key {
	return slices.SortedFunc(h.Of(group, kind), Key.Compare)
}

// All are the keys and states, sorted by key. Set and Delete are allowed meanwhile; keys that were not there at the
// start do not come up.
func (h *History) All() iter.Seq2[Key, State] {
	return func(yield func(Key, State) bool) {
		if h == nil {
			return
		}
		for _, k := range slices.SortedFunc(maps.Keys(h.states), Key.Compare) {
			if s, ok := h.states[k]; ok && !yield(k, s) {
				return
			}
		}
	}
}

// Clone is a history that can be changed without changing h. Of a nil history it is an empty one without a key.
func (h *History) Clone() *History {
	if h == nil {
		return NewHistory("")
	}
	return &History{keyID: h.keyID, states: maps.Clone(h.states), intents: maps.Clone(h.intents), intended: h.intended, pages: slices.Clone(h.pages)}
}

// Compare orders keys by group, kind, namespace and name.
func (k Key) Compare(o Key) int {
	return cmp.Or(
		strings.Compare(k.Group, o.Group),
		strings.Compare(k.Kind, o.Kind),
		strings.Compare(k.Namespace, o.Namespace),
		strings.Compare(k.Name, o.Name),
	)
}

// storable: the packed form writes a kind as Kind.group, so the kind itself must have no dot (no kind has).
func (k Key) storable() bool {
	return k.Kind != "" && !strings.Contains(k.Kind, ".") && storable(k.Group, k.Kind, k.Namespace, k.Name)
}

func (v Version) storable() bool { return storable(string(v.UID), v.ResourceVersion) }

// storable is s without the parts that cannot be packed, in the precision that packing keeps.
func (s State) storable() State {
	if b := s.Baseline; b != nil && !(b.Tenant.storable() && b.Host.storable()) {
		s.Baseline = nil
	}
	if i := s.Intent; i != nil && !(i.Target.storable() && i.Source.storable() && storable(i.Path, string(i.Side))) {
		s.Intent = nil
	}
	if st := s.Standing; st != nil {
		kept := *st
		kept.Since, kept.LastTime = toSecond(st.Since), toSecond(st.LastTime)
		s.Standing = &kept
		if !storable(string(st.Reason)) || !printable(st.Since) || !printable(st.LastTime) {
			s.Standing = nil
		}
	}
	return s
}

func storable(values ...string) bool {
	for _, v := range values {
		if len(v) > maxString || !utf8.ValidString(v) {
			return false
		}
	}
	return true
}

func (s State) equal(o State) bool {
	return same(s.Baseline, o.Baseline) && same(s.Intent, o.Intent) && same(s.Standing, o.Standing)
}

// same compares what two pointers lead to. Standing has times: == is right for them, since toSecond made both.
func same[T comparable](a, b *T) bool {
	return a == b || a != nil && b != nil && *a == *b
}

// printable: RFC 3339 has four digits for the year.
func printable(t time.Time) bool { return t.Year() >= 1 && t.Year() <= 9999 }

func toSecond(t time.Time) time.Time { return time.Unix(t.Unix(), 0).UTC() }
