package store

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"

	jsonpatch "github.com/evanphx/json-patch/v5"
	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"
	corev1client "k8s.io/client-go/kubernetes/typed/core/v1"
	"k8s.io/client-go/rest"
)

// server is as much of an API server as this package needs, with what client-go's fakes leave out: resourceVersions and
// UIDs that are enforced, a status subresource, chunked lists, and a size limit.
type server struct {
	*httptest.Server
	t *testing.T

	mu       sync.Mutex
	objects  map[string]map[string]any // by "resource/name"
	version  int
	requests []string // "VERB name[/status]", in order
	maxBytes int
	noCRD    bool
	expire   int // so many continue tokens expire

	// before is called for each request, after it was logged and outside the lock, with the number of the request among
	// those of this client. What it returns is done to the request.
	before func(client string, n int, request string) fault
	count  map[string]int
}

// fault is what happens to a request.
type fault int

const (
	none fault = iota
	// lost: the request is not carried out, and the connection breaks.
	lost
	// unanswered: the request is carried out, and the connection breaks.
	unanswered
)

func newServer(t *testing.T) *server {
	s := &server{t: t, objects: map[string]map[string]any{}, count: map[string]int{}}
	s.Server = httptest.NewServer(s)
	t.Cleanup(s.Close)
	return s
}

func (s *server) config() *rest.Config { return &rest.Config{Host: s.URL, QPS: -1} }

func (s *server) store(t *testing.T, tenant string) *Store { return s.storeOf(t, "", tenant) }

// storeOf is a store that sends its requests as that client.
func (s *server) storeOf(t *testing.T, name, tenant string) *Store {
	config := s.config()
	config.UserAgent = name
	client, err := dynamic.NewForConfig(config)
	require.NoError(t, err)
	return New(client, client, "team-dev", tenant, owner(tenant))
}

func (s *server) events(t *testing.T) corev1client.EventsGetter {
	config := s.config()
	config.ContentType = "application/json" // the default is protobuf
	client, err := corev1client.NewForConfig(config)
	require.NoError(t, err)
	return client
}

func owner(tenant string) metav1.OwnerReference {
	return metav1.OwnerReference{APIVersion: "tenantplane.io/v1alpha1", Kind: "TenantCluster", Name: tenant, UID: "5f1c0a52-0000-4000-8000-000000000001"}
}

// names are the names of the SyncDecisions there are, sorted.
func (s *server) names() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	var names []string
	for key := range s.objects {
		if name, ok := strings.CutPrefix(key, "syncdecisions/"); ok {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return names
}

// edit changes an object behind the store's back, as kubectl would.
func (s *server) edit(key string, change func(o *unstructured.Unstructured)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	o := &unstructured.Unstructured{Object: s.objects[key]}
	require.NotNil(s.t, o.Object, key)
	o = o.DeepCopy()
	change(o)
	s.put(key, o.Object)
}

func (s *server) remove(key string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.objects, key)
}

// calls empties the log and returns it, without reads unless all is set.
func (s *server) calls(all bool) []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	calls := slices.DeleteFunc(s.requests, func(r string) bool {
		return !all && (strings.HasPrefix(r, "GET") || strings.HasPrefix(r, "LIST"))
	})
	s.requests = nil
	return calls
}

func (s *server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	// /api/v1/namespaces/NS/RESOURCE/NAME/SUB and /apis/GROUP/VERSION/namespaces/NS/RESOURCE/NAME/SUB
	_, path, _ := strings.Cut(r.URL.Path, "/namespaces/team-dev/")
	parts := append(strings.Split(path, "/"), "", "")
	resource, name, sub := parts[0], parts[1], parts[2]
	body, err := io.ReadAll(r.Body)
	require.NoError(s.t, err)

	verb := r.Method
	if verb == http.MethodGet && name == "" {
		verb = "LIST"
	}
	log := verb + " " + name
	if verb == http.MethodPost {
		var o unstructured.Unstructured
		_ = json.Unmarshal(body, &o.Object)
		log += o.GetName()
	}
	if sub != "" {
		log += "/" + sub
	}
	s.mu.Lock()
	s.requests = append(s.requests, log)
	client := r.UserAgent()
	s.count[client]++
	n, before := s.count[client], s.before
	s.mu.Unlock()

	f := none
	if before != nil {
		f = before(client, n, log)
	}
	if f == lost {
		panic(http.ErrAbortHandler)
	}
	code, answer := s.handle(verb, resource, name, sub, r, body)
	if f == unanswered {
		panic(http.ErrAbortHandler)
	}
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(code)
	_ = json.NewEncoder(w).Encode(answer)
}

