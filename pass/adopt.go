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

// unknown is the uid and the resourceVersion of an object that was written by hand, where nothing tells another. It is none
// that an API server gives.
const unknown = "unknown"

// adopt gives objects that somebody wrote by hand, and that have no uid and resourceVersion therefore, those that they have
// in the cluster by all that is known: a manifest is about the object of its name, and not about another one.
func (r *offline) adopt() {
	mirrors := map[record.Key]*unstructured.Unstructured{}
	for _, object := range r.files.Host.All() {
		annotations := object.GetAnnotations()
		if name := annotations[kinds.AnnotationVirtualName]; name != "" && object.GetNamespace() == r.Namespace {
			key := keyOf(object.GroupVersionKind(), annotations[kinds.AnnotationVirtualNamespace], name)
			mirrors[key] = object.Unstructured
			identify(object.Unstructured, string(r.baseline(key).Host.UID))
		}
		identify(object.Unstructured)
	}
	for _, object := range r.files.Tenant.All() {
		key := keyOf(object.GroupVersionKind(), object.GetNamespace(), object.GetName())
		marked := ""
		if mirror := mirrors[key]; mirror != nil {
			marked = mirror.GetAnnotations()[kinds.AnnotationVirtualUID]
		}
		identify(object.Unstructured, marked, string(r.baseline(key).Tenant.UID))
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

// identify gives an object the first of the UIDs that is one, unless it has its own.
func identify(object *unstructured.Unstructured, uids ...string) {
	if object.GetUID() == "" {
		object.SetUID(types.UID(cmp.Or(append(uids, unknown)...)))
	}
	if object.GetResourceVersion() == "" {
		object.SetResourceVersion(unknown)
	}
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
