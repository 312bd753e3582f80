package snapshot

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"strings"

	"golang.org/x/sync/errgroup"
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
	seen    map[types.NamespacedName]bool
	texts   texts
}

func newList() *list {
	return &list{malformed: map[types.NamespacedName]string{}, seen: map[types.NamespacedName]bool{}, texts: texts{}}
}

// collection is what there is of one kind on one side, in one namespace or (namespace empty) in all.
type collection struct {
	client    rest.Interface
	resource  schema.GroupVersionResource
	kind      string
	namespace string
	// fields is a selector, empty for all.
	fields string
	// only are the objects that are wanted, the others being read and dropped; nil for all.
	only map[types.NamespacedName]bool
	// left is what may still be read of the side.
	left *budget
	// forgets says of which objects it does not matter who set which field; nil for none.
	forgets func(*unstructured.Unstructured) bool
}

func (c collection) groupVersionKind() schema.GroupVersionKind {
	return c.resource.GroupVersion().WithKind(c.kind)
}

// spend takes an object off the budget.
func (c collection) spend(bytes int) error {
	if !c.left.take(int64(bytes) + objectBytes) {
		return c.tooMuch()
	}
	return nil
}

func (c collection) tooMuch() error {
	return fmt.Errorf("%w: %d MiB of the policy's kinds; narrow the policy by selector or namespaces, or bound the tenant by quota", errTooMuch, maxTenantBytes>>20)
}

// errNotAList marks an answer that is no list of the kind that was asked for.
var errNotAList = errors.New("the answer is no complete list of the kind")

// all lists the collection at the most recent version, page by page. A list whose snapshot expires between two pages (410)
// is begun anew: the token that comes with a 410 would continue with the tail of a newer state
// (https://kubernetes.io/docs/reference/using-api/api-concepts/#410-gone-responses). So is one of objects so large that a
// page of them is more than one answer may hold, with smaller pages. What is read is taken from the budget.
func (c collection) all(ctx context.Context) (list, error) {
	var found list
	err := restarting(pageSize, func(size int) (err error) {
		found, err = c.once(ctx, size)
		return err
	})
	return found, err
}

// restarting lists in pages of a size, and begins anew where that is of use.
func restarting(size int, once func(size int) error) error {
	for restart := 0; ; restart++ {
		err := once(size)
		switch {
		case restart == maxRestarts:
			return err
		case apierrors.IsResourceExpired(err):
		case errors.Is(err, access.ErrBodyTooLarge):
			size = max(size/10, 1)
		default:
			return err
		}
	}
}

// once lists the collection in pages of a size. A page is taken into the list while the next one is asked for.
func (c collection) once(ctx context.Context, size int) (_ list, err error) {
	found, spent := newList(), int64(0)
	taking, beside := errgroup.WithContext(ctx)
	read := make(chan items)
	taking.Go(func() error {
		for page := range read {
			for _, raw := range page {
				spent += int64(len(raw)) + objectBytes
				if err := c.spend(len(raw)); err != nil {
					return err
				}
				if err := found.add(raw, c); err != nil {
					return err
				}
			}
		}
		return nil
	})
	version := ""
	err = c.pages("application/json", size, func(request *rest.Request) (next string, err error) {
		answer := request.Do(beside)
		if err := answer.Error(); err != nil { // with the server's own words, which Raw leaves out
			return "", err
		}
		body, err := answer.Raw()
		if err != nil {
			return "", err
		}
		page, err := decodePage(body, c.groupVersionKind())
		if err != nil {
			return "", err
		}
		version = cmp.Or(version, page.Metadata.ResourceVersion)
		select {
		case read <- *page.Items:
			return page.Metadata.Continue, nil
		case <-beside.Done():
			return "", context.Cause(beside)
		}
	})
	close(read)
	if takeErr := taking.Wait(); takeErr != nil {
		err = takeErr // by which the next page was given up
	}
	if err != nil {
		c.left.take(-spent) // nothing of it is kept
		return list{}, err
	}
	found.version = version
	return *found, nil
}

