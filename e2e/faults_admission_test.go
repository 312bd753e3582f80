package e2e

import (
	"context"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	admissionv1 "k8s.io/api/admission/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"

	"github.com/syncpass/syncpass/record"
)

// faultsOfAdmission are what a host's admission does to a pass, by real webhooks, a real quota and real namespaces.
func faultsOfAdmission() []fault {
	rejected := map[string]string{"made": "Skip Rejected"}
	return []fault{
		{name: "F37 the host namespace's quota is used up", exit: 3, says: []string{"exceeded quota"}, decisions: rejected,
			spoil: func(t *testing.T, p *duePlace) {
				quotas := schema.GroupVersionResource{Version: "v1", Resource: "resourcequotas"}
				list, err := p.objects(record.Host, configMaps).List(p.s.context(t), metav1.ListOptions{})
				require.NoError(t, err)
				p.apply(t, record.Host, fmt.Sprintf("{apiVersion: v1, kind: ResourceQuota, metadata: {name: q}, spec: {hard: {count/configmaps: %d}}}", len(list.Items)))
				p.until(t, "the quota counts", func(ctx context.Context) bool {
					quota, err := p.objects(record.Host, quotas).Get(ctx, "q", metav1.GetOptions{})
					require.NoError(t, err)
					used, _, err := unstructured.NestedString(quota.Object, "status", "used", "count/configmaps")
					require.NoError(t, err)
					return used == fmt.Sprint(len(list.Items))
				})
			},
			mend: func(t *testing.T, p *duePlace) {
				quotas := schema.GroupVersionResource{Version: "v1", Resource: "resourcequotas"}
				require.NoError(t, p.objects(record.Host, quotas).Delete(p.s.context(t), "q", metav1.DeleteOptions{}))
			}},
		webhook{answer: func(r *admissionv1.AdmissionRequest) *admissionv1.AdmissionResponse {
			return &admissionv1.AdmissionResponse{Result: &metav1.Status{Code: http.StatusForbidden, Message: "not today"}}
		}}.on(fault{name: "F38 a webhook denies a create", exit: 3, says: []string{"denied the request: not today"}, decisions: rejected}),
		webhook{}.on(fault{name: "F38 a webhook is not there", exit: 3, says: []string{"failed calling webhook"}, decisions: rejected}),
		webhook{answer: func(*admissionv1.AdmissionRequest) *admissionv1.AdmissionResponse { return nil }}.
			on(fault{name: "F38 a webhook does not answer in time", exit: 3, says: []string{"failed calling webhook"}, decisions: rejected}),
		webhook{mutating: true, answer: func(*admissionv1.AdmissionRequest) *admissionv1.AdmissionResponse {
			kind := admissionv1.PatchTypeJSONPatch
			return &admissionv1.AdmissionResponse{Allowed: true, PatchType: &kind, Patch: []byte(`[{"op":"add","path":"/data/injected","value":"by a webhook"}]`)}
		}}.on(fault{name: "F38 a webhook changes what is created",
			check: func(t *testing.T, p *duePlace, _ spoiltPass) {
				mirror, err := p.objects(record.Host, configMaps).Get(p.s.ctx, p.mirror("made"), metav1.GetOptions{})
				require.NoError(t, err)
				require.Equal(t, object{"a": "1", "injected": "by a webhook"}, mirror.Object["data"])
				// What the host made of it is the agreement: a pass that saw it as a change would carry it back, or write again for ever.
				again, requests := p.pass(t, 0, nil)
				require.Empty(t, again.Decisions)
				requireNoWriteButTheLease(t, requests)
			}}),
		{name: "F39 the tenant namespace is being deleted", then: map[string]string{},
			spoil: func(t *testing.T, p *duePlace) {
				p.apply(t, record.Tenant, "{apiVersion: v1, kind: ConfigMap, metadata: {name: kept, finalizers: [example.com/held]}}")
				require.NoError(t, p.tenantObjects.Resource(namespaces).Delete(p.s.context(t), p.name, metav1.DeleteOptions{}))
				p.until(t, "all but the held object is gone", func(ctx context.Context) bool {
					list, err := p.objects(record.Tenant, configMaps).List(ctx, metav1.ListOptions{})
					require.NoError(t, err)
					others, err := p.objects(record.Tenant, secrets).List(ctx, metav1.ListOptions{})
					require.NoError(t, err)
					more, err := p.objects(record.Tenant, services).List(ctx, metav1.ListOptions{})
					require.NoError(t, err)
					return len(list.Items) == 1 && len(others.Items)+len(more.Items) == 0
				})
			},
			// The mirror that the host changed stays until a person has looked.
			decisions: map[string]string{"made": "", "kept": "Delete TenantDeleted", "pushed": "Delete TenantDeleted", "pulled": "Skip Conflict"},
			check: func(t *testing.T, p *duePlace, spoilt spoiltPass) {
				require.Equal(t, 5, spoilt.Counts.Delete, "the mirrors of kept (three kinds), pushed and gone")
				held, err := p.objects(record.Tenant, configMaps).Get(p.s.ctx, "kept", metav1.GetOptions{})
				require.NoError(t, err)
				require.Equal(t, []string{"example.com/held"}, held.GetFinalizers(), "somebody else's finalizer is never removed")
			},
			mend: func(t *testing.T, p *duePlace) {
				_, err := p.objects(record.Tenant, configMaps).Patch(p.s.context(t), "kept", types.MergePatchType, []byte(`{"metadata":{"finalizers":null}}`), metav1.PatchOptions{})
				require.NoError(t, err)
				p.remove(t, record.Host, "pulled")
			}},
	}
}

