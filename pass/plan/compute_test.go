package plan_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	"github.com/syncpass/syncpass/pass/kinds"
	"github.com/syncpass/syncpass/pass/plan"
	"github.com/syncpass/syncpass/policy"
	"github.com/syncpass/syncpass/record"
)

func TestAnUnavailableKindIsOneSkipAndKeepsItsHistory(t *testing.T) {
	w := manual()
	tenant := w.object("app")
	w.agreed(tenant, w.mirror(tenant))
	in := w.input()
	in.Snapshot.Kinds[0].Unavailable, in.Snapshot.Kinds[0].Error = "listing it on the tenant failed", "forbidden"
	result := plan.Compute(in)
	step := one(t, result)
	require.Equal(t, record.KindUnavailable, step.Reason)
	require.Equal(t, record.Key{Kind: "ConfigMap"}, step.Key)
	require.Contains(t, step.Message, "listing it on the tenant failed")
	require.Equal(t, "forbidden", step.Error)
	require.Empty(t, result.History)
	require.Zero(t, result.Unchanged)
}

func TestAKindThatCanBeReadAgainLosesItsStandingSkip(t *testing.T) {
	w := manual()
	key := record.Key{Kind: "ConfigMap"}
	w.history.Set(key, record.State{Standing: &record.Standing{Reason: record.KindUnavailable, Since: now, LastTime: now, Count: 1}})
	result := w.compute()
	require.Equal(t, []plan.Change{{Key: key}}, result.Kinds)
	require.Empty(t, result.Steps)
}

func TestAConflictThatIsOverLosesItsStandingSkip(t *testing.T) {
	w := manual()
	tenant := w.object("app")
	host := w.mirror(tenant)
	w.agreed(tenant, host)
	state := w.history.Get(w.key("app"))
	state.Standing = &record.Standing{Reason: record.Conflict, Since: now, LastTime: now, Count: 1}
	w.history.Set(w.key("app"), state)
	w.see(tenant, host)
	result := w.compute()
	require.Equal(t, "-, learn", outcome(result))
	require.Equal(t, record.State{Baseline: state.Baseline}, result.History[0].State)
}

func TestAMalformedObjectIsHeldAndKeepsItsMirror(t *testing.T) {
	w := manual()
	tenant := w.object("app")
	host := w.mirror(tenant)
	w.agreed(tenant, host)
	good := w.object("good")
	w.see(good, nil)
	w.see(nil, host)
	in := w.input()
	in.Snapshot.Kinds[0].Malformed = map[types.NamespacedName]string{
		{Namespace: "default", Name: "app"}:     "metadata.labels is no map of strings",
		{Namespace: "kube-system", Name: "own"}: "metadata.labels is no map of strings",
	}
	result := plan.Compute(in)
	require.Equal(t, "skip host Rejected, create host NoMirror", outcome(result), "a system object does not cross, malformed or not")
	require.Equal(t, "metadata.labels is no map of strings", result.Steps[0].Error)
}

// A Service whose ports are no list of maps with names breaks what a rule expects of it; the server of an honest tenant
// never sends one.
func TestAnObjectThatBreaksARuleDoesNotStopTheOthers(t *testing.T) {
	w := manual()
	w.group = configMaps
	w.group.Kind = "Service"
	bad := w.object("bad", func(o *unstructured.Unstructured) { o.Object["spec"] = map[string]any{"invalid": make(chan int)} })
	w.see(w.object("app"), nil)
	w.see(bad, nil)
	w.see(w.object("other"), nil)
	result := w.compute()
	require.Equal(t, "create host NoMirror, skip host Rejected, create host NoMirror", outcome(result))
	require.NotEmpty(t, result.Steps[1].Error)
}

func TestTheMirrorsOfARetiredKindGo(t *testing.T) {
	w := newWorld(policy.ToHost, policy.Manual)
	tenant := w.object("app")
	host := w.mirror(tenant)
	w.agreed(tenant, host)
	going := w.object("going")
	w.agreed(going, w.mirror(going))
	known := w.object("known")
	w.agreed(known, w.mirror(known))
	w.see(nil, host)
	w.see(nil, w.mirror(going, terminating))
	w.see(nil, w.mirror(w.object("other"), label(kinds.LabelTenant, "dev-2")))
	in := w.input()
	in.Snapshot.Kinds[0].Retired = true
	result := plan.Compute(in)
	require.Equal(t, "delete host KindRetired, forget, forget", outcome(result))
	require.Equal(t, w.key("app"), result.Steps[0].Key)
}

