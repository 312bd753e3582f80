package policy

import (
	"testing"

	"github.com/stretchr/testify/require"
	utiljson "k8s.io/apimachinery/pkg/util/json"
)

// FuzzFromObject: whatever an API server gives for a SyncPolicy or a TenantCluster, it is taken or refused; and a policy
// that is taken is valid and complete.
func FuzzFromObject(f *testing.F) {
	f.Add([]byte(`{"metadata":{"name":"default"},"spec":{"resources":[{"apiVersion":"v1","kind":"ConfigMap","direction":"toHost"}]}}`))
	f.Fuzz(func(t *testing.T, raw []byte) {
		content := map[string]any{}
		if utiljson.Unmarshal(raw, &content) != nil {
			return
		}
		if policy, err := FromObject(content); err != nil {
			require.NotEmpty(t, err.Error())
		} else {
			require.Empty(t, Validate(policy))
			require.NotNil(t, policy.Spec.Explain.RecordDecisions)
			_ = policy.Schedule()
		}
		if tenant, err := TenantClusterFrom(content); err == nil {
			_, _ = tenant.PolicyName() // either is an answer
		}
	})
}
