package snapshot

import (
	"context"
	"encoding/base64"
	"fmt"
	"slices"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/syncpass/syncpass/pass/kinds"
	"github.com/syncpass/syncpass/pass/plan"
	"github.com/syncpass/syncpass/record"
)

var (
	secretKind    = schema.GroupKind{Kind: "Secret"}
	namespaceKind = schema.GroupKind{Kind: "Namespace"}
	podKind       = schema.GroupKind{Kind: "Pod"}
)

// FileSides are both sides as files have them.
type FileSides struct {
	Host, Tenant *Files
	// Notes, after Take, are what was assumed, for people to read.
	Notes []string
}

// Take is the Take of both sides' files: what is in none of them is not there. It looks at no cluster, so Host and Tenant of
// the request are not asked.
func (s *FileSides) Take(_ context.Context, r Request) (plan.Snapshot, Resources, error) {
	s.Notes = nil
	host, assumed := s.Host.served(r.Resources)
	tenant, alsoAssumed := s.Tenant.served(r.Resources)
	for _, kind := range alsoAssumed {
		if !slices.Contains(assumed, kind) {
			assumed = append(assumed, kind)
		}
	}
	for _, kind := range assumed {
		s.note("%s %s is taken to be namespaced and served: no CustomResourceDefinition among the files says how", kind.GroupVersion(), kind.Kind)
	}
	taken := plan.Snapshot{}
	for _, namespace := range s.Tenant.Of(namespaceKind) {
		if namespace.GetName() == metav1.NamespaceSystem {
			taken.TenantUID = string(namespace.GetUID())
		}
	}
	var resources Resources
	taken.Kinds, resources = kindsOf(r, host, tenant)
	for i := range taken.Kinds {
		if k := &taken.Kinds[i]; k.Unavailable == "" {
			s.readKind(r, k)
		}
	}
	s.readNodes(r, taken.Kinds)
	s.noteManagers(r, taken.Kinds)
	return taken, resources, nil
}

func (s *FileSides) note(format string, args ...any) {
	s.Notes = append(s.Notes, fmt.Sprintf(format, args...))
}

// readKind takes the objects of a kind.
func (s *FileSides) readKind(r Request, k *plan.KindSnapshot) {
	if mirrors := s.Host.Of(k.GroupKind()); k.Retired && len(mirrors) > 0 {
		k.Resource.APIVersion = mirrors[0].GetAPIVersion() // no policy names one
	}
	version := schema.FromAPIVersionAndKind(k.Resource.APIVersion, k.Resource.Kind)
	if !isNode(k) {
		mirrors, err := s.Host.list(version, r.Namespace)
		if err != nil {
			unlisted(k, record.Host, err)
			return
		}
		for name, cause := range mirrors.malformed {
			unlisted(k, record.Host, fmt.Errorf("object %s: %s", name, cause))
			return
		}
		k.Host = mirrors.objects
		if k.Retired {
			return
		}
	}
	objects, err := s.Tenant.list(version, "")
	if err != nil {
		unlisted(k, record.Tenant, err)
		return
	}
	k.Tenant, k.Malformed = objects.objects, objects.malformed
	if len(k.Host) > 0 && len(k.Tenant)+len(k.Malformed) == 0 {
		s.note("the tenant's files have no %s, and the host's have: it is taken that the tenant has none; if the files leave them out, add them", version.Kind)
	}
	if version.GroupKind() == podKind {
		k.Tokens = s.tokens(r)
	}
}

// noteManagers says that nobody can tell which labels and annotations of mirrors are whose, where that is so.
func (s *FileSides) noteManagers(r Request, all []plan.KindSnapshot) {
	for i := range all {
		kind := kinds.For(all[i].GroupKind())
		for _, mirror := range all[i].Host {
			_, owned := r.Mapping.Identify(kind, all[i].Resource.Kind, mirror)
			if _, told, _ := unstructured.NestedFieldNoCopy(mirror.Object, "metadata", "managedFields"); owned == kinds.Ours && !told {
				s.note("mirrors among the host's files have no managedFields, which kubectl get prints with --show-managed-fields: labels and annotations that the tenant took away count as somebody else's on the host, and stay")
				return
			}
		}
	}
}

