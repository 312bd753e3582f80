package cluster

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/wait"
	utilyaml "k8s.io/apimachinery/pkg/util/yaml"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/discovery/cached/memory"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/restmapper"
	"sigs.k8s.io/yaml"
)

const (
	fieldManager = "syncpass-e2e"
	// discoveryTimeout bounds the wait for a new CustomResourceDefinition to be served.
	discoveryTimeout = 30 * time.Second
)

// Apply does what `kubectl apply --server-side --force-conflicts -f` does with
// YAML documents, one after the other. A namespaced object without a namespace
// goes to "default". A kind that is not served yet is waited for, so that a
// CustomResourceDefinition and its objects may stand in one file.
func (c *Cluster) Apply(ctx context.Context, manifests []byte) error {
	return c.ApplyIn(ctx, metav1.NamespaceDefault, manifests)
}

// ApplyIn is Apply with another namespace for those objects that name none.
func (c *Cluster) ApplyIn(ctx context.Context, namespace string, manifests []byte) error {
	a, err := c.applier()
	if err != nil {
		return err
	}
	objects, err := decode(manifests)
	if err != nil {
		return err
	}
	for _, object := range objects {
		if err := a.apply(ctx, namespace, object); err != nil {
			return fmt.Errorf("applying %s %s to cluster %s: %w", object.GetKind(), object.GetName(), c.Name, err)
		}
	}
	return nil
}

// applier is what a cluster applies objects with. It is made once, since asking an API server for all that it serves costs
// more than an object or two.
type applier struct {
	client dynamic.Interface
	mapper meta.ResettableRESTMapper
}

func (c *Cluster) applier() (*applier, error) {
	c.applying.Lock()
	defer c.applying.Unlock()
	if c.applies != nil {
		return c.applies, nil
	}
	client, err := dynamic.NewForConfig(c.Config)
	if err != nil {
		return nil, err
	}
	discoverer, err := discovery.NewDiscoveryClientForConfig(c.Config)
	if err != nil {
		return nil, err
	}
	c.applies = &applier{client, restmapper.NewDeferredDiscoveryRESTMapper(memory.NewMemCacheClient(discoverer))}
	return c.applies, nil
}

func decode(manifests []byte) ([]*unstructured.Unstructured, error) {
	var objects []*unstructured.Unstructured
	reader := utilyaml.NewYAMLReader(bufio.NewReader(bytes.NewReader(manifests)))
	for {
		document, err := reader.Read()
		if errors.Is(err, io.EOF) {
			return objects, nil
		}
		if err != nil {
			return nil, fmt.Errorf("reading manifests: %w", err)
		}
		object := &unstructured.Unstructured{}
		if err := yaml.Unmarshal(document, &object.Object); err != nil {
			return nil, fmt.Errorf("decoding a manifest: %w", err)
		}
		if len(object.Object) > 0 {
			objects = append(objects, object)
		}
	}
}

func (a *applier) apply(ctx context.Context, namespace string, object *unstructured.Unstructured) error {
	kind := object.GroupVersionKind()
	var mapping *meta.RESTMapping
	var mappingErr error
	err := wait.PollUntilContextTimeout(ctx, 100*time.Millisecond, discoveryTimeout, true, func(context.Context) (bool, error) {
		mapping, mappingErr = a.mapper.RESTMapping(kind.GroupKind(), kind.Version)
		if meta.IsNoMatchError(mappingErr) {
			a.mapper.Reset()
			return false, nil
		}
		return mappingErr == nil, mappingErr
	})
	if err != nil {
		return errors.Join(err, mappingErr)
	}
	resource := dynamic.ResourceInterface(a.client.Resource(mapping.Resource))
	if mapping.Scope.Name() == meta.RESTScopeNameNamespace {
		if own := object.GetNamespace(); own != "" {
			namespace = own
		}
		resource = a.client.Resource(mapping.Resource).Namespace(namespace)
	}
	_, err = resource.Apply(ctx, object.GetName(), object, metav1.ApplyOptions{FieldManager: fieldManager, Force: true})
	return err
}
