package scenario

import (
	"context"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic/fake"
	k8stesting "k8s.io/client-go/testing"
)

func unstructuredOf(object map[string]any) *unstructured.Unstructured {
	return &unstructured.Unstructured{Object: object}
}

// fixedMapper knows ConfigMaps and nothing else.
type fixedMapper struct{ *meta.DefaultRESTMapper }

func (fixedMapper) Reset() {}

// fakeRun is a run whose host holds these objects; its tenant is empty.
func fakeRun(t *testing.T, objects ...string) (*run, *fake.FakeDynamicClient) {
	t.Helper()
	mapper := meta.NewDefaultRESTMapper(nil)
	mapper.Add(schema.GroupVersionKind{Version: "v1", Kind: "ConfigMap"}, meta.RESTScopeNamespace)
	mapper.Add(schema.GroupVersionKind{Version: "v1", Kind: "Namespace"}, meta.RESTScopeRoot)
	kinds := map[schema.GroupVersionResource]string{
		events:                                  "EventList",
		{Version: "v1", Resource: "configmaps"}: "ConfigMapList",
	}
	var there []runtime.Object
	for _, text := range objects {
		there = append(there, unstructuredOf(object(t, text)))
	}
	client := fake.NewSimpleDynamicClientWithCustomListKinds(runtime.NewScheme(), kinds, there...)
	empty := fake.NewSimpleDynamicClientWithCustomListKinds(runtime.NewScheme(), kinds)
	runner := &Runner{
		host:   &side{name: sideHost, objects: client, mapper: fixedMapper{mapper}},
		tenant: &side{name: sideTenant, objects: empty, mapper: fixedMapper{mapper}},
	}
	return &run{runner: runner, file: &File{Name: "x"}, saved: map[string]string{}, seen: map[seenKey]version{}}, client
}

func expectation(t *testing.T, step string) Expect {
	t.Helper()
	file, err := Parse([]byte(minimal("expect: " + step)))
	require.NoError(t, err)
	return *file.Steps[0].Expect
}

const (
	app   = "{apiVersion: v1, kind: ConfigMap, metadata: {namespace: team-dev, name: app, uid: u, resourceVersion: '7', labels: {a/b: c}}, data: {x: '1', y: '2'}}"
	toApp = "{apiVersion: v1, kind: ConfigMap, metadata: {namespace: team-dev, name: app}}"
	other = "{apiVersion: v1, kind: ConfigMap, metadata: {namespace: team-dev, name: other}}"
	event = "{apiVersion: v1, kind: Event, metadata: {namespace: team-dev, name: e1}, reason: NoMirror, type: Normal, involvedObject: {kind: TenantCluster, namespace: team-dev, name: dev}}"
	alien = "{apiVersion: v1, kind: Event, metadata: {namespace: team-dev, name: e2}, reason: NoMirror, type: Normal, involvedObject: {kind: Pod, namespace: team-dev, name: dev}}"
)

func TestExpect(t *testing.T) {
	for _, test := range []struct{ name, step, fault string }{
		{"has what is there", "{host: [{has: {apiVersion: v1, kind: ConfigMap, metadata: {namespace: team-dev, name: app}, data: {x: '1'}}}]}", ""},
		{"has what differs", "{host: [{has: {apiVersion: v1, kind: ConfigMap, metadata: {namespace: team-dev, name: app}, data: {x: '2'}}}]}", `data.x: want "2", got "1"`},
		{"has what does not exist", "{host: [{has: " + other + "}]}", "host ConfigMap team-dev/other:\n  does not exist"},
		{"has on the other side", "{tenant: [{has: " + toApp + "}]}", "tenant ConfigMap team-dev/app:\n  does not exist"},
		{"has of a kind that is not served", "{host: [{has: {apiVersion: a/v1, kind: Widget, metadata: {name: w}}}]}", "does not exist"},
		{"absent is what does not exist", "{host: [{absent: " + other + "}], tenant: [{absent: " + toApp + "}]}", ""},
		{"absent is not what exists", "{host: [{absent: " + toApp + "}]}", "must be absent"},
		{"lacks what is not there", "{host: [{lacks: " + toApp + ", paths: [data.z, metadata.finalizers, 'metadata.labels[\"a/c\"]']}]}", ""},
		{"lacks what is there", "{host: [{lacks: " + toApp + ", paths: [data.z, 'metadata.labels[\"a/b\"]']}]}", `metadata.labels["a/b"]: want none, got "c"`},
		{"lacks of what does not exist", "{host: [{lacks: " + other + ", paths: [data.z]}]}", "does not exist"},
		{"count of entries", "{host: [{count: " + toApp + ", path: data, is: 2}]}", ""},
		{"count of another number", "{host: [{count: " + toApp + ", path: data, is: 3}]}", "data: want 3 entries, got 2"},
		{"count of nothing", "{host: [{count: " + toApp + ", path: binaryData, is: 0}]}", ""},
		{"Events on the TenantCluster alone", "{host: [{events: {reason: NoMirror, type: Normal}, is: 1}]}", ""},
		{"Events of another number", "{host: [{events: {reason: Conflict}, is: 1}]}", `want 1 like {"reason":"Conflict"}, got 0`},
	} {
		t.Run(test.name, func(t *testing.T) {
			r, _ := fakeRun(t, app, event, alien)
			err := r.expect(t.Context(), expectation(t, test.step))
			if test.fault == "" {
				require.NoError(t, err)
			} else {
				require.ErrorContains(t, err, test.fault)
			}
		})
	}
}

