package lease

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
)

// Client is what is needed of the API: coordinationv1client.LeaseInterface for the Lease's namespace.
type Client interface {
	Get(ctx context.Context, name string, opts metav1.GetOptions) (*coordinationv1.Lease, error)
	Create(ctx context.Context, lease *coordinationv1.Lease, opts metav1.CreateOptions) (*coordinationv1.Lease, error)
	Update(ctx context.Context, lease *coordinationv1.Lease, opts metav1.UpdateOptions) (*coordinationv1.Lease, error)
}

// Options say which Lease is taken, and by whom.
type Options struct {
	// Name of the Lease: see Name.
	Name string
	// Identity of the holder, which must differ between any two passes that could overlap.
	Identity string
	// Duration is how long the Lease stands without a renewal, whole seconds, rounded up. It must be at least 1.5 times
	// the request timeout, so that no request of a dead pass outlives its Lease.
	Duration time.Duration
	// Owner becomes the only ownerReference of the Lease, so that it goes when its TenantCluster goes. Nil: none.
	Owner *metav1.OwnerReference
}

// Name returns the name of a tenant's Lease.
func Name(tenant string) string { return "syncpass-" + tenant }

// ErrHeld matches a *HeldError.
var ErrHeld = errors.New("the lease is held by another pass")

// HeldError says who holds the Lease. Holder is empty, and the times are zero, where another pass was quicker by so
// little that its name could not be read.
type HeldError struct {
	Name, Holder string
	// Since is when the holder took it, Until when it runs out unless it is renewed.
	Since, Until time.Time
}

// Error implements error.
func (e *HeldError) Error() string {
	if e.Holder == "" {
		return fmt.Sprintf("lease %s: another pass took it at the same moment: nothing needs to be done, that pass does the work", e.Name)
	}
	return fmt.Sprintf("lease %s is held by %q since %s until %s, or longer if it renews it: wait for that pass, or for the time if it is dead",
		e.Name, e.Holder, e.Since.UTC().Format(time.RFC3339), e.Until.UTC().Format(time.RFC3339))
}

// Is makes errors.Is(err, ErrHeld) true.
func (e *HeldError) Is(target error) bool { return target == ErrHeld }

// Lease is a Lease that this process has taken. Safe for concurrent use.
type Lease struct {
	client   Client
	options  Options
	duration time.Duration

	// object is the Lease as it was last written, for its resourceVersion. Only one goroutine uses it at a time: the
	// renewing one until Release has stopped it.
	object *coordinationv1.Lease

	mu sync.Mutex
	// validUntil is when the last successful renewal was begun, plus duration; zero once the Lease is lost or released.
	// It carries Go's monotonic clock, which neither a set clock nor a stopped process can hold back.
	validUntil time.Time

	// stop ends what Keep began and waits for its end. Nil before Keep.
	stop func()
}

// Acquire takes the Lease if nobody holds it: it does not exist, was released, or its last renewal is longer ago than
// the duration that its holder wrote down. That time is the holder's, so with clocks that differ a Lease can be taken
// early (the SyncDecision then decides) or late, by up to another duration. Whether somebody was quicker is the API
// server's to say.
//
// Acquire sends one read and one write, does not wait, and returns a *HeldError where another holds the Lease.
func Acquire(ctx context.Context, client Client, o Options) (*Lease, error) {
	seconds := int32((o.Duration + time.Second - 1) / time.Second)
	if seconds < 1 || o.Identity == "" {
		return nil, fmt.Errorf("lease %s: identity %q, duration %s: both must be set", o.Name, o.Identity, o.Duration)
	}
	l := &Lease{client: client, options: o, duration: time.Duration(seconds) * time.Second}

	found, err := client.Get(ctx, o.Name, metav1.GetOptions{})
	start := time.Now()
	switch {
	case apierrors.IsNotFound(err):
		found = &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Name: o.Name}}
		l.claim(found, start, seconds)
		l.object, err = client.Create(ctx, found, metav1.CreateOptions{})
	case err == nil:
		if held := heldBy(found, start); held != nil {
			return nil, held
		}
		found = found.DeepCopy()
		l.claim(found, start, seconds)
		found.Spec.LeaseTransitions = ptr.To(ptr.Deref(found.Spec.LeaseTransitions, 0) + 1)
		l.object, err = client.Update(ctx, found, metav1.UpdateOptions{})
	default:
		return nil, fmt.Errorf("reading lease %s: %w", o.Name, err)
	}
	if apierrors.IsConflict(err) || apierrors.IsAlreadyExists(err) {
		return nil, l.quicker(ctx)
	}
	if err != nil {
		if ctx.Err() != nil {
			l.letGo(ctx)
		}
		return nil, fmt.Errorf("taking lease %s: %w", o.Name, err)
	}
	l.validUntil = start.Add(l.duration)
	return l, nil
}

