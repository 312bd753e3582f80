package apply

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/syncpass/syncpass/pass/kinds"
	"github.com/syncpass/syncpass/pass/plan"
	"github.com/syncpass/syncpass/record"
)

// errStillThere says that the other side has the object after all.
var errStillThere = errors.New("the other side has the object after all")

// unconfirmedError is a side's refusal to say whether an object is gone.
type unconfirmedError struct {
	side record.Side
	err  error
}

func (e *unconfirmedError) Error() string {
	return fmt.Sprintf("asking the %s whether the object is gone: %v", e.side, e.err)
}

func (e *unconfirmedError) Unwrap() error { return e.err }

// confirmGone asks the other side once more. For a mirror to go, the tenant object must be gone, being deleted, or of
// those that do not cross or that the policy leaves out; for a tenant object to go, its mirror must be gone.
func (w *Writer) confirmGone(ctx context.Context, step *plan.Step) error {
	side, name := record.Tenant, step.TenantName
	if step.Side == record.Tenant {
		side, name = record.Host, step.HostName
	}
	object, err := w.resource(side, step).Get(ctx, name, metav1.GetOptions{})
	switch {
	case apierrors.IsNotFound(err) && !apierrors.IsUnexpectedServerError(err):
		// A 404 that is no Status comes from something that does not serve the kind, and says nothing about the object.
		return nil
	case err != nil:
		return &unconfirmedError{side, err}
	case side == record.Host:
		return errStillThere
	case object.GetDeletionTimestamp() != nil:
		return nil
	}
	kind := kinds.With(step.Key.GroupKind(), step.Rules)
	if !kinds.Crosses(kind, object) {
		return nil
	}
	return errStillThere
}

// judge turns the error of a write into the Skip that its step comes to, and says whether the write may have landed all
// the same.
//
//	error                                      reason       error field  may have landed
//	the tenant does not say what is gone       Rejected     the cause    no
//	the tenant grants no token                 Rejected     the cause    no
//	conflict, not found, already exists        Raced        -            no
//	namespace terminating                      Terminating  -            no
//	422 over an immutable field                Immutable    the cause    no
//	any other refusal: 4xx, quota, webhook     Rejected     the cause    no
//	5xx, timeout, connection lost              Rejected     the cause    yes
func judge(step *plan.Step, err error) (record.Decision, bool) {
	d := step.Decision
	var unconfirmed *unconfirmedError
	var ungranted *ungrantedError
	switch {
	case errors.As(err, &unconfirmed):
		return skipped(d, record.Rejected, "the other side does not say whether its counterpart is gone, so nothing is deleted; the next pass asks again", err), false
	case errors.As(err, &ungranted):
		return skipped(d, record.Rejected, "the tenant grants no token for its Pod to mount; make the ServiceAccount again, or delete the Pod; tried again by the next pass", err), false
	case errors.Is(err, errStillThere):
		return skipped(d, record.Raced, "its counterpart is there again, so nothing is deleted; the next pass looks again", nil), false
	case apierrors.IsAlreadyExists(err) && step.Replace:
		return skipped(d, record.Terminating, "the old mirror is still being deleted on the host; the new one is made once it is gone", nil), false
	case apierrors.IsAlreadyExists(err):
		return skipped(d, record.Raced, "an object has appeared at this name meanwhile; the next pass looks again", nil), false
	case apierrors.HasStatusCause(err, corev1.NamespaceTerminatingCause):
		return skipped(d, record.Terminating, "its namespace is being deleted", nil), false
	case apierrors.IsConflict(err), apierrors.IsNotFound(err) && step.Action != record.Create:
		return skipped(d, record.Raced, fmt.Sprintf("somebody else wrote the %s object meanwhile; the next pass looks again", d.Side), nil), false
	case apierrors.IsInvalid(err) && strings.Contains(err.Error(), "immutable"):
		return skipped(d, record.Immutable, fmt.Sprintf("the %s does not let this field change; delete the mirror to have it made anew", d.Side), err), false
	case uncertain(err):
		return skipped(d, record.Rejected, fmt.Sprintf("%s on the %s got no certain answer; the next pass finds out whether it landed", d.Action, d.Side), err), true
	default:
		return skipped(d, record.Rejected, fmt.Sprintf("the %s refused to %s it; tried again by the next pass", d.Side, strings.ToLower(string(d.Action))), err), false
	}
}

// uncertain says that a write may have landed although it failed: no API server answered, or one that had trouble of
// its own.
func uncertain(err error) bool {
	var answer apierrors.APIStatus
	return noAnswer(err) || errors.As(err, &answer) && answer.Status().Code >= http.StatusInternalServerError
}

// noAnswer says that no API server answered at all.
func noAnswer(err error) bool {
	var answer apierrors.APIStatus
	return err != nil && !errors.As(err, &answer) && !errors.Is(err, errStillThere)
}

// skipped is the decision that a step came to instead of its own.
func skipped(d record.Decision, reason record.Reason, message string, err error) record.Decision {
	d.Action, d.Reason, d.Message = record.Skip, reason, message
	if err != nil {
		d.Error = record.Plain(err.Error(), record.MaxCause)
	}
	return d
}
