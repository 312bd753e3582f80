package apply

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
	coordinationv1client "k8s.io/client-go/kubernetes/typed/coordination/v1"
	corev1client "k8s.io/client-go/kubernetes/typed/core/v1"

	"github.com/syncpass/syncpass/pass/kinds"
	"github.com/syncpass/syncpass/pass/plan"
	"github.com/syncpass/syncpass/record"
)

// giveUpAfter is how many writes in a row may find no API server before the rest is left to the next pass.
const giveUpAfter = 5

// finishWithin is how long the writes in flight may take once the pass was stopped or its time is over; what has no
// answer then has an unknown outcome.
const finishWithin = time.Second

// ErrNoAnswer is the cause of a Report whose remaining steps were given up because an API server did not answer.
var ErrNoAnswer = errors.New("the API server does not answer")

// Writer writes pairs.
type Writer struct {
	// Clients and Resources lead to each side's objects.
	Clients   map[record.Side]dynamic.Interface
	Resources map[record.Side]map[schema.GroupVersionKind]schema.GroupVersionResource
	// Host and Tenant lead to the Secrets with Pods' tokens and to where those come from; TenantCA is the CA that Pods
	// trust the tenant's API server by where the tenant publishes none. They are needed for Pods only.
	Host     corev1client.SecretsGetter
	Tenant   TokenSource
	TenantCA []byte
	// Leases leads to the Leases of the tenant's stub Nodes. It is needed for Nodes only.
	Leases coordinationv1client.LeasesGetter
	// Concurrency is how many writes may be in flight.
	Concurrency int
	// Fence is asked before each write; its error stops all that follow. A write already sent is let finish.
	Fence func() error
	// Agree says what to remember of a write that has landed, as soon as it has, by many goroutines at once. The objects of
	// the step and of the result are let go then, since what a pass holds is to grow with what is in flight. Nil keeps them.
	Agree func(*Result) *record.Baseline
	// Done is told each result as it comes, from many goroutines at once; nil for nobody.
	Done func(Result)

	silent atomic.Int32 // writes in a row that found no API server
	cas    sync.Map     // the tenant's CA by namespace, as far as it was asked for
}

// Execute carries out the steps of a plan: creates and updates first, what others refer to before what refers to it,
// then deletes in the reverse order. It returns a result for every step, Skips included, in the plan's order. err is the
// cause for which steps were not attempted, if any were not: the fence's, the context's, or ErrNoAnswer.
func (w *Writer) Execute(ctx context.Context, steps []plan.Step) ([]Result, error) {
	results := make([]Result, len(steps))
	waves := map[int][]int{}
	for i := range steps {
		results[i] = Result{Step: &steps[i], Decision: steps[i].Decision}
		if steps[i].Writes() {
			waves[wave(&steps[i])] = append(waves[wave(&steps[i])], i)
		}
	}
	order := make([]int, 0, len(waves))
	for number := range waves {
		order = append(order, number)
	}
	slices.Sort(order)

	sent, cancel := context.WithCancel(context.WithoutCancel(ctx))
	defer cancel()
	defer context.AfterFunc(ctx, func() { time.AfterFunc(finishWithin, cancel) })()
	var once sync.Once
	var stopped error
	made := map[record.Key]string{}
	for _, number := range order {
		turn := waves[number]
		w.atOnce(len(turn), func(at int) {
			i := turn[at]
			if err := w.mayWrite(ctx); err != nil {
				once.Do(func() { stopped = err })
				results[i].Decision = skipped(steps[i].Decision, record.NotAttempted, "not attempted: "+err.Error()+"; the next pass does it", nil)
				return
			}
			if steps[i].Complete != nil {
				steps[i].Want = steps[i].Complete(addresses(made, steps[i].Awaits))
			}
			if awaitsNode(made, &steps[i]) {
				results[i].Decision = skipped(steps[i].Decision, record.Raced, "Node "+steps[i].Node+" was not made in the tenant; the next pass looks again", nil)
				return
			}
			w.execute(sent, &results[i])
			w.conclude(&results[i])
			if w.Done != nil {
				w.Done(results[i])
			}
		})
		for _, i := range turn {
			if results[i].Applied {
				made[steps[i].Key] = results[i].address
			}
		}
	}
	if stopped == nil && sent.Err() != nil {
		stopped = context.Cause(ctx) // nothing was left to attempt, but what was in flight was given up
	}
	return results, stopped
}

