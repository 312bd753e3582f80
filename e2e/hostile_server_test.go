package e2e

import (
	"bytes"
	"compress/gzip"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/http/httptest"
	"os/exec"
	"runtime"
	"slices"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/syncpass/syncpass/e2e/proxy"
	"github.com/syncpass/syncpass/record"
)

// lie is what the tenant's API server lists of one kind beside what there is.
type lie struct {
	h                *hostile
	resource         schema.GroupVersionResource
	apiVersion, kind string
	items            []any
}

func (h *hostile) lieAbout(t *testing.T, resource schema.GroupVersionResource, apiVersion, kind string) *lie {
	t.Helper()
	l := &lie{h: h, resource: resource, apiVersion: apiVersion, kind: kind}
	list, err := h.objects(record.Tenant, resource).List(t.Context(), metav1.ListOptions{})
	require.NoError(t, err)
	for i := range list.Items {
		l.items = append(l.items, list.Items[i].Object)
	}
	return l
}

// add adds an object that there is not, of which only the content is given.
func (l *lie) add(name string, content object) {
	made := object{"apiVersion": l.apiVersion, "kind": l.kind}
	maps.Copy(made, content)
	metadata := object{"name": name, "namespace": l.h.name, "uid": "uid-of-" + name, "resourceVersion": "1"}
	if given, ok := content["metadata"].(object); ok {
		maps.Copy(metadata, given)
	}
	made["metadata"] = metadata
	l.items = append(l.items, made)
}

func (l *lie) path() string {
	if l.resource.Group == "" {
		return "/api/" + l.resource.Version + "/" + l.resource.Resource
	}
	return "/apis/" + l.resource.Group + "/" + l.resource.Version + "/" + l.resource.Resource
}

func (l *lie) list() object {
	return object{"apiVersion": l.apiVersion, "kind": l.kind + "List", "metadata": object{"resourceVersion": "1000000"}, "items": l.items}
}

func (l *lie) begin() { l.h.answer(map[string]http.Handler{l.path(): answerJSON(l.list())}) }
func (l *lie) end()   { l.h.tenantProxy.SetHook(nil) }

// answer lets handlers answer requests to these paths of the tenant in its API server's place.
func (h *hostile) answer(handlers map[string]http.Handler) {
	h.tenantProxy.SetHook(func(moment proxy.Moment, request proxy.Request) http.Handler {
		if moment == proxy.Before {
			return handlers[request.Path]
		}
		return nil
	})
}

func answerJSON(document any) http.Handler {
	data, err := json.Marshal(document)
	if err != nil {
		panic(err) // it was made by a test
	}
	return answerText("application/json", string(data))
}

func answerText(contentType, text string) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", contentType)
		_, _ = io.WriteString(w, text)
	})
}

func answerStatus(code int, message string) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(code)
		_ = json.NewEncoder(w).Encode(metav1.Status{TypeMeta: metav1.TypeMeta{Kind: "Status", APIVersion: "v1"}, Status: metav1.StatusFailure,
			Code: int32(code), Message: message, Reason: metav1.StatusReasonForbidden})
	})
}

// listOf is a list with these items, in the shape of a real one.
func listOf(items ...any) object {
	return object{"apiVersion": "v1", "kind": "ConfigMapList", "metadata": object{"resourceVersion": "1000000"}, "items": append([]any{}, items...)}
}

func itemOf(namespace, name string, more object) object {
	made := object{"metadata": object{"namespace": namespace, "name": name, "uid": "u-" + name, "resourceVersion": "1"}, "data": object{"k": "v"}}
	maps.Copy(made, more)
	return made
}

