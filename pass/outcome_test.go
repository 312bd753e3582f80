package pass

import (
	"context"
	"errors"
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/syncpass/syncpass/pass/access"
	"github.com/syncpass/syncpass/pass/lease"
	"github.com/syncpass/syncpass/policy"
	"github.com/syncpass/syncpass/record"
	"github.com/syncpass/syncpass/record/store"
)

func TestEveryCauseLeadsToItsOutcome(t *testing.T) {
	for _, test := range []struct {
		err  error
		want record.Outcome
	}{
		{nil, record.Completed},
		{&InvalidError{Err: errors.New("no such TenantCluster")}, record.Invalid},
		{fmt.Errorf("kubeconfig: %w", &access.ConfigError{}), record.Invalid},
		{&policy.InvalidError{}, record.Invalid},
		{fmt.Errorf("page 1: %w", record.ErrNewerFormat), record.Invalid},
		{store.ErrTooLarge, record.Invalid},
		{&lease.HeldError{}, record.Locked},
		{lease.ErrLost, record.Locked},
		{errors.Join(lease.ErrLost, context.Canceled), record.Locked},
		{fmt.Errorf("writing: %w", store.ErrSuperseded), record.Locked},
		{context.Canceled, record.Stopped},
		{context.DeadlineExceeded, record.Unreachable},
		{errors.New("connection refused"), record.Unreachable},
	} {
		require.Equal(t, test.want, OutcomeOf(test.err), "%v", test.err)
	}
}

func TestTheWorstThatHappenedIsTheOutcome(t *testing.T) {
	require.Equal(t, record.Completed, outcome(nil, false, record.Counts{Skip: 3}))
	require.Equal(t, record.CompletedWithErrors, outcome(nil, false, record.Counts{Error: 1}))
	require.Equal(t, record.Guarded, outcome(nil, true, record.Counts{Error: 1}))
	require.Equal(t, record.Stopped, outcome(context.Canceled, true, record.Counts{}))
}

func TestAnEndpointIsTakenInEveryFormThatPeopleWriteIt(t *testing.T) {
	for endpoint, want := range map[string][2]string{
		"10.0.0.1:6443":           {"10.0.0.1", "6443"},
		"https://api.example.com": {"api.example.com", "443"},
		"https://10.0.0.1:6443/a": {"10.0.0.1", "6443"},
		"api.example.com":         {"api.example.com", "443"},
		"[fd00::1]:6443":          {"fd00::1", "6443"},
	} {
		host, port, err := splitEndpoint(endpoint)
		require.NoError(t, err, endpoint)
		require.Equal(t, want, [2]string{host, port}, endpoint)
	}
	_, _, err := splitEndpoint("https://a b")
	require.Error(t, err)
}
