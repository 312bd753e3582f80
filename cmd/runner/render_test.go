package main

import (
	"bytes"
	"context"
	"encoding/base64"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"log/slog"
	"maps"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/syncpass/syncpass/policy"
)

const testImage = "registry.example.com/syncpass@sha256:0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"

// answers is an API server that knows nothing but these, by path.
type answers map[string]any

func (a answers) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	answer, found := a[r.URL.Path]
	w.Header().Set("Content-Type", "application/json")
	if !found {
		w.WriteHeader(http.StatusNotFound)
		answer = map[string]any{"kind": "Status", "apiVersion": "v1", "status": "Failure", "reason": "NotFound", "code": http.StatusNotFound}
	}
	_ = json.NewEncoder(w).Encode(answer)
}

func policyObject(name string, kinds ...string) map[string]any {
	var resources []any
	for _, kind := range kinds {
		apiVersion, kind, found := strings.Cut(kind, " ")
		if !found {
			apiVersion, kind = "v1", apiVersion
		}
		resources = append(resources, map[string]any{"apiVersion": apiVersion, "kind": kind, "direction": "toHost"})
	}
	return map[string]any{"apiVersion": policy.GroupVersion.String(), "kind": "SyncPolicy", "metadata": map[string]any{"name": name},
		"spec": map[string]any{"resources": resources}}
}

// renderHost has the tenants team-dev/dev and team-b/b, each with a policy of its own, and a kind whose plural nobody guesses.
func renderHost() answers {
	const group = "/apis/tenantplane.io/v1alpha1"
	tenant := func(namespace, name, policyName string) map[string]any {
		return map[string]any{"apiVersion": policy.GroupVersion.String(), "kind": "TenantCluster", "metadata": map[string]any{"namespace": namespace, "name": name, "uid": "u-" + name},
			"spec": map[string]any{"syncPolicyRef": map[string]any{"name": policyName}}}
	}
	dev, b := tenant("team-dev", "dev", "default"), tenant("team-b", "b", "other")
	list := func(items ...any) map[string]any {
		return map[string]any{"apiVersion": policy.GroupVersion.String(), "kind": "TenantClusterList", "metadata": map[string]any{"resourceVersion": "1"}, "items": items}
	}
	return answers{
		group + "/tenantclusters":                         list(b, dev),
		group + "/namespaces/team-dev/tenantclusters":     list(dev),
		group + "/namespaces/team-dev/tenantclusters/dev": dev,
		group + "/namespaces/team-b/tenantclusters/b":     b,
		group + "/syncpolicies/default":                   policyObject("default", "ConfigMap", "example.com/v1 Index"),
		group + "/syncpolicies/other":                     policyObject("other", "Secret"),
		"/api":                                            map[string]any{"kind": "APIVersions", "versions": []any{"v1"}},
		"/apis": map[string]any{"kind": "APIGroupList", "apiVersion": "v1", "groups": []any{map[string]any{"name": "example.com",
			"versions": []any{map[string]any{"groupVersion": "example.com/v1", "version": "v1"}}}}},
		"/api/v1": map[string]any{"kind": "APIResourceList", "groupVersion": "v1", "resources": []any{
			map[string]any{"name": "configmaps", "singularName": "configmap", "namespaced": true, "kind": "ConfigMap", "verbs": []any{"list"}}}},
		"/apis/example.com/v1": map[string]any{"kind": "APIResourceList", "groupVersion": "example.com/v1", "resources": []any{
			map[string]any{"name": "indices", "singularName": "index", "namespaced": true, "kind": "Index", "verbs": []any{"list"}}}},
	}
}

func (a answers) serve(t *testing.T) string {
	t.Helper()
	server := httptest.NewServer(a)
	t.Cleanup(server.Close)
	return writeKubeconfig(t, server.URL)
}

// called runs the verbs in this process, in an environment of the given variables.
func called(t *testing.T, variables map[string]string, args ...string) (code int, stdout, stderr string) {
	t.Helper()
	var out, errs bytes.Buffer
	variables = maps.Clone(variables)
	if variables == nil {
		variables = map[string]string{}
	}
	variables["SYNCPASS_LOG_FORMAT"] = "text"
	a := app{stdout: &out, stderr: &errs, env: environmentOf(variables), passFuncs: passFuncs{run: passByName}}
	code = a.execute(context.Background(), args)
	return code, out.String(), errs.String()
}

