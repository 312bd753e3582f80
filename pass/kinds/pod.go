package kinds

import (
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/syncpass/syncpass/record"
)

// pod: what a tenant's Pod becomes on the host. A create projects everything; afterwards only what Kubernetes lets a
// Pod change follows the tenant, and what the host added (scheduler, webhooks, LimitRange) is no drift.
type pod struct{ Generic }

// AnnotationImages keeps the images that the tenant asked for, so that a registry that a host webhook rewrote them to is
// not taken for drift.
const AnnotationImages = domain + "/virtual-images"

func (p pod) statusHashed(_ record.Side, status Content) any { return status }

// Project is the whole translation for a create, and the fields that may change for an update.
func (p pod) Project(m Mapping, tenant, host, mirror *unstructured.Unstructured) {
	if host == nil {
		p.create(m, tenant, mirror)
		return
	}
	mirror.Object["spec"] = p.update(tenant, host)
	m.annotate(mirror, tenant)
}

// containerLists are the lists of containers in a Pod's spec.
var containerLists = []string{"initContainers", "containers", "ephemeralContainers"}

func (p pod) create(m Mapping, tenant, mirror *unstructured.Unstructured) {
	spec := child(mirror.Object, "spec")
	if spec == nil {
		return // no API server stores a Pod without one; the host's refuses it
	}
	namespace := tenant.GetNamespace()
	delete(spec, "serviceAccount")
	delete(spec, "ephemeralContainers")
	m.confine(spec)
	if hostname, _ := spec["hostname"].(string); hostname == "" {
		spec["hostname"] = hostnameOf(tenant.GetName())
	}
	if subdomain, _ := spec["subdomain"].(string); subdomain != "" {
		spec["subdomain"] = m.reference("Service", namespace, subdomain)
	}
	m.injectEnvironment(spec, tenant) // before the names change: the tenant's tell which keys there are
	claimEphemeral(spec, tenant.GetName())
	m.renameReferred(namespace, podReferences(spec))
	m.replaceTokens(spec, tenant)
	downward(spec, tenant)
	m.markAffinity(spec, namespace)
	m.pointDNS(spec, namespace)
	delete(mirror.Object, "status")
	m.annotate(mirror, tenant)
}

// confine takes from the spec of a Pod, or of a template of Pods, what is the host's to say, and has it run as the one
// ServiceAccount without rights.
func (m Mapping) confine(spec Content) {
	delete(spec, "nodeName")
	delete(spec, "overhead")
	m.prioritize(spec)
	spec["serviceAccountName"] = m.Workloads.ServiceAccount
	spec["automountServiceAccountToken"] = false
	spec["enableServiceLinks"] = false
}

// hostnameOf is the hostname that Kubernetes gives a Pod of that name.
func hostnameOf(name string) string {
	name = strings.ReplaceAll(name, ".", "-")
	if len(name) > validation.DNS1123LabelMaxLength {
		name = name[:validation.DNS1123LabelMaxLength]
	}
	return strings.TrimRight(name, "-")
}

// update is the host's spec with what may change taken from the tenant's
// (https://kubernetes.io/docs/concepts/workloads/pods/#pod-update-and-replacement).
func (p pod) update(tenant, host *unstructured.Unstructured) Content {
	spec := runtime.DeepCopyJSON(child(host.Object, "spec"))
	if spec == nil {
		return nil
	}
	asked := child(tenant.Object, "spec")
	projected := imagesBefore(host)
	for _, list := range []string{"initContainers", "containers"} {
		images := map[any]any{}
		for _, container := range entries(asked[list]) {
			images[container["name"]] = container["image"]
		}
		for _, container := range entries(spec[list]) {
			name, _ := container["name"].(string)
			image, found := images[name]
			if found && (image != projected[name] || !managedImage(host, list, name)) {
				container["image"] = image
			}
		}
	}
	if seconds, found := asked["activeDeadlineSeconds"]; found {
		spec["activeDeadlineSeconds"] = seconds
	}
	for _, toleration := range entries(asked["tolerations"]) {
		if !contains(spec["tolerations"], toleration) {
			tolerations, _ := spec["tolerations"].([]any)
			spec["tolerations"] = append(tolerations, runtime.DeepCopyJSON(toleration))
		}
	}
	if gates, found := spec["schedulingGates"].([]any); found {
		kept := []any{}
		for _, gate := range gates {
			if contains(asked["schedulingGates"], gate) {
				kept = append(kept, gate)
			}
		}
		if spec["schedulingGates"] = kept; len(kept) == 0 {
			delete(spec, "schedulingGates")
		}
	}
	return spec
}

// Reflect keeps the tenant's spec: what the host's scheduler, webhooks and defaults made of it is the host's, and most of
// it no API server would take for a Pod that is there.
func (p pod) Reflect(_ Mapping, _, tenant, object *unstructured.Unstructured) {
	if delete(object.Object, "spec"); tenant.Object["spec"] != nil {
		object.Object["spec"] = runtime.DeepCopyJSONValue(tenant.Object["spec"])
	}
}

// Immutable knows none: projections of an update change only what may change.
func (p pod) Immutable(Content, Content) string { return "" }

// Finished follows the phase.
func (p pod) Finished(tenant *unstructured.Unstructured) bool {
	phase, _, _ := unstructured.NestedString(tenant.Object, "status", "phase")
	return phase == "Succeeded" || phase == "Failed"
}

// Bound follows spec.nodeName.
func (p pod) Bound(tenant *unstructured.Unstructured) bool {
	node, _, _ := unstructured.NestedString(tenant.Object, "spec", "nodeName")
	return node != ""
}

func contains(list, item any) bool {
	items, _ := list.([]any)
	for _, one := range items {
		if equal(one, item) {
			return true
		}
	}
	return false
}
