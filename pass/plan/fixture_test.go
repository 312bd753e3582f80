package plan_test

import (
	"bytes"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"
	"sigs.k8s.io/structured-merge-diff/v6/value"

	"github.com/syncpass/syncpass/pass/kinds"
	"github.com/syncpass/syncpass/pass/plan"
	"github.com/syncpass/syncpass/policy"
	"github.com/syncpass/syncpass/record"
)

var (
	mapping = kinds.Mapping{
		Tenant: "dev", HostNamespace: "team-dev",
		Owner: metav1.OwnerReference{APIVersion: "tenantplane.io/v1alpha1", Kind: "TenantCluster", Name: "dev", UID: "owner", Controller: new(true)},
	}
	hasher    = record.NewHasher([]byte("credential of the tenant"))
	newHasher = record.NewHasher([]byte("credential after a rotation"))
	now       = time.Date(2026, 11, 29, 12, 0, 0, 0, time.UTC)
)

// edit changes an object that a builder made.
type edit func(*unstructured.Unstructured)

// world builds an Input around objects of one kind. Its zero values are the usual case: manual, recording, one kind.
type world struct {
	direction policy.Direction
	conflict  policy.ConflictPolicy
	off       bool // recordDecisions: false
	group     schema.GroupVersionKind
	says      func(*policy.Resource) // what else the policy says of the kind
	tenants   []*unstructured.Unstructured
	hosts     []*unstructured.Unstructured
	history   *record.History
	probes    map[record.Key]*unstructured.Unstructured
	percent   int
	versions  int
}

var (
	configMaps = schema.GroupVersionKind{Version: "v1", Kind: "ConfigMap"}
	widgets    = schema.GroupVersionKind{Group: "example.com", Version: "v1", Kind: "Widget"}
)

func newWorld(direction policy.Direction, conflict policy.ConflictPolicy) *world {
	return &world{direction: direction, conflict: conflict, group: configMaps, history: record.NewHistory(hasher.KeyID()), percent: 50}
}

// manual is a world whose sides both count.
func manual() *world { return newWorld(policy.Bidirectional, policy.Manual) }

func (w *world) kind() kinds.Kind { return kinds.For(w.group.GroupKind()) }

func (w *world) key(name string) record.Key {
	return record.Key{Group: w.group.Group, Kind: w.group.Kind, Namespace: "default", Name: name}
}

// object is a tenant object default/name with data {a: "1"}, UID t-<name>.
func (w *world) object(name string, edits ...edit) *unstructured.Unstructured {
	object := &unstructured.Unstructured{Object: map[string]any{}}
	object.SetGroupVersionKind(w.group)
	object.SetNamespace("default")
	object.SetName(name)
	object.SetUID(types.UID("t-" + name))
	data("a", "1")(object)
	w.version(object)
	return apply(object, edits)
}

// mirror is the mirror of a tenant object, as an earlier pass made it; UID h-<name>.
func (w *world) mirror(tenant *unstructured.Unstructured, edits ...edit) *unstructured.Unstructured {
	mirror := mapping.Project(w.kind(), tenant, nil, kinds.KeepNone)
	mirror.SetUID(types.UID("h-" + tenant.GetName()))
	w.version(mirror)
	managedBy(kinds.FieldManager)(mirror)
	return apply(mirror, edits)
}

// version gives an object a resourceVersion that no other has, and its writes another time.
func (w *world) version(object *unstructured.Unstructured) {
	w.versions++
	object.SetResourceVersion(fmt.Sprint(1000 + w.versions))
	entries := object.GetManagedFields()
	if len(entries) == 0 {
		entries = []metav1.ManagedFieldsEntry{{Manager: "kubectl", Operation: metav1.ManagedFieldsOperationUpdate}}
	}
	for i := range entries {
		entries[i].Time = &metav1.Time{Time: now.Add(time.Duration(w.versions) * time.Second)}
	}
	object.SetManagedFields(entries)
}

func (w *world) edited(object *unstructured.Unstructured, edits ...edit) *unstructured.Unstructured {
	copied := object.DeepCopy()
	w.version(copied)
	return apply(copied, edits)
}

func (w *world) agreed(tenant, host *unstructured.Unstructured) {
	state := w.history.Get(w.key(tenant.GetName()))
	state.Baseline = w.baseline(tenant, host)
	w.history.Set(w.key(tenant.GetName()), state)
}