// unlisted makes a kind unavailable, in the words of a list that failed.
func unlisted(k *plan.KindSnapshot, side record.Side, err error) {
	k.Host, k.Tenant = nil, nil
	k.Unavailable = fmt.Sprintf("listing it on the %s failed", side)
	k.Error = record.Plain(err.Error(), record.MaxCause)
}

// list are the objects of a kind in one namespace or (namespace empty) in all.
func (f *Files) list(kind schema.GroupVersionKind, namespace string) (list, error) {
	found := newList()
	for _, object := range f.Of(kind.GroupKind()) {
		if namespace != "" && object.GetNamespace() != namespace {
			continue
		}
		if version := object.GroupVersionKind(); version != kind {
			return list{}, fmt.Errorf("%s: it is of apiVersion %s, and the policy names %s, which only an API server can turn it into; get it as that: kubectl get %s.%s.%s -o yaml",
				object.Where, version.GroupVersion(), kind.GroupVersion(), strings.ToLower(kind.Kind), kind.Version, kind.Group)
		}
		if cause := malformed(object.Unstructured, kind); cause != "" {
			found.malformed[object.key().name] = cause
			continue
		}
		found.objects = append(found.objects, object.Unstructured)
	}
	return *found, nil
}

// tokens are the Secrets with the tokens of the tenant's Pods.
func (s *FileSides) tokens(r Request) []plan.TokenSecret {
	selector, err := labels.Parse(r.Mapping.TokenSelector())
	if err != nil {
		selector = labels.Nothing() // the mapping makes no other than valid ones
	}
	var found []plan.TokenSecret
	secrets := 0
	for _, secret := range s.Host.Of(secretKind) {
		if secret.GetNamespace() != r.Namespace {
			continue
		}
		secrets++
		if selector.Matches(labels.Set(secret.GetLabels())) {
			found = append(found, tokenSecret(secret.GetName(), secret.GetAnnotations(), secret.GetOwnerReferences()))
		}
	}
	if secrets == 0 {
		s.note("the host's files have no Secrets: tokens that Pods mount count as missing there")
	}
	return found
}

// readNodes takes the nodes that mirrors of this tenant are on.
func (s *FileSides) readNodes(r Request, all []plan.KindSnapshot) {
	at := slices.IndexFunc(all, func(k plan.KindSnapshot) bool { return isNode(&k) })
	if at < 0 || all[at].Unavailable != "" || all[at].Retired {
		return
	}
	k := &all[at]
	pods, cause := podsOf(all)
	if k.Unavailable = cause; cause != "" {
		return
	}
	running := r.Mapping.NodesOf(pods)
	for _, node := range s.Host.Of(nodeKind.GroupKind()) {
		if slices.Contains(running, node.GetName()) {
			k.Host = append(k.Host, node.Unstructured)
		}
	}
}

// fold does with a Secret that somebody wrote what an API server does before anyone can read it.
func fold(object FileObject) {
	if object.GroupVersionKind().GroupKind() != secretKind {
		return
	}
	setDefault(object.Object, "type", "Opaque")
	texts, found, err := unstructured.NestedStringMap(object.Object, "stringData")
	if !found || err != nil {
		return
	}
	data, _ := object.Object["data"].(map[string]any)
	if data == nil {
		data = map[string]any{}
	}
	for name, text := range texts {
		data[name] = base64.StdEncoding.EncodeToString([]byte(text))
	}
	object.Object["data"] = data
	delete(object.Object, "stringData")
}

// tokenSecret is what a plan needs to know of a Secret with a Pod's tokens.
func tokenSecret(name string, annotations map[string]string, owners []metav1.OwnerReference) plan.TokenSecret {
	found := plan.TokenSecret{Name: name}
	// A time that cannot be read has passed: the tokens are renewed.
	found.RenewAfter, _ = time.Parse(time.RFC3339, annotations[kinds.AnnotationRenewAfter])
	if len(owners) == 1 {
		found.Owner = owners[0].UID
	}
	return found
}
