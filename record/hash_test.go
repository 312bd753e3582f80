package record

import (
	"math"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestHashIsStable(t *testing.T) {
	h := NewHasher([]byte("a token"))
	content := map[string]any{
		"b": []any{int64(1), "two", true, nil, 2.5}, "a": map[string]any{"y": "<&>", "x": int64(math.MaxInt64)},
	}
	same := map[string]any{
		"a": map[string]any{"x": int64(math.MaxInt64), "y": "<&>"}, "b": []any{float64(1), "two", true, nil, 2.5},
	}
	require.Equal(t, h.Hash(content), h.Hash(same), "the order of keys and the type of an equal number must not matter")
	require.Equal(t, h.Hash(content), NewHasher([]byte("a token")).Hash(content), "another process must get the same")
	// Hashes are stored: changing how they are made would make every pair look changed on both sides.
	require.Equal(t, "ed37", h.Hash(content).String()[:4])
	require.Equal(t, "c5c9", h.KeyID()[:4])
}

func TestHashTellsContentsApart(t *testing.T) {
	h := NewHasher([]byte("a token"))
	seen := map[Hash]int{}
	for i, content := range []map[string]any{
		nil, {}, {"a": nil}, {"a": ""}, {"a": "1"}, {"a": int64(1)}, {"a": true}, {"a": []any{}}, {"a": map[string]any{}},
		{"a": []any{"1"}}, {"a": []any{"1", "1"}}, {"b": "1"}, {"a": "1", "b": "1"},
		{"a": int64(math.MaxInt64)}, {"a": int64(math.MaxInt64 - 1)},
	} {
		hash := h.Hash(content)
		require.False(t, hash.IsZero())
		require.NotContains(t, seen, hash, "contents %d and %d", seen[hash], i)
		seen[hash] = i
	}
}

func TestHashNeedsTheCredential(t *testing.T) {
	a, b := NewHasher([]byte("a token")), NewHasher([]byte("another token"))
	content := map[string]any{"data": map[string]any{"password": "hunter2"}}
	require.NotEqual(t, a.Hash(content), b.Hash(content))
	require.NotEqual(t, a.KeyID(), b.KeyID())
	require.Len(t, a.KeyID(), 16)
}
