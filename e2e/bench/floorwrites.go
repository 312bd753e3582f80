package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/syncpass/syncpass/policy"
)

// floorPart is the largest number of objects that the floor writes; what more would take is extrapolated.
const floorPart = 10000

var syncDecisions = policy.GroupVersion.WithResource("syncdecisions")

// records are what a place's passes have recorded so far.
type records struct {
	// decisions are the place's SyncDecision and the further pages of its history, by name.
	decisions map[string]*unstructured.Unstructured
	events    int
}

// recorded reads a place's records.
func (w *world) recorded(ctx context.Context, p place) (records, error) {
	r := records{decisions: map[string]*unstructured.Unstructured{}}
	list, err := w.host.client.Dynamic().Resource(syncDecisions).Namespace(p.namespace).List(ctx, metav1.ListOptions{})
	if err != nil {
		return r, err
	}
	for i := range list.Items {
		r.decisions[list.Items[i].GetName()] = &list.Items[i]
	}
	events, err := w.host.admin.CoreV1().Events(p.namespace).List(ctx, metav1.ListOptions{})
	if err != nil {
		return r, err
	}
	r.events = len(events.Items)
	return r, nil
}

// written are the records that were written between two looks at them.
type written struct {
	// head is the SyncDecision itself, nil where nothing was recorded; pages are further ones.
	head   *unstructured.Unstructured
	pages  []*unstructured.Unstructured
	events int
	// bytes are the sizes of head and pages as JSON together.
	bytes int64
}

func writtenSince(before, after records, tenant string) (written, error) {
	w := written{events: after.events - before.events}
	for name, decision := range after.decisions {
		if was, ok := before.decisions[name]; ok && was.GetResourceVersion() == decision.GetResourceVersion() {
			continue
		}
		data, err := json.Marshal(decision)
		if err != nil {
			return w, err
		}
		w.bytes += int64(len(data))
		if name == tenant {
			w.head = decision
		} else {
			w.pages = append(w.pages, decision)
		}
	}
	slices.SortFunc(w.pages, func(a, b *unstructured.Unstructured) int {
		return bytes.Compare([]byte(a.GetName()), []byte(b.GetName()))
	})
	return w, nil
}

func (w written) objects() int {
	if w.head == nil {
		return len(w.pages)
	}
	return len(w.pages) + 1
}

// call is one request of the floor, or several that must follow each other.
type call func(context.Context) error

// writes sends the writes of a pass over n objects: first the head of the record, without which nothing may be written;
// then, at the concurrency of a pass, one call for each of the objects, each Event once, each further page once; and
// the head. Fewer calls than n stand for all of them.
func (f *floor) writes(ctx context.Context, n int, objects []call, w written) (time.Duration, error) {
	reserve, err := since(func() error { return f.record(ctx, w.head) })
	if err != nil {
		return 0, err
	}
	var evidence []call
	for _, page := range w.pages { // the longest first, so that none is left over at the end
		evidence = append(evidence, func(ctx context.Context) error { return f.record(ctx, page) })
	}
	for i := range w.events {
		evidence = append(evidence, func(ctx context.Context) error { return f.event(ctx, i) })
	}
	batches := []struct {
		calls []call
		scale float64
	}{{append(evidence, objects...), 1}}
	if len(objects) < n {
		batches[0].calls = evidence
		batches = append(batches, struct {
			calls []call
			scale float64
		}{objects, float64(n) / float64(len(objects))})
	}
	total := reserve
	for _, batch := range batches {
		took, err := since(func() error {
			return each(ctx, len(batch.calls), func(ctx context.Context, i int) error { return batch.calls[i](ctx) })
		})
		if err != nil {
			return 0, err
		}
		total += time.Duration(float64(took) * batch.scale)
	}
	conclude, err := since(func() error { return f.record(ctx, w.head) })
	return total + conclude, err
}

