package access

import (
	"context"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"path"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/rest"
)

type data = map[string][]byte

// hostWith returns a host that has these Secrets in namespace team-dev, of which a nil one may not be read.
func hostWith(t *testing.T, secrets map[string]data) *Cluster {
	t.Helper()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		name := path.Base(r.URL.Path)
		assert.Equal(t, "/api/v1/namespaces/team-dev/secrets/"+name, r.URL.Path)
		resource := schema.GroupResource{Resource: "secrets"}
		var answer any
		switch found, ok := secrets[name]; {
		case !ok:
			w.WriteHeader(http.StatusNotFound)
			answer = apierrors.NewNotFound(resource, name).Status()
		case found == nil:
			w.WriteHeader(http.StatusForbidden)
			answer = apierrors.NewForbidden(resource, name, nil).Status()
		default:
			answer = corev1.Secret{TypeMeta: metav1.TypeMeta{Kind: "Secret", APIVersion: "v1"}, Data: found}
		}
		assert.NoError(t, json.NewEncoder(w).Encode(answer))
	}))
	t.Cleanup(server.Close)
	c, err := NewHost(&rest.Config{Host: server.URL}, Options{})
	require.NoError(t, err)
	t.Cleanup(c.Close)
	return c
}

func TestAKubeconfigIsFoundWhereToolsPutIt(t *testing.T) {
	for name, tt := range map[string]struct {
		secrets  map[string]data
		explicit string
		want     string
		source   string
	}{
		"k3k and others":              {secrets: map[string]data{"dev-control-plane-kubeconfig": {"kubeconfig": []byte("a")}}, want: "a", source: "Secret team-dev/dev-control-plane-kubeconfig, key kubeconfig"},
		"Cluster API":                 {secrets: map[string]data{"dev-kubeconfig": {"value": []byte("a")}}, want: "a", source: "Secret team-dev/dev-kubeconfig, key value"},
		"vcluster":                    {secrets: map[string]data{"vc-dev": {"config": []byte("a"), "client-key": []byte("b")}}, want: "a", source: "Secret team-dev/vc-dev, key config"},
		"Kamaji":                      {secrets: map[string]data{"dev-admin-kubeconfig": {"admin.conf": []byte("a"), "super-admin.conf": []byte("b")}}, want: "a", source: "Secret team-dev/dev-admin-kubeconfig, key admin.conf"},
		"the first Secret counts":     {secrets: map[string]data{"vc-dev": {"config": []byte("b")}, "dev-kubeconfig": {"value": []byte("a")}}, want: "a", source: "Secret team-dev/dev-kubeconfig, key value"},
		"the first key counts":        {secrets: map[string]data{"vc-dev": {"config": []byte("b"), "value": []byte("c"), "kubeconfig.yaml": []byte("a"), "kubeconfig": {}}}, want: "a", source: "Secret team-dev/vc-dev, key kubeconfig.yaml"},
		"a named Secret alone counts": {secrets: map[string]data{"mine": {"value": []byte("a")}, "dev-control-plane-kubeconfig": {"value": []byte("b")}}, explicit: "mine", want: "a", source: "Secret team-dev/mine, key value"},
		"unreadable ones are passed":  {secrets: map[string]data{"dev-control-plane-kubeconfig": nil, "dev-kubeconfig": nil, "vc-dev": {"config": []byte("a")}}, want: "a", source: "Secret team-dev/vc-dev, key config"},
	} {
		t.Run(name, func(t *testing.T) {
			got, source, err := FindKubeconfig(context.Background(), hostWith(t, tt.secrets).Core(), "team-dev", "dev", tt.explicit)
			require.NoError(t, err)
			assert.Equal(t, tt.want, string(got))
			assert.Equal(t, tt.source, source)
		})
	}
}

