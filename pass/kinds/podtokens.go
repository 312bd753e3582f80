package kinds

import (
	"fmt"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"
)

// KindTokens is the kind label of the Secrets on the host that hold a Pod's tenant tokens.
const KindTokens = "pod-tokens"

// AnnotationRenewAfter is when the tokens in such a Secret have less than half of their time left, in RFC 3339.
const AnnotationRenewAfter = domain + "/renew-after"

// AnnotationTokens on a Pod's mirror is the name of that Secret.
const AnnotationTokens = domain + "/tokens"

// TokenKeyCA is the key of the tenant's CA in such a Secret.
const TokenKeyCA = "ca.crt"

// defaultExpiration is what a token gets that names no time, in seconds: the longest that some clouds take, and long
// enough to outlive missed passes.
const defaultExpiration = 24 * 60 * 60

// Tokens are the tenant tokens that a Pod mounts. A Secret on the host holds them, never an annotation, which whoever
// may read Pods could read.
type Tokens struct {
	// SecretName is the Secret's name on the host.
	SecretName string
	// Namespace, ServiceAccount, PodName and PodUID are the tenant's, which the tokens are bound to.
	Namespace, ServiceAccount, PodName string
	PodUID                             types.UID
	Tokens                             []Token
	// Labels are the Secret's: it is marked as ours, and as no mirror.
	Labels map[string]string
}

// Token is one of them.
type Token struct {
	// Key is its key in the Secret.
	Key string
	// Audience is empty for the tenant's API server.
	Audience string
	// ExpirationSeconds is how long it lives.
	ExpirationSeconds int64
}

// TokensOf are the tokens of a tenant's Pod; false where it mounts none.
func (m Mapping) TokensOf(tenant *unstructured.Unstructured) (Tokens, bool) {
	spec := child(tenant.Object, "spec")
	tokens := Tokens{
		SecretName: m.tokenSecret(tenant),
		Namespace:  tenant.GetNamespace(), PodName: tenant.GetName(), PodUID: tenant.GetUID(),
		ServiceAccount: "default",
		Labels:         m.labels(KindTokens, tenant.GetNamespace()),
	}
	if account, _ := spec["serviceAccountName"].(string); account != "" {
		tokens.ServiceAccount = account
	}
	eachToken(spec, func(_, token Content) {
		one := Token{Key: tokenKey(len(tokens.Tokens)), ExpirationSeconds: defaultExpiration}
		one.Audience, _ = token["audience"].(string)
		// 3607 is what the admission plugin writes into the volume that it injects, for kubelets that renew.
		if seconds, ok := token["expirationSeconds"].(int64); ok && seconds != injectedExpiration {
			one.ExpirationSeconds = seconds
		}
		tokens.Tokens = append(tokens.Tokens, one)
	})
	return tokens, len(tokens.Tokens) > 0
}

const injectedExpiration = 3607

// TokenSelector is the label selector of the Secrets with the tokens of the tenant's Pods.
func (m Mapping) TokenSelector() string {
	return labels.SelectorFromSet(labels.Set{
		LabelManagedBy: ManagedBy, LabelTenant: labelValue(m.Tenant), LabelKind: KindTokens,
	}).String()
}

// tokenSecret is the name of the Secret with a Pod's tokens. It ends in a digest of what no mirror's name is made of.
func (m Mapping) tokenSecret(tenant *unstructured.Unstructured) string {
	head := readable(tenant.GetName())
	if most := maxNameLength - digestLength - len("-tokens-"); len(head) > most {
		head = head[:most]
	}
	return head + "-tokens-" + digest(tenant.GetName(), tenant.GetNamespace(), m.Tenant, string(tenant.GetUID()), KindTokens)
}

func tokenKey(index int) string { return fmt.Sprintf("token-%d", index) }

// replaceTokens replaces every serviceAccountToken source, which would give the Pod a token of the host, and the root CA
// beside it, by the Secret that holds the tenant's.
func (m Mapping) replaceTokens(spec Content, tenant *unstructured.Unstructured) {
	secret := m.tokenSecret(tenant)
	index := 0
	eachToken(spec, func(source, token Content) {
		path, _ := token["path"].(string)
		delete(source, "serviceAccountToken")
		source["secret"] = Content{"name": secret, "items": []any{Content{"key": tokenKey(index), "path": path}}}
		index++
	})
	if index == 0 {
		return
	}
	for _, source := range projections(spec) {
		if config := child(source, "configMap"); config["name"] == RootCA {
			replaced := Content{"name": secret, "items": []any{Content{"key": TokenKeyCA, "path": TokenKeyCA}}}
			if items, found := config["items"]; found {
				replaced["items"] = items
			}
			delete(source, "configMap")
			source["secret"] = replaced
		}
	}
}

// eachToken visits the serviceAccountToken sources of a Pod's spec in order.
func eachToken(spec Content, visit func(source, token Content)) {
	for _, source := range projections(spec) {
		if token, found := source["serviceAccountToken"].(Content); found {
			visit(source, token)
		}
	}
}
