package modeltest

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"

	"github.com/syncpass/syncpass/pass/kinds"
	"github.com/syncpass/syncpass/policy"
	"github.com/syncpass/syncpass/record"
)

// Engine makes one pass: it reads by List, asks Pass.Turn and Pass.Arrives about each of its changing requests, writes
// by Create, Update and Delete, and tells Recorded about each swap of the SyncDecision. It must not go on once a request
// has found that the pass is dead.
type Engine func(m *Model, p *Pass) Report

// Report is what a pass says of itself.
type Report struct {
	// Decided says whether the pass got as far as a plan; only then the rest means anything.
	Decided   bool
	Decisions []record.Decision
	Unchanged int
	// GuardID names the plan that a guard withheld.
	GuardID string
	// Failed is why the pass did not come to its end, as far as that is known.
	Failed string
}

// Without takes a safeguard away, to see that its absence is noticed.
type Without struct {
	// Fence: a pass goes on writing after another one has taken over.
	Fence bool
	// Intents: nothing is stored ahead of a two-way write.
	Intents bool
	// Preconditions: an API server takes each write at whatever resourceVersion.
	Preconditions bool
	// OwnerCheck: whatever stands at a mirror's name passes for the mirror.
	OwnerCheck bool
	// Word: every conflict passes for one that a person has settled.
	Word bool
}

// Policy is what the SyncPolicy and the configuration of the passes say.
type Policy struct {
	Direction policy.Direction
	Conflict  policy.ConflictPolicy
	// Absent: the kind is not in the policy. Retire: then its mirrors are to go.
	Absent, Retire bool
	// Silent: spec.explain.recordDecisions is false.
	Silent bool
	// Selecting: objects labelled sync=no are left out.
	Selecting bool
}

// Selector is what a selecting policy says.
func (p Policy) Selector() *metav1.LabelSelector {
	if !p.Selecting {
		return nil
	}
	return &metav1.LabelSelector{MatchExpressions: []metav1.LabelSelectorRequirement{{Key: "sync", Operator: metav1.LabelSelectorOpNotIn, Values: []string{"no"}}}}
}

// carries says whether an object of the tenant is one that crosses.
func (p Policy) carries(object *unstructured.Unstructured) bool {
	return object != nil && !p.Absent && !(p.Selecting && leftOut(object))
}

// manual says whether both sides count.
func (p Policy) manual() bool {
	return p.Direction == policy.Bidirectional && p.Conflict == policy.Manual
}

// authority is the side whose content counts; both, with manual, have none.
func (p Policy) authority() record.Side {
	switch {
	case p.manual():
		return ""
	case p.Direction == policy.FromHost, p.Direction == policy.Bidirectional && p.Conflict == policy.HostWins:
		return record.Host
	}
	return record.Tenant
}

// MaxDeletePercent is the limit of the guard over deletes in all histories.
const MaxDeletePercent = 50

// Model is the world around the passes, and what they cannot see of it.
type Model struct {
	Mapping kinds.Mapping
	Hasher  record.Hasher
	Policy  Policy
	Without Without
	// Confirmed is the plan that a person let through the guards.
	Confirmed string
	// Count is what has happened so far.
	Count Count

	engine  Engine
	servers map[record.Side]*server
	earlier *server           // the tenant at the end of the pass before, for a list that is old
	other   *server           // another tenant
	mirrors map[string]string // the names of mirrors, by pair
	pairs   map[string]string // and the other way round
	uids    int
	backups map[record.Side]*backup

	// made are the objects that passes created.
	made   map[types.UID]bool
	ghosts map[string]*ghost
	equal  map[equality]bool
	hashes map[record.Side]map[string]record.Hash
	// state is the SyncDecision as it was last written; nil where there is none.
	state   *state
	guarded string // the plan that a guard withheld last
	depth   int    // passes within passes
	// wentBack: the tenant was restored with its resourceVersions, so that passes may tell that it went back in time.
	wentBack bool
	order    []string

	trace []string
	// Broken are the rules that were broken, in order.
	Broken []error
}

// Count counts what happened in a history.
type Count struct{ Steps, Passes, Crashes, Writes int }

// Add adds up two counts.
func (c *Count) Add(o Count) {
	c.Steps, c.Passes, c.Crashes, c.Writes = c.Steps+o.Steps, c.Passes+o.Passes, c.Crashes+o.Crashes, c.Writes+o.Writes
}

// state is what is stored of the passes' memory.
type state struct {
	history *record.History
	epoch   int64
	tenant  string
	// opaque is the engine's own.
	opaque any
}