// Ten mirrors of a retired kind are no sign of an empty tenant, which is not even asked for the kind.
func TestRetiringIsNotTakenForAnEmptyTenant(t *testing.T) {
	w := orphans(12, 12)
	w.percent = 100
	in := w.input()
	in.Snapshot.Kinds[0].Retired = true
	require.Equal(t, 12, count(plan.Compute(in), record.Delete, record.KindRetired))
	in.MaxDeletePercent = 50
	require.Equal(t, 12, count(plan.Compute(in), record.Skip, record.GuardMaxDeletes))
}

func TestAfterARotationResourceVersionsTellWhatMoved(t *testing.T) {
	for _, test := range []struct {
		name string
		now  func(w *world, tenant, host *unstructured.Unstructured)
		want string
	}{
		{"nothing moved, and the baseline is made anew", func(w *world, tenant, host *unstructured.Unstructured) {
			w.see(tenant, host)
		}, "-, learn"},
		{"the tenant moved", func(w *world, tenant, host *unstructured.Unstructured) {
			w.see(w.edited(tenant, a2), host)
		}, "update host TenantChanged"},
		{"the host moved", func(w *world, tenant, host *unstructured.Unstructured) {
			w.see(tenant, w.edited(host, a2))
		}, "update tenant HostChanged"},
		{"both were touched and still agree", func(w *world, tenant, host *unstructured.Unstructured) {
			w.see(w.edited(tenant), w.edited(host))
		}, "-, learn"},
		{"both were touched and differ, which nobody can take apart", func(w *world, tenant, host *unstructured.Unstructured) {
			w.see(w.edited(tenant), w.edited(host, a2))
		}, "skip host Conflict"},
		{"the tenant object is gone and the mirror was touched", func(w *world, _, host *unstructured.Unstructured) {
			w.see(nil, w.edited(host))
		}, "skip host Conflict"},
	} {
		t.Run(test.name, func(t *testing.T) {
			w := manual()
			tenant := w.object("app")
			host := w.mirror(tenant)
			w.agreed(tenant, host)
			test.now(w, tenant, host)
			in := w.input()
			in.Hasher = newHasher
			in.History.Rekey(newHasher.KeyID())
			result := plan.Compute(in)
			require.Equal(t, test.want, outcome(result))
			for _, change := range result.History {
				require.Equal(t, plan.Version(newHasher, w.kind(), record.Tenant, w.tenants[0]), change.State.Baseline.Tenant)
				require.Equal(t, plan.Version(newHasher, w.kind(), record.Host, w.hosts[0]), change.State.Baseline.Host)
			}

			// The next pass knows the hashes again, and learns nothing more.
			if len(result.Steps) == 0 {
				remember(in.History, result.History)
				require.Equal(t, "-", outcome(plan.Compute(in)))
			}
		})
	}
}

func TestRefreshedResourceVersionsAreNoReasonToWrite(t *testing.T) {
	w := manual()
	tenant := w.object("app")
	host := w.mirror(tenant)
	w.agreed(tenant, host)
	touched := w.edited(host)
	w.see(tenant, touched)
	result := w.compute()
	require.Empty(t, result.History)
	require.Len(t, result.Refreshed, 1)
	require.Equal(t, touched.GetResourceVersion(), result.Refreshed[0].State.Baseline.Host.ResourceVersion)
	require.Equal(t, w.baseline(tenant, host).Host.Hash, result.Refreshed[0].State.Baseline.Host.Hash)

	remember(w.history, result.Refreshed)
	again := w.compute()
	require.Empty(t, again.Refreshed)
	require.Empty(t, again.History)
}

