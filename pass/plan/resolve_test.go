package plan_test

import (
	"testing"

	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/syncpass/syncpass/pass/kinds"
	"github.com/syncpass/syncpass/pass/plan"
	"github.com/syncpass/syncpass/record"
)

// says puts a word about a conflict on an object.
func says(value string) edit {
	return func(object *unstructured.Unstructured) {
		annotations := object.GetAnnotations()
		if annotations == nil {
			annotations = map[string]string{}
		}
		annotations[kinds.AnnotationResolve] = value
		object.SetAnnotations(annotations)
	}
}

// resolved is the input with a person's word about default/app, as both sides are in it.
func resolved(w *world, keep record.Side) plan.Input {
	in := w.input()
	view, found := plan.Look(in, w.key("app"))
	if !found {
		panic("there is no default/app")
	}
	in.Resolutions = map[record.Key]plan.Resolution{w.key("app"): {
		Keep: keep, Tenant: view.TenantVersion, Host: view.HostVersion, By: "alice@laptop", Why: "OPS-12",
	}}
	in.OnlyResolutions = true
	return in
}

// The rows of the decision table in which a person has to decide, and what each word comes to.
var disputes = []struct {
	name         string
	now          func(w *world, tenant, host *unstructured.Unstructured)
	held         record.Reason
	tenant, host string
}{
	{"different changes on both sides", func(w *world, tenant, host *unstructured.Unstructured) {
		w.see(w.edited(tenant, a2), w.edited(host, a3))
	}, record.Conflict, "update host Resolved", "update tenant Resolved"},
	{"no agreement is recorded and the sides differ", func(w *world, tenant, host *unstructured.Unstructured) {
		w.history = record.NewHistory(hasher.KeyID())
		w.see(w.edited(tenant, a2), host)
	}, record.NoHistory, "update host Resolved", "update tenant Resolved"},
	{"nothing is recorded and the sides differ", func(w *world, tenant, host *unstructured.Unstructured) {
		w.off = true
		w.see(w.edited(tenant, a2), host)
	}, record.HistoryOff, "update host Resolved", "update tenant Resolved"},
	{"the tenant object was made again with other content while the mirror changed", func(w *world, tenant, host *unstructured.Unstructured) {
		w.see(w.edited(tenant, uid("t-again"), a2), w.edited(host, a3))
	}, record.Conflict, "update host Resolved", "update tenant Resolved"},
	{"the tenant object was deleted while the mirror changed", func(w *world, _, host *unstructured.Unstructured) {
		w.see(nil, w.edited(host, a2))
	}, record.Conflict, "delete host Resolved", "create tenant Resolved"},
	{"the policy came to leave the tenant object out while the mirror changed", func(w *world, tenant, host *unstructured.Unstructured) {
		w.says = selecting
		w.see(tenant, w.edited(host, a2))
	}, record.Conflict, "delete host Resolved", "skip host Conflict"},
	{"a sealed mirror differs from a tenant object that changed", func(w *world, tenant, host *unstructured.Unstructured) {
		w.see(w.edited(tenant, a2), w.edited(host, a3, immutable))
	}, record.Conflict, "update host Resolved", "update tenant Resolved"},
	{"a sealed tenant object differs from a mirror that changed", func(w *world, tenant, host *unstructured.Unstructured) {
		w.see(w.edited(tenant, a2, immutable), w.edited(host, a3))
	}, record.Conflict, "update host Resolved", "skip tenant Immutable"},
}

// dispute lays one of them out.
func dispute(now func(w *world, tenant, host *unstructured.Unstructured)) *world {
	w := manual()
	tenant := w.object("app")
	host := w.mirror(tenant)
	w.agreed(tenant, host)
	now(w, tenant, host)
	return w
}

func TestAPersonsWordIsCarriedOut(t *testing.T) {
	for _, test := range disputes {
		for keep, want := range map[record.Side]string{record.Tenant: test.tenant, record.Host: test.host} {
			t.Run(test.name+", keep "+string(keep), func(t *testing.T) {
				w := dispute(test.now)
				require.Equal(t, test.held, one(t, w.compute()).Held)
				require.Equal(t, test.held, one(t, w.compute()).Reason, "without a word it is held")

				step := one(t, plan.Compute(resolved(w, keep)))
				require.Equal(t, want, outcome(&plan.Plan{Steps: []plan.Step{step}}))
				require.Equal(t, test.held, step.Held)
				checkWord(t, w, step)
				if step.Writes() {
					require.Contains(t, step.Message, "as alice@laptop says: OPS-12")
					require.Nil(t, step.Before, "there is nothing to take off the mirror")
				}
			})
		}
	}
}

