package apply_test

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"

	"github.com/syncpass/syncpass/pass/apply"
	"github.com/syncpass/syncpass/pass/kinds"
	"github.com/syncpass/syncpass/pass/plan"
	"github.com/syncpass/syncpass/record"
)

// api is an API server in memory that keeps objects by path and enforces what a real one does: names are taken once,
// an update meets its resourceVersion, a delete its preconditions, and a dry run changes nothing.
type api struct {
	t       *testing.T
	server  *httptest.Server
	lock    sync.Mutex
	objects map[string]*unstructured.Unstructured
	version int
	// log are the requests in the order of their arrival, such as `PUT configmaps/app-x-default-x-dev`.
	log []string
	// before, where set, may answer a request instead, or change what is there; after may spoil an answer.
	before, after func(w http.ResponseWriter, r *request) (answered bool)
}

// request is a request with what was sent in it.
type request struct {
	*http.Request
	// resource and subresource are what the request is about; subresource is empty for an object itself, name for a list.
	resource, subresource string
	name, path            string
	dryRun                bool
	body                  unstructured.Unstructured
	options               metav1.DeleteOptions
}

func newAPI(t *testing.T) *api {
	a := &api{t: t, objects: map[string]*unstructured.Unstructured{}}
	a.server = httptest.NewServer(a)
	t.Cleanup(a.server.Close)
	return a
}

func (a *api) client() dynamic.Interface {
	client, err := dynamic.NewForConfig(&rest.Config{Host: a.server.URL, QPS: -1, Timeout: 10 * time.Second})
	require.NoError(a.t, err)
	return client
}

// put lays an object down as it is read by everybody.
func (a *api) put(resource string, object *unstructured.Unstructured) *unstructured.Unstructured {
	a.lock.Lock()
	defer a.lock.Unlock()
	return a.store(path(resource, object.GetNamespace(), object.GetName()), object)
}

func (a *api) store(path string, object *unstructured.Unstructured) *unstructured.Unstructured {
	a.version++
	stored := object.DeepCopy()
	stored.SetResourceVersion(fmt.Sprint(a.version))
	if stored.GetUID() == "" {
		stored.SetUID(types.UID(fmt.Sprintf("uid-%d", a.version)))
	}
	a.objects[path] = stored
	return stored.DeepCopy()
}

func (a *api) get(resource, namespace, name string) *unstructured.Unstructured {
	a.lock.Lock()
	defer a.lock.Unlock()
	return a.objects[path(resource, namespace, name)]
}

func (a *api) requests() []string {
	a.lock.Lock()
	defer a.lock.Unlock()
	return append([]string(nil), a.log...)
}

func path(resource, namespace, name string) string {
	return namespace + "/" + resource + "/" + name
}

// ServeHTTP implements http.Handler.
func (a *api) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	a.lock.Lock()
	defer a.lock.Unlock()
	// …/{version}[/namespaces/{namespace}]/{resource}[/{name}[/{subresource}]]
	namespace, rest := "", strings.Split(r.URL.Path, "/")[3:]
	if r.URL.Path[:5] == "/apis" {
		rest = rest[1:]
	}
	if rest[0] == "namespaces" {
		namespace, rest = rest[1], rest[2:]
	}
	parts := append(rest, "", "")
	req := &request{Request: r, resource: parts[0], name: parts[1], subresource: parts[2], dryRun: r.URL.Query().Get("dryRun") == "All"}
	raw, err := io.ReadAll(r.Body)
	require.NoError(a.t, err)
	switch r.Method {
	case http.MethodPost, http.MethodPut:
		require.NoError(a.t, json.Unmarshal(raw, &req.body.Object))
		req.name = req.body.GetName()
	case http.MethodDelete:
		require.NoError(a.t, json.Unmarshal(raw, &req.options))
	}
	req.path = path(req.resource, namespace, req.name)
	line := strings.TrimSuffix(fmt.Sprintf("%s %s/%s/%s", r.Method, req.resource, req.name, req.subresource), "/")
	if req.dryRun {
		line += " dryRun"
	}
	a.log = append(a.log, line)
	if a.before != nil && a.before(w, req) {
		return
	}
	code, answer := a.answer(req, schema.GroupResource{Resource: req.resource})
	if a.after != nil && a.after(w, req) {
		return
	}
	reply(w, code, answer)
}

func (a *api) answer(r *request, resource schema.GroupResource) (int, any) {
	there := a.objects[r.path]
	switch {
	case r.Method == http.MethodPost && there != nil:
		return refusal(apierrors.NewAlreadyExists(resource, r.name))
	case r.Method != http.MethodPost && there == nil:
		return refusal(apierrors.NewNotFound(resource, r.name))
	case r.Method == http.MethodPut && r.body.GetResourceVersion() != there.GetResourceVersion():
		return refusal(apierrors.NewConflict(resource, r.name, fmt.Errorf("the object has been modified")))
	case r.Method == http.MethodDelete && !meets(r.options.Preconditions, there):
		return refusal(apierrors.NewConflict(resource, r.name, fmt.Errorf("the precondition is not met")))
	case r.dryRun:
		return http.StatusOK, r.body.Object
	case r.Method == http.MethodPost, r.Method == http.MethodPut:
		return http.StatusOK, a.store(r.path, &r.body).Object
	case r.Method == http.MethodDelete && len(there.GetFinalizers()) == 0:
		delete(a.objects, r.path)
	}
	return http.StatusOK, there.Object
}

