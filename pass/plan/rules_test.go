package plan_test

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	"github.com/syncpass/syncpass/pass/kinds"
	"github.com/syncpass/syncpass/pass/plan"
	"github.com/syncpass/syncpass/policy"
	"github.com/syncpass/syncpass/record"
)

// selecting is a policy that carries what is labelled sync=yes, from one that carries some namespaces, referring one that
// lists spec.secretName and the names in spec.names.
func selecting(resource *policy.Resource) {
	resource.Selector = &metav1.LabelSelector{MatchLabels: map[string]string{"sync": "yes"}}
}

func from(namespaces ...string) func(*policy.Resource) {
	return func(resource *policy.Resource) { resource.Namespaces = namespaces }
}

func referring(resource *policy.Resource) {
	resource.References = []policy.Reference{{Path: "spec.secretName", Kind: "Secret"}, {Path: "spec.names[*]", Kind: "ConfigMap"}}
}

var selected = label("sync", "yes")

func TestWhatThePolicyLeavesOutDoesNotCross(t *testing.T) {
	w := manual()
	w.says = selecting
	w.see(w.object("left-out"), nil)
	w.see(w.object("other", label("sync", "no")), nil)
	w.see(w.object("chosen", selected), nil)
	result := w.compute()
	require.Equal(t, "create host NoMirror", outcome(result))
	require.Equal(t, "chosen", result.Steps[0].TenantName)

	w = manual()
	w.says = from("team-a", "team-b")
	w.see(w.object("left-out"), nil)
	w.see(w.object("chosen", func(o *unstructured.Unstructured) { o.SetNamespace("team-b") }), nil)
	result = w.compute()
	require.Equal(t, "create host NoMirror", outcome(result))
	require.Equal(t, "chosen", result.Steps[0].TenantName)
}

// An object that the policy leaves out counts as gone, with the rules that hold for a deletion.
func TestAnObjectThatStopsMatchingLosesItsMirror(t *testing.T) {
	noLonger := func(w *world, tenant, host *unstructured.Unstructured) {
		w.see(w.edited(tenant, label("sync", "no")), host)
	}
	const message = "no longer matches the policy's selector and namespaces; it stays in the tenant"
	for _, test := range []struct {
		name string
		now  func(w *world, tenant, host *unstructured.Unstructured)
		want []string // by column
		says string
	}{
		{"its mirror goes", noLonger, everywhere("delete host TenantDeleted"), message},
		{"its mirror goes without a history too", func(w *world, tenant, host *unstructured.Unstructured) {
			w.history = record.NewHistory(hasher.KeyID())
			noLonger(w, tenant, host)
		}, everywhere("delete host TenantDeleted"), message},
		{"a mirror that the host changed is weighed", func(w *world, tenant, host *unstructured.Unstructured) {
			noLonger(w, tenant, w.edited(host, a2))
		}, []string{"delete host TenantDeleted", "delete host TenantDeleted", "skip host Conflict", "delete host TenantDeleted", "delete host TenantDeleted"}, message},
		{"a mirror that is going already needs nothing", func(w *world, tenant, host *unstructured.Unstructured) {
			noLonger(w, tenant, w.edited(host, terminating))
		}, everywhere("-"), ""},
		{"without a mirror there is nothing to do but to forget", func(w *world, tenant, _ *unstructured.Unstructured) {
			noLonger(w, tenant, nil)
		}, everywhere("forget"), ""},
		{"one that is gone as well is gone", func(w *world, _, host *unstructured.Unstructured) {
			w.see(nil, host)
		}, everywhere("delete host TenantDeleted"), "deleted in the tenant"},
		{"one that is being deleted and does not match is left out", func(w *world, tenant, host *unstructured.Unstructured) {
			w.see(w.edited(tenant, label("sync", "no"), terminating), host)
		}, everywhere("delete host TenantDeleted"), message},
		{"one that matches still is an object like any other", func(w *world, tenant, host *unstructured.Unstructured) {
			w.see(w.edited(tenant), host)
		}, everywhere("-"), ""},
	} {
		t.Run(test.name, func(t *testing.T) {
			for i, column := range columns {
				for _, conflict := range column.conflicts {
					w := newWorld(column.direction, conflict)
					w.says = selecting
					tenant := w.object("app", selected)
					host := w.mirror(tenant)
					w.agreed(tenant, host)
					test.now(w, tenant, host)
					result := w.compute()
					require.Equal(t, test.want[min(i, len(test.want)-1)], outcome(result), "%s under %s", column.name, conflict)
					for _, step := range result.Steps {
						require.Contains(t, step.Message, test.says)
						require.False(t, step.Rules.Carry(w.object("app")), "the step knows what the policy leaves out")
						require.True(t, step.Rules.Carry(w.object("app", selected)))
					}
				}
			}
		})
	}
}

