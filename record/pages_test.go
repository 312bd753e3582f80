package record

import (
	"bytes"
	"crypto/sha256"
	"encoding/base64"
	"encoding/binary"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/types"
	"pgregory.net/rapid"
)

// uid and hash make the n-th of different ones, spread like real ones.
func uid(n int) types.UID {
	h := hash(n)
	return types.UID(fmt.Sprintf("%x-%x-%x-%x-%x", h[0:4], h[4:6], h[6:8], h[8:10], h[10:16]))
}

func hash(n int) Hash {
	sum := sha256.Sum256(binary.BigEndian.AppendUint64(nil, uint64(n)))
	return Hash(sum[:hashSize])
}

func baseline(n int) *Baseline {
	return &Baseline{
		Tenant: Version{UID: uid(2 * n), ResourceVersion: fmt.Sprint(4_000_000_000 + n), Hash: hash(2 * n)},
		Host:   Version{UID: uid(2*n + 1), ResourceVersion: fmt.Sprint(4_100_000_000 + n), Hash: hash(2*n + 1)},
	}
}

// filled is a history of n pairs with baselines only.
func filled(n int) *History {
	h := NewHistory("key")
	for i := range n {
		h.Set(Key{Kind: "ConfigMap", Namespace: fmt.Sprintf("ns-%d", i%7), Name: fmt.Sprintf("config-%d", i)}, State{Baseline: baseline(i)})
	}
	return h
}

func encode(t require.TestingT, h *History) []Page {
	pages, err := h.Encode()
	require.NoError(t, err)
	return pages
}

func contents(h *History) map[Key]State {
	all := map[Key]State{}
	for k, s := range h.All() {
		all[k] = s
	}
	return all
}

func drawVersion(t *rapid.T) Version {
	return Version{
		UID: types.UID(rapid.OneOf(
			rapid.Map(rapid.IntRange(0, 50), func(n int) string { return string(uid(n)) }),
			rapid.Map(rapid.IntRange(0, 50), func(n int) string { return strings.ToUpper(string(uid(n))) }),
			rapid.StringN(-1, -1, maxString),
		).Draw(t, "uid")),
		ResourceVersion: rapid.OneOf(
			rapid.Map(rapid.Uint64(), func(n uint64) string { return fmt.Sprint(n) }),
			rapid.SampledFrom([]string{"", "0", "007", "+1", "-1", "18446744073709551615", "18446744073709551616"}),
			rapid.StringN(-1, -1, maxString),
		).Draw(t, "resourceVersion"),
		Hash: hash(rapid.IntRange(0, 50).Draw(t, "hash")),
	}
}

func drawState(t *rapid.T) State {
	var s State
	if rapid.Bool().Draw(t, "has a baseline") {
		s.Baseline = &Baseline{Tenant: drawVersion(t), Host: drawVersion(t)}
	}
	if rapid.Bool().Draw(t, "has an intent") {
		s.Intent = &Intent{
			Side:   rapid.SampledFrom([]Side{Host, Tenant}).Draw(t, "side"),
			Target: drawVersion(t), Source: drawVersion(t), Want: hash(rapid.IntRange(0, 50).Draw(t, "want")),
			Path: rapid.StringN(-1, -1, maxString).Draw(t, "path"),
		}
	}
	if rapid.Bool().Draw(t, "has a standing skip") {
		s.Standing = &Standing{
			Reason: rapid.SampledFrom([]Reason{Conflict, NoHistory, Rejected}).Draw(t, "reason"),
			Digest: hash(rapid.IntRange(0, 50).Draw(t, "digest")),
			Since:  time.Unix(rapid.Int64Range(0, 1<<33).Draw(t, "since"), 0).UTC(), LastTime: time.Unix(1_700_000_000, 0).UTC(),
			Count: rapid.Int32Min(0).Draw(t, "count"),
		}
	}
	return s
}

