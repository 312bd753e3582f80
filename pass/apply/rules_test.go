package apply_test

import (
	"testing"

	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/labels"

	"github.com/syncpass/syncpass/pass/kinds"
	"github.com/syncpass/syncpass/record"
)

// An object that the policy leaves out is there, and its mirror goes all the same; one that matches again by the time of
// the delete keeps it.
func TestADeleteAsksWhetherThePolicyStillLeavesTheObjectOut(t *testing.T) {
	selected := labels.SelectorFromSet(labels.Set{"sync": "yes"})
	for _, test := range []struct {
		name  string
		rules kinds.Rules
		sync  string
		gone  bool
	}{
		{"its labels do not match", kinds.Rules{Selector: selected}, "no", true},
		{"its labels match again", kinds.Rules{Selector: selected}, "yes", false},
		{"its namespace is not carried", kinds.Rules{Namespaces: []string{"team-a"}}, "yes", true},
		{"its namespace is carried", kinds.Rules{Namespaces: []string{"team-a", "default"}}, "no", false},
		{"its labels match, and its namespace is not carried", kinds.Rules{Selector: selected, Namespaces: []string{"team-a"}}, "yes", true},
		{"the policy leaves nothing out", kinds.Rules{}, "no", false},
	} {
		t.Run(test.name, func(t *testing.T) {
			b := newBench(t)
			step := b.mirrored(step(record.Delete, configMap, "app"))
			step.Rules = test.rules
			tenant := tenantObject(configMap, "app")
			tenant.SetLabels(map[string]string{"sync": test.sync})
			b.tenant.put("configmaps", tenant)
			result := b.run(t, step)[0]
			require.Equal(t, test.gone, result.Applied)
			require.Equal(t, test.gone, b.host.get("configmaps", "team-dev", step.HostName) == nil)
			if !test.gone {
				require.Equal(t, record.Raced, result.Decision.Reason)
			}
		})
	}
}
