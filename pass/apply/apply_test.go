package apply_test

import (
	"fmt"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/syncpass/syncpass/pass/apply"
	"github.com/syncpass/syncpass/pass/plan"
	"github.com/syncpass/syncpass/record"
)

func TestWhatOthersReferToIsWrittenFirstAndDeletedLast(t *testing.T) {
	b := newBench(t)
	order := []schema.GroupVersionKind{
		{Group: "apps", Version: "v1", Kind: "Deployment"}, {Group: "example.com", Version: "v1", Kind: "Widget"},
		{Group: "batch", Version: "v1", Kind: "CronJob"}, {Version: "v1", Kind: "Service"}, {Version: "v1", Kind: "Secret"},
	}
	var steps []plan.Step
	for _, gvk := range order {
		steps = append(steps, step(record.Create, gvk, "new"), b.mirrored(step(record.Update, gvk, "old")), b.mirrored(step(record.Delete, gvk, "gone")))
	}
	results := b.run(t, steps...)
	for i := range results {
		require.Same(t, &steps[i], results[i].Step, "results come in the plan's order")
		require.True(t, results[i].Applied, results[i].Decision.Error)
		require.Equal(t, steps[i].Decision, results[i].Decision)
	}

	wave := map[string]int{"secrets": 0, "services": 1, "widgets": 2, "deployments": 3, "cronjobs": 3}
	last, deletes := 0, false
	for _, line := range b.host.requests() {
		method, what, _ := strings.Cut(line, " ")
		resource, _, _ := strings.Cut(what, "/")
		place := wave[resource]
		if method == http.MethodDelete {
			if !deletes {
				deletes, last = true, 3
			}
			require.LessOrEqual(t, place, last, "deletes go in reverse: %v", b.host.requests())
		} else {
			require.False(t, deletes, "deletes come last: %v", b.host.requests())
			require.GreaterOrEqual(t, place, last, "%v", b.host.requests())
		}
		last = place
	}
	require.True(t, deletes)
}

func TestEveryWriteIsConditionalOnWhatWasRead(t *testing.T) {
	b := newBench(t)
	update, gone := b.mirrored(step(record.Update, configMap, "old")), b.mirrored(step(record.Delete, configMap, "gone"))
	fromHost := step(record.Update, configMap, "pulled")
	fromHost.Side, fromHost.Reason = record.Tenant, record.HostChanged
	fromHost.Have = b.tenant.put("configmaps", tenantObject(configMap, "pulled"))
	fromHost.Want = fromHost.Have.DeepCopy()
	var seen []string
	note := func(_ http.ResponseWriter, r *request) bool {
		switch r.Method {
		case http.MethodPut:
			seen = append(seen, "PUT "+r.body.GetResourceVersion())
			require.Equal(t, "syncpass", r.URL.Query().Get("fieldManager"))
		case http.MethodPost:
			seen = append(seen, "POST"+r.body.GetResourceVersion())
			require.Equal(t, "syncpass", r.URL.Query().Get("fieldManager"))
		case http.MethodDelete:
			require.NotNil(t, r.options.Preconditions)
			require.Equal(t, gone.Have.GetUID(), *r.options.Preconditions.UID)
			require.Equal(t, metav1.DeletePropagationBackground, *r.options.PropagationPolicy)
			seen = append(seen, "DELETE "+*r.options.Preconditions.ResourceVersion)
		}
		require.Empty(t, r.URL.Query()["dryRun"], "a write is no dry run")
		return false
	}
	b.host.before, b.tenant.before = note, note
	results := b.run(t, step(record.Create, configMap, "new"), update, fromHost, gone)
	require.Equal(t, []string{
		"POST", "PUT " + update.Have.GetResourceVersion(), "PUT " + fromHost.Have.GetResourceVersion(), "DELETE " + gone.Have.GetResourceVersion(),
	}, seen)
	for i, result := range results[:3] {
		require.NotEmpty(t, result.Written[result.Step.Side].GetResourceVersion(), i)
	}
	require.Empty(t, results[3].Written)
	require.Equal(t, []string{"PUT configmaps/pulled", "GET configmaps/gone"}, b.tenant.requests())
}

