package kinds

import (
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// rootCA is the ConfigMap that every namespace has of its own; a Pod that mounts it wants its own API server's.
const rootCA = "kube-root-ca.crt"

// reference is the host name of a tenant object of a core kind that something in the namespace refers to. A name of
// the tenant never reaches the host as it is, so that no tenant can name a host object that is not its own.
func (m Mapping) reference(kind, namespace, name string) string {
	return m.MirrorName(For(schema.GroupKind{Kind: kind}), namespace, name)
}

// rename replaces the name at a field of an entry, where there is one.
func (m Mapping) rename(entry Content, field, kind, namespace string) {
	if name, ok := entry[field].(string); ok && name != "" {
		entry[field] = m.reference(kind, namespace, name)
	}
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

// renameReferences renames every ConfigMap, Secret and claim that a Pod's spec can name.
func (m Mapping) renameReferences(spec Content, namespace string) {
	for _, secret := range entries(spec["imagePullSecrets"]) {
		m.rename(secret, "name", "Secret", namespace)
	}
	for _, list := range containerLists {
		for _, container := range entries(spec[list]) {
			m.renameContainer(container, namespace)
		}
	}
	for _, volume := range entries(spec["volumes"]) {
		m.renameVolume(volume, namespace)
	}
}

func (m Mapping) renameContainer(container Content, namespace string) {
	for _, source := range entries(container["envFrom"]) {
		m.rename(child(source, "configMapRef"), "name", "ConfigMap", namespace)
		m.rename(child(source, "secretRef"), "name", "Secret", namespace)
	}
	for _, variable := range entries(container["env"]) {
		from := child(variable, "valueFrom")
		m.rename(child(from, "configMapKeyRef"), "name", "ConfigMap", namespace)
		m.rename(child(from, "secretKeyRef"), "name", "Secret", namespace)
	}
}

func (m Mapping) renameVolume(volume Content, namespace string) {
	m.rename(child(volume, "configMap"), "name", "ConfigMap", namespace)
	m.rename(child(volume, "persistentVolumeClaim"), "claimName", "PersistentVolumeClaim", namespace)
	m.rename(child(volume, "glusterfs"), "endpoints", "Endpoints", namespace)
	for _, place := range volumeSecrets {
		source := child(volume, place.source)
		if place.reference != "" {
			source = child(source, place.reference)
		}
		m.rename(source, place.field, "Secret", namespace)
	}
	for _, source := range entries(child(volume, "projected")["sources"]) {
		if config := child(source, "configMap"); config["name"] != rootCA { // replaced with the token, by replaceTokens
			m.rename(config, "name", "ConfigMap", namespace)
		}
		m.rename(child(source, "secret"), "name", "Secret", namespace)
	}
}

// claimEphemeral turns the ephemeral volumes of a Pod into the claims that the tenant's own controller makes for them
// under `<pod>-<volume>`, which cross like any other.
func claimEphemeral(spec Content, pod string) {
	for _, volume := range entries(spec["volumes"]) {
		if name, _ := volume["name"].(string); volume["ephemeral"] != nil {
			delete(volume, "ephemeral")
			volume["persistentVolumeClaim"] = Content{"claimName": pod + "-" + name}
		}
	}
}
