package modeltest

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"

	"github.com/syncpass/syncpass/pass/kinds"
	"github.com/syncpass/syncpass/record"
)

// The one kind there is, and where its objects are.
var (
	ConfigMaps = schema.GroupVersionKind{Version: "v1", Kind: "ConfigMap"}
	resource   = schema.GroupResource{Resource: "configmaps"}
	kind       = kinds.For(ConfigMaps.GroupKind())
)

const (
	tenantNamespace = "default"
	hostNamespace   = "team-dev"
	people          = "kubectl"
)

// server is one API server: the ConfigMaps of the one namespace that counts. Stored objects are never changed in place.
type server struct {
	objects map[string]*unstructured.Unstructured
	version int
	owners  map[types.UID]owners
	// clock goes on where a backup is restored, as time does.
	clock *time.Time
}

// owners are who set the text of an object last, and its label.
type owners struct{ text, label owner }

type owner struct {
	name string
	at   time.Time
}

func newServer(clock *time.Time) *server {
	return &server{objects: map[string]*unstructured.Unstructured{}, owners: map[types.UID]owners{}, clock: clock}
}

func (s *server) clone() *server {
	return &server{objects: maps.Clone(s.objects), version: s.version, owners: maps.Clone(s.owners), clock: s.clock}
}

func (s *server) names() []string { return slices.Sorted(maps.Keys(s.objects)) }

// put stores an object under its next resourceVersion, and each field with whoever changed it last.
func (s *server) put(object *unstructured.Unstructured, manager string) {
	*s.clock = s.clock.Add(time.Second)
	writer := owner{manager, *s.clock}
	before, own := s.objects[object.GetName()], owners{writer, writer}
	if before != nil && before.GetUID() == object.GetUID() {
		if known := s.owners[object.GetUID()]; text(before) == text(object) {
			own.text = known.text
		}
		if known := s.owners[object.GetUID()]; leftOut(before) == leftOut(object) {
			own.label = known.label
		}
	}
	s.owners[object.GetUID()] = own
	object.SetManagedFields(managedFields(own, leftOut(object)))
	s.version++
	object.SetResourceVersion(fmt.Sprint(s.version))
	s.objects[object.GetName()] = object
}

// managedFields is the API server's account of who set which field. The marks are left out: they are told by their keys.
func managedFields(own owners, labelled bool) []metav1.ManagedFieldsEntry {
	of := map[string][]string{own.text.name: {`"f:data":{"f:a":{}}`}}
	at := map[string]time.Time{own.text.name: own.text.at}
	if labelled {
		of[own.label.name] = append(of[own.label.name], `"f:metadata":{"f:labels":{"f:sync":{}}}`)
		if own.label.at.After(at[own.label.name]) {
			at[own.label.name] = own.label.at
		}
	}
	var list []metav1.ManagedFieldsEntry
	for _, manager := range slices.Sorted(maps.Keys(of)) {
		fields := &metav1.FieldsV1{}
		if err := fields.UnmarshalJSON([]byte("{" + strings.Join(of[manager], ",") + "}")); err != nil {
			panic(err) // it is made of constants
		}
		list = append(list, metav1.ManagedFieldsEntry{
			Manager: manager, Operation: metav1.ManagedFieldsOperationUpdate, APIVersion: "v1", Time: ptr.To(metav1.NewTime(at[manager])),
			FieldsType: "FieldsV1", FieldsV1: fields,
		})
	}
	return list
}

// Gone is the content of no object.
const Gone = "nothing"

// Content is what an object says: its one field, and whether it is labelled to be left out by a selector.
func Content(object *unstructured.Unstructured) string {
	if object == nil {
		return Gone
	}
	if leftOut(object) {
		return text(object) + " (labelled sync=no)"
	}
	return text(object)
}

func text(object *unstructured.Unstructured) string {
	text, _, _ := unstructured.NestedString(object.Object, "data", "a") // only people and passes that copy them write it
	return text
}

func leftOut(object *unstructured.Unstructured) bool { return object.GetLabels()["sync"] == "no" }

// The requests that change objects, as the passes send them. What the server refuses comes back as its error.

func (m *Model) refusal(side record.Side, name string, uid types.UID, version string) error {
	there := m.servers[side].objects[name]
	switch {
	case there == nil:
		return apierrors.NewNotFound(resource, name)
	case m.Without.Preconditions:
		return nil
	case uid != "" && uid != there.GetUID(), version != there.GetResourceVersion():
		return apierrors.NewConflict(resource, name, fmt.Errorf("the object has been modified"))
	}
	return nil
}

