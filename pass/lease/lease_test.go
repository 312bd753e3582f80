package lease

import (
	"context"
	"errors"
	"strconv"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	coordinationv1 "k8s.io/api/coordination/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
)

// store is an API server for one Lease, with compare-and-swap as the real one does it.
type store struct {
	mu      sync.Mutex
	object  *coordinationv1.Lease
	version int
	writes  int

	// before runs ahead of each request, unlocked, and fails it with its error.
	before func(ctx context.Context, verb string) error
	// after runs behind each write that was carried out, and fails it with its error.
	after func() error
}

var resource = schema.GroupResource{Group: "coordination.k8s.io", Resource: "leases"}

func (s *store) begin(ctx context.Context, verb string) error {
	s.mu.Lock()
	before := s.before
	s.mu.Unlock()
	if before != nil {
		if err := before(ctx, verb); err != nil {
			return err
		}
	}
	return ctx.Err()
}

// set changes the store while a lease may be using it.
func (s *store) set(f func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	f()
}

func (s *store) Get(ctx context.Context, name string, _ metav1.GetOptions) (*coordinationv1.Lease, error) {
	if err := s.begin(ctx, "get"); err != nil {
		return nil, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.object == nil {
		return nil, apierrors.NewNotFound(resource, name)
	}
	return s.object.DeepCopy(), nil
}

func (s *store) Create(ctx context.Context, lease *coordinationv1.Lease, _ metav1.CreateOptions) (*coordinationv1.Lease, error) {
	if err := s.begin(ctx, "create"); err != nil {
		return nil, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.object != nil {
		return nil, apierrors.NewAlreadyExists(resource, lease.Name)
	}
	lease = lease.DeepCopy()
	lease.UID = types.UID(strconv.Itoa(s.version))
	return s.put(lease)
}

func (s *store) Update(ctx context.Context, lease *coordinationv1.Lease, _ metav1.UpdateOptions) (*coordinationv1.Lease, error) {
	if err := s.begin(ctx, "update"); err != nil {
		return nil, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case s.object == nil:
		return nil, apierrors.NewNotFound(resource, lease.Name)
	case lease.ResourceVersion != s.object.ResourceVersion || lease.UID != s.object.UID:
		return nil, apierrors.NewConflict(resource, lease.Name, errors.New("it has been modified"))
	}
	return s.put(lease.DeepCopy())
}

func (s *store) put(lease *coordinationv1.Lease) (*coordinationv1.Lease, error) {
	s.version++
	s.writes++
	lease.ResourceVersion = strconv.Itoa(s.version)
	s.object = lease
	if s.after != nil {
		if err := s.after(); err != nil {
			return nil, err
		}
	}
	return lease.DeepCopy(), nil
}

// change is a write by somebody else.
func (s *store) change(f func(*coordinationv1.Lease)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	f(s.object)
	s.version++
	s.object.ResourceVersion = strconv.Itoa(s.version)
}

const duration = 30 * time.Second

func options(identity string) Options {
	return Options{Name: Name("dev"), Identity: identity, Duration: duration}
}

func acquire(t *testing.T, s *store, identity string) *Lease {
	t.Helper()
	l, err := Acquire(context.Background(), s, options(identity))
	require.NoError(t, err)
	return l
}

func TestAPassWritesItsLeaseTwice(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, start := &store{}, time.Now()
		l := acquire(t, s, "one")
		l.Keep(context.Background(), nil)
		assert.Equal(t, "syncpass-dev", s.object.Name)
		assert.Equal(t, "one", *s.object.Spec.HolderIdentity)
		assert.EqualValues(t, 30, *s.object.Spec.LeaseDurationSeconds)
		assert.True(t, s.object.Spec.AcquireTime.Equal(&metav1.MicroTime{Time: start}))

		time.Sleep(9 * time.Second)
		require.NoError(t, l.Release(context.Background()))
		assert.Equal(t, 2, s.writes)
		assert.Empty(t, *s.object.Spec.HolderIdentity)
		assert.True(t, s.object.Spec.RenewTime.Equal(&metav1.MicroTime{Time: start}), "it still tells when the last pass ran")
		assert.False(t, l.Valid())
	})
}