// attackAsServer has a tenant's API server that lies about its ConfigMaps: nothing of them is touched, and the other kinds
// go on (S9, S10, S20, S29 to S32, S38, S40).
func attackAsServer(t *testing.T, h *hostile) {
	const list, kept = "/api/v1/configmaps", 12
	for i := range kept {
		h.apply(t, record.Tenant, fmt.Sprintf("{apiVersion: v1, kind: ConfigMap, metadata: {name: kept-%d}, data: {k: v}}", i))
	}
	h.pass(t, 0, nil)
	var spied atomic.Int32
	spy := httptest.NewTLSServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { spied.Add(1) }))
	t.Cleanup(spy.Close)
	redirect := func(code int) http.Handler { return http.RedirectHandler(spy.URL+"/api/v1/configmaps", code) }
	page := func(token string, items ...any) object {
		one := listOf(items...)
		one["metadata"].(object)["continue"] = token
		return one
	}
	count := 0
	endless := func(grow bool) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			count++
			var items []any
			for i := range 500 {
				items = append(items, itemOf(h.name, fmt.Sprintf("endless-%d-%d", count, i), nil))
			}
			token := "same"
			if grow {
				token = fmt.Sprint(count)
			}
			answerJSON(page(token, items...)).ServeHTTP(w, r)
		})
	}

	type attempt struct {
		handler http.Handler
		exit    int
		says    string
	}
	const unlisted, no = 3, "no complete list of the kind"
	attempts := map[string]attempt{
		"S20 a redirect (307)":                {redirect(307), 7, "redirects are not followed"},
		"S20 a redirect (302)":                {redirect(302), 7, "redirects are not followed"},
		"S29 a compressed bomb":               {gzipBomb(t), unlisted, no},
		"S30 pages without end":               {endless(true), unlisted, "the tenant has more than one pass holds"},
		"S30 the same page for ever":          {endless(false), unlisted, no},
		"S30 a body without end":              {bodyWithoutEnd(), unlisted, "the answer is too large"},
		"S30 a wait of years":                 {waitOfYears(), unlisted, "too many requests"},
		"S31 nesting without end":             {answerText("application/json", strings.Repeat(`{"items":[`, 200_000)), unlisted, no},
		"S31 millions of empty items":         {answerText("application/json", `{"apiVersion":"v1","kind":"ConfigMapList","metadata":{"resourceVersion":"1"},"items":[`+strings.Repeat("0,", 20<<20)+"0]}"), unlisted, no},
		"S32 a page of a proxy":               {answerText("text/html", "<html>sign in</html>"), unlisted, no},
		"S32 a Status for a list":             {answerJSON(metav1.Status{TypeMeta: metav1.TypeMeta{Kind: "Status", APIVersion: "v1"}, Status: metav1.StatusSuccess}), unlisted, no},
		"S32 items that are null":             {answerText("application/json", `{"apiVersion":"v1","kind":"ConfigMapList","metadata":{"resourceVersion":"1"},"items":null}`), unlisted, no},
		"S32 items that are a map":            {answerText("application/json", `{"apiVersion":"v1","kind":"ConfigMapList","metadata":{"resourceVersion":"1"},"items":{}}`), unlisted, no},
		"S32 a list without a version":        {answerText("application/json", `{"apiVersion":"v1","kind":"ConfigMapList","metadata":{},"items":[]}`), unlisted, no},
		"S32 a number that no float holds":    {answerText("application/json", `{"apiVersion":"v1","kind":"ConfigMapList","metadata":{"resourceVersion":"1"},"items":[{"metadata":{"name":"a","namespace":"b","uid":"u","resourceVersion":"1"},"data":1e999}]}`), unlisted, no},
		"S32 an item twice":                   {answerJSON(listOf(itemOf(h.name, "a", nil), itemOf(h.name, "a", nil))), unlisted, no},
		"S09 a list of another kind":          {answerJSON(object{"apiVersion": "v1", "kind": "SecretList", "metadata": object{"resourceVersion": "1"}, "items": []any{}}), unlisted, no},
		"S10 a name that is a path":           {answerJSON(listOf(itemOf(h.name, "../../secrets/treasure", nil))), unlisted, no},
		"S10 a name of control characters":    {answerJSON(listOf(itemOf(h.name, "a\x1b[2J", nil))), unlisted, no},
		"S10 a name that is empty":            {answerJSON(listOf(itemOf(h.name, "", nil))), unlisted, no},
		"S10 a namespace that is a path":      {answerJSON(listOf(itemOf("y/../kube-system", "a", nil))), unlisted, no},
		"S10 no namespace":                    {answerJSON(listOf(itemOf("", "a", nil))), unlisted, no},
		"S36 a megabyte of words in an error": {answerStatus(403, strings.Repeat("\x1b[31mwords ", 60_000)), unlisted, "words"},
		"S36 more than a megabyte of words":   {answerStatus(403, strings.Repeat("words ", 400_000)), unlisted, "the answer is too large"},
		"S38 another server's page in an error": {http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			http.Error(w, strings.Repeat("internal secret ", 10_000), 404)
		}), unlisted, ""},
		"S40 an empty list":                           {answerJSON(listOf()), 4, "GuardEmptyTenant"},
		"S40 a list of next to nothing":               {answerJSON(listOf(h.real(t, "kept-1"))), 4, "GuardMaxDeletes"},
		"S40 objects that are there when asked again": {answerJSON(listOf(h.real(t, "kept-1"), h.real(t, "kept-2"), h.real(t, "kept-3"), h.real(t, "kept-4"), h.real(t, "kept-5"))), 0, "Raced"},
	}
	for _, name := range slices.Sorted(maps.Keys(attempts)) {
		attempt := attempts[name]
		h.try(t, name, func(t *testing.T) {
			h.answer(map[string]http.Handler{list: attempt.handler})
			defer h.tenantProxy.SetHook(nil)
			exit, stdout, stderr, peak := h.measured(t, "pass", "-o", "json")
			require.Equal(t, attempt.exit, exit, "%.3000s\n%.3000s", stdout, stderr)
			require.Contains(t, stdout+stderr, attempt.says)
			require.Less(t, len(stdout)+len(stderr), 100<<10, "what one answer makes it print")
			requirePrintable(t, stdout+stderr)
			if runtime.GOOS == "linux" {
				t.Logf("at most %d MiB", peak>>10)
				require.Less(t, peak>>10, int64(1500), "MiB of memory")
			}
			mirrors, err := h.objects(record.Host, configsResource).List(t.Context(), metav1.ListOptions{LabelSelector: "tenantplane.io/tenant=" + h.name})
			require.NoError(t, err)
			require.Len(t, mirrors.Items, kept, "mirrors that are there before and after")
			require.Less(t, len(jsonOf(t, h.decision(t).Object)), 200<<10)
		})
	}
	require.Zero(t, spied.Load(), "requests that followed a redirect")

	for name, item := range map[string]object{
		"S32 an item without a UID":   {"metadata": object{"namespace": h.name, "name": "bad", "resourceVersion": "1"}},
		"S09 an item of another kind": {"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRoleBinding", "metadata": object{"namespace": h.name, "name": "bad", "uid": "u", "resourceVersion": "1"}},
		"S32 labels of numbers":       {"metadata": object{"namespace": h.name, "name": "bad", "uid": "u", "resourceVersion": "1", "labels": object{"k": 7}}},
	} {
		h.try(t, name+", and the others go on", func(t *testing.T) {
			l := h.lieAbout(t, configsResource, "v1", "ConfigMap")
			l.items = append(l.items, item)
			l.begin()
			defer l.end()
			result, _ := h.pass(t, 3, nil)
			require.Equal(t, record.Rejected, decided(t, result, "ConfigMap", "bad").Reason)
			require.Equal(t, kept, result.Counts.Unchanged)
		})
	}
	h.try(t, "S10 a namespace that never crosses", func(t *testing.T) {
		l := h.lieAbout(t, configsResource, "v1", "ConfigMap")
		l.items = append(l.items, itemOf("kube-system", "bad", nil), itemOf("elsewhere", "bad", nil))
		l.begin()
		defer l.end()
		result, _ := h.pass(t, 0, nil)
		require.Empty(t, result.Decisions)
	})
	h.try(t, "S40 another cluster behind the kubeconfig", func(t *testing.T) {
		h.answer(map[string]http.Handler{"/api/v1/namespaces/kube-system": answerJSON(object{"apiVersion": "v1", "kind": "Namespace", "metadata": object{"name": "kube-system", "uid": "another", "resourceVersion": "1"}})})
		defer h.tenantProxy.SetHook(nil)
		h.apply(t, record.Tenant, "{apiVersion: v1, kind: ConfigMap, metadata: {name: new}}")
		result, _ := h.pass(t, 4, nil)
		require.Equal(t, record.GuardTenantIdentity, decided(t, result, "ConfigMap", "new").Reason)
		require.Nil(t, h.host(t, configsResource, "new"))
	})
	h.attackByDiscovery(t)
	h.attackByKubeconfig(t)
}