func (s *server) handle(verb, resource, name, sub string, r *http.Request, body []byte) (int, any) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.noCRD && resource == "syncdecisions" {
		return status(404, "NotFound", "the server could not find the requested resource", "")
	}
	if s.maxBytes > 0 && len(body) > s.maxBytes {
		return status(500, "InternalError", "etcdserver: request is too large", "")
	}
	key := resource + "/" + name
	switch verb {
	case "LIST":
		return s.list(resource, r)
	case http.MethodPost:
		var o unstructured.Unstructured
		if err := json.Unmarshal(body, &o.Object); err != nil {
			return status(400, "BadRequest", err.Error(), "")
		}
		key += o.GetName()
		if s.objects[key] != nil {
			return status(409, "AlreadyExists", "already exists", o.GetName())
		}
		delete(o.Object, "status")
		o.SetUID(newUID(s.version))
		s.put(key, o.Object)
		return 201, s.objects[key]
	}
	have := s.objects[key]
	if have == nil {
		return status(404, "NotFound", "not found", name)
	}
	o := (&unstructured.Unstructured{Object: have}).DeepCopy()
	switch verb {
	case http.MethodGet:
		return 200, have
	case http.MethodPut:
		var in unstructured.Unstructured
		if err := json.Unmarshal(body, &in.Object); err != nil || sub != "status" {
			return status(400, "BadRequest", "only the status is ever updated", "")
		}
		if in.GetUID() != o.GetUID() || in.GetResourceVersion() != o.GetResourceVersion() {
			return status(409, "Conflict", "the object has been modified", name)
		}
		o.Object["status"] = in.Object["status"]
	case http.MethodPatch:
		if r.Header.Get("Content-Type") == string(types.JSONPatchType) {
			next, err := patched(have, body)
			switch {
			case err != nil || sub != "status":
				return status(422, "Invalid", fmt.Sprint("the patch cannot be applied: ", err), name)
			case next.GetUID() != o.GetUID() || next.GetResourceVersion() != o.GetResourceVersion():
				return status(409, "Conflict", "the object has been modified", name)
			}
			if o.Object["status"] = next.Object["status"]; s.maxBytes > 0 && size(o.Object) > s.maxBytes {
				return status(500, "InternalError", "etcdserver: request is too large", "")
			}
			break
		}
		var in map[string]any // a merge patch of top-level fields, as Events get
		if err := json.Unmarshal(body, &in); err != nil {
			return status(400, "BadRequest", err.Error(), "")
		}
		for k, v := range in {
			o.Object[k] = v
		}
	case http.MethodDelete:
		var opts metav1.DeleteOptions
		if err := json.Unmarshal(body, &opts); err != nil {
			return status(400, "BadRequest", err.Error(), "")
		}
		if p := opts.Preconditions; p == nil || *p.UID != o.GetUID() || *p.ResourceVersion != o.GetResourceVersion() {
			return status(409, "Conflict", "the precondition failed", name)
		}
		delete(s.objects, key)
		return status(200, "", "deleted", name)
	}
	s.put(key, o.Object)
	return 200, s.objects[key]
}

func size(object map[string]any) int {
	text, err := json.Marshal(object)
	if err != nil {
		panic(err) // it was decoded from JSON
	}
	return len(text)
}

// patched applies a JSON patch.
func patched(object map[string]any, body []byte) (*unstructured.Unstructured, error) {
	text, err := json.Marshal(object)
	if err != nil {
		return nil, err
	}
	patch, err := jsonpatch.DecodePatch(body)
	if err != nil {
		return nil, err
	}
	if text, err = patch.Apply(text); err != nil {
		return nil, err
	}
	next := &unstructured.Unstructured{}
	return next, json.Unmarshal(text, &next.Object)
}

func (s *server) put(key string, object map[string]any) {
	s.version++
	(&unstructured.Unstructured{Object: object}).SetResourceVersion(strconv.Itoa(s.version))
	s.objects[key] = object
}

func (s *server) list(resource string, r *http.Request) (int, any) {
	selector, err := labels.Parse(r.URL.Query().Get("labelSelector"))
	require.NoError(s.t, err)
	limit, _ := strconv.Atoi(r.URL.Query().Get("limit"))
	after := r.URL.Query().Get("continue")
	if after != "" && s.expire > 0 {
		s.expire--
		return status(410, "Expired", "the provided continue parameter is too old", "")
	}
	var keys []string
	for key, o := range s.objects {
		if strings.HasPrefix(key, resource+"/") && key > after && selector.Matches(labels.Set((&unstructured.Unstructured{Object: o}).GetLabels())) {
			keys = append(keys, key)
		}
	}
	slices.Sort(keys)
	meta := map[string]any{"resourceVersion": strconv.Itoa(s.version)}
	if limit > 0 && len(keys) > limit {
		keys = keys[:limit]
		meta["continue"] = keys[limit-1]
	}
	items := []any{}
	for _, key := range keys {
		items = append(items, s.objects[key])
	}
	return 200, map[string]any{"apiVersion": "tenantplane.io/v1alpha1", "kind": "SyncDecisionList", "metadata": meta, "items": items}
}

func status(code int, reason, message, name string) (int, any) {
	result := "Failure"
	if code < 300 {
		result = "Success"
	}
	answer := map[string]any{"apiVersion": "v1", "kind": "Status", "status": result, "message": message, "reason": reason, "code": code}
	if name != "" {
		answer["details"] = map[string]any{"name": name}
	}
	return code, answer
}

func newUID(n int) types.UID { return types.UID(fmt.Sprintf("00000000-0000-4000-8000-%012d", n)) }
