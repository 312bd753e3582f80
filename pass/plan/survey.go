package plan

import (
	"maps"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/syncpass/syncpass/pass/kinds"
	"github.com/syncpass/syncpass/policy"
	"github.com/syncpass/syncpass/record"
)

// Survey tells by metadata alone which pairs of a kind are quiet: certainly as they were when they last agreed, so that
// nobody has to read their content. It is told of each object of each side once, the two sides side by side if need be.
//
// A pair is quiet where history has an agreement and nothing that waits, both objects are certainly the ones of that
// agreement (see untouched), and neither is on its way out. An agreement whose host was left to be looked at again has no
// resourceVersion of it: see Settled.
type Survey struct {
	in    *Input
	kind  kinds.Kind
	group schema.GroupKind
	runs  bool
	// tokens are the Secrets with Pods' tokens, by name.
	tokens map[string]TokenSecret
	// expected is about how many pairs there are.
	expected      int
	tenant, host  map[types.NamespacedName]bool // by pair, whether it is as it was
	apart, others map[types.NamespacedName]*unstructured.Unstructured
}

// Surveyed is what a Survey came to.
type Surveyed struct {
	// Quiet are the pairs whose content need not be read, all true.
	Quiet map[types.NamespacedName]bool
	// Tenant are the other objects of the tenant, Host the other mirrors by their names on the host: the ones to be read.
	Tenant, Host []types.NamespacedName
	// Orphans are those of Host that are certainly as they were, and whose tenant objects are gone; all true. Nothing is
	// open about them, so that it does not matter who set which of their fields.
	Orphans map[types.NamespacedName]bool
	// Apart are the tenant's objects that never cross or that the policy leaves out, Others the objects on the host that
	// are no mirrors in their places; metadata alone.
	Apart, Others []*unstructured.Unstructured
}

// NewSurvey is a survey of a kind; nil where metadata alone tells nothing, and all is to be read.
//
//	recording off, or no history of the kind   | nothing to compare with
//	Node, and Pods where the policy has Node   | where Pods run is in their content
//	the terms have changed                     | what the mirrors have of them is content
func NewSurvey(in Input, snapshot KindSnapshot) *Survey {
	group := snapshot.GroupKind()
	rules, err := rulesOf(snapshot.Resource)
	_, runs := kinds.For(group).(kinds.Runs)
	known := in.History.Get(record.Key{Group: group.Group, Kind: group.Kind})
	expected := in.History.Count(group.Group, group.Kind)
	switch {
	case err != nil, !in.Recording, expected == 0, snapshot.Retired, kinds.IsNode(group):
		return nil
	case runs && slices.ContainsFunc(in.Snapshot.Kinds, func(k KindSnapshot) bool { return kinds.IsNode(k.GroupKind()) }):
		return nil
	case !sameTerms(known, in.terms(kinds.For(group), snapshot.Resource)):
		return nil
	}
	s := &Survey{in: &in, kind: kinds.With(group, rules), group: group, runs: runs, expected: expected, tokens: map[string]TokenSecret{}}
	for _, secret := range snapshot.Tokens {
		s.tokens[secret.Name] = secret
	}
	s.Restart(record.Tenant)
	s.Restart(record.Host)
	return s
}

// Restart forgets what was told of a side, whose list begins anew.
func (s *Survey) Restart(side record.Side) {
	seen, rest := make(map[types.NamespacedName]bool, s.expected), map[types.NamespacedName]*unstructured.Unstructured{}
	if side == record.Tenant {
		s.tenant, s.apart = seen, rest
		return
	}
	s.host, s.others = seen, rest
}

// See is told of one object. Again says that it was told of it before, and nothing comes of that.
func (s *Survey) See(side record.Side, object metav1.Object) (again bool) {
	if side == record.Host {
		return s.seeHost(object)
	}
	if !kinds.Crosses(s.kind, object) {
		return s.keep(s.apart, object)
	}
	name := nameOf(object)
	known := s.agreement(name)
	return tell(s.tenant, name, known != nil && asItWas(record.Tenant, object, known))
}