// atOnce calls f for 0 to n-1, as many at once as there may be, in goroutines that stay: a new one would have to grow its
// stack for each request.
func (w *Writer) atOnce(n int, f func(int)) {
	var next atomic.Int64
	var group sync.WaitGroup
	for range min(max(w.Concurrency, 1), n) {
		group.Go(func() {
			for at := int(next.Add(1)) - 1; at < n; at = int(next.Add(1)) - 1 {
				f(at)
			}
		})
	}
	group.Wait()
}

// wave is a step's place in the order of writing.
func wave(step *plan.Step) int {
	if step.Action == record.Delete {
		return int(kinds.Workload) + 1 + int(kinds.Workload-step.Weight)
	}
	return int(step.Weight)
}

func (w *Writer) mayWrite(ctx context.Context) error {
	if err := context.Cause(ctx); err != nil {
		return err
	}
	if w.silent.Load() >= giveUpAfter {
		return ErrNoAnswer
	}
	return w.fenced()
}

// execute carries out one step. Its context is not the pass's: a write that has been sent is let finish for a while, so
// that its outcome is known and recorded.
func (w *Writer) execute(ctx context.Context, result *Result) {
	defer func() {
		// One bad object must not stop the others.
		if cause := recover(); cause != nil {
			result.Written, result.Applied, result.Unknown = nil, false, true
			result.Decision = skipped(result.Step.Decision, record.Rejected, "carrying it out failed; the next pass finds out whether it landed", fmt.Errorf("panic: %v", cause))
		}
	}()
	errs := []error{w.before(ctx, result)}
	if errors.Is(errs[0], errFenced) {
		return
	}
	if errs[0] == nil {
		errs[0] = w.first(ctx, result)
	}
	for _, write := range result.Step.Then {
		// What is reported to the other side does not hang on what this side takes: a resize that is refused must not keep a
		// Pod's status from its tenant.
		if errs[0] == nil || write.Side != result.Step.Side {
			errs = append(errs, w.then(ctx, result, write))
		}
	}
	w.answered(errs)
	if errors.Join(errs...) == nil {
		result.Applied = true
		return
	}
	result.Written = nil
	for _, err := range slices.Backward(errs) {
		if err != nil {
			unknown := false
			result.Decision, unknown = judge(result.Step, err) // the first error's in the end
			result.Unknown = result.Unknown || unknown
		}
	}
}

// answered counts the steps in a row that a side gave no answer to.
func (w *Writer) answered(errs []error) {
	if slices.ContainsFunc(errs, noAnswer) {
		w.silent.Add(1)
	} else {
		w.silent.Store(0)
	}
}

// first makes the write that a step is named after.
func (w *Writer) first(ctx context.Context, result *Result) error {
	step := result.Step
	var written *unstructured.Unstructured
	var err error
	switch {
	case step.Action == record.Create && step.Tokens != nil:
		written, err = w.createWithTokens(ctx, result)
	case step.Action == record.Create && step.OfNode():
		written, err = w.createNode(ctx, result)
	case step.Action == record.Create:
		written, err = w.create(ctx, result)
	case step.Tokens != nil:
		err = w.renewTokens(ctx, step)
	case step.Action == record.Update && step.Replace:
		written, err = w.replace(ctx, result)
	case step.Action == record.Update:
		written, err = w.update(ctx, step.Side, step, step.Want, step.Subresource)
	default:
		err = w.delete(ctx, step)
	}
	if written != nil {
		result.wrote(step.Side, written)
	}
	return err
}

// then makes a further write of a step, over what the writes before it left.
func (w *Writer) then(ctx context.Context, result *Result, write plan.Write) error {
	object := write.Object
	if before := result.Written[write.Side]; before != nil {
		object = object.DeepCopy()
		object.SetResourceVersion(before.GetResourceVersion())
	}
	written, err := w.update(ctx, write.Side, result.Step, object, write.Subresource)
	if err != nil {
		return err
	}
	result.wrote(write.Side, written)
	return nil
}

// update writes an object that is there, or the part of it that a subresource is.
func (w *Writer) update(ctx context.Context, side record.Side, step *plan.Step, object *unstructured.Unstructured, subresource string) (*unstructured.Unstructured, error) {
	if subresource == plan.Binding {
		return w.bind(ctx, side, step, object)
	}
	return w.resource(side, step).Update(ctx, object, updated, subresources(subresource)...)
}

var updated = metav1.UpdateOptions{FieldManager: kinds.FieldManager}

func subresources(name string) []string {
	if name == "" {
		return nil
	}
	return []string{name}
}

// addresses are the cluster IPs of the awaited Services that this plan has made, by name.
func addresses(made map[record.Key]string, awaited []record.Key) map[string]string {
	found := map[string]string{}
	for _, key := range awaited {
		if address := made[key]; address != "" {
			found[key.Name] = address
		}
	}
	return found
}