func TestAFreeLeaseIsTakenAtOnce(t *testing.T) {
	owner := metav1.OwnerReference{APIVersion: "tenantplane.io/v1alpha1", Kind: "TenantCluster", Name: "dev", UID: "uid"}
	micro := func(d time.Duration) *metav1.MicroTime { return ptr.To(metav1.NewMicroTime(time.Now().Add(d))) }
	for name, spec := range map[string]func() coordinationv1.LeaseSpec{
		"released": func() coordinationv1.LeaseSpec {
			return coordinationv1.LeaseSpec{HolderIdentity: ptr.To(""), RenewTime: micro(0), LeaseDurationSeconds: ptr.To[int32](30)}
		},
		"run out": func() coordinationv1.LeaseSpec {
			return coordinationv1.LeaseSpec{HolderIdentity: ptr.To("dead"), RenewTime: micro(-30 * time.Second), LeaseDurationSeconds: ptr.To[int32](30)}
		},
		"renewed when a clock was an hour ahead": func() coordinationv1.LeaseSpec {
			return coordinationv1.LeaseSpec{HolderIdentity: ptr.To("dead"), RenewTime: micro(time.Hour), LeaseDurationSeconds: ptr.To[int32](30)}
		},
		"never renewed": func() coordinationv1.LeaseSpec {
			return coordinationv1.LeaseSpec{HolderIdentity: ptr.To("dead"), LeaseDurationSeconds: ptr.To[int32](30)}
		},
		"without a duration": func() coordinationv1.LeaseSpec {
			return coordinationv1.LeaseSpec{HolderIdentity: ptr.To("dead"), RenewTime: micro(0)}
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s, start := &store{object: &coordinationv1.Lease{Spec: spec()}}, time.Now()
				s.object.Labels = map[string]string{"kept": "yes"}
				s.object.Spec.LeaseTransitions = ptr.To[int32](4)
				o := options("one")
				o.Owner = &owner
				l, err := Acquire(context.Background(), s, o)
				require.NoError(t, err)
				assert.True(t, l.Valid())
				assert.Zero(t, time.Since(start), "nothing is waited for")
				assert.Equal(t, "one", *s.object.Spec.HolderIdentity)
				assert.EqualValues(t, 5, *s.object.Spec.LeaseTransitions)
				assert.Equal(t, map[string]string{"kept": "yes"}, s.object.Labels)
				assert.Equal(t, []metav1.OwnerReference{owner}, s.object.OwnerReferences)
			})
		})
	}
}

func TestAHeldLeaseNamesItsHolder(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, start := &store{}, time.Now()
		first := acquire(t, s, "one")
		time.Sleep(duration - time.Nanosecond)
		_, err := Acquire(context.Background(), s, options("two"))
		require.ErrorIs(t, err, ErrHeld)
		var held *HeldError
		require.ErrorAs(t, err, &held)
		assert.Equal(t, "one", held.Holder)
		assert.True(t, held.Since.Equal(start))
		assert.True(t, held.Until.Equal(start.Add(duration)))
		assert.ErrorContains(t, err, `lease syncpass-dev is held by "one" since 2000-01-01T00:00:00Z until 2000-01-01T00:00:30Z`)
		assert.Equal(t, 1, s.writes)
		assert.True(t, first.Valid())

		time.Sleep(time.Nanosecond)
		assert.False(t, first.Valid(), "it ends when another may take it, no later")
		acquire(t, s, "two")
	})
}

func TestAClockThatIsALittleAheadTakesNoLeaseAway(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &store{}
		acquire(t, s, "one")
		s.object.Spec.RenewTime = ptr.To(metav1.NewMicroTime(time.Now().Add(duration)))
		_, err := Acquire(context.Background(), s, options("two"))
		require.ErrorIs(t, err, ErrHeld)
	})
}