func (s *Survey) seeHost(object metav1.Object) (again bool) {
	name, owned := s.in.Mapping.Identify(s.kind, s.group.Kind, object)
	if owned != kinds.Ours {
		return s.keep(s.others, object)
	}
	known := s.agreement(name)
	return tell(s.host, name, known != nil && asItWas(record.Host, object, known) &&
		s.in.Mapping.Stamped(object, partialOf(known.Tenant.UID)) && s.provided(object))
}

func tell(seen map[types.NamespacedName]bool, pair types.NamespacedName, asItWas bool) (again bool) {
	if _, again = seen[pair]; !again {
		seen[pair] = asItWas
	}
	return again
}

func (s *Survey) keep(rest map[types.NamespacedName]*unstructured.Unstructured, object metav1.Object) (again bool) {
	name := nameOf(object)
	if _, again = rest[name]; !again {
		rest[name] = s.partial(object)
	}
	return again
}

func nameOf(object metav1.Object) types.NamespacedName {
	return types.NamespacedName{Namespace: object.GetNamespace(), Name: object.GetName()}
}

// agreement is the last one of a pair that nothing is open about.
func (s *Survey) agreement(name types.NamespacedName) *record.Baseline {
	state := s.in.History.Get(record.Key{Group: s.group.Group, Kind: s.group.Kind, Namespace: name.Namespace, Name: name.Name})
	if state.Intent != nil || state.Standing != nil {
		return nil
	}
	return state.Baseline
}

func asItWas(side record.Side, object metav1.Object, known *record.Baseline) bool {
	return untouched(side, object, known) && !known.Of(side).Hash.IsZero() && object.GetDeletionTimestamp() == nil
}

// provided says whether a mirror has the tokens that it mounts, with time left.
func (s *Survey) provided(mirror metav1.Object) bool {
	name := mirror.GetAnnotations()[kinds.AnnotationTokens]
	if !s.runs || name == "" {
		return true
	}
	secret, found := s.tokens[name]
	return found && secret.Owner == mirror.GetUID() && s.in.Now.Before(secret.RenewAfter)
}

// partial keeps of an object what tells whether it crosses, and whose it is.
func (s *Survey) partial(object metav1.Object) *unstructured.Unstructured {
	metadata := map[string]any{"name": object.GetName()}
	if namespace := object.GetNamespace(); namespace != "" {
		metadata["namespace"] = namespace
	}
	for field, texts := range map[string]map[string]string{"labels": object.GetLabels(), "annotations": object.GetAnnotations()} {
		if len(texts) > 0 {
			values := make(map[string]any, len(texts))
			for key, text := range texts {
				values[key] = text
			}
			metadata[field] = values
		}
	}
	return &unstructured.Unstructured{Object: kinds.Content{"metadata": metadata}}
}

func partialOf(uid types.UID) metav1.Object { return &metav1.ObjectMeta{UID: uid} }

// Result sorts what was told, and ends the survey.
func (s *Survey) Result() Surveyed {
	found := Surveyed{
		Quiet: s.tenant, Orphans: map[types.NamespacedName]bool{},
		Apart: slices.Collect(maps.Values(s.apart)), Others: slices.Collect(maps.Values(s.others)),
	}
	for name, mirrorAsItWas := range s.host {
		tenantAsItWas, there := s.tenant[name]
		if mirrorAsItWas && tenantAsItWas {
			continue
		}
		mirror := s.in.mirror(s.kind, name)
		found.Host = append(found.Host, mirror)
		if mirrorAsItWas && !there {
			found.Orphans[mirror] = true
		}
	}
	for name, asItWas := range s.tenant {
		if !asItWas || !s.host[name] {
			delete(s.tenant, name)
			found.Tenant = append(found.Tenant, name)
		}
	}
	return found
}

// mirror is where the mirror of an object is.
func (in *Input) mirror(kind kinds.Kind, name types.NamespacedName) types.NamespacedName {
	return types.NamespacedName{Namespace: in.Mapping.HostNamespace, Name: in.Mapping.MirrorName(kind, name.Namespace, name.Name)}
}

