package plan_test

import (
	"fmt"
	"maps"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"pgregory.net/rapid"

	"github.com/syncpass/syncpass/pass/kinds"
	"github.com/syncpass/syncpass/pass/plan"
	"github.com/syncpass/syncpass/policy"
	"github.com/syncpass/syncpass/record"
)

// TestWhatIsMadeLaterIsTheSame: a plan that leaves the making of objects to their turn comes to the same objects.
func TestWhatIsMadeLaterIsTheSame(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		_, in := drawWorld(t)
		now := plan.Compute(in)
		in.Later = true
		later := plan.Compute(in)
		for i := range later.Steps {
			step := &later.Steps[i]
			if step.Action == record.Create && step.Side == record.Host {
				require.Nil(t, step.Want)
				step.Want, step.Complete = step.Complete(nil), nil
			}
		}
		require.Equal(t, now, later)
	})
}

// drawWorld lays out a few objects in every state that the planner tells apart.
func drawWorld(t *rapid.T) (*world, plan.Input) {
	w := newWorld(
		rapid.SampledFrom([]policy.Direction{policy.ToHost, policy.FromHost, policy.Bidirectional}).Draw(t, "direction"),
		rapid.SampledFrom(anyConflict).Draw(t, "conflict"),
	)
	w.off = rapid.Bool().Draw(t, "off")
	w.group = rapid.SampledFrom([]schema.GroupVersionKind{configMaps, widgets}).Draw(t, "kind")
	w.percent = rapid.IntRange(0, 100).Draw(t, "percent")
	w.says = rapid.SampledFrom([]func(*policy.Resource){nil, nil, nil, selecting, from("default", "team-a"), from("team-a")}).Draw(t, "narrowed")
	w.probes = map[record.Key]*unstructured.Unstructured{}
	malformed := map[types.NamespacedName]string{}
	calm := rapid.Bool().Draw(t, "calm") // most pairs are as they were
	for i := range rapid.IntRange(0, 25).Draw(t, "objects") {
		name := fmt.Sprintf("app-%02d", i)
		calm := calm && rapid.IntRange(0, 9).Draw(t, "stirs") > 0
		side := func(of string) []edit {
			if calm {
				return nil
			}
			touched := func(o *unstructured.Unstructured) { w.version(o) }
			return map[string][]edit{
				"same": nil, "touched": {touched}, "two": {touched, a2}, "three": {touched, a3},
				"terminating": {touched, terminating}, "again": {touched, uid("again-" + name)},
				"selected": {touched, label("sync", "yes")}, "left out": {touched, label("sync", "no")},
				"told": {touched, says("host")}, "told tenant": {touched, a2, says("tenant")}, "told host": {touched, a3, says("host")}, "told both": {touched, a3, says("both")},
				"foreign": {touched, func(o *unstructured.Unstructured) { o.SetLabels(nil) }}, "copied": {touched, label(kinds.LabelKind, "other")},
			}[rapid.SampledFrom([]string{"same", "same", "same", "same", "same", "touched", "two", "three", "terminating", "again", "selected", "left out", "foreign", "copied", "told", "told tenant", "told host", "told both"}).Draw(t, of)]
		}
		tenant := w.object(name)
		host := w.mirror(tenant)
		state := record.State{}
		if calm || rapid.Bool().Draw(t, "baseline") {
			state.Baseline = w.baseline(tenant, host)
		}
		if !calm && rapid.IntRange(0, 2).Draw(t, "intent") == 0 {
			state.Intent = &record.Intent{
				Side:   rapid.SampledFrom([]record.Side{record.Host, record.Tenant}).Draw(t, "side"),
				Source: w.baseline(tenant, host).Tenant, Want: w.baseline(tenant, host).Host.Hash,
				Path: rapid.SampledFrom([]string{"", "data\na", "data\nb"}).Draw(t, "path"),
			}
		}
		if !calm && rapid.IntRange(0, 2).Draw(t, "standing") == 0 {
			state.Standing = &record.Standing{Reason: record.Conflict, Since: now, LastTime: now, Count: 1}
		}
		w.history.Set(w.key(name), state)
		switch rapid.IntRange(0, 5).Draw(t, "tenant") {
		case 0: // absent
		case 1:
			malformed[types.NamespacedName{Namespace: "default", Name: name}] = "it has no uid"
		default:
			w.see(apply(tenant.DeepCopy(), side("tenant is")), nil)
		}
		if rapid.IntRange(0, 3).Draw(t, "host") > 0 {
			w.see(nil, apply(host.DeepCopy(), side("host is")))
		}
		if rapid.Bool().Draw(t, "probed") {
			w.probes[w.key(name)] = rapid.SampledFrom([]*unstructured.Unstructured{nil, host}).Draw(t, "probe")
		}
	}
	in := w.input()
	in.Snapshot.Kinds[0].Malformed = malformed
	in.Snapshot.Kinds[0].Retired = rapid.IntRange(0, 9).Draw(t, "retired") == 0
	if in.Snapshot.Kinds[0].Retired {
		in.Snapshot.Kinds[0].Tenant, in.Snapshot.Kinds[0].Malformed = nil, nil
	}
	in.Snapshot.TenantUID = rapid.SampledFrom([]string{"tenant", "tenant", "tenant", "another"}).Draw(t, "answers")
	if rapid.Bool().Draw(t, "confirmed") {
		in.Confirmed = plan.Compute(in).GuardID
	}
	return w, in
}

