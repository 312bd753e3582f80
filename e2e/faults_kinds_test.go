package e2e

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"

	"github.com/syncpass/syncpass/e2e/cluster"
	"github.com/syncpass/syncpass/record"
)

// widgetPlace is a place whose policy carries widgets of a group, at v1beta1, and in which one was carried over. Both sides
// serve them at v1, too.
func widgetPlace(t *testing.T, s *surroundings, name, group string) *duePlace {
	t.Helper()
	t.Parallel()
	crd := object{"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition", "metadata": object{"name": "widgets." + group},
		"spec": object{"group": group, "scope": "Namespaced", "names": object{"plural": "widgets", "singular": "widget", "kind": "Widget", "listKind": "WidgetList"},
			"versions": []any{widgetVersion("v1", true), widgetVersion("v1beta1", false)}}}
	for _, c := range []*cluster.Cluster{s.host, s.tenant} {
		require.NoError(t, c.Apply(s.context(t), documents(t, crd)))
		requireDiscovered(t, s, c, served(group+"/v1beta1", "Widget"))
		client, err := dynamic.NewForConfig(c.Config)
		require.NoError(t, err)
		t.Cleanup(func() {
			err := client.Resource(crds).Delete(s.ctx, "widgets."+group, metav1.DeleteOptions{})
			assert.True(t, err == nil || apierrors.IsNotFound(err), "%v", err)
		})
	}
	spec := duePolicy()
	spec["resources"] = []any{object{"apiVersion": group + "/v1beta1", "kind": "Widget", "direction": "bidirectional"}}
	p := &duePlace{newPlace(t, s, name, spec)}
	p.apply(t, record.Tenant, "{apiVersion: "+group+"/v1, kind: Widget, metadata: {name: w}, spec: {a: 1}}")
	first, _ := p.pass(t, 0, nil)
	require.Equal(t, 1, first.Counts.Create, "%+v", first.Decisions)
	return p
}

func widgetVersion(name string, storage bool) object {
	return object{"name": name, "served": true, "storage": storage, "schema": object{"openAPIV3Schema": object{
		"type": "object", "x-kubernetes-preserve-unknown-fields": true}}}
}

// kindsThatGo are rows about kinds that a side no longer serves.
var kindsThatGo = map[string]func(*testing.T, *surroundings, string){
	"F15 the tenant's CRD is gone": func(t *testing.T, s *surroundings, name string) {
		const group = "f15.example.com"
		p := widgetPlace(t, s, name, group)
		widgets := schema.GroupVersionResource{Group: group, Version: "v1", Resource: "widgets"}
		require.NoError(t, p.tenantObjects.Resource(crds).Delete(s.context(t), "widgets."+group, metav1.DeleteOptions{}))
		requireDiscovered(t, s, s.tenant, not(served(group+"/v1beta1", "Widget")))
		p.requireHeld(t, widgets, "the tenant does not serve "+group+"/v1beta1 Widget")
	},
	"F51 the tenant serves another version than the policy names": func(t *testing.T, s *surroundings, name string) {
		const group = "f51.example.com"
		p := widgetPlace(t, s, name, group)
		widgets := schema.GroupVersionResource{Group: group, Version: "v1", Resource: "widgets"}
		serve := func(value string) {
			patch := []byte(`[{"op":"replace","path":"/spec/versions/1/served","value":` + value + `}]`)
			_, err := p.tenantObjects.Resource(crds).Patch(s.context(t), "widgets."+group, types.JSONPatchType, patch, metav1.PatchOptions{})
			require.NoError(t, err)
		}
		serve("false")
		requireDiscovered(t, s, s.tenant, not(served(group+"/v1beta1", "Widget")))
		p.requireHeld(t, widgets, "the tenant does not serve "+group+"/v1beta1 Widget")

		serve("true")
		requireDiscovered(t, s, s.tenant, served(group+"/v1beta1", "Widget"))
		p.recover(t, nil)
		_, err := p.objects(record.Host, widgets).Get(s.context(t), p.mirror("w"), metav1.GetOptions{})
		require.NoError(t, err)
	},
}

// requireHeld makes two passes, of which the first says why the kind is left alone, and neither touches a mirror.
func (p *duePlace) requireHeld(t *testing.T, widgets schema.GroupVersionResource, why string) {
	t.Helper()
	before, err := p.objects(record.Host, widgets).Get(p.s.context(t), p.mirror("w"), metav1.GetOptions{})
	require.NoError(t, err)
	held, _ := p.pass(t, 0, nil)
	require.Len(t, held.Decisions, 1)
	require.Equal(t, record.KindUnavailable, held.Decisions[0].Reason)
	require.Contains(t, held.Decisions[0].Message, why)
	_, requests := p.pass(t, 0, nil)
	requireNoWriteButTheLease(t, requests)
	after, err := p.objects(record.Host, widgets).Get(p.s.context(t), p.mirror("w"), metav1.GetOptions{})
	require.NoError(t, err)
	require.Equal(t, before, after)
}
