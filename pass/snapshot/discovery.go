package snapshot

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/rest"

	"github.com/syncpass/syncpass/record"
)

// served is what one API server serves.
type served struct {
	kinds map[schema.GroupVersionKind]metav1.APIResource
	// failed are the group versions that the server could not tell about, with the cause: what they serve is unknown.
	failed map[schema.GroupVersion]error
}

// askedAlone is how many group versions are asked for one by one. All that a server serves comes in two requests as well,
// where it has aggregated discovery, but in a hundred times the bytes.
const askedAlone = 2

// discover asks a server what it serves of some group versions, or of all where they are many. A broken aggregated API
// spoils only its own group.
func discover(ctx context.Context, client discovery.DiscoveryInterface, versions []schema.GroupVersion) (served, error) {
	if len(versions) > askedAlone {
		return discoverAll(ctx, client)
	}
	found := newServed()
	for _, version := range versions {
		list, err := servedOf(ctx, client.RESTClient(), version)
		var answer apierrors.APIStatus
		switch {
		case err == nil:
			found.add(version, list)
		case apierrors.IsNotFound(err):
		case apierrors.IsUnauthorized(err), apierrors.IsForbidden(err):
			return served{}, fmt.Errorf("asking which kinds of %s it serves: %w", version, err)
		case errors.As(err, &answer), errors.Is(err, errNoResources):
			found.failed[version] = err
		default:
			return served{}, fmt.Errorf("asking which kinds of %s it serves: %w", version, err)
		}
	}
	return found, nil
}

// errNoResources marks an answer that does not tell what is served.
var errNoResources = errors.New("the answer is no list of resources")

// servedOf asks for one group version. What comes back is checked, so that a connection that broke is told from an API
// that answers with something else.
func servedOf(ctx context.Context, client rest.Interface, version schema.GroupVersion) (*metav1.APIResourceList, error) {
	answer := client.Get().AbsPath(groupVersionPath(version)...).SetHeader("Accept", "application/json").Do(ctx)
	if err := answer.Error(); err != nil {
		return nil, err
	}
	body, err := answer.Raw()
	if err != nil {
		return nil, err
	}
	list := &metav1.APIResourceList{}
	if err := json.Unmarshal(body, list); err != nil {
		return nil, fmt.Errorf("%w: %w", errNoResources, err)
	}
	if list.Kind != "APIResourceList" || list.GroupVersion != version.String() {
		return nil, fmt.Errorf("%w of %s: it is a %q of %q", errNoResources, version, clip(list.Kind), clip(list.GroupVersion))
	}
	return list, nil
}

// groupVersionPath is where a group version is served.
func groupVersionPath(version schema.GroupVersion) []string {
	if version.Group == "" {
		return []string{"api", version.Version}
	}
	return []string{"apis", version.Group, version.Version}
}

func newServed() served {
	return served{kinds: map[schema.GroupVersionKind]metav1.APIResource{}, failed: map[schema.GroupVersion]error{}}
}

func (s served) add(version schema.GroupVersion, list *metav1.APIResourceList) {
	for _, resource := range list.APIResources {
		if !strings.Contains(resource.Name, "/") {
			s.kinds[version.WithKind(resource.Kind)] = resource
		}
	}
}

func discoverAll(ctx context.Context, client discovery.DiscoveryInterface) (served, error) {
	_, lists, err := discovery.ToDiscoveryInterfaceWithContext(client).ServerGroupsAndResourcesWithContext(ctx)
	found := newServed()
	var partly *discovery.ErrGroupDiscoveryFailed
	switch {
	case errors.As(err, &partly):
		found.failed = partly.Groups
	case err != nil:
		return served{}, fmt.Errorf("asking which kinds it serves: %w", err)
	}
	for _, list := range lists {
		version, err := schema.ParseGroupVersion(list.GroupVersion)
		if err != nil {
			continue
		}
		found.add(version, list)
	}
	return found, nil
}

// resource finds how a kind is served, or says why it cannot be synced.
func (s served) resource(side string, kind schema.GroupVersionKind) (schema.GroupVersionResource, string) {
	found, ok := s.kinds[kind]
	cause, failed := s.failed[kind.GroupVersion()]
	switch {
	case failed && !ok:
		return schema.GroupVersionResource{}, fmt.Sprintf("the %s could not tell what %s serves: %s", side, kind.GroupVersion(), record.Plain(cause.Error(), record.MaxCause))
	case !ok:
		return schema.GroupVersionResource{}, fmt.Sprintf("the %s does not serve %s %s", side, kind.GroupVersion(), kind.Kind)
	case !found.Namespaced && kind != nodeKind:
		return schema.GroupVersionResource{}, fmt.Sprintf("%s %s is cluster-scoped on the %s, and only namespaced kinds cross", kind.GroupVersion(), kind.Kind, side)
	case !slices.Contains(found.Verbs, "list"):
		return schema.GroupVersionResource{}, fmt.Sprintf("the %s does not let %s %s be listed", side, kind.GroupVersion(), kind.Kind)
	}
	return kind.GroupVersion().WithResource(found.Name), ""
}

// versionOf is a served version of a kind, for one that is known without its version.
func (s served) versionOf(kind schema.GroupKind) (schema.GroupVersionKind, bool) {
	versions := slices.SortedFunc(maps.Keys(s.kinds), func(a, b schema.GroupVersionKind) int {
		return strings.Compare(a.Version, b.Version)
	})
	for _, candidate := range versions {
		if candidate.GroupKind() == kind {
			return candidate, true
		}
	}
	return schema.GroupVersionKind{}, false
}
