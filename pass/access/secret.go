package access

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	corev1client "k8s.io/client-go/kubernetes/typed/core/v1"
)

// kubeconfigKeys are the keys under which tools keep a kubeconfig in a Secret, in the order in which they are tried:
// k3k and others, Cluster API (value), vcluster (config), Kamaji (admin.conf).
var kubeconfigKeys = []string{"kubeconfig", "kubeconfig.yaml", "config", "value", "admin.conf"}

// mirrorAnnotation is on every mirror, and no tenant can keep it off. A tenant dev that has a Secret vc-a in its namespace b
// would have a mirror by the name that the kubeconfig of a tenant a-x-b-x-dev is looked for under.
const mirrorAnnotation = "tenantplane.io/virtual-name"

// KubeconfigSecrets returns the names under which tools keep the Secret of a tenant, in the order in which they are
// tried: syncpass's own, Cluster API's, vcluster's, Kamaji's.
func KubeconfigSecrets(tenant string) []string {
	return []string{tenant + "-control-plane-kubeconfig", tenant + "-kubeconfig", "vc-" + tenant, tenant + "-admin-kubeconfig"}
}

// FindKubeconfig returns the kubeconfig of a tenant from a Secret on the host, and where it was found, for messages. An
// explicit Secret is the only one looked at; without one the first of the usual names that exists counts, and must hold
// a kubeconfig: a later one may belong to something else. A name that this process may not read is passed over as long
// as a later one can be read, so a Role can be limited to the one Secret that there is. The mirror of a tenant's Secret is
// refused: a tenant must not choose where another's passes go.
//
// The error is a *ConfigError where a Secret or its key is missing or forbidden; otherwise the host could not be asked,
// see Unreachable.
func FindKubeconfig(ctx context.Context, core corev1client.SecretsGetter, namespace, tenant, explicit string) (data []byte, source string, err error) {
	return FindKubeconfigBy(func(name string) (*corev1.Secret, error) {
		return core.Secrets(namespace).Get(ctx, name, metav1.GetOptions{})
	}, namespace, tenant, explicit)
}

// FindKubeconfigBy is FindKubeconfig with another way to read a Secret of the namespace, which says that there is none in the
// API's way.
func FindKubeconfigBy(get func(name string) (*corev1.Secret, error), namespace, tenant, explicit string) (data []byte, source string, err error) {
	names := KubeconfigSecrets(tenant)
	if explicit != "" {
		names = []string{explicit}
	}
	var forbidden []string
	for _, name := range names {
		secret, err := get(name)
		switch {
		case apierrors.IsNotFound(err):
			continue
		case apierrors.IsForbidden(err):
			forbidden = append(forbidden, name)
			continue
		case err != nil:
			return nil, "", fmt.Errorf("reading Secret %s/%s for the kubeconfig of tenant %s: %w", namespace, name, tenant, err)
		}
		if of, mirror := secret.Annotations[mirrorAnnotation]; mirror {
			return nil, "", configErrorf("Secret %s/%s is the mirror of a tenant's Secret %s, and nobody's kubeconfig: name the one that is meant with SYNCPASS_TENANT_KUBECONFIG_SECRET",
				namespace, name, quote(of))
		}
		for _, key := range kubeconfigKeys {
			if data := secret.Data[key]; len(data) > 0 {
				return data, fmt.Sprintf("Secret %s/%s, key %s", namespace, name, key), nil
			}
		}
		return nil, "", configErrorf("Secret %s/%s holds no kubeconfig for tenant %s: it has %s, and what counts is the first of %s that is not empty: put the kubeconfig under one of these keys",
			namespace, name, tenant, keysOf(secret.Data), strings.Join(kubeconfigKeys, ", "))
	}
	if len(forbidden) > 0 {
		return nil, "", configErrorf("no permission to read Secret %s in namespace %s for the kubeconfig of tenant %s: allow `get` on it to this process's service account, or set SYNCPASS_TENANT_KUBECONFIG_SECRET to a Secret that it may read",
			strings.Join(forbidden, ", "), namespace, tenant)
	}
	return nil, "", configErrorf("no kubeconfig for tenant %s: namespace %s has no Secret %s: create it with the kubeconfig under the key kubeconfig, or name another with SYNCPASS_TENANT_KUBECONFIG_SECRET",
		tenant, namespace, strings.Join(names, " or "))
}

// keysOf names the keys of a Secret; their values stay out of messages.
func keysOf(data map[string][]byte) string {
	if len(data) == 0 {
		return "no keys"
	}
	keys := slices.Sorted(maps.Keys(data))
	for i := range keys {
		if len(data[keys[i]]) == 0 {
			keys[i] += " (empty)"
		}
	}
	return "the keys " + strings.Join(keys, ", ")
}

func configErrorf(format string, args ...any) error {
	return &ConfigError{Problems: []error{fmt.Errorf(format, args...)}}
}
