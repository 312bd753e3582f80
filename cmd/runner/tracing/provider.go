package tracing

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"

	"go.opentelemetry.io/otel"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/exporters/otlp/otlptrace"
	"go.opentelemetry.io/otel/sdk/resource"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
)

// Wanted says whether the OTEL_ variables ask for traces: an endpoint is named, or the exporter otlp, and nothing turns
// them off. Its error says what they ask for that this program has not; then there are no traces.
// https://opentelemetry.io/docs/specs/otel/configuration/sdk-environment-variables/
func Wanted(lookup func(name string) (string, bool)) (bool, error) {
	value := func(name string) string {
		v, _ := lookup(name)
		return strings.TrimSpace(v)
	}
	exporter := value("OTEL_TRACES_EXPORTER")
	named := exporter != "" || value("OTEL_EXPORTER_OTLP_ENDPOINT") != "" || value("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT") != ""
	if !named || strings.EqualFold(value("OTEL_SDK_DISABLED"), "true") || exporter == "none" {
		return false, nil
	}
	if exporter != "" && exporter != "otlp" {
		return false, fmt.Errorf("OTEL_TRACES_EXPORTER=%q: no such exporter; there are otlp and none", exporter)
	}
	for _, name := range []string{"OTEL_EXPORTER_OTLP_TRACES_PROTOCOL", "OTEL_EXPORTER_OTLP_PROTOCOL"} {
		if protocol := value(name); protocol != "" {
			if protocol != "http/protobuf" {
				return false, fmt.Errorf("%s=%q: no such protocol; there is http/protobuf, which collectors take on port 4318", name, protocol)
			}
			break // the one for traces counts
		}
	}
	return true, nil
}

// Provider sends spans to where the OTEL_ variables of this process say. What is lost on the way is a warning in the log.
// The caller shuts it down.
func Provider(ctx context.Context, lookup func(name string) (string, bool), version string, log *slog.Logger) (*sdktrace.TracerProvider, error) {
	otel.SetErrorHandler(otel.ErrorHandlerFunc(func(err error) { log.Warn("Traces were lost", "error", err) }))
	client, err := newClient(lookup)
	if err != nil {
		return nil, err
	}
	exporter, err := otlptrace.New(ctx, client) // sends nothing yet
	if err != nil {
		return nil, fmt.Errorf("setting up the export of traces: %w", err)
	}
	// Later ones win: OTEL_SERVICE_NAME and OTEL_RESOURCE_ATTRIBUTES.
	about, err := resource.New(ctx,
		resource.WithTelemetrySDK(),
		resource.WithAttributes(attribute.String("service.name", "syncpass"), attribute.String("service.version", version)),
		resource.WithFromEnv())
	if err != nil && !errors.Is(err, resource.ErrPartialResource) {
		return nil, fmt.Errorf("describing this process in traces: %w", err)
	}
	return sdktrace.NewTracerProvider(sdktrace.WithBatcher(exporter), sdktrace.WithResource(about)), nil
}
