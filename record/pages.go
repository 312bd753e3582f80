package record

import (
	"cmp"
	"crypto/sha256"
	"encoding/base64"
	"encoding/binary"
	"errors"
	"fmt"
	"maps"
	"math/bits"
	"runtime"
	"slices"

	"golang.org/x/sync/errgroup"
)

// Format is the newest version of the packing that this program writes and reads.
const Format = formatAhead

const (
	// formatPlain is that of a page with its own pairs alone.
	formatPlain = 1
	// formatAhead is that of page 0 with intents of pairs of other pages: see maxAhead.
	formatAhead = 2
)

// maxAhead is how large the intents may be that lie on page 0, whatever pages their pairs are on, in bytes: those of a few
// hundred pairs. Intents come at the beginning of a pass and go at its end; on page 0, which is in the head, they cost no
// page but this one, and a pass writes the others once. More of them, which might not fit beside page 0's own pairs, lie
// with their pairs.
const maxAhead = 48 << 10

// Sizes are of the stored form of a page, base64, in bytes.
const (
	// MaxPageSize is what no page exceeds.
	MaxPageSize = 256 << 10
	// growAbove is the average above which the number of pages doubles; it leaves room for pages to differ.
	growAbove = 160 << 10
	// shrinkBelow is the average below which it halves. It is an eighth of growAbove, so that the intents of a large
	// pass, which are gone again at its end, do not make the number go up and down.
	shrinkBelow = 20 << 10
	// MaxPages bounds the number of pages. At 160 bytes a pair it is more than a million pairs, beyond what lists and
	// memory of one pass bear.
	MaxPages = 1024
)

var (
	// ErrNewerFormat: a page was packed by a newer version of syncpass. Whoever gets it must not write: the newer version
	// is in use and the pages would be lost to it. The next step is to upgrade.
	ErrNewerFormat = errors.New("the history was written by a newer version of syncpass; upgrade this one")
	// ErrPageMissing: a page of the set is not there.
	ErrPageMissing = errors.New("the page is missing")
	// ErrHistoryTooLarge: the history does not fit into MaxPages pages.
	ErrHistoryTooLarge = errors.New("the history is too large; let the policy name fewer kinds, or split the tenant")
)

// PageError is a page that is missing or cannot be read. Its pairs have no baseline, which never deletes or overwrites
// anything under the manual policy; they are judged anew.
//
// +kubebuilder:object:generate=false
type PageError struct {
	Index, Of int32
	Err       error
}

func (e *PageError) Error() string {
	return fmt.Sprintf("page %d of the history (of %d, counted from 0): %v", e.Index, e.Of, e.Err)
}

func (e *PageError) Unwrap() error { return e.Err }

// Decode reads a set of pages, in any order but for the first, whose Of says how many there must be. No page at all is
// an empty history. It always returns a history, of the pages that could be read; the error joins one *PageError for
// each other one. An error that is ErrNewerFormat forbids writing. Damaged pages are packed anew by the next Encode.
//
// Pages are untrusted: whatever they hold, Decode neither panics nor takes more than a fixed multiple of their size.
func Decode(pages []Page) (*History, error) {
	h := NewHistory("")
	if len(pages) == 0 {
		return h, nil
	}
	of := pages[0].Of
	if !validCount(of) {
		return h, newerOr(pages[0], &PageError{pages[0].Index, of, fmt.Errorf("the number of pages must be a power of two up to %d", MaxPages)})
	}
	h.pages = make([]*Page, of)

	var errs []error
	failed := make([]bool, of)
	keyIDs := map[string]bool{}
	read := map[int32]map[Key]State{}
	for _, p := range pages {
		if p.Of != of || p.Index < 0 || p.Index >= of {
			errs = append(errs, newerOr(p, &PageError{p.Index, p.Of, fmt.Errorf("it does not belong to this set of %d", of)}))
			continue
		}
		if failed[p.Index] || h.pages[p.Index] != nil {
			errs = append(errs, &PageError{p.Index, of, errors.New("it is there twice")})
			continue
		}
		states, err := unpackPage(p)
		if err != nil {
			failed[p.Index] = true
			errs = append(errs, newerOr(p, &PageError{p.Index, of, err}))
			continue
		}
		keyIDs[p.KeyID] = true
		h.pages[p.Index] = &p
		read[p.Index] = states
	}
	for i, p := range h.pages {
		if p == nil && !failed[i] {
			errs = append(errs, &PageError{int32(i), of, ErrPageMissing})
		}
	}
	h.merge(read)
	if len(keyIDs) == 1 {
		h.keyID = slices.Collect(maps.Keys(keyIDs))[0]
	}
	return h, errors.Join(errs...)
}

