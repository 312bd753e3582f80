package apply

import (
	"context"
	"errors"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/syncpass/syncpass/record"
)

// errFenced says that a pass lost its right to write between two writes of one step. What that came to is in the result.
var errFenced = errors.New("the pass may write no more")

// before makes the write that must come first, and asks the fence once more: two requests may outlive a Lease that one
// does not.
func (w *Writer) before(ctx context.Context, result *Result) error {
	write := result.Step.Before
	if write == nil {
		return nil
	}
	err := w.then(ctx, result, *write)
	if apierrors.IsNotFound(err) {
		// Somebody was quicker, as with a conflict; that the step's own object is missing says something else.
		return apierrors.NewConflict(schema.GroupResource{Resource: result.Step.Kind}, write.Object.GetName(), fmt.Errorf("the %s object is gone", write.Side))
	}
	if err != nil {
		return err
	}
	if err := w.fenced(); err != nil {
		result.Written = nil
		result.Decision = skipped(result.Step.Decision, record.NotAttempted, "not attempted: "+err.Error()+"; the annotation is taken off, and nothing is settled", nil)
		return errFenced
	}
	return nil
}

func (w *Writer) fenced() error {
	if w.Fence == nil {
		return nil
	}
	return w.Fence()
}
