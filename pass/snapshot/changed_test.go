package snapshot_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/syncpass/syncpass/pass/kinds"
	"github.com/syncpass/syncpass/pass/plan"
	"github.com/syncpass/syncpass/record"
)

var (
	mapping = kinds.Mapping{
		Tenant: "dev", HostNamespace: "team-dev",
		Owner: metav1.OwnerReference{APIVersion: "tenantplane.io/v1alpha1", Kind: "TenantCluster", Name: "dev", UID: "owner"},
	}
	hasher  = record.NewHasher([]byte("credential"))
	configs = kinds.For(schema.GroupKind{Kind: "ConfigMap"})
)

// known makes two sides that agree about ConfigMaps of these names, as history knows, on servers that give metadata.
func known(t *testing.T, names ...string) *sides {
	s := newSides(t)
	history := record.NewHistory(hasher.KeyID())
	var tenants, hosts []*unstructured.Unstructured
	for _, name := range names {
		tenant := &unstructured.Unstructured{}
		require.NoError(t, json.Unmarshal([]byte(`{"apiVersion":"v1","kind":"ConfigMap","metadata":{"namespace":"default","name":"`+name+`","uid":"t","resourceVersion":"5","managedFields":[{"manager":"kubectl","time":"2026-01-01T00:00:00Z"}]},"data":{"a":"1"}}`), tenant))
		host := mapping.Project(configs, tenant, nil, kinds.KeepNone)
		host.SetUID("h")
		host.SetResourceVersion("6")
		history.Set(record.Key{Kind: "ConfigMap", Namespace: "default", Name: name}, record.State{Baseline: plan.Agreement(hasher, configs, tenant, host)})
		tenants, hosts = append(tenants, tenant), append(hosts, host)
	}
	s.tenant.show(tenantConfigMaps, tenants...)
	s.host.show(hostConfigMaps, hosts...)
	s.request.Known = &plan.Input{History: history, Recording: true, Hasher: hasher, Mapping: mapping, Now: time.Unix(0, 0)}
	s.request.Mapping = mapping
	return s
}

// show serves objects: their metadata, each by itself, and all of them.
func (a *api) show(path string, objects ...*unstructured.Unstructured) {
	var items, whole []string
	for _, object := range objects {
		items = append(items, marshal(map[string]any{"metadata": object.Object["metadata"]}))
		whole = append(whole, marshal(object.Object))
		a.objects[fmt.Sprintf("/api/v1/namespaces/%s/configmaps/%s", object.GetNamespace(), object.GetName())] = always(marshal(object.Object))
	}
	a.metadata[path] = always(metadataList("", items...))
	a.lists[path] = always(configMapList("", whole...))
}

func metadataList(next string, items ...string) string {
	list := configMapList(next, items...)
	return `{"kind":"PartialObjectMetadataList","apiVersion":"meta.k8s.io/v1"` + list[len(`{"kind":"ConfigMapList","apiVersion":"v1"`):]
}

// touch gives an object another resourceVersion.
func touch(object *unstructured.Unstructured) *unstructured.Unstructured {
	object.SetResourceVersion("50")
	return object
}

func (a *api) shown(t *testing.T, path, name string) *unstructured.Unstructured {
	_, body := a.objects[fmt.Sprintf("/api/v1/namespaces/%s/configmaps/%s", path, name)](url.Values{})
	object := &unstructured.Unstructured{}
	require.NoError(t, json.Unmarshal([]byte(body), object))
	return object
}

func numbered(count int) []string {
	names := make([]string, count)
	for i := range names {
		names[i] = fmt.Sprintf("c%02d", i)
	}
	return names
}

func TestOfAQuietPairNothingButMetadataIsRead(t *testing.T) {
	s := known(t, "one", "two")
	kind := s.take(t).Kinds[0]
	require.Len(t, kind.Quiet, 2)
	require.Empty(t, kind.Tenant)
	require.Empty(t, kind.Host)
	require.Equal(t, "9", kind.TenantVersion)
	require.Equal(t, []string{"host metadata " + hostConfigMaps, "tenant metadata " + tenantConfigMaps}, s.log.of("configmaps"), "the host first")
}

func TestAFewThatChangedAreReadByThemselves(t *testing.T) {
	s := known(t, numbered(20)...)
	path := "/api/v1/namespaces/default/configmaps/c07"
	changed := touch(s.tenant.shown(t, "default", "c07"))
	var all []*unstructured.Unstructured
	for _, name := range numbered(20) {
		if name == "c07" {
			all = append(all, changed)
			continue
		}
		all = append(all, s.tenant.shown(t, "default", name))
	}
	s.tenant.show(tenantConfigMaps, all...)
	kind := s.take(t).Kinds[0]
	tenant, host := names(kind)
	require.Equal(t, []string{"default/c07"}, tenant)
	require.Equal(t, []string{"team-dev/c07-x-default-x-dev"}, host)
	require.Len(t, kind.Quiet, 19)
	require.Equal(t, []string{"tenant GET " + path}, s.log.of("tenant GET "+path))
	require.Empty(t, s.log.of("tenant GET "+tenantConfigMaps), "no list of everything")
}

func TestManyThatChangedAreReadAsAList(t *testing.T) {
	s := known(t, numbered(20)...)
	var all []*unstructured.Unstructured
	for i, name := range numbered(20) {
		object := s.tenant.shown(t, "default", name)
		if i < 5 {
			touch(object)
		}
		all = append(all, object)
	}
	s.tenant.show(tenantConfigMaps, all...)
	kind := s.take(t).Kinds[0]
	tenant, host := names(kind)
	require.Equal(t, []string{"default/c00", "default/c01", "default/c02", "default/c03", "default/c04"}, tenant)
	require.Len(t, host, 5)
	require.Len(t, kind.Quiet, 15)
	require.Len(t, s.log.of("tenant GET "+tenantConfigMaps), 1)
	require.Empty(t, s.log.of("/namespaces/default/configmaps/"))
}

