package record

import (
	"bytes"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

func TestDecodeReadsWhatEncodeWrote(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		h := NewHistory("key")
		h.pages = make([]*Page, 1<<rapid.IntRange(0, 3).Draw(t, "doublings"))
		for range rapid.IntRange(0, 40).Draw(t, "sets") {
			h.Set(drawKey(t), drawState(t))
		}
		require.NoError(t, h.pack())
		var pages []Page
		for _, p := range h.pages {
			pages = append(pages, *p)
		}
		got, err := Decode(pages)
		require.NoError(t, err)
		require.Equal(t, contents(h), contents(got))
		require.Equal(t, "key", got.KeyID())

		// Canonical: whatever order the pairs came in, the bytes are the same.
		again := NewHistory("key")
		again.pages = make([]*Page, len(pages))
		for k, s := range contents(h) {
			again.Set(k, s)
		}
		require.NoError(t, again.pack())
		for i, p := range again.pages {
			require.Equal(t, pages[i], *p)
		}
	})
}

// A right checksum does not make a page right.
func TestAForgedPageIsRefused(t *testing.T) {
	forge := func(body []byte) Page {
		p := Page{Of: 1, Format: Format}
		p.Data = append(p.sum(body), body...)
		return p
	}
	encoded := func(v any) []byte { return must(encMode.Marshal(v)) }
	pair := func(v any) any {
		return map[string]any{"ConfigMap": map[string]any{"default": map[string]any{"app": v}}}
	}
	none := map[string]any{}
	good := appendVersion(appendVersion(nil, Version{}), Version{})
	for name, body := range map[string][]byte{
		"nothing":                      {},
		"no CBOR":                      []byte("garbage"),
		"an array of another length":   encoded([]any{none, none}),
		"something after the end":      append(encoded([]any{none, none, none}), 0),
		"a cut baseline":               encoded([]any{pair(good[:len(good)-1]), none, none}),
		"a baseline with a tail":       encoded([]any{pair(append(slices.Clone(good), 0)), none, none}),
		"a baseline that is a number":  encoded([]any{pair(7), none, none}),
		"an intent for no side":        encoded([]any{none, pair([]any{"both", good, make([]byte, 16), ""}), none}),
		"an intent with a short hash":  encoded([]any{none, pair([]any{"host", good, make([]byte, 15), ""}), none}),
		"a skip with a long digest":    encoded([]any{none, none, pair([]any{"Conflict", make([]byte, 17), 0, 0, 1})}),
		"a skip in the year 292277026": encoded([]any{none, none, pair([]any{"Conflict", make([]byte, 16), int64(1) << 62, 0, 1})}),
		"a skip counted beyond int32":  encoded([]any{none, none, pair([]any{"Conflict", make([]byte, 16), 0, 0, int64(1) << 40})}),
		"a name without an end":        encoded([]any{map[string]any{"ConfigMap": map[string]any{"": map[string]any{strings.Repeat("x", 1000): good}}}, none, none}),
		"a kind without a name":        encoded([]any{map[string]any{"": map[string]any{"": map[string]any{"": good}}}, none, none}),
		"deep nesting":                 bytes.Repeat([]byte{0x81}, 100000),
		"an array that says it is big": {0x9b, 0x7f, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff},
		"a map that says it is big":    {0x83, 0xbb, 0x7f, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff},
	} {
		t.Run(name, func(t *testing.T) {
			h, err := Decode([]Page{forge(body)})
			require.ErrorContains(t, err, "page 0")
			require.Zero(t, h.Len())
		})
	}
	_, err := Decode([]Page{forge(encoded([]any{pair(good), none, none}))})
	require.NoError(t, err, "the forge itself must be able to make a good page")
}

func TestAPairOnTheWrongPageIsRefused(t *testing.T) {
	k := Key{Kind: "ConfigMap", Namespace: "default", Name: "app"}
	body, err := pack(map[Key]State{k: {Baseline: baseline(1)}})
	require.NoError(t, err)
	wrong := 1 - pageOf(k, 2)
	p := Page{Of: 2, Index: int32(wrong), Format: Format}
	p.Data = append(p.sum(body), body...)
	_, err = Decode([]Page{p})
	require.ErrorContains(t, err, "wrong page")
}

func FuzzDecode(f *testing.F) {
	h := NewHistory("key")
	h.Set(Key{Kind: "ConfigMap", Namespace: "default", Name: "app"}, State{Baseline: baseline(1)})
	h.Set(Key{Group: "apps", Kind: "Deployment", Namespace: "default", Name: "web"}, State{
		Baseline: &Baseline{Tenant: Version{UID: "odd", ResourceVersion: "abc"}},
		Intent:   &Intent{Side: Tenant, Target: baseline(2).Tenant, Want: hash(3), Path: "data.a"},
		Standing: &Standing{Reason: Conflict, Digest: hash(4), Since: time.Unix(1, 0), LastTime: time.Unix(2, 0), Count: 1},
	})
	for _, n := range []int{0, 50} {
		f.Add(encode(f, filled(n))[0].Data[sumSize:], int32(1), int32(0))
	}
	f.Add(encode(f, h)[0].Data[sumSize:], int32(1), int32(0))
	f.Add([]byte{0x83, 0xa0, 0xa0, 0xa0}, int32(2), int32(1))
	f.Fuzz(func(t *testing.T, body []byte, of, index int32) {
		p := Page{Of: of, Index: index, Format: Format}
		p.Data = append(p.sum(body), body...)
		if _, err := Decode([]Page{p, p}); err == nil {
			t.Fatal("two pages of the same index cannot be right")
		}
		h, err := Decode([]Page{p})
		if page := (*PageError)(nil); err != nil && !errors.As(err, &page) {
			t.Fatalf("an error that names no page: %v", err)
		}
		pages, err := h.Encode()
		if err != nil {
			return // pairs can be packed in less than this program writes; then they may not fit again
		}
		again, err := Decode(pages)
		if err != nil {
			t.Fatalf("what was decoded cannot be encoded and decoded again: %v", err)
		}
		require.Equal(t, contents(h), contents(again))
	})
}
