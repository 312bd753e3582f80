package snapshot

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	utiljson "k8s.io/apimachinery/pkg/util/json"
	utilvalidation "k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/client-go/rest"

	"github.com/syncpass/syncpass/pass/access"
)

const (
	// pageSize bounds what one answer holds in memory.
	pageSize = 500
	// maxPages bounds a server that never ends a list: two million objects of a kind are past what etcd holds.
	maxPages = 4000
	// maxRestarts bounds how often a list is begun anew because its snapshot expired between two pages, or because its
	// pages were too large.
	maxRestarts = 3
)

// list is a complete list of one kind on one side.
type list struct {
	objects []*unstructured.Unstructured
	// malformed are the objects that break the rules of metadata, with the cause: they exist, and nothing more is known.
	malformed map[types.NamespacedName]string
	// version is the resourceVersion of the whole list.
	version string
}

// errNotAList marks an answer that is no list of the kind that was asked for.
var errNotAList = errors.New("the answer is no complete list of the kind")

// listAll lists a kind at the most recent version, page by page, in one namespace or (namespace empty) in all. A list
// whose snapshot expires between two pages (410) is begun anew: the token that comes with a 410 would continue with the
// tail of a newer state (https://kubernetes.io/docs/reference/using-api/api-concepts/#410-gone-responses). So is one of
// objects so large that a page of them is more than one answer may hold, with smaller pages. What is read is taken from
// left.
func listAll(ctx context.Context, client rest.Interface, resource schema.GroupVersionResource, kind, namespace string, left *budget) (list, error) {
	size := pageSize
	for restart := 0; ; restart++ {
		found, err := listOnce(ctx, client, resource, kind, namespace, size, left)
		switch {
		case restart == maxRestarts:
			return found, err
		case apierrors.IsResourceExpired(err):
		case errors.Is(err, access.ErrBodyTooLarge):
			size = max(size/10, 1)
		default:
			return found, err
		}
	}
}

func listOnce(ctx context.Context, client rest.Interface, resource schema.GroupVersionResource, kind, namespace string, size int, left *budget) (_ list, err error) {
	spent := int64(0)
	defer func() {
		if err != nil {
			left.take(-spent) // nothing of it is kept
		}
	}()
	found := list{malformed: map[types.NamespacedName]string{}}
	seen := map[types.NamespacedName]bool{}
	token := ""
	for range maxPages {
		answer := client.Get().AbsPath(path(resource, namespace)).
			SetHeader("Accept", "application/json").
			Param("limit", strconv.Itoa(size)).Param("continue", token).
			Do(ctx)
		if err := answer.Error(); err != nil { // with the server's own words, which Raw leaves out
			return list{}, err
		}
		body, err := answer.Raw()
		if err != nil {
			return list{}, err
		}
		page, err := decodePage(body, resource.GroupVersion().WithKind(kind))
		if err != nil {
			return list{}, err
		}
		if found.version == "" {
			found.version = page.Metadata.ResourceVersion
		}
		for _, raw := range *page.Items {
			cost := int64(len(raw)) + objectBytes
			spent += cost
			if !left.take(cost) {
				return list{}, fmt.Errorf("%w: %d MiB of the policy's kinds; narrow the policy by selector or namespaces, or bound the tenant by quota", errTooMuch, maxTenantBytes>>20)
			}
			if err := found.add(raw, resource.GroupVersion().WithKind(kind), namespace, seen); err != nil {
				return list{}, err
			}
		}
		if page.Metadata.Continue == "" {
			return found, nil
		}
		if page.Metadata.Continue == token {
			return list{}, fmt.Errorf("%w: it continues with the same page for ever", errNotAList)
		}
		token = page.Metadata.Continue
	}
	return list{}, fmt.Errorf("%w: it goes on after %d pages of %d objects", errNotAList, maxPages, size)
}

// path is a collection's URL path.
func path(resource schema.GroupVersionResource, namespace string) string {
	segments := []string{"apis", resource.Group, resource.Version}
	if resource.Group == "" {
		segments = []string{"api", resource.Version}
	}
	if namespace != "" {
		segments = append(segments, "namespaces", namespace)
	}
	return "/" + strings.Join(append(segments, resource.Resource), "/")
}

