package snapshot

import (
	"reflect"
	"sync"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/kubernetes/scheme"

	"github.com/syncpass/syncpass/policy"
)

// clusterScoped are the built-in kinds, and of our own, that are in no namespace. Their Go types do not say it, and no
// library that a program may use lists it; a test compares this with what a kube-apiserver serves.
var clusterScoped = map[schema.GroupKind]bool{
	{Kind: "ComponentStatus"}:  true,
	{Kind: "Namespace"}:        true,
	{Kind: "Node"}:             true,
	{Kind: "PersistentVolume"}: true,

	{Group: policy.Group, Kind: "SyncPolicy"}: true,

	{Group: "admissionregistration.k8s.io", Kind: "MutatingAdmissionPolicy"}:          true,
	{Group: "admissionregistration.k8s.io", Kind: "MutatingAdmissionPolicyBinding"}:   true,
	{Group: "admissionregistration.k8s.io", Kind: "MutatingWebhookConfiguration"}:     true,
	{Group: "admissionregistration.k8s.io", Kind: "ValidatingAdmissionPolicy"}:        true,
	{Group: "admissionregistration.k8s.io", Kind: "ValidatingAdmissionPolicyBinding"}: true,
	{Group: "admissionregistration.k8s.io", Kind: "ValidatingWebhookConfiguration"}:   true,
	{Group: "apiextensions.k8s.io", Kind: "CustomResourceDefinition"}:                 true,
	{Group: "apiregistration.k8s.io", Kind: "APIService"}:                             true,
	{Group: "authentication.k8s.io", Kind: "SelfSubjectReview"}:                       true,
	{Group: "authentication.k8s.io", Kind: "TokenReview"}:                             true,
	{Group: "authorization.k8s.io", Kind: "SelfSubjectAccessReview"}:                  true,
	{Group: "authorization.k8s.io", Kind: "SelfSubjectRulesReview"}:                   true,
	{Group: "authorization.k8s.io", Kind: "SubjectAccessReview"}:                      true,
	{Group: "certificates.k8s.io", Kind: "CertificateSigningRequest"}:                 true,
	{Group: "certificates.k8s.io", Kind: "ClusterTrustBundle"}:                        true,
	{Group: "flowcontrol.apiserver.k8s.io", Kind: "FlowSchema"}:                       true,
	{Group: "flowcontrol.apiserver.k8s.io", Kind: "PriorityLevelConfiguration"}:       true,
	{Group: "imagepolicy.k8s.io", Kind: "ImageReview"}:                                true,
	{Group: "internal.apiserver.k8s.io", Kind: "StorageVersion"}:                      true,
	{Group: "networking.k8s.io", Kind: "IPAddress"}:                                   true,
	{Group: "networking.k8s.io", Kind: "IngressClass"}:                                true,
	{Group: "networking.k8s.io", Kind: "ServiceCIDR"}:                                 true,
	{Group: "node.k8s.io", Kind: "RuntimeClass"}:                                      true,
	{Group: "policy", Kind: "PodSecurityPolicy"}:                                      true,
	{Group: "rbac.authorization.k8s.io", Kind: "ClusterRole"}:                         true,
	{Group: "rbac.authorization.k8s.io", Kind: "ClusterRoleBinding"}:                  true,
	{Group: "resource.k8s.io", Kind: "DeviceClass"}:                                   true,
	{Group: "resource.k8s.io", Kind: "DeviceTaintRule"}:                               true,
	{Group: "resource.k8s.io", Kind: "ResourceSlice"}:                                 true,
	{Group: "scheduling.k8s.io", Kind: "PriorityClass"}:                               true,
	{Group: "storage.k8s.io", Kind: "CSIDriver"}:                                      true,
	{Group: "storage.k8s.io", Kind: "CSINode"}:                                        true,
	{Group: "storage.k8s.io", Kind: "StorageClass"}:                                   true,
	{Group: "storage.k8s.io", Kind: "VolumeAttachment"}:                               true,
	{Group: "storage.k8s.io", Kind: "VolumeAttributesClass"}:                          true,
	{Group: "storagemigration.k8s.io", Kind: "StorageVersionMigration"}:               true,
}

