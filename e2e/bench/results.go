package main

import (
	"slices"
	"time"
)

// results are what -json writes.
type results struct {
	Machine Machine `json:"machine"`
	Rows    []Row   `json:"rows"`
	Bars    []Bar   `json:"bars"`
}

// Row is one kind of pass over so many objects. Its numbers are medians of Samples runs of the binary, but for those
// that one more run through proxies gave: see Observed.
type Row struct {
	// Name is subject/objects/case, such as configmaps/10000/quiet.
	Name string `json:"name"`
	// Pairs is how many there are, of all tenants together; Changes how many of them the pass has to write.
	Pairs   int `json:"pairs"`
	Changes int `json:"changes"`
	Tenants int `json:"tenants"`
	Samples int `json:"samples"`

	WallSeconds  float64 `json:"wallSeconds"`
	CPUSeconds   float64 `json:"cpuSeconds"`
	PeakRSSBytes int64   `json:"peakRSSBytes"`

	// FloorSeconds is what the bare API calls take, FloorWriteSeconds the part of it that is writes of mirrors, Events and
	// record, FloorWrites their number.
	FloorSeconds      float64 `json:"floorSeconds"`
	FloorWriteSeconds float64 `json:"floorWriteSeconds"`
	FloorWrites       int     `json:"floorWrites"`
	// LoopSeconds is what the loop takes.
	LoopSeconds float64 `json:"loopSeconds"`
	// FloorExtrapolated and LoopExtrapolated say that a yardstick was measured on a part of the objects.
	FloorExtrapolated bool `json:"floorExtrapolated"`
	LoopExtrapolated  bool `json:"loopExtrapolated"`

	Requests int `json:"requests"`
	// RecordBytes is what was written to SyncDecisions, RecordObjects to how many. Without Observed it is the size of
	// those that changed.
	RecordBytes   int64 `json:"recordBytes"`
	RecordObjects int   `json:"recordObjects"`
	// Observed says that a pass was also run through the proxies, which gives Writes (all but those of the Lease), and
	// the bytes of the answers' bodies of each side.
	Observed    bool  `json:"observed"`
	Writes      int   `json:"writes"`
	BytesHost   int64 `json:"bytesHost"`
	BytesTenant int64 `json:"bytesTenant"`
}

// collected is a row on its way.
type collected struct {
	row                                                      Row
	walls, cpus, peaks, requests, floors, floorWrites, loops []float64
}

// add takes a run of the binary into the row.
func (c *collected) add(r *run) {
	if r.seen != nil {
		c.row.Observed = true
		c.row.Writes, c.row.RecordBytes, c.row.RecordObjects = r.seen.Writes, r.seen.RecordBytes, r.seen.RecordObjects
		c.row.BytesHost, c.row.BytesTenant = r.seen.Received["host"], r.seen.Received["tenant"]
		return
	}
	c.walls = append(c.walls, r.Wall.Seconds())
	c.cpus = append(c.cpus, r.CPU.Seconds())
	c.peaks = append(c.peaks, float64(r.PeakRSS))
	c.requests = append(c.requests, float64(r.counts().Requests))
}

// addFloor takes a measurement of the floor: its reads and its writes.
func (c *collected) addFloor(reads, writes time.Duration) {
	c.floors = append(c.floors, (reads + writes).Seconds())
	c.floorWrites = append(c.floorWrites, writes.Seconds())
}

func (c *collected) addLoop(took time.Duration) { c.loops = append(c.loops, took.Seconds()) }

// addRecord says what a pass left in its records, for a row that no proxy looks at, and how many writes the floor had.
func (c *collected) addRecord(w written, changes int) {
	if !c.row.Observed {
		c.row.RecordBytes, c.row.RecordObjects = w.bytes, w.objects()
	}
	c.row.FloorWrites = changes + w.events + len(w.pages)
	if w.head != nil {
		c.row.FloorWrites += 2
	}
}

func (c *collected) done() Row {
	r := c.row
	r.Samples = len(c.walls)
	r.WallSeconds, r.CPUSeconds, r.PeakRSSBytes = median(c.walls), median(c.cpus), int64(median(c.peaks))
	r.Requests = int(median(c.requests))
	r.FloorSeconds, r.FloorWriteSeconds, r.LoopSeconds = median(c.floors), median(c.floorWrites), median(c.loops)
	return r
}

// median is 0 of nothing, and between the two middle ones of an even number.
func median(values []float64) float64 {
	if len(values) == 0 {
		return 0
	}
	sorted := slices.Sorted(slices.Values(values))
	middle := len(sorted) / 2
	if len(sorted)%2 == 1 {
		return sorted[middle]
	}
	return (sorted[middle-1] + sorted[middle]) / 2
}