func writePolicy(t *testing.T, object map[string]any) string {
	t.Helper()
	data, err := json.Marshal(object)
	require.NoError(t, err)
	path := filepath.Join(t.TempDir(), "policy.yaml")
	require.NoError(t, os.WriteFile(path, data, 0o600))
	return path
}

func TestRenderAsksTheHostForTheTenantsPolicy(t *testing.T) {
	env := map[string]string{"SYNCPASS_HOST_KUBECONFIG": renderHost().serve(t), "SYNCPASS_CONCURRENCY": "3", "SYNCPASS_LOG_LEVEL": "debug", "SYNCPASS_TENANT_KUBECONFIG": "/here"}
	code, stdout, stderr := called(t, env, "render", "--image", testImage)
	require.Zero(t, code, stderr)
	assert.Contains(t, stdout, "# syncpass for TenantCluster team-dev/dev, by SyncPolicy default.")
	assert.Contains(t, stdout, "kind: CronJob")
	assert.Contains(t, stdout, "resources: [indices]", "the host calls it so")
	assert.NotContains(t, stdout, "guessed")
	assert.Contains(t, stdout, "image: "+testImage)
	assert.Contains(t, stdout, "name: SYNCPASS_CONCURRENCY")
	assert.NotContains(t, stdout, "SYNCPASS_LOG_LEVEL")
	assert.NotContains(t, stdout, "SYNCPASS_TENANT_KUBECONFIG")
	assert.Contains(t, stdout, "resourceNames: [dev-control-plane-kubeconfig, dev-kubeconfig, vc-dev, dev-admin-kubeconfig]")

	_, again, _ := called(t, env, "render", "--image", testImage, "--form", "cronjob", "-n", "team-dev", "--tenant", "dev")
	assert.Equal(t, stdout, again)
}

func TestRenderShardedIsForAllTenants(t *testing.T) {
	env := map[string]string{"SYNCPASS_HOST_KUBECONFIG": renderHost().serve(t)}
	code, stdout, stderr := called(t, env, "render", "--form", "sharded", "--image", testImage)
	require.Zero(t, code, stderr)
	assert.Contains(t, stdout, "by the SyncPolicies default, other.")
	for _, want := range []string{"namespace: syncpass-system", "namespace: team-b", "namespace: team-dev", "completions: 4", "resources: [configmaps, secrets]"} {
		assert.Contains(t, stdout, want)
	}
	env["SYNCPASS_SHARDS"], env["SYNCPASS_NAMESPACE"] = "9", "runners"
	_, stdout, _ = called(t, env, "render", "--form", "sharded", "--image", testImage)
	assert.Contains(t, stdout, "completions: 9")
	assert.Contains(t, stdout, "namespace: runners")
}

// No host is named, and what would be found where none is named is a server that is not there.
func TestRenderWithAPolicyFileAsksNobody(t *testing.T) {
	file := writePolicy(t, policyObject("default", "ConfigMap", "example.com/v1 Index"))
	env := map[string]string{"SYNCPASS_HOST_KUBECONFIG": writeKubeconfig(t, "http://127.0.0.1:1")}
	code, stdout, stderr := called(t, env, "render", "--form", "job", "--policy", file, "--tenant", "dev", "-n", "team-dev", "--image", testImage)
	require.Zero(t, code, stderr)
	assert.Empty(t, stderr)
	assert.Contains(t, stdout, "kind: Job")
	assert.Contains(t, stdout, "is guessed from the kind Index")

	byVariables := map[string]string{"SYNCPASS_POLICY": file, "SYNCPASS_TENANT": "dev", "SYNCPASS_NAMESPACE": "team-dev"}
	_, same, _ := called(t, byVariables, "render", "--form", "job", "--image", testImage)
	assert.Equal(t, stdout, same)

	code, stdout, stderr = called(t, env, "render", "--form", "sharded", "--policy", file, "--tenant-namespaces", "a,b", "--image", testImage)
	require.Zero(t, code, stderr)
	assert.Equal(t, 2, strings.Count(stdout, "kind: RoleBinding"))
}

func TestRenderWritesTheTenantsSideToo(t *testing.T) {
	env := map[string]string{"SYNCPASS_HOST_KUBECONFIG": renderHost().serve(t)}
	code, stdout, stderr := called(t, env, "render", "--side", "tenant")
	require.Zero(t, code, stderr)
	assert.Empty(t, stderr)
	assert.Contains(t, stdout, "# What syncpass needs in tenant dev itself, by SyncPolicy default")
	assert.Contains(t, stdout, "verbs: [get, list]")
	assert.NotContains(t, stdout, "CronJob")
}