// checkWord holds a step that a word has led to, to what every write carries.
func checkWord(t *testing.T, w *world, step plan.Step) {
	t.Helper()
	switch step.Action {
	case record.Create:
		require.Equal(t, record.Tenant, step.Side)
		require.Equal(t, "default", step.Want.GetNamespace())
		require.Equal(t, "app", step.Want.GetName())
		require.Empty(t, step.Want.GetResourceVersion())
		require.Empty(t, step.Want.GetUID())
		require.NotContains(t, step.Want.GetLabels(), kinds.LabelTenant)
		require.Empty(t, step.Want.GetAnnotations())
		require.Empty(t, step.Want.GetOwnerReferences())
		require.Equal(t, w.off, step.Intent == nil)
	case record.Update:
		if !step.Replace {
			require.Equal(t, step.Have.GetResourceVersion(), step.Want.GetResourceVersion())
		}
		require.Equal(t, w.off, step.Intent == nil)
		require.NotContains(t, step.Want.GetAnnotations(), kinds.AnnotationResolve)
	case record.Delete:
		require.NotEmpty(t, step.Have.GetUID())
		require.NotEmpty(t, step.Have.GetResourceVersion())
	}
}

func TestAWordOnTheMirrorIsCarriedOutAndTakenOff(t *testing.T) {
	for _, test := range disputes {
		for keep, want := range map[record.Side]string{record.Tenant: test.tenant, record.Host: test.host} {
			t.Run(test.name+", keep "+string(keep), func(t *testing.T) {
				w := dispute(test.now)
				w.hosts[0] = w.edited(w.hosts[0], says(string(keep)), managedBy("kubectl-annotate"))
				step := one(t, w.compute())
				require.Equal(t, want, outcome(&plan.Plan{Steps: []plan.Step{step}}))
				checkWord(t, w, step)
				if !step.Writes() {
					return
				}
				require.Contains(t, step.Message, "as the annotation tenantplane.io/resolve on the mirror (kubectl-annotate) says")
				if step.Side == record.Host {
					require.Nil(t, step.Before, "the write itself takes it off")
					return
				}
				require.Equal(t, record.Host, step.Before.Side)
				require.NotContains(t, step.Before.Object.GetAnnotations(), kinds.AnnotationResolve)
				require.Equal(t, w.hosts[0].GetResourceVersion(), step.Before.Object.GetResourceVersion(), "only if it is still as it was read")
				require.Equal(t, w.hosts[0].Object["data"], step.Before.Object.Object["data"])
			})
		}
	}
}

// A word lies in wait for nothing: where there is no conflict, the next pass takes it off and does what it would have done.
func TestAWordWithoutAConflictIsTakenOff(t *testing.T) {
	for i, column := range columns {
		for _, conflict := range column.conflicts {
			for _, test := range []struct {
				name string
				now  func(w *world, tenant, host *unstructured.Unstructured)
				want []string
			}{
				{"nobody touched the pair", func(w *world, tenant, host *unstructured.Unstructured) {
					w.see(tenant, w.edited(host, says("tenant")))
				}, everywhere("update host HostDrifted")},
				{"the sides have come to agree", func(w *world, tenant, host *unstructured.Unstructured) {
					w.see(w.edited(tenant, a2), w.edited(host, a2, says("host")))
				}, everywhere("update host HostDrifted")},
				{"the tenant alone changed", func(w *world, tenant, host *unstructured.Unstructured) {
					w.see(w.edited(tenant, a2), w.edited(host, says("host")))
				}, []string{"update host TenantChanged", "update tenant HostWins", "update host TenantChanged", "update host TenantChanged", "update tenant HostWins"}},
				{"the host alone changed", func(w *world, tenant, host *unstructured.Unstructured) {
					w.see(tenant, w.edited(host, a2, says("tenant"), managedBy("kubectl-edit")))
				}, []string{"update host HostDrifted", "update tenant HostChanged", "update tenant HostChanged", "update host TenantWins", "update tenant HostChanged"}},
			} {
				t.Run(test.name+"/"+column.name+" under "+string(conflict), func(t *testing.T) {
					w := newWorld(column.direction, conflict)
					tenant := w.object("app")
					host := w.mirror(tenant)
					w.agreed(tenant, host)
					test.now(w, tenant, host)
					want := test.want[0]
					if len(test.want) > 1 {
						want = test.want[i]
					}
					step := one(t, w.compute())
					require.Equal(t, want, outcome(&plan.Plan{Steps: []plan.Step{step}}))
					require.Empty(t, step.Held)
					written := step.Want
					if step.Side == record.Tenant {
						written = step.Before.Object
					}
					require.NotContains(t, written.GetAnnotations(), kinds.AnnotationResolve)
					require.Equal(t, w.hosts[0].GetResourceVersion(), written.GetResourceVersion())
				})
			}
		}
	}
}

