package main

import (
	"fmt"
	"io"
	"log/slog"

	"k8s.io/klog/v2"
)

// newLog makes the log that everything writes to: JSON lines, or text where format says so or, without a format, where
// a person watches. client-go's own log (klog) is routed to it. Its levels map to slog's one to one (klog's V(4) is
// slog's debug), so the lines that would print bodies, from V(8) on, are below every level that config lets through.
func newLog(w io.Writer, level slog.Level, format string, tty bool) *slog.Logger {
	options := &slog.HandlerOptions{Level: level, ReplaceAttr: printableAttr}
	var handler slog.Handler = slog.NewJSONHandler(w, options)
	if textLog(format, tty) {
		handler = slog.NewTextHandler(w, options)
	}
	log := slog.New(handler)
	klog.SetSlogLogger(log)
	return log
}

// printableAttr bounds what came from a cluster, and takes from it what a terminal would act on: JSON leaves characters
// that reorder text as they are.
func printableAttr(_ []string, attr slog.Attr) slog.Attr {
	switch value := attr.Value.Any().(type) {
	case error:
		attr.Value = slog.StringValue(printable(value.Error()))
	case string:
		attr.Value = slog.StringValue(printable(value))
	}
	return attr
}

func textLog(format string, tty bool) bool {
	return format == "text" || format == "" && tty
}

// printErrors writes each error that err holds on a line of its own: as a log line where the log is for machines, else
// the way kubectl does.
func printErrors(w io.Writer, log *slog.Logger, text bool, err error) {
	for _, line := range errorLines(err) {
		line = printable(line)
		if text {
			fmt.Fprintln(w, "error: "+line)
		} else {
			log.Error("Failed", "error", line)
		}
	}
}
