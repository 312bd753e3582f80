package main

import (
	"context"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"time"

	"golang.org/x/sync/errgroup"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
)

// payloadBytes is the size of a ConfigMap's one value.
const payloadBytes = 1 << 10

// objectKind is a kind that is measured.
type objectKind struct {
	kind, resource string
	// direction is the policy's, where -direction does not say otherwise.
	direction string
}

var (
	configMaps = objectKind{kind: "ConfigMap", resource: "configmaps", direction: "bidirectional"}
	pods       = objectKind{kind: "Pod", resource: "pods", direction: "toHost"}
)

func (k objectKind) gvr() schema.GroupVersionResource {
	return corev1.SchemeGroupVersion.WithResource(k.resource)
}

// objectName sorts as i does.
func objectName(i int) string { return fmt.Sprintf("c%06d", i) }

// payload is a text of 1 KiB that is another one for every object and every revision, and that does not compress to nothing.
func payload(i, revision int) string {
	const letters = "abcdefghijklmnopqrstuvwxyz0123456789.:/=- \n"
	random := rand.New(rand.NewPCG(uint64(i), uint64(revision)))
	text := make([]byte, payloadBytes)
	for at := range text {
		text[at] = letters[random.IntN(len(letters))]
	}
	return string(text)
}

// each calls f for 0 to n-1, some at once, until one fails.
func each(ctx context.Context, n int, f func(ctx context.Context, i int) error) error {
	group, groupCtx := errgroup.WithContext(ctx)
	group.SetLimit(concurrency)
	for i := range n {
		if groupCtx.Err() != nil {
			break
		}
		group.Go(func() error { return f(groupCtx, i) })
	}
	return group.Wait()
}

// lay makes n objects of a kind in the tenant's namespace default.
func (w *world) lay(ctx context.Context, kind objectKind, n int) error {
	core := w.tenant.admin.CoreV1()
	return each(ctx, n, func(ctx context.Context, i int) error {
		metadata := metav1.ObjectMeta{Name: objectName(i), Labels: map[string]string{"app": "bench"}}
		if kind.resource == pods.resource {
			_, err := core.Pods(metav1.NamespaceDefault).Create(ctx, pod(metadata), metav1.CreateOptions{})
			return err
		}
		_, err := core.ConfigMaps(metav1.NamespaceDefault).Create(ctx, &corev1.ConfigMap{
			ObjectMeta: metadata, Data: map[string]string{"payload": payload(i, 0)},
		}, metav1.CreateOptions{})
		return err
	})
}

// pod is one that asks for no token, so that its mirror needs no Secret.
func pod(metadata metav1.ObjectMeta) *corev1.Pod {
	return &corev1.Pod{ObjectMeta: metadata, Spec: corev1.PodSpec{
		AutomountServiceAccountToken: ptr.To(false),
		Containers: []corev1.Container{{
			Name: "web", Image: "registry.example.com/web:1.2.3", Args: []string{"serve", "--port=8080"},
			Env:   []corev1.EnvVar{{Name: "MODE", Value: "production"}},
			Ports: []corev1.ContainerPort{{Name: "http", ContainerPort: 8080}},
			ReadinessProbe: &corev1.Probe{ProbeHandler: corev1.ProbeHandler{Exec: &corev1.ExecAction{Command: []string{"true"}}},
				PeriodSeconds: 10},
		}},
	}}
}

// change gives changes of the tenant's n ConfigMaps, evenly spread, a new payload.
func (w *world) change(ctx context.Context, n, changes, revision int) error {
	core := w.tenant.admin.CoreV1()
	return each(ctx, changes, func(ctx context.Context, k int) error {
		i := k * n / changes
		patch, err := json.Marshal(document{"data": document{"payload": payload(i, revision)}})
		if err != nil {
			return err
		}
		_, err = core.ConfigMaps(metav1.NamespaceDefault).Patch(ctx, objectName(i), types.MergePatchType, patch, metav1.PatchOptions{})
		return err
	})
}

// remove deletes the tenant's n ConfigMaps.
func (w *world) remove(ctx context.Context, n int) error {
	core := w.tenant.admin.CoreV1()
	return each(ctx, n, func(ctx context.Context, i int) error {
		return core.ConfigMaps(metav1.NamespaceDefault).Delete(ctx, objectName(i), metav1.DeleteOptions{})
	})
}

// since is how long f takes.
func since(f func() error) (time.Duration, error) {
	began := time.Now()
	err := f()
	return time.Since(began), err
}
