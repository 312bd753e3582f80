package pass

import (
	"fmt"
	"strings"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/syncpass/syncpass/pass/snapshot"
	"github.com/syncpass/syncpass/policy"
	"github.com/syncpass/syncpass/record"
)

// shortNames are those of the built-in kinds, which people who use kubectl type without thinking.
var shortNames = map[schema.GroupKind]string{
	{Kind: "ConfigMap"}: "cm", {Kind: "Endpoints"}: "ep", {Kind: "PersistentVolumeClaim"}: "pvc", {Kind: "Pod"}: "po",
	{Kind: "Service"}: "svc", {Kind: "ServiceAccount"}: "sa",
	{Group: "apps", Kind: "Deployment"}: "deploy", {Group: "apps", Kind: "StatefulSet"}: "sts", {Group: "batch", Kind: "CronJob"}: "cj",
	{Group: "networking.k8s.io", Kind: "Ingress"}: "ing", {Group: "networking.k8s.io", Kind: "NetworkPolicy"}: "netpol",
	{Group: "policy", Kind: "PodDisruptionBudget"}: "pdb",
}

// findKind finds the policy's kind that a person means: by kind, resource name, or either with the group, or by its short
// name.
func findKind(p *policy.SyncPolicy, resources snapshot.Resources, asked string) (policy.Resource, error) {
	var names []string
	for _, resource := range p.Spec.Resources {
		kind := schema.FromAPIVersionAndKind(resource.APIVersion, resource.Kind)
		plural := resources[record.Tenant][kind].Resource
		for _, name := range []string{resource.Kind, plural} {
			if strings.EqualFold(asked, name) || strings.EqualFold(asked, name+"."+kind.Group) {
				return resource, nil
			}
		}
		if short, known := shortNames[kind.GroupKind()]; known && strings.EqualFold(asked, short) {
			return resource, nil
		}
		names = append(names, resource.Kind)
	}
	return policy.Resource{}, &InvalidError{Err: fmt.Errorf("kind %q is not in SyncPolicy %q, which has %s; name one of these, or add it to spec.resources", asked, p.Name, strings.Join(names, ", "))}
}
