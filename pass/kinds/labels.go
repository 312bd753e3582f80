package kinds

import (
	"strings"

	corev1 "k8s.io/api/core/v1"
)

// managedByAlias keeps a tenant's own value of the managed-by label, which the mark takes.
const managedByAlias = "app-kubernetes-io." + domain + "/managed-by"

// aliasLabel is the key under which a tenant's label stands on the mirror. Reserved keys move to an alias, so that a
// tenant can neither forge a mark nor lose its own label; the mapping is one to one, unaliasLabel its inverse.
func aliasLabel(key string) string {
	if key == LabelManagedBy {
		return managedByAlias
	}
	if prefix, name, found := strings.Cut(key, "/"); found && (prefix == domain || strings.HasSuffix(prefix, "."+domain)) {
		return "alias." + prefix + "/" + name
	}
	return key
}

// unaliasLabel is the tenant's key of a label on the mirror.
func unaliasLabel(key string) string {
	if key == managedByAlias {
		return LabelManagedBy
	}
	if rest, found := strings.CutPrefix(key, "alias."); found {
		if prefix, _, found := strings.Cut(rest, "/"); found && (prefix == domain || strings.HasSuffix(prefix, "."+domain)) {
			return rest
		}
	}
	return key
}

// markLabel says whether a label on the host is a mark, or another reserved one that no tenant's label is ever kept
// under, and so no content.
func markLabel(key string) bool { return aliasLabel(unaliasLabel(key)) != key }

// ownAnnotation says whether an annotation never crosses: ours, kubectl's copy of the whole object (which leaks a
// Secret's data and grows past the size limit), and what one side's own controllers write about that side.
func ownAnnotation(key string) bool {
	if strings.HasPrefix(key, domain+"/") || strings.HasPrefix(key, "pv.kubernetes.io/") {
		return true
	}
	switch key {
	case corev1.LastAppliedConfigAnnotation,
		"deployment.kubernetes.io/revision",
		"deployment.kubernetes.io/desired-replicas",
		"deployment.kubernetes.io/max-replicas",
		"endpoints.kubernetes.io/last-change-trigger-time",
		"endpoints.kubernetes.io/over-capacity",
		"control-plane.alpha.kubernetes.io/leader",
		"volume.beta.kubernetes.io/storage-provisioner",
		"volume.kubernetes.io/storage-provisioner",
		"volume.kubernetes.io/storage-resizer",
		"volume.kubernetes.io/selected-node",
		"field.cattle.io/publicEndpoints": // Rancher writes it on either side, each with that side's addresses
		return true
	}
	return false
}
