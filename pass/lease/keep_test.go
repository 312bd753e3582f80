package lease

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	coordinationv1 "k8s.io/api/coordination/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/utils/ptr"
)

// lostAfter waits for the lease to be lost, at most for an hour, and returns why and how long that took.
func lostAfter(held context.Context) (time.Duration, error) {
	start := time.Now()
	select {
	case <-held.Done():
	case <-time.After(time.Hour):
	}
	return time.Since(start), context.Cause(held)
}

func release(t *testing.T, l *Lease) {
	t.Helper()
	require.NoError(t, l.Release(context.Background()))
}

func TestALongPassKeepsItsLease(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, checks := &store{}, 0
		l := acquire(t, s, "one")
		held := l.Keep(context.Background(), func(ctx context.Context) error {
			checks++
			return ctx.Err()
		})
		for range 300 {
			time.Sleep(time.Second)
			require.True(t, l.Valid())
		}
		synctest.Wait()
		assert.NoError(t, held.Err())
		assert.Equal(t, 1+30, s.writes, "once every ten seconds")
		assert.Equal(t, 30, checks)
		_, err := Acquire(context.Background(), s, options("two"))
		assert.ErrorIs(t, err, ErrHeld)
		release(t, l)
		assert.ErrorIs(t, held.Err(), context.Canceled)
		assert.NotErrorIs(t, context.Cause(held), ErrLost, "released is not lost")
	})
}

func TestAPassThatWasStoppedKeepsItsLeaseUntilItHasRecorded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &store{}
		l := acquire(t, s, "one")
		pass, cancel := context.WithCancel(context.Background())
		held := l.Keep(pass, nil)
		cancel()
		time.Sleep(2 * duration)
		assert.Error(t, held.Err())
		assert.True(t, l.Valid())
		release(t, l)
		assert.Empty(t, *s.object.Spec.HolderIdentity)
	})
}

func TestALeaseTakenByAnotherIsLostAndLeftAlone(t *testing.T) {
	for name, taken := range map[string]func(*coordinationv1.Lease){
		"by another pass": func(lease *coordinationv1.Lease) {
			lease.Spec.HolderIdentity, lease.Spec.LeaseTransitions = ptr.To("two"), ptr.To[int32](1)
		},
		"by hand":              func(lease *coordinationv1.Lease) { lease.Spec.HolderIdentity = ptr.To("two") },
		"after it was deleted": func(lease *coordinationv1.Lease) { lease.UID = "another" },
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := &store{}
				l := acquire(t, s, "one")
				held := l.Keep(context.Background(), nil)
				s.change(taken)
				holder := *s.object.Spec.HolderIdentity
				after, cause := lostAfter(held)
				require.ErrorIs(t, cause, ErrLost)
				require.ErrorIs(t, cause, context.Canceled)
				assert.ErrorContains(t, cause, `lease syncpass-dev was taken by "`+holder+`"`)
				assert.Equal(t, 10*time.Second, after, "at the next renewal")
				assert.False(t, l.Valid())
				release(t, l)
				assert.Equal(t, holder, *s.object.Spec.HolderIdentity)
			})
		})
	}
}

func TestALeaseTakenByAPassOfTheSameIdentityIsLostToo(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &store{}
		l := acquire(t, s, "one")
		time.Sleep(duration)
		second := acquire(t, s, "one")
		held := l.Keep(context.Background(), nil)
		_, cause := lostAfter(held)
		assert.ErrorIs(t, cause, ErrLost)
		release(t, l)
		assert.Equal(t, "one", *s.object.Spec.HolderIdentity)
		assert.True(t, second.Valid())
		release(t, second)
	})
}

func TestADeletedLeaseIsLost(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &store{}
		l := acquire(t, s, "one")
		held := l.Keep(context.Background(), nil)
		s.set(func() { s.object = nil })
		_, cause := lostAfter(held)
		require.ErrorIs(t, cause, ErrLost)
		assert.ErrorContains(t, cause, "was deleted")
		release(t, l)
		assert.Nil(t, s.object, "it is not made anew")
	})
}

func TestALabelOnTheLeaseDoesNotLoseIt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &store{}
		l := acquire(t, s, "one")
		held := l.Keep(context.Background(), nil)
		s.change(func(lease *coordinationv1.Lease) { lease.Labels = map[string]string{"by": "a person"} })
		time.Sleep(2 * duration)
		assert.NoError(t, held.Err())
		s.change(func(lease *coordinationv1.Lease) { lease.Annotations = map[string]string{"by": "a person"} })
		release(t, l)
		assert.Empty(t, *s.object.Spec.HolderIdentity)
		assert.Equal(t, map[string]string{"by": "a person"}, s.object.Labels)
		assert.Equal(t, map[string]string{"by": "a person"}, s.object.Annotations)
	})
}

func TestARenewalWhoseAnswerWasLostCounts(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &store{}
		l := acquire(t, s, "one")
		held := l.Keep(context.Background(), nil)
		hook := func() error {
			s.after = nil
			return context.DeadlineExceeded
		}
		s.set(func() { s.after = hook })
		time.Sleep(2 * duration)
		assert.NoError(t, held.Err())
		assert.True(t, l.Valid())
		release(t, l)
	})
}