func drawKey(t *rapid.T) Key {
	name := rapid.StringMatching(`[a-c]{1,3}(\.[a-c])?`)
	k := Key{
		Group:     rapid.SampledFrom([]string{"", "apps", "gateway.example.com"}).Draw(t, "group"),
		Kind:      rapid.SampledFrom([]string{"ConfigMap", "Deployment", "Route"}).Draw(t, "kind"),
		Namespace: name.Draw(t, "namespace"), Name: name.Draw(t, "name"),
	}
	if rapid.IntRange(0, 9).Draw(t, "the kind itself") == 0 {
		k.Namespace, k.Name = "", ""
	}
	return k
}

// An ordinary baseline must cost at most 160 bytes in the stored form, even where every pair is alone in its namespace
// and so nothing is shared.
func TestAPairWithABaselineTakesAtMost160Bytes(t *testing.T) {
	const pairs = 1000
	for name, namespace := range map[string]func(i int) string{
		"a namespace for every pair": func(i int) string { return fmt.Sprintf("namespace-%08d", i) },
		"all in one namespace":       func(int) string { return "a-namespace-of-eighteen" },
	} {
		t.Run(name, func(t *testing.T) {
			h := NewHistory("0123456789abcdef")
			for i := range pairs {
				k := Key{Kind: "ConfigMap", Namespace: namespace(i)}
				k.Name = fmt.Sprintf("%0*d", 38-len(k.Namespace), i)
				h.Set(k, State{Baseline: baseline(i)})
			}
			size := 0
			for _, p := range encode(t, h) {
				size += base64.StdEncoding.EncodedLen(len(p.Data))
			}
			t.Logf("%.1f bytes a pair", float64(size)/pairs)
			require.LessOrEqual(t, size, 160*pairs)
		})
	}
}

func TestOneChangedPairRewritesOnePage(t *testing.T) {
	h := filled(6000)
	before := encode(t, h)
	require.Greater(t, len(before), 4)

	var some Key
	for some = range h.All() {
		break
	}
	h.Set(some, State{Baseline: baseline(-1)})
	after := encode(t, h)
	require.Len(t, after, len(before))
	changed := 0
	for i := range before {
		if !bytes.Equal(before[i].Data, after[i].Data) {
			changed++
			require.Equal(t, pageOf(some, len(after)), i)
		} else {
			require.Same(t, &before[i].Data[0], &after[i].Data[0], "an unchanged page must not be packed again")
		}
	}
	require.Equal(t, 1, changed)

	h.Set(some, h.Get(some))
	require.Equal(t, after, encode(t, h), "setting what is there is no change")
}

func TestPagesGrowAndShrinkWithoutFlapping(t *testing.T) {
	h := NewHistory("key")
	count := func(n int) int {
		for k := range h.All() {
			h.Delete(k)
		}
		for k, s := range filled(n).All() {
			h.Set(k, s)
		}
		pages := encode(t, h)
		for _, p := range pages {
			require.LessOrEqual(t, base64.StdEncoding.EncodedLen(len(p.Data)), MaxPageSize)
			require.EqualValues(t, len(pages), p.Of)
		}
		got, err := Decode(pages)
		require.NoError(t, err)
		require.Equal(t, n, got.Len())
		require.Equal(t, pages, encode(t, got), "decoding and encoding again changes nothing")
		return len(pages)
	}
	require.Equal(t, 1, count(0))
	require.Equal(t, 1, count(1000))
	require.Equal(t, 2, count(2000))
	require.Equal(t, 16, count(15000))
	require.Equal(t, 16, count(4000), "less than half gone is no reason to move everything")
	require.Equal(t, 8, count(1900))
	require.Equal(t, 1, count(0))
	require.Equal(t, 1, count(1000), "and it starts again from one")
}

func TestIntentsOfALargePassDoNotMakeThePagesFlap(t *testing.T) {
	h := filled(3000)
	before := len(encode(t, h))
	for k, s := range h.All() {
		s.Intent = &Intent{Side: Host, Target: s.Baseline.Host, Source: s.Baseline.Tenant, Want: hash(7), Path: "spec.template.spec.containers"}
		h.Set(k, s)
	}
	during := len(encode(t, h))
	require.Greater(t, during, before)
	for k, s := range h.All() {
		s.Intent = nil
		h.Set(k, s)
	}
	require.Equal(t, during, len(encode(t, h)))
}

