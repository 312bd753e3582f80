package kinds

import (
	"cmp"
	"maps"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/syncpass/syncpass/record"
)

// Content is an object's content as nested maps: everything but apiVersion, kind, metadata and status.
type Content = map[string]any

// Kind is what syncpass knows about one kind. Generic answers every question for a kind without rules of its own;
// others embed it and answer some differently.
type Kind interface {
	// Group and Name are the API group and kind.
	Group() string
	Name() string
	// Weight orders writes: lower weights are created first and deleted last.
	Weight() Weight
	// ValidName returns what is wrong with the characters of a name of this kind; none means valid.
	ValidName(name string) []string
	// MaxNameLength is the longest name, in characters, that a mirror of this kind may have: at most 63, at least 52.
	MaxNameLength() int
	// Crosses says whether an object of this kind may cross at all; system objects and credentials of one side's own
	// control plane may not.
	Crosses(object Object) bool
	// Project completes a mirror that already has the tenant's content, without what the tenant owns, and the mirror's
	// metadata. host is the mirror as it stands, nil for a create; what the host owns is taken from it.
	Project(m Mapping, tenant, host, mirror *unstructured.Unstructured)
	// Reflect completes a tenant object that already has the host's content, without what the host owns, and the tenant
	// object's metadata. What the tenant owns is taken from tenant, the object as it stands.
	Reflect(m Mapping, host, tenant, object *unstructured.Unstructured)
	// Disown removes from one side's content what is that side's own (allocated or written by its control plane), so
	// that it is neither compared nor carried.
	Disown(side record.Side, content Content)
	// Immutable returns why the API does not let content become want by an update; empty means that it does.
	Immutable(content, want Content) string
	// Verbatim says that an API server stores this kind's content exactly as it was written, without defaults.
	Verbatim() bool
	// Rules are what the policy says about the kind.
	Rules() Rules
}

// Object is the part of an object's metadata, and its type where the kind has one, that decides whether it crosses.
type Object struct {
	Namespace, Name string
	// Type is a Secret's type.
	Type string
	// Labels and Annotations, by which controllers mark what they make themselves.
	Labels, Annotations map[string]string
}

// Crosses asks whether a tenant object crosses: whether its kind lets it, and the policy carries it.
func Crosses(kind Kind, object metav1.Object) bool {
	return kind.Rules().Carry(object) && MayCross(kind, object)
}

// MayCross asks a kind whether an object of it may cross, whatever the policy says. Of metadata alone nobody can tell a
// Secret's type: see CrossingFields.
func MayCross(kind Kind, object metav1.Object) bool {
	typeOf := ""
	if whole, ok := object.(*unstructured.Unstructured); ok {
		typeOf, _, _ = unstructured.NestedString(whole.Object, "type") // only Secrets have one, and it is a string
	}
	return kind.Crosses(Object{
		Namespace: object.GetNamespace(), Name: object.GetName(), Type: typeOf, Labels: object.GetLabels(), Annotations: object.GetAnnotations(),
	})
}

// Weight orders kinds: what others refer to comes first.
type Weight int

// The weights.
const (
	// Config and storage: what Pods refer to.
	Config Weight = iota
	// Network: Services, whose addresses Pods are given.
	Network
	// Dependent: every other kind, custom resources among them.
	Dependent
	// Workload: what runs.
	Workload
)

// For returns a kind of which no policy says anything: what counts for names, for one.
func For(gk schema.GroupKind) Kind { return With(gk, Rules{}) }

// With returns a kind under the rules of a policy.
func With(gk schema.GroupKind, rules Rules) Kind {
	generic := Generic{GroupKind: gk, rules: rules}
	if own, found := builtIn[gk]; found {
		return own(generic)
	}
	if path, found := templates[gk]; found {
		return templated{generic, path}
	}
	return generic
}

// builtIn are the kinds with rules of their own.
var builtIn = map[schema.GroupKind]func(Generic) Kind{
	{Kind: "ConfigMap"}:             func(g Generic) Kind { return configMap{g} },
	{Kind: "Secret"}:                func(g Generic) Kind { return secret{g} },
	{Kind: "Service"}:               func(g Generic) Kind { return service{g} },
	{Kind: "Pod"}:                   func(g Generic) Kind { return pod{g} },
	{Kind: "PersistentVolumeClaim"}: func(g Generic) Kind { return persistentVolumeClaim{g} },
	{Kind: "ServiceAccount"}:        func(g Generic) Kind { return serviceAccount{g} },
	{Kind: "Endpoints"}:             func(g Generic) Kind { return endpoints{g} },
	{Group: "discovery.k8s.io", Kind: "EndpointSlice"}:      func(g Generic) Kind { return endpointSlice{g} },
	{Group: "networking.k8s.io", Kind: "Ingress"}:           func(g Generic) Kind { return ingress{g} },
	{Group: "networking.k8s.io", Kind: "NetworkPolicy"}:     func(g Generic) Kind { return networkPolicy{g} },
	{Group: "policy", Kind: "PodDisruptionBudget"}:          func(g Generic) Kind { return podDisruptionBudget{g} },
	{Group: "batch", Kind: "Job"}:                           func(g Generic) Kind { return job{templated{g, templates[g.GroupKind]}} },
	{Group: "autoscaling", Kind: "HorizontalPodAutoscaler"}: func(g Generic) Kind { return horizontalPodAutoscaler{g} },
}

// BuiltIn are the kinds with rules of their own, sorted by group and kind.
func BuiltIn() []schema.GroupKind {
	all := slices.AppendSeq(slices.Collect(maps.Keys(builtIn)), maps.Keys(templates))
	slices.SortFunc(all, func(a, b schema.GroupKind) int {
		return cmp.Or(cmp.Compare(a.Group, b.Group), cmp.Compare(a.Kind, b.Kind))
	})
	return slices.Compact(all)
}