// One that is gone between the list and the reading is gone.
func TestAnObjectThatVanishesIsLeftOut(t *testing.T) {
	s := known(t, numbered(20)...)
	s.tenant.show(tenantConfigMaps, touch(s.tenant.shown(t, "default", "c00")))
	s.tenant.objects["/api/v1/namespaces/default/configmaps/c00"] = refuses(http.StatusNotFound, metav1.StatusReasonNotFound)
	kind := s.take(t).Kinds[0]
	tenant, host := names(kind)
	require.Empty(t, tenant)
	require.Len(t, host, 20, "all the others' mirrors have lost theirs too")
	require.Empty(t, kind.Unavailable)
}

func TestAnObjectThatCannotBeReadMakesItsKindUnavailable(t *testing.T) {
	s := known(t, numbered(20)...)
	s.tenant.show(tenantConfigMaps, touch(s.tenant.shown(t, "default", "c00")))
	s.tenant.objects["/api/v1/namespaces/default/configmaps/c00"] = refuses(http.StatusForbidden, metav1.StatusReasonForbidden)
	kind := s.take(t).Kinds[0]
	require.Contains(t, kind.Unavailable, "listing it on the tenant failed")
	require.Contains(t, kind.Error, "default/c00")
	require.Empty(t, kind.Quiet)
	require.Empty(t, kind.Host)
}

// Where the host's list has to begin anew it shows a later state, and the tenant's must not be older than it.
func TestAHostListThatBeginsAnewTakesTheTenantsWithIt(t *testing.T) {
	s := known(t, "one")
	first, asked := s.host.metadata[hostConfigMaps], 0
	s.host.metadata[hostConfigMaps] = func(query url.Values) (int, string) {
		if query.Get("continue") != "" {
			return refuses(http.StatusGone, metav1.StatusReasonExpired)(query)
		}
		if asked++; asked == 1 {
			return http.StatusOK, metadataList("1")
		}
		return first(query)
	}
	require.Len(t, s.take(t).Kinds[0].Quiet, 1)
	lines := s.log.of("metadata")
	require.Equal(t, "tenant metadata "+tenantConfigMaps, lines[len(lines)-1])
	require.Len(t, s.log.of("host metadata "+hostConfigMaps), 3)
}

func TestWhatIsNoMetadataListIsNoEmptyOne(t *testing.T) {
	for name, body := range map[string]string{
		"twice":    metadataList("", item("default", "a"), item("default", "a")),
		"for ever": metadataList("again", item("default", "a")),
		"no name":  metadataList("", item("default", "")),
	} {
		t.Run(name, func(t *testing.T) {
			s := known(t, "one")
			s.tenant.metadata[tenantConfigMaps] = always(body)
			kind := s.take(t).Kinds[0]
			require.Contains(t, kind.Unavailable, "listing it on the tenant failed")
			require.Empty(t, kind.Quiet)
		})
	}
}

func TestAServerWithoutMetadataListsIsReadAsAWhole(t *testing.T) {
	for name, body := range map[string]string{
		"no resourceVersion":    `{"kind":"PartialObjectMetadataList","apiVersion":"meta.k8s.io/v1","metadata":{},"items":[]}`,
		"no items":              `{"kind":"PartialObjectMetadataList","apiVersion":"meta.k8s.io/v1","metadata":{"resourceVersion":"9"},"items":null}`,
		"cut off":               `{"kind":"PartialObjectMetadataList","apiVersion":"meta.k8s.io/v1","metadata":{"resourceVersion":"9"},"it`,
		"labels that are none":  metadataList("", `{"metadata":{"namespace":"default","name":"one","uid":"t","resourceVersion":"5","labels":{"a":7}}}`),
		"another kind of list":  `{"kind":"ConfigMapList","apiVersion":"v1","metadata":{"resourceVersion":"9"},"items":[]}`,
		"an item without a uid": metadataList("", `{"metadata":{"namespace":"default","name":"one","resourceVersion":"5"}}`),
	} {
		t.Run(name, func(t *testing.T) {
			s := known(t, "one")
			s.tenant.metadata[tenantConfigMaps] = always(body)
			kind := s.take(t).Kinds[0]
			tenant, _ := names(kind)
			require.Equal(t, []string{"default/one"}, tenant)
			require.Nil(t, kind.Quiet)
		})
	}
}

// Nothing that is kept apart is taken for a tenant object, or for a mirror.
func TestWhatIsNoPairIsKeptApart(t *testing.T) {
	s := known(t, "one")
	foreign := s.host.shown(t, "team-dev", "one-x-default-x-dev").DeepCopy()
	foreign.SetName("somebody-elses")
	foreign.SetLabels(nil)
	system := s.tenant.shown(t, "default", "one").DeepCopy()
	system.SetNamespace("kube-system")
	s.host.show(hostConfigMaps, s.host.shown(t, "team-dev", "one-x-default-x-dev"), foreign)
	s.tenant.show(tenantConfigMaps, s.tenant.shown(t, "default", "one"), system)
	kind := s.take(t).Kinds[0]
	require.Contains(t, kind.Quiet, types.NamespacedName{Namespace: "default", Name: "one"})
	require.Len(t, kind.Others, 1)
	require.Len(t, kind.Apart, 1)
	require.Empty(t, kind.Tenant)
}
