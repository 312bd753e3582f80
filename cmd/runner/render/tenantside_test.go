package render

import (
	"bytes"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.yaml.in/yaml/v3"

	"github.com/syncpass/syncpass/policy"
)

const tenantsDocument = "../../../docs/tenants.md"

// TestTheRightsInATenantAreDocumented compares the table in docs/tenants.md with what is rendered for the policy that the
// documentation uses, and with what Nodes take besides.
func TestTheRightsInATenantAreDocumented(t *testing.T) {
	data, err := os.ReadFile(tenantsDocument)
	require.NoError(t, err)
	before, rest, found := strings.Cut(string(data), "<!-- rights -->\n")
	require.True(t, found)
	listed, after, found := strings.Cut(rest, "<!-- end -->\n")
	require.True(t, found)
	want := rightsTable(t)
	if *update {
		require.NoError(t, os.WriteFile(tenantsDocument, []byte(before+"<!-- rights -->\n"+want+"<!-- end -->\n"+after), 0o644))
		return
	}
	assert.Equal(t, want, listed, "write it anew: go test ./cmd/runner/render -run Documented -update")
}

// rightsTable has a row for each rule.
func rightsTable(t *testing.T) string {
	t.Helper()
	table := "| verbs | on | what for |\n| --- | --- | --- |\n"
	seen := map[string]bool{}
	withNodes := readmePolicy()
	withNodes.Spec.Resources = append(withNodes.Spec.Resources, resource("v1", "Node", policy.FromHost))
	for _, p := range []*policy.SyncPolicy{readmePolicy(), withNodes} {
		data, err := TenantRights(optionsFor(Job, p))
		require.NoError(t, err)
		for _, document := range bytes.Split(data, []byte("\n---\n")) {
			var node yaml.Node
			require.NoError(t, yaml.Unmarshal(document, &node))
			role := object(&node)
			if !strings.HasSuffix(at(role, "kind").Value, "Role") {
				continue
			}
			for _, rule := range at(role, "rules").Content {
				row := rightsRow(rule, at(at(role, "metadata"), "namespace"))
				if !seen[row] {
					table += row
				}
				seen[row] = true
			}
		}
	}
	return table
}

func rightsRow(rule, namespace *yaml.Node) string {
	on := strings.Join(words(at(rule, "resources")), ", ")
	if names := at(rule, "resourceNames"); names != nil {
		on += " named " + strings.Join(words(names), ", ")
	}
	if namespace != nil {
		on += " in " + namespace.Value
	}
	why := strings.Join(strings.Fields(strings.ReplaceAll(rule.HeadComment, "# ", "")), " ")
	return fmt.Sprintf("| %s | %s | %s |\n", strings.Join(words(at(rule, "verbs")), ", "), on, why)
}

func TestOnlyWhereAPersonMaySaySoIsATenantObjectMadeAgain(t *testing.T) {
	for _, tt := range []struct {
		conflicts policy.ConflictPolicy
		direction policy.Direction
		want      bool
	}{
		{policy.Manual, policy.Bidirectional, true},
		{policy.TenantWins, policy.Bidirectional, false},
		{policy.HostWins, policy.Bidirectional, false},
		{policy.Manual, policy.FromHost, false},
		{policy.Manual, policy.ToHost, false},
	} {
		p := policyOf("p", time.Minute, resource("v1", "ConfigMap", tt.direction))
		p.Spec.ConflictPolicy = tt.conflicts
		data, err := TenantRights(optionsFor(Job, p))
		require.NoError(t, err)
		assert.Equal(t, tt.want, strings.Contains(string(data), "[create]"), "%s, %s", tt.conflicts, tt.direction)
	}
}