func meets(p *metav1.Preconditions, object *unstructured.Unstructured) bool {
	return p == nil || (p.UID == nil || *p.UID == object.GetUID()) && (p.ResourceVersion == nil || *p.ResourceVersion == object.GetResourceVersion())
}

func refusal(err *apierrors.StatusError) (int, any) { return int(err.ErrStatus.Code), err.ErrStatus }

func reply(w http.ResponseWriter, code int, answer any) {
	if status, ok := answer.(metav1.Status); ok {
		status.Kind, status.APIVersion = "Status", "v1"
		answer = status
	}
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(code)
	_ = json.NewEncoder(w).Encode(answer) // a client that has gone away reads nothing
}

var (
	mapping = kinds.Mapping{Tenant: "dev", HostNamespace: "team-dev", Owner: metav1.OwnerReference{
		APIVersion: "tenantplane.io/v1alpha1", Kind: "TenantCluster", Name: "dev", UID: "owner",
	}}
	resources = map[schema.GroupVersionKind]schema.GroupVersionResource{
		{Version: "v1", Kind: "ConfigMap"}:                           {Version: "v1", Resource: "configmaps"},
		{Version: "v1", Kind: "Secret"}:                              {Version: "v1", Resource: "secrets"},
		{Version: "v1", Kind: "Service"}:                             {Version: "v1", Resource: "services"},
		{Version: "v1", Kind: "Pod"}:                                 {Version: "v1", Resource: "pods"},
		{Version: "v1", Kind: "Node"}:                                {Version: "v1", Resource: "nodes"},
		{Group: "example.com", Version: "v1", Kind: "Widget"}:        {Group: "example.com", Version: "v1", Resource: "widgets"},
		{Group: "apps", Version: "v1", Kind: "Deployment"}:           {Group: "apps", Version: "v1", Resource: "deployments"},
		{Group: "batch", Version: "v1", Kind: "CronJob"}:             {Group: "batch", Version: "v1", Resource: "cronjobs"},
		{Version: "v1", Kind: "PersistentVolumeClaim"}:               {Version: "v1", Resource: "persistentvolumeclaims"},
		{Group: "networking.k8s.io", Version: "v1", Kind: "Ingress"}: {Group: "networking.k8s.io", Version: "v1", Resource: "ingresses"},
	}
)

// bench is a host and a tenant in memory, and a Writer between them.
type bench struct {
	host, tenant *api
	writer       *apply.Writer
}

func newBench(t *testing.T) *bench {
	b := &bench{host: newAPI(t), tenant: newAPI(t)}
	b.writer = &apply.Writer{
		Clients:     map[record.Side]dynamic.Interface{record.Host: b.host.client(), record.Tenant: b.tenant.client()},
		Resources:   map[record.Side]map[schema.GroupVersionKind]schema.GroupVersionResource{record.Host: resources, record.Tenant: resources},
		Concurrency: 1,
	}
	return b
}

func tenantObject(gvk schema.GroupVersionKind, name string) *unstructured.Unstructured {
	o := &unstructured.Unstructured{Object: map[string]any{"data": map[string]any{"a": "1"}}}
	o.SetGroupVersionKind(gvk)
	o.SetNamespace("default")
	o.SetName(name)
	o.SetUID(types.UID("t-" + name))
	return o
}

var configMap = schema.GroupVersionKind{Version: "v1", Kind: "ConfigMap"}

// step is a step on the mirror of a tenant object default/name.
func step(action record.Action, gvk schema.GroupVersionKind, name string) plan.Step {
	apiVersion, kind := gvk.ToAPIVersionAndKind()
	rules := kinds.For(gvk.GroupKind())
	s := plan.Step{
		Decision: record.Decision{
			Action: action, Side: record.Host, APIVersion: apiVersion, Kind: kind, TenantNamespace: "default", TenantName: name,
			HostNamespace: "team-dev", HostName: mapping.MirrorName(rules, "default", name), Message: "because", Fields: []string{},
		},
		Key:    record.Key{Group: gvk.Group, Kind: kind, Namespace: "default", Name: name},
		Weight: rules.Weight(),
		Source: tenantObject(gvk, name),
	}
	switch action {
	case record.Create:
		s.Reason = record.NoMirror
	case record.Update:
		s.Reason = record.TenantChanged
	case record.Delete:
		s.Reason, s.Source = record.TenantDeleted, nil
	}
	if action != record.Delete {
		s.Want = mapping.Project(rules, tenantObject(gvk, name), nil, kinds.KeepNone)
	}
	return s
}

// mirrored lays the mirror of a tenant object down on the host, and returns the step with what was read of it.
func (b *bench) mirrored(s plan.Step) plan.Step {
	gvk := schema.FromAPIVersionAndKind(s.APIVersion, s.Kind)
	mirror := mapping.Project(kinds.For(gvk.GroupKind()), tenantObject(gvk, s.TenantName), nil, kinds.KeepNone)
	s.Have = b.host.put(resources[gvk].Resource, mirror)
	if s.Want != nil && !s.Replace {
		s.Want.SetUID(s.Have.GetUID())
		s.Want.SetResourceVersion(s.Have.GetResourceVersion())
	}
	return s
}

// run executes steps, of which there is nothing to stop.
func (b *bench) run(t *testing.T, steps ...plan.Step) []apply.Result {
	t.Helper()
	results, err := b.writer.Execute(t.Context(), steps)
	require.NoError(t, err)
	require.Len(t, results, len(steps))
	return results
}
