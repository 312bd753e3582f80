package main

import (
	"errors"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/syncpass/syncpass/cmd/runner/metrics"
)

func TestProbes(t *testing.T) {
	hung := errors.New("the cron hangs")
	for _, tt := range []struct {
		path  string
		alive error
		ready bool
		code  int
		body  string
	}{
		{"/healthz", nil, false, 200, "ok\n"},
		{"/healthz", hung, true, 503, "the cron hangs\n"},
		{"/readyz", hung, true, 200, "ok\n"},
		{"/readyz", nil, false, 503, "the first pass has not ended\n"},
		{"/metrics", hung, false, 200, "syncpass_pairs 1\n"},
		{"/", nil, true, 404, "404 page not found\n"},
	} {
		answer := httptest.NewRecorder()
		scrape := http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "syncpass_pairs 1\n") })
		handler := healthHandler(func() error { return tt.alive }, func() bool { return tt.ready }, scrape)
		handler.ServeHTTP(answer, httptest.NewRequest(http.MethodGet, tt.path, nil))
		assert.Equal(t, tt.code, answer.Code, tt.path)
		assert.Equal(t, tt.body, answer.Body.String(), tt.path)
	}
}

func TestProbesAreServedAndEnd(t *testing.T) {
	free, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	addr := free.Addr().String()
	require.NoError(t, free.Close())

	log := slog.New(slog.DiscardHandler)
	a := app{env: environmentOf(nil)}
	stop, err := a.serveHealth(&session{log: log, config: config{MetricsAddr: addr}, telemetry: telemetry{metrics: metrics.New()}}, newScheduler(log))
	require.NoError(t, err)
	response, err := http.Get("http://" + addr + "/healthz")
	require.NoError(t, err)
	defer response.Body.Close()
	body, err := io.ReadAll(response.Body)
	require.NoError(t, err)
	assert.Equal(t, "ok\n", string(body))

	stop()
	_, err = http.Get("http://" + addr + "/healthz")
	assert.Error(t, err)
}

func TestAnAddressThatIsTakenMattersWhereSomebodyAskedForIt(t *testing.T) {
	taken, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	defer taken.Close()
	log := slog.New(slog.DiscardHandler)
	s := &session{log: log, config: config{MetricsAddr: taken.Addr().String()}, telemetry: telemetry{metrics: metrics.New()}}

	asked := app{env: environmentOf(map[string]string{"SYNCPASS_METRICS_ADDR": s.config.MetricsAddr})}
	_, err = asked.serveHealth(s, newScheduler(log))
	require.ErrorContains(t, err, "SYNCPASS_METRICS_ADDR")
	assert.Equal(t, exitInvalid, exitCode(err, nil, nil, false))

	byDefault := app{env: environmentOf(nil)}
	stop, err := byDefault.serveHealth(s, newScheduler(log))
	require.NoError(t, err)
	stop()
}