// A dry run tells whether the host's own defaults explain a difference, where a baseline does not.
func TestADryRunDecidesWhatABaselineCannot(t *testing.T) {
	for _, test := range []struct {
		name  string
		probe func(w *world, host *unstructured.Unstructured) *unstructured.Unstructured
		want  string
	}{
		{"a dry run that gives the mirror as it is explains the difference", func(_ *world, host *unstructured.Unstructured) *unstructured.Unstructured { return host }, "-, learn"},
		{"a dry run that gives something else does not", func(w *world, host *unstructured.Unstructured) *unstructured.Unstructured {
			return w.edited(host, a2)
		}, "skip host NoHistory"},
		{"a refused dry run does not", func(*world, *unstructured.Unstructured) *unstructured.Unstructured { return nil }, "skip host NoHistory"},
	} {
		t.Run(test.name, func(t *testing.T) {
			w := manual()
			w.group = widgets
			tenant := w.object("app")
			host := w.mirror(tenant, data("defaulted", "by the host"))
			w.see(tenant, host)
			first := w.compute()
			require.Len(t, first.Undecided, 1)
			require.Equal(t, record.Host, first.Undecided[0].Side)
			require.Equal(t, host.GetResourceVersion(), first.Undecided[0].Want.GetResourceVersion())
			require.Equal(t, "skip host NoHistory", outcome(first), "without a dry run nothing is assumed")
			w.probes = map[record.Key]*unstructured.Unstructured{w.key("app"): test.probe(w, host)}
			second := w.compute()
			require.Empty(t, second.Undecided)
			require.Equal(t, test.want, outcome(second))
		})
	}
}

func TestAVerbatimKindNeedsNoDryRun(t *testing.T) {
	w := manual()
	tenant := w.object("app")
	w.see(w.edited(tenant, a2), w.mirror(tenant))
	require.Empty(t, w.compute().Undecided)
}

// The order in which a server lists its objects is no input.
func TestTheOrderOfTheListsChangesNothing(t *testing.T) {
	w := orphans(90, 80)
	for i := range 10 {
		conflicting := w.object(fmt.Sprintf("changed-%d", i))
		mirror := w.mirror(conflicting)
		w.agreed(conflicting, mirror)
		w.see(w.edited(conflicting, a2), w.edited(mirror, a3))
		w.see(w.object(fmt.Sprintf("new-%d", i)), nil)
		w.see(nil, w.mirror(w.object(fmt.Sprintf("foreign-%d", i)), label(kinds.LabelTenant, "dev-2")))
	}
	in := w.input()
	want := plan.Compute(in)
	require.NotEmpty(t, want.GuardID)
	random := rand.New(rand.NewPCG(1, 2))
	for range 20 {
		for _, list := range [][]*unstructured.Unstructured{in.Snapshot.Kinds[0].Tenant, in.Snapshot.Kinds[0].Host} {
			random.Shuffle(len(list), func(i, j int) { list[i], list[j] = list[j], list[i] })
		}
		require.Equal(t, want, plan.Compute(in))
	}
	names := make([]string, 0, len(want.Steps))
	for _, step := range want.Steps {
		names = append(names, step.TenantName)
	}
	require.True(t, slices.IsSorted(names))
}

// Kinds that others refer to come first, whatever order the policy has.
func TestStepsComeInTheOrderOfKinds(t *testing.T) {
	in := plan.Input{Hasher: hasher, Mapping: mapping, Recording: true, MaxDeletePercent: 50, Now: now}
	for _, kind := range []string{"Pod", "Widget", "Service", "Secret", "ConfigMap"} {
		w := manual()
		w.group.Kind = kind
		if kind == "Widget" {
			w.group = widgets
		}
		w.see(w.object("b", without("a")), nil)
		w.see(w.object("a", without("a")), nil)
		in.Snapshot.Kinds = append(in.Snapshot.Kinds, w.input().Snapshot.Kinds...)
	}
	var order []string
	for _, step := range plan.Compute(in).Steps {
		order = append(order, step.Kind+"/"+step.TenantName)
	}
	require.Equal(t, []string{
		"ConfigMap/a", "ConfigMap/b", "Secret/a", "Secret/b", "Service/a", "Service/b", "Widget/a", "Widget/b", "Pod/a", "Pod/b",
	}, order)
}