// backup is a side at one time; the host's has the SyncDecision, and the model's own memory, with it.
type backup struct {
	server *server
	state  *state
	ghosts map[string]ghost
}

// pairNames are the pairs that most happens to; a history with a herd has herdSize more, which come and go together.
var pairNames = []string{"x", "y"}

const herdSize = 12

func herd() []string {
	names := make([]string, herdSize)
	for i := range names {
		names[i] = fmt.Sprintf("herd-%02d", i)
	}
	return names
}

// tenantUID and otherUID are the identities of the tenant, and of the one that a wrong kubeconfig leads to.
const (
	tenantUID = "tenant"
	otherUID  = "another tenant"
)

// New is a world without objects.
func New(engine Engine) *Model {
	clock := &time.Time{}
	*clock = time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	m := &Model{
		Mapping: kinds.Mapping{Tenant: "dev", HostNamespace: hostNamespace, Owner: metav1.OwnerReference{
			APIVersion: "tenantplane.io/v1alpha1", Kind: "TenantCluster", Name: "dev", UID: "owner", Controller: ptr.To(true), BlockOwnerDeletion: ptr.To(false),
		}},
		Hasher:  record.NewHasher([]byte("credential of the tenant")),
		Policy:  Policy{Direction: policy.Bidirectional, Conflict: policy.Manual},
		engine:  engine,
		servers: map[record.Side]*server{record.Tenant: newServer(clock), record.Host: newServer(clock)},
		mirrors: map[string]string{}, pairs: map[string]string{}, backups: map[record.Side]*backup{}, made: map[types.UID]bool{},
		ghosts: map[string]*ghost{}, equal: map[equality]bool{},
		hashes: map[record.Side]map[string]record.Hash{record.Tenant: {}, record.Host: {}},
	}
	for _, name := range append(herd(), pairNames...) {
		m.mirrors[name] = m.Mapping.MirrorName(kind, tenantNamespace, name)
		m.pairs[m.mirrors[name]] = name
		m.ghosts[name] = &ghost{}
	}
	m.order = slices.Sorted(maps.Keys(m.ghosts))
	m.other = newServer(clock)
	m.other.put(m.newObject(pairNames[0], "3"), people)
	return m
}

func (m *Model) mirrorName(pair string) string { return m.mirrors[pair] }

// tenant and mirror are the two sides of a pair; nil where there is none. What only looks like a mirror is none.
func (m *Model) tenant(pair string) *unstructured.Unstructured {
	return m.servers[record.Tenant].objects[pair]
}

func (m *Model) mirror(pair string) *unstructured.Unstructured {
	if object := m.servers[record.Host].objects[m.mirrorName(pair)]; m.ours(object) {
		return object
	}
	return nil
}

// ours says whether a host object was made by a pass, and still says so.
func (m *Model) ours(object *unstructured.Unstructured) bool {
	return object != nil && m.made[object.GetUID()] && object.GetLabels()[kinds.LabelManagedBy] == kinds.ManagedBy
}

func (m *Model) side(side record.Side, pair string) *unstructured.Unstructured {
	if side == record.Tenant {
		return m.tenant(pair)
	}
	return m.mirror(pair)
}

// names are all pairs, in order.
func (m *Model) names() []string { return m.order }

// State is the SyncDecision as the engine stored it; nil where there is none.
func (m *Model) State() any {
	if m.state == nil {
		return nil
	}
	return m.state.opaque
}

// Identity is the tenant that is recorded; empty where none is.
func (m *Model) Identity() string {
	if m.state == nil {
		return ""
	}
	return m.state.tenant
}

func (m *Model) note(format string, args ...any) {
	m.trace = append(m.trace, strings.Repeat("    ", m.depth)+fmt.Sprintf(format, args...))
}

// Trace is the history in sentences.
func (m *Model) Trace() string { return strings.Join(m.trace, "\n") }

// Breaks notes that a rule was broken.
func (m *Model) Breaks(rule, format string, args ...any) {
	err := fmt.Errorf("%s: %s", rule, fmt.Sprintf(format, args...))
	m.note("BROKEN: %v", err)
	m.Broken = append(m.Broken, err)
}

// Live is one history: what happens, and then quiet.
func Live(engine Engine, without Without, commands []Command) *Model {
	m := New(engine)
	m.Without = without
	for _, c := range commands {
		m.do(c)
		if len(m.Broken) > 0 {
			return m
		}
	}
	m.settle()
	return m
}
