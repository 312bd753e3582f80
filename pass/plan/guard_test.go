package plan_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/syncpass/syncpass/pass/plan"
	"github.com/syncpass/syncpass/policy"
	"github.com/syncpass/syncpass/record"
)

// orphans is a world of agreed pairs app-00, app-01 and so on, of which the tenant has lost the first few.
func orphans(pairs, lost int) *world {
	w := newWorld(policy.ToHost, policy.Manual)
	for i := range pairs {
		tenant := w.object(fmt.Sprintf("app-%02d", i))
		host := w.mirror(tenant)
		w.agreed(tenant, host)
		if i < lost {
			tenant = nil
		}
		w.see(tenant, host)
	}
	return w
}

// count counts a plan's steps of an action and reason.
func count(p *plan.Plan, action record.Action, reason record.Reason) int {
	n := 0
	for _, step := range p.Steps {
		if step.Action == action && step.Reason == reason {
			n++
		}
	}
	return n
}

func TestTheGuardOverDeletes(t *testing.T) {
	for _, test := range []struct {
		name                 string
		pairs, lost, percent int
		withheld             bool
	}{
		{"nine deletes are never too many", 17, 9, 0, false},
		{"ten deletes of nineteen mirrors are more than half", 19, 10, 50, true},
		{"ten deletes of twenty mirrors are half, and half is let through", 20, 10, 50, false},
		{"eleven deletes of twenty mirrors are more than half", 20, 11, 50, true},
		{"at zero percent every ten deletes are too many", 100, 10, 0, true},
		{"at a hundred percent the guard is off", 30, 29, 100, false},
		{"at ten percent eleven of a hundred are too many", 100, 11, 10, true},
		{"at ten percent ten of a hundred are not", 100, 10, 10, false},
	} {
		t.Run(test.name, func(t *testing.T) {
			w := orphans(test.pairs, test.lost)
			w.percent = test.percent
			result := w.compute()
			require.Len(t, result.Steps, test.lost)
			require.Equal(t, test.pairs-test.lost, result.Unchanged)
			if !test.withheld {
				require.Equal(t, test.lost, count(result, record.Delete, record.TenantDeleted))
				require.Empty(t, result.GuardID)
				require.Empty(t, result.GuardMessage)
				return
			}
			require.Equal(t, test.lost, count(result, record.Skip, record.GuardMaxDeletes))
			require.Zero(t, result.Writes())
			require.NotEmpty(t, result.GuardID)
			require.Contains(t, result.GuardMessage, "tenantplane.io/confirm-deletes="+result.GuardID)
			for _, step := range result.Steps {
				require.Contains(t, step.Message, result.GuardID)
			}
		})
	}
}

func TestTheGuardOverDeletesLetsEverythingElseThrough(t *testing.T) {
	w := orphans(19, 10)
	w.see(w.object("new"), nil)
	result := w.compute()
	require.Equal(t, 10, count(result, record.Skip, record.GuardMaxDeletes))
	require.Equal(t, 1, count(result, record.Create, record.NoMirror))
}

func TestTheGuardOverAnEmptyTenant(t *testing.T) {
	for _, test := range []struct {
		name        string
		pairs, lost int
		more        func(*world)
		want        record.Reason
	}{
		{"nine mirrors and nothing in the tenant may be right", 9, 9, nil, record.TenantDeleted},
		{"ten mirrors and nothing in the tenant is suspicious", 10, 10, nil, record.GuardEmptyTenant},
		{"one object left is not empty", 11, 10, nil, record.TenantDeleted},
		{"one terminating object left is not empty", 10, 10, func(w *world) {
			w.see(w.object("going", terminating), nil)
		}, record.TenantDeleted},
		{"a system object left is not one that crosses", 10, 10, func(w *world) {
			w.see(w.object("kube-root-ca.crt"), nil)
		}, record.GuardEmptyTenant},
	} {
		t.Run(test.name, func(t *testing.T) {
			w := orphans(test.pairs, test.lost)
			w.percent = 100 // the other guard is off
			if test.more != nil {
				test.more(w)
			}
			result := w.compute()
			action := record.Delete
			if test.want != record.TenantDeleted {
				action = record.Skip
			}
			require.Equal(t, test.lost, count(result, action, test.want), outcome(result))
		})
	}
}

func TestAnotherTenantBehindTheKubeconfigStopsEveryWrite(t *testing.T) {
	for _, answered := range []string{"another", ""} {
		t.Run(fmt.Sprintf("kube-system has UID %q", answered), func(t *testing.T) {
			w := manual()
			w.see(w.object("new"), nil)
			changed := w.object("changed")
			mirror := w.mirror(changed)
			w.agreed(changed, mirror)
			w.see(w.edited(changed, a2), mirror)
			w.see(nil, w.mirror(w.object("gone")))
			in := w.input()
			in.Snapshot.TenantUID = answered
			result := plan.Compute(in)
			require.Equal(t, 3, count(result, record.Skip, record.GuardTenantIdentity), outcome(result))
			require.Zero(t, result.Writes())
			for _, step := range result.Steps {
				require.Nil(t, step.Want)
				require.Nil(t, step.Intent)
			}
			in.Confirmed = result.GuardID
			require.Equal(t, 3, plan.Compute(in).Writes())
		})
	}
}

