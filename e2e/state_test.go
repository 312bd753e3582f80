package e2e

import (
	"bytes"
	"encoding/base64"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	utiljson "k8s.io/apimachinery/pkg/util/json"

	"github.com/syncpass/syncpass/e2e/proxy"
	"github.com/syncpass/syncpass/policy"
	"github.com/syncpass/syncpass/record"
)

// everything is due with one decision for all of it.
func everything(decision string) map[string]string {
	all := map[string]string{}
	for name := range due {
		all[name] = decision
	}
	return all
}

// noBaseline is what a pass decides that knows of no agreement: what is on one side alone tells for itself, what differs
// waits for a person.
var noBaseline = map[string]string{"pushed": "Skip NoHistory", "pulled": "Skip NoHistory"}

// lost is a fault that loses the baselines.
func lost(f fault) fault {
	f.decisions, f.then = noBaseline, noBaseline
	f.says = append(f.says, "no agreement is recorded that tells which one changed; make them equal, and it clears itself")
	f.check = func(t *testing.T, p *duePlace, _ spoiltPass) {
		p.requireBoth(t, "pushed", "2", "1")
		p.requireBoth(t, "pulled", "1", "3")
		p.requireBoth(t, "kept", "1", "1")
	}
	return f
}

// damaged is lost by a change to the SyncDecision's status.
func damaged(name string, change func(status object), says ...string) fault {
	return lost(fault{
		name: name, says: append(says, "Part of the record cannot be used", "SyncDecision ", "have no baseline"),
		spoil: func(t *testing.T, p *duePlace) { p.editStatus(t, change) },
	})
}

// editStatus changes the SyncDecision as somebody with an editor does.
func (p *duePlace) editStatus(t *testing.T, change func(status object)) {
	t.Helper()
	decision := p.decision(t)
	require.NotNil(t, decision)
	change(decision.Object["status"].(object))
	_, err := p.objects(record.Host, syncDecisions).UpdateStatus(p.s.context(t), decision, metav1.UpdateOptions{FieldManager: "person"})
	require.NoError(t, err)
}

// storing matches the writes of the SyncDecision's status: the first of a pass reserves, the second records.
func storing(p *duePlace, r proxy.Request) bool {
	return r.Method == http.MethodPatch && strings.HasSuffix(r.Path, "/syncdecisions/"+p.name+"/status")
}

// nothingWritten fails on any write of an object.
func nothingWritten(t *testing.T, _ *duePlace, spoilt spoiltPass) {
	t.Helper()
	assert.Zero(t, proxy.Writes(spoilt.requests), "it wrote, and must not")
}

