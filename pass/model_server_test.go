package pass

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"strings"
	"sync"

	jsonpatch "github.com/evanphx/json-patch/v5"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/syncpass/syncpass/pass/access"
	"github.com/syncpass/syncpass/pass/modeltest"
	"github.com/syncpass/syncpass/record"
)

// circuit is what the passes of one history have in common besides the model: the Lease, and which of them stand still.
type circuit struct {
	lock    sync.Mutex
	version int
	lease   *unstructured.Unstructured
	stopped map[*modeltest.Pass]chan struct{}
	// begin, progress and observe are told of each pass; nil for nobody.
	begin    func(context.Context, Phase) (context.Context, func(error))
	progress func(done, total int)
	observe  access.Observe
}

func newCircuit() *circuit { return &circuit{stopped: map[*modeltest.Pass]chan struct{}{}} }

// line is a pass's way to one API server.
type line struct {
	*circuit
	model *modeltest.Model
	pass  *modeltest.Pass
	side  record.Side
	die   context.CancelFunc
}

// request is a request taken apart.
type request struct {
	method, resource, name, subresource string
	body                                unstructured.Unstructured
	raw                                 []byte
	// metadata says that of a list, only the metadata is asked for.
	metadata bool
}

// changes says whether a request is one of those that a pass is followed by.
func (r *request) changes() bool {
	return r.method != http.MethodGet && (r.resource == "configmaps" || r.resource == "syncdecisions")
}

var errBroken = errors.New("the connection broke")

// CloseIdleConnections is what a transport is asked for at the end of a pass; there are none.
func (l *line) CloseIdleConnections() {}

// RoundTrip implements http.RoundTripper.
func (l *line) RoundTrip(sent *http.Request) (*http.Response, error) {
	r, err := take(sent)
	if err != nil {
		return nil, err
	}
	if !l.wait(sent.Context()) {
		return nil, sent.Context().Err()
	}
	if r.changes() && l.pass.First() {
		l.turn()
	}
	code, answer, err := l.exchange(r)
	if err != nil {
		return nil, err
	}
	if r.changes() {
		l.turn()
	}
	return &http.Response{
		StatusCode: code, Status: http.StatusText(code), Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1, Request: sent,
		Header: http.Header{"Content-Type": {"application/json"}}, Body: io.NopCloser(bytes.NewReader(answer)), ContentLength: int64(len(answer)),
	}, nil
}

// wait lets nothing of a process happen that stands still, its renewals of the Lease above all.
func (l *line) wait(ctx context.Context) bool {
	l.lock.Lock()
	stopped := l.stopped[l.pass]
	l.lock.Unlock()
	if stopped == nil {
		return true
	}
	select {
	case <-stopped:
		return true
	case <-ctx.Done():
		return false
	}
}

// turn lets the process stand still where it is to.
func (l *line) turn() {
	if !l.pass.Stalls() {
		return
	}
	moves := make(chan struct{})
	l.lock.Lock()
	l.stopped[l.pass] = moves
	l.lock.Unlock()
	l.pass.Turn()
	l.lock.Lock()
	delete(l.stopped, l.pass)
	l.lock.Unlock()
	close(moves)
}

// take takes a request apart:
// …/{version}[/namespaces/{namespace}]/{resource}[/{name}[/{subresource}]]
func take(sent *http.Request) (*request, error) {
	r := &request{method: sent.Method, metadata: strings.Contains(sent.Header.Get("Accept"), "as=PartialObjectMetadataList")}
	parts := strings.Split(strings.Trim(sent.URL.Path, "/"), "/")
	if parts[0] == "apis" {
		parts = parts[1:]
	}
	if parts = parts[min(2, len(parts)):]; len(parts) > 2 && parts[0] == "namespaces" {
		parts = parts[2:]
	}
	parts = append(parts, "", "", "")
	r.resource, r.name, r.subresource = parts[0], parts[1], parts[2]
	if r.resource == "" {
		r.resource = sent.URL.Path
	}
	if sent.Body == nil {
		return r, nil
	}
	var err error
	if r.raw, err = io.ReadAll(sent.Body); err == nil && len(r.raw) > 0 {
		if sent.Header.Get("Content-Type") != string(types.JSONPatchType) {
			err = json.Unmarshal(r.raw, &r.body.Object)
		}
	}
	return r, err
}

