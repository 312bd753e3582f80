package kinds

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	utiljson "k8s.io/apimachinery/pkg/util/json"
	"pgregory.net/rapid"

	"github.com/syncpass/syncpass/record"
)

// drawJSON draws any JSON value as an API server's answer decodes.
func drawJSON(t *rapid.T, depth int) any {
	scalars := []*rapid.Generator[any]{
		rapid.Just[any](nil), rapid.Bool().AsAny(), rapid.Int64().AsAny(), rapid.Just[any](0.5), rapid.StringN(0, 6, 12).AsAny(),
	}
	kind := rapid.IntRange(0, len(scalars)+1).Draw(t, "kind")
	switch {
	case kind < len(scalars):
		return scalars[kind].Draw(t, "value")
	case depth == 0:
		return "leaf"
	case kind == len(scalars):
		list := []any{}
		for range rapid.IntRange(0, 3).Draw(t, "length") {
			list = append(list, drawJSON(t, depth-1))
		}
		return list
	}
	return drawMap(t, depth-1)
}

func drawMap(t *rapid.T, depth int) Content {
	fields := rapid.OneOf(rapid.SampledFrom([]string{"spec", "data", "type", "immutable", "selector", "ports", "clusterIP", "name", "port", "nodePort"}), rapid.StringN(0, 6, 12))
	content := Content{}
	for range rapid.IntRange(0, 4).Draw(t, "fields") {
		content[fields.Draw(t, "field")] = drawJSON(t, depth)
	}
	return content
}

// drawObject draws a tenant object of a kind with any content, and labels and annotations of any sort.
func drawObject(t *rapid.T, apiVersion, kind string) *unstructured.Unstructured {
	content := drawMap(t, 3)
	for _, reserved := range []string{"apiVersion", "kind", "metadata", "status"} {
		delete(content, reserved)
	}
	o := object(apiVersion, kind, content)
	for range rapid.IntRange(0, 4).Draw(t, "labels") {
		setLabel(o, drawLabelKey(t, "label"), "v"+rapid.StringN(0, 3, 6).Draw(t, "value"))
	}
	for range rapid.IntRange(0, 4).Draw(t, "annotations") {
		setAnnotation(o, drawLabelKey(t, "annotation"), "v"+rapid.StringN(0, 3, 6).Draw(t, "value"))
	}
	return o
}

var projected = []schema.GroupVersionKind{
	{Version: "v1", Kind: "ConfigMap"}, {Version: "v1", Kind: "Secret"}, {Version: "v1", Kind: "Service"}, {Group: "example.com", Version: "v1", Kind: "Widget"},
}

// What crosses to the host and is read back unchanged is what the tenant has: for any object of any kind.
func TestReflectingAProjectionGivesTheTenantsContent(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		gvk := rapid.SampledFrom(projected).Draw(t, "kind")
		kind := For(gvk.GroupKind())
		tenant := drawObject(t, gvk.GroupVersion().String(), gvk.Kind)
		mirror := stored(mapping.Project(kind, tenant, nil, KeepNone))
		require.True(t, Equal(ContentOf(kind, record.Tenant, tenant), ContentOf(kind, record.Tenant, mapping.Reflect(kind, mirror, tenant))))
		for _, keep := range []Keep{KeepNone, KeepForeign} {
			again := mapping.Project(kind, tenant, mirror, keep)
			require.Empty(t, Difference(ContentOf(kind, record.Host, mirror), ContentOf(kind, record.Host, again)), "a second projection changes nothing")
		}
		id, owned := mapping.Identify(kind, gvk.Kind, mirror)
		require.Equal(t, Ours, owned, "whatever labels the tenant writes, the mirror is recognised")
		require.Equal(t, "app", id.Name)
	})
}

// What the host changed and the tenant took over is an agreement: the next projection has nothing to add.
func TestProjectingAReflectionGivesTheHostsContent(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		gvk := rapid.SampledFrom(projected).Draw(t, "kind")
		kind := For(gvk.GroupKind())
		tenant := drawObject(t, gvk.GroupVersion().String(), gvk.Kind)
		host := stored(mapping.Project(kind, drawObject(t, gvk.GroupVersion().String(), gvk.Kind), nil, KeepNone))
		for range rapid.IntRange(0, 4).Draw(t, "host labels") {
			key := drawLabelKey(t, "host label")
			if key != LabelManagedBy && !strings.HasPrefix(key, domain+"/") {
				setLabel(host, key, "of the host")
			}
		}
		pulled := mapping.Reflect(kind, host, tenant)
		want := mapping.Project(kind, pulled, host, KeepNone)
		require.Empty(t, Difference(ContentOf(kind, record.Host, host), ContentOf(kind, record.Host, want)))
	})
}

