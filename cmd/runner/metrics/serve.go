package metrics

import (
	"log/slog"
	"net/http"

	"github.com/prometheus/client_golang/prometheus/promhttp"
)

// scrapesAtOnce is how many scrapes are answered side by side; one that comes on top is refused.
const scrapesAtOnce = 4

// Handler answers scrapes. What keeps it from answering one is logged.
func (m *Metrics) Handler(log *slog.Logger) http.Handler {
	return promhttp.HandlerFor(m.registry, promhttp.HandlerOpts{
		MaxRequestsInFlight: scrapesAtOnce,
		ErrorLog:            slog.NewLogLogger(log.Handler(), slog.LevelWarn),
		ErrorHandling:       promhttp.HTTPErrorOnError,
	})
}
