package main

import (
	"context"
	"maps"
	"reflect"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/dynamic"

	"github.com/syncpass/syncpass/pass/access"
)

// How many objects the loop is measured on where its time is extrapolated: usually, and with -quick. It takes the same
// time for each object.
const (
	loopPart      = 1000
	quickLoopPart = 250
)

// loop is what syncers without a history do, one object after the other: GET both sides, compare, and write the host
// where they differ, or, where the tenant always wins (toHost), in any case. It keeps no record.
type loop struct {
	tenant, host dynamic.ResourceInterface
	mirror       func(name string) string
	always       bool
}

// newLoop writes mirrors of its own into a namespace of the host that exists, named as mirror says.
func newLoop(host, tenant *access.Cluster, kind objectKind, namespace string, mirror func(string) string) *loop {
	return &loop{
		tenant: tenant.Dynamic().Resource(kind.gvr()).Namespace(metav1.NamespaceDefault),
		host:   host.Dynamic().Resource(kind.gvr()).Namespace(namespace),
		mirror: mirror, always: kind.direction == "toHost",
	}
}

// sync goes once over the first part of n objects, and says how long all would take.
func (l *loop) sync(ctx context.Context, part, n int) (time.Duration, error) {
	part = min(part, n)
	took, err := since(func() error { return l.once(ctx, part) })
	return time.Duration(float64(took) * float64(n) / float64(part)), err
}

func (l *loop) once(ctx context.Context, part int) error {
	objects, err := l.tenant.List(ctx, metav1.ListOptions{Limit: int64(part)})
	if err != nil {
		return err
	}
	present := map[string]bool{}
	for i := range objects.Items {
		name := objects.Items[i].GetName()
		present[l.mirror(name)] = true
		if err := l.one(ctx, name); err != nil {
			return err
		}
	}
	mirrors, err := l.host.List(ctx, metav1.ListOptions{Limit: int64(part)})
	if err != nil {
		return err
	}
	for i := range mirrors.Items {
		if present[mirrors.Items[i].GetName()] {
			continue
		}
		if err := l.gone(ctx, &mirrors.Items[i]); err != nil {
			return err
		}
	}
	return nil
}

// source names the tenant object of a mirror of the loop.
const source = "bench-source"

func (l *loop) one(ctx context.Context, name string) error {
	object, err := l.tenant.Get(ctx, name, metav1.GetOptions{})
	if err != nil {
		return err
	}
	mirror, err := l.host.Get(ctx, l.mirror(name), metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		created := &unstructured.Unstructured{Object: content(object)}
		created.SetGroupVersionKind(object.GroupVersionKind())
		created.SetName(l.mirror(name))
		created.SetLabels(object.GetLabels())
		created.SetAnnotations(map[string]string{source: name})
		_, err = l.host.Create(ctx, created, metav1.CreateOptions{})
		return err
	}
	if err != nil {
		return err
	}
	if !l.always && reflect.DeepEqual(content(object), content(mirror)) {
		return nil
	}
	maps.Copy(mirror.Object, content(object))
	_, err = l.host.Update(ctx, mirror, metav1.UpdateOptions{})
	return err
}

// gone deletes a mirror of the loop whose source is gone.
func (l *loop) gone(ctx context.Context, mirror *unstructured.Unstructured) error {
	name, ours := mirror.GetAnnotations()[source]
	if !ours {
		return nil
	}
	_, err := l.tenant.Get(ctx, name, metav1.GetOptions{})
	if !apierrors.IsNotFound(err) {
		return err
	}
	return l.host.Delete(ctx, mirror.GetName(), metav1.DeleteOptions{})
}

// content is an object without type, metadata and status.
func content(object *unstructured.Unstructured) document {
	all := maps.Clone(object.Object)
	for _, field := range []string{"apiVersion", "kind", "metadata", "status"} {
		delete(all, field)
	}
	return all
}