// What another tenant looks like says nothing about the one that the history belongs to.
func TestNothingIsLearnedFromAnotherTenant(t *testing.T) {
	w := manual()
	agreeing := w.object("agreeing")
	w.see(agreeing, w.mirror(agreeing))
	forgotten := w.object("forgotten")
	w.agreed(forgotten, w.mirror(forgotten))
	touched := w.object("touched")
	mirror := w.mirror(touched)
	w.agreed(touched, mirror)
	w.see(w.edited(touched), mirror)
	// Something to withhold, and something to withhold with an intent behind it.
	w.see(w.object("new"), nil)
	in := w.input()
	in.Snapshot.TenantUID = "another"
	result := plan.Compute(in)
	require.NotEmpty(t, result.GuardID)
	require.Empty(t, result.History)
	require.Empty(t, result.Refreshed)
}

func TestTheFirstPassKnowsNoTenantYet(t *testing.T) {
	w := manual()
	w.see(w.object("new"), nil)
	in := w.input()
	in.RecordedTenantUID = ""
	require.Equal(t, "create host NoMirror", outcome(plan.Compute(in)))
}

func TestAPlanIsConfirmedByItsExactIDOnly(t *testing.T) {
	withheld := func(change func(w *world)) *plan.Plan {
		w := orphans(18, 11)
		if change != nil {
			change(w)
		}
		return w.compute()
	}
	id := withheld(nil).GuardID
	require.Regexp(t, "^[0-9a-f]{16}$", id)
	require.Equal(t, id, withheld(nil).GuardID, "the same plan has the same ID in every pass")
	require.Equal(t, id, withheld(func(w *world) {
		for i, mirror := range w.hosts {
			w.hosts[i] = w.edited(mirror)
		}
	}).GuardID, "a touch on a mirror does not make it another plan")

	for name, change := range map[string]func(w *world){
		"one more object gone":   func(w *world) { w.tenants = w.tenants[1:] },
		"one object less gone":   func(w *world) { w.see(w.object("app-00"), nil) },
		"a mirror made again":    func(w *world) { w.hosts[0] = w.edited(w.hosts[0], uid("h-again")) },
		"another object instead": func(w *world) { w.hosts[0] = w.mirror(w.object("other")) },
	} {
		t.Run(name, func(t *testing.T) {
			other := withheld(change)
			require.NotEmpty(t, other.GuardID)
			require.NotEqual(t, id, other.GuardID)
		})
	}

	for _, test := range []struct {
		name, confirmed string
		deletes         int
	}{
		{"its ID", id, 11},
		{"nothing", "", 0},
		{"its ID in upper case", strings.ToUpper(id), 0},
		{"a part of its ID", id[:15], 0},
		{"its ID and more", id + "0", 0},
		{"yes", "true", 0},
	} {
		t.Run("confirmed by "+test.name, func(t *testing.T) {
			in := orphans(18, 11).input()
			in.Confirmed = test.confirmed
			require.Equal(t, test.deletes, count(plan.Compute(in), record.Delete, record.TenantDeleted))
		})
	}
}

// Deletes of every kind count together, and a kind that cannot be read counts for nothing.
func TestTheGuardLooksAtTheWholePlan(t *testing.T) {
	w := orphans(10, 5)
	in := w.input()
	second := newWorld(policy.ToHost, policy.Manual)
	second.group = widgets
	for i := range 9 {
		tenant := second.object(fmt.Sprintf("w-%d", i))
		mirror := second.mirror(tenant)
		if i < 5 {
			second.see(nil, mirror)
		} else {
			second.see(tenant, mirror)
		}
	}
	in.Snapshot.Kinds = append(in.Snapshot.Kinds, second.input().Snapshot.Kinds...)
	require.Equal(t, 10, count(plan.Compute(in), record.Skip, record.GuardMaxDeletes))

	in.Snapshot.Kinds[1].Unavailable = "listing it on the tenant failed"
	result := plan.Compute(in)
	require.Equal(t, 5, count(result, record.Delete, record.TenantDeleted))
	require.Equal(t, 1, count(result, record.Skip, record.KindUnavailable))
}

// A mirror that must be replaced is no delete to the guard: it comes back at once.
func TestReplacementsDoNotCountAsDeletes(t *testing.T) {
	w := newWorld(policy.ToHost, policy.Manual)
	for i := range 20 {
		tenant := w.object(fmt.Sprintf("app-%02d", i), immutable)
		mirror := w.mirror(tenant)
		w.agreed(tenant, mirror)
		w.see(w.edited(tenant, uid(fmt.Sprint("again-", i)), a2), mirror)
	}
	result := w.compute()
	require.Equal(t, 20, count(result, record.Update, record.TenantChanged))
	for _, step := range result.Steps {
		require.True(t, step.Replace)
		require.Empty(t, step.Want.GetResourceVersion(), "what is made anew has no version yet")
		require.Equal(t, []any{"owner"}, owners(step.Want))
	}
}

func owners(object *unstructured.Unstructured) []any {
	var uids []any
	for _, owner := range object.GetOwnerReferences() {
		uids = append(uids, string(owner.UID))
	}
	return uids
}
