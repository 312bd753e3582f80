package snapshot

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/discovery"

	"github.com/syncpass/syncpass/record"
)

// served is what one API server serves.
type served struct {
	kinds map[schema.GroupVersionKind]metav1.APIResource
	// failed are the group versions that the server could not tell about, with the cause: what they serve is unknown.
	failed map[schema.GroupVersion]error
}

// discover asks a server for all that it serves, in two requests where it has aggregated discovery. A broken aggregated
// API spoils only its own group.
func discover(ctx context.Context, client discovery.DiscoveryInterface) (served, error) {
	_, lists, err := discovery.ToDiscoveryInterfaceWithContext(client).ServerGroupsAndResourcesWithContext(ctx)
	found := served{kinds: map[schema.GroupVersionKind]metav1.APIResource{}, failed: map[schema.GroupVersion]error{}}
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
		for _, resource := range list.APIResources {
			if !strings.Contains(resource.Name, "/") {
				found.kinds[version.WithKind(resource.Kind)] = resource
			}
		}
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