// Disturbed are quiet pairs whose content a plan needs all the same, and Secrets that may be there though no list of
// what crosses has them, since something that is read refers to them: Pods are made with the addresses of Services and
// the keys of what their environment is filled from, and messages name what is missing.
type Disturbed struct {
	// Kind is the index of the kind in the snapshot.
	Kind         int
	Tenant, Host []types.NamespacedName
}

// Disturb names what else of a snapshot has to be read.
func Disturb(in Input) []Disturbed {
	c := &computation{Input: in}
	c.govern()
	named := map[schema.GroupKind]map[types.NamespacedName]bool{{Kind: "Secret"}: {}, {Kind: "ConfigMap"}: {}}
	populated := map[string]bool{} // namespaces in which Pods may be made
	for _, snapshot := range c.Snapshot.Kinds {
		_, runs := snapshot.kind.(kinds.Runs)
		for _, object := range snapshot.Tenant {
			if runs {
				populated[object.GetNamespace()] = true
			}
			for _, referral := range kinds.Referred(snapshot.kind, object) {
				if names := named[referral.Kind]; names != nil {
					names[types.NamespacedName{Namespace: object.GetNamespace(), Name: referral.Name}] = true
				}
			}
		}
	}
	var all []Disturbed
	for i, snapshot := range c.Snapshot.Kinds {
		if snapshot.Quiet == nil || snapshot.Unavailable != "" {
			continue // it was read as a whole
		}
		found := Disturbed{Kind: i}
		for name := range snapshot.Quiet {
			if named[snapshot.GroupKind()][name] || snapshot.GroupKind() == (schema.GroupKind{Kind: "Service"}) && populated[name.Namespace] {
				found.Tenant, found.Host = append(found.Tenant, name), append(found.Host, c.mirror(snapshot.kind, name))
			}
		}
		if snapshot.GroupKind() == (schema.GroupKind{Kind: "Secret"}) {
			found.Tenant = append(found.Tenant, unlisted(snapshot, named[snapshot.GroupKind()])...)
		}
		if len(found.Tenant) > 0 {
			all = append(all, found)
		}
	}
	return all
}

// unlisted are those of the named objects that a snapshot does not have.
func unlisted(snapshot KindSnapshot, named map[types.NamespacedName]bool) []types.NamespacedName {
	there := map[types.NamespacedName]bool{}
	for _, object := range snapshot.Tenant {
		there[nameOf(object)] = true
	}
	var found []types.NamespacedName
	for name := range named {
		if !snapshot.Quiet[name] && !there[name] {
			found = append(found, name)
		}
	}
	return found
}

// terms are what the policy says about references in a kind, and the surroundings that what runs was made for, as history
// keeps them; zero where there is nothing of either. Where they change, every mirror is looked at once.
func (in *Input) terms(kind kinds.Kind, resource policy.Resource) record.Hash {
	terms := map[string]any{}
	if len(resource.References) > 0 {
		listed := make([]any, len(resource.References))
		for i, reference := range resource.References {
			listed[i] = map[string]any{"path": reference.Path, "kind": reference.GroupKind().String()}
		}
		terms["references"] = listed
	}
	if _, runs := kind.(kinds.Runs); runs {
		found := in.Mapping.Workloads
		terms["workloads"] = map[string]any{"host": found.APIHost, "port": found.APIPort, "level": found.PodSecurity.Level()}
	}
	if len(terms) == 0 {
		return record.Hash{}
	}
	return in.Hasher.Hash(terms)
}

// sameTerms says whether history knows these terms.
func sameTerms(known record.State, terms record.Hash) bool {
	if known.Baseline == nil {
		return terms.IsZero()
	}
	return known.Baseline.Tenant.Hash == terms
}

// Settled says whether there is nothing left to do about a pair as it was just written: it has its marks and all that it
// is owed, and its status is reported. Where there is, the next pass has to look at it whatever its resourceVersion says.
func Settled(m kinds.Mapping, kind kinds.Kind, tenant, host *unstructured.Unstructured) bool {
	p := &pair{kind: kind, tenant: tenant, host: host}
	c := &computation{Input: Input{Mapping: m}}
	partial, ok := kind.(kinds.Partial)
	return c.stamped(p) && c.status(p) == nil && !(ok && partial.Owed(tenant, host))
}
