package policy

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/utils/ptr"
	"pgregory.net/rapid"
	"sigs.k8s.io/yaml"
)

// anyPolicy draws a policy without a fault, with all of its fields set.
func anyPolicy(t *rapid.T) *SyncPolicy {
	policy := &SyncPolicy{
		TypeMeta:   metav1.TypeMeta{APIVersion: GroupVersion.String(), Kind: syncPolicyKind},
		ObjectMeta: metav1.ObjectMeta{Name: rapid.StringMatching(`[a-z0-9]([a-z0-9-]{0,20}[a-z0-9])?`).Draw(t, "name")},
		Spec: SyncPolicySpec{
			ConflictPolicy: rapid.SampledFrom(conflictPolicies).Draw(t, "conflictPolicy"),
			DriftDetection: DriftDetection{
				Enabled:  ptr.To(rapid.Bool().Draw(t, "enabled")),
				Interval: &metav1.Duration{Duration: time.Duration(rapid.Int64Min(int64(MinInterval)).Draw(t, "interval"))},
			},
			Explain: Explain{
				RecordDecisions: ptr.To(rapid.Bool().Draw(t, "recordDecisions")),
				Retain:          ptr.To(rapid.Int32Range(MinRetain, MaxRetain).Draw(t, "retain")),
			},
		},
	}
	for i := range rapid.IntRange(1, 20).Draw(t, "resources") {
		policy.Spec.Resources = append(policy.Spec.Resources, anyResource(t, i))
	}
	return policy
}

// anyResource draws a kind that no other number gives, with any of what may be said of it.
func anyResource(t *rapid.T, number int) Resource {
	resource := Resource{
		APIVersion: rapid.SampledFrom([]string{"v1", "apps/v1", "example.com/v1alpha1"}).Draw(t, "apiVersion"),
		Kind:       fmt.Sprintf("%s%d", rapid.StringMatching(`[A-Z][A-Za-z]{0,10}`).Draw(t, "kind"), number),
		Direction:  rapid.SampledFrom(directions).Draw(t, "direction"),
	}
	for i := range rapid.IntRange(0, 3).Draw(t, "references") {
		resource.References = append(resource.References, Reference{
			Path:       fmt.Sprintf("%s%d%s", rapid.SampledFrom([]string{"spec.a", `["a b"].c`, "x[*].y"}).Draw(t, "path"), i, rapid.SampledFrom([]string{"", "[*]", ".z", `["é b"]`}).Draw(t, "rest")),
			Kind:       rapid.SampledFrom([]string{"Secret", "Bucket"}).Draw(t, "named"),
			APIVersion: rapid.SampledFrom([]string{"", "v1", "example.com/v1"}).Draw(t, "version"),
		})
	}
	if rapid.Bool().Draw(t, "selects") {
		resource.Selector = &metav1.LabelSelector{}
		if rapid.Bool().Draw(t, "labels") {
			resource.Selector.MatchLabels = map[string]string{"app": rapid.StringMatching(`([a-z0-9]{1,5})?`).Draw(t, "value")}
		}
		for range rapid.IntRange(0, 2).Draw(t, "requirements") {
			resource.Selector.MatchExpressions = append(resource.Selector.MatchExpressions, rapid.SampledFrom([]metav1.LabelSelectorRequirement{
				{Key: "example.com/tier", Operator: metav1.LabelSelectorOpExists}, {Key: "tier", Operator: metav1.LabelSelectorOpIn, Values: []string{"a", "", "1"}},
			}).Draw(t, "requirement"))
		}
	}
	for i := range rapid.IntRange(0, 2).Draw(t, "namespaces") {
		resource.Namespaces = append(resource.Namespaces, fmt.Sprint("team-", i))
	}
	return resource
}

func TestAValidPolicyIsTheSameAfterItWasWrittenAndRead(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		policy := anyPolicy(t)
		require.Empty(t, Validate(policy))

		file, err := yaml.Marshal(policy)
		require.NoError(t, err)
		fromFile, err := Parse(file)
		require.NoError(t, err, "%s", file)
		require.Equal(t, policy, fromFile)

		object, err := runtime.DefaultUnstructuredConverter.ToUnstructured(policy)
		require.NoError(t, err)
		fromAPI, err := FromObject(object)
		require.NoError(t, err)
		require.Equal(t, policy, fromAPI)
	})
}