// real is a ConfigMap as it is.
func (h *hostile) real(t *testing.T, name string) object {
	t.Helper()
	found, err := h.objects(record.Tenant, configsResource).Get(t.Context(), name, metav1.GetOptions{})
	require.NoError(t, err)
	return found.Object
}

// attackByDiscovery lies about which kinds there are.
func (h *hostile) attackByDiscovery(t *testing.T) {
	h.try(t, "S09 a kind that is said to be another resource", func(t *testing.T) {
		claimed := metav1.APIResourceList{TypeMeta: metav1.TypeMeta{Kind: "APIResourceList", APIVersion: "v1"}, GroupVersion: "v1", APIResources: []metav1.APIResource{
			{Name: "../../../apis/rbac.authorization.k8s.io/v1/clusterrolebindings", Kind: "ConfigMap", Namespaced: true, Verbs: metav1.Verbs{"list", "get", "update", "delete", "create"}},
		}}
		handlers := map[string]http.Handler{
			"/api":    answerJSON(metav1.APIVersions{TypeMeta: metav1.TypeMeta{Kind: "APIVersions"}, Versions: []string{"v1"}}),
			"/apis":   answerJSON(metav1.APIGroupList{TypeMeta: metav1.TypeMeta{Kind: "APIGroupList", APIVersion: "v1"}}),
			"/api/v1": answerJSON(claimed),
		}
		h.answer(handlers)
		defer h.tenantProxy.SetHook(nil)
		ran := h.run(t, nil, "pass", "-o", "json")
		require.Contains(t, string(ran.Stdout), "the tenant does not serve v1 ConfigMap")
		for _, request := range ran.Requests {
			require.False(t, request.Server == "host" && strings.Contains(request.Path, "rbac"), "%s", request)
		}
	})
}

