package scenario

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"
)

// lookEvery is how often an expectation with a time is looked at.
const lookEvery = 100 * time.Millisecond

// seenKey is an object on one side.
type seenKey struct {
	side string
	ref  Ref
}

// version is an object in one of its states.
type version struct {
	uid             types.UID
	resourceVersion string
}

func (r *run) mark(ctx context.Context, s *side, ref Ref) error {
	object, err := s.get(ctx, ref)
	if err != nil {
		return err
	}
	if object == nil {
		return errors.New("there is none to mark")
	}
	r.seen[seenKey{s.name, ref}] = versionOf(object)
	return nil
}

func versionOf(object *unstructured.Unstructured) version {
	return version{object.GetUID(), object.GetResourceVersion()}
}

// expect looks at both sides until everything holds, once if no time is given.
func (r *run) expect(ctx context.Context, want Expect) error {
	within := time.Duration(0)
	if want.Within != nil {
		within = want.Within.Duration
	}
	look := &look{run: r}
	if within == 0 {
		if err := look.at(ctx, want); err != nil {
			return err
		}
	} else {
		err := wait.PollUntilContextTimeout(ctx, lookEvery, within, true, func(ctx context.Context) (bool, error) {
			err := look.at(ctx, want)
			return len(look.found) == 0, err
		})
		if err != nil && !wait.Interrupted(err) {
			return err
		}
		if ctx.Err() != nil {
			look.found = append(look.found, ctx.Err().Error())
		} else if len(look.found) > 0 {
			look.found = append(look.found, fmt.Sprintf("(looked at for %s)", within))
		}
	}
	if err := look.found.or(); err != nil {
		return err
	}
	// Only now: an unchanged in this step is about what was seen before it.
	maps.Copy(r.seen, look.seen)
	return nil
}

// look is one look at what is on both sides.
type look struct {
	run   *run
	seen  map[seenKey]version
	found faults
}

func (l *look) at(ctx context.Context, want Expect) error {
	l.seen, l.found = map[seenKey]version{}, nil
	for _, e := range want.Tenant {
		if err := l.one(ctx, l.run.runner.tenant, e); err != nil {
			return fmt.Errorf("tenant: %w", err)
		}
	}
	for _, e := range want.Host {
		if err := l.one(ctx, l.run.runner.host, e); err != nil {
			return fmt.Errorf("host: %w", err)
		}
	}
	return nil
}

func (l *look) one(ctx context.Context, s *side, e Expectation) error {
	if e.Events != nil {
		return l.events(ctx, s, e)
	}
	ref := e.ref()
	object, err := s.get(ctx, ref)
	if err != nil {
		return fmt.Errorf("%s: %w", ref, err)
	}
	var wrong []string
	switch {
	case e.Absent != nil:
		if object != nil {
			wrong = []string{"must be absent, and is there"}
		}
	case object == nil:
		wrong = []string{"does not exist"}
	case e.Has != nil:
		wrong = differences(map[string]any(e.Has), object.Object)
	case e.Lacks != nil:
		wrong, err = present(object.Object, e.Paths)
	case e.Unchanged != nil:
		wrong, err = l.changed(seenKey{s.name, ref}, versionOf(object))
	case e.Count != nil:
		wrong, err = miscounted(object.Object, e.Path, *e.Is)
	}
	if err != nil {
		return fmt.Errorf("%s: %w", ref, err)
	}
	if object != nil {
		l.seen[seenKey{s.name, ref}] = versionOf(object)
	}
	l.tell(s, ref.String(), wrong, object)
	return nil
}

// ref is the one object that an expectation is about.
func (e Expectation) ref() Ref {
	for _, r := range []*Ref{e.Absent, e.Lacks, e.Unchanged, e.Count} {
		if r != nil {
			return *r
		}
	}
	return e.Has.ref()
}

// tell notes what is wrong with an object, and what it looks like.
func (l *look) tell(s *side, what string, wrong []string, object *unstructured.Unstructured) {
	if len(wrong) == 0 {
		return
	}
	text := s.name + " " + what + ":\n  " + strings.Join(wrong, "\n  ")
	if object != nil {
		text += "\n" + indent(yamlOf(object), "    ")
	}
	l.found = append(l.found, text)
}

func present(object map[string]any, paths []string) (wrong []string, err error) {
	for _, path := range paths {
		value, found, err := lookup(object, path)
		if err != nil {
			return nil, err
		}
		if found {
			wrong = append(wrong, fmt.Sprintf("%s: want none, got %s", path, show(value)))
		}
	}
	return wrong, nil
}

func (l *look) changed(key seenKey, now version) (wrong []string, err error) {
	before, seen := l.run.seen[key]
	if !seen {
		return nil, errors.New("unchanged since when? No earlier expect or mark has seen it")
	}
	if before != now {
		wrong = []string{fmt.Sprintf("has changed: resourceVersion %s is now %s, UID %s is now %s",
			before.resourceVersion, now.resourceVersion, before.uid, now.uid)}
	}
	return wrong, nil
}

// miscounted compares the length of the list or map at the path; nothing there
// counts as 0.
func miscounted(object map[string]any, path string, want int) (wrong []string, err error) {
	value, _, err := lookup(object, path)
	if err != nil {
		return nil, err
	}
	got := 0
	switch value := value.(type) {
	case nil:
	case []any:
		got = len(value)
	case map[string]any:
		got = len(value)
	default:
		return nil, fmt.Errorf("%s is neither a list nor a map but %s", path, show(value))
	}
	if got != want {
		wrong = []string{fmt.Sprintf("%s: want %d entries, got %d", path, want, got)}
	}
	return wrong, nil
}

// events counts the Events on the TenantCluster that have the fields.
func (l *look) events(ctx context.Context, s *side, e Expectation) error {
	list, err := s.objects.Resource(events).Namespace(hostNamespace).List(ctx, metav1.ListOptions{})
	if err != nil {
		return fmt.Errorf("listing Events: %w", err)
	}
	involved := map[string]any{"involvedObject": map[string]any{
		"kind": tenantClusterRef.Kind, "namespace": hostNamespace, "name": tenantName,
	}}
	count := 0
	var all []string
	for _, event := range list.Items {
		if len(differences(involved, event.Object)) > 0 {
			continue
		}
		if len(differences(map[string]any(e.Events), event.Object)) == 0 {
			count++
		}
		all = append(all, fmt.Sprintf("there is: %s %s %s", show(event.Object["type"]), show(event.Object["reason"]), show(event.Object["message"])))
	}
	if count != *e.Is {
		wrong := append([]string{fmt.Sprintf("want %d like %s, got %d", *e.Is, show(e.Events), count)}, all...)
		l.tell(s, "Events on "+tenantClusterRef.String(), wrong, nil)
	}
	return nil
}
