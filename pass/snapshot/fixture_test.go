package snapshot_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"

	"github.com/syncpass/syncpass/pass/access"
	"github.com/syncpass/syncpass/pass/plan"
	"github.com/syncpass/syncpass/pass/snapshot"
	"github.com/syncpass/syncpass/policy"
)

// handler answers one request with a status code and a body.
type handler func(query url.Values) (code int, body string)

// api is an API server that serves ConfigMaps, Widgets of example.com, and cluster-scoped Gadgets, and answers each
// list as a test tells it to; a list that no test speaks of is empty.
type api struct {
	side   string
	server *httptest.Server
	lists  map[string]handler // by path
	// metadata are the lists of metadata alone, by path, of a server that gives such; objects are single ones.
	metadata, objects map[string]handler
	others            map[string]handler // discovery and the kube-system namespace, by path
	log               *log
}

// log are the requests to both sides in the order of their arrival.
type log struct {
	lock  sync.Mutex
	lines []string
}

func (l *log) add(line string) {
	l.lock.Lock()
	defer l.lock.Unlock()
	l.lines = append(l.lines, line)
}

func (l *log) of(part string) []string {
	l.lock.Lock()
	defer l.lock.Unlock()
	var found []string
	for _, line := range l.lines {
		if strings.Contains(line, part) {
			found = append(found, line)
		}
	}
	return found
}

const (
	hostConfigMaps   = "/api/v1/namespaces/team-dev/configmaps"
	tenantConfigMaps = "/api/v1/configmaps"
	tenantWidgets    = "/apis/example.com/v1/widgets"
	hostWidgets      = "/apis/example.com/v1/namespaces/team-dev/widgets"
)

func newAPI(t *testing.T, side string, l *log) *api {
	resources := func(groupVersion string, list ...metav1.APIResource) string {
		return marshal(metav1.APIResourceList{TypeMeta: metav1.TypeMeta{Kind: "APIResourceList", APIVersion: "v1"}, GroupVersion: groupVersion, APIResources: list})
	}
	verbs := metav1.Verbs{"get", "list", "create", "update", "delete"}
	group := func(name string) metav1.APIGroup {
		version := metav1.GroupVersionForDiscovery{GroupVersion: name + "/v1", Version: "v1"}
		return metav1.APIGroup{Name: name, Versions: []metav1.GroupVersionForDiscovery{version}, PreferredVersion: version}
	}
	a := &api{side: side, lists: map[string]handler{}, metadata: map[string]handler{}, objects: map[string]handler{}, log: l, others: map[string]handler{
		"/api":  always(marshal(metav1.APIVersions{TypeMeta: metav1.TypeMeta{Kind: "APIVersions", APIVersion: "v1"}, Versions: []string{"v1"}})),
		"/apis": always(marshal(metav1.APIGroupList{TypeMeta: metav1.TypeMeta{Kind: "APIGroupList", APIVersion: "v1"}, Groups: []metav1.APIGroup{group("example.com"), group("broken.example.com")}})),
		"/api/v1": always(resources("v1",
			metav1.APIResource{Name: "configmaps", Kind: "ConfigMap", Namespaced: true, Verbs: verbs},
			metav1.APIResource{Name: "bindings", Kind: "Binding", Namespaced: true, Verbs: metav1.Verbs{"create"}},
			metav1.APIResource{Name: "pods/status", Kind: "Pod", Namespaced: true, Verbs: verbs})),
		"/apis/example.com/v1": always(resources("example.com/v1",
			metav1.APIResource{Name: "widgets", Kind: "Widget", Namespaced: true, Verbs: verbs},
			metav1.APIResource{Name: "gadgets", Kind: "Gadget", Namespaced: false, Verbs: verbs})),
		"/apis/broken.example.com/v1": always(resources("broken.example.com/v1",
			metav1.APIResource{Name: "things", Kind: "Thing", Namespaced: true, Verbs: verbs})),
		"/api/v1/namespaces/kube-system": always(`{"kind":"Namespace","apiVersion":"v1","metadata":{"name":"kube-system","uid":"uid-of-` + side + `"}}`),
	}}
	a.server = httptest.NewServer(http.HandlerFunc(a.serve))
	t.Cleanup(a.server.Close)
	return a
}