func TestExpectTellsAllThatIsWrongAndShowsWhatIsThere(t *testing.T) {
	r, _ := fakeRun(t, app)
	err := r.expect(t.Context(), expectation(t, "{host: [{absent: "+toApp+"}, {has: "+other+"}]}"))
	require.ErrorContains(t, err, "must be absent")
	require.ErrorContains(t, err, "does not exist")
	require.ErrorContains(t, err, "      x: \"1\"")
}

func TestUnchangedIsAboutWhatWasSeenBefore(t *testing.T) {
	touch := func(t *testing.T, client *fake.FakeDynamicClient, resourceVersion, uid string) {
		t.Helper()
		changed := unstructuredOf(object(t, app))
		changed.SetResourceVersion(resourceVersion)
		changed.SetUID("u")
		if uid != "" {
			changed.SetUID("other")
		}
		require.NoError(t, client.Tracker().Update(schema.GroupVersionResource{Version: "v1", Resource: "configmaps"}, changed, "team-dev"))
	}
	unchanged := "{host: [{unchanged: " + toApp + "}]}"
	ref := Ref{APIVersion: "v1", Kind: "ConfigMap", Metadata: RefMeta{Namespace: "team-dev", Name: "app"}}

	t.Run("it was never seen", func(t *testing.T) {
		r, _ := fakeRun(t, app)
		require.ErrorContains(t, r.expect(t.Context(), expectation(t, unchanged)), "unchanged since when?")
	})
	t.Run("it is as it was marked", func(t *testing.T) {
		r, _ := fakeRun(t, app)
		require.NoError(t, r.mark(t.Context(), r.runner.host, ref))
		require.NoError(t, r.expect(t.Context(), expectation(t, unchanged)))
	})
	t.Run("it was written to", func(t *testing.T) {
		r, client := fakeRun(t, app)
		require.NoError(t, r.expect(t.Context(), expectation(t, "{host: [{has: "+toApp+"}]}")))
		touch(t, client, "8", "")
		require.ErrorContains(t, r.expect(t.Context(), expectation(t, unchanged)), "resourceVersion 7 is now 8")
	})
	t.Run("it is another object", func(t *testing.T) {
		r, client := fakeRun(t, app)
		require.NoError(t, r.mark(t.Context(), r.runner.host, ref))
		touch(t, client, "7", "other")
		require.ErrorContains(t, r.expect(t.Context(), expectation(t, unchanged)), "UID u is now other")
	})
	t.Run("the same step has seen it changed", func(t *testing.T) {
		r, client := fakeRun(t, app)
		require.NoError(t, r.mark(t.Context(), r.runner.host, ref))
		touch(t, client, "8", "")
		require.ErrorContains(t, r.expect(t.Context(), expectation(t, "{host: [{has: "+toApp+"}, {unchanged: "+toApp+"}]}")), "has changed")
	})
	t.Run("there is none to mark", func(t *testing.T) {
		r, _ := fakeRun(t)
		require.ErrorContains(t, r.mark(t.Context(), r.runner.host, ref), "none to mark")
	})
}

func TestExpectWithATimeLooksUntilItHolds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r, client := fakeRun(t, app)
		var looks atomic.Int32
		client.PrependReactor("get", "configmaps", func(k8stesting.Action) (bool, runtime.Object, error) {
			found := unstructuredOf(object(t, app))
			if looks.Add(1) < 4 {
				found.Object["data"] = map[string]any{}
			}
			return true, found, nil
		})
		began := time.Now()
		step := "{host: [{has: {apiVersion: v1, kind: ConfigMap, metadata: {namespace: team-dev, name: app}, data: {x: '1'}}}], within: 5s}"
		require.NoError(t, r.expect(t.Context(), expectation(t, step)))
		assert.Equal(t, 3*lookEvery, time.Since(began))
	})
}

func TestExpectWithATimeGivesUpWhenItIsOver(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r, _ := fakeRun(t)
		began := time.Now()
		err := r.expect(t.Context(), expectation(t, "{host: [{has: "+toApp+"}], within: 5s}"))
		require.ErrorContains(t, err, "does not exist")
		require.ErrorContains(t, err, "looked at for 5s")
		assert.Equal(t, 5*time.Second, time.Since(began))
	})
}

func TestExpectEndsWithTheTest(t *testing.T) {
	r, _ := fakeRun(t)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	err := r.expect(ctx, Expect{Host: expectation(t, "{host: [{has: "+toApp+"}]}").Host, Within: &metav1.Duration{Duration: time.Hour}})
	require.ErrorContains(t, err, "context canceled")
}

func TestSaveReadsAValueForLaterSteps(t *testing.T) {
	r, _ := fakeRun(t, app)
	ref := Ref{APIVersion: "v1", Kind: "ConfigMap", Metadata: RefMeta{Namespace: "team-dev", Name: "app"}}
	require.NoError(t, r.save(t.Context(), map[string]Saved{"x": {Side: sideHost, Ref: ref, Path: "data.x"}}))
	assert.Equal(t, "1", r.values()["x"])
	require.ErrorContains(t, r.save(t.Context(), map[string]Saved{"x": {Side: sideHost, Ref: ref, Path: "data.z"}}), "has no data.z")
	require.ErrorContains(t, r.save(t.Context(), map[string]Saved{"x": {Side: sideTenant, Ref: ref, Path: "data.x"}}), "there is no ConfigMap team-dev/app on the tenant")
}
