package apply

import (
	"context"
	"fmt"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/syncpass/syncpass/pass/kinds"
	"github.com/syncpass/syncpass/pass/plan"
)

// provideTokens makes the Secret on the host with the tenant tokens that a Pod's mirror mounts, before the mirror. One
// that is there already, from a pass that got no further, serves as well.
func (w *Writer) provideTokens(ctx context.Context, step *plan.Step) error {
	if step.Tokens == nil {
		return nil
	}
	secret, err := w.requestTokens(ctx, step.Tokens)
	if err != nil {
		return err
	}
	_, err = w.Host.Secrets(step.HostNamespace).Create(ctx, secret, metav1.CreateOptions{FieldManager: kinds.FieldManager})
	if apierrors.IsAlreadyExists(err) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("making Secret %s for the Pod's tokens: %w", secret.Name, err)
	}
	return nil
}

// requestTokens asks the tenant for the tokens, each bound to the tenant's Pod.
func (w *Writer) requestTokens(ctx context.Context, tokens *kinds.Tokens) (*corev1.Secret, error) {
	data := map[string][]byte{kinds.TokenKeyCA: w.TenantCA}
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
			return nil, fmt.Errorf("asking the tenant for a token of ServiceAccount %s/%s: %w", tokens.Namespace, tokens.ServiceAccount, err)
		}
		data[token.Key] = []byte(granted.Status.Token)
		expires := granted.Status.ExpirationTimestamp.Time
		if half := expires.Add(-time.Until(expires) / 2); renew.IsZero() || half.Before(renew) {
			renew = half
		}
	}
	return &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{
			Name: tokens.SecretName, Labels: tokens.Labels, OwnerReferences: []metav1.OwnerReference{tokens.Owner},
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
