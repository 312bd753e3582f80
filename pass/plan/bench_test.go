package plan_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/syncpass/syncpass/pass/plan"
)

// BenchmarkCompute plans over ConfigMaps of 1 KiB of which all content was read: the most that a plan is ever given.
func BenchmarkCompute(b *testing.B) {
	for _, pairs := range []int{1000, 10000} {
		for _, c := range []struct {
			name string
			see  func(w *world, tenant *unstructured.Unstructured, i int)
		}{
			{"first", func(w *world, tenant *unstructured.Unstructured, _ int) { w.see(tenant, nil) }},
			{"unchanged", func(w *world, tenant *unstructured.Unstructured, _ int) { seePair(w, tenant) }},
			{"changed-1%", func(w *world, tenant *unstructured.Unstructured, i int) {
				seePair(w, tenant)
				if i%100 == 0 {
					w.tenants[i] = w.edited(tenant, data("a", "2"))
				}
			}},
			// Another resourceVersion, the same content.
			{"rewritten", func(w *world, tenant *unstructured.Unstructured, i int) {
				seePair(w, tenant)
				w.tenants[i] = w.edited(tenant)
			}},
		} {
			w := manual()
			for i := range pairs {
				c.see(w, w.object(fmt.Sprintf("c%06d", i), data("payload", strings.Repeat("x", 1<<10))), i)
			}
			input := w.input()
			b.Run(fmt.Sprintf("%s/%d", c.name, pairs), func(b *testing.B) {
				b.ReportAllocs()
				for b.Loop() {
					planned := plan.Compute(input)
					require.Equal(b, pairs, len(planned.Steps)+planned.Unchanged)
				}
			})
		}
	}
}

// seePair shows a tenant object and its mirror, as they were when they last agreed.
func seePair(w *world, tenant *unstructured.Unstructured) {
	mirror := w.mirror(tenant)
	w.see(tenant, mirror)
	w.agreed(tenant, mirror)
}