// faultsOfState are a SyncDecision that is not what the last pass left.
func faultsOfState() []fault {
	tooLarge := proxy.Status(http.StatusRequestEntityTooLarge, metav1.StatusReasonRequestEntityTooLarge, "Request entity too large: limit is 3145728")
	etcdTooLarge := proxy.Status(http.StatusInternalServerError, metav1.StatusReasonInternalError, "etcdserver: request is too large")
	raised := func(nth int64) func(*testing.T, *duePlace) {
		return func(t *testing.T, p *duePlace) {
			var seen atomic.Int64
			p.hostProxy.SetHook(func(m proxy.Moment, r proxy.Request) http.Handler {
				if m == proxy.Before && storing(p, r) && seen.Add(1) == nth {
					p.editStatus(t, func(status object) {
						epoch, _, err := unstructured.NestedInt64(status, "epoch")
						assert.NoError(t, err)
						status["epoch"], status["reservedBy"] = epoch+1, "another"
					})
				}
				return nil
			})
		}
	}
	deleteRecord := func(t *testing.T, p *duePlace) {
		require.NoError(t, p.objects(record.Host, syncDecisions).Delete(p.s.context(t), p.name, metav1.DeleteOptions{}))
	}
	history := func(status object) object { return status["history"].(object) }
	return []fault{
		lost(fault{name: "F24 the SyncDecision is deleted", spoil: deleteRecord}),
		{name: "F24 the SyncDecision is deleted in the middle of a pass", exit: 6, env: oneByOne, says: []string{"superseded by another pass", "it was deleted meanwhile"},
			spoil: func(t *testing.T, p *duePlace) {
				var once sync.Once
				p.hostProxy.SetHook(func(m proxy.Moment, r proxy.Request) http.Handler {
					if m == proxy.Before && createMade(p, r) {
						once.Do(func() { deleteRecord(t, p) })
					}
					return nil
				})
			}},
		damaged("F25 the history is cut off", func(status object) {
			data, err := base64.StdEncoding.DecodeString(history(status)["data"].(string))
			if err != nil {
				panic(err)
			}
			history(status)["data"] = base64.StdEncoding.EncodeToString(data[:len(data)/2])
		}, "the checksum is wrong; the data was changed by something else than syncpass, or cut off"),
		damaged("F25 the history is garbage", func(status object) {
			history(status)["data"] = base64.StdEncoding.EncodeToString(bytes.Repeat([]byte("garbage"), 99))
		}, "the checksum is wrong"),
		damaged("F25 the history is removed by hand", func(status object) { delete(status, "history") }, "its history of 6 pairs is gone"),
		damaged("F25 the history says that it has a page more", func(status object) { history(status)["of"] = int64(2) }, "the page is missing"),
		damaged("F25 the history is of a page count that cannot be", func(status object) { history(status)["of"] = int64(3) }, "must be a power of two"),
		{name: "F25 the history is of a newer version", exit: 5, nothing: true, says: []string{"SyncDecision ", "the history was written by a newer version of syncpass; upgrade this one"},
			spoil: func(t *testing.T, p *duePlace) {
				p.editStatus(t, func(status object) { history(status)["format"] = int64(record.Format + 1) })
			},
			check: func(t *testing.T, p *duePlace, spoilt spoiltPass) {
				nothingWritten(t, p, spoilt)
				format, _, err := unstructured.NestedInt64(p.decision(t).Object, "status", "history", "format")
				require.NoError(t, err)
				require.EqualValues(t, record.Format+1, format, "what the newer version recorded is kept")
			},
			mend: func(t *testing.T, p *duePlace) {
				p.editStatus(t, func(status object) { history(status)["format"] = int64(1) })
			}},
		{name: "F25 the epoch is set back by hand", spoil: func(t *testing.T, p *duePlace) {
			p.editStatus(t, func(status object) { status["epoch"] = int64(0) })
		}},
		{name: "F25 the trail and the summary are removed by hand", spoil: func(t *testing.T, p *duePlace) {
			p.editStatus(t, func(status object) { delete(status, "entries"); delete(status, "lastPass") })
		}},
		{name: "F25 the tenant's identity is edited by hand", exit: 4, decisions: everything("Skip GuardTenantIdentity"), check: nothingWritten,
			says: []string{`another tenant answers behind the kubeconfig: kube-system has UID`, `recorded is "edited"`, "if it is right, let exactly this plan through: kubectl annotate"},
			spoil: func(t *testing.T, p *duePlace) {
				p.editStatus(t, func(status object) { status["tenant"] = object{"uid": "edited"} })
			},
			mend: func(t *testing.T, p *duePlace) { p.confirm(t) }},
		{name: "F25 the SyncDecision is put back to an older state", landed: slices.Sorted(maps.Keys(due)),
			// All was carried over since. Both sides changed since the agreement on record, and they agree.
			decisions: everything(""),
			spoil: func(t *testing.T, p *duePlace) {
				older := p.decision(t).Object["status"].(object)
				p.pass(t, 0, nil)
				p.editStatus(t, func(status object) {
					clear(status)
					maps.Copy(status, older)
				})
			}},
		{name: "F26 the SyncDecision is refused for its size with 413", exit: 5, nothing: true, check: nothingWritten,
			says:  []string{"the API server refuses an object of this size; lower spec.explain.retain or let the policy name fewer kinds"},
			spoil: answer(record.Host, proxy.Before, storing, tooLarge)},
		{name: "F26 the SyncDecision is refused for its size by etcd", exit: 5, nothing: true, check: nothingWritten,
			says:  []string{"the API server refuses an object of this size; lower spec.explain.retain or let the policy name fewer kinds"},
			spoil: answer(record.Host, proxy.Before, storing, etcdTooLarge)},
		{name: "F26 what the pass did is refused for its size", exit: 5,
			says:  []string{"the pass did its work but could not record it", "lower spec.explain.retain"},
			spoil: answer(record.Host, proxy.Before, storing, nil, tooLarge)},
		{name: "F27 another pass has reserved meanwhile", exit: 6, nothing: true, check: nothingWritten, spoil: raised(1), says: []string{`raised by pass "another"`}},
		{name: "F27 another pass has reserved before this one records", exit: 6, spoil: raised(2), says: []string{`raised by pass "another"`}},
	}
}