func TestRenderSaysThatATagIsNoDigest(t *testing.T) {
	file := writePolicy(t, policyObject("default", "ConfigMap"))
	args := []string{"render", "--policy", file, "--tenant", "dev", "-n", "team-dev"}
	code, stdout, stderr := called(t, nil, args...)
	require.Zero(t, code, stderr)
	assert.Contains(t, stdout, "image: syncpass:latest")
	assert.Contains(t, stdout, "# By its tag")
	assert.Contains(t, stderr, "The image has no digest")
	code, _, stderr = called(t, nil, append(args, "--image", "syncpass:v1", "--allow-tag")...)
	assert.Zero(t, code)
	assert.Empty(t, stderr)
}

func TestRenderRefusesWhatDoesNotGoTogether(t *testing.T) {
	file := writePolicy(t, policyObject("default", "ConfigMap"))
	nameless := writePolicy(t, policyObject("", "ConfigMap"))
	host := renderHost().serve(t)
	for _, tt := range []struct {
		name string
		env  map[string]string
		args []string
		want []string
	}{
		{"an image by its tag", nil, []string{"--policy", file, "--tenant", "dev", "-n", "a", "--image", "syncpass:v1"}, []string{`image "syncpass:v1" has no digest`, "--allow-tag"}},
		{"a file without a tenant", nil, []string{"--policy", file}, []string{"set --tenant or SYNCPASS_TENANT", "set --namespace or SYNCPASS_NAMESPACE"}},
		{"a policy without a name", nil, []string{"--policy", nameless, "--tenant", "dev", "-n", "a"}, []string{"metadata.name is"}},
		{"two policies of one tenant", nil, []string{"--policy", file, "--policy", file, "--tenant", "dev", "-n", "a"}, []string{"give it once"}},
		{"a file that is not there", nil, []string{"--policy", "/does/not/exist", "--tenant", "dev", "-n", "a"}, []string{"/does/not/exist"}},
		{"shards of one tenant", nil, []string{"--form", "sharded", "--tenant", "dev"}, []string{"leave out --tenant, and unset SYNCPASS_TENANT"}},
		{"shards of nowhere", nil, []string{"--form", "sharded", "--policy", file}, []string{"give --tenant-namespaces"}},
		{"namespaces of one tenant", nil, []string{"--tenant-namespaces", "a"}, []string{"--tenant-namespaces goes with"}},
		{"no namespace", nil, []string{"--form", "sharded", "--policy", file, "--tenant-namespaces", "a b"}, []string{`"a b" is no name of a namespace`}},
		{"all tenants in one CronJob", map[string]string{"SYNCPASS_ALL_NAMESPACES": "true"}, nil, []string{"give --form sharded"}},
		{"the image of the other side", nil, []string{"--side", "tenant", "--image", testImage}, []string{"--image is about the host's side"}},
		{"an unknown side", nil, []string{"--side", "both"}, []string{"accepted are host, tenant"}},
		{"an unknown form", nil, []string{"--form", "pod"}, []string{"accepted are cronjob, job, schedule, sharded"}},
		{"a tenant that is not there", map[string]string{"SYNCPASS_HOST_KUBECONFIG": host}, []string{"--tenant", "prod"}, []string{"TenantCluster team-dev/prod does not exist"}},
		{"no tenant at all", map[string]string{"SYNCPASS_HOST_KUBECONFIG": (&fakeHost{}).serve(t)}, []string{"--form", "sharded"}, []string{"no TenantCluster yet"}},
		{"several tenants", map[string]string{"SYNCPASS_HOST_KUBECONFIG": (&fakeHost{tenants: tenantNames("team-dev/a", "team-dev/b")}).serve(t)}, nil, []string{"2 are selected"}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			code, stdout, stderr := called(t, tt.env, append([]string{"render"}, tt.args...)...)
			assert.Equal(t, exitInvalid, code)
			assert.Empty(t, stdout)
			for _, want := range tt.want {
				assert.Contains(t, stderr, want)
			}
		})
	}
}

