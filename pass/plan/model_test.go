package plan_test

import (
	"errors"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	"github.com/syncpass/syncpass/pass/kinds"
	"github.com/syncpass/syncpass/pass/plan"
	"github.com/syncpass/syncpass/policy"
	"github.com/syncpass/syncpass/record"
)

// model is two API servers in memory, a SyncDecision, and passes over them that may break off anywhere. What the passes
// cannot see it remembers itself, and it notes each promise that a pass breaks.
type model struct {
	stores        map[record.Side]map[string]*unstructured.Unstructured
	earlier       map[string]*unstructured.Unstructured // the tenant's objects some time ago, for a list that is old
	versions, ids int

	// The SyncDecision: packed, and replaced by compare-and-swap on its version.
	pages   []record.Page
	version int
	epoch   int

	// agreed is the content of the last agreement of a pair, and the UID of the tenant object then: what a pass wrote and
	// the API server took, or an equality that a pass recorded.
	agreed map[string]agreement
	// unrecorded is the side of a write that a pass intended and whose outcome none has recorded yet; excused are pairs
	// whose written side a user touched in that state, where nobody can tell what happened; forgotten those whose history
	// was lost.
	unrecorded map[string]record.Side
	excused    map[string]bool
	forgotten  map[string]bool

	trace  []string
	broken []error
}

type agreement struct {
	content string
	uid     types.UID
}

const gone = "gone"

func newModel() *model {
	return &model{
		stores:  map[record.Side]map[string]*unstructured.Unstructured{record.Tenant: {}, record.Host: {}},
		earlier: map[string]*unstructured.Unstructured{},
		agreed:  map[string]agreement{}, unrecorded: map[string]record.Side{},
		excused: map[string]bool{}, forgotten: map[string]bool{},
	}
}

func (m *model) note(format string, args ...any) {
	m.trace = append(m.trace, fmt.Sprintf(format, args...))
}

func (m *model) breaks(format string, args ...any) {
	m.note("BROKEN: "+format, args...)
	m.broken = append(m.broken, fmt.Errorf(format, args...))
}

// content is what the one field of an object says, `gone` where there is no object.
func content(object *unstructured.Unstructured) string {
	if object == nil {
		return gone
	}
	text, _, _ := unstructured.NestedString(object.Object, "data", "a") // only this model writes it
	return text
}

// written gives an object its next resourceVersion, and its field to who changed it.
func (m *model) written(side record.Side, name, manager string, object, before *unstructured.Unstructured) *unstructured.Unstructured {
	const marks, field = `"f:metadata":{"f:labels":{"f:tenantplane.io/tenant":{}}}`, `"f:data":{"f:a":{}}`
	of := map[string][]string{}
	if side == record.Host {
		of[kinds.FieldManager] = append(of[kinds.FieldManager], marks)
	}
	if before != nil && content(before) == content(object) {
		manager = lastWriter(before)
	}
	of[manager] = append(of[manager], field)
	entries := make([]metav1.ManagedFieldsEntry, 0, len(of))
	for _, name := range slices.Sorted(maps.Keys(of)) {
		entries = append(entries, metav1.ManagedFieldsEntry{
			Manager: name, Operation: metav1.ManagedFieldsOperationUpdate, FieldsType: "FieldsV1", FieldsV1: fieldsV1([]byte("{" + strings.Join(of[name], ",") + "}")),
		})
	}
	object.SetManagedFields(entries)
	m.versions++
	object.SetResourceVersion(fmt.Sprint(m.versions))
	m.stores[side][name] = object
	return object.DeepCopy()
}

// lastWriter is who changed the field of an object last.
func lastWriter(object *unstructured.Unstructured) string {
	if kinds.ManagedByUs(object, "data", "a") {
		return kinds.FieldManager
	}
	return "kubectl"
}

func (m *model) newUID() types.UID {
	m.ids++
	return types.UID(fmt.Sprint("uid-", m.ids))
}

// touches notes that a user changes a side of a pair.
func (m *model) touches(side record.Side, name string) {
	if m.unrecorded[name] == side {
		m.excused[name] = true
	}
}

// userEdits sets the field on one side; in the tenant that makes the object where there is none.
func (m *model) userEdits(side record.Side, name, text string) {
	before := m.stores[side][name]
	if before == nil && side == record.Host || content(before) == text {
		return
	}
	m.touches(side, name)
	var object *unstructured.Unstructured
	if before == nil {
		object = &unstructured.Unstructured{Object: map[string]any{}}
		object.SetGroupVersionKind(configMaps)
		object.SetNamespace("default")
		object.SetName(name)
		object.SetUID(m.newUID())
	} else {
		object = before.DeepCopy()
	}
	data("a", text)(object)
	m.written(side, name, "kubectl", object, before)
	m.note("user sets %s %s to %s", side, name, text)
}

func (m *model) userDeletes(side record.Side, name string) {
	if m.stores[side][name] != nil {
		m.touches(side, name)
		delete(m.stores[side], name)
		m.note("user deletes %s %s", side, name)
	}
}

// loseHistory deletes the SyncDecision.
func (m *model) loseHistory() {
	m.pages = nil
	m.version++
	for name := range m.agreed {
		m.forgotten[name] = true
	}
	m.note("the history is lost")
}