// confirm lets through what a guard withheld.
func (p *duePlace) confirm(t *testing.T) {
	t.Helper()
	held, _ := p.pass(t, 4, nil)
	require.NotEmpty(t, held.PlanID)
	require.Contains(t, held.Message, "kubectl annotate -n "+p.name+" tenantcluster "+p.name+" --overwrite tenantplane.io/confirm-deletes="+held.PlanID)
	patch := fmt.Appendf(nil, `{"metadata":{"annotations":{"tenantplane.io/confirm-deletes":%q}}}`, held.PlanID)
	_, err := p.objects(record.Host, policy.TenantClusterResource).Patch(p.s.context(t), p.name, types.MergePatchType, patch, metav1.PatchOptions{})
	require.NoError(t, err)
}

// backup is what a tenant said at a moment, and says again when it is restored.
type backup struct {
	lists map[string][]byte
}

// takeBackup keeps the tenant's lists as they are now.
func (p *duePlace) takeBackup(t *testing.T) *backup {
	t.Helper()
	b := &backup{lists: map[string][]byte{}}
	for _, resource := range []string{"configmaps", "secrets", "services"} {
		list, err := p.tenantObjects.Resource(configMaps.GroupVersion().WithResource(resource)).List(p.s.context(t), metav1.ListOptions{})
		require.NoError(t, err)
		b.lists["/api/v1/"+resource], err = list.MarshalJSON()
		require.NoError(t, err)
	}
	return b
}

// restore makes the tenant answer reads out of a backup: resourceVersions go back, and what came later is not there.
func (p *duePlace) restore(t *testing.T, b *backup) {
	t.Helper()
	p.tenantProxy.SetFilter(func(r proxy.Request, _ proxy.Answer) http.Handler {
		if r.Method != http.MethodGet {
			return nil
		}
		if list := b.lists[r.Path]; list != nil {
			return proxy.Body(http.StatusOK, "application/json", list)
		}
		for path, data := range b.lists {
			name, found := strings.CutPrefix(r.Path, "/api/v1/namespaces/"+p.name+strings.TrimPrefix(path, "/api/v1")+"/")
			if !found {
				continue
			}
			list := object{}
			assert.NoError(t, utiljson.Unmarshal(data, &list))
			item, _ := p.itemOf(list, record.Tenant, name)
			if item == nil {
				return proxy.Status(http.StatusNotFound, metav1.StatusReasonNotFound, name+" not found")
			}
			item["apiVersion"], item["kind"] = "v1", strings.TrimSuffix(list["kind"].(string), "List")
			answer, err := utiljson.Marshal(item)
			assert.NoError(t, err)
			return proxy.Body(http.StatusOK, "application/json", answer)
		}
		return nil
	})
}

// goOn carries what is due over, and then lets the tenant make `late`, delete `kept` and change `pushed`, which is carried
// over, too.
func (p *duePlace) goOn(t *testing.T) {
	t.Helper()
	p.pass(t, 0, nil)
	p.set(t, record.Tenant, "late", "1")
	p.set(t, record.Tenant, "pushed", "4")
	p.remove(t, record.Tenant, "kept")
	after, _ := p.pass(t, 0, nil)
	require.Len(t, after.Decisions, 3, "%+v", after.Decisions)
}

// otherCluster makes the tenant's kube-system namespace another one.
func otherCluster(r proxy.Request) http.Handler {
	if r.Path != "/api/v1/namespaces/kube-system" {
		return nil
	}
	return proxy.Body(http.StatusOK, "application/json",
		[]byte(`{"apiVersion":"v1","kind":"Namespace","metadata":{"name":"kube-system","uid":"of-another-cluster","resourceVersion":"1"}}`))
}

// TestState: whatever happens to what a pass remembers, and to the tenant that it remembers, nothing is deleted or
// overwritten that a guard should have held, and one line tells the operator what to do.
func TestState(t *testing.T) {
	s := usePlaces(t)
	rows := slices.Concat(faultsOfState(), faultsOfTenants(), faultsOfPolicies())
	runRows(t, s, "state", rows, map[string]func(*testing.T, *surroundings, string){
		"F25 a page of the history is missing": pageLost,
	}, "state: %d kinds of damage in %d rows of the catalogue, %d failed")
}