// until polls.
func (p *duePlace) until(t *testing.T, what string, condition func(context.Context) bool) {
	t.Helper()
	require.NoError(t, wait.PollUntilContextTimeout(p.s.context(t), 20*time.Millisecond, time.Minute, true, func(ctx context.Context) (bool, error) {
		return condition(ctx), nil
	}), "waiting until %s", what)
}

// webhook is a real one that the host asks about ConfigMaps which are created in the place.
type webhook struct {
	mutating bool
	// answer is what it says; nil where it never comes to an answer. Without a function nobody listens.
	answer func(*admissionv1.AdmissionRequest) *admissionv1.AdmissionResponse
}

// on is a fault that this webhook brings about.
func (w webhook) on(f fault) fault {
	resource, kind := "validatingwebhookconfigurations", "ValidatingWebhookConfiguration"
	if w.mutating {
		resource, kind = "mutatingwebhookconfigurations", "MutatingWebhookConfiguration"
	}
	configurations := schema.GroupVersionResource{Group: "admissionregistration.k8s.io", Version: "v1", Resource: resource}
	f.spoil = func(t *testing.T, p *duePlace) {
		url, ca := "https://127.0.0.1:1/", []byte(nil)
		if w.answer != nil {
			url, ca = w.serve(t)
		}
		client := object{"url": url}
		if ca != nil {
			client["caBundle"] = ca
		}
		require.NoError(t, p.s.host.Apply(p.s.context(t), documents(t, object{
			"apiVersion": configurations.GroupVersion().String(), "kind": kind, "metadata": object{"name": p.name},
			"webhooks": []any{object{
				"name": "judge.example.com", "clientConfig": client, "failurePolicy": "Fail", "sideEffects": "None", "timeoutSeconds": 1,
				"admissionReviewVersions": []any{"v1"},
				"namespaceSelector":       object{"matchLabels": object{"kubernetes.io/metadata.name": p.name}},
				"rules": []any{object{"apiGroups": []any{""}, "apiVersions": []any{"v1"}, "resources": []any{"configmaps"},
					"operations": []any{"CREATE"}, "scope": "Namespaced"}},
			}}})))
		t.Cleanup(func() {
			err := p.hostObjects.Resource(configurations).Delete(p.s.ctx, p.name, metav1.DeleteOptions{})
			assert.True(t, err == nil || apierrors.IsNotFound(err), "%v", err)
		})
		p.until(t, "the API server asks the webhook", func(ctx context.Context) bool {
			made, err := p.objects(record.Host, configMaps).Create(ctx, configMapOf("probe", "1"), metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}})
			return err != nil || made.Object["data"].(object)["injected"] != nil
		})
	}
	f.mend = func(t *testing.T, p *duePlace) {
		require.NoError(t, p.hostObjects.Resource(configurations).Delete(p.s.context(t), p.name, metav1.DeleteOptions{}))
		p.until(t, "the API server asks the webhook no more", func(ctx context.Context) bool {
			made, err := p.objects(record.Host, configMaps).Create(ctx, configMapOf("probe", "1"), metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}})
			return err == nil && made.Object["data"].(object)["injected"] == nil
		})
	}
	return f
}

// serve runs the webhook and returns its address and CA.
func (w webhook) serve(t *testing.T) (string, []byte) {
	t.Helper()
	server := httptest.NewTLSServer(http.HandlerFunc(func(answer http.ResponseWriter, r *http.Request) {
		var review admissionv1.AdmissionReview
		if err := json.NewDecoder(r.Body).Decode(&review); err != nil {
			http.Error(answer, err.Error(), http.StatusBadRequest)
			return
		}
		review.Response = w.answer(review.Request)
		if review.Response == nil {
			<-r.Context().Done()
			return
		}
		review.Response.UID = review.Request.UID
		review.Request = nil
		_ = json.NewEncoder(answer).Encode(review) // an API server that went away has given its own answer
	}))
	t.Cleanup(server.Close)
	return server.URL, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw})
}