func TestAKindThatIsNarrowedToOtherNamespacesLosesItsMirrors(t *testing.T) {
	w := manual()
	w.says = from("team-a")
	tenant := w.object("app")
	host := w.mirror(tenant)
	w.agreed(tenant, host)
	w.see(tenant, host)
	step := one(t, w.compute())
	require.Equal(t, record.TenantDeleted, step.Reason)
	require.Contains(t, step.Message, "no longer matches the policy's selector and namespaces")
}

// The guards look at what the policy carries: a selector that matches nothing is as suspicious as a tenant that lists
// nothing.
func TestNarrowingIsUnderTheGuards(t *testing.T) {
	narrowed := func(pairs, matching int) *world {
		w := newWorld(policy.ToHost, policy.Manual)
		w.says = selecting
		for i := range pairs {
			tenant := w.object(fmt.Sprintf("app-%02d", i))
			if i < matching {
				selected(tenant)
			}
			host := w.mirror(tenant)
			w.agreed(tenant, host)
			w.see(tenant, host)
		}
		return w
	}
	require.Equal(t, 10, count(narrowed(10, 0).compute(), record.Skip, record.GuardEmptyTenant))
	require.Contains(t, narrowed(10, 0).compute().GuardMessage, "the tenant lists no object of this kind that the policy carries")
	require.Equal(t, 9, count(narrowed(9, 0).compute(), record.Delete, record.TenantDeleted))
	require.Equal(t, 15, count(narrowed(20, 5).compute(), record.Skip, record.GuardMaxDeletes))
	require.Equal(t, 10, count(narrowed(20, 10).compute(), record.Delete, record.TenantDeleted))

	in := narrowed(10, 0).input()
	in.Confirmed = plan.Compute(in).GuardID
	require.Equal(t, 10, count(plan.Compute(in), record.Delete, record.TenantDeleted))
}

// Whether a malformed object matches cannot be told, so only its namespace leaves it out.
func TestNoSelectorLeavesOutAMalformedObject(t *testing.T) {
	for _, test := range []struct {
		name string
		says func(*policy.Resource)
		want string
	}{
		{"a selector", selecting, "skip host Rejected"},
		{"its namespace among those of the policy", from("default"), "skip host Rejected"},
		{"other namespaces", from("team-a"), "delete host TenantDeleted"},
	} {
		t.Run(test.name, func(t *testing.T) {
			w := newWorld(policy.ToHost, policy.Manual)
			w.says = test.says
			w.see(nil, w.mirror(w.object("app")))
			in := w.input()
			in.Snapshot.Kinds[0].Malformed = map[types.NamespacedName]string{{Namespace: "default", Name: "app"}: "metadata.labels is no map of strings"}
			require.Equal(t, test.want, outcome(plan.Compute(in)))
		})
	}
}

// Validation refuses such policies; what slips past it deletes nothing.
func TestAPolicyThatCannotBeUnderstoodMakesItsKindUnknown(t *testing.T) {
	for name, says := range map[string]func(*policy.Resource){
		"a selector with an operator that there is not": func(r *policy.Resource) {
			r.Selector = &metav1.LabelSelector{MatchExpressions: []metav1.LabelSelectorRequirement{{Key: "app", Operator: "Is"}}}
		},
		"a path that is none":           func(r *policy.Resource) { r.References = []policy.Reference{{Path: "spec[", Kind: "Secret"}} },
		"a path that leads to the name": func(r *policy.Resource) { r.References = []policy.Reference{{Path: "metadata.name", Kind: "Secret"}} },
	} {
		t.Run(name, func(t *testing.T) {
			w := manual()
			w.says = says
			tenant := w.object("app")
			w.agreed(tenant, w.mirror(tenant))
			w.see(nil, w.mirror(tenant))
			step := one(t, w.compute())
			require.Equal(t, record.KindUnavailable, step.Reason)
			require.Contains(t, step.Message, "the policy's ")
		})
	}
}

// A Service that the policy leaves out has no address on the host.
func TestPodsGetNoVariablesOfServicesThatAreLeftOut(t *testing.T) {
	w := newWorld(policy.ToHost, policy.Manual)
	w.group = configMaps
	w.group.Kind = "Service"
	ports := func(o *unstructured.Unstructured) {
		o.Object["spec"] = map[string]any{"clusterIP": "10.0.0.7", "ports": []any{map[string]any{"port": int64(80)}}}
	}
	service := w.object("web", ports)
	w.see(service, w.mirror(service, ports))
	pods := newWorld(policy.ToHost, policy.Manual)
	pods.group = configMaps
	pods.group.Kind = "Pod"
	pods.see(pods.object("app", func(o *unstructured.Unstructured) {
		o.Object["spec"] = map[string]any{"containers": []any{map[string]any{"name": "c"}}}
	}), nil)
	variables := func() int {
		in := w.input()
		in.Snapshot.Kinds = append(in.Snapshot.Kinds, pods.input().Snapshot.Kinds...)
		result := plan.Compute(in)
		pod := result.Steps[len(result.Steps)-1]
		require.Equal(t, "Pod", pod.Key.Kind)
		require.Empty(t, pod.Awaits)
		containers, _, err := unstructured.NestedSlice(pod.Want.Object, "spec", "containers")
		require.NoError(t, err)
		env, _ := containers[0].(map[string]any)["env"].([]any)
		return len(env)
	}
	require.Positive(t, variables())
	w.says = selecting
	require.Zero(t, variables())
}