// exchange is a request that reaches its server, and what comes back.
func (l *line) exchange(r *request) (int, []byte, error) {
	l.lock.Lock()
	defer l.lock.Unlock()
	if l.pass.Dead() {
		return 0, nil, errBroken
	}
	verdict := modeltest.Goes
	if r.changes() {
		verdict = l.pass.Arrives()
	}
	switch verdict {
	case modeltest.Dies:
		l.die()
		return 0, nil, errBroken
	case modeltest.Lost:
		return 0, nil, errBroken
	case modeltest.Denied:
		code, answer := refusal(apierrors.NewForbidden(schema.GroupResource{Resource: r.resource}, r.name, errors.New("exceeded quota")))
		return code, answer, nil
	}
	code, answer := l.answer(r)
	switch verdict {
	case modeltest.Last:
		l.die()
		return 0, nil, errBroken
	case modeltest.Unanswered:
		return 0, nil, errBroken
	}
	return code, answer, nil
}

func (l *line) answer(r *request) (int, []byte) {
	switch r.resource {
	case "/api":
		return http.StatusOK, []byte(`{"kind":"APIVersions","apiVersion":"v1","versions":["v1"]}`)
	case "/apis":
		return http.StatusOK, []byte(`{"kind":"APIGroupList","apiVersion":"v1","groups":[]}`)
	case "/api/v1":
		return http.StatusOK, []byte(`{"kind":"APIResourceList","apiVersion":"v1","groupVersion":"v1","resources":[` +
			`{"name":"configmaps","kind":"ConfigMap","namespaced":true,"verbs":["get","list","create","update","delete"]}]}`)
	case "namespaces", "kube-system":
		return http.StatusOK, fmt.Appendf(nil, `{"kind":"Namespace","apiVersion":"v1","metadata":{"name":"kube-system","uid":%q}}`, l.pass.TenantUID())
	case "events":
		return http.StatusCreated, r.raw
	case "leases":
		return l.answerLease(r)
	case "syncdecisions":
		return l.answerDecision(r)
	case "configmaps":
		return l.answerConfigMap(r)
	}
	return refusal(apierrors.NewNotFound(schema.GroupResource{Resource: r.resource}, r.name))
}

func (l *line) answerConfigMap(r *request) (int, []byte) {
	var object *unstructured.Unstructured
	var err error
	switch {
	case r.method == http.MethodGet && r.name == "" && l.side == record.Tenant && l.pass.ListFails():
		err = apierrors.NewForbidden(schema.GroupResource{Resource: r.resource}, "", errors.New("no right to list"))
	case r.method == http.MethodGet && r.name == "":
		items, version := l.model.List(l.pass, l.side)
		list := map[string]any{"kind": "ConfigMapList", "apiVersion": "v1", "metadata": map[string]any{"resourceVersion": version}}
		if r.metadata {
			list["kind"], list["apiVersion"] = "PartialObjectMetadataList", "meta.k8s.io/v1"
		}
		contents := make([]any, len(items))
		for i := range items {
			if contents[i] = items[i].Object; r.metadata {
				contents[i] = map[string]any{"metadata": items[i].Object["metadata"]}
			}
		}
		list["items"] = contents
		return http.StatusOK, encode(list)
	case r.method == http.MethodGet:
		if object = l.model.Get(l.pass, l.side, r.name); object == nil {
			err = apierrors.NewNotFound(schema.GroupResource{Resource: r.resource}, r.name)
		}
	case r.method == http.MethodPost:
		object, err = l.model.Create(l.pass, l.side, &r.body)
	case r.method == http.MethodPut:
		object, err = l.model.Update(l.pass, l.side, &r.body)
	case r.method == http.MethodDelete:
		var options metav1.DeleteOptions
		if err = json.Unmarshal(r.raw, &options); err == nil && (options.Preconditions == nil || options.Preconditions.UID == nil || options.Preconditions.ResourceVersion == nil) {
			l.model.Breaks("every delete has preconditions", "of %s", r.name)
			return refusal(apierrors.NewBadRequest("no preconditions"))
		}
		err = l.model.Delete(l.pass, l.side, r.name, *options.Preconditions.UID, *options.Preconditions.ResourceVersion)
		object = &unstructured.Unstructured{Object: map[string]any{"kind": "Status", "apiVersion": "v1", "status": "Success"}}
	}
	if err != nil {
		return refusal(err)
	}
	return http.StatusOK, encode(object.Object)
}

// store puts an object under its next resourceVersion.
func (c *circuit) store(object *unstructured.Unstructured) {
	c.version++
	object.SetResourceVersion(strconv.Itoa(c.version))
	if object.GetUID() == "" {
		object.SetUID(types.UID(fmt.Sprintf("10000000-0000-4000-8000-%012d", c.version)))
	}
}