// Every tenant object and every mirror of ours ends in exactly one decision or is counted as unchanged; nothing else is.
func TestEveryObjectEndsInExactlyOnePlace(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		w, in := drawWorld(t)
		snapshot := in.Snapshot.Kinds[0]
		there := map[types.NamespacedName]bool{}
		for _, tenant := range snapshot.Tenant {
			if !carries(snapshot.Resource, tenant.GetNamespace(), tenant.GetLabels()["sync"]) {
				continue
			}
			there[types.NamespacedName{Namespace: tenant.GetNamespace(), Name: tenant.GetName()}] = true
		}
		for name := range snapshot.Malformed {
			// Its labels may be what is malformed, so only its namespace can leave it out.
			there[name] = carries(snapshot.Resource, name.Namespace, "yes")
		}
		for _, host := range snapshot.Host {
			id, owned := mapping.Identify(w.kind(), w.group.Kind, host)
			// A retired kind's mirror that is already going needs no decision.
			if owned == kinds.Ours && !(snapshot.Retired && host.GetDeletionTimestamp() != nil) {
				there[id] = true
			}
		}

		result := plan.Compute(in)
		decided := map[types.NamespacedName]bool{}
		for _, step := range result.Steps {
			name := types.NamespacedName{Namespace: step.TenantNamespace, Name: step.TenantName}
			require.False(t, decided[name], "two decisions for %s: %s", name, outcome(result))
			require.True(t, there[name], "a decision for %s, which is nowhere: %s", name, outcome(result))
			decided[name] = true
		}
		maps.DeleteFunc(there, func(_ types.NamespacedName, is bool) bool { return !is })
		require.Equal(t, len(there), len(decided)+result.Unchanged, outcome(result))
	})
}

// carries says in its own words what selecting and from ask for.
func carries(resource policy.Resource, namespace, sync string) bool {
	return (len(resource.Namespaces) == 0 || slices.Contains(resource.Namespaces, namespace)) && (resource.Selector == nil || sync == "yes")
}

// The rules that hold for every plan, whatever it is over.
func TestWhatNoPlanEverDoes(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		w, in := drawWorld(t)
		result := plan.Compute(in)
		require.Equal(t, result, plan.Compute(in), "the same input gives the same plan")

		deletes, mirrors := 0, 0
		for _, host := range in.Snapshot.Kinds[0].Host {
			if _, owned := mapping.Identify(w.kind(), w.group.Kind, host); owned == kinds.Ours {
				mirrors++
			}
		}
		for _, step := range result.Steps {
			require.NotEmpty(t, step.Message)
			if !step.Writes() {
				require.Nil(t, step.Want, "a skip has nothing to write")
				require.Nil(t, step.Intent, "a skip intends nothing")
				continue
			}
			require.False(t, result.OtherTenant, "nothing is written while the tenant is in doubt")
			written := step.Have
			if step.Action != record.Delete {
				written = step.Want
			} else {
				deletes++
				require.Equal(t, record.Host, step.Side, "nothing is ever deleted in the tenant")
			}
			if step.Source != nil {
				tenant, host := step.Source, written
				if step.Side == record.Tenant {
					tenant, host = written, step.Source
				}
				require.Equal(t, plan.Agreement(in.Hasher, w.kind(), tenant, host), step.Agreement(in.Hasher, w.kind(), tenant, host),
					"what the intent knows of the source is what the source is")
			}
			if step.Side == record.Tenant {
				if step.Action != record.Update || step.Reason == record.Resolved {
					require.Equal(t, record.Resolved, step.Reason, "nothing is ever made in the tenant, but where a person has said so")
					require.Equal(t, record.Host, word(in, step.HostName), "nothing is resolved that nobody resolved")
					require.NotNil(t, step.Before, "a word is taken off before it is carried out")
				}
				require.NotEqual(t, policy.ToHost, w.direction, "what crosses toHost never comes back")
				continue
			}
			if step.Reason == record.Resolved {
				require.NotEmpty(t, word(in, step.HostName), "nothing is resolved that nobody resolved")
			}
			require.Equal(t, "team-dev", written.GetNamespace())
			require.Equal(t, mapping.MirrorName(w.kind(), step.TenantNamespace, step.TenantName), written.GetName())
			id, owned := mapping.Identify(w.kind(), w.group.Kind, written)
			require.Equal(t, kinds.Ours, owned, "only mirrors of ours are written")
			require.Equal(t, step.TenantName, id.Name)
		}
		if deletes >= 10 && result.GuardID == "" && in.Confirmed == "" {
			require.LessOrEqual(t, deletes*100, w.percent*mirrors, "more deletes than the guard lets through")
		}
		if w.off {
			require.Empty(t, result.History, "nothing is learned where nothing is recorded")
			require.Empty(t, result.Refreshed)
		}
	})
}

// word is what the mirror of a name says about its conflict.
func word(in plan.Input, hostName string) record.Side {
	for _, host := range in.Snapshot.Kinds[0].Host {
		if host.GetName() == hostName {
			keep, _ := kinds.Word(host)
			return keep
		}
	}
	return ""
}

// Planning reads its input and changes nothing of it.
func TestPlanningLeavesItsInputAlone(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		_, in := drawWorld(t)
		copies := func() (all []*unstructured.Unstructured) {
			for _, list := range [][]*unstructured.Unstructured{in.Snapshot.Kinds[0].Tenant, in.Snapshot.Kinds[0].Host} {
				for _, object := range list {
					all = append(all, object.DeepCopy())
				}
			}
			return all
		}
		history := func() (states []record.State) {
			for _, state := range in.History.All() {
				states = append(states, state)
			}
			return states
		}
		before, remembered := copies(), history()
		plan.Compute(in)
		require.Equal(t, before, copies())
		require.Equal(t, remembered, history())
	})
}
