package main

import "fmt"

// Bar is something that a row must show, and what it did show.
type Bar struct {
	Row      string `json:"row"`
	Bar      string `json:"bar"`
	Measured string `json:"measured"`
	OK       bool   `json:"ok"`
}

const (
	megabyte = 1_000_000
	kibibyte = 1 << 10

	// slowdown is how much longer than the floor a pass may take.
	slowdown = 1.5
	// quietSlack is for what a process needs before its first request, in seconds.
	quietSlack = 0.2
	// loopFactor is how much faster than the loop a quiet pass must be.
	loopFactor    = 40
	quietRequests = 60
	// largeFactor is what ten times the pairs may cost.
	largeFactor     = 12
	writeRate       = 0.8
	usualPeak       = 130 * megabyte
	largePeak       = 400 * megabyte
	oneChangeBytes  = 600 * kibibyte
	oneChangeWrites = 2
)

// judge holds rows against the bars. Rows that were not measured are passed over.
//
//	row                          | bar
//	quiet, 10,000 pairs          | wall ≤ 1.5 × floor + 0.2 s; ≥ 40 × faster than loop; ≤ 60 requests; no write but the lease
//	quiet, 100,000 pairs         | ≤ 12 × the 10,000 row; peak RSS ≤ 400 MB
//	1 % changed of 10,000        | ≤ quiet + 1.5 × floor of those writes
//	first, 10,000                | ≥ 0.8 of the floor's write rate
//	any, 10,000                  | peak RSS ≤ 130 MB
//	one change among 100,000     | ≤ 2 SyncDecisions and 600 KiB written
//	tenants, quiet               | ≤ 1.5 × floor
func judge(rows []Row) []Bar {
	byName := map[string]Row{}
	for _, row := range rows {
		byName[row.Name] = row
	}
	var bars []Bar
	add := func(name string, ok bool, bar, measured string, args ...any) {
		bars = append(bars, Bar{Row: name, Bar: bar, Measured: fmt.Sprintf(measured, args...), OK: ok})
	}
	for _, row := range rows {
		name, quiet := row.Name, byName["configmaps/10000/quiet"]
		switch {
		case name == "configmaps/10000/quiet":
			allowed := slowdown*row.FloorSeconds + quietSlack
			add(name, row.WallSeconds <= allowed, "wall ≤ 1.5 × floor + 0.2 s", "%.2f s of %.2f s", row.WallSeconds, allowed)
			factor := row.LoopSeconds / row.WallSeconds
			add(name, factor >= loopFactor, "≥ 40 × faster than the loop", "%.0f ×", factor)
			add(name, row.Requests <= quietRequests, "≤ 60 requests", "%d", row.Requests)
			add(name, row.Observed && row.Writes == 0, "no write but the lease", "%d writes", row.Writes)
		case name == "configmaps/100000/quiet":
			if quiet.WallSeconds > 0 {
				factor := row.WallSeconds / quiet.WallSeconds
				add(name, factor <= largeFactor, "wall ≤ 12 × that of 10,000", "%.1f ×", factor)
			}
			add(name, row.PeakRSSBytes <= largePeak, "peak RSS ≤ 400 MB", "%d MB", row.PeakRSSBytes/megabyte)
		case name == "configmaps/10000/changed-1%" && quiet.WallSeconds > 0:
			allowed := quiet.WallSeconds + slowdown*row.FloorWriteSeconds
			add(name, row.WallSeconds <= allowed, "wall ≤ quiet + 1.5 × floor of the writes", "%.2f s of %.2f s", row.WallSeconds, allowed)
		case name == "configmaps/10000/first":
			// The same writes on both sides of the ratio, so the rates compare as the times do.
			rate := row.FloorWriteSeconds / row.WallSeconds
			add(name, rate >= writeRate, "≥ 0.8 of the floor's write rate", "%.2f, %.0f writes a second",
				rate, float64(row.FloorWrites)/row.WallSeconds)
		case name == "configmaps/100000/one-change":
			add(name, row.RecordObjects <= oneChangeWrites && row.RecordBytes <= oneChangeBytes,
				"≤ 2 SyncDecisions and 600 KiB written", "%d, %d KiB", row.RecordObjects, row.RecordBytes/kibibyte)
		case row.Tenants > 1:
			add(name, row.WallSeconds <= slowdown*row.FloorSeconds, "wall ≤ 1.5 × floor", "%.2f ×", row.WallSeconds/row.FloorSeconds)
		}
		if row.Pairs == 10000 && row.Tenants == 1 {
			add(name, row.PeakRSSBytes <= usualPeak, "peak RSS ≤ 130 MB", "%d MB", row.PeakRSSBytes/megabyte)
		}
	}
	return bars
}

// verdict is that of one row: nothing where no bar is about it.
func verdict(bars []Bar, row string) string {
	met, missed := 0, 0
	for _, bar := range bars {
		switch {
		case bar.Row != row:
		case bar.OK:
			met++
		default:
			missed++
		}
	}
	switch {
	case missed > 0:
		return fmt.Sprintf("MISSED %d of %d", missed, met+missed)
	case met > 0:
		return "ok"
	}
	return "-"
}
