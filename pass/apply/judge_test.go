package apply_test

import (
	"net/http"
	"testing"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/syncpass/syncpass/pass/plan"
	"github.com/syncpass/syncpass/record"
)

func status(code int32, reason metav1.StatusReason, message string) metav1.Status {
	return metav1.Status{Status: metav1.StatusFailure, Code: code, Reason: reason, Message: message}
}

func withCause(s metav1.Status, cause metav1.CauseType) metav1.Status {
	s.Details = &metav1.StatusDetails{Causes: []metav1.StatusCause{{Type: cause, Message: s.Message}}}
	return s
}

// answer is a server that gives the same answer to everything.
func answer(s metav1.Status) func(http.ResponseWriter, *request) bool {
	return func(w http.ResponseWriter, _ *request) bool { reply(w, int(s.Code), s); return true }
}

func hangUp(w http.ResponseWriter, _ *request) bool {
	connection, _, err := w.(http.Hijacker).Hijack()
	if err == nil {
		_ = connection.Close() // that is the point
	}
	return true
}

func TestWhatAFailedWriteComesTo(t *testing.T) {
	update := func(b *bench) plan.Step { return b.mirrored(step(record.Update, configMap, "app")) }
	create := func(*bench) plan.Step { return step(record.Create, configMap, "app") }
	remove := func(b *bench) plan.Step { return b.mirrored(step(record.Delete, configMap, "app")) }
	for _, test := range []struct {
		name    string
		step    func(b *bench) plan.Step
		server  func(http.ResponseWriter, *request) bool
		want    record.Reason
		failed  bool // counted as an error, with the cause
		unknown bool
	}{
		{"somebody wrote in between", update, answer(status(409, metav1.StatusReasonConflict, "modified")), record.Raced, false, false},
		{"the mirror went in between", update, answer(status(404, metav1.StatusReasonNotFound, "not found")), record.Raced, false, false},
		{"an object of that name appeared", create, answer(status(409, metav1.StatusReasonAlreadyExists, "exists")), record.Raced, false, false},
		{"somebody wrote before the delete", remove, answer(status(409, metav1.StatusReasonConflict, "precondition")), record.Raced, false, false},
		{"the mirror went before the delete", remove, answer(status(404, metav1.StatusReasonNotFound, "not found")), record.Raced, false, false},
		{"the namespace is not there", create, answer(status(404, metav1.StatusReasonNotFound, `namespaces "team-dev" not found`)), record.Rejected, true, false},
		{"the namespace is terminating", create, answer(withCause(status(403, metav1.StatusReasonForbidden, "being terminated"), corev1.NamespaceTerminatingCause)), record.Terminating, false, false},
		{"the quota is used up", create, answer(status(403, metav1.StatusReasonForbidden, `configmaps "app" is forbidden: exceeded quota: q, used: 3, limited: 3`)), record.Rejected, true, false},
		{"RBAC does not allow it", update, answer(status(403, metav1.StatusReasonForbidden, "cannot update")), record.Rejected, true, false},
		{"the credentials have run out", update, answer(status(401, metav1.StatusReasonUnauthorized, "Unauthorized")), record.Rejected, true, false},
		{"a field cannot change", update, answer(status(422, metav1.StatusReasonInvalid, "data: Forbidden: field is immutable when `immutable` is set")), record.Immutable, true, false},
		{"the object is invalid", create, answer(status(422, metav1.StatusReasonInvalid, "spec.ports: Required value")), record.Rejected, true, false},
		{"a webhook denies it", create, answer(status(400, metav1.StatusReasonBadRequest, `admission webhook "w" denied the request`)), record.Rejected, true, false},
		{"the object is too large", create, answer(status(413, metav1.StatusReasonRequestEntityTooLarge, "too large")), record.Rejected, true, false},
		{"a webhook cannot be reached", update, answer(status(500, metav1.StatusReasonInternalError, "failed calling webhook")), record.Rejected, true, true},
		{"a proxy cannot reach the server", update, answer(status(502, "", "bad gateway")), record.Rejected, true, true},
		{"the server is going away", update, answer(status(503, metav1.StatusReasonServiceUnavailable, "shutting down")), record.Rejected, true, true},
		{"the server's own time ran out", update, answer(status(504, metav1.StatusReasonTimeout, "timeout")), record.Rejected, true, true},
		{"the server waited for its store", update, answer(status(500, metav1.StatusReasonServerTimeout, "try again")), record.Rejected, true, true},
		{"the connection breaks", update, hangUp, record.Rejected, true, true},
		{"a proxy answers with a page", update, func(w http.ResponseWriter, _ *request) bool {
			w.WriteHeader(http.StatusGatewayTimeout)
			_, _ = w.Write([]byte("<h1>504</h1>"))
			return true
		}, record.Rejected, true, true},
	} {
		t.Run(test.name, func(t *testing.T) {
			b := newBench(t)
			s := test.step(b)
			b.host.before = test.server
			result := b.run(t, s)[0]
			require.False(t, result.Applied)
			require.Empty(t, result.Written)
			require.Equal(t, record.Skip, result.Decision.Action)
			require.Equal(t, test.want, result.Decision.Reason, result.Decision.Error)
			require.Equal(t, test.failed, result.Decision.Error != "")
			require.Equal(t, test.unknown, result.Unknown)
			require.NotEmpty(t, result.Decision.Message)
			require.Equal(t, s.TenantName, result.Decision.TenantName)
		})
	}
}

// An answer that got lost is neither a success nor a failure, whatever became of the write.
func TestALostAnswerIsUnknown(t *testing.T) {
	b := newBench(t)
	s := b.mirrored(step(record.Update, configMap, "app"))
	s.Want.Object["data"] = map[string]any{"a": "2"}
	b.host.after = hangUp
	result := b.run(t, s)[0]
	require.True(t, result.Unknown)
	require.False(t, result.Applied)
	require.Equal(t, map[string]any{"a": "2"}, b.host.get("configmaps", "team-dev", s.HostName).Object["data"], "it did land")
}
