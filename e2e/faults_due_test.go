package e2e

import (
	"fmt"
	"maps"
	"slices"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"

	"github.com/syncpass/syncpass/e2e/scenario"
	"github.com/syncpass/syncpass/record"
)

// due is what a pass over a due place decides when nothing goes wrong.
var due = map[string]string{
	"made": "Create NoMirror", "pushed": "Update TenantChanged", "pulled": "Update HostChanged", "gone": "Delete TenantDeleted",
}

var (
	configMaps = corev1.SchemeGroupVersion.WithResource("configmaps")
	namespaces = corev1.SchemeGroupVersion.WithResource("namespaces")
	secrets    = corev1.SchemeGroupVersion.WithResource("secrets")
	services   = corev1.SchemeGroupVersion.WithResource("services")
	crds       = schema.GroupVersionResource{Group: "apiextensions.k8s.io", Version: "v1", Resource: "customresourcedefinitions"}
)

// quick are the shortest deadlines that a busy machine keeps.
var quick = map[string]string{"SYNCPASS_REQUEST_TIMEOUT": "2s", "SYNCPASS_LEASE_DURATION": "3s", "SYNCPASS_PASS_TIMEOUT": "30s"}

// oneByOne makes the order of writes that of the decisions: made, pulled, pushed, and at last gone.
var oneByOne = map[string]string{"SYNCPASS_CONCURRENCY": "1"}

func with(envs ...map[string]string) map[string]string {
	all := map[string]string{}
	for _, env := range envs {
		maps.Copy(all, env)
	}
	return all
}

// duePolicy carries three kinds, two of them both ways.
func duePolicy() scenario.Object {
	spec := scenario.DefaultPolicy()
	spec["resources"] = spec["resources"].([]any)[:3]
	return spec
}

// dueTenant is a tenant before its first pass; there are fewer objects than any guard over deletes looks at.
const dueTenant = `
{apiVersion: v1, kind: ConfigMap, metadata: {name: kept}, data: {a: "1"}}
---
{apiVersion: v1, kind: ConfigMap, metadata: {name: pushed}, data: {a: "1"}}
---
{apiVersion: v1, kind: ConfigMap, metadata: {name: pulled}, data: {a: "1"}}
---
{apiVersion: v1, kind: ConfigMap, metadata: {name: gone}, data: {a: "1"}}
---
{apiVersion: v1, kind: Secret, metadata: {name: kept}, stringData: {a: "1"}}
---
{apiVersion: v1, kind: Service, metadata: {name: kept}, spec: {selector: {a: b}, ports: [{port: 80}]}}
`

// duePlace is a place in which changes wait to be carried over.
type duePlace struct{ *place }

// newDuePlace is a place after a first pass, in which four changes wait to be carried over: one ConfigMap is new in the
// tenant, one was changed there, one was changed on the host, and one was deleted in the tenant. Three objects are as they were.
func newDuePlace(t *testing.T, s *surroundings, name string) *duePlace {
	t.Helper()
	p := &duePlace{newPlace(t, s, name, duePolicy())}
	p.apply(t, record.Tenant, dueTenant)
	first, _ := p.pass(t, 0, nil)
	require.Equal(t, 6, first.Counts.Create, "%+v", first.Decisions)
	p.makeDue(t)
	return p
}

// leave has the namespaces of the place removed in the background, so that a hundred places later the lists are not long.
func (p *duePlace) leave(t *testing.T) {
	for _, client := range []dynamic.Interface{p.hostObjects, p.tenantObjects} {
		err := client.Resource(namespaces).Delete(p.s.ctx, p.name, metav1.DeleteOptions{})
		assert.True(t, err == nil || apierrors.IsNotFound(err) || apierrors.IsConflict(err), "%v", err)
	}
}

// makeDue makes the four changes.
func (p *duePlace) makeDue(t *testing.T) {
	t.Helper()
	p.set(t, record.Tenant, "made", "1")
	p.set(t, record.Tenant, "pushed", "2")
	p.set(t, record.Host, "pulled", "3")
	p.remove(t, record.Tenant, "gone")
}

// at is the name of a ConfigMap of the tenant on a side.
func (p *duePlace) at(side record.Side, name string) string {
	if side == record.Host {
		return p.mirror(name)
	}
	return name
}

// set gives a ConfigMap this content, or makes it in the tenant.
func (p *duePlace) set(t *testing.T, side record.Side, name, value string) {
	t.Helper()
	ctx, maps := p.s.context(t), p.objects(side, configMaps)
	patch := fmt.Appendf(nil, `{"data":{"a":%q}}`, value)
	_, err := maps.Patch(ctx, p.at(side, name), types.MergePatchType, patch, metav1.PatchOptions{FieldManager: "person"})
	if apierrors.IsNotFound(err) && side == record.Tenant {
		_, err = maps.Create(ctx, configMapOf(name, value), metav1.CreateOptions{FieldManager: "person"})
	}
	require.NoError(t, err)
}

func configMapOf(name, value string) *unstructured.Unstructured {
	return &unstructured.Unstructured{Object: object{
		"apiVersion": "v1", "kind": "ConfigMap", "metadata": object{"name": name}, "data": object{"a": value},
	}}
}

func (p *duePlace) remove(t *testing.T, side record.Side, name string) {
	t.Helper()
	require.NoError(t, p.objects(side, configMaps).Delete(p.s.context(t), p.at(side, name), metav1.DeleteOptions{}))
}

// value is a ConfigMap's content on a side, empty where there is none.
func (p *duePlace) value(t *testing.T, side record.Side, name string) string {
	t.Helper()
	found, err := p.objects(side, configMaps).Get(p.s.ctx, p.at(side, name), metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		return ""
	}
	require.NoError(t, err)
	value, _, err := unstructured.NestedString(found.Object, "data", "a")
	require.NoError(t, err)
	return value
}

// uids are those of the objects that no pass may delete or make anew, by side, resource and name.
func (p *duePlace) uids(t *testing.T) map[string]types.UID {
	t.Helper()
	uids := map[string]types.UID{}
	for _, side := range []record.Side{record.Tenant, record.Host} {
		for _, resource := range []string{"configmaps", "secrets", "services"} {
			list, err := p.objects(side, corev1.SchemeGroupVersion.WithResource(resource)).List(p.s.ctx, metav1.ListOptions{})
			require.NoError(t, err)
			for _, item := range list.Items {
				for _, name := range []string{"kept", "pushed", "pulled"} {
					if item.GetName() == p.at(side, name) {
						uids[string(side)+" "+resource+" "+name] = item.GetUID()
					}
				}
			}
		}
	}
	return uids
}

// values are what both sides must have of each changed object, before and after it was carried over.
var values = map[string]struct {
	side          record.Side // the side that it is carried to
	before, after string
}{
	"made": {record.Host, "", "1"}, "pushed": {record.Host, "1", "2"}, "pulled": {record.Tenant, "1", "3"}, "gone": {record.Host, "1", ""},
}

// requireDone fails unless exactly these changes were carried over.
func (p *duePlace) requireDone(t *testing.T, done ...string) {
	t.Helper()
	for name, want := range values {
		expected := want.before
		if slices.Contains(done, name) {
			expected = want.after
		}
		assert.Equal(t, expected, p.value(t, want.side, name), "%s on the %s", name, want.side)
		source := record.Tenant
		if want.side == record.Tenant {
			source = record.Host
		}
		assert.Equal(t, want.after, p.value(t, source, name), "%s on the %s, where it was changed", name, source)
	}
}
