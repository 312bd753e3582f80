package pass

import (
	"cmp"
	"context"
	"fmt"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"

	"github.com/syncpass/syncpass/pass/plan"
	"github.com/syncpass/syncpass/pass/snapshot"
	"github.com/syncpass/syncpass/record"
)

// Conflict is a disagreement of one pair that waits for a person.
type Conflict struct {
	// Reason is why nobody else can decide: Conflict, NoHistory or HistoryOff. Message says it in a sentence.
	Reason  record.Reason `json:"reason"`
	Message string        `json:"message"`
	// Since is when a pass first recorded it; nil where none has.
	Since *metav1.Time `json:"since"`
	// Seen stands for the two contents that are in conflict: another content, another Seen.
	Seen string `json:"seen"`
	// Settle are the commands that settle it, for the tenant and for the host.
	Settle []string `json:"settle"`

	// What a person is shown before the conflict is settled.
	Kind            string       `json:"-"`
	TenantNamespace string       `json:"-"`
	TenantName      string       `json:"-"`
	HostName        string       `json:"-"`
	TenantState     string       `json:"-"`
	HostState       string       `json:"-"`
	Differences     []Difference `json:"-"`

	key          record.Key
	tenant, host *record.Version
}

// Verdict is what a person says about conflicts that they have seen.
type Verdict struct {
	// Keep is the side whose content is to stay.
	Keep record.Side
	// Conflicts are those that the person saw, from FindConflicts.
	Conflicts []Conflict
	// By is who says so; who that is to the host is found out besides. Why is the reason, which may be empty.
	By, Why string
}

// FindConflicts looks at the open conflicts of a tenant without writing anything: at all of them, sorted by kind, namespace
// and name, where kind is empty, else at that of one object, which is an InvalidError where it has none.
func FindConflicts(ctx context.Context, o Options, kind string, object types.NamespacedName) ([]Conflict, error) {
	return look(ctx, o, func(r *run, ctx context.Context, taken plan.Snapshot, resources snapshot.Resources) ([]Conflict, error) {
		if kind == "" {
			return r.conflicts(ctx, taken, resources, nil)
		}
		resource, err := findKind(r.target.policy, resources, kind)
		if err != nil {
			return nil, err
		}
		group := schema.FromAPIVersionAndKind(resource.APIVersion, resource.Kind)
		asked := record.Key{Group: group.Group, Kind: group.Kind, Namespace: object.Namespace, Name: object.Name}
		if err := available(taken, asked); err != nil {
			return nil, err
		}
		return r.conflicts(ctx, taken, resources, &asked)
	})
}

// conflicts are all open ones, or the one of the pair that is asked about.
func (r *run) conflicts(ctx context.Context, taken plan.Snapshot, resources snapshot.Resources, asked *record.Key) ([]Conflict, error) {
	in, planned := r.planFrom(ctx, r.input(taken), r.writer(resources))
	if planned.OtherTenant {
		return nil, &InvalidError{Err: fmt.Errorf("which conflicts there are is not known while a guard doubts that this is the recorded tenant: %s", cmp.Or(planned.GuardMessage, "see `runner plan`"))}
	}
	open, next := map[record.Key]*plan.Step{}, "leaves it as it is"
	for i := range planned.Steps {
		step := &planned.Steps[i]
		if asked != nil && step.Key == *asked {
			next = fmt.Sprintf("decides %s (%s): %s", step.Action, step.Reason, step.Message)
		}
		if step.Held != "" && (asked == nil || step.Key == *asked) {
			open[step.Key] = step
		}
	}
	if asked != nil && len(open) == 0 {
		return nil, &InvalidError{Err: fmt.Errorf("%s %s is not in conflict, so there is nothing to resolve; the next pass %s", asked.Kind, types.NamespacedName{Namespace: asked.Namespace, Name: asked.Name}, next)}
	}
	var conflicts []Conflict
	for _, view := range plan.Views(in, func(key record.Key) bool { return open[key] != nil }) {
		conflicts = append(conflicts, r.conflict(open[view.Key], view))
	}
	return conflicts, nil
}

