package scenario

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"golang.org/x/sync/errgroup"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/discovery"
)

// cleanWithin is how long the cleaning of both sides may take. Finalizers are
// stripped and grace periods cut short, so that nothing in it waits for long; but
// there may be thousands of objects, and other tests that keep the machine busy.
const cleanWithin = 2 * time.Minute

// inFlight is how many requests of a cleaning are under way on one side.
const inFlight = 8

var (
	namespaces = schema.GroupVersionResource{Version: "v1", Resource: "namespaces"}
	crds       = schema.GroupVersionResource{Group: "apiextensions.k8s.io", Version: "v1", Resource: "customresourcedefinitions"}
	noGrace    = metav1.DeleteOptions{GracePeriodSeconds: new(int64)}
)

// leftAlone says whether an object is one that every cluster makes for itself, in
// a namespace that stays.
func leftAlone(resource schema.GroupResource, namespace, name string) bool {
	switch resource.String() {
	case "configmaps":
		return name == "kube-root-ca.crt"
	case "serviceaccounts":
		return name == "default"
	case "services", "endpoints", "endpointslices.discovery.k8s.io":
		return namespace == metav1.NamespaceDefault && name == "kubernetes"
	}
	return false
}

// clean empties every namespace but the system's, removes those that are not in
// keep, and then removes the cluster-scoped objects. Finalizers are stripped.
func (s *side) clean(ctx context.Context, keep []string, clusterScoped []Ref) error {
	ctx, cancel := context.WithTimeout(ctx, cleanWithin)
	defer cancel()
	s.mapper.Reset()
	resources, err := s.namespacedResources()
	if err != nil {
		return err
	}
	var left []string
	err = wait.PollUntilContextCancel(ctx, 20*time.Millisecond, true, func(ctx context.Context) (bool, error) {
		left, err = s.cleanOnce(ctx, resources, keep)
		return len(left) == 0, err
	})
	if err == nil {
		left, err = names(clusterScoped), s.removeClusterScoped(ctx, clusterScoped)
	}
	if wait.Interrupted(err) {
		err = fmt.Errorf("still there: %s: %w", strings.Join(left, ", "), err)
	}
	if err != nil {
		return fmt.Errorf("cleaning the %s: %w", s.name, err)
	}
	return nil
}

func names(refs []Ref) []string {
	var all []string
	for _, ref := range refs {
		all = append(all, ref.String())
	}
	return all
}

// namespacedResources are those that can be listed and deleted, each in one version.
func (s *side) namespacedResources() ([]schema.GroupVersionResource, error) {
	lists, err := discovery.ServerPreferredNamespacedResources(s.discovery)
	if err != nil {
		return nil, fmt.Errorf("discovering resources: %w", err)
	}
	lists = discovery.FilteredBy(discovery.SupportsAllVerbs{Verbs: []string{"list", "delete"}}, lists)
	found, err := discovery.GroupVersionResources(lists)
	if err != nil {
		return nil, err
	}
	var resources []schema.GroupVersionResource
	for resource := range found {
		// The same Events are served as core/v1.
		if resource.Group != "events.k8s.io" {
			resources = append(resources, resource)
		}
	}
	slices.SortFunc(resources, func(a, b schema.GroupVersionResource) int { return strings.Compare(a.String(), b.String()) })
	return resources, nil
}

// cleanOnce deletes what is there now and says what that was.
func (s *side) cleanOnce(ctx context.Context, resources []schema.GroupVersionResource, keep []string) (left []string, err error) {
	list, err := s.objects.Resource(namespaces).List(ctx, metav1.ListOptions{})
	if err != nil {
		return nil, err
	}
	// stays: whether a namespace is emptied only. Namespaces that are not in it are
	// the system's.
	stays := map[string]bool{}
	var doomed []unstructured.Unstructured
	for _, namespace := range list.Items {
		switch name := namespace.GetName(); {
		case slices.Contains(s.system, name):
		case slices.Contains(keep, name) && namespace.GetDeletionTimestamp() == nil:
			stays[name] = true
		default:
			stays[name] = false
			doomed = append(doomed, namespace)
			left = append(left, "Namespace "+name)
		}
	}
	for _, namespace := range doomed {
		if err := s.remove(ctx, namespaces, &namespace); err != nil {
			return nil, err
		}
	}
	objects, err := s.deleteObjects(ctx, resources, stays)
	if err != nil {
		return nil, err
	}
	if len(objects) > 0 {
		return append(left, objects...), nil
	}
	// The namespaces are empty and take nothing new: there is no need to wait for
	// the namespace controller to find that out.
	for _, namespace := range doomed {
		if err := s.finalize(ctx, namespace.GetName()); err != nil {
			return nil, err
		}
	}
	return left, nil
}