// record writes a SyncDecision into the scratch namespace, where it is made first if need be.
func (f *floor) record(ctx context.Context, decision *unstructured.Unstructured) error {
	if decision == nil {
		return nil
	}
	client := f.host.Dynamic().Resource(syncDecisions).Namespace(f.scratch)
	copied := &unstructured.Unstructured{Object: document{"status": decision.Object["status"]}}
	copied.SetGroupVersionKind(decision.GroupVersionKind())
	copied.SetName(decision.GetName())
	version := f.version(decision.GetName())
	if version == "" {
		made, err := client.Create(ctx, copied, metav1.CreateOptions{})
		if err != nil {
			return err
		}
		version = made.GetResourceVersion()
	}
	copied.SetResourceVersion(version)
	updated, err := client.UpdateStatus(ctx, copied, metav1.UpdateOptions{})
	if err != nil {
		return err
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	f.versions[decision.GetName()] = updated.GetResourceVersion()
	return nil
}

func (f *floor) version(name string) string {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.versions[name]
}

// event writes one Event of the size that a pass' have.
func (f *floor) event(ctx context.Context, i int) error {
	_, err := f.host.Core().Events(f.scratch).Create(ctx, &corev1.Event{
		ObjectMeta: metav1.ObjectMeta{GenerateName: fmt.Sprintf("floor-%d-", i), Namespace: f.scratch},
		InvolvedObject: corev1.ObjectReference{APIVersion: policy.GroupVersion.String(), Kind: "TenantCluster",
			Namespace: f.scratch, Name: "floor", UID: "00000000-0000-0000-0000-000000000000"},
		Related: &corev1.ObjectReference{APIVersion: "v1", Kind: f.kind.kind, Namespace: f.scratch, Name: objectName(i)},
		Type:    corev1.EventTypeNormal, Reason: "NoMirror", Action: "Create", Count: 1,
		Message:             f.kind.kind + " default/" + objectName(i) + ": the tenant object has no mirror yet",
		Source:              corev1.EventSource{Component: "bench"},
		ReportingController: "bench", ReportingInstance: "floor",
		FirstTimestamp: metav1.Now(), LastTimestamp: metav1.Now(),
	}, metav1.CreateOptions{})
	return err
}

// mirrorTemplate is the body by which the mirror of object 0 could be created.
func (w *world) mirrorTemplate(ctx context.Context, p place, kind objectKind) ([]byte, error) {
	mirror, err := w.host.client.Dynamic().Resource(kind.gvr()).Namespace(p.namespace).Get(ctx, p.mirror(objectName(0)), metav1.GetOptions{})
	if err != nil {
		return nil, err
	}
	for _, field := range []string{"namespace", "uid", "resourceVersion", "creationTimestamp", "managedFields", "generation"} {
		unstructured.RemoveNestedField(mirror.Object, "metadata", field)
	}
	unstructured.RemoveNestedField(mirror.Object, "status")
	return json.Marshal(mirror)
}

// mirrorOf is the template's body for another object.
func mirrorOf(template []byte, i int) []byte {
	return bytes.ReplaceAll(template, []byte(objectName(0)), []byte(objectName(i)))
}

func (f *floor) path() string { return "/api/v1/namespaces/" + f.scratch + "/" + f.kind.resource }

// creates are POSTs of n mirrors.
func (f *floor) creates(template []byte, n int) []call {
	calls := make([]call, n)
	for i := range calls {
		calls[i] = func(ctx context.Context) error {
			return f.host.Core().RESTClient().Post().AbsPath(f.path()).SetHeader("Content-Type", "application/json").
				Body(mirrorOf(template, i)).Do(ctx).Error()
		}
	}
	return calls
}

// updates are PUTs of the mirrors of n objects, `changes` of them, with other content than last time.
func (f *floor) updates(template []byte, p place, n, changes, revision int) ([]call, error) {
	body := &unstructured.Unstructured{}
	if err := body.UnmarshalJSON(template); err != nil {
		return nil, err
	}
	body.Object["data"] = document{"payload": payload(n, revision)}
	changed, err := json.Marshal(body)
	if err != nil {
		return nil, err
	}
	calls := make([]call, changes)
	for k := range calls {
		i := k * n / changes
		calls[k] = func(ctx context.Context) error {
			return f.host.Core().RESTClient().Put().AbsPath(f.path(), p.mirror(objectName(i))).SetHeader("Content-Type", "application/json").
				Body(mirrorOf(changed, i)).Do(ctx).Error()
		}
	}
	return calls, nil
}

// deletes look for n objects of the tenant, which must be gone, before they delete the mirrors: no pass may delete on
// the word of a list alone.
func (f *floor) deletes(p place, n int) []call {
	calls := make([]call, n)
	for i := range calls {
		calls[i] = func(ctx context.Context) error {
			err := f.tenant.Core().RESTClient().Get().AbsPath("/api/v1/namespaces/default/"+f.kind.resource, objectName(i)).Do(ctx).Error()
			if !apierrors.IsNotFound(err) {
				return fmt.Errorf("%s is not gone: %w", objectName(i), err)
			}
			return f.host.Core().RESTClient().Delete().AbsPath(f.path(), p.mirror(objectName(i))).Do(ctx).Error()
		}
	}
	return calls
}
