package record

import (
	"fmt"
	"maps"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
)

// intended gives the first n pairs of a filled history an intent.
func intended(h *History, n int) {
	for i, k := range slices.SortedFunc(maps.Keys(h.states), Key.Compare) {
		if i == n {
			return
		}
		state := h.Get(k)
		state.Intent = &Intent{Side: Host, Target: baseline(i).Host, Source: baseline(i).Tenant, Want: hash(-i), Path: "data\nkey"}
		h.Set(k, state)
	}
}

// changed are the indexes of the pages that are not the same in both sets.
func changed(t *testing.T, before, after []Page) (indexes []int) {
	require.Equal(t, len(before), len(after))
	for i := range before {
		if string(before[i].Data) != string(after[i].Data) {
			indexes = append(indexes, i)
		}
	}
	return indexes
}

func TestIntentsOfAFewPairsAreOnTheFirstPageAlone(t *testing.T) {
	h := filled(10_000)
	before := encode(t, h)
	require.Greater(t, len(before), 4)
	intended(h, 150)
	during := encode(t, h)
	require.Equal(t, []int{0}, changed(t, before, during))
	require.EqualValues(t, formatAhead, during[0].Format, "a version that does not know this must not write")

	read, err := Decode(during)
	require.NoError(t, err)
	require.Equal(t, contents(h), contents(read))
	require.Equal(t, during, encode(t, read), "what was read is as it would be written")

	for k, s := range read.All() {
		s.Intent = nil
		read.Set(k, s)
	}
	require.Equal(t, before, encode(t, read), "nothing is left of intents that are gone")
}

func TestIntentsOfManyPairsAreWithTheirPairs(t *testing.T) {
	h := filled(10_000)
	before := encode(t, h)
	intended(h, 400)
	during := encode(t, h)
	require.Len(t, changed(t, before, during), len(before))
	require.EqualValues(t, formatPlain, during[0].Format)
	read, err := Decode(during)
	require.NoError(t, err)
	require.Equal(t, contents(h), contents(read))

	for k := range maps.Clone(read.intents) {
		if len(read.intents) > 150 {
			read.Set(k, State{Baseline: read.Get(k).Baseline})
		}
	}
	fewer := encode(t, read)
	require.EqualValues(t, formatAhead, fewer[0].Format, "so few are on the first page again")
	again, err := Decode(fewer)
	require.NoError(t, err)
	require.Equal(t, contents(read), contents(again))
	require.Equal(t, fewer, encode(t, again))
}

func TestAFewIntentsThatAnOlderVersionLeftWithTheirPairsAreMoved(t *testing.T) {
	h := filled(10_000)
	intended(h, 100)
	pages := encode(t, h)
	for i := range pages { // as they were packed before there was formatAhead
		own := map[Key]State{}
		for k, s := range h.states {
			if pageOf(k, len(pages)) == i {
				own[k] = s
			}
		}
		body, err := pack(own)
		require.NoError(t, err)
		pages[i].Format = formatPlain
		pages[i].Data = append(pages[i].sum(body), body...)
	}
	read, err := Decode(pages)
	require.NoError(t, err)
	require.Equal(t, contents(h), contents(read))
	require.Equal(t, encode(t, h), encode(t, read))
}

// A pass that reserves few writes after one that reserved many may die once the head is written.
func TestOfTwoIntentsOfAPairTheOneOnTheFirstPageCounts(t *testing.T) {
	many, few := filled(10_000), filled(10_000)
	intended(many, 400)
	intended(few, 100)
	for k := range few.intents {
		state := few.Get(k)
		newer := *state.Intent
		newer.Want = hash(7)
		few.Set(k, State{Baseline: state.Baseline, Intent: &newer})
	}
	torn := encode(t, many)
	torn[0] = encode(t, few)[0]
	for range 20 { // whatever the order of a map
		read, err := Decode(torn)
		require.NoError(t, err)
		for k := range few.intents {
			require.Equal(t, few.Get(k), read.Get(k))
		}
		again, err := Decode(encode(t, read))
		require.NoError(t, err)
		require.Equal(t, contents(read), contents(again), "no older intent is left on its own page")
	}
}

func TestOnlyAnIntentMayBeOnTheFirstPageInPlaceOfItsOwn(t *testing.T) {
	var stray Key
	for i := 0; stray.Name == "" || pageOf(stray, 2) == 0; i++ {
		stray = Key{Kind: "ConfigMap", Namespace: "default", Name: fmt.Sprint(i)}
	}
	for name, row := range map[string]struct {
		state  State
		format int32
		taken  bool
	}{
		"an intent":                      {State{Intent: &Intent{Side: Host}}, formatAhead, true},
		"an intent, in the plain format": {State{Intent: &Intent{Side: Host}}, formatPlain, false},
		"a baseline":                     {State{Baseline: baseline(1)}, formatAhead, false},
		"both":                           {State{Baseline: baseline(1), Intent: &Intent{Side: Host}}, formatAhead, false},
	} {
		t.Run(name, func(t *testing.T) {
			body, err := pack(map[Key]State{stray: row.state})
			require.NoError(t, err)
			p := Page{Of: 2, Format: row.format}
			p.Data = append(p.sum(body), body...)
			_, err = unpackPage(p)
			if row.taken {
				require.NoError(t, err)
				return
			}
			require.ErrorContains(t, err, "a pair is on the wrong page")
		})
	}
}