func TestAWordThatNobodyUnderstandsIsNamedAndLeft(t *testing.T) {
	w := dispute(disputes[0].now)
	silent := one(t, w.compute())
	w.hosts[0] = w.edited(w.hosts[0], says("both"))
	step := one(t, w.compute())
	require.Equal(t, "skip host Conflict", outcome(&plan.Plan{Steps: []plan.Step{step}}))
	require.Contains(t, step.Message, `the annotation tenantplane.io/resolve on the mirror says "both", and only tenant and host mean anything there`)
	require.Equal(t, append(silent.Fields, `metadata.annotations["tenantplane.io/resolve"]`), step.Fields, "so that it is told to whoever waits for Events")

	quiet := manual()
	tenant := quiet.object("app")
	host := quiet.mirror(tenant, says("both"))
	quiet.agreed(tenant, host)
	quiet.see(tenant, host)
	require.Equal(t, "-", outcome(quiet.compute()))
	quiet.tenants[0] = quiet.edited(tenant, a2)
	require.Equal(t, "both", one(t, quiet.compute()).Want.GetAnnotations()[kinds.AnnotationResolve])
}

// The annotation is reserved: in the tenant it means nothing, whatever a tenant hopes.
func TestATenantsWordIsNotHeard(t *testing.T) {
	for _, test := range disputes {
		t.Run(test.name, func(t *testing.T) {
			w := dispute(test.now)
			for i := range w.tenants {
				w.tenants[i] = w.edited(w.tenants[i], says("tenant"))
			}
			require.Equal(t, test.held, one(t, w.compute()).Reason)
		})
	}
	w := manual()
	tenant := w.object("app", says("tenant"))
	w.see(tenant, nil)
	require.NotContains(t, one(t, w.compute()).Want.GetAnnotations(), kinds.AnnotationResolve)
}

// A word is about the two contents that the person saw. A touch that changes no content does not void it.
func TestAWordIsBoundToWhatThePersonSaw(t *testing.T) {
	for _, test := range []struct {
		name string
		then func(w *world)
		want string
	}{
		{"both sides were touched", func(w *world) {
			w.tenants[0], w.hosts[0] = w.edited(w.tenants[0]), w.edited(w.hosts[0], says("host"))
		}, "update host Resolved"},
		{"the tenant changed it again", func(w *world) { w.tenants[0] = w.edited(w.tenants[0], data("b", "1")) }, "skip host Conflict"},
		{"the host changed it again", func(w *world) { w.hosts[0] = w.edited(w.hosts[0], data("b", "1")) }, "skip host Conflict"},
		{"the tenant object was made again", func(w *world) { w.tenants[0] = w.edited(w.tenants[0], uid("t-again")) }, "skip host Conflict"},
		{"the mirror was made again", func(w *world) { w.hosts[0] = w.edited(w.hosts[0], uid("h-again")) }, "skip host Conflict"},
		{"the tenant object was deleted", func(w *world) { w.tenants = nil }, "skip host Conflict"},
		{"the mirror was deleted", func(w *world) { w.hosts = nil }, "skip host Raced"},
		{"somebody made them equal", func(w *world) { w.hosts[0] = w.edited(w.hosts[0], a2) }, "-, learn"},
		{"the tenant took its change back", func(w *world) { w.tenants[0] = w.edited(w.tenants[0], data("a", "1")) }, "skip tenant Raced"},
	} {
		t.Run(test.name, func(t *testing.T) {
			w := dispute(disputes[0].now)
			said := resolved(w, record.Tenant)
			test.then(w)
			in := w.input()
			in.Resolutions, in.OnlyResolutions = said.Resolutions, true
			result := plan.Compute(in)
			require.Equal(t, test.want, outcome(result))
			for _, step := range result.Steps {
				if !step.Writes() {
					require.Contains(t, step.Message, "look again")
					require.Nil(t, step.Want)
				}
			}
		})
	}
}

