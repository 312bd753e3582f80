package modeltest

import (
	"flag"
	"fmt"
	"strconv"
	"sync"
	"testing"

	"pgregory.net/rapid"
)

// Check has so many random histories lived through (a tenth of them with -short), and fails the test on the first that
// breaks a rule, with its shortest form and trace. It returns what was counted in all of them.
func Check(t *testing.T, histories int, live func(t *testing.T, history []Command) *Model) (lived int, count Count) {
	t.Helper()
	const parallel = 2
	checks := histories / parallel
	if testing.Short() {
		checks /= 10
	}
	// rapid has no other way to say how many; no other test runs meanwhile.
	before := flag.Lookup("rapid.checks").Value.String()
	set := func(checks string) {
		if err := flag.Set("rapid.checks", checks); err != nil {
			t.Fatal(err)
		}
	}
	set(strconv.Itoa(checks))
	defer set(before)

	var lock sync.Mutex
	t.Run("histories", func(t *testing.T) {
		for i := range parallel {
			t.Run(fmt.Sprint(i), func(t *testing.T) {
				t.Parallel()
				rapid.Check(t, func(r *rapid.T) {
					m := live(t, Histories().Draw(r, "history"))
					if len(m.Broken) > 0 {
						r.Fatalf("%v\n%s", m.Broken[0], m.Trace())
					}
					lock.Lock()
					defer lock.Unlock()
					count.Add(m.Count)
					lived++
				})
			})
		}
	})
	return lived, count
}
