package lease

import (
	"context"
	"errors"
	"fmt"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
)

// ErrLost is the cause (context.Cause) with which the context of Keep ends when the Lease is lost. It matches
// context.Canceled too, so that requests which end with it do not look like an API server that does not answer.
var ErrLost = fmt.Errorf("the lease was lost: %w", context.Canceled)

const (
	// renewals is how many times a Lease is renewed in its duration; one request for it gets as long.
	renewals = 3
	// retries is how many times a failed renewal is repeated in the time between two.
	retries = 10
)

// Keep renews the Lease in the background at a third of its duration, until Release, which must follow; the end of ctx
// does not end the renewals, because a pass that was stopped still has to record what it did. The context returned ends
// with ctx, at Release, or with the cause ErrLost when the Lease is lost: another has taken it, it was deleted, its
// duration passed without a successful renewal, or check failed. Keep is called once at most.
//
// check, which may be nil, runs after each renewal, in the background, with a context that ends after a third of the
// duration. It is where the pass looks whether the SyncDecision has been taken over. Its error costs the Lease, so it
// should return none for what the next check may well answer.
//
// A pass shorter than a third of the duration renews nothing.
func (l *Lease) Keep(ctx context.Context, check func(context.Context) error) context.Context {
	held, cancel := context.WithCancelCause(ctx)
	background, stop := context.WithCancel(context.WithoutCancel(ctx))
	stopped := make(chan struct{})
	go func() {
		defer close(stopped)
		if err := l.renew(background, check); err != nil {
			l.lose()
			cancel(err)
		}
	}()
	l.stop = func() {
		stop()
		cancel(nil)
		<-stopped
	}
	return held
}

// renew returns nil when ctx ends, and an error that wraps ErrLost when the Lease is lost.
func (l *Lease) renew(ctx context.Context, check func(context.Context) error) error {
	wait := l.duration / renewals
	var failed error
	for {
		// Never beyond validUntil: the pass is to end then, not when the next renewal happens to be due.
		if !pause(ctx, min(wait, time.Until(l.until()))) {
			return nil
		}
		if !l.Valid() {
			if failed == nil {
				failed = fmt.Errorf("this process stood still for longer than %s", l.duration)
			}
			return fmt.Errorf("%w: lease %s was not renewed in time: %w", ErrLost, l.options.Name, failed)
		}
		err := l.within(ctx, l.renewOnce)
		switch {
		case ctx.Err() != nil:
			return nil
		case errors.Is(err, ErrLost):
			return err
		case err != nil:
			failed, wait = err, l.duration/(renewals*retries)
			continue
		}
		failed, wait = nil, l.duration/renewals
		if check == nil {
			continue
		}
		if err := l.within(ctx, check); err != nil && ctx.Err() == nil {
			return fmt.Errorf("%w: %w", ErrLost, err)
		}
	}
}

// renewOnce writes the time of now into the Lease. The Lease stands from when the request was begun, since that is the
// latest time that the API server cannot have written before.
func (l *Lease) renewOnce(ctx context.Context) error {
	start := time.Now()
	err := l.write(ctx, func(spec *coordinationv1.LeaseSpec) { spec.RenewTime = ptr.To(metav1.NewMicroTime(start)) })
	if err != nil {
		return err
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.validUntil = start.Add(l.duration)
	return nil
}

// write changes the Lease by compare-and-swap. A conflict need not mean that the Lease is lost: somebody may have
// labelled it, or our last write, given up as failed, may have arrived. So it is read again and written once more if it
// is still ours. The error wraps ErrLost if it is not.
func (l *Lease) write(ctx context.Context, change func(*coordinationv1.LeaseSpec)) error {
	object := l.object.DeepCopy()
	change(&object.Spec)
	written, err := l.client.Update(ctx, object, metav1.UpdateOptions{})
	if apierrors.IsConflict(err) || apierrors.IsNotFound(err) {
		object, err = l.client.Get(ctx, l.options.Name, metav1.GetOptions{})
		switch {
		case apierrors.IsNotFound(err):
			return fmt.Errorf("%w: lease %s was deleted", ErrLost, l.options.Name)
		case err != nil:
			return err
		case !l.isOurs(object):
			return fmt.Errorf("%w: lease %s was taken by %q", ErrLost, l.options.Name, ptr.Deref(object.Spec.HolderIdentity, ""))
		}
		object = object.DeepCopy()
		change(&object.Spec)
		written, err = l.client.Update(ctx, object, metav1.UpdateOptions{})
	}
	if err != nil {
		return err
	}
	l.object = written
	return nil
}

// isOurs says whether the Lease was taken by this process, and not by another since.
func (l *Lease) isOurs(object *coordinationv1.Lease) bool {
	ours, theirs := l.object.Spec, object.Spec
	return object.UID == l.object.UID &&
		ptr.Deref(theirs.HolderIdentity, "") == l.options.Identity &&
		ptr.Equal(ours.LeaseTransitions, theirs.LeaseTransitions)
}

// within runs f with a context that ends after a third of the duration, or when the Lease ends if that is sooner.
func (l *Lease) within(ctx context.Context, f func(context.Context) error) error {
	ctx, cancel := context.WithDeadline(ctx, earlier(time.Now().Add(l.duration/renewals), l.until()))
	defer cancel()
	return f(ctx)
}

func (l *Lease) until() time.Time {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.validUntil
}

// lose makes the Lease invalid for good.
func (l *Lease) lose() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.validUntil = time.Time{}
}

func earlier(a, b time.Time) time.Time {
	if a.Before(b) {
		return a
	}
	return b
}

// pause waits, and says whether ctx let it.
func pause(ctx context.Context, d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return false
	case <-timer.C:
		return true
	}
}
