package pass

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/syncpass/syncpass/pass/snapshot"
	"github.com/syncpass/syncpass/policy"
	"github.com/syncpass/syncpass/record"
)

func TestAKindHasTheNamesThatKubectlTakes(t *testing.T) {
	p := &policy.SyncPolicy{Spec: policy.SyncPolicySpec{Resources: []policy.Resource{
		{APIVersion: "v1", Kind: "ConfigMap"}, {APIVersion: "networking.k8s.io/v1", Kind: "Ingress"}, {APIVersion: "example.com/v1", Kind: "Service"},
	}}}
	served := snapshot.Resources{record.Tenant: {}}
	for kind, plural := range map[schema.GroupVersionKind]string{
		{Version: "v1", Kind: "ConfigMap"}: "configmaps", {Group: "networking.k8s.io", Version: "v1", Kind: "Ingress"}: "ingresses",
		{Group: "example.com", Version: "v1", Kind: "Service"}: "services",
	} {
		served[record.Tenant][kind] = kind.GroupVersion().WithResource(plural)
	}
	for asked, want := range map[string]string{
		"ConfigMap": "ConfigMap", "configmap": "ConfigMap", "configmaps": "ConfigMap", "cm": "ConfigMap", "CM": "ConfigMap",
		"ingress": "Ingress", "ingresses.networking.k8s.io": "Ingress", "ing": "Ingress",
		"service": "Service", "services.example.com": "Service",
		"svc": "", "po": "", "configmaps.example.com": "", "": "",
	} {
		found, err := findKind(p, served, asked)
		assert.Equal(t, want, found.Kind, asked)
		if want == "" {
			assert.ErrorContains(t, err, `is not in SyncPolicy "", which has ConfigMap, Ingress, Service; name one of these`, asked)
		} else {
			assert.NoError(t, err, asked)
		}
	}
}