// Create makes an object.
func (m *Model) Create(p *Pass, side record.Side, object *unstructured.Unstructured) (*unstructured.Unstructured, error) {
	if m.servers[side].objects[object.GetName()] != nil {
		return nil, apierrors.NewAlreadyExists(resource, object.GetName())
	}
	return m.write(p, record.Create, side, object), nil
}

// Update writes an object that is there, at the resourceVersion that it names.
func (m *Model) Update(p *Pass, side record.Side, object *unstructured.Unstructured) (*unstructured.Unstructured, error) {
	if err := m.refusal(side, object.GetName(), object.GetUID(), object.GetResourceVersion()); err != nil {
		return nil, err
	}
	return m.write(p, record.Update, side, object), nil
}

// Delete removes an object of that UID and resourceVersion.
func (m *Model) Delete(p *Pass, side record.Side, name string, uid types.UID, version string) error {
	if err := m.refusal(side, name, uid, version); err != nil {
		return err
	}
	before := m.servers[side].objects[name]
	m.judgeWrite(p, record.Delete, side, before, nil)
	delete(m.servers[side].objects, name)
	m.written(p, record.Delete, side, before, nil)
	return nil
}

func (m *Model) write(p *Pass, action record.Action, side record.Side, object *unstructured.Unstructured) *unstructured.Unstructured {
	before := m.servers[side].objects[object.GetName()]
	object = object.DeepCopy()
	m.judgeWrite(p, action, side, before, object)
	if before == nil {
		object.SetUID(m.newUID())
		m.made[object.GetUID()] = true
	} else {
		object.SetUID(before.GetUID())
	}
	m.servers[side].put(object, kinds.FieldManager)
	m.written(p, action, side, before, object)
	return object.DeepCopy()
}

func (m *Model) newUID() types.UID {
	m.uids++
	return types.UID(fmt.Sprintf("00000000-0000-4000-8000-%012d", m.uids))
}

// Get reads one object as the pass sees it; nil where there is none.
func (m *Model) Get(p *Pass, side record.Side, name string) *unstructured.Unstructured {
	from := m.servers[side]
	if side == record.Tenant && p.OtherTenant() {
		from = m.other
	}
	there := from.objects[name]
	if side == record.Tenant {
		p.asked(name, there)
	}
	if there == nil {
		p.missed(side, name)
		return nil
	}
	object := there.DeepCopy()
	if side == record.Host && m.Without.OwnerCheck {
		m.forge(object)
	}
	p.sawAgain(side, object)
	return object
}

// List reads the objects of a side and the resourceVersion that the list is at, as the pass sees them.
func (m *Model) List(p *Pass, side record.Side) ([]*unstructured.Unstructured, string) {
	from := m.servers[side]
	switch {
	case side == record.Tenant && p.fault.Kind == ListOld && m.earlier != nil:
		from = m.earlier
	case side == record.Tenant && p.OtherTenant():
		from = m.other
	}
	list := make([]*unstructured.Unstructured, 0, len(from.objects))
	for _, name := range from.names() {
		object := from.objects[name].DeepCopy()
		if side == record.Host && m.Without.OwnerCheck {
			m.forge(object)
		}
		list = append(list, object)
	}
	p.saw(side, list)
	if side == record.Host && m.Without.Word {
		for _, object := range list {
			if Content(m.tenant(m.pairs[object.GetName()])) != Content(object) {
				setWord(object, record.Tenant)
			}
		}
	}
	return list, fmt.Sprint(from.version)
}

// forge makes a host object look like the mirror of the pair whose place it takes, which is what it is to a pass that
// looks at names alone.
func (m *Model) forge(object *unstructured.Unstructured) {
	if pair, ok := m.pairs[object.GetName()]; ok {
		m.mark(object, pair)
	}
}

// mark puts the marks of a pair's mirror on an object.
func (m *Model) mark(object *unstructured.Unstructured, pair string) {
	source := &unstructured.Unstructured{Object: map[string]any{}}
	source.SetGroupVersionKind(ConfigMaps)
	source.SetNamespace(tenantNamespace)
	source.SetName(pair)
	source.SetUID("forged")
	if tenant := m.servers[record.Tenant].objects[pair]; tenant != nil {
		source.SetUID(tenant.GetUID())
	}
	marks := m.Mapping.Project(kind, source, nil, kinds.KeepNone)
	labels := marks.GetLabels()
	if leftOut(object) {
		labels["sync"] = "no"
	}
	object.SetLabels(labels)
	object.SetAnnotations(marks.GetAnnotations())
	object.SetOwnerReferences(marks.GetOwnerReferences())
}