// written is what comes of a request to write an object that is there, or not.
func (c *circuit) written(r *request, there *unstructured.Unstructured) error {
	group := schema.GroupResource{Resource: r.resource}
	switch {
	case r.method == http.MethodPost && there != nil:
		return apierrors.NewAlreadyExists(group, r.body.GetName())
	case r.method != http.MethodPost && there == nil:
		return apierrors.NewNotFound(group, r.name)
	case r.method == http.MethodPut && r.body.GetResourceVersion() != there.GetResourceVersion():
		return apierrors.NewConflict(group, r.name, errors.New("the object has been modified"))
	}
	return nil
}

// answerLease serves the one Lease. Without a fence, it is given to everybody.
func (l *line) answerLease(r *request) (int, []byte) {
	if l.model.Without.Fence {
		if r.method == http.MethodGet {
			return refusal(apierrors.NewNotFound(schema.GroupResource{Resource: "leases"}, r.name))
		}
		return http.StatusOK, r.raw
	}
	if err := l.written(r, l.lease); err != nil {
		return refusal(err)
	}
	if r.method != http.MethodGet {
		l.lease = r.body.DeepCopy()
		l.store(l.lease)
	}
	return http.StatusOK, encode(l.lease.Object)
}

// patch makes of a JSON patch the object that it asks for.
func (r *request) patch(there *unstructured.Unstructured) error {
	text, err := patched(there, r.raw)
	if err != nil {
		return err
	}
	r.method = http.MethodPut
	return json.Unmarshal(text, &r.body.Object)
}

// patched applies a JSON patch to an object.
func patched(object *unstructured.Unstructured, sent []byte) ([]byte, error) {
	patch, err := jsonpatch.DecodePatch(sent)
	if err != nil {
		return nil, err
	}
	return patch.Apply(encode(object.Object))
}

// answerDecision serves the SyncDecision, which the model keeps, and so loses with all else that it loses.
func (l *line) answerDecision(r *request) (int, []byte) {
	if r.method == http.MethodGet && r.name == "" {
		return http.StatusOK, []byte(`{"kind":"SyncDecisionList","apiVersion":"tenantplane.io/v1alpha1","metadata":{"resourceVersion":"1"},"items":[]}`)
	}
	there, _ := l.model.State().(*unstructured.Unstructured)
	if r.method == http.MethodPatch && there != nil {
		if err := r.patch(there); err != nil {
			return refusal(apierrors.NewBadRequest(err.Error()))
		}
	}
	if err := l.written(r, there); err != nil {
		return refusal(err)
	}
	if r.method == http.MethodGet {
		return http.StatusOK, encode(there.Object)
	}
	next := r.body.DeepCopy()
	if r.method == http.MethodPost {
		delete(next.Object, "status")
		l.store(next)
		l.model.Recorded(l.pass, record.NewHistory(""), 0, "", next)
		return http.StatusCreated, encode(next.Object)
	}
	next.SetLabels(there.GetLabels())
	next.SetOwnerReferences(there.GetOwnerReferences())
	var decision record.SyncDecision
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(next.Object, &decision); err != nil {
		return refusal(apierrors.NewBadRequest(err.Error()))
	}
	history, err := l.history(&decision)
	if err != nil {
		l.model.Breaks("what is stored can be read", "%v", err)
	}
	if l.model.Without.Intents && decision.Status.History != nil {
		next = withHistory(next, history)
	}
	tenant := ""
	if decision.Status.Tenant != nil {
		tenant = decision.Status.Tenant.UID
	}
	l.store(next)
	l.model.Recorded(l.pass, history, decision.Status.Epoch, tenant, next)
	return http.StatusOK, encode(next.Object)
}

// history is what a SyncDecision remembers, without the intents where those are taken away.
func (l *line) history(decision *record.SyncDecision) (*record.History, error) {
	if decision.Status.History == nil {
		return record.NewHistory(""), nil
	}
	history, err := record.Decode([]record.Page{*decision.Status.History})
	if !l.model.Without.Intents {
		return history, err
	}
	for key, state := range history.All() {
		state.Intent = nil
		history.Set(key, state)
	}
	return history, err
}

func withHistory(decision *unstructured.Unstructured, history *record.History) *unstructured.Unstructured {
	pages, err := history.Encode()
	if err != nil {
		panic(err) // it was decoded a moment ago
	}
	page, err := runtime.DefaultUnstructuredConverter.ToUnstructured(&pages[0])
	if err != nil {
		panic(err)
	}
	if err := unstructured.SetNestedMap(decision.Object, page, "status", "history"); err != nil {
		panic(err)
	}
	return decision
}

func refusal(err error) (int, []byte) {
	var refused apierrors.APIStatus
	if !errors.As(err, &refused) {
		refused = apierrors.NewBadRequest(err.Error())
	}
	status := refused.Status()
	status.Kind, status.APIVersion = "Status", "v1"
	return int(status.Code), encode(status)
}