// deleteObjects deletes what is in the namespaces now and says what that was.
func (s *side) deleteObjects(ctx context.Context, resources []schema.GroupVersionResource, stays map[string]bool) ([]string, error) {
	left := make([][]string, len(resources))
	var group errgroup.Group
	group.SetLimit(inFlight)
	for i, resource := range resources {
		group.Go(func() error {
			list, err := s.metadata.Resource(resource).List(ctx, metav1.ListOptions{})
			if apierrors.IsNotFound(err) || apierrors.IsMethodNotSupported(err) {
				return nil // the kind is gone since it was discovered
			}
			if err != nil {
				return fmt.Errorf("listing %s: %w", resource.Resource, err)
			}
			var removals errgroup.Group
			removals.SetLimit(inFlight)
			for _, item := range list.Items {
				onlyEmptied, ours := stays[item.Namespace]
				if !ours || onlyEmptied && leftAlone(resource.GroupResource(), item.Namespace, item.Name) {
					continue
				}
				left[i] = append(left[i], resource.Resource+" "+item.Namespace+"/"+item.Name)
				removals.Go(func() error { return s.remove(ctx, resource, &item) })
			}
			return removals.Wait()
		})
	}
	err := group.Wait()
	return slices.Concat(left...), err
}

// remove deletes an object and strips its finalizers. One that is gone, or that
// changes under our hands, is left to the next look.
func (s *side) remove(ctx context.Context, resource schema.GroupVersionResource, object metav1.Object) error {
	way := s.metadata.Resource(resource).Namespace(object.GetNamespace())
	var err error
	if object.GetDeletionTimestamp() == nil {
		err = way.Delete(ctx, object.GetName(), noGrace)
	}
	if err == nil && len(object.GetFinalizers()) > 0 {
		_, err = way.Patch(ctx, object.GetName(), types.MergePatchType, []byte(`{"metadata":{"finalizers":null}}`), metav1.PatchOptions{})
	}
	if err != nil && !apierrors.IsNotFound(err) && !apierrors.IsConflict(err) {
		return fmt.Errorf("removing %s %s/%s: %w", resource.Resource, object.GetNamespace(), object.GetName(), err)
	}
	return nil
}

// finalize lets an empty, terminating namespace go.
func (s *side) finalize(ctx context.Context, name string) error {
	now, err := s.objects.Resource(namespaces).Get(ctx, name, metav1.GetOptions{})
	if err == nil && now.GetDeletionTimestamp() != nil {
		unstructured.RemoveNestedField(now.Object, "spec", "finalizers")
		_, err = s.objects.Resource(namespaces).Update(ctx, now, metav1.UpdateOptions{}, "finalize")
	}
	if err != nil && !apierrors.IsNotFound(err) && !apierrors.IsConflict(err) {
		return fmt.Errorf("finalizing namespace %s: %w", name, err)
	}
	return nil
}

// removeClusterScoped removes objects and waits until they are gone.
func (s *side) removeClusterScoped(ctx context.Context, refs []Ref) error {
	return wait.PollUntilContextCancel(ctx, 20*time.Millisecond, true, func(ctx context.Context) (bool, error) {
		gone := true
		for _, ref := range refs {
			object, err := s.get(ctx, ref)
			if err != nil {
				return false, err
			}
			if object == nil {
				continue
			}
			gone = false
			kind := object.GroupVersionKind()
			mapping, err := s.mapper.RESTMapping(kind.GroupKind(), kind.Version)
			if err != nil {
				return false, err
			}
			if mapping.Resource == crds {
				// Its finalizer deletes its objects, and is no file's.
				object.SetFinalizers(nil)
			}
			if err := s.remove(ctx, mapping.Resource, object); err != nil {
				return false, err
			}
		}
		return gone, nil
	})
}