// conflict is what a person has to know about a pair that is held.
func (r *run) conflict(step *plan.Step, view plan.View) Conflict {
	c := Conflict{
		Reason: step.Held, Message: step.Message, Seen: r.seen(view),
		Kind: view.Key.Kind, TenantNamespace: view.Key.Namespace, TenantName: view.Key.Name, HostName: view.HostName,
		TenantState: string(view.TenantState), HostState: string(view.HostState), Differences: differences(view),
		key: view.Key, tenant: view.TenantVersion, host: view.HostVersion,
	}
	if standing := view.State.Standing; standing != nil && standing.Reason == step.Held {
		since := metav1.NewTime(standing.Since)
		c.Since = &since
	}
	kind := strings.ToLower(view.Key.Kind)
	if view.Key.Group != "" {
		kind += "." + view.Key.Group
	}
	for _, side := range []record.Side{record.Tenant, record.Host} {
		c.Settle = append(c.Settle, fmt.Sprintf("runner resolve %s %s/%s --keep %s --seen %s -n %s --tenant %s",
			kind, view.Key.Namespace, view.Key.Name, side, c.Seen, r.Namespace, r.Tenant))
	}
	return c
}

// seen is a short name of the two contents of a pair, by which nobody can guess them.
func (r *run) seen(view plan.View) string {
	side := func(version *record.Version) any {
		if version == nil {
			return nil
		}
		return []any{string(version.UID), version.Hash.String()}
	}
	return r.hasher.Hash(map[string]any{"tenant": side(view.TenantVersion), "host": side(view.HostVersion)}).String()[:12]
}

// Resolve settles conflicts as a person says who has seen them. It is a pass over their pairs alone, under the Lease and
// by the same rules; of a conflict that is another one by now, or none, nothing is written. Every failure is in the result,
// and so is every pair that was not settled: as a Skip, or not at all where it is in agreement by now.
func Resolve(ctx context.Context, o Options, v Verdict) Result {
	return through(ctx, o, func(r *run, ctx context.Context) error {
		if user := userOf(ctx, r.Host.Dynamic()); user != "" {
			v.By += " (on the host: " + user + ")"
		}
		r.verdict = &v
		return r.load(ctx)
	})
}

// resolutions are what the planner is told of a verdict.
func (v *Verdict) resolutions() map[record.Key]plan.Resolution {
	all := make(map[record.Key]plan.Resolution, len(v.Conflicts))
	for _, c := range v.Conflicts {
		all[c.key] = plan.Resolution{Keep: v.Keep, Tenant: c.tenant, Host: c.host, By: v.By, Why: v.Why}
	}
	return all
}

// userOf is who the host takes this process for; empty where it does not say. Every authenticated user may ask
// (https://kubernetes.io/docs/reference/access-authn-authz/authentication/#self-subject-review).
func userOf(ctx context.Context, host dynamic.Interface) string {
	review := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "authentication.k8s.io/v1", "kind": "SelfSubjectReview"}}
	answer, err := host.Resource(schema.GroupVersionResource{Group: "authentication.k8s.io", Version: "v1", Resource: "selfsubjectreviews"}).
		Create(ctx, review, metav1.CreateOptions{})
	if err != nil {
		return ""
	}
	name, _, _ := unstructured.NestedString(answer.Object, "status", "userInfo", "username") // no name is as good as no answer
	return name
}

// recordLast is the summary of the last pass, and how many conflicts wait: of a pass, its own; a verdict on some pairs is no
// pass, so the last one's summary stays, and what waits is counted in the history.
func (r *run) recordLast() (record.LastPass, int32) {
	last := record.LastPass{
		ID: r.result.ID, StartTime: r.result.StartTime, EndTime: metav1.NewMicroTime(time.Now()),
		Outcome: r.result.Outcome, Message: r.result.Message, Counts: r.result.Counts,
	}
	if r.verdict == nil {
		return last, r.recording.waiting
	}
	if before := r.loaded.Status.LastPass; before != nil {
		last = *before
	}
	var waiting int32
	for _, state := range r.recording.history.All() {
		if state.Standing != nil && waits(state.Standing.Reason) {
			waiting++
		}
	}
	return last, waiting
}

// waits says whether a pair that is held for a reason waits for a person.
func waits(reason record.Reason) bool { return reason == record.Conflict || reason == record.NoHistory }