// agree moves the last agreement of a pair.
func (m *model) agree(name, text string, tenant *unstructured.Unstructured) {
	m.agreed[name] = agreement{text, tenant.GetUID()}
	m.excused[name], m.forgotten[name] = false, false
}

var (
	errRaced = errors.New("raced")
	names    = []string{"x", "y"}
)

// carryOut is a write of a pass as the API server takes or refuses it.
func (m *model) carryOut(step *plan.Step) (*unstructured.Unstructured, error) {
	name := step.TenantName
	store := m.stores[step.Side]
	before := store[name]
	m.contained(step)
	switch step.Action {
	case record.Create:
		if before != nil {
			return nil, errRaced
		}
	case record.Delete:
		// The tenant is asked once more.
		if m.stores[record.Tenant][name] != nil {
			return nil, errRaced
		}
		fallthrough
	default:
		if before == nil || before.GetUID() != step.Have.GetUID() || before.GetResourceVersion() != step.Have.GetResourceVersion() {
			return nil, errRaced
		}
	}
	m.note("pass: %s %s %s (%s): %s → %s", step.Action, step.Side, name, step.Reason, content(before), content(step.Want))
	agreed, known := m.agreed[name]
	switch {
	case step.Action == record.Create, content(before) == content(step.Want):
	case step.Action == record.Delete && (!known || m.forgotten[name]):
		// Deletion follows the tenant, also where no agreement is known.
	case !known || content(before) != agreed.content:
		m.breaks("P1: %s %s of %s overwrites %q, which was never agreed on (agreed: %q)", step.Action, step.Side, name, content(before), agreed.content)
	}
	if step.Action == record.Delete {
		delete(store, name)
		delete(m.agreed, name)
		delete(m.excused, name)
		delete(m.forgotten, name)
		return nil, nil
	}
	object := step.Want.DeepCopy()
	if before == nil {
		object.SetUID(m.newUID())
	}
	tenant := step.Source
	if step.Side == record.Tenant {
		tenant = step.Have
	}
	m.agree(name, content(object), tenant)
	return m.written(step.Side, name, kinds.FieldManager, object, before), nil
}

// contained checks that a write goes where the mapping says (P5).
func (m *model) contained(step *plan.Step) {
	object := step.Want
	if object == nil {
		object = step.Have
	}
	namespace, name := "team-dev", mapping.MirrorName(kinds.For(configMaps.GroupKind()), "default", step.TenantName)
	if step.Side == record.Tenant {
		namespace, name = "default", step.TenantName
		if step.Action != record.Update {
			m.breaks("P5: %s in the tenant", step.Action)
		}
	}
	if !slices.Contains(names, step.TenantName) || object.GetNamespace() != namespace || object.GetName() != name {
		m.breaks("P5: a write to %s %s/%s", step.Side, object.GetNamespace(), object.GetName())
	}
}

// input is what a pass reads. An old list of the tenant is one from some time ago.
func (m *model) input(history *record.History, old bool) plan.Input {
	tenants := m.stores[record.Tenant]
	if old {
		tenants = m.earlier
	}
	kind := plan.KindSnapshot{Resource: policy.Resource{APIVersion: "v1", Kind: "ConfigMap", Direction: policy.Bidirectional}}
	for _, name := range names {
		if object := tenants[name]; object != nil {
			kind.Tenant = append(kind.Tenant, object.DeepCopy())
		}
		if object := m.stores[record.Host][name]; object != nil {
			kind.Host = append(kind.Host, object.DeepCopy())
		}
	}
	return plan.Input{
		ConflictPolicy: policy.Manual, History: history, Recording: true, Hasher: hasher, Mapping: mapping, MaxDeletePercent: 50, Now: now,
		Snapshot: plan.Snapshot{TenantUID: "tenant", Kinds: []plan.KindSnapshot{kind}}, RecordedTenantUID: "tenant",
	}
}

// swap replaces the SyncDecision, unless somebody else has meanwhile (P6: what is packed can be read again).
func (m *model) swap(loaded int, history *record.History) bool {
	if loaded != m.version {
		m.note("pass: superseded")
		return false
	}
	pages, err := history.Encode()
	if err != nil {
		m.breaks("P6: %v", err)
		return false
	}
	again, err := record.Decode(pages)
	if err != nil || !reflect.DeepEqual(maps.Collect(again.All()), maps.Collect(history.All())) {
		m.breaks("P6: the history does not survive packing: %v", err)
	}
	m.pages = pages
	m.version++
	for _, name := range names {
		if intent := history.Get(manual().key(name)).Intent; intent != nil {
			m.unrecorded[name] = intent.Side
		} else {
			delete(m.unrecorded, name)
		}
	}
	return true
}

// look remembers the tenant as it is now, for a list that will be old.
func (m *model) look() { m.earlier = maps.Clone(m.stores[record.Tenant]) }

// sides are the contents of both sides of every pair.
func (m *model) sides() string {
	text := ""
	for _, name := range names {
		text += fmt.Sprintf("%s: tenant %s, host %s; ", name, content(m.stores[record.Tenant][name]), content(m.stores[record.Host][name]))
	}
	return text
}