func widgetWorld(direction policy.Direction, conflict policy.ConflictPolicy) *world {
	w := newWorld(direction, conflict)
	w.group, w.says = widgets, referring
	return w
}

func naming(secret any, more ...any) edit {
	return func(o *unstructured.Unstructured) {
		o.Object["spec"] = map[string]any{"secretName": secret, "names": append([]any{}, more...)}
	}
}

func TestListedReferencesAreRenamed(t *testing.T) {
	w := widgetWorld(policy.Bidirectional, policy.Manual)
	tenant := w.object("app", naming("db", "a", "b"))
	w.see(tenant, nil)
	step := one(t, w.compute())
	require.Equal(t, map[string]any{"secretName": "db-x-default-x-dev", "names": []any{"a-x-default-x-dev", "b-x-default-x-dev"}}, step.Want.Object["spec"])

	view, found := plan.Look(w.input(), w.key("app"))
	require.True(t, found)
	require.Equal(t, step.Want.Object["spec"], view.Projected.Object["spec"])

	host := w.edited(step.Want, uid("h-app"), managedBy(kinds.FieldManager))
	w.tenants, w.hosts = nil, nil
	w.see(tenant, host)
	require.Equal(t, "-, learn", outcome(w.compute()), "the two agree, by their own names")
	w.agreed(tenant, host)
	require.Equal(t, "-", outcome(w.compute()))

	w.hosts = []*unstructured.Unstructured{w.edited(host, naming("db-x-default-x-dev", "c-x-default-x-dev"))}
	pulled := one(t, w.compute())
	require.Equal(t, record.HostChanged, pulled.Reason)
	require.Equal(t, map[string]any{"secretName": "db", "names": []any{"c"}}, pulled.Want.Object["spec"])
}

// A policy that comes to list a reference is carried out on the mirrors that are there, although no object changed.
func TestMirrorsFollowAReferenceThatThePolicyComesToList(t *testing.T) {
	const because = "the policy lists a reference that the mirror still had under the tenant's name"
	for i, want := range []string{"update host TenantChanged", "-", "update host TenantChanged", "update host TenantChanged", "-"} {
		column := columns[i]
		for _, conflict := range column.conflicts {
			w := widgetWorld(column.direction, conflict)
			tenant := w.object("app", naming("db"))
			host := w.mirror(tenant)
			w.agreed(tenant, host)
			w.see(tenant, host)
			result := w.compute()
			require.Equal(t, want, outcome(result), "%s under %s", column.name, conflict)
			if want == "-" {
				continue
			}
			require.Contains(t, result.Steps[0].Message, because)
			require.Equal(t, []string{"spec.secretName"}, result.Steps[0].Fields)
			require.Equal(t, "db-x-default-x-dev", result.Steps[0].Want.Object["spec"].(map[string]any)["secretName"])

			after := w.edited(result.Steps[0].Want)
			w.agreed(tenant, after)
			w.hosts = []*unstructured.Unstructured{after}
			require.Equal(t, "-", outcome(w.compute()), "once")
		}
	}
}

// What changed on the host goes first; the name that it gave back is renamed by the pass after.
func TestAHostThatWritesATenantsNameGetsTheMirrorsBack(t *testing.T) {
	w := widgetWorld(policy.Bidirectional, policy.Manual)
	tenant := w.object("app", naming("db"))
	host := w.mirror(tenant, naming("db-x-default-x-dev"))
	w.agreed(tenant, host)
	raw := w.edited(host, naming("db"))
	w.see(tenant, raw)
	result := w.compute()
	require.Equal(t, "-, learn", outcome(result), "in the tenant's terms nothing changed")
	remember(w.history, result.History)
	step := one(t, w.compute())
	require.Equal(t, record.TenantChanged, step.Reason)
	require.Equal(t, "db-x-default-x-dev", step.Want.Object["spec"].(map[string]any)["secretName"])
}

// A running Pod cannot change what it refers to, so a reference that is listed later is no reason to look at it again: what
// the host has made of it would be taken for a change of the tenant's.
func TestARunningPodStaysAsItWasMade(t *testing.T) {
	asking := func(cpu string) edit {
		return func(o *unstructured.Unstructured) {
			naming("db")(o)
			o.Object["spec"].(map[string]any)["containers"] = []any{map[string]any{"name": "c", "resources": map[string]any{"requests": map[string]any{"cpu": cpu}}}}
		}
	}
	w := newWorld(policy.ToHost, policy.Manual)
	w.group = podKind
	tenant := w.object("app", asking("1"))
	host := w.mirror(tenant, asking("2"))
	w.agreed(tenant, host)
	w.see(tenant, host)
	w.says = referring
	require.Equal(t, "-", outcome(w.compute()))
}