// What is remembered of a write is asked for while its objects are there, and they are let go then.
func TestTheObjectsOfAStepAreLetGo(t *testing.T) {
	b := newBench(t)
	agreed := &record.Baseline{}
	b.writer.Agree = func(result *apply.Result) *record.Baseline {
		require.NotNil(t, result.Step.Want)
		require.NotNil(t, result.Written[record.Host])
		return agreed
	}
	refused := step(record.Create, configMap, "refused")
	b.host.before = func(w http.ResponseWriter, r *request) bool {
		if r.Method != http.MethodPost || r.body.GetName() != refused.HostName {
			return false
		}
		w.WriteHeader(http.StatusUnprocessableEntity)
		return true
	}
	results := b.run(t, step(record.Create, configMap, "new"), refused)
	require.Same(t, agreed, results[0].Agreed)
	require.Nil(t, results[1].Agreed, "it was not written")
	for _, result := range results {
		require.Empty(t, result.Written)
		require.Nil(t, result.Step.Want)
		require.Nil(t, result.Step.Source)
	}
}

func TestADeleteWaitsForTheTenantsWord(t *testing.T) {
	for _, test := range []struct {
		name string
		lay  func(b *bench)
		want record.Reason
		gone bool
		err  string
	}{
		{"the object is gone", func(*bench) {}, "", true, ""},
		{"the object is there after all", func(b *bench) { b.tenant.put("configmaps", tenantObject(configMap, "app")) }, record.Raced, false, ""},
		{"another object is there under its name", func(b *bench) {
			again := tenantObject(configMap, "app")
			again.SetUID("again")
			b.tenant.put("configmaps", again)
		}, record.Raced, false, ""},
		{"the object is terminating", func(b *bench) {
			going := tenantObject(configMap, "app")
			stamp := metav1.Now()
			going.SetDeletionTimestamp(&stamp)
			b.tenant.put("configmaps", going)
		}, "", true, ""},
		{"the tenant refuses to say", func(b *bench) {
			b.tenant.before = answer(status(http.StatusForbidden, metav1.StatusReasonForbidden, "no"))
		}, record.Rejected, false, "no"},
		{"the tenant has trouble", func(b *bench) {
			b.tenant.before = answer(status(http.StatusInternalServerError, metav1.StatusReasonInternalError, "etcd"))
		}, record.Rejected, false, "etcd"},
		{"something that serves no such kind answers", func(b *bench) {
			b.tenant.before = func(w http.ResponseWriter, r *request) bool { http.NotFound(w, r.Request); return true }
		}, record.Rejected, false, "could not find the requested resource"},
		{"a proxy answers", func(b *bench) {
			b.tenant.before = func(w http.ResponseWriter, _ *request) bool {
				w.Header().Set("Content-Type", "text/html")
				w.WriteHeader(http.StatusNotFound)
				_, _ = w.Write([]byte("<h1>404</h1>"))
				return true
			}
		}, record.Rejected, false, ""},
		{"nothing answers", func(b *bench) { b.tenant.server.Close() }, record.Rejected, false, "connection refused"},
	} {
		t.Run(test.name, func(t *testing.T) {
			b := newBench(t)
			gone := b.mirrored(step(record.Delete, configMap, "app"))
			test.lay(b)
			result := b.run(t, gone)[0]
			require.Equal(t, test.gone, b.host.get("configmaps", "team-dev", gone.HostName) == nil)
			require.Equal(t, test.gone, result.Applied)
			require.False(t, result.Unknown, "a delete that was not sent did not land")
			if test.gone {
				require.Equal(t, record.Delete, result.Decision.Action)
				return
			}
			require.Equal(t, record.Skip, result.Decision.Action)
			require.Equal(t, test.want, result.Decision.Reason)
			require.Contains(t, result.Decision.Error, test.err)
			require.Equal(t, test.want == record.Raced, result.Decision.Error == "")
			require.NotContains(t, b.host.requests(), "DELETE configmaps/"+gone.HostName)
		})
	}
}

// Whether a Secret crosses is asked again with the delete: one that became a token does not, and its mirror goes.
func TestAMirrorOfWhatNoLongerCrossesGoes(t *testing.T) {
	b := newBench(t)
	secret := schema.GroupVersionKind{Version: "v1", Kind: "Secret"}
	gone := b.mirrored(step(record.Delete, secret, "app"))
	token := tenantObject(secret, "app")
	token.Object["type"] = "kubernetes.io/service-account-token"
	b.tenant.put("secrets", token)
	require.True(t, b.run(t, gone)[0].Applied)
}

// The mirrors of a retired kind go whatever the tenant has.
func TestRetiringDoesNotAskTheTenant(t *testing.T) {
	b := newBench(t)
	gone := b.mirrored(step(record.Delete, configMap, "app"))
	gone.Reason = record.KindRetired
	b.tenant.put("configmaps", tenantObject(configMap, "app"))
	require.True(t, b.run(t, gone)[0].Applied)
	require.Empty(t, b.tenant.requests())
}

