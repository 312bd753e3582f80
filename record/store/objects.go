package store

import (
	"context"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/client-go/dynamic"
)

// LoadFrom is Load from SyncDecisions that were read elsewhere, pages of history among them, in place of an API server. Those
// of other tenants and namespaces are left out.
func LoadFrom(ctx context.Context, decisions []*unstructured.Unstructured, namespace, tenant string, owner metav1.OwnerReference) (*Loaded, error) {
	var here printed
	for _, one := range decisions {
		if one.GetNamespace() == namespace {
			here.objects = append(here.objects, one)
		}
	}
	s := &Store{client: here, namespace: namespace, tenant: tenant, owner: owner}
	return s.Load(ctx)
}

// printed are SyncDecisions of one namespace, to be read alone.
type printed struct {
	dynamic.ResourceInterface
	objects []*unstructured.Unstructured
}

// Get implements [dynamic.ResourceInterface].
func (p printed) Get(_ context.Context, name string, _ metav1.GetOptions, _ ...string) (*unstructured.Unstructured, error) {
	for _, one := range p.objects {
		if one.GetName() == name {
			return one, nil
		}
	}
	return nil, apierrors.NewNotFound(Resource.GroupResource(), name)
}

// List implements [dynamic.ResourceInterface].
func (p printed) List(_ context.Context, o metav1.ListOptions) (*unstructured.UnstructuredList, error) {
	selector, err := labels.Parse(o.LabelSelector)
	if err != nil {
		return nil, fmt.Errorf("selecting pages of history: %w", err)
	}
	found := &unstructured.UnstructuredList{}
	for _, one := range p.objects {
		if selector.Matches(labels.Set(one.GetLabels())) {
			found.Items = append(found.Items, *one)
		}
	}
	return found, nil
}