// attackByKubeconfig has the real binary read a few of the kubeconfigs that pass/access tests one by one (S16 to S19, S21).
func (h *hostile) attackByKubeconfig(t *testing.T) {
	const form = "apiVersion: v1\nkind: Config\ncurrent-context: x\ncontexts: [{name: x, context: {cluster: x, user: x}}]\nclusters: [{name: x, cluster: {%s}}]\nusers: [{name: x, user: {%s}}]\n"
	touched := writeFile(t, "token", "HOST-TOKEN")
	for name, test := range map[string]struct{ cluster, user, says string }{
		"S16 a plugin":                {"server: 'https://127.0.0.1:1'", "exec: {apiVersion: client.authentication.k8s.io/v1, command: touch, args: [" + touched + ".pwned]}", "exec"},
		"S16 an auth provider":        {"server: 'https://127.0.0.1:1'", "auth-provider: {name: gcp}", "auth-provider"},
		"S17 a file of the runner's":  {"server: 'https://127.0.0.1:1'", "tokenFile: " + touched, "tokenFile"},
		"S17 a file for a key":        {"server: 'https://127.0.0.1:1'", "client-certificate: /etc/passwd, client-key: /etc/passwd", "client-key"},
		"S18 the metadata service":    {"server: 'https://169.254.169.254'", "token: t", "link-local"},
		"S18 a proxy":                 {"server: 'https://127.0.0.1:1', proxy-url: 'http://127.0.0.1:1'", "token: t", "proxy-url"},
		"S18 no TLS":                  {"server: 'http://127.0.0.1:1'", "token: t", "https://"},
		"S19 no check of who answers": {"server: 'https://127.0.0.1:1', insecure-skip-tls-verify: true", "token: t", "insecure-skip-tls-verify"},
		"S21 somebody else's name":    {"server: 'https://127.0.0.1:1'", "token: t, as: system:admin, as-groups: [system:masters]", "as-groups"},
	} {
		h.try(t, name, func(t *testing.T) {
			path := writeFile(t, "kubeconfig", fmt.Sprintf(form, test.cluster, test.user))
			ran := h.run(t, map[string]string{"SYNCPASS_TENANT_KUBECONFIG": path}, "pass")
			require.Contains(t, []int{5, 7}, ran.Exit)
			require.Contains(t, string(ran.Stderr), test.says)
			require.NotContains(t, string(ran.Stderr), "HOST-TOKEN")
			require.NoFileExists(t, touched+".pwned")
		})
	}
}

// measured runs the binary and returns how much memory it held at the most, in KiB.
func (h *hostile) measured(t *testing.T, args ...string) (exit int, stdout, stderr string, peak int64) {
	t.Helper()
	var out, errs bytes.Buffer
	command := exec.CommandContext(h.s.context(t), h.binary.Path, args...)
	command.Stdout, command.Stderr = &out, &errs
	for name, value := range h.binary.Env {
		command.Env = append(command.Env, name+"="+value)
	}
	err := command.Run()
	var failed *exec.ExitError
	if err != nil && !errors.As(err, &failed) {
		require.NoError(t, err)
	}
	usage := command.ProcessState.SysUsage().(*syscall.Rusage)
	return command.ProcessState.ExitCode(), out.String(), errs.String(), int64(usage.Maxrss)
}

// gzipBomb is half a gigabyte of spaces in half a megabyte, which nobody asked to be compressed.
func gzipBomb(t *testing.T) http.Handler {
	t.Helper()
	var bomb bytes.Buffer
	writer := gzip.NewWriter(&bomb)
	block := bytes.Repeat([]byte(" "), 1<<20)
	for range 512 {
		_, err := writer.Write(block)
		require.NoError(t, err)
	}
	require.NoError(t, writer.Close())
	return http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		w.Header().Set("Content-Encoding", "gzip")
		_, _ = w.Write(bomb.Bytes())
	})
}

func bodyWithoutEnd() http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		block := bytes.Repeat([]byte(" "), 1<<20)
		for {
			if _, err := w.Write(block); err != nil {
				return
			}
		}
	})
}

func waitOfYears() http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Retry-After", "99999999")
		w.WriteHeader(http.StatusTooManyRequests)
	})
}
