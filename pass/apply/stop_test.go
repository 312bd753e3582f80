package apply_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/syncpass/syncpass/pass/apply"
	"github.com/syncpass/syncpass/pass/plan"
	"github.com/syncpass/syncpass/record"
)

func TestTheFenceStopsWhatHasNotBeenSent(t *testing.T) {
	b := newBench(t)
	lost := errors.New("another pass has taken over")
	var asked atomic.Int32
	b.writer.Fence = func() error {
		if asked.Add(1) > 2 {
			return lost
		}
		return nil
	}
	var steps []plan.Step
	for i := range 5 {
		steps = append(steps, step(record.Create, configMap, fmt.Sprint("app-", i)))
	}
	steps = append(steps, b.mirrored(step(record.Delete, configMap, "gone")))
	results, err := b.writer.Execute(t.Context(), steps)
	require.ErrorIs(t, err, lost)
	for i, result := range results {
		require.Equal(t, i < 2, result.Applied)
		if i >= 2 {
			require.Equal(t, record.NotAttempted, result.Decision.Reason)
			require.Contains(t, result.Decision.Message, lost.Error())
			require.Empty(t, result.Decision.Error, "what was not tried has not failed")
			require.False(t, result.Unknown)
		}
	}
	require.Len(t, b.host.requests(), 2)
	require.Empty(t, b.tenant.requests())
}

func TestASignalLetsTheWriteInFlightFinish(t *testing.T) {
	b := newBench(t)
	ctx, cancel := context.WithCancelCause(t.Context())
	signal := errors.New("SIGTERM")
	b.host.before = func(http.ResponseWriter, *request) bool { cancel(signal); return false }
	results, err := b.writer.Execute(ctx, []plan.Step{
		step(record.Create, configMap, "one"), step(record.Create, configMap, "two"), b.mirrored(step(record.Delete, configMap, "three")),
	})
	require.ErrorIs(t, err, signal)
	require.True(t, results[0].Applied)
	require.Equal(t, record.NotAttempted, results[1].Decision.Reason)
	require.Equal(t, record.NotAttempted, results[2].Decision.Reason)
}

func TestASignalGivesUpTheWriteThatGetsNoAnswer(t *testing.T) {
	b := newBench(t)
	ctx, cancel := context.WithCancelCause(t.Context())
	signal := errors.New("SIGTERM")
	b.host.before = func(_ http.ResponseWriter, r *request) bool {
		cancel(signal)
		<-r.Context().Done()
		return true
	}
	results, err := b.writer.Execute(ctx, []plan.Step{step(record.Create, configMap, "one")})
	require.ErrorIs(t, err, signal, "also where nothing is left to attempt")
	require.True(t, results[0].Unknown)
	require.Equal(t, record.Rejected, results[0].Decision.Reason)
}

func TestAServerThatDoesNotAnswerIsGivenUp(t *testing.T) {
	b := newBench(t)
	b.host.before = hangUp
	var steps []plan.Step
	for i := range 12 {
		steps = append(steps, step(record.Create, configMap, fmt.Sprintf("app-%02d", i)))
	}
	results, err := b.writer.Execute(t.Context(), steps)
	require.ErrorIs(t, err, apply.ErrNoAnswer)
	for i, result := range results {
		if i < 5 {
			require.True(t, result.Unknown)
			require.Equal(t, record.Rejected, result.Decision.Reason)
			continue
		}
		require.Equal(t, record.NotAttempted, result.Decision.Reason)
	}
	require.Len(t, b.host.requests(), 5)
}

// One that answers now and then, if only with a refusal, is not.
func TestAServerThatAnswersNowAndThenIsNotGivenUp(t *testing.T) {
	b := newBench(t)
	requests := 0
	b.host.before = func(w http.ResponseWriter, r *request) bool {
		requests++
		if requests%5 == 0 {
			return answer(status(http.StatusForbidden, metav1.StatusReasonForbidden, "no"))(w, r)
		}
		return hangUp(w, r)
	}
	var steps []plan.Step
	for i := range 20 {
		steps = append(steps, step(record.Create, configMap, fmt.Sprintf("app-%02d", i)))
	}
	b.run(t, steps...)
	require.Len(t, b.host.requests(), 20)
}