func TestAnAPIServerThatComesBackInTimeLosesNoLease(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, down := &store{}, time.Now().Add(duration-2*time.Second)
		l := acquire(t, s, "one")
		held := l.Keep(context.Background(), nil)
		hook := func(context.Context, string) error {
			if time.Now().Before(down) {
				return apierrors.NewServiceUnavailable("down")
			}
			return nil
		}
		s.set(func() { s.before = hook })
		time.Sleep(2 * duration)
		assert.NoError(t, held.Err())
		assert.True(t, l.Valid())
		release(t, l)
	})
}

func TestAnAPIServerThatStaysAwayLosesTheLeaseWhenItRunsOut(t *testing.T) {
	for name, before := range map[string]func(context.Context, string) error{
		"it fails":   func(context.Context, string) error { return errors.New("no route to host") },
		"it hangs":   func(ctx context.Context, _ string) error { <-ctx.Done(); return ctx.Err() },
		"it refuses": func(context.Context, string) error { return apierrors.NewForbidden(resource, "syncpass-dev", nil) },
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s, requests := &store{}, 0
				l := acquire(t, s, "one")
				held := l.Keep(context.Background(), nil)
				hook := func(ctx context.Context, verb string) error {
					requests++
					return before(ctx, verb)
				}
				s.set(func() { s.before = hook })
				after, cause := lostAfter(held)
				require.ErrorIs(t, cause, ErrLost)
				assert.ErrorContains(t, cause, "was not renewed in time")
				assert.Equal(t, duration, after)
				assert.LessOrEqual(t, requests, 2*retries+2)
				assert.False(t, l.Valid())
				s.set(func() { s.before = nil })
				release(t, l)
				assert.Empty(t, *s.object.Spec.HolderIdentity, "nobody else had taken it")
			})
		})
	}
}

func TestACheckThatFailsCostsTheLease(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, superseded := &store{}, errors.New("a newer epoch")
		l := acquire(t, s, "one")
		held := l.Keep(context.Background(), func(context.Context) error { return superseded })
		after, cause := lostAfter(held)
		require.ErrorIs(t, cause, ErrLost)
		require.ErrorIs(t, cause, superseded)
		assert.Equal(t, 10*time.Second, after)
		assert.False(t, l.Valid())
		release(t, l)
		assert.Empty(t, *s.object.Spec.HolderIdentity)
	})
}

func TestACheckThatHangsDoesNotHoldUpTheLease(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &store{}
		l := acquire(t, s, "one")
		held := l.Keep(context.Background(), func(ctx context.Context) error {
			<-ctx.Done()
			return nil
		})
		time.Sleep(10 * duration)
		assert.NoError(t, held.Err())
		assert.True(t, l.Valid())
		release(t, l)
	})
}

// A process that was stopped (SIGSTOP, a frozen virtual machine) goes on in the middle of what it was doing. Here that is
// the renewal: the request was answered, and the answer is looked at long after.
func TestAPassThatStoodStillFindsItsLeaseInvalidBeforeAnythingElse(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &store{}
		l := acquire(t, s, "one")
		held := l.Keep(context.Background(), nil)
		hook := func() error {
			s.after = nil
			time.Sleep(10 * time.Minute)
			return nil
		}
		s.set(func() { s.after = hook })
		time.Sleep(10*time.Second + duration)
		assert.False(t, l.Valid())
		time.Sleep(10 * time.Minute)
		synctest.Wait()
		assert.False(t, l.Valid(), "a renewal that was begun so long ago proves nothing")
		require.ErrorIs(t, context.Cause(held), ErrLost)
		assert.ErrorContains(t, context.Cause(held), "this process stood still for longer than 30s")
		release(t, l)
	})
}

func TestReleaseStopsARenewalUnderWayAndWaitsForIt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &store{}
		l := acquire(t, s, "one")
		l.Keep(context.Background(), nil)
		begun, ended := false, false
		hook := func(ctx context.Context, _ string) error {
			s.set(func() { s.before, begun = nil, true })
			<-ctx.Done()
			time.Sleep(time.Second) // Ending takes its time.
			s.set(func() { ended = true })
			return ctx.Err()
		}
		s.set(func() { s.before = hook })
		time.Sleep(11 * time.Second)
		synctest.Wait()
		require.True(t, begun)
		start := time.Now()
		release(t, l)
		assert.True(t, ended, "nothing outlives the pass")
		assert.Equal(t, time.Second, time.Since(start))
		assert.Empty(t, *s.object.Spec.HolderIdentity)
	})
}

func TestALeaseThatCannotBeReleasedSaysWhenItIsFree(t *testing.T) {
	s := &store{}
	l := acquire(t, s, "one")
	hook := func(context.Context, string) error { return apierrors.NewServiceUnavailable("down") }
	s.set(func() { s.before = hook })
	err := l.Release(context.Background())
	require.Error(t, err)
	assert.True(t, apierrors.IsServiceUnavailable(err))
	assert.ErrorContains(t, err, "which the next pass can now take only 30s after its last renewal")
}
