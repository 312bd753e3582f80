package e2e

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/syncpass/syncpass/e2e/scenario"
	"github.com/syncpass/syncpass/pass"
	"github.com/syncpass/syncpass/record"
)

// startingPoint is what a pass finds that is then killed at each of its requests.
type startingPoint struct {
	name   string
	policy scenario.Object
	// concurrency is SYNCPASS_CONCURRENCY; empty: 1, so that the requests come in the same order each time.
	concurrency string
	// begin, if any, makes what is the same for all crash points; passes follow until both sides agree.
	begin func(t *testing.T, p *place)
	// lay makes what the pass is to find, out of what the crash point before left: both sides agree. The value is new.
	lay func(t *testing.T, p *place, value string)
	// edit, if any, is what people do between the crash and the next pass, with another value.
	edit func(t *testing.T, p *place, value string)
	// holds are the pairs that a pass without a crash holds too: Kind/name.
	holds map[string]bool
	// settled, if any, looks at the end in place of comparing it with the end without a crash.
	settled func(t *testing.T, p *place, point string, results []pass.Result, laid, edited string)
}

// crashPolicy carries the kinds of crossing.
func crashPolicy(conflictPolicy, direction string) scenario.Object {
	var resources []any
	for _, kind := range []string{"ConfigMap", "Secret", "Service"} {
		resources = append(resources, object{"apiVersion": "v1", "kind": kind, "direction": direction})
	}
	resources = append(resources, object{"apiVersion": "v1", "kind": "Pod", "direction": "toHost"})
	// More than one crash point writes, and little enough to be read and written ten thousand times.
	explain := object{"retain": int64(50)}
	return scenario.Object{"conflictPolicy": conflictPolicy, "resources": resources, "explain": explain}
}

var twoWay = crashPolicy("manual", "bidirectional")

var startingPoints = []startingPoint{
	{name: "first", policy: twoWay, lay: layTwelve},
	{name: "first-at-once", policy: twoWay, lay: layTwelve, concurrency: "16"},
	{name: "first-edited", policy: twoWay, begin: nil, lay: layTwelve, edit: editTenant},
	{name: "drift", policy: twoWay, begin: layFour, lay: driftBothWays},
	{name: "drift-source", policy: twoWay, begin: layFour, lay: driftBothWays, edit: driftBothWays},
	{name: "drift-target", policy: twoWay, begin: layFour, lay: driftBothWays, edit: driftTheOtherWay, settled: nothingIsLost},
	{name: "repair", policy: crashPolicy("manual", "toHost"), begin: layFour, lay: driftOnHost},
	{name: "deletes", policy: twoWay, lay: deleteFour},
	{name: "replaced", policy: twoWay, begin: layImmutable, lay: replaceImmutable},
	{name: "pod-recreated", policy: twoWay, begin: layPods, lay: recreatePods},
	{name: "conflict", policy: twoWay, begin: layConflict, lay: driftBesideConflict, holds: map[string]bool{"ConfigMap/held": true}},
	{name: "tenant-wins", policy: crashPolicy("tenant-wins", "bidirectional"), begin: layFour, lay: driftOnBoth},
}

// Objects of the starting points, with a value in each.
const (
	configMap = "{apiVersion: v1, kind: ConfigMap, metadata: {name: NAME}, data: {key: VALUE}}"
	secret    = "{apiVersion: v1, kind: Secret, metadata: {name: NAME}, stringData: {key: VALUE}}"
	service   = "{apiVersion: v1, kind: Service, metadata: {name: NAME, labels: {key: VALUE}}, spec: {selector: {app: NAME}, ports: [{port: 80}]}}"
	pod       = "{apiVersion: v1, kind: Pod, metadata: {name: NAME, labels: {key: VALUE}}, spec: {automountServiceAccountToken: false, containers: [{name: c, image: example.com/c}]}}"
	podTokens = "{apiVersion: v1, kind: Pod, metadata: {name: NAME, labels: {key: VALUE}}, spec: {containers: [{name: c, image: example.com/c}]}}"
)

