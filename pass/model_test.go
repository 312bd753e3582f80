package pass

import (
	"context"
	"encoding/json"
	"flag"
	"log/slog"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	"k8s.io/utils/ptr"

	"github.com/syncpass/syncpass/e2e/tally"
	"github.com/syncpass/syncpass/pass/access"
	"github.com/syncpass/syncpass/pass/kinds"
	"github.com/syncpass/syncpass/pass/modeltest"
	"github.com/syncpass/syncpass/policy"
	"github.com/syncpass/syncpass/record"
)

var histories = flag.Int("histories", 300, "how many random histories TestModelOfWholePasses lives through")

// TestModelOfWholePasses lives through random histories like those of package plan's TestModel, but with whole passes in
// them: all of this package and below, over HTTP to servers in memory, by a clock of their own. Where the other model
// has a pass of its own around the planner, this one has no idea how a pass works.
//
// For more of them: make model HISTORIES=200000
func TestModelOfWholePasses(t *testing.T) {
	lived, count := modeltest.Check(t, *histories, func(t *testing.T, history []modeltest.Command) (m *modeltest.Model) {
		synctest.Test(t, func(*testing.T) { m = modeltest.Live(newCircuit().pass, modeltest.Without{}, history) })
		return m
	})
	tally.Line(t, "model of whole passes: %d histories, %d steps, %d passes, %d crashes, %d writes, 0 rules broken", lived, count.Steps, count.Passes, count.Crashes, count.Writes)
}

// Between the tenant's last word that an object is gone and the delete of its mirror, somebody may make it again: no pass can
// know, and the next one makes the mirror again.
func TestAnObjectMadeAgainWhileItsMirrorGoes(t *testing.T) {
	x := modeltest.Command{What: modeltest.Edits, Side: record.Tenant, Pair: "x", Text: "1"}
	quicker := modeltest.Fault{Kind: modeltest.PeopleBetween, At: 1, Before: []modeltest.Command{x}}
	synctest.Test(t, func(t *testing.T) {
		m := modeltest.Live(newCircuit().pass, modeltest.Without{}, []modeltest.Command{
			x, {What: modeltest.APass}, {What: modeltest.Deletes, Side: record.Tenant, Pair: "x"}, {What: modeltest.APass, Fault: quicker},
		})
		require.Empty(t, m.Broken, m.Trace())
		require.Contains(t, m.Trace(), "Delete host")
	})
}

// What an old list has and the policy has left out since is no object that crosses, once the pass has read it by name.
func TestAnObjectLeftOutSinceAnOldList(t *testing.T) {
	x := modeltest.Command{What: modeltest.Edits, Side: record.Tenant, Pair: "x", Text: "1"}
	selecting := modeltest.Policy{Direction: policy.Bidirectional, Conflict: policy.Manual, Selecting: true}
	synctest.Test(t, func(t *testing.T) {
		m := modeltest.Live(newCircuit().pass, modeltest.Without{}, []modeltest.Command{
			x, {What: modeltest.ChangesPolicy, Policy: selecting}, {What: modeltest.APass, Fault: modeltest.Fault{Kind: modeltest.CrashAfter, At: 1}},
			{What: modeltest.LabelsOut, Side: record.Tenant, Pair: "x"}, {What: modeltest.APass, Fault: modeltest.Fault{Kind: modeltest.ListOld}},
		})
		require.Empty(t, m.Broken, m.Trace())
	})
}

