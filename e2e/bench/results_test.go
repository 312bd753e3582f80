package main

import (
	"bytes"
	"encoding/xml"
	"errors"
	"io"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/syncpass/syncpass/e2e/proxy"
)

func TestARowIsTheMedianOfItsSamples(t *testing.T) {
	c := &collected{}
	for i, wall := range []time.Duration{5, 1, 2} {
		c.add(&run{usage: usage{Wall: wall * time.Second, CPU: wall * time.Second / 2, PeakRSS: int64(wall) << 20}})
		c.addFloor(time.Second, time.Duration(i)*time.Second)
		c.addLoop(wall * time.Minute)
	}
	c.add(&run{usage: usage{Wall: time.Hour}, seen: &seen{Requests: 9, Writes: 4, RecordBytes: 7, RecordObjects: 1, Received: map[string]int64{"host": 3, "tenant": 2}}})
	require.Equal(t, Row{
		Samples: 3, WallSeconds: 2, CPUSeconds: 1, PeakRSSBytes: 2 << 20, FloorSeconds: 2, FloorWriteSeconds: 1, LoopSeconds: 120,
		Observed: true, Writes: 4, RecordBytes: 7, RecordObjects: 1, BytesHost: 3, BytesTenant: 2,
	}, c.done(), "the time of the pass through the proxies is not taken")

	require.Zero(t, median(nil))
	require.InDelta(t, 1.5, median([]float64{2, 1}), 1e-9)
}

func TestWhatTheProxiesSawIsCountedByWhatItIs(t *testing.T) {
	const records = "/apis/tenantplane.io/v1alpha1/namespaces/a/syncdecisions"
	got := look([]proxy.Request{
		{Server: "host", Method: "GET", Path: "/api/v1/namespaces/a/configmaps", Received: 10},
		{Server: "tenant", Method: "GET", Path: "/api/v1/configmaps", Received: 20},
		{Server: "host", Method: "PUT", Path: "/apis/coordination.k8s.io/v1/namespaces/a/leases/x", Sent: 1, Received: 1},
		{Server: "host", Method: "POST", Path: "/api/v1/namespaces/a/configmaps", Write: true},
		{Server: "host", Method: "POST", Path: "/api/v1/namespaces/a/configmaps", Query: "dryRun=All"},
		{Server: "host", Method: "POST", Path: "/api/v1/namespaces/a/events"},
		{Server: "host", Method: "POST", Path: records, Sent: 5},
		{Server: "host", Method: "PUT", Path: records + "/t/status", Sent: 100},
		{Server: "host", Method: "PUT", Path: records + "/t/status", Sent: 100},
		{Server: "host", Method: "PUT", Path: records + "/t-1/status", Sent: 50},
	})
	require.Equal(t, &seen{Requests: 10, Writes: 6, RecordBytes: 255, RecordObjects: 2, Received: map[string]int64{"host": 11, "tenant": 20}}, got)
}

// met are rows that just meet every bar.
func met() []Row {
	return []Row{
		{Name: "configmaps/10000/first", Pairs: 10000, Tenants: 1, WallSeconds: 10, FloorWriteSeconds: 8, FloorWrites: 11000, PeakRSSBytes: usualPeak},
		{Name: "configmaps/10000/quiet", Pairs: 10000, Tenants: 1, WallSeconds: 0.5, FloorSeconds: 0.2, LoopSeconds: 20, Requests: 60, Observed: true, PeakRSSBytes: usualPeak},
		{Name: "configmaps/10000/changed-1%", Pairs: 10000, Tenants: 1, WallSeconds: 0.8, FloorWriteSeconds: 0.2, PeakRSSBytes: usualPeak},
		{Name: "configmaps/100000/quiet", Pairs: 100000, Tenants: 1, WallSeconds: 6, PeakRSSBytes: largePeak},
		{Name: "configmaps/100000/one-change", Pairs: 100000, Tenants: 1, RecordObjects: 2, RecordBytes: oneChangeBytes},
		{Name: "tenants/200/quiet", Pairs: 10000, Tenants: 200, WallSeconds: 1.5, FloorSeconds: 1, PeakRSSBytes: 2 * usualPeak},
		{Name: "configmaps/1000/quiet", Pairs: 1000, Tenants: 1, WallSeconds: 100},
	}
}

