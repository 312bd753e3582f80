package e2e

import (
	"fmt"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/syncpass/syncpass/e2e/proxy"
	"github.com/syncpass/syncpass/e2e/scenario"
	"github.com/syncpass/syncpass/record"
)

// reported runs `runner report` in a place, and requires that no tenant was asked and nothing written.
func reported(t *testing.T, p *place) string {
	t.Helper()
	result := p.run(t, nil, "report", "-o", "md")
	require.Zero(t, result.Exit, "%s", result.Stderr)
	for _, request := range result.Requests {
		assert.Equal(t, "host", request.Server, request.Path)
	}
	assert.Zero(t, proxy.Writes(result.Requests))
	html := p.run(t, nil, "report")
	require.Zero(t, html.Exit, "%s", html.Stderr)
	assert.Regexp(t, "^<!DOCTYPE html>\n", string(html.Stdout))
	return string(result.Stdout)
}

func TestAReport(t *testing.T) {
	s := usePlaces(t)
	t.Run("shows a conflict with what differs and how to settle it", func(t *testing.T) {
		t.Parallel()
		p := newDuePlace(t, s, "report-conflict")
		p.set(t, record.Host, "pushed", "9")
		p.pass(t, 0, nil)
		page := reported(t, p.place)
		assert.Regexp(t, "\\| `ConfigMap` `report-conflict/pushed` \\| `Conflict` \\| [^|]* \\| `data\\.a` \\| "+
			"`runner resolve configmap report-conflict/pushed --keep tenant -n report-conflict --tenant report-conflict`, ", page)
		assert.Contains(t, page, "| `ConfigMap` | `bidirectional` | 3 | 1 | 0 | 0 | 0 | 4 |")
		assert.Contains(t, page, "| All kinds | | 5 | 1 | 0 | 0 | 0 | 6 |")
		assert.Contains(t, page, "- Last recorded: `Completed`, ")
		assert.Contains(t, page, "Next pass due: 2")

		line := regexp.MustCompile("`runner (resolve configmap [^`]* --keep host [^`]*)`").FindStringSubmatch(page)
		require.NotNil(t, line, page)
		settled := p.run(t, nil, append(strings.Fields(line[1]), "--yes")...)
		require.Zero(t, settled.Exit, "%s%s", settled.Stdout, settled.Stderr)
		after := reported(t, p.place)
		assert.NotContains(t, after, "### Open conflicts")
		assert.Contains(t, after, "| `ConfigMap` | `bidirectional` | 4 | 0 | 0 | 0 | 0 | 4 |")
	})
	t.Run("shows what a guard withholds and how to let it through", func(t *testing.T) {
		t.Parallel()
		p := newPlace(t, s, "report-guard", scenario.DefaultPolicy())
		for i := range 10 {
			p.apply(t, record.Tenant, fmt.Sprintf("{apiVersion: v1, kind: ConfigMap, metadata: {name: c%d}}", i))
		}
		p.pass(t, 0, nil)
		require.NoError(t, p.objects(record.Tenant, configMaps).DeleteCollection(t.Context(), metav1.DeleteOptions{}, metav1.ListOptions{}))
		withheld, _ := p.pass(t, 4, nil)
		require.NoError(t, p.tenantProxy.Close(), "the tenant is away")
		p.tenantProxy = nil
		page := reported(t, p)
		assert.Contains(t, page, "**`GuardEmptyTenant`** holds 10 back since ")
		assert.Contains(t, page, "exactly plan `"+withheld.PlanID+"` through")
		assert.Contains(t, page, "`kubectl annotate -n report-guard tenantcluster report-guard --overwrite tenantplane.io/confirm-deletes="+withheld.PlanID+"`")
	})
}
