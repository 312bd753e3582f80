package pass

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/runtime/serializer/protobuf"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"

	"github.com/syncpass/syncpass/pass/access"
	"github.com/syncpass/syncpass/pass/kinds"
	"github.com/syncpass/syncpass/pass/modeltest"
	"github.com/syncpass/syncpass/pass/plan"
	"github.com/syncpass/syncpass/policy"
	"github.com/syncpass/syncpass/record"
	"github.com/syncpass/syncpass/record/store"
)

// BenchmarkQuietPass is what a pass costs its own process where nothing happened: all of it but the API servers' work and
// the network. make bench measures the whole.
func BenchmarkQuietPass(b *testing.B) {
	for _, pairs := range []int{1000, 10000, 100000} {
		b.Run(fmt.Sprintf("pairs=%d", pairs), func(b *testing.B) {
			w := newBenchWorld(b, pairs)
			b.ReportAllocs()
			for b.Loop() {
				result := w.pass()
				require.NoError(b, result.Err)
				require.Equal(b, pairs, result.Counts.Unchanged)
				require.Less(b, result.Counts.Requests, 300)
			}
		})
	}
}

// benchWorld is a tenant whose pairs agree, and API servers that answer at once.
type benchWorld struct {
	mapping kinds.Mapping
	hasher  record.Hasher
	host    *benchServer
	tenant  *benchServer
}

func newBenchWorld(b *testing.B, pairs int) *benchWorld {
	w := &benchWorld{
		mapping: kinds.Mapping{Tenant: "dev", HostNamespace: "team-dev", Owner: metav1.OwnerReference{
			APIVersion: policy.GroupVersion.String(), Kind: "TenantCluster", Name: "dev", UID: "owner",
		}},
		hasher: record.NewHasher([]byte("credential")),
		host:   newBenchServer(), tenant: newBenchServer(),
	}
	kind := kinds.For(schema.GroupKind{Kind: "ConfigMap"})
	history := record.NewHistory(w.hasher.KeyID())
	var tenants, hosts []*unstructured.Unstructured
	for i := range pairs {
		name := fmt.Sprintf("config-%06d", i)
		tenant := &unstructured.Unstructured{Object: map[string]any{"data": map[string]any{"a": "1"}}}
		tenant.SetGroupVersionKind(modeltest.ConfigMaps)
		tenant.SetNamespace("default")
		tenant.SetName(name)
		written(tenant, 'a', i)
		host := w.mapping.Project(kind, tenant, nil, kinds.KeepNone)
		written(host, 'b', i)
		history.Set(record.Key{Kind: "ConfigMap", Namespace: "default", Name: name}, record.State{Baseline: plan.Agreement(w.hasher, kind, tenant, host)})
		tenants, hosts = append(tenants, tenant), append(hosts, host)
	}
	w.tenant.lists["/api/v1/configmaps"] = metadataPages(b, tenants)
	w.host.lists["/api/v1/namespaces/team-dev/configmaps"] = metadataPages(b, hosts)

	host := w.cluster(b, w.host)
	records := store.New(host.Dynamic(), host.Terse(), "team-dev", "dev", w.mapping.Owner)
	loaded, err := records.Load(b.Context())
	require.NoError(b, err)
	_, err = records.Record(b.Context(), loaded, store.Result{
		History: history, LastPass: record.LastPass{ID: "first", Outcome: record.Completed}, Tenant: &record.TenantIdentity{UID: "tenant"},
	})
	require.NoError(b, err)
	return w
}

// written gives an object what an API server does.
func written(object *unstructured.Unstructured, side byte, i int) {
	object.SetUID(uidOfBench(side, i))
	object.SetResourceVersion(strconv.Itoa(1000 + i))
	at := metav1.NewTime(time.Date(2026, 1, 1, 0, 0, i%60, 0, time.UTC))
	object.SetManagedFields([]metav1.ManagedFieldsEntry{{
		Manager: "kubectl", Operation: metav1.ManagedFieldsOperationUpdate, APIVersion: "v1", Time: &at,
		FieldsType: "FieldsV1", FieldsV1: metav1.NewFieldsV1(`{"f:data":{".":{},"f:a":{}}}`),
	}})
}

func (w *benchWorld) cluster(b *testing.B, transport http.RoundTripper) *access.Cluster {
	cluster, err := access.NewHost(w.config(transport), access.Options{RequestTimeout: time.Minute})
	require.NoError(b, err)
	return cluster
}

func (w *benchWorld) config(transport http.RoundTripper) *rest.Config {
	return &rest.Config{Host: "http://server", Transport: transport, ContentConfig: rest.ContentConfig{ContentType: asJSON}}
}

func (w *benchWorld) pass() Result { return w.passOver(w.host, w.tenant) }

func (w *benchWorld) passOver(hostServer, tenantServer http.RoundTripper) Result {
	host, err := access.NewHost(w.config(hostServer), access.Options{RequestTimeout: time.Minute})
	if err != nil {
		panic(err) // it was made that way before
	}
	tenant, err := access.NewHost(w.config(tenantServer), access.Options{RequestTimeout: time.Minute})
	if err != nil {
		panic(err)
	}
	return through(context.Background(), Options{
		Host: host, Namespace: "team-dev", Tenant: "dev", PassTimeout: time.Hour, LeaseDuration: time.Minute, RequestTimeout: time.Minute,
		Concurrency: 16, MaxDeletePercent: 50, Identity: "bench", Log: slog.New(slog.DiscardHandler),
	}, func(r *run, _ context.Context) error {
		r.target = &target{
			cluster: &policy.TenantCluster{ObjectMeta: metav1.ObjectMeta{Name: "dev"}}, mapping: w.mapping,
			policy: syncPolicy(modeltest.Policy{Direction: policy.Bidirectional, Conflict: policy.Manual}),
		}
		r.tenant, r.hasher = tenant, w.hasher
		return nil
	})
}