// FuzzProjection: no object that can be decoded makes a projection or a reflection panic or change what it was given.
func FuzzProjection(f *testing.F) {
	for _, sides := range servicesOfBothSides {
		tenant, err := json.Marshal(serviceOf(sides.tenant).Object)
		require.NoError(f, err)
		host, err := json.Marshal(stored(mapping.Project(services, serviceOf(sides.host), nil, KeepNone)).Object)
		require.NoError(f, err)
		f.Add(tenant, host)
	}
	// Shapes that Pods, Ingresses, NetworkPolicies and the like are taken apart by, none of them as it should be.
	f.Add([]byte(`{"spec":{"containers":[{"env":[{"valueFrom":{"secretKeyRef":"x"}},null],"envFrom":[{"configMapRef":7}],"volumeMounts":"x"},null],`+
		`"volumes":[{"secret":"x","projected":{"sources":[null,{"serviceAccountToken":7}]}}],"affinity":{"podAffinity":{"requiredDuringSchedulingIgnoredDuringExecution":[7]}},`+
		`"dnsConfig":"x","imagePullSecrets":[7],"rules":[{"http":{"paths":[7]}}],"tls":[7],"podSelector":[],"ingress":[{"from":[null,"x"]}],"egress":"x",`+
		`"selector":{"matchExpressions":[7]},"scaleTargetRef":7,"dataSource":7},"endpoints":[7,{"targetRef":7}],"secrets":[7],"imagePullSecrets":"x"}`),
		[]byte(`{"spec":{"containers":"x","volumes":[7],"podSelector":"x"},"status":{"containerStatuses":[7],"conditions":"x","loadBalancer":7}}`))
	f.Add([]byte(`{"metadata":"x"}`), []byte(`{"metadata":{"labels":{"k":7},"annotations":[],"ownerReferences":"x","managedFields":7}}`))
	f.Add([]byte(`{"spec":{"ports":[{"name":{}}]},"type":{}}`), []byte(`{"spec":{"ports":[{"name":{},"nodePort":1}]},"type":{},"status":[]}`))
	f.Add([]byte(`{}`), []byte(`{"metadata":{"managedFields":[{"manager":"syncpass","fieldsV1":{"f:metadata":{"f:labels":{"f:a":{}}}}}],"labels":{"a":"b"}}}`))
	f.Fuzz(func(t *testing.T, tenantJSON, hostJSON []byte) {
		var sides [2]*unstructured.Unstructured
		for i, raw := range [][]byte{tenantJSON, hostJSON} {
			content := Content{}
			if utiljson.Unmarshal(raw, &content) != nil || content == nil {
				return
			}
			sides[i] = &unstructured.Unstructured{Object: content}
		}
		before := [2]*unstructured.Unstructured{sides[0].DeepCopy(), sides[1].DeepCopy()}
		tenant, host := sides[0], sides[1]
		for _, kind := range allKinds {
			mapping.Project(kind, tenant, nil, KeepNone)
			mirror := mapping.Project(kind, tenant, host, KeepForeign)
			object := mapping.Reflect(kind, host, tenant)
			mapping.Restamp(kind, host, tenant)
			mapping.Stamped(host, tenant)
			mapping.Identify(kind, kind.Name(), host)
			Crosses(kind, tenant)
			for _, path := range Difference(ContentOf(kind, record.Host, host), ContentOf(kind, record.Host, mirror)) {
				ManagedByUs(host, path...)
				_ = path.String()
			}
			Difference(ContentOf(kind, record.Tenant, tenant), ContentOf(kind, record.Tenant, object))
			kind.Immutable(host.Object, mirror.Object)
			kind.Immutable(tenant.Object, object.Object)
			require.Equal(t, before, sides)
		}
	})
}