func TestALeaseThatWasTakenWhenThePassWasStoppedIsGivenBack(t *testing.T) {
	for name, there := range map[string]*coordinationv1.Lease{
		"made":  nil,
		"taken": {ObjectMeta: metav1.ObjectMeta{Name: "syncpass-dev"}},
	} {
		t.Run(name, func(t *testing.T) {
			ctx, stop := context.WithCancel(t.Context())
			s := &store{object: there}
			s.after = func() error {
				s.after = nil
				stop()
				return ctx.Err()
			}
			_, err := Acquire(ctx, s, options("one"))
			require.ErrorIs(t, err, context.Canceled)
			require.Empty(t, ptr.Deref(s.object.Spec.HolderIdentity, "none"))
			acquire(t, s, "two")
		})
	}
}

// A time without Go's monotonic reading, which its String shows, moves when somebody sets the clock.
func TestAClockThatIsSetDoesNotMoveTheEndOfALease(t *testing.T) {
	l := acquire(t, &store{}, "one")
	require.Contains(t, l.until().String(), " m=", "taken")
	taken := l.until()
	require.NoError(t, l.renewOnce(t.Context()))
	require.NotEqual(t, taken, l.until())
	require.Contains(t, l.until().String(), " m=", "renewed")
}

func TestTheQuickerOfTwoGetsTheLease(t *testing.T) {
	for name, existing := range map[string]*coordinationv1.Lease{"a new lease": nil, "a released one": {}} {
		t.Run(name, func(t *testing.T) {
			s := &store{object: existing}
			s.before = func(_ context.Context, verb string) error {
				if verb != "get" {
					s.set(func() { s.before = nil })
					acquire(t, s, "quick")
				}
				return nil
			}
			_, err := Acquire(context.Background(), s, options("slow"))
			require.ErrorIs(t, err, ErrHeld)
			assert.ErrorContains(t, err, `held by "quick"`)
			assert.Equal(t, "quick", *s.object.Spec.HolderIdentity)
		})
	}
}

func TestOneOfTheQuickWhoIsGoneAlreadyIsStillAnError(t *testing.T) {
	s := &store{object: &coordinationv1.Lease{}}
	s.before = func(_ context.Context, verb string) error {
		if verb == "update" {
			s.set(func() { s.before = nil })
			require.NoError(t, acquire(t, s, "quick").Release(context.Background()))
		}
		return nil
	}
	_, err := Acquire(context.Background(), s, options("slow"))
	require.ErrorIs(t, err, ErrHeld)
	assert.ErrorContains(t, err, "another pass took it at the same moment")
}

func TestOneOfManyAtOnceGetsTheLease(t *testing.T) {
	s := &store{}
	var won, held sync.Map
	var group sync.WaitGroup
	for i := range 32 {
		group.Go(func() {
			_, err := Acquire(context.Background(), s, options(strconv.Itoa(i)))
			switch {
			case err == nil:
				won.Store(i, true)
			case errors.Is(err, ErrHeld):
				held.Store(i, true)
			}
		})
	}
	group.Wait()
	count := func(m *sync.Map) (n int) {
		m.Range(func(any, any) bool { n++; return true })
		return n
	}
	assert.Equal(t, 1, count(&won))
	assert.Equal(t, 31, count(&held))
}

func TestAnAPIServerThatFailsIsNoHeldLease(t *testing.T) {
	for _, verb := range []string{"get", "create"} {
		s := &store{before: func(_ context.Context, v string) error {
			if v == verb {
				return apierrors.NewForbidden(resource, "syncpass-dev", nil)
			}
			return nil
		}}
		_, err := Acquire(context.Background(), s, options("one"))
		assert.True(t, apierrors.IsForbidden(err), "%v", err)
		assert.NotErrorIs(t, err, ErrHeld)
	}
	_, err := Acquire(context.Background(), &store{}, Options{Name: "a", Duration: duration})
	assert.ErrorContains(t, err, "both must be set")
}

func TestADurationIsRoundedUpToSeconds(t *testing.T) {
	s := &store{}
	o := options("one")
	o.Duration = 1500 * time.Millisecond
	_, err := Acquire(context.Background(), s, o)
	require.NoError(t, err)
	assert.EqualValues(t, 2, *s.object.Spec.LeaseDurationSeconds)
}
