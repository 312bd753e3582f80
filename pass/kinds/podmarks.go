package kinds

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"
)

// The annotations of a mirror that its downward API reads the tenant's values from.
const (
	annotationVirtualLabels      = domain + "/virtual-labels"
	annotationVirtualAnnotations = domain + "/virtual-annotations"
)

// annotate keeps on the mirror what the downward API and later passes need of the tenant's Pod.
func (m Mapping) annotate(mirror, tenant *unstructured.Unstructured) {
	annotations := nonNil(mirror.GetAnnotations())
	if tokens, mounts := m.TokensOf(tenant); mounts {
		annotations[AnnotationTokens] = tokens.SecretName
	}
	annotations[AnnotationImages] = formatImages(child(tenant.Object, "spec"))
	spec := child(mirror.Object, "spec")
	if readsAll(spec, annotationVirtualLabels) {
		annotations[annotationVirtualLabels] = formatMap(tenant.GetLabels())
	}
	if readsAll(spec, annotationVirtualAnnotations) {
		annotations[annotationVirtualAnnotations] = formatMap(tenant.GetAnnotations())
	}
	mirror.SetAnnotations(annotations)
}

// tenantFields are the downward API fields whose values differ on the host, and the mirror's field that has the tenant's.
var tenantFields = map[string]string{
	"metadata.name":        annotationField(AnnotationVirtualName),
	"metadata.namespace":   annotationField(AnnotationVirtualNamespace),
	"metadata.uid":         annotationField(AnnotationVirtualUID),
	"metadata.labels":      annotationField(annotationVirtualLabels),
	"metadata.annotations": annotationField(annotationVirtualAnnotations),
}

func annotationField(key string) string { return fmt.Sprintf("metadata.annotations['%s']", key) }

// downward makes the downward API of a Pod give the tenant's values. `status.*`, spec.nodeName and resources stay with
// the kubelet.
func downward(spec Content, tenant *unstructured.Unstructured) {
	for _, list := range containerLists {
		for _, container := range entries(spec[list]) {
			for _, variable := range entries(container["env"]) {
				from := child(variable, "valueFrom")
				field := child(from, "fieldRef")
				if field["fieldPath"] == "spec.serviceAccountName" {
					delete(variable, "valueFrom")
					account, _, _ := unstructured.NestedString(tenant.Object, "spec", "serviceAccountName")
					variable["value"] = account
					continue
				}
				readTenant(field)
			}
		}
	}
	eachDownward(spec, readTenant)
}

// eachDownward visits the fields that a Pod's volumes read through the downward API.
func eachDownward(spec Content, visit func(field Content)) {
	for _, volume := range entries(spec["volumes"]) {
		for _, item := range entries(child(volume, "downwardAPI")["items"]) {
			visit(child(item, "fieldRef"))
		}
	}
	for _, source := range projections(spec) {
		for _, item := range entries(child(source, "downwardAPI")["items"]) {
			visit(child(item, "fieldRef"))
		}
	}
}

func readTenant(field Content) {
	path, _ := field["fieldPath"].(string)
	if there, found := tenantFields[path]; found {
		field["fieldPath"] = there
		return
	}
	if key, found := strings.CutPrefix(path, "metadata.labels['"); found {
		field["fieldPath"] = "metadata.labels['" + aliasLabel(strings.TrimSuffix(key, "']")) + "']"
	}
}

// readsAll says whether a spec reads the annotation through the downward API.
func readsAll(spec Content, annotation string) bool {
	found := false
	eachDownward(spec, func(field Content) {
		found = found || field["fieldPath"] == annotationField(annotation)
	})
	return found
}

// formatMap writes labels or annotations as the kubelet does.
func formatMap(values map[string]string) string {
	lines := make([]string, 0, len(values))
	for _, key := range slices.Sorted(maps.Keys(values)) {
		lines = append(lines, fmt.Sprintf("%v=%q", key, values[key]))
	}
	return strings.Join(lines, "\n")
}

// formatImages writes down the image of each container that the tenant asked for.
func formatImages(spec Content) string {
	var images []string
	for _, list := range []string{"initContainers", "containers"} {
		for _, container := range entries(spec[list]) {
			images = append(images, fmt.Sprintf("%v=%v", container["name"], container["image"]))
		}
	}
	slices.Sort(images)
	return strings.Join(images, " ")
}

// imagesBefore are the images that the tenant had asked for when the mirror was last written.
func imagesBefore(host *unstructured.Unstructured) map[string]any {
	images := map[string]any{}
	for _, pair := range strings.Fields(host.GetAnnotations()[AnnotationImages]) {
		if name, image, found := strings.Cut(pair, "="); found {
			images[name] = image
		}
	}
	return images
}

// managedImage says whether a container's image on the host was last set by one of our writes, webhooks included.
func managedImage(host *unstructured.Unstructured, list, name string) bool {
	path := fieldpath.MakePathOrDie("spec", list, fieldpath.KeyByFields("name", name), "image")
	for _, entry := range host.GetManagedFields() {
		set := &fieldpath.Set{}
		if entry.Manager == FieldManager && entry.FieldsV1 != nil && set.FromJSON(entry.FieldsV1.GetRawReader()) == nil && set.Has(path) {
			return true
		}
	}
	return false
}
