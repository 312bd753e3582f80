package scenario

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// run is one run of one file.
type run struct {
	runner *Runner
	file   *File
	// dir is the folder ${dir}.
	dir   string
	saved map[string]string
	// seen is what unchanged compares with.
	seen map[seenKey]version
	// planID is what the last pass printed.
	planID string
	// last is the last run of the binary, and made the decisions it printed.
	last *Result
	made []madeDecision
}

// steps runs the steps in order and stops at the first that fails.
func (r *run) steps(ctx context.Context) error {
	files, err := substituteAll(r.file.Files, r.values())
	if err != nil {
		return fmt.Errorf("files.%w", err)
	}
	for name, content := range files {
		if err := os.WriteFile(filepath.Join(r.dir, name), []byte(content), 0o600); err != nil {
			return err
		}
	}
	for i, step := range r.file.Steps {
		resolved, err := step.resolve(r.values())
		if err == nil {
			err = r.step(ctx, resolved)
		}
		if err != nil {
			return r.failure(i, step.verb, err)
		}
	}
	return nil
}

func (r *run) step(ctx context.Context, s Step) error {
	switch {
	case s.Apply != nil:
		return r.onObjects(*s.Apply, func(side *side, object Object) error {
			created, err := side.apply(ctx, object)
			if ref := object.ref(); created && ref.Metadata.Namespace == "" {
				r.runner.made[side] = append(r.runner.made[side], ref)
			}
			return err
		})
	case s.Patch != nil:
		return r.onObjects(*s.Patch, func(side *side, object Object) error { return side.patch(ctx, object) })
	case s.PatchStatus != nil:
		return r.onObjects(*s.PatchStatus, func(side *side, object Object) error { return side.patch(ctx, object, "status") })
	case s.Delete != nil:
		return r.onRefs(s.Delete.Refs, func(side *side, ref Ref) error { return side.delete(ctx, ref, s.Delete.GraceSeconds) })
	case s.Mark != nil:
		return r.onRefs(*s.Mark, func(side *side, ref Ref) error { return r.mark(ctx, side, ref) })
	case s.Bind != nil:
		return r.bind(ctx, *s.Bind)
	case s.ForgetHistory != nil:
		return r.forgetHistory(ctx)
	case s.Pass != nil:
		return r.pass(ctx, "pass", *s.Pass)
	case s.Plan != nil:
		return r.pass(ctx, "plan", *s.Plan)
	case s.Expect != nil:
		return r.expect(ctx, *s.Expect)
	case s.Run != nil:
		return r.other(ctx, *s.Run)
	case s.AnnotateFromLastPass != nil:
		return r.annotate(ctx)
	default:
		return r.save(ctx, s.Save)
	}
}

// onObjects does something with each object, the tenant's first.
func (r *run) onObjects(objects Objects, do func(*side, Object) error) error {
	for _, object := range objects.Tenant {
		if err := do(r.runner.tenant, object); err != nil {
			return fmt.Errorf("tenant %s: %w", object.ref(), err)
		}
	}
	for _, object := range objects.Host {
		if err := do(r.runner.host, object); err != nil {
			return fmt.Errorf("host %s: %w", object.ref(), err)
		}
	}
	return nil
}

func (r *run) onRefs(refs Refs, do func(*side, Ref) error) error {
	for _, ref := range refs.Tenant {
		if err := do(r.runner.tenant, ref); err != nil {
			return fmt.Errorf("tenant %s: %w", ref, err)
		}
	}
	for _, ref := range refs.Host {
		if err := do(r.runner.host, ref); err != nil {
			return fmt.Errorf("host %s: %w", ref, err)
		}
	}
	return nil
}

func (r *run) bind(ctx context.Context, b Bind) error {
	for _, binding := range b.Tenant {
		if err := r.runner.tenant.bind(ctx, binding); err != nil {
			return fmt.Errorf("tenant %s: %w", binding.Ref, err)
		}
	}
	for _, binding := range b.Host {
		if err := r.runner.host.bind(ctx, binding); err != nil {
			return fmt.Errorf("host %s: %w", binding.Ref, err)
		}
	}
	return nil
}

func (r *run) forgetHistory(ctx context.Context) error {
	return r.runner.host.objects.Resource(syncDecisions).Namespace(hostNamespace).
		DeleteCollection(ctx, metav1.DeleteOptions{}, metav1.ListOptions{})
}

// annotate confirms the plan that the last pass withheld.
func (r *run) annotate(ctx context.Context) error {
	if r.planID == "" {
		return errors.New("the last pass printed no planID")
	}
	return r.runner.host.patch(ctx, Object{
		"apiVersion": tenantClusterRef.APIVersion, "kind": tenantClusterRef.Kind,
		"metadata": map[string]any{"namespace": hostNamespace, "name": tenantName,
			"annotations": map[string]any{confirmAnnotation: r.planID}},
	})
}

// save reads values for ${}.
func (r *run) save(ctx context.Context, values map[string]Saved) error {
	for key, from := range values {
		object, err := r.runner.side(from.Side).get(ctx, from.Ref)
		if err != nil {
			return fmt.Errorf("%s: %w", key, err)
		}
		if object == nil {
			return fmt.Errorf("%s: there is no %s on the %s", key, from.Ref, from.Side)
		}
		value, found, err := lookup(object.Object, from.Path)
		if err != nil {
			return fmt.Errorf("%s: %w", key, err)
		}
		if !found {
			return fmt.Errorf("%s: %s has no %s:\n%s", key, from.Ref, from.Path, yamlOf(object))
		}
		r.saved[key] = fmt.Sprint(value)
	}
	return nil
}

func (r *Runner) side(name string) *side {
	if name == sideHost {
		return r.host
	}
	return r.tenant
}

// binary runs the binary with the file's environment and env.
func (r *run) binary(ctx context.Context, env map[string]string, args ...string) (err error) {
	r.last, r.made = nil, nil
	r.last, err = r.aside(ctx, env, args...)
	return err
}

// aside runs the binary as binary does, and leaves no trace of that in the run.
func (r *run) aside(ctx context.Context, env map[string]string, args ...string) (*Result, error) {
	all := map[string]string{"SYNCPASS_NAMESPACE": hostNamespace, "SYNCPASS_TENANT": tenantName}
	fromFile, err := substituteAll(r.file.Env, r.values())
	if err != nil {
		return nil, fmt.Errorf("env.%w", err)
	}
	maps.Copy(all, fromFile)
	maps.Copy(all, env)
	return r.runner.env.Binary.Run(ctx, all, args...)
}