// from are objects of one template, as one manifest.
func from(template, value string, names ...string) string {
	var all strings.Builder
	for _, name := range names {
		fmt.Fprintln(&all, "---")
		fmt.Fprintln(&all, strings.NewReplacer("NAME", name, "VALUE", value).Replace(template))
	}
	return all.String()
}

// make makes objects in the tenant.
func (p *place) make(t *testing.T, manifests ...string) {
	t.Helper()
	p.apply(t, record.Tenant, strings.Join(manifests, ""))
}

func layTwelve(t *testing.T, p *place, value string) {
	p.clear(t)
	p.make(t,
		from(configMap, value, "c1", "c2", "c3", "c4"), from(secret, value, "s1", "s2", "s3"),
		from(service, value, "v1", "v2", "v3"), from(pod, value, "p1"), from(podTokens, value, "p2"))
}

func layFour(t *testing.T, p *place) {
	p.make(t, from(configMap, "base", "down", "up"), from(secret, "base", "down", "up"), from(service, "base", "down", "up"))
}

// set changes the value of one object of one side, as somebody else than syncpass.
func (p *place) set(t *testing.T, side record.Side, resource schema.GroupVersionResource, name, value string) {
	t.Helper()
	if side == record.Host {
		name = p.mirror(name)
	}
	patch := object{"data": object{"key": value}}
	switch resource {
	case secrets:
		patch = object{"data": object{"key": base64.StdEncoding.EncodeToString([]byte(value))}}
	case services, pods:
		patch = object{"metadata": object{"labels": object{"key": value}}}
	}
	data, err := json.Marshal(patch)
	require.NoError(t, err)
	_, err = p.objects(side, resource).Patch(p.s.context(t), name, types.MergePatchType, data, metav1.PatchOptions{FieldManager: "somebody"})
	require.NoError(t, err)
}

// valueOf is what set has set.
func (p *place) valueOf(t *testing.T, side record.Side, resource schema.GroupVersionResource, name string) string {
	t.Helper()
	if side == record.Host {
		name = p.mirror(name)
	}
	found, err := p.objects(side, resource).Get(p.s.context(t), name, metav1.GetOptions{})
	require.NoError(t, err)
	if resource == secrets {
		decodeData(t, found)
	}
	path := []string{"data", "key"}
	if resource == services || resource == pods {
		path = []string{"metadata", "labels", "key"}
	}
	value, _, err := unstructured.NestedString(found.Object, path...)
	require.NoError(t, err)
	return value
}

var twoWayResources = []schema.GroupVersionResource{configMaps, secrets, services}

// driftBothWays changes one object of each kind in the tenant and another on the host.
func driftBothWays(t *testing.T, p *place, value string) {
	for _, resource := range twoWayResources {
		p.set(t, record.Tenant, resource, "down", value)
		p.set(t, record.Host, resource, "up", value)
	}
}

// driftTheOtherWay changes what driftBothWays makes a pass write over.
func driftTheOtherWay(t *testing.T, p *place, value string) {
	for _, resource := range twoWayResources {
		p.set(t, record.Host, resource, "down", value)
		p.set(t, record.Tenant, resource, "up", value)
	}
}

func driftOnHost(t *testing.T, p *place, value string) {
	for _, resource := range twoWayResources {
		p.set(t, record.Host, resource, "down", value)
		p.set(t, record.Tenant, resource, "up", value)
	}
}

func driftOnBoth(t *testing.T, p *place, value string) {
	for _, resource := range twoWayResources {
		p.set(t, record.Tenant, resource, "down", value)
		p.set(t, record.Host, resource, "down", value+"-on-host")
		p.set(t, record.Host, resource, "up", value+"-on-host")
	}
}

// editTenant changes in the tenant what layTwelve made.
func editTenant(t *testing.T, p *place, value string) {
	for resource, names := range map[schema.GroupVersionResource][]string{
		configMaps: {"c1", "c2", "c3", "c4"}, secrets: {"s1", "s2", "s3"}, services: {"v1", "v2", "v3"}, pods: {"p1", "p2"},
	} {
		for _, name := range names {
			p.set(t, record.Tenant, resource, name, value)
		}
	}
}

