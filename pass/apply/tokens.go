package apply

import (
	"context"
	"errors"
	"fmt"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	corev1client "k8s.io/client-go/kubernetes/typed/core/v1"
	"k8s.io/utils/ptr"

	"github.com/syncpass/syncpass/pass/kinds"
	"github.com/syncpass/syncpass/pass/plan"
)

// TokenSource is what is needed of the tenant's API for Pods' tokens.
type TokenSource interface {
	corev1client.ServiceAccountsGetter
	corev1client.ConfigMapsGetter
}

// caOf is the CA that Pods of a namespace trust the tenant's API server by. The kubeconfig's is that of the address that
// passes take, which need not be the one that Pods take. It is asked for once for all Pods of a namespace.
func (w *Writer) caOf(ctx context.Context, namespace string) []byte {
	if ca, known := w.cas.Load(namespace); known {
		return ca.([]byte)
	}
	published, err := w.Tenant.ConfigMaps(namespace).Get(ctx, kinds.RootCA, metav1.GetOptions{})
	if err != nil || published.Data[kinds.TokenKeyCA] == "" {
		return w.TenantCA
	}
	ca := []byte(published.Data[kinds.TokenKeyCA])
	w.cas.Store(namespace, ca)
	return ca
}

// createWithTokens makes a Pod's mirror and then the Secret with the tenant tokens that it mounts, which belongs to it and
// so goes with it. The tokens are asked for first: where the tenant grants none, there is no mirror. A pass that ends in
// between leaves a mirror that waits for its volume, and the next one provides the tokens.
func (w *Writer) createWithTokens(ctx context.Context, result *Result) (*unstructured.Unstructured, error) {
	secret, err := w.requestTokens(ctx, result.Step.Tokens)
	if err != nil {
		return nil, err
	}
	mirror, err := w.create(ctx, result)
	if err != nil {
		return nil, err
	}
	return mirror, w.storeTokens(ctx, mirror, secret)
}

// renewTokens replaces the tokens of a mirror that is there.
func (w *Writer) renewTokens(ctx context.Context, step *plan.Step) error {
	secret, err := w.requestTokens(ctx, step.Tokens)
	if err != nil {
		return err
	}
	return w.storeTokens(ctx, step.Have, secret)
}

// storeTokens makes or replaces the Secret with the tokens of a mirror.
func (w *Writer) storeTokens(ctx context.Context, mirror *unstructured.Unstructured, secret *corev1.Secret) error {
	secret.OwnerReferences = []metav1.OwnerReference{{
		APIVersion: "v1", Kind: "Pod", Name: mirror.GetName(), UID: mirror.GetUID(), BlockOwnerDeletion: ptr.To(false),
	}}
	secrets := w.Host.Secrets(mirror.GetNamespace())
	_, err := secrets.Create(ctx, secret, metav1.CreateOptions{FieldManager: kinds.FieldManager})
	if !apierrors.IsAlreadyExists(err) {
		return wrapTokens(secret, err)
	}
	there, err := secrets.Get(ctx, secret.Name, metav1.GetOptions{})
	if err != nil {
		return wrapTokens(secret, err)
	}
	if there.Labels[kinds.LabelKind] != kinds.KindTokens || there.Labels[kinds.LabelTenant] != secret.Labels[kinds.LabelTenant] {
		return wrapTokens(secret, errors.New("a Secret that is not ours stands at this name"))
	}
	secret.ResourceVersion = there.ResourceVersion
	_, err = secrets.Update(ctx, secret, metav1.UpdateOptions{FieldManager: kinds.FieldManager})
	return wrapTokens(secret, err)
}

func wrapTokens(secret *corev1.Secret, err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("writing Secret %s with the Pod's tokens: %w", secret.Name, err)
}

// ungrantedError is the tenant's refusal to grant a token. It says nothing about the object that is being written.
type ungrantedError struct {
	account string
	err     error
}

func (e *ungrantedError) Error() string {
	return fmt.Sprintf("asking the tenant for a token of ServiceAccount %s: %v", e.account, e.err)
}

func (e *ungrantedError) Unwrap() error { return e.err }

// requestTokens asks the tenant for the tokens, each bound to the tenant's Pod.
func (w *Writer) requestTokens(ctx context.Context, tokens *kinds.Tokens) (*corev1.Secret, error) {
	data := map[string][]byte{kinds.TokenKeyCA: w.caOf(ctx, tokens.Namespace)}
	renew := time.Time{}
	for _, token := range tokens.Tokens {
		request := &authenticationv1.TokenRequest{Spec: authenticationv1.TokenRequestSpec{
			ExpirationSeconds: &token.ExpirationSeconds,
			BoundObjectRef:    &authenticationv1.BoundObjectReference{APIVersion: "v1", Kind: "Pod", Name: tokens.PodName, UID: tokens.PodUID},
		}}
		if token.Audience != "" {
			request.Spec.Audiences = []string{token.Audience}
		}
		granted, err := w.Tenant.ServiceAccounts(tokens.Namespace).CreateToken(ctx, tokens.ServiceAccount, request, metav1.CreateOptions{})
		if err != nil {
			return nil, &ungrantedError{tokens.Namespace + "/" + tokens.ServiceAccount, err}
		}
		data[token.Key] = []byte(granted.Status.Token)
		expires := granted.Status.ExpirationTimestamp.Time
		if half := expires.Add(-time.Until(expires) / 2); renew.IsZero() || half.Before(renew) {
			renew = half
		}
	}
	return &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{
			Name: tokens.SecretName, Labels: tokens.Labels,
			Annotations: map[string]string{
				kinds.AnnotationVirtualNamespace: tokens.Namespace,
				kinds.AnnotationVirtualName:      tokens.PodName,
				kinds.AnnotationVirtualUID:       string(tokens.PodUID),
				kinds.AnnotationRenewAfter:       renew.UTC().Format(time.RFC3339),
			},
		},
		Data: data,
	}, nil
}