func TestAReplacementDeletesAndMakesAnew(t *testing.T) {
	b := newBench(t)
	s := step(record.Update, configMap, "app")
	s.Replace = true
	s = b.mirrored(s)
	result := b.run(t, s)[0]
	require.True(t, result.Applied)
	require.NotEqual(t, s.Have.GetUID(), result.Written[result.Step.Side].GetUID())
	require.Equal(t, []string{
		"POST configmaps/" + s.HostName + " dryRun", "DELETE configmaps/" + s.HostName, "POST configmaps/" + s.HostName,
	}, b.host.requests())
}

func TestARefusedReplacementDoesNotCostTheMirror(t *testing.T) {
	b := newBench(t)
	s := step(record.Update, configMap, "app")
	s.Replace = true
	s = b.mirrored(s)
	b.host.before = func(w http.ResponseWriter, r *request) bool {
		return r.Method == http.MethodPost && answer(status(http.StatusForbidden, metav1.StatusReasonForbidden, "a webhook says no"))(w, r)
	}
	result := b.run(t, s)[0]
	require.Equal(t, record.Rejected, result.Decision.Reason)
	require.Contains(t, result.Decision.Error, "a webhook says no")
	require.NotNil(t, b.host.get("configmaps", "team-dev", s.HostName))
}

func TestAReplacementMeetsItsPreconditions(t *testing.T) {
	b := newBench(t)
	s := step(record.Update, configMap, "app")
	s.Replace = true
	s = b.mirrored(s)
	b.host.put("configmaps", s.Have) // somebody touches it
	result := b.run(t, s)[0]
	require.Equal(t, record.Raced, result.Decision.Reason)
	require.NotNil(t, b.host.get("configmaps", "team-dev", s.HostName))
}

func TestAReplacementWaitsForTheOldMirrorToGo(t *testing.T) {
	b := newBench(t)
	s := step(record.Update, configMap, "app")
	s.Replace = true
	s = b.mirrored(s)
	s.Have.SetFinalizers([]string{"example.com/wait"})
	s.Have = b.host.put("configmaps", s.Have)
	result := b.run(t, s)[0]
	require.Equal(t, record.Terminating, result.Decision.Reason)
	require.Empty(t, result.Decision.Error)
	require.False(t, result.Unknown)
}

func TestAStepThatPanicsDoesNotStopTheOthers(t *testing.T) {
	b := newBench(t)
	bad := b.mirrored(step(record.Update, configMap, "bad"))
	bad.Want = nil
	results := b.run(t, step(record.Create, configMap, "one"), bad, step(record.Create, configMap, "two"))
	require.True(t, results[0].Applied)
	require.Equal(t, record.Rejected, results[1].Decision.Reason)
	require.Contains(t, results[1].Decision.Error, "panic")
	require.True(t, results[1].Unknown)
	require.True(t, results[2].Applied)
}

func TestSkipsAreHandedOnAndSendNothing(t *testing.T) {
	b := newBench(t)
	skip := step(record.Skip, configMap, "app")
	skip.Reason, skip.Want = record.Conflict, nil
	result := b.run(t, skip)[0]
	require.Equal(t, skip.Decision, result.Decision)
	require.False(t, result.Applied)
	require.Empty(t, b.host.requests())
}

func TestEveryResultIsToldOnce(t *testing.T) {
	b := newBench(t)
	b.writer.Concurrency = 8
	var told atomic.Int32
	b.writer.Done = func(apply.Result) { told.Add(1) }
	var steps []plan.Step
	for i := range 50 {
		steps = append(steps, step(record.Create, configMap, fmt.Sprint("app-", i)))
	}
	for _, result := range b.run(t, steps...) {
		require.True(t, result.Applied)
	}
	require.EqualValues(t, 50, told.Load())
}

func TestADryRunIsTheOnlyThingThatAProbeSends(t *testing.T) {
	b := newBench(t)
	fine, refused := b.mirrored(step(record.Update, configMap, "fine")), b.mirrored(step(record.Update, configMap, "refused"))
	b.host.before = func(w http.ResponseWriter, r *request) bool {
		return r.name == refused.HostName && answer(status(http.StatusForbidden, metav1.StatusReasonForbidden, "no"))(w, r)
	}
	before := b.host.get("configmaps", "team-dev", fine.HostName)
	probes := b.writer.Probe(t.Context(), []plan.Step{fine, refused})
	require.Equal(t, before, b.host.get("configmaps", "team-dev", fine.HostName))
	require.Len(t, probes, 2)
	require.Nil(t, probes[refused.Key])
	require.Equal(t, fine.HostName, probes[fine.Key].GetName())
	require.ElementsMatch(t, []string{"PUT configmaps/" + fine.HostName + " dryRun", "PUT configmaps/" + refused.HostName + " dryRun"}, b.host.requests())
	require.Empty(t, b.tenant.requests())
}