// nothingIsLost is what holds where somebody writes over an object that a pass may have written just before: their value
// stays, and either crosses, or both values are held.
func nothingIsLost(t *testing.T, p *place, point string, results []pass.Result, laid, edited string) {
	held := map[string]bool{}
	for _, d := range results[len(results)-1].Decisions {
		require.Contains(t, []record.Reason{record.Conflict, record.NoHistory}, d.Reason, "%s: %+v", point, d)
		held[d.Kind+"/"+d.TenantName] = true
	}
	for kind, resource := range map[string]schema.GroupVersionResource{"ConfigMap": configMaps, "Secret": secrets, "Service": services} {
		for name, target := range map[string]record.Side{"down": record.Host, "up": record.Tenant} {
			source := record.Tenant
			if target == record.Tenant {
				source = record.Host
			}
			what := fmt.Sprintf("%s: %s %s on the %s", point, kind, name, target)
			require.Equal(t, edited, p.valueOf(t, target, resource, name), what)
			if !held[kind+"/"+name] {
				require.Equal(t, edited, p.valueOf(t, source, resource, name), "%s, carried over", what)
				continue
			}
			require.Equal(t, laid, p.valueOf(t, source, resource, name), "%s, held", what)
			p.set(t, source, resource, name, edited) // settles it
		}
	}
	if len(held) > 0 {
		p.pass(t, 0, nil)
	}
}

func deleteFour(t *testing.T, p *place, value string) {
	p.make(t, from(configMap, value, "gone", "stays"), from(secret, value, "gone", "stays"), from(service, value, "gone"), from(pod, value, "gone"))
	p.pass(t, 0, nil)
	for _, resource := range crossing {
		require.NoError(t, p.objects(record.Tenant, resource).Delete(p.s.context(t), "gone", metav1.DeleteOptions{GracePeriodSeconds: new(int64)}))
	}
}

const (
	immutableConfigMap = "{apiVersion: v1, kind: ConfigMap, metadata: {name: NAME}, immutable: true, data: {key: VALUE}}"
	immutableSecret    = "{apiVersion: v1, kind: Secret, metadata: {name: NAME}, immutable: true, stringData: {key: VALUE}}"
	typedSecret        = "{apiVersion: v1, kind: Secret, metadata: {name: NAME}, type: example.com/VALUE, stringData: {key: VALUE}}"
)

func layImmutable(t *testing.T, p *place) { makeImmutable(t, p, "base") }

func makeImmutable(t *testing.T, p *place, value string) {
	p.make(t, from(immutableConfigMap, value, "fixed"), from(immutableSecret, value, "fixed"), from(typedSecret, value, "typed"))
}

// replaceImmutable deletes and makes again in the tenant what the API does not let change.
func replaceImmutable(t *testing.T, p *place, value string) {
	ctx := p.s.context(t)
	require.NoError(t, p.objects(record.Tenant, configMaps).Delete(ctx, "fixed", metav1.DeleteOptions{}))
	for _, name := range []string{"fixed", "typed"} {
		require.NoError(t, p.objects(record.Tenant, secrets).Delete(ctx, name, metav1.DeleteOptions{}))
	}
	makeImmutable(t, p, value)
}

func layPods(t *testing.T, p *place) { makePods(t, p, "base") }

func makePods(t *testing.T, p *place, value string) {
	p.make(t, from(pod, value, "plain"), from(podTokens, value, "tokens"))
}

func recreatePods(t *testing.T, p *place, value string) {
	for _, name := range []string{"plain", "tokens"} {
		require.NoError(t, p.objects(record.Tenant, pods).Delete(p.s.context(t), name, metav1.DeleteOptions{GracePeriodSeconds: new(int64)}))
	}
	makePods(t, p, value)
}

func layConflict(t *testing.T, p *place) {
	layFour(t, p)
	p.make(t, from(configMap, "base", "held"))
	p.pass(t, 0, nil)
	p.set(t, record.Tenant, configMaps, "held", "the tenant's")
	p.set(t, record.Host, configMaps, "held", "the host's")
}

// driftBesideConflict changes what is in no conflict, and one side of what is.
func driftBesideConflict(t *testing.T, p *place, value string) {
	driftBothWays(t, p, value)
	p.set(t, record.Host, configMaps, "held", value)
}
