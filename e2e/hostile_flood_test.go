package e2e

import (
	"context"
	"crypto/rand"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/sync/errgroup"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"

	"github.com/syncpass/syncpass/pass"
	"github.com/syncpass/syncpass/record"
	"github.com/syncpass/syncpass/record/store"
)

// attackByNumbers floods: objects at the size limit, thousands of objects, thousands of conflicts (S28, S33).
func attackByNumbers(t *testing.T, h *hostile) {
	const many, large = 1200, 20 // more than a pass writes Events
	same := func(name string) string { return name }
	tenant, host := h.objects(record.Tenant, configsResource), h.objects(record.Host, configsResource)
	noise := make([]byte, 700<<10)
	_, err := rand.Read(noise)
	require.NoError(t, err)
	create(t, tenant, large, "large", func(int) object { return object{"data": object{"blob": base64.StdEncoding.EncodeToString(noise)}} })
	create(t, tenant, many, "many", func(i int) object { return object{"data": object{"v": fmt.Sprint(i)}} })

	h.try(t, "S28 objects at the size limit, and thousands of objects", func(t *testing.T) {
		h.settled(t)
		quiet, requests := h.pass(t, 0, nil)
		require.Empty(t, quiet.Decisions)
		require.GreaterOrEqual(t, quiet.Counts.Unchanged, many+large)
		requireNoWriteButTheLease(t, requests)
	})
	bounded := func(t *testing.T) {
		t.Helper()
		require.Less(t, len(jsonOf(t, h.decision(t).Object)), 1500<<10, "the SyncDecision fits into etcd")
		entries, _ := at(h.decision(t), "status", "entries").([]any)
		require.LessOrEqual(t, len(entries), 1000)
		events, err := h.objects(record.Host, eventsResource).List(t.Context(), metav1.ListOptions{FieldSelector: "involvedObject.kind=TenantCluster"})
		require.NoError(t, err)
		require.LessOrEqual(t, len(events.Items), h.passes*store.MaxEvents, "Events of %d passes", h.passes)
	}
	h.try(t, "S33 thousands of conflicts", func(t *testing.T) {
		patch(t, tenant, many, "many", same, `{"data":{"v":"tenant"}}`)
		patch(t, host, many, "many", h.mirror, `{"data":{"v":"host"}}`)
		result := h.settled(t)
		require.Equal(t, many, result.Counts.Skip)
		bounded(t)
		_, requests := h.pass(t, 0, nil)
		requireNoWriteButTheLease(t, requests) // conflicts that stand cost nothing
	})
	h.try(t, "S33 everything flips between any two passes", func(t *testing.T) {
		patch(t, host, many, "many", h.mirror, `{"data":{"v":"tenant"}}`)
		h.settled(t)
		patch(t, tenant, many, "many", same, `{"data":{"v":"again"}}`)
		h.settled(t)
		bounded(t)
	})
}

// settled makes passes until one has no error, and returns what that did. A flood is a lot for the API servers of a test,
// too, and a write that they lose is made by the next pass.
func (h *hostile) settled(t *testing.T) pass.Result {
	t.Helper()
	const most = 5
	for range most {
		h.passes++
		ran := h.run(t, nil, "pass", "-o", "json")
		if ran.Exit == 0 {
			var output passOutput
			require.NoError(t, json.Unmarshal(ran.Stdout, &output))
			return output.Passes[0]
		}
		require.Contains(t, []int{3, 7}, ran.Exit, "%.3000s", ran.Stderr)
	}
	require.Fail(t, "no pass without an error", "in %d", most)
	return pass.Result{}
}

// flood bounds how long the making of thousands of objects may take.
const flood = 2 * time.Minute

// create makes many ConfigMaps of a place at once.
func create(t *testing.T, in dynamic.ResourceInterface, count int, prefix string, content func(i int) object) {
	t.Helper()
	inParallel(t, count, func(ctx context.Context, i int) error {
		one := &unstructured.Unstructured{Object: content(i)}
		one.SetAPIVersion("v1")
		one.SetKind("ConfigMap")
		one.SetName(fmt.Sprintf("%s-%04d", prefix, i))
		_, err := in.Create(ctx, one, metav1.CreateOptions{})
		return err
	})
}

// patch changes as many, under the names that they have on a side.
func patch(t *testing.T, in dynamic.ResourceInterface, count int, prefix string, named func(string) string, change string) {
	t.Helper()
	inParallel(t, count, func(ctx context.Context, i int) error {
		_, err := in.Patch(ctx, named(fmt.Sprintf("%s-%04d", prefix, i)), types.MergePatchType, []byte(change), metav1.PatchOptions{})
		return err
	})
}

func inParallel(t *testing.T, count int, f func(ctx context.Context, i int) error) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), flood)
	defer cancel()
	var group errgroup.Group
	group.SetLimit(16)
	for i := range count {
		group.Go(func() error { return f(ctx, i) })
	}
	require.NoError(t, group.Wait())
}
