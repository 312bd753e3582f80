package e2e

import (
	"net/http"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/syncpass/syncpass/e2e/proxy"
	"github.com/syncpass/syncpass/record"
)

// The four writes of due, as requests.
var (
	createMade   = writing(record.Host, http.MethodPost, "made")
	updatePushed = writing(record.Host, http.MethodPut, "pushed")
	updatePulled = writing(record.Tenant, http.MethodPut, "pulled")
	deleteGone   = writing(record.Host, http.MethodDelete, "gone")
)

func tenantWrite(_ *duePlace, r proxy.Request) bool { return r.Method != http.MethodGet }

// sentOnce fails unless exactly one request was sent that matches.
func sentOnce(matches match) func(*testing.T, *duePlace, spoiltPass) {
	return func(t *testing.T, p *duePlace, spoilt spoiltPass) {
		t.Helper()
		sent := 0
		for _, r := range spoilt.requests {
			if matches(p, r) {
				sent++
			}
		}
		assert.Equal(t, 1, sent, "a write that may have been made is not repeated")
	}
}

// faultsOfWrites are answers to writes that are lost, late, or refusals.
func faultsOfWrites() []fault {
	conflict := proxy.Status(http.StatusConflict, metav1.StatusReasonConflict, "the object has been modified")
	exists := proxy.Status(http.StatusConflict, metav1.StatusReasonAlreadyExists, "it already exists")
	timeout := proxy.Status(http.StatusGatewayTimeout, metav1.StatusReasonTimeout, "the request was not completed in time")
	full := proxy.Status(http.StatusInternalServerError, metav1.StatusReasonInternalError, "etcdserver: mvcc: database space exceeded")
	expired := proxy.Status(http.StatusUnauthorized, metav1.StatusReasonUnauthorized, "Unauthorized")
	terminating := proxy.Status(http.StatusForbidden, metav1.StatusReasonForbidden, "the namespace is being terminated", func(s *metav1.Status, _ http.Header) {
		s.Details = &metav1.StatusDetails{Causes: []metav1.StatusCause{{Type: corev1.NamespaceTerminatingCause}}}
	})
	late := []string{"got no certain answer; the next pass finds out whether it landed"}

	rows := []fault{
		{name: "F04 a create is applied and its answer lost", exit: 3, says: late,
			spoil:     answer(record.Host, proxy.After, createMade, proxy.Drop),
			decisions: map[string]string{"made": "Skip Rejected"}, landed: []string{"made"}, check: sentOnce(createMade)},
		{name: "F04 an update is applied and its answer lost", exit: 3, says: late,
			spoil:     answer(record.Host, proxy.After, updatePushed, proxy.Drop),
			decisions: map[string]string{"pushed": "Skip Rejected"}, landed: []string{"pushed"}, check: sentOnce(updatePushed)},
		{name: "F04 an update of the tenant is applied and its answer lost", exit: 3, says: late,
			spoil:     answer(record.Tenant, proxy.After, updatePulled, proxy.Drop),
			decisions: map[string]string{"pulled": "Skip Rejected"}, landed: []string{"pulled"}, check: sentOnce(updatePulled)},
		{name: "F04 a delete is applied and its answer lost", exit: 3, says: late,
			spoil:     answer(record.Host, proxy.After, deleteGone, proxy.Drop),
			decisions: map[string]string{"gone": "Skip Rejected"}, landed: []string{"gone"}, check: sentOnce(deleteGone)},
		{name: "F04 an update is applied and answered with 504", exit: 3, says: late,
			spoil:     answer(record.Host, proxy.After, updatePushed, timeout),
			decisions: map[string]string{"pushed": "Skip Rejected"}, landed: []string{"pushed"}, check: sentOnce(updatePushed)},
		{name: "F04 an update is applied and its answer comes after the request timeout", exit: 3, env: quick, within: 12 * time.Second, says: late,
			spoil:     answer(record.Host, proxy.After, updatePushed, proxy.Hang),
			decisions: map[string]string{"pushed": "Skip Rejected"}, landed: []string{"pushed"}, check: sentOnce(updatePushed)},
		{name: "F04 all writes are applied and all their answers lost", exit: 3,
			spoil: func(t *testing.T, p *duePlace) {
				answer(record.Host, proxy.After, either(createMade, updatePushed, deleteGone), proxy.Drop)(t, p)
				answer(record.Tenant, proxy.After, updatePulled, proxy.Drop)(t, p)
			},
			decisions: map[string]string{"made": "Skip Rejected", "pushed": "Skip Rejected", "pulled": "Skip Rejected", "gone": "Skip Rejected"},
			landed:    []string{"made", "pushed", "pulled", "gone"}},

		{name: "F05 a create is lost on its way", exit: 3, says: late,
			spoil: answer(record.Host, proxy.Before, createMade, proxy.Drop), decisions: map[string]string{"made": "Skip Rejected"}},
		{name: "F05 an update is lost on its way", exit: 3, says: late,
			spoil: answer(record.Host, proxy.Before, updatePushed, proxy.Drop), decisions: map[string]string{"pushed": "Skip Rejected"}},
		{name: "F05 a delete is lost on its way", exit: 3, says: late,
			spoil: answer(record.Host, proxy.Before, deleteGone, proxy.Drop), decisions: map[string]string{"gone": "Skip Rejected"}},
		{name: "F05 an update of the tenant hangs past the request timeout", exit: 3, env: quick, within: 12 * time.Second, says: late,
			spoil: answer(record.Tenant, proxy.Before, updatePulled, proxy.Hang), decisions: map[string]string{"pulled": "Skip Rejected"}},

		{name: "F06 409 on an update of the host", says: []string{"somebody else wrote the host object meanwhile"},
			spoil: answer(record.Host, proxy.Before, updatePushed, conflict), decisions: map[string]string{"pushed": "Skip Raced"}},
		{name: "F06 409 on an update of the tenant", says: []string{"somebody else wrote the tenant object meanwhile"},
			spoil: answer(record.Tenant, proxy.Before, updatePulled, conflict), decisions: map[string]string{"pulled": "Skip Raced"}},
		{name: "F07 409 on a create", says: []string{"an object has appeared at this name meanwhile"},
			spoil: answer(record.Host, proxy.Before, createMade, exists), decisions: map[string]string{"made": "Skip Raced"}},
		{name: "F08 409 on a delete",
			spoil: answer(record.Host, proxy.Before, deleteGone, conflict), decisions: map[string]string{"gone": "Skip Raced"}},

		{name: "F12 429 that asks for a moment is obeyed",
			spoil: answer(record.Host, proxy.Before, updatePushed, tooMany("1"), nil),
			check: func(t *testing.T, _ *duePlace, spoilt spoiltPass) { assert.Greater(t, spoilt.took, time.Second) }},
		{name: "F12 429 that asks for no time at all is obeyed",
			spoil: answer(record.Host, proxy.Before, updatePushed, tooMany("0"), nil)},
		{name: "F13 503 that asks for a moment does not repeat a write", exit: 3, says: late,
			spoil:     answer(record.Host, proxy.Before, updatePushed, unavailable("1")),
			decisions: map[string]string{"pushed": "Skip Rejected"}, check: sentOnce(updatePushed)},

		{name: "F14 the tenant's token expires before the first write", exit: 3, env: oneByOne, says: []string{"Unauthorized"},
			spoil: func(_ *testing.T, p *duePlace) { p.from(record.Tenant, 1, expired) },
			// Whether the tenant object is gone cannot be asked any more, so its mirror stays.
			decisions: map[string]string{"pulled": "Skip Rejected", "gone": "Skip Rejected"}},
		{name: "F36 the tenant's store is full", exit: 3, says: []string{"database space exceeded"},
			spoil:     answer(record.Tenant, proxy.Before, tenantWrite, full),
			decisions: map[string]string{"pulled": "Skip Rejected"}, check: sentOnce(updatePulled)},
		{name: "F39 the namespace refuses a create because it terminates", says: []string{"its namespace is being deleted"},
			spoil: answer(record.Host, proxy.Before, createMade, terminating), decisions: map[string]string{"made": "Skip Terminating"},
			check: func(t *testing.T, _ *duePlace, spoilt spoiltPass) {
				assert.Zero(t, spoilt.Counts.Error, "no error spam")
			}},
	}
	for name, value := range map[string]string{"for a day": "86400", "for a negative time": "-5", "in words": "soon", "for more than fits a number": "99999999999999999999"} {
		rows = append(rows, fault{name: "F12 429 that asks " + name + " is left to the next pass", exit: 3, within: 12 * time.Second,
			spoil:     answer(record.Host, proxy.Before, updatePushed, tooMany(value)),
			decisions: map[string]string{"pushed": "Skip Rejected"}, check: sentOnce(updatePushed)})
	}
	for _, code := range []int{500, 502, 503, 504} {
		rows = append(rows, fault{name: "F13 " + http.StatusText(code) + " on an update does not repeat it", exit: 3, says: late,
			spoil:     answer(record.Host, proxy.Before, updatePushed, proxy.Status(code, metav1.StatusReasonInternalError, "trouble")),
			decisions: map[string]string{"pushed": "Skip Rejected"}, check: sentOnce(updatePushed)})
	}
	return rows
}