// A word about one pair leaves all others to the next pass, whatever is due there.
func TestAWordIsAboutItsPairAlone(t *testing.T) {
	w := dispute(disputes[0].now)
	w.see(w.object("new"), nil)
	gone := w.object("gone")
	w.see(nil, w.mirror(gone))
	other := w.object("other")
	host := w.mirror(other)
	w.agreed(other, host)
	w.see(w.edited(other, a2), w.edited(host, a3))
	require.Len(t, w.compute().Steps, 4)
	result := plan.Compute(resolved(w, record.Host))
	require.Equal(t, "update tenant Resolved", outcome(result))
}

// The guards judge a word like anything else: a tenant that suddenly lists nothing may be a broken view of it.
func TestTheGuardsJudgeAWordToo(t *testing.T) {
	empty := func() *world {
		w := dispute(disputes[4].now)
		for _, name := range []string{"b", "c", "d", "e", "f", "g", "h", "i", "j"} {
			w.see(nil, w.mirror(w.object(name)))
		}
		return w
	}
	in := resolved(empty(), record.Tenant)
	result := plan.Compute(in)
	require.Equal(t, "skip host GuardEmptyTenant", outcome(result))
	require.NotEmpty(t, result.GuardID)
	in.Confirmed = result.GuardID
	require.Equal(t, "delete host Resolved", outcome(plan.Compute(in)))

	in = resolved(dispute(disputes[0].now), record.Host)
	in.RecordedTenantUID = "another"
	result = plan.Compute(in)
	require.Equal(t, "skip tenant GuardTenantIdentity", outcome(result))
	require.True(t, result.OtherTenant)
}

// Where the tenant has all that the host's content means there, there is nothing to write in the tenant: the mirror is
// left as it is, and both agree from now on.
func TestKeepingAHostsContentThatMeansNothingInTheTenant(t *testing.T) {
	w := manual()
	w.group, w.says = widgets, referring
	tenant := w.object("app", naming("db"))
	host := w.mirror(tenant)
	w.agreed(tenant, host)
	// The host refers by the tenant's name, which is what the tenant has already; the tenant changed something and back.
	w.see(w.edited(tenant, uid("t-again")), w.edited(host, naming("db")))
	step := one(t, w.compute())
	require.NotEqual(t, record.Resolved, step.Reason)
	if step.Held == "" {
		return
	}
	step = one(t, plan.Compute(resolved(w, record.Host)))
	require.Equal(t, record.Resolved, step.Reason)
	require.Equal(t, record.Host, step.Side)
	require.Equal(t, w.hosts[0].Object["spec"], step.Want.Object["spec"])
}

// What crashes between the two writes of a word on the mirror settles nothing, and what was written is recognised.
func TestAnInterruptedWordIsRecognised(t *testing.T) {
	for _, test := range []struct {
		name  string
		now   int
		after func(w *world, step plan.Step)
		want  string
	}{
		{"the tenant object was made again", 4, func(w *world, step plan.Step) {
			made := w.edited(step.Want, managedBy(kinds.FieldManager), uid("t-made"))
			w.see(made, w.edited(step.Before.Object))
		}, "update host TenantChanged"},
		{"somebody else made the tenant object again with the mirror's content, and then the host changed", 4, func(w *world, step plan.Step) {
			made := w.edited(step.Want, managedBy("kubectl-create"), uid("t-made"))
			w.see(made, w.edited(step.Before.Object, data("a", "9")))
		}, "skip host Conflict"},
		{"the tenant object was not made again", 4, func(w *world, step plan.Step) {
			w.see(nil, w.edited(step.Before.Object))
		}, "skip host Conflict"},
		{"the tenant object was written", 0, func(w *world, step plan.Step) {
			w.see(landed(w, step), w.edited(step.Before.Object))
		}, "-, learn"},
		{"the tenant object was not written", 0, func(w *world, step plan.Step) {
			w.see(step.Have, w.edited(step.Before.Object))
		}, "skip host Conflict"},
		{"nothing was written", 0, func(w *world, step plan.Step) {
			w.see(step.Have, w.edited(step.Before.Object, says("host")))
		}, "update tenant Resolved"},
	} {
		t.Run(test.name, func(t *testing.T) {
			w := dispute(disputes[test.now].now)
			w.hosts[0] = w.edited(w.hosts[0], says("host"))
			step := interrupted(t, w)
			test.after(w, step)
			require.Equal(t, test.want, outcome(w.compute()))
		})
	}
}
