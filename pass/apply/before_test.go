package apply_test

import (
	"errors"
	"testing"

	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/syncpass/syncpass/pass/kinds"
	"github.com/syncpass/syncpass/pass/plan"
	"github.com/syncpass/syncpass/record"
)

// told is a step that writes the host's content over the tenant object, or makes that again, as an annotation on the mirror
// says.
func (b *bench) told(action record.Action) plan.Step {
	s := step(record.Update, configMap, "app")
	mirror := s.Want.DeepCopy()
	mirror.SetAnnotations(map[string]string{kinds.AnnotationResolve: "host"})
	mirror.Object["data"] = map[string]any{"a": "host"}
	s.Action, s.Side, s.Reason = action, record.Tenant, record.Resolved
	s.Source = b.host.put("configmaps", mirror)
	s.Before = &plan.Write{Side: record.Host, Object: kinds.WithoutWord(s.Source)}
	s.Want = tenantObject(configMap, "app")
	if action == record.Update {
		s.Have = b.tenant.put("configmaps", tenantObject(configMap, "app"))
		s.Want.SetResourceVersion(s.Have.GetResourceVersion())
	}
	s.Want.Object["data"] = map[string]any{"a": "host"}
	return s
}

func (b *bench) mirrorOfApp() *unstructured.Unstructured {
	return b.host.get("configmaps", "team-dev", "app-x-default-x-dev")
}

func TestAWordIsTakenOffBeforeItIsCarriedOut(t *testing.T) {
	for _, action := range []record.Action{record.Update, record.Create} {
		t.Run(string(action), func(t *testing.T) {
			b := newBench(t)
			result := b.run(t, b.told(action))[0]
			require.True(t, result.Applied)
			require.Equal(t, []string{"PUT configmaps/app-x-default-x-dev"}, b.host.requests())
			require.Len(t, b.tenant.requests(), 1)
			require.Equal(t, map[string]any{"a": "host"}, b.tenant.get("configmaps", "default", "app").Object["data"])
			require.NotContains(t, b.mirrorOfApp().GetAnnotations(), kinds.AnnotationResolve)
			require.Equal(t, b.mirrorOfApp().GetResourceVersion(), result.Written[record.Host].GetResourceVersion(), "the record is about what is there now")
			require.NotNil(t, result.Written[record.Tenant])
		})
	}
}

func TestAWordThatCannotBeTakenOffIsNotCarriedOut(t *testing.T) {
	for name, meanwhile := range map[string]func(b *bench, s plan.Step){
		"the mirror was written meanwhile": func(b *bench, s plan.Step) { b.host.put("configmaps", s.Source) },
		"the mirror is gone": func(b *bench, _ plan.Step) {
			delete(b.host.objects, path("configmaps", "team-dev", "app-x-default-x-dev"))
		},
	} {
		t.Run(name, func(t *testing.T) {
			b := newBench(t)
			s := b.told(record.Create)
			meanwhile(b, s)
			result := b.run(t, s)[0]
			require.Equal(t, record.Raced, result.Decision.Reason)
			require.Empty(t, b.tenant.requests())
			require.Empty(t, result.Written)
			require.False(t, result.Unknown)
		})
	}
}

func TestAWordIsNotCarriedOutByAPassThatHasLostItsLease(t *testing.T) {
	b := newBench(t)
	b.writer.Fence = func() error {
		if len(b.host.requests()) > 0 {
			return errors.New("the Lease was lost")
		}
		return nil
	}
	result := b.run(t, b.told(record.Update))[0]
	require.Equal(t, record.NotAttempted, result.Decision.Reason)
	require.Contains(t, result.Decision.Message, "the Lease was lost")
	require.Empty(t, b.tenant.requests())
	require.Empty(t, result.Written)
}

// A person who keeps the tenant's deletion says nothing about an object that is there again.
func TestADeleteThatAPersonAskedForWaitsForTheTenantsWord(t *testing.T) {
	b := newBench(t)
	s := b.mirrored(step(record.Delete, configMap, "app"))
	s.Reason = record.Resolved
	b.tenant.put("configmaps", tenantObject(configMap, "app"))
	result := b.run(t, s)[0]
	require.Equal(t, record.Raced, result.Decision.Reason)
	require.NotNil(t, b.mirrorOfApp())

	delete(b.tenant.objects, path("configmaps", "default", "app"))
	require.True(t, b.run(t, s)[0].Applied)
	require.Nil(t, b.mirrorOfApp())
}
