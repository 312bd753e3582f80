package kinds

import (
	"iter"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// RootCA is the ConfigMap that every namespace has of its own; a Pod that mounts it wants its own API server's.
const RootCA = "kube-root-ca.crt"

// reference is the host name of a tenant object of a core kind that something in the namespace refers to. A name of
// the tenant never reaches the host as it is, so that no tenant can name a host object that is not its own.
func (m Mapping) reference(kind, namespace, name string) string {
	return m.MirrorName(For(schema.GroupKind{Kind: kind}), namespace, name)
}

// volumeSecrets are the fields of volume sources that name a Secret.
var volumeSecrets = []struct{ source, reference, field string }{
	{"secret", "", "secretName"},
	{"azureFile", "", "secretName"},
	{"csi", "nodePublishSecretRef", "name"},
	{"iscsi", "secretRef", "name"},
	{"rbd", "secretRef", "name"},
	{"cephfs", "secretRef", "name"},
	{"cinder", "secretRef", "name"},
	{"flexVolume", "secretRef", "name"},
	{"scaleIO", "secretRef", "name"},
	{"storageos", "secretRef", "name"},
}

var (
	configMapKind = schema.GroupKind{Kind: "ConfigMap"}
	secretKind    = schema.GroupKind{Kind: "Secret"}
	claimKind     = schema.GroupKind{Kind: "PersistentVolumeClaim"}
	deviceKind    = schema.GroupKind{Group: "resource.k8s.io", Kind: "ResourceClaim"}
	devicesKind   = schema.GroupKind{Group: "resource.k8s.io", Kind: "ResourceClaimTemplate"}
	podGroupKind  = schema.GroupKind{Group: "scheduling.k8s.io", Kind: "PodGroup"}

	secretProviderKind = schema.GroupKind{Group: "secrets-store.csi.x-k8s.io", Kind: "SecretProviderClass"}
)

// secretsStore is the one widely used CSI driver whose attributes name an object of the Pod's namespace: what it mounts are
// the secrets that the object says (https://secrets-store-csi-driver.sigs.k8s.io/concepts.html).
const secretsStore = "secrets-store.csi.k8s.io"

// podReferences are the places where a Pod's spec names ConfigMaps, Secrets, claims of volumes and of devices, Endpoints
// and its group, but for the root CA beside a token, which replaceTokens replaces together with it.
func podReferences(spec Content) references {
	return func(visit func(entry Content, field string, kind schema.GroupKind)) {
		for _, secret := range entries(spec["imagePullSecrets"]) {
			visit(secret, "name", secretKind)
		}
		for _, claim := range entries(spec["resourceClaims"]) {
			visit(claim, "resourceClaimName", deviceKind)
			visit(claim, "resourceClaimTemplateName", devicesKind)
		}
		visit(child(spec, "schedulingGroup"), "podGroupName", podGroupKind)
		for _, list := range containerLists {
			for _, container := range entries(spec[list]) {
				visitContainer(container, visit)
			}
		}
		for _, volume := range entries(spec["volumes"]) {
			visitVolume(volume, visit)
		}
	}
}

func visitContainer(container Content, visit func(entry Content, field string, kind schema.GroupKind)) {
	for _, source := range entries(container["envFrom"]) {
		visit(child(source, "configMapRef"), "name", configMapKind)
		visit(child(source, "secretRef"), "name", secretKind)
	}
	for _, variable := range entries(container["env"]) {
		from := child(variable, "valueFrom")
		visit(child(from, "configMapKeyRef"), "name", configMapKind)
		visit(child(from, "secretKeyRef"), "name", secretKind)
	}
}

func visitVolume(volume Content, visit func(entry Content, field string, kind schema.GroupKind)) {
	visit(child(volume, "configMap"), "name", configMapKind)
	visit(child(volume, "persistentVolumeClaim"), "claimName", claimKind)
	visit(child(volume, "glusterfs"), "endpoints", schema.GroupKind{Kind: "Endpoints"})
	if csi := child(volume, "csi"); csi["driver"] == secretsStore {
		visit(child(csi, "volumeAttributes"), "secretProviderClass", secretProviderKind)
	}
	for _, place := range volumeSecrets {
		source := child(volume, place.source)
		if place.reference != "" {
			source = child(source, place.reference)
		}
		visit(source, place.field, secretKind)
	}
	for _, source := range entries(child(volume, "projected")["sources"]) {
		if config := child(source, "configMap"); config["name"] != RootCA {
			visit(config, "name", configMapKind)
		}
		visit(child(source, "secret"), "name", secretKind)
	}
}

// refersTo visits what podReferences does, the Service behind the subdomain, the root CA beside a token, and the claims
// that the tenant's own controller makes for ephemeral volumes.
func (p pod) refersTo(object *unstructured.Unstructured) references {
	spec := child(object.Object, "spec")
	return func(visit func(entry Content, field string, kind schema.GroupKind)) {
		visit(spec, "subdomain", schema.GroupKind{Kind: "Service"})
		podReferences(spec)(visit)
		for _, source := range projections(spec) {
			if config := child(source, "configMap"); config["name"] == RootCA {
				visit(config, "name", configMapKind)
			}
		}
		for _, volume := range entries(spec["volumes"]) {
			if name, _ := volume["name"].(string); volume["ephemeral"] != nil {
				visit(Content{"claimName": ephemeralClaim(object.GetName(), name)}, "claimName", claimKind)
			}
		}
	}
}

// projections are the sources of a Pod's projected volumes, each with its volume, in order.
func projections(spec Content) iter.Seq2[Content, Content] {
	return func(yield func(volume, source Content) bool) {
		for _, volume := range entries(spec["volumes"]) {
			for _, source := range entries(child(volume, "projected")["sources"]) {
				if !yield(volume, source) {
					return
				}
			}
		}
	}
}

// claimEphemeral turns the ephemeral volumes of a Pod into the claims that the tenant's own controller makes for them
// under `<pod>-<volume>`, which cross like any other.
func claimEphemeral(spec Content, pod string) {
	for _, volume := range entries(spec["volumes"]) {
		if name, _ := volume["name"].(string); volume["ephemeral"] != nil {
			delete(volume, "ephemeral")
			volume["persistentVolumeClaim"] = Content{"claimName": ephemeralClaim(pod, name)}
		}
	}
}

func ephemeralClaim(pod, volume string) string { return pod + "-" + volume }