// pages asks for the collection in answers of a size, one after the other. ask sends each request and reads its answer, and
// says by which token the list goes on; empty where that was all.
func (c collection) pages(accept string, size int, ask func(*rest.Request) (next string, err error)) error {
	token := ""
	for range maxPages {
		request := c.client.Get().AbsPath(c.path()).SetHeader("Accept", accept).
			Param("limit", strconv.Itoa(size)).Param("continue", token)
		if c.fields != "" {
			request.Param("fieldSelector", c.fields)
		}
		next, err := ask(request)
		switch {
		case err != nil || next == "":
			return err
		case next == token:
			return fmt.Errorf("%w: it continues with the same page for ever", errNotAList)
		}
		token = next
	}
	return fmt.Errorf("%w: it goes on after %d pages of %d objects", errNotAList, maxPages, size)
}

// path is the collection's URL path.
func (c collection) path() string {
	segments := groupVersionPath(c.resource.GroupVersion())
	if c.namespace != "" {
		segments = append(segments, "namespaces", c.namespace)
	}
	return "/" + strings.Join(append(segments, c.resource.Resource), "/")
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
func (l *list) add(raw json.RawMessage, c collection) error {
	content := map[string]any{}
	if err := utiljson.Unmarshal(raw, &content); err != nil {
		return fmt.Errorf("%w: an item cannot be read: %w", errNotAList, err)
	}
	object := &unstructured.Unstructured{Object: content}
	name := types.NamespacedName{Namespace: object.GetNamespace(), Name: object.GetName()}
	if err := c.misplaced(name); err != nil {
		return err
	}
	if l.seen[name] {
		return twice(name)
	}
	l.seen[name] = true
	if c.only != nil && !c.only[name] {
		return nil
	}
	if cause := malformed(object, c.groupVersionKind()); cause != "" {
		l.malformed[name] = cause
		return nil
	}
	object.SetGroupVersionKind(c.groupVersionKind())
	if c.forgets != nil && c.forgets(object) {
		dropFieldSets(object)
	}
	object.Object = l.texts.share(object.Object).(map[string]any)
	l.objects = append(l.objects, object)
	return nil
}

// dropFieldSets forgets who set which field, which is most of what an object takes in memory; who wrote when stays.
func dropFieldSets(object *unstructured.Unstructured) {
	entries, _, _ := unstructured.NestedFieldNoCopy(object.Object, "metadata", "managedFields")
	list, _ := entries.([]any)
	for _, entry := range list {
		if fields, ok := entry.(map[string]any); ok {
			delete(fields, "fieldsV1")
		}
	}
}

// misplaced says what is wrong with an item's name or place, which spoils the list.
func (c collection) misplaced(name types.NamespacedName) error {
	isNode := c.groupVersionKind() == nodeKind
	switch {
	case name.Name == "" || len(rest.IsValidPathSegmentName(name.Name)) > 0 || strings.ContainsFunc(name.Name, unnameable):
		return fmt.Errorf("%w: an item is named %q", errNotAList, clip(name.Name))
	case c.namespace != "" && name.Namespace == c.namespace: // it was asked for
	case isNode && name.Namespace != "", !isNode && len(utilvalidation.IsDNS1123Label(name.Namespace)) > 0:
		return fmt.Errorf("%w: item %q is in namespace %q", errNotAList, clip(name.Name), clip(name.Namespace))
	case c.namespace != "":
		return fmt.Errorf("%w: item %q is in namespace %q, asked was for %q", errNotAList, clip(name.Name), clip(name.Namespace), c.namespace)
	}
	return nil
}

// twice is what is wrong with a list that has an item two times.
func twice(name types.NamespacedName) error {
	return fmt.Errorf("%w: item %q is there twice", errNotAList, clip(name.String()))
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
