package scenario

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/discovery/cached/memory"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/restmapper"
	"k8s.io/client-go/util/retry"
)

const (
	sideHost   = "host"
	sideTenant = "tenant"
)

// servedWithin is how long an apply waits for its kind to be served, and how soon
// the definition of a new kind takes effect.
const servedWithin = 10 * time.Second

// side is one of the two API servers, reached past its proxy and with every right.
type side struct {
	name string
	// system are the namespaces that are never touched.
	system    []string
	objects   dynamic.Interface
	metadata  metadata.Interface
	discovery discovery.CachedDiscoveryInterface
	mapper    meta.ResettableRESTMapper
}

func newSide(name string, config *rest.Config) (*side, error) {
	config = rest.CopyConfig(config)
	config.UserAgent = "scenario"
	config.WarningHandler = rest.NoWarnings{}
	objects, err := dynamic.NewForConfig(config)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	partial, err := metadata.NewForConfig(config)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	found, err := discovery.NewDiscoveryClientForConfig(config)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	cached := memory.NewMemCacheClient(found)
	return &side{name: name, objects: objects, metadata: partial, discovery: cached,
		mapper: restmapper.NewDeferredDiscoveryRESTMapper(cached)}, nil
}

// resource is the way to the objects of a reference's kind and namespace. A kind
// that is not served gives an error of meta.IsNoMatchError.
func (s *side) resource(ref Ref) (dynamic.ResourceInterface, error) {
	gv, err := schema.ParseGroupVersion(ref.APIVersion)
	if err != nil {
		return nil, err
	}
	kind := gv.WithKind(ref.Kind).GroupKind()
	mapping, err := s.mapper.RESTMapping(kind, gv.Version)
	if meta.IsNoMatchError(err) {
		s.mapper.Reset() // what was discovered may be older than the kind
		mapping, err = s.mapper.RESTMapping(kind, gv.Version)
	}
	if err != nil {
		return nil, err
	}
	if mapping.Scope.Name() == meta.RESTScopeNameRoot {
		if ref.Metadata.Namespace != "" {
			return nil, fmt.Errorf("%s: the kind is cluster-scoped and takes no metadata.namespace", ref)
		}
		return s.objects.Resource(mapping.Resource), nil
	}
	if ref.Metadata.Namespace == "" {
		return nil, fmt.Errorf("%s: the kind is namespaced: metadata.namespace is missing", ref)
	}
	return s.objects.Resource(mapping.Resource).Namespace(ref.Metadata.Namespace), nil
}

// get reads an object. One that does not exist is nil, and so is one whose kind is
// not served.
func (s *side) get(ctx context.Context, ref Ref) (*unstructured.Unstructured, error) {
	resource, err := s.resource(ref)
	if meta.IsNoMatchError(err) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	object, err := resource.Get(ctx, ref.Metadata.Name, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		return nil, nil
	}
	return object, err
}

// apply creates an object, or replaces the content of the one there is. A kind
// that is not served yet is waited for.
func (s *side) apply(ctx context.Context, object Object) (created bool, err error) {
	var last error
	ctx, cancel := context.WithTimeout(ctx, servedWithin)
	defer cancel()
	err = wait.PollUntilContextCancel(ctx, 100*time.Millisecond, true, func(ctx context.Context) (bool, error) {
		created, last = s.applyOnce(ctx, object)
		if notServed(last) {
			return false, nil
		}
		return true, last
	})
	if wait.Interrupted(err) && last != nil {
		err = fmt.Errorf("not within %s: %w", servedWithin, last)
	}
	return created, err
}

// notServed says whether the API server does not know the kind, or does not have
// its storage ready yet.
func notServed(err error) bool {
	// A 404 that the API server did not write as a Status is about the path.
	noPath := apierrors.IsNotFound(err) && apierrors.HasStatusCause(err, metav1.CauseTypeUnexpectedServerResponse)
	return noPath || meta.IsNoMatchError(err) || apierrors.IsTooManyRequests(err)
}

func (s *side) applyOnce(ctx context.Context, object Object) (created bool, err error) {
	ref := object.ref()
	resource, err := s.resource(ref)
	if err != nil {
		return false, err
	}
	wanted := (&unstructured.Unstructured{Object: object}).DeepCopy()
	err = retry.OnError(retry.DefaultBackoff, conflicts, func() error {
		there, err := resource.Get(ctx, ref.Metadata.Name, metav1.GetOptions{})
		if apierrors.IsNotFound(err) {
			_, err = resource.Create(ctx, wanted, metav1.CreateOptions{})
			created = err == nil
			return err
		}
		if err != nil {
			return err
		}
		_, err = resource.Update(ctx, replaced(there, wanted), metav1.UpdateOptions{})
		return err
	})
	return created, err
}

// conflicts says whether someone else wrote between the read and the write.
func conflicts(err error) bool {
	return apierrors.IsConflict(err) || apierrors.IsAlreadyExists(err)
}

// serverFields of metadata are the API server's own.
var serverFields = []string{
	"uid", "resourceVersion", "generation", "creationTimestamp", "deletionTimestamp", "deletionGracePeriodSeconds", "managedFields",
}

// replaced is wanted with the server fields of what is there.
func replaced(there, wanted *unstructured.Unstructured) *unstructured.Unstructured {
	result := wanted.DeepCopy()
	metadata, _ := result.Object["metadata"].(map[string]any)
	old, _ := there.Object["metadata"].(map[string]any)
	for _, field := range serverFields {
		if value, found := old[field]; found {
			metadata[field] = value
		}
	}
	return result
}

// patch sends an entry of a patch step as a JSON merge patch.
func (s *side) patch(ctx context.Context, object Object, subresources ...string) error {
	ref := object.ref()
	resource, err := s.resource(ref)
	if err != nil {
		return err
	}
	body := maps.Clone(object)
	metadata := maps.Clone(body["metadata"].(map[string]any))
	delete(metadata, "name")
	delete(metadata, "namespace")
	delete(body, "apiVersion")
	delete(body, "kind")
	body["metadata"] = metadata
	data, err := json.Marshal(body)
	if err != nil {
		return err
	}
	_, err = resource.Patch(ctx, ref.Metadata.Name, types.MergePatchType, data, metav1.PatchOptions{}, subresources...)
	return err
}

func (s *side) delete(ctx context.Context, ref Ref, graceSeconds *int64) error {
	resource, err := s.resource(ref)
	if err != nil {
		return err
	}
	return resource.Delete(ctx, ref.Metadata.Name, metav1.DeleteOptions{GracePeriodSeconds: graceSeconds})
}

// bind schedules a Pod.
func (s *side) bind(ctx context.Context, b Binding) error {
	resource, err := s.resource(b.Ref)
	if err != nil {
		return err
	}
	binding := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "v1", "kind": "Binding",
		"metadata": map[string]any{"namespace": b.Ref.Metadata.Namespace, "name": b.Ref.Metadata.Name},
		"target":   map[string]any{"apiVersion": "v1", "kind": "Node", "name": b.Node},
	}}
	_, err = resource.Create(ctx, binding, metav1.CreateOptions{}, "binding")
	return err
}