func TestRowsAreHeldAgainstTheBars(t *testing.T) {
	bars := judge(met())
	require.Len(t, bars, 13)
	for _, bar := range bars {
		require.True(t, bar.OK, "%+v", bar)
	}
	require.Equal(t, "-", verdict(bars, "configmaps/1000/quiet"))
	require.Equal(t, "ok", verdict(bars, "configmaps/10000/quiet"))

	for name, worse := range map[string]func(rows []Row){
		"a first pass that writes slowly":     func(rows []Row) { rows[0].WallSeconds += 0.1 },
		"a first pass that holds much":        func(rows []Row) { rows[0].PeakRSSBytes++ },
		"a slow quiet pass":                   func(rows []Row) { rows[1].FloorSeconds -= 0.01 },
		"a loop that is nearly as fast":       func(rows []Row) { rows[1].LoopSeconds-- },
		"a request too many":                  func(rows []Row) { rows[1].Requests++ },
		"a write in a quiet pass":             func(rows []Row) { rows[1].Writes++ },
		"a quiet pass that nobody looked at":  func(rows []Row) { rows[1].Observed = false },
		"slow changes":                        func(rows []Row) { rows[2].WallSeconds += 0.01 },
		"much slower with ten times the size": func(rows []Row) { rows[3].WallSeconds += 0.1 },
		"much memory for 100,000":             func(rows []Row) { rows[3].PeakRSSBytes++ },
		"a third SyncDecision":                func(rows []Row) { rows[4].RecordObjects++ },
		"a byte too many in the record":       func(rows []Row) { rows[4].RecordBytes++ },
		"slow tenants":                        func(rows []Row) { rows[5].WallSeconds += 0.01 },
	} {
		rows := met()
		worse(rows)
		missed := 0
		for _, bar := range judge(rows) {
			if !bar.OK {
				missed++
				require.Contains(t, verdict(judge(rows), bar.Row), "MISSED 1 of")
			}
		}
		require.Equal(t, 1, missed, name)
	}
	require.Empty(t, judge(nil))
}

func TestTheTableMarksWhatIsMissingAndWhatIsExtrapolated(t *testing.T) {
	r := &results{Machine: Machine{CPU: "Fast CPU", Cores: 2, RAMBytes: 24 << 30, Load: 1.5}, Rows: []Row{
		{Name: "configmaps/100000/first", WallSeconds: 100, FloorSeconds: 80, FloorExtrapolated: true, LoopSeconds: 400, LoopExtrapolated: true},
	}}
	r.Bars = judge(met())
	r.Bars[0].OK = false
	var out bytes.Buffer
	require.NoError(t, r.print(&out))
	for _, want := range []string{"Fast CPU, 2 cores, 24 GiB", "NOT IDLE: load 1.5", "~80.00", "~400.0", "MISSED  " + r.Bars[0].Row} {
		require.Contains(t, out.String(), want)
	}
	r.Machine.Load = 0.3
	require.NotContains(t, r.Machine.String(), "NOT IDLE")
}

func TestTheChartIsWellFormedAndShowsEveryRowOnce(t *testing.T) {
	r := &results{Machine: Machine{CPU: "R&D <1>"}, Rows: []Row{
		{Name: "configmaps/1000/quiet", Pairs: 1000, WallSeconds: 0.1, FloorSeconds: 0.05, LoopSeconds: 2},
		{Name: "configmaps/10000/quiet", Pairs: 10000, WallSeconds: 0.4, FloorSeconds: 0.2, LoopSeconds: 17},
		{Name: "configmaps/10000/one-change", Pairs: 10000, Changes: 1, WallSeconds: 0.5, FloorSeconds: 0.3, LoopSeconds: 17},
		{Name: "configmaps/10000/first", Pairs: 10000, Changes: 10000, WallSeconds: 13, FloorSeconds: 11, LoopSeconds: 25},
		{Name: "configmaps/10000/deleted", Pairs: 10000, Changes: 10000, WallSeconds: 20, FloorSeconds: 18, LoopSeconds: 25},
		{Name: "pods/1000/quiet", Pairs: 1000, WallSeconds: 9},
	}}
	drawing, err := chart(r)
	require.NoError(t, err)
	decoder := xml.NewDecoder(bytes.NewReader(drawing))
	for {
		if _, err = decoder.Token(); err != nil {
			break
		}
	}
	require.True(t, errors.Is(err, io.EOF), "%v\n%s", err, drawing)
	text := string(drawing)
	require.Equal(t, 3+6, strings.Count(text, "<polyline"), "three in the legend and in each panel")
	require.Equal(t, 12, strings.Count(text, "<circle"))
	require.Contains(t, text, "A pass over 10,000 objects")
	require.Contains(t, text, "R&amp;D &lt;1&gt;")
	require.Contains(t, text, "prefers-color-scheme: dark")
	require.NotContains(t, text, "NaN")

	_, err = chart(&results{})
	require.ErrorContains(t, err, "nothing to draw")
}

func TestNumbersAreGrouped(t *testing.T) {
	for n, want := range map[int]string{0: "0", 999: "999", 1000: "1,000", 1234567: "1,234,567"} {
		require.Equal(t, want, grouped(n))
	}
}