// create makes the object that a step wants, or one without what its kind can give up where the API server refuses just
// that.
func (w *Writer) create(ctx context.Context, result *Result) (*unstructured.Unstructured, error) {
	step := result.Step
	made, err := w.resource(step.Side, step).Create(ctx, step.Want, created)
	yields, ok := kinds.For(step.Key.GroupKind()).(kinds.Yields)
	if !ok || !apierrors.IsInvalid(err) {
		return made, err
	}
	yielded, note := yields.Yield(step.Want, refusedFields(err))
	if yielded == nil {
		return nil, err
	}
	if made, err = w.resource(step.Side, step).Create(ctx, yielded, created); err == nil {
		result.Decision.Message += "; " + note
	}
	return made, err
}

var created = metav1.CreateOptions{FieldManager: kinds.FieldManager}

// refusedFields are the fields that an API server named in its refusal.
func refusedFields(err error) []string {
	var answer apierrors.APIStatus
	if !errors.As(err, &answer) || answer.Status().Details == nil {
		return nil
	}
	var fields []string
	for _, cause := range answer.Status().Details.Causes {
		fields = append(fields, cause.Field)
	}
	return fields
}

// replace deletes a mirror that the API does not let change, and makes it anew. A pass that ends in between leaves a
// deleted mirror, which the next pass makes again. A new one that the API refuses must not cost the old one, so a dry run
// comes first; that it finds the name taken is the last thing it can find.
func (w *Writer) replace(ctx context.Context, result *Result) (*unstructured.Unstructured, error) {
	step := result.Step
	_, err := w.resource(step.Side, step).Create(ctx, step.Want, metav1.CreateOptions{
		FieldManager: kinds.FieldManager, DryRun: []string{metav1.DryRunAll},
	})
	if err != nil && !apierrors.IsAlreadyExists(err) {
		return nil, err
	}
	if err := w.remove(ctx, step); err != nil {
		return nil, err
	}
	return w.create(ctx, result)
}

// delete removes an object, after the other side has confirmed that its counterpart is gone: a list may be old, a GET of
// one object at the most recent version is not.
func (w *Writer) delete(ctx context.Context, step *plan.Step) error {
	confirm := w.confirmGone
	switch {
	case step.OfNode() && step.Reason == record.TenantDeleted:
		confirm = w.confirmEmpty
	case step.OfNode(), step.Reason == record.HostWins: // whatever the other side has
		return w.remove(ctx, step)
	case step.Reason != record.TenantDeleted && step.Reason != record.Resolved && step.Side == record.Host:
		return w.remove(ctx, step)
	}
	if err := confirm(ctx, step); err != nil {
		return err
	}
	return w.remove(ctx, step)
}

func (w *Writer) remove(ctx context.Context, step *plan.Step) error {
	uid, version := step.Have.GetUID(), step.Have.GetResourceVersion()
	background := metav1.DeletePropagationBackground
	return w.resource(step.Side, step).Delete(ctx, step.Have.GetName(), metav1.DeleteOptions{
		Preconditions:      &metav1.Preconditions{UID: &uid, ResourceVersion: &version},
		PropagationPolicy:  &background,
		GracePeriodSeconds: step.GraceSeconds,
	})
}

// resource is the client for a step's kind on a side, in the namespace where the object is or belongs.
func (w *Writer) resource(side record.Side, step *plan.Step) dynamic.ResourceInterface {
	namespace := step.HostNamespace
	if side == record.Tenant {
		namespace = step.TenantNamespace
	}
	kind := schema.FromAPIVersionAndKind(step.APIVersion, step.Kind)
	return w.Clients[side].Resource(w.Resources[side][kind]).Namespace(namespace)
}

// Probe asks the host what it would make of each undecided mirror, by a dry run of the update. A refused dry run leaves
// a nil object, and so the difference stands.
func (w *Writer) Probe(ctx context.Context, undecided []plan.Step) map[record.Key]*unstructured.Unstructured {
	probes := make(map[record.Key]*unstructured.Unstructured, len(undecided))
	var lock sync.Mutex
	w.atOnce(len(undecided), func(i int) {
		step := &undecided[i]
		made, err := w.resource(record.Host, step).Update(ctx, step.Want, metav1.UpdateOptions{
			FieldManager: kinds.FieldManager, DryRun: []string{metav1.DryRunAll},
		})
		if err != nil {
			made = nil
		}
		lock.Lock()
		defer lock.Unlock()
		probes[step.Key] = made
	})
	return probes
}
