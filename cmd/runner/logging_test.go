package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"log/slog"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"k8s.io/klog/v2"
)

func TestFormOfTheLog(t *testing.T) {
	for _, tt := range []struct {
		format string
		tty    bool
		want   string
	}{
		{"", true, "level=INFO msg=Hello"},
		{"", false, `"level":"INFO","msg":"Hello"`},
		{"text", false, "level=INFO msg=Hello"},
		{"json", true, `"level":"INFO","msg":"Hello"`},
	} {
		var out bytes.Buffer
		newLog(&out, slog.LevelInfo, tt.format, tt.tty).Info("Hello")
		assert.Contains(t, out.String(), tt.want)
	}
}

func TestWhatClientGoLogsGoesToTheSameLogWithoutBodies(t *testing.T) {
	var out bytes.Buffer
	newLog(&out, slog.LevelDebug, "json", false)
	t.Cleanup(klog.ClearLogger)
	klog.Background().Info("throttled")
	klog.Background().V(8).Info("Response body", "body", "s3cret")
	klog.V(8).InfoS("Response body", "body", "s3cret")
	assert.Contains(t, out.String(), `"msg":"throttled"`)
	assert.NotContains(t, out.String(), "s3cret")
}

func TestEachErrorHasItsLine(t *testing.T) {
	err := errors.Join(errors.New("first\x1b[31m"), errors.New("second\nhalf"))
	var out bytes.Buffer
	printErrors(&out, nil, true, err)
	assert.Equal(t, "error: first[31m\nerror: second half\n", out.String())

	out.Reset()
	printErrors(&out, newLog(&out, slog.LevelInfo, "json", false), false, err)
	lines := strings.Split(strings.TrimSpace(out.String()), "\n")
	require.Len(t, lines, 2)
	for i, want := range []string{"first[31m", "second half"} {
		var line struct{ Level, Error string }
		require.NoError(t, json.Unmarshal([]byte(lines[i]), &line))
		assert.Equal(t, "ERROR", line.Level)
		assert.Equal(t, want, line.Error)
	}
}

// What a cluster says must not act on the terminal that a log is read in, and not fill the log.
func TestLogsHoldWhatAClusterSaysWithinBounds(t *testing.T) {
	for _, format := range []string{"text", "json"} {
		var out strings.Builder
		log := newLog(&out, slog.LevelInfo, format, false)
		log.Info("said", "error", errors.New("a\x1b[31m\u202eb"+strings.Repeat("x", 1<<20)), slog.Group("in", "text", "c\u202ed"))
		require.NotContains(t, out.String(), "\x1b")
		require.NotContains(t, out.String(), "\u202e")
		require.Less(t, out.Len(), 10<<10)
		require.Contains(t, out.String(), "cd")
	}
}
