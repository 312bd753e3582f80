package e2e

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/sync/errgroup"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/syncpass/syncpass/record"
)

// pageLost is a history of more than one page, of which one is deleted: its pairs have no baseline, the others have.
func pageLost(t *testing.T, s *surroundings, name string) {
	t.Parallel()
	const pairs, edited = 600, 40 // with names as long as these, as many as make a second page
	p := &duePlace{newPlace(t, s, name, duePolicy())}
	t.Cleanup(func() { p.leave(t) })
	object := func(i int) string { return fmt.Sprintf("m-%04d-%s", i, strings.Repeat("x", 220)) }
	var group errgroup.Group
	group.SetLimit(16)
	for i := range pairs {
		group.Go(func() error {
			_, err := p.objects(record.Tenant, configMaps).Create(p.s.ctx, configMapOf(object(i), "1"), metav1.CreateOptions{})
			return err
		})
	}
	require.NoError(t, group.Wait())
	first, _ := p.pass(t, 0, nil)
	require.Equal(t, pairs, first.Counts.Create)

	pages, err := p.objects(record.Host, syncDecisions).List(s.context(t), metav1.ListOptions{LabelSelector: "tenantplane.io/history-of"})
	require.NoError(t, err)
	require.NotEmpty(t, pages.Items, "the history fits one page")
	require.NoError(t, p.objects(record.Host, syncDecisions).Delete(s.context(t), pages.Items[0].GetName(), metav1.DeleteOptions{}))
	for i := range edited {
		p.set(t, record.Tenant, object(i), "2")
	}

	result := p.run(t, nil, "pass", "-o", "json")
	require.Zero(t, result.Exit, "%s", result.Stderr)
	for _, text := range []string{"Part of the record cannot be used", "SyncDecision " + name + "/" + pages.Items[0].GetName(), "the page is missing", "its pairs have no baseline"} {
		require.Contains(t, string(result.Stderr), text)
	}
	after := decodePass(t, result)
	onHost := func(d record.Decision) string {
		mirror, err := p.objects(record.Host, configMaps).Get(p.s.ctx, d.HostName, metav1.GetOptions{})
		require.NoError(t, err)
		value, _, err := unstructured.NestedString(mirror.Object, "data", "a")
		require.NoError(t, err)
		return value
	}
	held, pushed := 0, 0
	for _, d := range after.Decisions {
		switch d.Reason {
		case record.NoHistory:
			require.Equal(t, "1", onHost(d), d.TenantName)
			held++
		case record.TenantChanged:
			require.Equal(t, "2", onHost(d), d.TenantName)
			pushed++
		}
	}
	require.Len(t, after.Decisions, edited)
	require.Equal(t, edited, held+pushed)
	require.NotZero(t, held)
	require.NotZero(t, pushed)
	require.Equal(t, pairs-edited, after.Counts.Unchanged)

	again := p.run(t, nil, "pass", "-o", "json")
	require.Zero(t, again.Exit)
	require.NotContains(t, string(again.Stderr), "Part of the record cannot be used", "the page was written anew")
	require.Len(t, decodePass(t, again).Decisions, held)
}