func tooMany(retryAfter string) http.Handler {
	return proxy.Status(http.StatusTooManyRequests, metav1.StatusReasonTooManyRequests, "too many requests", proxy.RetryAfter(retryAfter))
}

func unavailable(retryAfter string) http.Handler {
	return proxy.Status(http.StatusServiceUnavailable, metav1.StatusReasonServiceUnavailable, "apiserver is shutting down", proxy.RetryAfter(retryAfter))
}

func either(matches ...match) match {
	return func(p *duePlace, r proxy.Request) bool {
		for _, one := range matches {
			if one(p, r) {
				return true
			}
		}
		return false
	}
}

// from answers everything to a side with a handler, from its k-th write of an object on, counted from 1; 0 is from the
// first request on.
func (p *duePlace) from(side record.Side, k int, handler http.Handler) {
	writes := make(chan struct{}, k)
	object := either(createMade, updatePushed, updatePulled, deleteGone)
	p.proxyOf(side).SetHook(func(m proxy.Moment, r proxy.Request) http.Handler {
		if m != proxy.Before {
			return nil
		}
		if object(p, r) {
			select {
			case writes <- struct{}{}:
			default:
			}
		}
		if len(writes) >= k {
			return handler
		}
		return nil
	})
}

// faultsOfPeople are what somebody does between the reading and the writing of a pass.
func faultsOfPeople() []fault {
	// meanwhile does something once, right before a matching request reaches its server.
	meanwhile := func(side record.Side, matches match, do func(*testing.T, *duePlace)) func(*testing.T, *duePlace) {
		return func(t *testing.T, p *duePlace) {
			once := make(chan struct{}, 1)
			p.proxyOf(side).SetHook(func(m proxy.Moment, r proxy.Request) http.Handler {
				if m == proxy.Before && matches(p, r) {
					select {
					case once <- struct{}{}:
						do(t, p)
					default:
					}
				}
				return nil
			})
		}
	}
	foreign := func(t *testing.T, p *duePlace, name string) {
		_, err := p.objects(record.Host, configMaps).Create(p.s.ctx, configMapOf(p.mirror(name), "foreign"), metav1.CreateOptions{})
		assert.NoError(t, err)
	}
	return []fault{
		{name: "F06 somebody changes a mirror while it is being updated",
			spoil:     meanwhile(record.Host, updatePushed, func(t *testing.T, p *duePlace) { p.set(t, record.Host, "pushed", "9") }),
			decisions: map[string]string{"pushed": "Skip Raced"}, then: map[string]string{"pushed": "Skip Conflict"},
			check: func(t *testing.T, p *duePlace, _ spoiltPass) { p.requireBoth(t, "pushed", "2", "9") },
			mend:  func(*testing.T, *duePlace) {}},
		{name: "F06 somebody changes the tenant object while it is being updated",
			spoil:     meanwhile(record.Tenant, updatePulled, func(t *testing.T, p *duePlace) { p.set(t, record.Tenant, "pulled", "9") }),
			decisions: map[string]string{"pulled": "Skip Raced"}, then: map[string]string{"pulled": "Skip Conflict"},
			check: func(t *testing.T, p *duePlace, _ spoiltPass) { p.requireBoth(t, "pulled", "9", "3") }},
		{name: "F07 somebody makes an object where a mirror is being made",
			spoil:     meanwhile(record.Host, createMade, func(t *testing.T, p *duePlace) { foreign(t, p, "made") }),
			decisions: map[string]string{"made": "Skip Raced"}, then: map[string]string{"made": "Skip NotOwned"},
			check: func(t *testing.T, p *duePlace, _ spoiltPass) { p.requireBoth(t, "made", "1", "foreign") }},
		{name: "F08 somebody replaces a mirror while it is being deleted",
			spoil: meanwhile(record.Host, deleteGone, func(t *testing.T, p *duePlace) {
				p.remove(t, record.Host, "gone")
				foreign(t, p, "gone")
			}),
			decisions: map[string]string{"gone": "Skip Raced"}, then: map[string]string{},
			check: func(t *testing.T, p *duePlace, _ spoiltPass) { p.requireBoth(t, "gone", "", "foreign") }},
		{name: "F08 somebody changes a mirror while it is being deleted",
			spoil:     meanwhile(record.Host, deleteGone, func(t *testing.T, p *duePlace) { p.set(t, record.Host, "gone", "9") }),
			decisions: map[string]string{"gone": "Skip Raced"}, then: map[string]string{"gone": "Skip Conflict"},
			check: func(t *testing.T, p *duePlace, _ spoiltPass) { p.requireBoth(t, "gone", "", "9") }},
		{name: "F08 the tenant object is there again when its mirror is to be deleted",
			spoil: func(t *testing.T, p *duePlace) {
				gone := writing(record.Tenant, http.MethodGet, "gone")
				p.tenantProxy.SetHook(func(m proxy.Moment, r proxy.Request) http.Handler {
					if m == proxy.Before && gone(p, r) {
						_, err := p.objects(record.Tenant, configMaps).Create(p.s.ctx, configMapOf("gone", "again"), metav1.CreateOptions{})
						assert.True(t, err == nil || apierrors.IsAlreadyExists(err), "%v", err)
					}
					return nil
				})
			},
			decisions: map[string]string{"gone": "Skip Raced"}, then: map[string]string{},
			check: func(t *testing.T, p *duePlace, _ spoiltPass) { p.requireBoth(t, "gone", "again", "1") }},
		{name: "F43 a mirror vanishes while it is being updated",
			spoil:     meanwhile(record.Host, updatePushed, func(t *testing.T, p *duePlace) { p.remove(t, record.Host, "pushed") }),
			decisions: map[string]string{"pushed": "Skip Raced"}, then: map[string]string{},
			check: func(t *testing.T, p *duePlace, _ spoiltPass) { p.requireBoth(t, "pushed", "2", "") },
			mend:  func(t *testing.T, p *duePlace) { p.later(t, "pushed", "2", "2") }},
		{name: "F43 a mirror vanishes while it is being deleted",
			spoil:     meanwhile(record.Host, deleteGone, func(t *testing.T, p *duePlace) { p.remove(t, record.Host, "gone") }),
			decisions: map[string]string{"gone": "Skip Raced"}, landed: []string{"gone"}},
		{name: "F43 a tenant object vanishes while its mirror is being made",
			spoil: meanwhile(record.Host, createMade, func(t *testing.T, p *duePlace) { p.remove(t, record.Tenant, "made") }),
			then:  map[string]string{}, mend: func(t *testing.T, p *duePlace) { p.later(t, "made", "", "") }},
	}
}

// requireBoth looks at a ConfigMap on both sides.
func (p *duePlace) requireBoth(t *testing.T, name, tenant, host string) {
	t.Helper()
	require.Equal(t, tenant, p.value(t, record.Tenant, name), "%s in the tenant", name)
	require.Equal(t, host, p.value(t, record.Host, name), "%s on the host", name)
}

// later looks at a ConfigMap on both sides when the test ends, whose place is still there.
func (p *duePlace) later(t *testing.T, name, tenant, host string) {
	t.Cleanup(func() { p.requireBoth(t, name, tenant, host) })
}