func (a *api) serve(w http.ResponseWriter, r *http.Request) {
	line := fmt.Sprintf("%s %s %s", a.side, r.Method, r.URL.Path)
	partial, found := a.metadata[r.URL.Path]
	if found = found && strings.Contains(r.Header.Get("Accept"), "as=PartialObjectMetadataList"); found {
		line = fmt.Sprintf("%s metadata %s", a.side, r.URL.Path)
	}
	if token := r.URL.Query().Get("continue"); token != "" {
		line += " continue=" + token
	}
	a.log.add(line)
	if r.Method != http.MethodGet {
		a.log.add("a write: " + line)
	}
	answer := partial
	if !found {
		answer, found = a.others[r.URL.Path]
	}
	if !found {
		answer, found = a.objects[r.URL.Path]
	}
	if !found {
		if r.URL.Query().Has("resourceVersion") || r.URL.Query().Has("resourceVersionMatch") {
			a.log.add("a cached read: " + line)
		}
		if answer, found = a.lists[r.URL.Path]; !found {
			answer = always(emptyList(r.URL.Path))
		}
	}
	code, body := answer(r.URL.Query())
	w.Header().Set("Content-Type", "application/json")
	if code == tooLarge {
		w.Header().Set("Content-Length", fmt.Sprint(access.MaxBodyBytes+1))
		w.WriteHeader(http.StatusOK)
		w.(http.Flusher).Flush()
		panic(http.ErrAbortHandler)
	}
	w.WriteHeader(code)
	_, _ = w.Write([]byte(body)) // a client that has gone away reads nothing
}

// tooLarge instead of a status code announces a body that is larger than is read.
const tooLarge = 0

func always(body string) handler {
	return func(url.Values) (int, string) { return http.StatusOK, body }
}

func refuses(code int, reason metav1.StatusReason) handler {
	return func(url.Values) (int, string) {
		return code, marshal(metav1.Status{
			TypeMeta: metav1.TypeMeta{Kind: "Status", APIVersion: "v1"}, Status: metav1.StatusFailure, Code: int32(code), Reason: reason, Message: "refused",
		})
	}
}

// pages answers with one page after the other, as their tokens say: 1, 2 and so on.
func pages(all ...string) handler {
	return func(query url.Values) (int, string) {
		for i, page := range all {
			if token := query.Get("continue"); token == fmt.Sprint(i) || token == "" && i == 0 {
				return http.StatusOK, page
			}
		}
		return http.StatusBadRequest, ""
	}
}

func emptyList(path string) string {
	if strings.Contains(path, "/widgets") {
		return `{"kind":"WidgetList","apiVersion":"example.com/v1","metadata":{"resourceVersion":"9"},"items":[]}`
	}
	return configMapList("")
}

// configMapList is a page of ConfigMaps; next is the token of the page that follows, empty for the last one.
func configMapList(next string, items ...string) string {
	return fmt.Sprintf(`{"kind":"ConfigMapList","apiVersion":"v1","metadata":{"resourceVersion":"9","continue":%q},"items":[%s]}`, next, strings.Join(items, ","))
}

func item(namespace, name string) string {
	return fmt.Sprintf(`{"metadata":{"namespace":%q,"name":%q,"uid":"uid-%s","resourceVersion":"5"},"data":{"a":"1"}}`, namespace, name, name)
}

func marshal(v any) string {
	raw, err := json.Marshal(v)
	if err != nil {
		panic(err)
	}
	return string(raw)
}

// sides are a host and a tenant, and a Request that reads ConfigMaps and Widgets of both.
type sides struct {
	host, tenant *api
	log          *log
	request      snapshot.Request
}

func newSides(t *testing.T) *sides {
	l := &log{}
	s := &sides{host: newAPI(t, "host", l), tenant: newAPI(t, "tenant", l), log: l}
	s.request = snapshot.Request{
		Host: s.host.cluster(t), Tenant: s.tenant.cluster(t), Namespace: "team-dev",
		Resources: []policy.Resource{
			{APIVersion: "v1", Kind: "ConfigMap", Direction: policy.ToHost}, {APIVersion: "example.com/v1", Kind: "Widget", Direction: policy.Bidirectional},
		},
	}
	return s
}

func (a *api) cluster(t *testing.T) *access.Cluster {
	cluster, err := access.NewHost(&rest.Config{Host: a.server.URL}, access.Options{RequestTimeout: 10 * time.Second})
	require.NoError(t, err)
	t.Cleanup(cluster.Close)
	return cluster
}

func (s *sides) take(t *testing.T) plan.Snapshot {
	t.Helper()
	taken, _, err := snapshot.Take(t.Context(), s.request)
	require.NoError(t, err)
	require.Len(t, taken.Kinds, len(s.request.Resources)+len(s.request.Retired))
	require.Empty(t, s.log.of("a write"))
	require.Empty(t, s.log.of("a cached read"))
	return taken
}

// names are what a list holds, as namespace/name.
func names(kind plan.KindSnapshot) (tenant, host []string) {
	for _, o := range kind.Tenant {
		tenant = append(tenant, o.GetNamespace()+"/"+o.GetName())
	}
	for _, o := range kind.Host {
		host = append(host, o.GetNamespace()+"/"+o.GetName())
	}
	return tenant, host
}