func TestAHistoryThatDoesNotFitIsRefused(t *testing.T) {
	h := NewHistory("key")
	h.pages = make([]*Page, MaxPages)
	long := strings.Repeat("x", maxString)
	version := Version{UID: types.UID(long), ResourceVersion: long}
	for i := range 100 { // all on one page of the most pages there can be
		for j := i << 20; ; j++ {
			k := Key{Kind: "ConfigMap", Name: fmt.Sprint(j)}
			if pageOf(k, MaxPages) == 0 {
				h.Set(k, State{Intent: &Intent{Side: Host, Target: version, Source: version, Path: long}})
				break
			}
		}
	}
	_, err := h.Encode()
	require.ErrorIs(t, err, ErrHistoryTooLarge)
}

func TestDamagedPagesCostTheirOwnPairsOnly(t *testing.T) {
	sound := filled(3000)
	pages := encode(t, sound)
	require.Len(t, pages, 4)
	want := contents(sound)
	maps.DeleteFunc(want, func(k Key, _ State) bool { return pageOf(k, 4) == 2 })
	damage := func(change func(p []Page) []Page) []Page {
		return change(slices.Clone(pages))
	}
	set := func(i int, change func(p *Page)) func([]Page) []Page {
		return func(p []Page) []Page {
			p[i].Data = bytes.Clone(p[i].Data)
			change(&p[i])
			return p
		}
	}
	for name, test := range map[string]struct {
		pages []Page
		says  string
	}{
		"a page is missing":          {damage(func(p []Page) []Page { return slices.Delete(p, 2, 3) }), "page is missing"},
		"a page is there twice":      {damage(func(p []Page) []Page { p[2] = p[1]; return p }), "there twice"},
		"a bit is flipped":           {damage(set(2, func(p *Page) { p.Data[500] ^= 4 })), "checksum"},
		"the data is cut off":        {damage(set(2, func(p *Page) { p.Data = p.Data[:len(p.Data)-1] })), "checksum"},
		"the data is gone":           {damage(set(2, func(p *Page) { p.Data = nil })), "cut off"},
		"the data is too long":       {damage(set(2, func(p *Page) { p.Data = make([]byte, MaxPageSize) })), "more than a page may have"},
		"the key id was edited":      {damage(set(2, func(p *Page) { p.KeyID = "other" })), "checksum"},
		"the format is 0":            {damage(set(2, func(p *Page) { p.Format = 0 })), "format 0 is unknown"},
		"the page is of another set": {damage(set(2, func(p *Page) { p.Of = 8 })), "does not belong to this set"},
		"the page is of no place":    {damage(set(2, func(p *Page) { p.Index = -1 })), "does not belong to this set"},
	} {
		t.Run(name, func(t *testing.T) {
			h, err := Decode(test.pages)
			require.ErrorContains(t, err, test.says)
			var page *PageError
			require.ErrorAs(t, err, &page)
			require.NotErrorIs(t, err, ErrNewerFormat)
			require.Equal(t, want, contents(h))
			repaired, err := Decode(encode(t, h))
			require.NoError(t, err, "encoding writes a sound page in the place of the damaged one")
			require.Equal(t, h.Len(), repaired.Len())
		})
	}
}

func TestAPageOfANewerFormatForbidsWriting(t *testing.T) {
	pages := encode(t, filled(3000))
	pages[1].Format = Format + 1
	_, err := Decode(pages)
	require.ErrorIs(t, err, ErrNewerFormat)
	require.ErrorContains(t, err, "upgrade")

	_, err = Decode([]Page{{Of: 1000, Format: Format + 1}})
	require.ErrorIs(t, err, ErrNewerFormat, "even if it counts pages in another way")
}

func TestTheNumberOfPagesMustMakeSense(t *testing.T) {
	for _, of := range []int32{-1, 0, 3, 6, 2 * MaxPages, 1 << 30} {
		h, err := Decode([]Page{{Of: of, Format: Format}})
		require.ErrorContains(t, err, "power of two")
		require.Zero(t, h.Len())
		require.Len(t, encode(t, h), 1)
	}
}
