package e2e

import (
	"net/http"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/syncpass/syncpass/e2e/proxy"
	"github.com/syncpass/syncpass/e2e/scenario"
	"github.com/syncpass/syncpass/record"
)

// TestResolveWritesNothingOfWhatChangedMeanwhile: an edit that comes between what resolve shows and what it writes is
// never written over, on whichever side, and however late it comes.
func TestResolveWritesNothingOfWhatChangedMeanwhile(t *testing.T) {
	s := usePlaces(t)
	for name, test := range map[string]struct {
		// edited is the side that somebody edits, moment the request that the edit comes before.
		edited record.Side
		moment func(*place, proxy.Request) bool
		says   string
	}{
		"resolve-early-tenant": {record.Tenant, takesLease, "somebody changed it since it was shown, so nothing was written: look again"},
		"resolve-early-host":   {record.Host, takesLease, "somebody changed it since it was shown, so nothing was written: look again"},
		"resolve-late-host":    {record.Host, writesMirror, "somebody else wrote the host object meanwhile"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := newPlace(t, s, name, scenario.DefaultPolicy())
			p.apply(t, record.Tenant, "{apiVersion: v1, kind: ConfigMap, metadata: {name: c}, data: {a: first}}")
			p.pass(t, 0, nil)
			p.apply(t, record.Tenant, "{apiVersion: v1, kind: ConfigMap, metadata: {name: c}, data: {a: of-the-tenant}}")
			p.apply(t, record.Host, "{apiVersion: v1, kind: ConfigMap, metadata: {name: "+p.mirror("c")+"}, data: {a: of-the-host}}")
			held, _ := p.pass(t, 0, nil)
			require.Equal(t, record.Conflict, held.Decisions[0].Reason)

			var once sync.Once
			p.hostProxy.SetHook(func(m proxy.Moment, r proxy.Request) http.Handler {
				if m == proxy.Before && test.moment(p, r) {
					once.Do(func() {
						edited := "c"
						if test.edited == record.Host {
							edited = p.mirror("c")
						}
						p.apply(t, test.edited, "{apiVersion: v1, kind: ConfigMap, metadata: {name: "+edited+"}, data: {a: later}}")
					})
				}
				return nil
			})
			result := p.run(t, nil, "resolve", "configmap", p.name+"/c", "--keep", "tenant", "--yes")
			p.hostProxy.SetHook(nil)
			require.Equal(t, 3, result.Exit, "stdout:\n%s\nstderr:\n%s", result.Stdout, result.Stderr)
			require.Contains(t, string(result.Stdout), test.says)
			require.Contains(t, string(result.Stderr), "1 of 1 conflicts were not settled")
			for side, name := range map[record.Side]string{record.Tenant: "c", record.Host: p.mirror("c")} {
				want := map[bool]string{true: "later", false: "of-the-" + string(side)}[side == test.edited]
				object, err := p.objects(side, corev1.SchemeGroupVersion.WithResource("configmaps")).Get(t.Context(), name, metav1.GetOptions{})
				require.NoError(t, err)
				require.Equal(t, map[string]any{"a": want}, object.Object["data"], side)
			}
			held, _ = p.pass(t, 0, nil)
			require.Equal(t, record.Conflict, held.Decisions[0].Reason, "it is still open")
		})
	}
}

func takesLease(_ *place, r proxy.Request) bool { return strings.Contains(r.Path, "/leases") }

func writesMirror(p *place, r proxy.Request) bool {
	return r.Method == http.MethodPut && strings.HasSuffix(r.Path, "/configmaps/"+p.mirror("c"))
}
