package apply_test

import (
	"errors"
	"net/http"
	"testing"

	"github.com/stretchr/testify/require"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/syncpass/syncpass/pass/kinds"
	"github.com/syncpass/syncpass/pass/plan"
	"github.com/syncpass/syncpass/record"
)

// resizeAndReport is a step that changes a mirror, resizes it and reports its status to the tenant, as a Pod's does.
func (b *bench) resizeAndReport() plan.Step {
	s := b.mirrored(step(record.Update, podKind, "web"))
	source := tenantObject(podKind, "web")
	source.Object["status"] = map[string]any{"phase": "Running"}
	reported := b.tenant.put("pods", source)
	s.Then = []plan.Write{
		{Side: record.Host, Subresource: "resize", Object: s.Want},
		{Side: record.Tenant, Subresource: "status", Object: reported},
	}
	return s
}

// B18: a role without a right that one Pod of many needs must not leave all of them Pending in their tenant.
func TestARefusedWriteOnOneSideDoesNotKeepTheOtherWaiting(t *testing.T) {
	refused := func(subresource string, err *apierrors.StatusError) func(w http.ResponseWriter, r *request) bool {
		return func(w http.ResponseWriter, r *request) bool {
			if r.Method != http.MethodPut || r.subresource != subresource {
				return false
			}
			code, body := refusal(err)
			reply(w, code, body)
			return true
		}
	}
	forbidden := apierrors.NewForbidden(schema.GroupResource{Resource: "pods"}, "web", errors.New("no such right"))
	for name, test := range map[string]struct {
		onHost, onTenant func(w http.ResponseWriter, r *request) bool
		host, tenant     []string
		says             string
	}{
		"nothing is refused": {nil, nil, []string{"PUT pods/web-x-default-x-dev", "PUT pods/web-x-default-x-dev/resize"}, []string{"PUT pods/web/status"}, ""},
		"the resize is": {refused("resize", forbidden), nil,
			[]string{"PUT pods/web-x-default-x-dev", "PUT pods/web-x-default-x-dev/resize"}, []string{"PUT pods/web/status"}, "no such right"},
		"the update is, and what follows it on the host is not tried": {refused("", forbidden), nil,
			[]string{"PUT pods/web-x-default-x-dev"}, []string{"PUT pods/web/status"}, "no such right"},
		"the status is": {nil, refused("status", forbidden),
			[]string{"PUT pods/web-x-default-x-dev", "PUT pods/web-x-default-x-dev/resize"}, []string{"PUT pods/web/status"}, "no such right"},
	} {
		t.Run(name, func(t *testing.T) {
			b := newBench(t)
			s := b.resizeAndReport()
			b.host.before, b.tenant.before = test.onHost, test.onTenant
			result := b.run(t, s)[0]
			require.Equal(t, test.host, b.host.requests())
			require.Equal(t, test.tenant, b.tenant.requests())
			require.Equal(t, test.says == "", result.Applied)
			require.Contains(t, result.Decision.Error, test.says)
			require.False(t, result.Unknown)
			if test.says != "" {
				require.Equal(t, record.Rejected, result.Decision.Reason)
				require.Empty(t, result.Written, "the record keeps to what was agreed before")
			}
		})
	}
}

func TestALostAnswerAmongSeveralWritesIsUnknown(t *testing.T) {
	b := newBench(t)
	s := b.resizeAndReport()
	forbidden := apierrors.NewForbidden(schema.GroupResource{Resource: "pods"}, "web", errors.New("no such right"))
	b.host.before = func(w http.ResponseWriter, r *request) bool {
		code, body := refusal(forbidden)
		reply(w, code, body)
		return true
	}
	b.tenant.before = func(w http.ResponseWriter, _ *request) bool {
		reply(w, http.StatusGatewayTimeout, map[string]any{"kind": "Status", "apiVersion": "v1", "status": "Failure", "code": int64(504)})
		return true
	}
	result := b.run(t, s)[0]
	require.True(t, result.Unknown, "one of them may have landed")
	require.Contains(t, result.Decision.Error, "no such right", "the first error is the one that is told")
	require.Equal(t, kinds.Workload, s.Weight)
}
