package main

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/types"
)

// fakeHost serves lists of TenantClusters, two to a page, as an API server does.
type fakeHost struct {
	tenants []types.NamespacedName
	// refuse, if set, is the status that every request is answered with.
	refuse int
}

func (f *fakeHost) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("Content-Type", "application/json")
	if f.refuse != 0 {
		w.WriteHeader(f.refuse)
		fmt.Fprintf(w, `{"kind":"Status","apiVersion":"v1","status":"Failure","code":%d,"reason":%q,"message":"no"}`, f.refuse,
			strings.ReplaceAll(http.StatusText(f.refuse), " ", ""))
		return
	}
	namespace := ""
	path, _ := strings.CutPrefix(r.URL.Path, "/apis/tenantplane.io/v1alpha1/")
	if rest, namespaced := strings.CutPrefix(path, "namespaces/"); namespaced {
		namespace, path, _ = strings.Cut(rest, "/")
	}
	if path != "tenantclusters" {
		http.Error(w, "no such path: "+r.URL.Path, http.StatusNotFound)
		return
	}
	var items []any
	for _, t := range f.tenants {
		if namespace == "" || namespace == t.Namespace {
			items = append(items, map[string]any{"apiVersion": "tenantplane.io/v1alpha1", "kind": "TenantCluster",
				"metadata": map[string]any{"namespace": t.Namespace, "name": t.Name}})
		}
	}
	first, _ := strconv.Atoi(r.URL.Query().Get("continue"))
	last := min(first+2, len(items))
	metadata := map[string]any{"resourceVersion": "7"}
	if last < len(items) {
		metadata["continue"] = strconv.Itoa(last)
	}
	_ = json.NewEncoder(w).Encode(map[string]any{"apiVersion": "tenantplane.io/v1alpha1", "kind": "TenantClusterList",
		"metadata": metadata, "items": items[first:last]})
}

// serve starts the host and returns the path of a kubeconfig for it, whose context has a namespace.
func (f *fakeHost) serve(t *testing.T) string {
	server := httptest.NewServer(f)
	t.Cleanup(server.Close)
	return writeKubeconfig(t, server.URL)
}

func writeKubeconfig(t *testing.T, server string) string {
	path := filepath.Join(t.TempDir(), "kubeconfig")
	text := fmt.Sprintf(`{"apiVersion":"v1","kind":"Config","current-context":"host",
		"clusters":[{"name":"host","cluster":{"server":%q}}],"users":[{"name":"me","user":{}}],
		"contexts":[{"name":"host","context":{"cluster":"host","user":"me","namespace":"team-dev"}}]}`, server)
	require.NoError(t, os.WriteFile(path, []byte(text), 0o600))
	return path
}

// tenantNames makes names of namespace/name texts.
func tenantNames(texts ...string) []types.NamespacedName {
	var names []types.NamespacedName
	for _, text := range texts {
		namespace, name, _ := strings.Cut(text, "/")
		names = append(names, types.NamespacedName{Namespace: namespace, Name: name})
	}
	return names
}