// TestModelOfWholePassesMissesWhatIsTakenAway: without any one of the safeguards, histories break rules. They are taken
// away in the servers, which let through what the safeguard would have stopped: two holders of the Lease, a SyncDecision
// without its intents, a write at whatever resourceVersion, and another's object that looks like a mirror. Passes fail
// only in the ways in which it matters.
func TestModelOfWholePassesMissesWhatIsTakenAway(t *testing.T) {
	if testing.Short() {
		t.Skip("it lives through some hundred whole histories for each safeguard")
	}
	const within = 3000
	for name, test := range map[string]struct {
		without modeltest.Without
		matters []modeltest.FaultKind
		// from is where the search begins: near the first history that was found once, since whole passes take their time.
		from int
	}{
		"the fence":         {modeltest.Without{Fence: true}, []modeltest.FaultKind{modeltest.NoFault, modeltest.PassBetween}, 1100},
		"the intents":       {modeltest.Without{Intents: true}, []modeltest.FaultKind{modeltest.NoFault, modeltest.CrashAfter, modeltest.AnswerLost}, 0},
		"the preconditions": {modeltest.Without{Preconditions: true}, []modeltest.FaultKind{modeltest.NoFault, modeltest.PeopleBetween}, 0},
		"the owner check":   {modeltest.Without{OwnerCheck: true}, nil, 0},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				histories := modeltest.Histories(test.matters...)
				for i := range within {
					history := histories.Example(test.from + i)
					if m := modeltest.Live(newCircuit().pass, test.without, history); len(m.Broken) > 0 {
						t.Logf("without %s, history %d is the first that breaks a rule: %v\n%s", name, i+1, m.Broken[0], m.Trace())
						return
					}
				}
				t.Fatalf("without %s, no rule is broken in %d histories", name, within)
			})
		})
	}
}

const (
	modelLease = 30 * time.Second
	// A request may take longer than the Lease stands, which no configuration allows: so the time that a stopped process
	// loses can pass within a request.
	modelTimeout = time.Hour
)

// pass is one whole pass. A Lease that a dead pass left has run out by then.
func (c *circuit) pass(m *modeltest.Model, p *modeltest.Pass) modeltest.Report {
	if !m.Without.Fence {
		time.Sleep(modelLease + time.Second)
	}
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	lines := map[record.Side]*line{}
	clusters := map[record.Side]*access.Cluster{}
	for _, side := range []record.Side{record.Host, record.Tenant} {
		lines[side] = &line{circuit: c, model: m, pass: p, side: side, die: cancel}
		cluster, err := access.NewHost(&rest.Config{
			Host: "http://" + string(side), Transport: lines[side], ContentConfig: rest.ContentConfig{ContentType: "application/json"},
		}, access.Options{RequestTimeout: modelTimeout, Observe: c.observe})
		if err != nil {
			panic(err) // it is the same for every pass
		}
		clusters[side] = cluster
	}
	result := through(ctx, Options{
		Host: clusters[record.Host], Namespace: m.Mapping.HostNamespace, Tenant: m.Mapping.Tenant,
		PassTimeout: 24 * time.Hour, LeaseDuration: modelLease, RequestTimeout: modelTimeout, Concurrency: 1,
		MaxDeletePercent: modeltest.MaxDeletePercent, RetireKinds: p.Policy.Retire, Identity: "model", Log: slog.New(slog.DiscardHandler),
		Begin: c.begin, Progress: c.progress,
	}, func(r *run, _ context.Context) error {
		cluster := &policy.TenantCluster{ObjectMeta: metav1.ObjectMeta{Name: m.Mapping.Tenant, Annotations: map[string]string{kinds.AnnotationConfirmDeletes: p.Confirmed}}}
		r.target = &target{cluster: cluster, policy: syncPolicy(p.Policy), mapping: m.Mapping}
		r.tenant, r.hasher = clusters[record.Tenant], m.Hasher
		return nil
	})
	if p.Dead() {
		return modeltest.Report{}
	}
	report := modeltest.Report{Decisions: result.Decisions, Unchanged: result.Counts.Unchanged, GuardID: result.PlanID}
	switch result.Outcome {
	case record.Completed, record.CompletedWithErrors, record.Guarded:
		report.Decided = true
	default:
		report.Failed = result.Message
	}
	return report
}

func syncPolicy(p modeltest.Policy) *policy.SyncPolicy {
	made := &policy.SyncPolicy{Spec: policy.SyncPolicySpec{ConflictPolicy: p.Conflict, Explain: policy.Explain{RecordDecisions: ptr.To(!p.Silent)}}}
	made.SetDefaults()
	if !p.Absent {
		version, kind := modeltest.ConfigMaps.ToAPIVersionAndKind()
		made.Spec.Resources = []policy.Resource{{APIVersion: version, Kind: kind, Direction: p.Direction, Selector: p.Selector()}}
	}
	return made
}

func encode(v any) []byte {
	raw, err := json.Marshal(v)
	if err != nil {
		panic(err) // it was decoded from JSON, or is made of strings
	}
	return raw
}
