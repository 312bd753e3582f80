package plan_test

import (
	"testing"

	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/syncpass/syncpass/pass/kinds"
	"github.com/syncpass/syncpass/pass/plan"
	"github.com/syncpass/syncpass/record"
)

// field gives a Pod a field in its spec.
func field(name string, value any) edit {
	return func(pod *unstructured.Unstructured) { pod.Object["spec"].(map[string]any)[name] = value }
}

// debugged gives a Pod ephemeral containers, each of them privileged or not.
func debugged(privileged ...bool) edit {
	var containers []any
	for i, is := range privileged {
		containers = append(containers, map[string]any{"name": string(rune('a' + i)), "securityContext": map[string]any{"privileged": is}})
	}
	return field("ephemeralContainers", containers)
}

func heldTo(t *testing.T, in plan.Input, level string) *plan.Plan {
	t.Helper()
	security, err := kinds.NewPodSecurity(level)
	require.NoError(t, err)
	in.Mapping.Workloads.PodSecurity = security
	return plan.Compute(in)
}

func TestAPodThatTheLevelForbidsGetsNoMirror(t *testing.T) {
	w := newNodeWorld()
	w.pod("bad", "", "-", field("hostNetwork", true))
	w.pod("good", "", "-")
	p := heldTo(t, w.input(), "baseline")
	require.Equal(t, "skip host bad Rejected, create host good NoMirror", decided(p, "Pod"))
	require.Contains(t, p.Steps[0].Message, "the Pod Security level baseline forbids it: host namespaces; ")
	require.Equal(t, "host namespaces (hostNetwork=true)", p.Steps[0].Error)
	require.Nil(t, p.Steps[0].Want)
	require.Equal(t, "create host bad NoMirror, create host good NoMirror", decided(heldTo(t, w.input(), "privileged"), "Pod"))
}

// A level that is set, or raised, later costs no Pod that runs already, and lets everything else about it go on.
func TestALevelCostsNoMirror(t *testing.T) {
	forbidden := field("hostNetwork", true)
	for name, test := range map[string]struct {
		lay  func(w *nodeWorld)
		want string
	}{
		"a running one runs on": {func(w *nodeWorld) { w.pod("a", "", "", forbidden) }, ""},
		"it takes changes": {func(w *nodeWorld) {
			tenant, _ := w.pod("a", "", "", forbidden)
			label("v", "2")(w.version(tenant))
		}, "update host a TenantChanged"},
		"it reports": {func(w *nodeWorld) {
			_, host := w.pod("a", "", "", forbidden)
			phase("Running")(w.version(host))
		}, "update tenant a StatusChanged"},
		"it is bound": {func(w *nodeWorld) { w.stub(w.node("n1")); w.pod("a", "", "n1", forbidden) }, "update tenant a HostChanged"},
		"it ends with its tenant's": {func(w *nodeWorld) {
			tenant, _ := w.pod("a", "", "", forbidden)
			terminating(tenant)
		}, "delete host a TenantDeleted"},
		"it ends where its tenant's is gone": {func(w *nodeWorld) {
			w.pod("a", "", "", forbidden)
			w.tenantPods = nil
		}, "delete host a TenantDeleted"},
		"it ends where its tenant's was made again": {func(w *nodeWorld) {
			tenant, _ := w.pod("a", "", "", forbidden)
			tenant.SetUID("again")
		}, "delete host a TenantRecreated"},
		"one that is lost does not come back": {func(w *nodeWorld) {
			w.pod("a", "", "", forbidden)
			w.hostPods = nil
		}, "skip host a Rejected"},
		"one that is lost and bound is replaced": {func(w *nodeWorld) {
			w.pod("a", "n1", "n1", forbidden)
			w.hostPods = nil
		}, "delete tenant a MirrorDeleted"},
		"one that has finished is over": {func(w *nodeWorld) {
			w.pod("a", "", "", forbidden, phase("Succeeded"))
			w.hostPods = nil
		}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			w := newNodeWorld()
			test.lay(w)
			require.Equal(t, test.want, decided(heldTo(t, w.input(), "restricted"), "Pod"))
		})
	}
}

func TestDebugContainersThatTheLevelForbidsAreWithheld(t *testing.T) {
	w := newNodeWorld()
	tenant, _ := w.pod("a", "", "")
	debugged(true)(w.version(tenant))
	p := heldTo(t, w.input(), "baseline")
	require.Equal(t, "skip host a Rejected", decided(p, "Pod"))
	require.Contains(t, p.Steps[0].Message, "forbids its new debug containers: privileged; ")
	require.Equal(t, `privileged (container "a" must not set securityContext.privileged=true)`, p.Steps[0].Error)

	// The others are added, and so is everything else.
	debugged(true, false)(w.version(tenant))
	step := one(t, heldTo(t, w.input(), "baseline"))
	require.Equal(t, record.TenantChanged, step.Reason)
	require.Equal(t, []string{"spec.ephemeralContainers"}, step.Fields)
	require.Len(t, step.Then, 1)
	containers, _, err := unstructured.NestedSlice(step.Then[0].Object.Object, "spec", "ephemeralContainers")
	require.NoError(t, err)
	require.Len(t, containers, 1)
	require.Equal(t, "b", containers[0].(map[string]any)["name"])
}

// What is withheld is named for as long as it is, whatever else was agreed on since, and delivered once it is allowed.
func TestWhatIsWithheldIsNotForgotten(t *testing.T) {
	w := newNodeWorld()
	_, host := w.pod("a", "", "", debugged(true))
	require.NotContains(t, host.Object["spec"], "ephemeralContainers", "debug containers come later")
	require.Equal(t, "skip host a Rejected", decided(heldTo(t, w.input(), "baseline"), "Pod"), "although nothing changed")

	step := one(t, heldTo(t, w.input(), "privileged"))
	require.Equal(t, record.TenantChanged, step.Reason)
	require.Equal(t, []string{"spec.ephemeralContainers"}, step.Fields)
	require.Equal(t, host.Object["spec"], step.Want.Object["spec"], "the rest of the mirror stays as it is")
	require.Equal(t, "ephemeralcontainers", step.Then[0].Subresource)
}

// A Pod of whose debug containers one is withheld is shown its node like any other.
func TestWhatIsWithheldKeepsNoPodFromItsNode(t *testing.T) {
	w := newNodeWorld()
	w.stub(w.node("n1"))
	tenant, _ := w.pod("a", "", "n1", debugged(true))
	require.Equal(t, "update tenant a HostChanged", decided(heldTo(t, w.input(), "baseline"), "Pod"))
	on("n1")(tenant)
	w.history.Set(record.Key{Kind: "Pod", Namespace: "default", Name: "a"}, record.State{})
	require.Equal(t, "skip host a Rejected", decided(heldTo(t, w.input(), "baseline"), "Pod"))
}
