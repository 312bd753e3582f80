package pass

import (
	"cmp"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/syncpass/syncpass/pass/kinds"
	"github.com/syncpass/syncpass/pass/plan"
	"github.com/syncpass/syncpass/record"
)

// unstated is the uid and the resourceVersion of an object that was written by hand, where nothing tells another. It is none
// that an API server gives.
const unstated = "unknown"

// adopt gives objects that somebody wrote or edited by hand the uid and resourceVersion that go with that: a manifest, which
// has neither, is about the object of its name and not about another one; and an object that was edited in its file keeps
// its resourceVersion there, which no longer says what is in it.
func (r *offline) adopt() {
	mirrors := map[record.Key]*unstructured.Unstructured{}
	for _, object := range r.files.Host.All() {
		annotations := object.GetAnnotations()
		if name := annotations[kinds.AnnotationVirtualName]; name != "" && object.GetNamespace() == r.Namespace {
			key := keyOf(object.GroupVersionKind(), annotations[kinds.AnnotationVirtualNamespace], name)
			mirrors[key] = object.Unstructured
			r.identify(key, record.Host, object.Unstructured, "")
			continue
		}
		r.identify(record.Key{}, record.Host, object.Unstructured, "")
	}
	for _, object := range r.files.Tenant.All() {
		key := keyOf(object.GroupVersionKind(), object.GetNamespace(), object.GetName())
		marked := ""
		if mirror := mirrors[key]; mirror != nil {
			marked = mirror.GetAnnotations()[kinds.AnnotationVirtualUID]
		}
		r.identify(key, record.Tenant, object.Unstructured, marked)
	}
}

func keyOf(kind schema.GroupVersionKind, namespace, name string) record.Key {
	return record.Key{Group: kind.Group, Kind: kind.Kind, Namespace: namespace, Name: name}
}

// baseline is the last agreement of a pair, the zero one where none is known.
func (r *offline) baseline(key record.Key) record.Baseline {
	if r.loaded == nil {
		return record.Baseline{}
	}
	if known := r.loaded.History.Get(key).Baseline; known != nil {
		return *known
	}
	return record.Baseline{}
}

// identify gives one side of a pair the UID that its mirror or else the history names, unless it has one; and a
// resourceVersion that nothing is known of, if it has none or is not the content that it had with its own.
func (r *offline) identify(key record.Key, side record.Side, object *unstructured.Unstructured, marked string) {
	baseline := r.baseline(key)
	known := baseline.Of(side)
	if object.GetUID() == "" {
		object.SetUID(types.UID(cmp.Or(marked, string(known.UID), unstated)))
	}
	same := object.GetResourceVersion() == known.ResourceVersion
	if object.GetResourceVersion() == "" || same && !known.Hash.IsZero() && r.contentHash(key, side, object) != known.Hash {
		object.SetResourceVersion(unstated)
	}
}

// contentHash is the hash of an object's content; that of nothing where the object breaks its kind's rules.
func (r *offline) contentHash(key record.Key, side record.Side, object *unstructured.Unstructured) (hash record.Hash) {
	defer func() {
		if recover() != nil {
			hash = record.Hash{} // and the plan says what is wrong with it
		}
	}()
	return plan.Version(r.hasher, kinds.For(key.GroupKind()), side, object).Hash
}

// forgetUnkeyed forgets the history of the pairs that are on both sides. Its hashes say nothing without their key, and the
// resourceVersions say nothing of what was edited in the files; so a two-way pair that differs is held, and none that
// somebody edited passes for unchanged. Of a pair that lacks one side, the history still says which, and whether the other
// was touched.
func (r *offline) forgetUnkeyed(taken plan.Snapshot) {
	pairs := 0
	for i := range taken.Kinds {
		k := &taken.Kinds[i]
		kind, group := kinds.For(k.GroupKind()), k.GroupKind()
		mirrored := map[types.NamespacedName]bool{}
		for _, mirror := range k.Host {
			if id, owned := r.target.mapping.Identify(kind, group.Kind, mirror); owned == kinds.Ours {
				mirrored[id] = true
			}
		}
		for _, object := range k.Tenant {
			key := record.Key{Group: group.Group, Kind: group.Kind, Namespace: object.GetNamespace(), Name: object.GetName()}
			if mirrored[types.NamespacedName{Namespace: key.Namespace, Name: key.Name}] && r.recording.history.Get(key) != (record.State{}) {
				r.recording.history.Delete(key)
				pairs++
			}
		}
	}
	if pairs > 0 {
		r.Log.Warn("Pairs are judged without their history, which takes the tenant's credential to read; name its kubeconfig with --tenant-kubeconfig",
			"pairs", pairs, "cause", record.Plain(r.keyless, record.MaxCause))
	}
}
