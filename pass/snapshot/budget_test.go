package snapshot

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestABudgetIsUsedUpAndGivenBack(t *testing.T) {
	b := newBudget(3 * objectBytes)
	require.True(t, b.take(objectBytes))
	require.True(t, b.take(2*objectBytes))
	require.False(t, b.take(1))
	b.take(-objectBytes - 1)
	require.True(t, b.take(objectBytes))
	require.False(t, b.take(1))

	var none *budget
	require.True(t, none.take(1<<62), "the host has no bounds")
}

func TestItemsAreTakenOneByOne(t *testing.T) {
	for text, want := range map[string]string{
		`{"items":[{"a":1},2]}`: `[{"a":1},2]`,
		`{"items":[]}`:          `[]`,
	} {
		var p page
		require.NoError(t, json.Unmarshal([]byte(text), &p))
		got, err := json.Marshal(p.Items)
		require.NoError(t, err)
		require.JSONEq(t, want, string(got))
	}
	for _, text := range []string{`{}`, `{"items":null}`} {
		var p page
		require.NoError(t, json.Unmarshal([]byte(text), &p))
		require.Nil(t, p.Items, text)
	}
	for text, says := range map[string]string{
		`{"items":{}}`:  "its items are no list",
		`{"items":"x"}`: "its items are no list",
		`{"items":[` + strings.Repeat("0,", maxPageItems) + `0]}`: "more than 100000 items",
	} {
		var p page
		require.ErrorContains(t, json.Unmarshal([]byte(text), &p), says)
	}
}