// claim writes this process into the Lease.
func (l *Lease) claim(object *coordinationv1.Lease, now time.Time, seconds int32) {
	object.Spec.HolderIdentity = &l.options.Identity
	object.Spec.LeaseDurationSeconds = &seconds
	object.Spec.AcquireTime = ptr.To(metav1.NewMicroTime(now))
	object.Spec.RenewTime = ptr.To(metav1.NewMicroTime(now))
	if l.options.Owner != nil {
		object.OwnerReferences = []metav1.OwnerReference{*l.options.Owner}
	}
}

// heldBy returns the holder of a Lease that has one, and has not run out. A renewal that is further ahead than the duration
// says that a clock was wrong when it was written or is wrong now: it must not be in the way until the clock gets there.
func heldBy(object *coordinationv1.Lease, now time.Time) *HeldError {
	spec := object.Spec
	holder := ptr.Deref(spec.HolderIdentity, "")
	if holder == "" || spec.RenewTime == nil || spec.LeaseDurationSeconds == nil {
		return nil
	}
	duration := time.Duration(*spec.LeaseDurationSeconds) * time.Second
	until := spec.RenewTime.Add(duration)
	if !now.Before(until) || spec.RenewTime.After(now.Add(duration)) {
		return nil
	}
	return &HeldError{Name: object.Name, Holder: holder, Since: ptr.Deref(spec.AcquireTime, *spec.RenewTime).Time, Until: until}
}

// quicker names the pass that took the Lease between our read and our write, as far as that can be read.
func (l *Lease) quicker(ctx context.Context) error {
	if object, err := l.client.Get(ctx, l.options.Name, metav1.GetOptions{}); err == nil {
		if held := heldBy(object, time.Now()); held != nil {
			return held
		}
	}
	return &HeldError{Name: l.options.Name}
}

// letGo gives back, as far as it can, a Lease that may have been taken although the pass was stopped before the answer came.
func (l *Lease) letGo(ctx context.Context) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), time.Second)
	defer cancel()
	object, err := l.client.Get(ctx, l.options.Name, metav1.GetOptions{})
	if err != nil || ptr.Deref(object.Spec.HolderIdentity, "") != l.options.Identity {
		return
	}
	object = object.DeepCopy()
	object.Spec.HolderIdentity = ptr.To("")
	_, _ = l.client.Update(ctx, object, metav1.UpdateOptions{}) // else it runs out by itself
}

// Valid says whether the Lease is still ours for certain: it was not lost, and its duration has not passed since the
// last renewal was begun. A process that was stopped for longer finds it invalid as soon as it goes on, before it can
// notice anything else; whoever is about to write asks first.
func (l *Lease) Valid() bool { return time.Now().Before(l.until()) }

// Release gives the Lease back if it is still ours: the holder is removed, the renewTime stays and tells when the last
// pass ran. It first stops the renewals, and waits for that. Its context must outlive that of the pass, since a pass
// that was stopped releases too. A Lease that another has taken meanwhile is left alone, without an error; an error
// means that the Lease has to run out by itself. Release is called once.
func (l *Lease) Release(ctx context.Context) error {
	if l.stop != nil {
		l.stop()
	}
	l.lose()
	err := l.write(ctx, func(spec *coordinationv1.LeaseSpec) { spec.HolderIdentity = ptr.To("") })
	if err != nil && !errors.Is(err, ErrLost) {
		return fmt.Errorf("releasing lease %s, which the next pass can now take only %s after its last renewal: %w", l.options.Name, l.duration, err)
	}
	return nil
}