type page struct {
	APIVersion string `json:"apiVersion"`
	Kind       string `json:"kind"`
	Metadata   struct {
		ResourceVersion string `json:"resourceVersion"`
		Continue        string `json:"continue"`
	} `json:"metadata"`
	Items *items `json:"items"`
}

// decodePage takes nothing for a list that is none. client-go would take a Status, another kind's list, or
// `items: null` for an empty one, and an empty list deletes.
func decodePage(body []byte, kind schema.GroupVersionKind) (page, error) {
	var p page
	if err := json.Unmarshal(body, &p); err != nil {
		return page{}, fmt.Errorf("%w: %w", errNotAList, err)
	}
	switch {
	case p.APIVersion != kind.GroupVersion().String() || !strings.HasSuffix(p.Kind, "List"):
		return page{}, fmt.Errorf("%w: it is a %q of %q", errNotAList, clip(p.Kind), clip(p.APIVersion))
	case kind.Group == "" && p.Kind != kind.Kind+"List":
		return page{}, fmt.Errorf("%w: it is a %q", errNotAList, clip(p.Kind))
	case p.Metadata.ResourceVersion == "":
		return page{}, fmt.Errorf("%w: it has no resourceVersion", errNotAList)
	case p.Items == nil:
		return page{}, fmt.Errorf("%w: it has no items", errNotAList)
	}
	return p, nil
}

// add takes one item into the list. An item that does not even say what it is spoils the list; one whose metadata is
// otherwise malformed is kept by name.
func (l *list) add(raw json.RawMessage, kind schema.GroupVersionKind, namespace string, seen map[types.NamespacedName]bool) error {
	content := map[string]any{}
	if err := utiljson.Unmarshal(raw, &content); err != nil {
		return fmt.Errorf("%w: an item cannot be read: %w", errNotAList, err)
	}
	object := &unstructured.Unstructured{Object: content}
	name := types.NamespacedName{Namespace: object.GetNamespace(), Name: object.GetName()}
	switch {
	case name.Name == "" || len(rest.IsValidPathSegmentName(name.Name)) > 0 || strings.ContainsFunc(name.Name, unnameable):
		return fmt.Errorf("%w: an item is named %q", errNotAList, clip(name.Name))
	case kind == nodeKind && name.Namespace != "", kind != nodeKind && len(utilvalidation.IsDNS1123Label(name.Namespace)) > 0:
		return fmt.Errorf("%w: item %q is in namespace %q", errNotAList, clip(name.Name), clip(name.Namespace))
	case namespace != "" && name.Namespace != namespace:
		return fmt.Errorf("%w: item %q is in namespace %q, asked was for %q", errNotAList, clip(name.Name), clip(name.Namespace), namespace)
	case seen[name]:
		return fmt.Errorf("%w: item %q is there twice", errNotAList, clip(name.String()))
	}
	seen[name] = true
	if cause := malformed(object, kind); cause != "" {
		l.malformed[name] = cause
		return nil
	}
	object.SetGroupVersionKind(kind)
	l.objects = append(l.objects, object)
	return nil
}

// unnameable says that no API server lets a name have this character; it might end up on a terminal.
func unnameable(r rune) bool { return r <= ' ' || r >= 0x7f }

// malformed says what is wrong with an object's type or metadata. Unstructured's getters hide all of it.
func malformed(object *unstructured.Unstructured, kind schema.GroupVersionKind) string {
	if given := object.GetKind(); given != "" && given != kind.Kind {
		return fmt.Sprintf("it says that it is a %q", clip(given))
	}
	if object.GetUID() == "" || object.GetResourceVersion() == "" {
		return "it has no uid or no resourceVersion"
	}
	for _, field := range []string{"labels", "annotations"} {
		if _, _, err := unstructured.NestedStringMap(object.Object, "metadata", field); err != nil {
			return fmt.Sprintf("metadata.%s is no map of strings", field)
		}
	}
	if stamp, found, err := unstructured.NestedFieldNoCopy(object.Object, "metadata", "deletionTimestamp"); err != nil || found && stamp != nil && object.GetDeletionTimestamp() == nil {
		return "metadata.deletionTimestamp is no time"
	}
	return ""
}

// clip bounds what a server sends into a message.
func clip(text string) string {
	if len(text) > 100 {
		return text[:100] + "…"
	}
	return text
}