// merge takes what was read, page by page in their order. A pair's intent may be on page 0 and the rest of it on its own;
// where both have one, page 0's counts, since the head is written first. One that is not where it would be put now is moved
// by the next Encode.
func (h *History) merge(read map[int32]map[Key]State) {
	pairs := 0
	for _, states := range read {
		pairs += len(states)
	}
	h.states = make(map[Key]State, pairs) // growing step by step would take longer than copying
	together, apart := false, false       // intents of the other pages lie on page 0; on their own
	for index := range int32(len(h.pages)) {
		for k, s := range read[index] {
			if s.Intent != nil && pageOf(k, len(h.pages)) != 0 {
				together, apart = together || index == 0, apart || index != 0
			}
			if known, ok := h.states[k]; ok {
				h.forgetIntent(k, known.Intent)
				s = State{Baseline: cmp.Or(known.Baseline, s.Baseline), Intent: cmp.Or(known.Intent, s.Intent), Standing: cmp.Or(known.Standing, s.Standing)}
			}
			h.keepIntent(k, s.Intent)
			h.states[k] = s
		}
	}
	if h.ahead() && apart || !h.ahead() && together {
		h.moveIntents()
	}
}

// ahead says whether intents lie on page 0.
func (h *History) ahead() bool { return h.intended <= maxAhead }

// moveIntents has all pages packed again that intents are on, or may have been.
func (h *History) moveIntents() {
	h.pages[0] = nil
	for k := range h.intents {
		h.pages[pageOf(k, len(h.pages))] = nil
	}
}

// newerOr is err, unless the page says that it is of a newer format.
func newerOr(p Page, err *PageError) error {
	if p.Format > Format {
		err.Err = fmt.Errorf("format %d is newer than %d: %w", p.Format, Format, ErrNewerFormat)
	}
	return err
}

// Encode packs the history and returns all its pages, in order. A page none of whose pairs changed is the very page
// that was decoded or returned before, so comparing with what is stored tells which pages to write. The same pairs in
// the same number of pages give the same bytes. The caller must not change the pages' data.
//
// The number of pages doubles when they get too full and halves when they get nearly empty.
func (h *History) Encode() ([]Page, error) {
	for {
		if err := h.pack(); err != nil {
			return nil, err
		}
		of := len(h.pages)
		most, total := 0, 0
		for _, p := range h.pages {
			most = max(most, p.storedSize())
			total += p.storedSize()
		}
		switch full := most > MaxPageSize; {
		case (full || total > of*growAbove) && of < MaxPages:
			of *= 2
			for total > of*growAbove && of < MaxPages { // packing anew for each number on the way would take long
				of *= 2
			}
			h.pages = make([]*Page, of)
		case full:
			return nil, fmt.Errorf("%d pairs in %d pages: %w", len(h.states), of, ErrHistoryTooLarge)
		case total < of*shrinkBelow && h.canHalve():
			h.pages = make([]*Page, of/2)
		default:
			pages := make([]Page, of)
			for i, p := range h.pages {
				pages[i] = *p
			}
			return pages, nil
		}
	}
}

// canHalve: a page of the smaller set takes the pairs of two neighbours of the larger, and none may come out so full
// that the number would double again.
func (h *History) canHalve() bool {
	for i := 0; i+1 < len(h.pages); i += 2 {
		if h.pages[i].storedSize()+h.pages[i+1].storedSize() > growAbove {
			return false
		}
	}
	return len(h.pages) > 1
}