func TestFlagsWinOverVariables(t *testing.T) {
	host := (&fakeHost{tenants: tenantNames("team-dev/dev", "team-b/errors")}).serve(t)
	env := map[string]string{"SYNCPASS_HOST_KUBECONFIG": host, "SYNCPASS_NAMESPACE": "team-dev", "SYNCPASS_TENANT": "dev"}
	for _, args := range [][]string{{"-n", "team-b", "--tenant", "errors"}, {"pass", "--namespace", "team-b", "--tenant=errors"}} {
		code, stdout, stderr := called(t, env, args...)
		assert.Equal(t, exitErrors, code, stderr)
		assert.Contains(t, stdout, "errors: ")
	}
	code, stdout, _ := called(t, env, "pass", "--tenant", "")
	assert.Zero(t, code)
	assert.Contains(t, stdout, "dev: ", "an empty flag counts as none")
	code, _, stderr := called(t, env, "pass", "--tenant", "A B")
	assert.Equal(t, exitInvalid, code)
	assert.Contains(t, stderr, `SYNCPASS_TENANT="A B"`)
}

// completions are what the shell is offered, and what cobra tells it to do besides.
func completions(t *testing.T, env map[string]string, args ...string) []string {
	t.Helper()
	code, stdout, _ := called(t, env, append([]string{"__completeNoDesc"}, args...)...)
	require.Zero(t, code)
	return strings.Split(strings.TrimSpace(stdout), "\n")
}

func TestTheShellIsOfferedWhatThereIs(t *testing.T) {
	const noFiles = ":4"
	tenant := httptest.NewTLSServer(answers{
		"/api/v1": map[string]any{"kind": "APIResourceList", "groupVersion": "v1", "resources": []any{
			map[string]any{"name": "configmaps", "singularName": "configmap", "namespaced": true, "kind": "ConfigMap", "verbs": []any{"list"}}}},
		"/api/v1/configmaps": map[string]any{"kind": "PartialObjectMetadataList", "apiVersion": "meta.k8s.io/v1", "metadata": map[string]any{"resourceVersion": "1"}, "items": []any{
			map[string]any{"metadata": map[string]any{"namespace": "default", "name": "app"}},
			map[string]any{"metadata": map[string]any{"namespace": "default", "name": "bad\x1b[31m"}},
			map[string]any{"metadata": map[string]any{"namespace": "shop", "name": "web"}}}},
	})
	tenant.Config.ErrorLog = slog.NewLogLogger(slog.DiscardHandler, slog.LevelError)
	t.Cleanup(tenant.Close)
	authority := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: tenant.Certificate().Raw})
	kubeconfig := fmt.Sprintf(`{"apiVersion":"v1","kind":"Config","current-context":"c","contexts":[{"name":"c","context":{"cluster":"c","user":"c"}}],
		"clusters":[{"name":"c","cluster":{"server":%q,"certificate-authority-data":%q}}],"users":[{"name":"c","user":{"token":"t"}}]}`,
		tenant.URL, base64.StdEncoding.EncodeToString(authority))
	file := filepath.Join(t.TempDir(), "tenant.kubeconfig")
	require.NoError(t, os.WriteFile(file, []byte(kubeconfig), 0o600))
	env := map[string]string{"SYNCPASS_HOST_KUBECONFIG": renderHost().serve(t), "SYNCPASS_TENANT_KUBECONFIG": file}

	assert.Equal(t, []string{"team-b", "team-dev", noFiles}, completions(t, env, "pass", "-n", ""))
	assert.Equal(t, []string{"team-dev", noFiles}, completions(t, env, "pass", "--namespace", "team-d"))
	assert.Equal(t, []string{"dev", noFiles}, completions(t, env, "pass", "--tenant", ""))
	assert.Equal(t, []string{"configmap", "index", noFiles}, completions(t, env, "explain", ""))
	assert.Equal(t, []string{"default/app", "shop/web", noFiles}, completions(t, env, "explain", "configmap", ""))
	assert.Equal(t, []string{"shop/web", noFiles}, completions(t, env, "explain", "configmaps", "s"))
	assert.Equal(t, []string{noFiles}, completions(t, env, "explain", "configmap", "default/app", ""))
	assert.Equal(t, []string{"table", "wide", "json", "yaml", "name", noFiles}, completions(t, env, "plan", "-o", ""))
	assert.Equal(t, []string{"cronjob", "job", "schedule", "sharded", noFiles}, completions(t, env, "render", "--form", ""))
	assert.Equal(t, []string{"explain", noFiles}, completions(t, env, "expl"))

	down := map[string]string{"SYNCPASS_HOST_KUBECONFIG": writeKubeconfig(t, "http://127.0.0.1:1")}
	assert.Equal(t, []string{noFiles}, completions(t, down, "pass", "--tenant", ""), "errors are nothing to complete with")
	assert.Equal(t, []string{noFiles}, completions(t, map[string]string{"SYNCPASS_SHARDS": "x"}, "explain", ""))
}