func (w *world) baseline(tenant, host *unstructured.Unstructured) *record.Baseline {
	return plan.Agreement(hasher, w.kind(), tenant, host)
}

func (w *world) see(tenant, host *unstructured.Unstructured) {
	if tenant != nil {
		w.tenants = append(w.tenants, tenant)
	}
	if host != nil {
		w.hosts = append(w.hosts, host)
	}
}

func (w *world) input() plan.Input {
	apiVersion, kind := w.group.ToAPIVersionAndKind()
	in := plan.Input{
		ConflictPolicy: w.conflict, History: w.history, Recording: !w.off, Hasher: hasher, Mapping: mapping,
		Snapshot: plan.Snapshot{TenantUID: "tenant", Kinds: []plan.KindSnapshot{{
			Resource: w.resource(apiVersion, kind), Tenant: w.tenants, Host: w.hosts,
		}}},
		Probes: w.probes, RecordedTenantUID: "tenant", MaxDeletePercent: w.percent, Now: now,
	}
	if w.off {
		in.History = nil
	}
	return in
}

func (w *world) resource(apiVersion, kind string) policy.Resource {
	resource := policy.Resource{APIVersion: apiVersion, Kind: kind, Direction: w.direction}
	if w.says != nil {
		w.says(&resource)
	}
	return resource
}

func (w *world) compute() *plan.Plan { return plan.Compute(w.input()) }

func apply(object *unstructured.Unstructured, edits []edit) *unstructured.Unstructured {
	for _, change := range edits {
		change(object)
	}
	return object
}

func data(key, text string) edit {
	return func(object *unstructured.Unstructured) {
		if err := unstructured.SetNestedField(object.Object, text, "data", key); err != nil {
			panic(err)
		}
	}
}

func without(key string) edit {
	return func(object *unstructured.Unstructured) { unstructured.RemoveNestedField(object.Object, "data", key) }
}

func label(key, text string) edit {
	return func(object *unstructured.Unstructured) {
		labels := object.GetLabels()
		if labels == nil {
			labels = map[string]string{}
		}
		labels[key] = text
		object.SetLabels(labels)
	}
}

func uid(id string) edit {
	return func(object *unstructured.Unstructured) { object.SetUID(types.UID(id)) }
}

func terminating(object *unstructured.Unstructured) {
	stamp := metav1.NewTime(now)
	object.SetDeletionTimestamp(&stamp)
}

// immutable seals a ConfigMap.
func immutable(object *unstructured.Unstructured) { object.Object["immutable"] = true }

// managedBy makes every field of an object the manager's, as the API server would after its write.
func managedBy(manager string) edit {
	return func(object *unstructured.Unstructured) {
		object.SetManagedFields(nil)
		set := fieldpath.SetFromValue(value.NewValueInterface(object.Object))
		raw, err := set.ToJSON()
		if err != nil {
			panic(err)
		}
		object.SetManagedFields([]metav1.ManagedFieldsEntry{{
			Manager: manager, Operation: metav1.ManagedFieldsOperationUpdate, APIVersion: object.GetAPIVersion(),
			FieldsType: "FieldsV1", FieldsV1: fieldsV1(raw),
		}})
	}
}

func fieldsV1(raw []byte) *metav1.FieldsV1 {
	fields := &metav1.FieldsV1{}
	if err := fields.UnmarshalJSON(bytes.Clone(raw)); err != nil {
		panic(err)
	}
	return fields
}

// outcome writes down what a plan says of its pairs in one line each: `update host TenantChanged`, or `-` for a pair
// that is left alone, `- learned` where the history moves.
func outcome(p *plan.Plan) string {
	lines := make([]string, 0, len(p.Steps)+p.Unchanged)
	for _, step := range p.Steps {
		lines = append(lines, fmt.Sprintf("%s %s %s", strings.ToLower(string(step.Action)), step.Side, step.Reason))
	}
	for range p.Unchanged {
		lines = append(lines, "-")
	}
	for _, change := range p.History {
		if change.State == (record.State{}) {
			lines = append(lines, "forget")
			continue
		}
		lines = append(lines, "learn")
	}
	return strings.Join(lines, ", ")
}

// remember writes a plan's findings into a history, as recording does.
func remember(history *record.History, changes []plan.Change) {
	for _, change := range changes {
		history.Set(change.Key, change.State)
	}
}

func one(t *testing.T, p *plan.Plan) plan.Step {
	t.Helper()
	require.Len(t, p.Steps, 1, "outcome: %s", outcome(p))
	return p.Steps[0]
}