func uidOfBench(side byte, i int) types.UID {
	return types.UID(fmt.Sprintf("%c0000000-0000-4000-8000-%012d", side, i))
}

// benchServer answers from memory: discovery, lists of metadata, and whatever was written.
type benchServer struct {
	lock    sync.Mutex
	version int
	objects map[string]*unstructured.Unstructured
	// lists are the pages of metadata by path, each of them whole.
	lists map[string][][]byte
}

func newBenchServer() *benchServer {
	return &benchServer{objects: map[string]*unstructured.Unstructured{}, lists: map[string][][]byte{}}
}

// RoundTrip implements http.RoundTripper.
func (s *benchServer) RoundTrip(r *http.Request) (*http.Response, error) {
	code, contentType, body := s.answer(r)
	return &http.Response{
		StatusCode: code, Status: http.StatusText(code), Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1, Request: r,
		Header: http.Header{"Content-Type": {contentType}}, Body: io.NopCloser(bytes.NewReader(body)), ContentLength: int64(len(body)),
	}, nil
}

const (
	asJSON     = "application/json"
	asProtobuf = "application/vnd.kubernetes.protobuf"
)

func (s *benchServer) answer(r *http.Request) (code int, contentType string, body []byte) {
	s.lock.Lock()
	defer s.lock.Unlock()
	path := r.URL.Path
	if pages := s.lists[path]; pages != nil {
		page, _ := strconv.Atoi(r.URL.Query().Get("continue"))
		return http.StatusOK, asProtobuf, pages[page]
	}
	switch {
	case path == "/api/v1":
		return http.StatusOK, asJSON, []byte(`{"kind":"APIResourceList","apiVersion":"v1","groupVersion":"v1","resources":[` +
			`{"name":"configmaps","kind":"ConfigMap","namespaced":true,"verbs":["get","list","create","update","delete"]}]}`)
	case path == "/api/v1/namespaces/kube-system":
		return http.StatusOK, asJSON, []byte(`{"kind":"Namespace","apiVersion":"v1","metadata":{"name":"kube-system","uid":"tenant"}}`)
	case r.Method == http.MethodGet && strings.HasSuffix(path, "/syncdecisions"):
		list := []any{}
		for name, object := range s.objects {
			if strings.HasPrefix(name, path) && object.GetLabels() != nil {
				list = append(list, object.Object)
			}
		}
		return http.StatusOK, asJSON, encode(map[string]any{"kind": "SyncDecisionList", "apiVersion": "tenantplane.io/v1alpha1", "metadata": map[string]any{"resourceVersion": "1"}, "items": list})
	}
	return s.object(r, strings.TrimSuffix(path, "/status"))
}

// object serves one object as far as the passes of a benchmark ask for it: none of them meets another.
func (s *benchServer) object(r *http.Request, path string) (int, string, []byte) {
	there := s.objects[path]
	if r.Method == http.MethodGet {
		if there == nil {
			code, body := refusal(apierrors.NewNotFound(schema.GroupResource{}, path))
			return code, asJSON, body
		}
		return http.StatusOK, asJSON, encode(there.Object)
	}
	sent, err := io.ReadAll(r.Body)
	if err == nil && r.Method == http.MethodPatch {
		sent, err = patched(there, sent)
	}
	next := &unstructured.Unstructured{}
	if err == nil {
		err = json.Unmarshal(sent, &next.Object)
	}
	if err != nil {
		code, body := refusal(apierrors.NewBadRequest(err.Error()))
		return code, asJSON, body
	}
	if there == nil {
		next.SetUID("made")
		path += "/" + next.GetName()
	} else {
		next.SetLabels(there.GetLabels()) // an update of the status
	}
	s.version++
	next.SetResourceVersion(strconv.Itoa(s.version))
	s.objects[path] = next
	return http.StatusOK, asJSON, encode(next.Object)
}

// metadataPages is a list as an API server gives it, in protobuf.
func metadataPages(b *testing.B, objects []*unstructured.Unstructured) [][]byte {
	const size = 2000
	scheme := runtime.NewScheme()
	require.NoError(b, metav1.AddMetaToScheme(scheme))
	serializer := protobuf.NewSerializer(scheme, scheme)
	var pages [][]byte
	for chunk := range slices.Chunk(objects, size) {
		list := &metav1.PartialObjectMetadataList{
			TypeMeta: metav1.TypeMeta{Kind: "PartialObjectMetadataList", APIVersion: "meta.k8s.io/v1"}, ListMeta: metav1.ListMeta{ResourceVersion: "900000"},
		}
		if (len(pages)+1)*size < len(objects) {
			list.Continue = strconv.Itoa(len(pages) + 1)
		}
		for _, object := range chunk {
			item := metav1.PartialObjectMetadata{}
			require.NoError(b, runtime.DefaultUnstructuredConverter.FromUnstructured(object.Object, &item))
			item.TypeMeta = metav1.TypeMeta{}
			list.Items = append(list.Items, item)
		}
		var page bytes.Buffer
		require.NoError(b, serializer.Encode(list, &page))
		pages = append(pages, page.Bytes())
	}
	return pages
}
