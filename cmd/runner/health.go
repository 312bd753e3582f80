package main

import (
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"time"
)

// serveHealth answers scrapes by Prometheus, /metrics, and the kubelet's probes while the scheduler runs: /healthz (is the
// cron alive) and /readyz (has the first pass ended). Where nobody asked for the address, one that is taken is no reason not to run passes. The returned
// function ends the server, and waits for its end.
func (a *app) serveHealth(s *session, scheduler *scheduler) (stop func(), err error) {
	listener, err := net.Listen("tcp", s.config.MetricsAddr)
	if err != nil {
		if _, asked := a.env.Lookup("SYNCPASS_METRICS_ADDR"); asked {
			return nil, invalid(fmt.Errorf("SYNCPASS_METRICS_ADDR: %w", err))
		}
		s.log.Warn("Metrics and health probes are not served; SYNCPASS_METRICS_ADDR takes another address", "error", err)
		return func() {}, nil
	}
	server := &http.Server{
		Handler:           healthHandler(scheduler.alive, scheduler.isReady, s.telemetry.metrics.Handler(s.log)),
		ReadHeaderTimeout: 5 * time.Second,
		WriteTimeout:      5 * time.Second,
		IdleTimeout:       time.Minute,
		MaxHeaderBytes:    8 << 10,
		ErrorLog:          slog.NewLogLogger(s.log.Handler(), slog.LevelDebug),
	}
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		if err := server.Serve(listener); !errors.Is(err, http.ErrServerClosed) {
			s.log.Error("Metrics and health probes are no longer served", "error", err)
		}
	}()
	return func() {
		_ = server.Close() // a probe that is cut off has nobody left to tell
		<-ended
	}, nil
}

func healthHandler(alive func() error, ready func() bool, metrics http.Handler) http.Handler {
	mux := http.NewServeMux()
	mux.Handle("GET /metrics", metrics)
	mux.HandleFunc("GET /healthz", func(w http.ResponseWriter, _ *http.Request) { answer(w, alive()) })
	mux.HandleFunc("GET /readyz", func(w http.ResponseWriter, _ *http.Request) {
		var err error
		if !ready() {
			err = errors.New("the first pass has not ended")
		}
		answer(w, err)
	})
	return mux
}

func answer(w http.ResponseWriter, err error) {
	w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	if err != nil {
		w.WriteHeader(http.StatusServiceUnavailable)
		_, _ = io.WriteString(w, err.Error()+"\n")
		return
	}
	_, _ = io.WriteString(w, "ok\n")
}
