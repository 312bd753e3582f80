package snapshot

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/syncpass/syncpass/pass/access"
	"github.com/syncpass/syncpass/record"
)

// maxNames is how many objects Names lists: what a shell can offer a person, in one page.
const maxNames = 500

// Names lists the tenant's objects of a kind as namespace/name, in the order in which the API server has them, and no more
// than a shell can offer. It reads their metadata alone. Asked is the kind's name, its resource's or a short one of it, in either case.
func Names(ctx context.Context, tenant *access.Cluster, kinds []schema.GroupVersionKind, asked string) ([]string, error) {
	for _, kind := range kinds {
		served, err := servedOf(ctx, tenant.Discovery().RESTClient(), kind.GroupVersion())
		if err != nil {
			return nil, fmt.Errorf("asking the tenant what %s serves: %w", kind.GroupVersion(), err)
		}
		for _, resource := range served.APIResources {
			isAsked := slices.ContainsFunc(append(resource.ShortNames, kind.Kind, resource.Name), func(name string) bool { return strings.EqualFold(asked, name) })
			if resource.Kind == kind.Kind && resource.Namespaced && !strings.Contains(resource.Name, "/") && isAsked {
				return names(ctx, tenant, kind.GroupVersion().WithResource(resource.Name))
			}
		}
	}
	return nil, fmt.Errorf("the policy has no kind %q", asked)
}

func names(ctx context.Context, tenant *access.Cluster, resource schema.GroupVersionResource) ([]string, error) {
	request := tenant.Discovery().RESTClient().Get().AbsPath(collection{resource: resource}.path()).
		Param("limit", strconv.Itoa(maxNames)).
		SetHeader("Accept", acceptMetadata)
	found := []string{}
	page := metadataPage{
		begin: func(metav1.ListMeta) {},
		each: func(item *metav1.PartialObjectMetadata) error {
			// What does not print is no name, and a shell would print it.
			if name := item.Namespace + "/" + item.Name; record.Plain(name, record.MaxMessage) == name {
				found = append(found, name)
			}
			return nil
		},
	}
	if err := page.ask(ctx, request); err != nil {
		return nil, fmt.Errorf("listing %s in the tenant: %w", resource.Resource, err)
	}
	return found, nil
}
