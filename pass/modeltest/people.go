package modeltest

import (
	"cmp"
	"fmt"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/syncpass/syncpass/pass/kinds"
	"github.com/syncpass/syncpass/record"
)

// do lets one thing happen.
func (m *Model) do(c Command) {
	if c.What == Nothing {
		return
	}
	m.Count.Steps++
	if c.What == APass {
		m.pass(c.Fault)
		return
	}
	if m.people(c) {
		m.note("%s", c)
	}
	m.lookForEquality(nil)
}

// people lets people do something, and says whether it changed anything.
func (m *Model) people(c Command) bool {
	host := m.servers[record.Host]
	switch c.What {
	case Edits:
		return m.edit(c.Side, c.Pair, func(object *unstructured.Unstructured) { setText(object, c.Text) })
	case LabelsOut:
		return m.tenant(c.Pair) != nil && m.edit(record.Tenant, c.Pair, turnLabel)
	case Deletes:
		return m.remove(c.Side, c.Pair)
	case Strips:
		return m.mirror(c.Pair) != nil && m.edit(record.Host, c.Pair, func(object *unstructured.Unstructured) {
			labels := object.GetLabels()
			delete(labels, kinds.LabelManagedBy)
			object.SetLabels(labels)
		})
	case Resolves:
		mirror := m.mirror(c.Pair)
		if mirror == nil {
			return false
		}
		object := mirror.DeepCopy()
		if setWord(object, c.Side); c.Text != "" {
			setText(object, c.Text)
		}
		m.touches(record.Host, c.Pair)
		host.put(object, people)
	case Occupies:
		if host.objects[m.mirrorName(c.Pair)] != nil {
			return false
		}
		object := m.newObject(m.mirrorName(c.Pair), "of the host")
		object.SetNamespace(hostNamespace)
		host.put(object, people)
	case Copies:
		// To where the mirror of the other pair belongs, if that is free.
		mirror, target := m.mirror(c.Pair), m.mirrorName(pairNames[0])
		if c.Pair == pairNames[0] {
			target = m.mirrorName(pairNames[1])
		}
		if mirror == nil || host.objects[target] != nil {
			return false
		}
		object := mirror.DeepCopy()
		object.SetName(target)
		object.SetUID(m.newUID())
		host.put(object, people)
	case LosesRecord:
		if m.state == nil {
			return false
		}
		m.state = nil
		for _, g := range m.ghosts {
			g.forgotten, g.recorded = true, ""
		}
	case Herds:
		for _, name := range herd() {
			if m.tenant(name) == nil {
				m.servers[record.Tenant].put(m.newObject(name, "1"), people)
			}
		}
	case Thins:
		for _, name := range herd()[:c.Many] {
			m.remove(record.Tenant, name)
		}
	case ChangesPolicy:
		m.Policy = c.Policy
	case Confirms:
		if m.guarded == "" || m.Confirmed == m.guarded {
			return false
		}
		m.Confirmed = m.guarded
	case BacksUp:
		m.backUp(c.Side)
	case Restores, RestoresAhead, Rebuilds:
		return m.restore(c)
	}
	return true
}

func (m *Model) newObject(name, text string) *unstructured.Unstructured {
	object := &unstructured.Unstructured{Object: map[string]any{}}
	object.SetGroupVersionKind(ConfigMaps)
	object.SetNamespace(tenantNamespace)
	object.SetName(name)
	object.SetUID(m.newUID())
	setText(object, text)
	return object
}

func setText(object *unstructured.Unstructured, text string) {
	if err := unstructured.SetNestedField(object.Object, text, "data", "a"); err != nil {
		panic(fmt.Sprintf("an object of this model has no data: %v", err))
	}
}

func setWord(object *unstructured.Unstructured, keep record.Side) {
	annotations := object.GetAnnotations()
	if annotations == nil {
		annotations = map[string]string{}
	}
	annotations[kinds.AnnotationResolve] = string(keep)
	object.SetAnnotations(annotations)
}

func turnLabel(object *unstructured.Unstructured) {
	labels := object.GetLabels()
	if labels == nil {
		labels = map[string]string{}
	}
	if leftOut(object) {
		delete(labels, "sync")
	} else {
		labels["sync"] = "no"
	}
	object.SetLabels(labels)
}

// edit changes one side of a pair; in the tenant it makes the object where there is none.
func (m *Model) edit(side record.Side, pair string, change func(*unstructured.Unstructured)) bool {
	before := m.side(side, pair)
	var object *unstructured.Unstructured
	switch {
	case before != nil:
		object = before.DeepCopy()
	case side == record.Host:
		return false
	default:
		object = m.newObject(pair, "")
	}
	change(object)
	if before != nil && Content(before) == Content(object) && len(before.GetLabels()) == len(object.GetLabels()) {
		return false
	}
	m.touches(side, pair)
	m.servers[side].put(object, people)
	return true
}

func (m *Model) remove(side record.Side, pair string) bool {
	object := m.side(side, pair)
	if object == nil {
		return false
	}
	m.touches(side, pair)
	delete(m.servers[side].objects, object.GetName())
	return true
}

// touches notes that people change a side whose write nobody has recorded: then nobody can tell what happened.
func (m *Model) touches(side record.Side, pair string) {
	if g := m.ghosts[pair]; g.unrecorded == side {
		g.excused = true
	}
}

func (m *Model) backUp(side record.Side) {
	b := &backup{server: m.servers[side].clone(), ghosts: map[string]ghost{}}
	if side == record.Host {
		b.state = m.state
		for name, g := range m.ghosts {
			b.ghosts[name] = *g
		}
	}
	m.backups[side] = b
}

// restore puts a side back to its backup. With the host goes the SyncDecision, which is stored there; what passes did
// since is forgotten on the host, so nobody can hold them to it.
func (m *Model) restore(c Command) bool {
	side := c.Side
	if c.What == Rebuilds {
		side = record.Tenant
	}
	b := m.backups[side]
	if b == nil {
		return false
	}
	version := m.servers[side].version
	m.servers[side] = b.server.clone()
	if c.What != Restores {
		m.servers[side].version = version
	}
	if c.What == Rebuilds {
		for _, name := range m.servers[side].names() {
			object := m.servers[side].objects[name].DeepCopy()
			object.SetUID(m.newUID())
			m.servers[side].put(object, people)
		}
	}
	for _, name := range m.names() {
		m.touches(side, name)
		// Of what nobody recorded, a restore may leave no trace at all: then the agreement recorded before counts too.
		m.ghosts[name].loose = m.ghosts[name].loose || side == record.Tenant
	}
	if side == record.Host {
		m.state = b.state
		for name, g := range b.ghosts {
			g.forgotten, g.undone = true, cmp.Or(m.ghosts[name].undone, m.ghosts[name].agreed)
			g.loose = g.loose || m.ghosts[name].loose // the tenant stays restored
			*m.ghosts[name] = g
		}
	}
	m.wentBack = m.wentBack || side == record.Tenant && c.What == Restores
	m.earlier = nil
	return true
}
