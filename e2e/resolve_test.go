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

// TestATenantObjectMadeByAWordIsKnownByItsMaker: a word makes a tenant object again, and the pass never hears what became of
// that. Whether the object that stands there then is ours, managedFields tell: what ours says may follow the host, what
// somebody else's says may not be written over, even though it says the same.
func TestATenantObjectMadeByAWordIsKnownByItsMaker(t *testing.T) {
	s := usePlaces(t)
	configMap := corev1.SchemeGroupVersion.WithResource("configmaps")
	manifest := func(name, annotations, value string) string {
		return "{apiVersion: v1, kind: ConfigMap, metadata: {name: " + name + ", annotations: {" + annotations + "}}, data: {a: " + value + "}}"
	}
	for name, test := range map[string]struct {
		lost   proxy.Moment
		others bool // somebody else makes the object
		reason record.Reason
		tenant string
	}{
		"resolve-lost-answer":  {proxy.After, false, record.HostChanged, "later"},
		"resolve-lost-request": {proxy.Before, true, record.Conflict, "of-the-host"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := newPlace(t, s, name, scenario.DefaultPolicy())
			p.apply(t, record.Tenant, manifest("c", "", "first"))
			p.pass(t, 0, nil)
			require.NoError(t, p.objects(record.Tenant, configMap).Delete(t.Context(), "c", metav1.DeleteOptions{}))
			p.apply(t, record.Host, manifest(p.mirror("c"), "tenantplane.io/resolve: host", "of-the-host"))
			p.tenantProxy.SetHook(func(m proxy.Moment, r proxy.Request) http.Handler {
				if m == test.lost && r.Method == http.MethodPost && strings.HasSuffix(r.Path, "/configmaps") {
					return proxy.Drop
				}
				return nil
			})
			p.pass(t, 3, nil)
			p.tenantProxy.SetHook(nil)

			if test.others {
				p.apply(t, record.Tenant, manifest("c", "", "of-the-host"))
			}
			p.apply(t, record.Host, manifest(p.mirror("c"), "", "later"))
			result, _ := p.pass(t, 0, nil)
			require.Len(t, result.Decisions, 1)
			require.Equal(t, test.reason, result.Decisions[0].Reason, result.Decisions[0].Message)
			object, err := p.objects(record.Tenant, configMap).Get(t.Context(), "c", metav1.GetOptions{})
			require.NoError(t, err)
			require.Equal(t, map[string]any{"a": test.tenant}, object.Object["data"])
		})
	}
}

func takesLease(_ *place, r proxy.Request) bool { return strings.Contains(r.Path, "/leases") }

func writesMirror(p *place, r proxy.Request) bool {
	return r.Method == http.MethodPut && strings.HasSuffix(r.Path, "/configmaps/"+p.mirror("c"))
}