func TestAKubeconfigThatIsNotFoundSaysWhereItWasLookedFor(t *testing.T) {
	for name, tt := range map[string]struct {
		secrets  map[string]data
		explicit string
		want     string
	}{
		"no Secret": {want: "no kubeconfig for tenant dev: namespace team-dev has no Secret dev-control-plane-kubeconfig or dev-kubeconfig or vc-dev or dev-admin-kubeconfig: " +
			"create it with the kubeconfig under the key kubeconfig, or name another with SYNCPASS_TENANT_KUBECONFIG_SECRET"},
		"not the one that was named": {secrets: map[string]data{"vc-dev": {"config": []byte("a")}}, explicit: "mine", want: "namespace team-dev has no Secret mine:"},
		"no key": {secrets: map[string]data{"dev-kubeconfig": {"token": []byte("hidden"), "ca": []byte("hidden"), "value": {}}, "vc-dev": {"config": []byte("b")}},
			want: "Secret team-dev/dev-kubeconfig holds no kubeconfig for tenant dev: it has the keys ca, token, value (empty), and what counts is the first of kubeconfig, kubeconfig.yaml, config, value, admin.conf that is not empty"},
		"an empty Secret": {secrets: map[string]data{"vc-dev": {}}, want: "it has no keys"},
		"no permission":   {secrets: map[string]data{"dev-kubeconfig": nil, "vc-dev": nil}, want: "no permission to read Secret dev-kubeconfig, vc-dev in namespace team-dev for the kubeconfig of tenant dev: allow `get` on it"},
	} {
		t.Run(name, func(t *testing.T) {
			_, _, err := FindKubeconfig(context.Background(), hostWith(t, tt.secrets).Core(), "team-dev", "dev", tt.explicit)
			var config *ConfigError
			require.ErrorAs(t, err, &config)
			assert.ErrorContains(t, err, tt.want)
			assert.NotContains(t, err.Error(), "hidden")
			assert.False(t, Unreachable(err))
		})
	}
}

func TestAHostThatDoesNotAnswerIsNoMissingSecret(t *testing.T) {
	gone := httptest.NewServer(http.NotFoundHandler())
	gone.Close()
	c, err := NewHost(&rest.Config{Host: gone.URL}, Options{})
	require.NoError(t, err)
	_, _, err = FindKubeconfig(context.Background(), c.Core(), "team-dev", "dev", "")
	var config *ConfigError
	assert.NotErrorAs(t, err, &config)
	assert.True(t, Unreachable(err), "%v", err)
	assert.ErrorContains(t, err, "reading Secret team-dev/dev-control-plane-kubeconfig for the kubeconfig of tenant dev: ")
}

// A tenant a-x-b-x-dev looks for its kubeconfig under a name that a Secret vc-a of tenant dev's namespace b has on the host.
func TestAMirrorIsNobodysKubeconfig(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		if !strings.HasSuffix(r.URL.Path, "/vc-a-x-b-x-dev") {
			w.WriteHeader(http.StatusNotFound)
			assert.NoError(t, json.NewEncoder(w).Encode(metav1.Status{Status: metav1.StatusFailure, Reason: metav1.StatusReasonNotFound, Code: http.StatusNotFound}))
			return
		}
		assert.NoError(t, json.NewEncoder(w).Encode(corev1.Secret{
			ObjectMeta: metav1.ObjectMeta{Annotations: map[string]string{"tenantplane.io/virtual-name": "vc-a\n"}},
			Data:       map[string][]byte{"kubeconfig": []byte("hidden")},
		}))
	}))
	t.Cleanup(server.Close)
	c, err := NewHost(&rest.Config{Host: server.URL}, Options{})
	require.NoError(t, err)
	_, _, err = FindKubeconfig(t.Context(), c.Core(), "team-dev", "a-x-b-x-dev", "")
	var config *ConfigError
	require.ErrorAs(t, err, &config)
	assert.ErrorContains(t, err, `is the mirror of a tenant's Secret "vc-a\n"`)
}