// pack packs the pages that need it.
func (h *History) pack() error {
	changed := map[int]map[Key]State{}
	for i, p := range h.pages {
		if p == nil {
			changed[i] = map[Key]State{}
		}
	}
	if len(changed) == 0 {
		return nil
	}
	ahead := map[Key]State{}
	if h.ahead() {
		for k := range h.intents {
			if pageOf(k, len(h.pages)) != 0 {
				ahead[k] = State{Intent: h.states[k].Intent}
			}
		}
	}
	for k, s := range h.states {
		if states := changed[pageOf(k, len(h.pages))]; states != nil {
			if _, elsewhere := ahead[k]; elsewhere {
				s.Intent = nil
			}
			states[k] = s
		}
	}
	if states := changed[0]; states != nil {
		maps.Copy(states, ahead)
	}
	var packing errgroup.Group
	packing.SetLimit(runtime.GOMAXPROCS(0))
	for i, states := range changed {
		packing.Go(func() error {
			body, err := pack(states)
			if err != nil {
				return fmt.Errorf("packing page %d of the history: %w", i, err)
			}
			p := &Page{Of: int32(len(h.pages)), Index: int32(i), Format: formatPlain, KeyID: h.keyID}
			if i == 0 && len(ahead) > 0 {
				p.Format = formatAhead
			}
			p.Data = append(p.sum(body), body...)
			h.pages[i] = p
			return nil
		})
	}
	return packing.Wait()
}

// unpackPage checks a page and reads its pairs.
func unpackPage(p Page) (map[Key]State, error) {
	switch {
	case p.Format < 1 || p.Format > Format:
		return nil, fmt.Errorf("format %d is unknown", p.Format)
	case len(p.KeyID) > maxString:
		return nil, errors.New("the key id is too long")
	case p.storedSize() > MaxPageSize:
		return nil, fmt.Errorf("%d bytes are more than a page may have (%d)", p.storedSize(), MaxPageSize)
	case len(p.Data) < sumSize:
		return nil, errors.New("the data is cut off")
	}
	body := p.Data[sumSize:]
	if string(p.sum(body)) != string(p.Data[:sumSize]) {
		return nil, errors.New("the checksum is wrong; the data was changed by something else than syncpass, or cut off")
	}
	states, err := unpack(body)
	if err != nil {
		return nil, fmt.Errorf("the data cannot be read: %w", err)
	}
	for k, s := range states {
		ahead := p.Format >= formatAhead && p.Index == 0 && s.Intent != nil && s == State{Intent: s.Intent}
		if !ahead && pageOf(k, int(p.Of)) != int(p.Index) {
			return nil, errors.New("a pair is on the wrong page")
		}
	}
	return states, nil
}

// sumSize is the length of a page's checksum, in bytes. The checksum is against accidents, such as a hand that edits
// or copies pages; who may write SyncDecisions can of course make a right one.
const sumSize = 8

func (p *Page) sum(body []byte) []byte {
	d := sha256.New()
	fmt.Fprintf(d, "%d %d %d %q ", p.Of, p.Index, p.Format, p.KeyID)
	d.Write(body)
	return d.Sum(nil)[:sumSize]
}

func (p *Page) storedSize() int { return base64.StdEncoding.EncodedLen(len(p.Data)) }

func validCount(of int32) bool { return of >= 1 && of <= MaxPages && of&(of-1) == 0 }

// pageOf is the page of a key among so many (a power of two): the top bits of the key's hash, so that doubling the
// number splits each page in two.
func pageOf(k Key, of int) int {
	text := make([]byte, 0, 256) // does not leave the stack
	for _, s := range [...]string{k.Group, k.Kind, k.Namespace, k.Name} {
		text = append(append(text, s...), 0)
	}
	sum := sha256.Sum256(text)
	top := binary.BigEndian.Uint32(sum[:])
	return int(uint64(top) >> (32 - bits.TrailingZeros(uint(of))))
}
