package kinds

import (
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// ingress: its backends and certificates are the mirrors of the tenant's; what the load balancer gave it is reported
// back. Names in the annotations of an ingress controller are not known to be names, and cross as they are.
type ingress struct{ Generic }

// AsksWriters implements [AsksWriters]: see ReflectStatus.
func (i ingress) AsksWriters() {}

// Project renames what the Ingress refers to. An Ingress without a class takes the host's default.
func (i ingress) Project(m Mapping, tenant, host, mirror *unstructured.Unstructured) {
	spec := child(mirror.Object, "spec")
	m.renameReferred(tenant.GetNamespace(), ingressReferences(spec))
	if spec == nil || host == nil {
		return
	}
	class, found := child(host.Object, "spec")["ingressClassName"]
	if _, asked := spec["ingressClassName"]; found && !asked && !ManagedByUs(host, "spec", "ingressClassName") {
		spec["ingressClassName"] = class
	}
}

// Reflect is Project's way back.
func (i ingress) Reflect(m Mapping, _, tenant, object *unstructured.Unstructured) {
	spec, own := child(object.Object, "spec"), child(tenant.Object, "spec")
	m.restoreReferred(tenant.GetNamespace(), ingressReferences(spec), ingressReferences(own))
	if _, asked := own["ingressClassName"]; own != nil && !asked {
		delete(spec, "ingressClassName")
	}
}

func (i ingress) refersTo(object *unstructured.Unstructured) references {
	return ingressReferences(child(object.Object, "spec"))
}

// ReflectStatus reports the addresses of the load balancer, unless an ingress controller of the tenant's own does.
func (i ingress) ReflectStatus(_ Mapping, host, tenant *unstructured.Unstructured) Content {
	return reflectLoadBalancer(child(child(host.Object, "status"), "loadBalancer"), tenant)
}

// reflectLoadBalancer is the tenant's status with the addresses of the host's load balancer in it; nil where they are
// there already, or others than us report them.
func reflectLoadBalancer(addresses Content, tenant *unstructured.Unstructured) Content {
	current := child(tenant.Object, "status")
	known := child(current, "loadBalancer")
	if len(addresses)+len(known) == 0 || equal(addresses, known) || reportedByOthers(tenant, "loadBalancer") {
		return nil
	}
	status := Content{}
	if current != nil {
		status = runtime.DeepCopyJSON(current)
	}
	status["loadBalancer"] = Content{}
	if len(addresses) > 0 {
		status["loadBalancer"] = runtime.DeepCopyJSON(addresses)
	}
	return status
}

// ingressReferences are the names in an Ingress: of the Services and other backends, and of the Secrets with
// certificates.
func ingressReferences(spec Content) references {
	return func(visit func(entry Content, field string, kind schema.GroupKind)) {
		backend := func(backend Content) {
			visit(child(backend, "service"), "name", schema.GroupKind{Kind: "Service"})
			visitTyped(child(backend, "resource"), visit)
		}
		backend(child(spec, "defaultBackend"))
		for _, rule := range entries(spec["rules"]) {
			for _, path := range entries(child(rule, "http")["paths"]) {
				backend(child(path, "backend"))
			}
		}
		for _, certificate := range entries(spec["tls"]) {
			visit(certificate, "secretName", schema.GroupKind{Kind: "Secret"})
		}
	}
}

// visitTyped visits a reference that says itself which kind it names (a TypedLocalObjectReference).
func visitTyped(reference Content, visit func(entry Content, field string, kind schema.GroupKind)) {
	group, _ := reference["apiGroup"].(string)
	kind, _ := reference["kind"].(string)
	visit(reference, "name", schema.GroupKind{Group: group, Kind: kind})
}