// builtIn are the kinds that come with Kubernetes, by the Go types that client-go has of them.
var builtIn = sync.OnceValue(func() map[schema.GroupVersionKind]metav1.APIResource {
	found := map[schema.GroupVersionKind]metav1.APIResource{}
	types := scheme.Scheme.AllKnownTypes()
	for kind, goType := range types {
		if _, isObject := reflect.New(goType).Interface().(metav1.Object); !isObject || kind.Version == runtime.APIVersionInternal {
			continue
		}
		var verbs metav1.Verbs
		if _, listed := types[kind.GroupVersion().WithKind(kind.Kind+"List")]; listed {
			verbs = metav1.Verbs{"list"}
		}
		plural, _ := meta.UnsafeGuessKindToResource(kind)
		found[kind] = metav1.APIResource{Name: plural.Resource, Kind: kind.Kind, Namespaced: !clusterScoped[kind.GroupKind()], Verbs: verbs}
	}
	return found
})

var definitionKind = schema.GroupKind{Group: "apiextensions.k8s.io", Kind: "CustomResourceDefinition"}

// definitions are the kinds that CustomResourceDefinitions among the objects define.
func definitions(objects []FileObject) map[schema.GroupVersionKind]metav1.APIResource {
	found := map[schema.GroupVersionKind]metav1.APIResource{}
	for _, object := range objects {
		if object.GroupVersionKind().GroupKind() != definitionKind {
			continue
		}
		text := func(path ...string) string {
			value, _, _ := unstructured.NestedString(object.Object, append([]string{"spec"}, path...)...)
			return value
		}
		versions, _, _ := unstructured.NestedSlice(object.Object, "spec", "versions")
		for _, one := range versions {
			version, _ := one.(map[string]any)
			name, _ := version["name"].(string)
			if served, _ := version["served"].(bool); !served {
				continue
			}
			kind := schema.GroupVersionKind{Group: text("group"), Version: name, Kind: text("names", "kind")}
			found[kind] = metav1.APIResource{
				Name: text("names", "plural"), Kind: kind.Kind, Namespaced: text("scope") != "Cluster", Verbs: metav1.Verbs{"list"},
			}
		}
	}
	return found
}

// served is what an API server with these objects would serve, as far as files tell, and the kinds of the policy that it is
// only assumed to:
//
//	the kind is                      its side's files have          | then
//	-------------------------------  ------------------------------ | ----
//	built into Kubernetes            any                            | served
//	of a group of Kubernetes itself  any                            | not served
//	another                          its definition                 | served as that says
//	another                          objects of it, no definition   | assumed to be served, and namespaced
//	another                          other definitions, not its own | not served
//	another                          no definitions                 | assumed to be served, and namespaced
func (f *Files) served(resources []policy.Resource) (served, []schema.GroupVersionKind) {
	found := newServed()
	for kind, resource := range builtIn() {
		found.kinds[kind] = resource
	}
	for kind, resource := range f.defined {
		found.kinds[kind] = resource
	}
	var assumed []schema.GroupVersionKind
	for _, resource := range resources {
		kind := schema.FromAPIVersionAndKind(resource.APIVersion, resource.Kind)
		_, known := found.kinds[kind]
		if known || scheme.Scheme.IsGroupRegistered(kind.Group) || len(f.defined) > 0 && len(f.Of(kind.GroupKind())) == 0 {
			continue
		}
		plural, _ := meta.UnsafeGuessKindToResource(kind)
		found.kinds[kind] = metav1.APIResource{Name: plural.Resource, Kind: kind.Kind, Namespaced: true, Verbs: metav1.Verbs{"list"}}
		assumed = append(assumed, kind)
	}
	return found, assumed
}
