package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestMain lets the test binary be what it measures through, as the program itself is.
func TestMain(m *testing.M) {
	if len(os.Args) > 1 && os.Args[1] == launchVerb {
		if err := launch(os.Args[2:]); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	os.Exit(m.Run())
}

// A small run of everything, so that the bench is not found broken on the day it is needed.
func TestEveryRowIsMeasured(t *testing.T) {
	if testing.Short() {
		t.Skip("this test starts real control planes, which -short leaves out")
	}
	file := filepath.Join(t.TempDir(), "bench.json")
	var out bytes.Buffer
	require.NoError(t, bench(t.Context(), []string{"-sizes", "3", "-samples", "1", "-json", file}, &out, t.Output()))
	data, err := os.ReadFile(file)
	require.NoError(t, err)
	var measured results
	require.NoError(t, json.Unmarshal(data, &measured))

	rows := map[string]Row{}
	for _, row := range measured.Rows {
		rows[row.Name] = row
		require.Contains(t, out.String(), row.Name)
		require.Equal(t, 1, row.Samples, row.Name)
		require.True(t, row.Observed, row.Name)
		for what, number := range map[string]float64{
			"wall": row.WallSeconds, "CPU": row.CPUSeconds, "floor": row.FloorSeconds, "loop": row.LoopSeconds,
			"peak": float64(row.PeakRSSBytes), "requests": float64(row.Requests), "host": float64(row.BytesHost), "tenant": float64(row.BytesTenant),
		} {
			require.Positive(t, number, "%s of %s", what, row.Name)
		}
	}
	for name, want := range map[string]struct{ mirrors, changes int }{
		"configmaps/3/first": {3, 3}, "configmaps/3/quiet": {0, 0}, "configmaps/3/changed-1%": {1, 1}, "configmaps/3/one-change": {1, 1},
		"configmaps/3/deleted": {3, 3}, "pods/3/first": {3, 3}, "pods/3/quiet": {0, 0}, "tenants/3/quiet": {0, 0},
	} {
		require.Contains(t, rows, name)
		require.Equal(t, want.changes, rows[name].Changes, name)
		// Each mirror has an Event, and what is written is recorded.
		if want.mirrors == 0 {
			require.Zero(t, rows[name].Writes, name)
			require.Zero(t, rows[name].RecordBytes, name)
			require.Zero(t, rows[name].FloorWriteSeconds, name)
			continue
		}
		require.GreaterOrEqual(t, rows[name].Writes, 2*want.mirrors+1, name)
		require.Positive(t, rows[name].RecordObjects, name)
		require.Positive(t, rows[name].FloorWriteSeconds, name)
	}
	require.Len(t, rows, 8)
	require.Equal(t, 3*tenantObjects, rows["tenants/3/quiet"].Pairs)

	again := filepath.Join(t.TempDir(), "bench.svg")
	var shown bytes.Buffer
	require.NoError(t, bench(t.Context(), []string{"-from", file, "-chart", again}, &shown, t.Output()))
	require.Equal(t, out.String(), shown.String(), "results that are read back show the same table")
	require.FileExists(t, again)
}

func TestWhatIsMeasuredIsTheProcessAlone(t *testing.T) {
	held := bytes.Repeat([]byte("x"), 256<<20) // a measurer with much memory
	taken, stdout, stderr, err := measure(t.Context(), t.TempDir(), []string{"GREETING=hello"}, "/bin/sh", "-c", `echo $GREETING; echo oops >&2; exit 3`)
	require.NoError(t, err)
	require.Equal(t, "hello\n", string(stdout))
	require.Equal(t, "oops\n", string(stderr))
	require.Equal(t, 3, taken.Exit)
	require.Positive(t, taken.Wall)
	require.Less(t, taken.PeakRSS, int64(len(held))/2)
	require.Equal(t, byte('x'), held[len(held)-1])

	_, _, _, err = measure(t.Context(), t.TempDir(), nil, "/no/such/binary")
	require.ErrorContains(t, err, "/no/such/binary")
}

func TestFlagsThatMeanNothingAreRefused(t *testing.T) {
	for args, want := range map[string]string{
		"-sizes many":     `"many" is no number`,
		"-sizes 0":        `"0" is no number`,
		"-only secrets":   `no subject "secrets"`,
		"-samples 0":      "at least 1",
		"-direction up":   `"up" is neither`,
		"everything":      `unexpected argument "everything"`,
		"-from /no/where": "/no/where",
	} {
		require.ErrorContains(t, bench(t.Context(), strings.Fields(args), t.Output(), t.Output()), want, args)
	}
}

func TestQuickMeasuresLess(t *testing.T) {
	names := func(args ...string) (names []string) {
		o, err := parse(args)
		require.NoError(t, err)
		for _, s := range subjects(o) {
			names = append(names, s.name())
		}
		return names
	}
	require.Equal(t, []string{"configmaps/1000", "configmaps/10000", "configmaps/100000", "pods/1000", "pods/10000", "tenants/200"}, names())
	require.Equal(t, []string{"configmaps/1000", "configmaps/10000", "pods/1000", "tenants/50"}, names("-quick"))
	require.Equal(t, []string{"pods/7"}, names("-only", "pods", "-sizes", "7"))
}
