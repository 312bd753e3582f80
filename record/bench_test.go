package record

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

func BenchmarkEncode(b *testing.B) {
	for _, pairs := range []int{1000, 10000, 100000} {
		b.Run(fmt.Sprintf("new/%d", pairs), func(b *testing.B) { // as after a first pass
			h := filled(pairs)
			b.ReportAllocs()
			for b.Loop() {
				h.pages = make([]*Page, 1)
				_, err := h.Encode()
				require.NoError(b, err)
			}
		})
		b.Run(fmt.Sprintf("one-changed/%d", pairs), func(b *testing.B) {
			h := filled(pairs)
			_, err := h.Encode()
			require.NoError(b, err)
			b.ReportAllocs()
			keys := h.Keys("", "ConfigMap")
			for i := 0; b.Loop(); i++ {
				h.Set(keys[i%pairs], State{Baseline: baseline(pairs + i)})
				_, err := h.Encode()
				require.NoError(b, err)
			}
		})
	}
}

func BenchmarkDecode(b *testing.B) {
	for _, pairs := range []int{1000, 10000, 100000} {
		pages, err := filled(pairs).Encode()
		require.NoError(b, err)
		bytes := 0
		for _, page := range pages {
			bytes += len(page.Data)
		}
		b.Run(fmt.Sprint(pairs), func(b *testing.B) {
			b.ReportAllocs()
			b.SetBytes(int64(bytes))
			for b.Loop() {
				h, err := Decode(pages)
				require.NoError(b, err)
				require.Equal(b, pairs, h.Len())
			}
		})
	}
}

func BenchmarkHash(b *testing.B) {
	hasher := NewHasher([]byte("credential of the tenant"))
	for _, size := range []int{1 << 10, 64 << 10} {
		content := map[string]any{
			"data": map[string]any{"payload": strings.Repeat("x", size)}, "labels": map[string]any{"app": "web"}, "annotations": map[string]any{},
		}
		b.Run(fmt.Sprintf("%dKiB", size>>10), func(b *testing.B) {
			b.ReportAllocs()
			b.SetBytes(int64(size))
			for b.Loop() {
				require.False(b, hasher.Hash(content).IsZero())
			}
		})
	}
}
