package access

import (
	"context"
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
)

func TestDescribe(t *testing.T) {
	for _, tt := range []struct{ method, path, verb, resource string }{
		{"GET", "/api", "get", ""},
		{"GET", "/apis", "get", ""},
		{"GET", "/api/v1", "get", ""},
		{"GET", "/apis/apps/v1", "get", ""},
		{"GET", "/version", "get", ""},
		{"GET", "/api/v1/pods", "list", "pods"},
		{"GET", "/api/v1/namespaces", "list", "namespaces"},
		{"GET", "/api/v1/namespaces/kube-system", "get", "namespaces"},
		{"PUT", "/api/v1/namespaces/kube-system/status", "update", "namespaces/status"},
		{"GET", "/api/v1/namespaces/team-dev/secrets", "list", "secrets"},
		{"GET", "/api/v1/namespaces/team-dev/secrets/app", "get", "secrets"},
		{"POST", "/api/v1/namespaces/team-dev/pods/web/binding", "create", "pods/binding"},
		{"POST", "/apis/apps/v1/namespaces/default/deployments", "create", "deployments"},
		{"PUT", "/apis/tenantplane.io/v1alpha1/namespaces/team-dev/syncdecisions/dev/status", "update", "syncdecisions/status"},
		{"PATCH", "/api/v1/namespaces/team-dev/events/e", "patch", "events"},
		{"DELETE", "/api/v1/nodes/worker", "delete", "nodes"},
		{"DELETE", "/api/v1/namespaces/team-dev/pods/web", "delete", "pods"},
	} {
		request := httptest.NewRequest(tt.method, "https://host:6443"+tt.path+"?timeout=15s&labelSelector=app%3Dweb", nil)
		assert.Equal(t, Request{Verb: tt.verb, Resource: tt.resource, Method: tt.method, Server: "host:6443", Path: tt.path}, describe(request))
	}
}

type observed struct {
	Request
	status int
}

func TestEveryTryIsObservedUnderTheContextOfWhoeverAsked(t *testing.T) {
	answers := []int{http.StatusServiceUnavailable, http.StatusNotFound}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(answers[0])
		answers = answers[1:]
	}))
	defer server.Close()
	type caller struct{}
	var seen []observed
	observe := func(ctx context.Context, r Request) func(int) {
		assert.Equal(t, "me", ctx.Value(caller{}))
		return func(status int) { seen = append(seen, observed{r, status}) }
	}
	cluster, err := NewHost(&rest.Config{Host: server.URL}, Options{Observe: observe})
	require.NoError(t, err)
	ctx := context.WithValue(t.Context(), caller{}, "me")
	_, err = cluster.ForPass().Core().Secrets("team-dev").Get(ctx, "app", metav1.GetOptions{})
	require.Error(t, err)
	request := Request{Verb: "get", Resource: "secrets", Method: "GET", Server: server.Listener.Addr().String(), Path: "/api/v1/namespaces/team-dev/secrets/app"}
	assert.Equal(t, []observed{{request, 503}, {request, 404}}, seen)

	server.Close()
	seen = nil
	_, err = cluster.Core().Secrets("team-dev").Get(ctx, "app", metav1.GetOptions{})
	require.Error(t, err)
	assert.Equal(t, []observed{{request, 0}}, seen, "no answer came")
}
