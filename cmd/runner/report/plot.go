package report

import (
	"fmt"
	"strings"
	"time"

	"github.com/syncpass/syncpass/record"
)

// series are the actions of the plot, from the bottom of a bar to its top.
var series = []record.Action{record.Create, record.Update, record.Delete, record.Skip}

func seriesNames() []string {
	names := make([]string, len(series))
	for i, action := range series {
		names[i] = string(action)
	}
	return names
}

// class is the action's in the style sheet.
func class(a record.Action) string { return strings.ToLower(string(a)) }

// maxBuckets is how many bars there are at most.
const maxBuckets = 48

// steps are how long a bar may stand for; beyond the last one they double.
var steps = []time.Duration{
	time.Minute, 2 * time.Minute, 5 * time.Minute, 10 * time.Minute, 15 * time.Minute, 30 * time.Minute, time.Hour, 2 * time.Hour,
	3 * time.Hour, 6 * time.Hour, 12 * time.Hour, 24 * time.Hour, 48 * time.Hour, 7 * 24 * time.Hour,
}

// bucket are the decisions of one bar, in the order of series.
type bucket struct {
	Start  moment
	Counts [4]int
	All    int
}

// plot is the picture of decisions over time, in its own units, and the numbers that it is made of.
type plot struct {
	Width, Height       int
	Left, Right, Bottom float64
	Step                string
	From, To            moment
	Buckets             []bucket
	Totals              [4]int
	All                 int
	Bars                []bar
	Lines               []line
	Ticks               []tick
}

// bar is one action in one bucket.
type bar struct {
	Class, Title        string
	X, Y, Width, Height float64
}

// line is a horizontal line of the grid.
type line struct {
	Y     float64
	Label int
}

// tick is a time below the bars.
type tick struct {
	X     float64
	Text  string
	Place string
}

// Sizes of the picture.
const (
	plotWidth, plotHeight = 720, 220
	plotLeft, plotRight   = 44, 708
	plotTop, plotBottom   = 12, 188
)

// plotOf makes the picture from the oldest entry to now, nil where there is none. A skip that stands is one decision, at the
// time when it began.
func plotOf(entries []record.Entry, now time.Time) *plot {
	if len(entries) == 0 {
		return nil
	}
	first, last := entries[0].Time.Time, now
	for _, e := range entries {
		if e.Time.Time.Before(first) {
			first = e.Time.Time
		}
		if e.Time.After(last) { // by a clock that is ahead of this one
			last = e.Time.Time
		}
	}
	step, start, n := buckets(first, last)
	p := &plot{
		Width: plotWidth, Height: plotHeight, Left: plotLeft, Right: plotRight, Bottom: plotBottom,
		Step: spell(step), From: momentOf(start, now), To: momentOf(start.Add(time.Duration(n)*step), now), Buckets: make([]bucket, n),
	}
	for i := range p.Buckets {
		p.Buckets[i].Start = momentOf(start.Add(time.Duration(i)*step), now)
	}
	for _, e := range entries {
		b := &p.Buckets[e.Time.Sub(start)/step]
		for i, action := range series {
			if e.Action == action {
				b.Counts[i]++
				b.All++
				p.Totals[i]++
				p.All++
			}
		}
	}
	p.draw(start, step)
	return p
}

// buckets divides a time into equal parts that begin at round times.
func buckets(first, last time.Time) (step time.Duration, start time.Time, n int) {
	for i := 0; ; i++ {
		step = steps[min(i, len(steps)-1)] << max(0, i-len(steps)+1)
		start = first.UTC().Truncate(step)
		// A difference that a Duration cannot hold is cut to the longest one, 292 years, which some doubling exceeds.
		if n = int(last.Sub(start)/step) + 1; n <= maxBuckets || step > 1<<60 {
			return step, start, min(n, maxBuckets)
		}
	}
}

// spell is a time without the parts that are nought.
func spell(step time.Duration) string {
	text := step.String()
	if strings.HasSuffix(text, "m0s") {
		text = strings.TrimSuffix(text, "0s")
	}
	if strings.HasSuffix(text, "h0m") {
		text = strings.TrimSuffix(text, "0m")
	}
	if day := 24 * time.Hour; step > 0 && step%day == 0 {
		text = fmt.Sprintf("%dd", step/day)
	}
	return text
}

// draw places bars, grid and ticks.
func (p *plot) draw(start time.Time, step time.Duration) {
	highest := 1
	for _, b := range p.Buckets {
		highest = max(highest, b.All)
	}
	unit := gridUnit(highest)
	top := (highest + unit - 1) / unit * unit
	y := func(value int) float64 {
		return round(plotBottom - (plotBottom-plotTop)*float64(value)/float64(top))
	}
	for value := 0; value <= top; value += unit {
		p.Lines = append(p.Lines, line{Y: y(value), Label: value})
	}
	slot := float64(plotRight-plotLeft) / float64(len(p.Buckets))
	width := min(slot*0.8, 40)
	for i, b := range p.Buckets {
		below := 0
		for j, count := range b.Counts {
			if count == 0 {
				continue
			}
			x, low, high := plotLeft+slot*(float64(i)+0.5)-width/2, y(below), y(below+count)
			below += count
			p.Bars = append(p.Bars, bar{
				Class: class(series[j]), X: round(x), Y: high, Width: round(width), Height: round(low - high),
				Title: fmt.Sprintf("%s: %d %s", b.Start.Text, count, series[j]),
			})
		}
	}
	layout := "15:04"
	if step*time.Duration(len(p.Buckets)) > 24*time.Hour {
		layout = "Jan 2 15:04"
	}
	if step >= 24*time.Hour {
		layout = "2006-01-02"
	}
	for i, n := 0, len(p.Buckets); i <= 4 && i <= n; i++ {
		edge := i * n / min(4, n)
		if edge > n {
			break
		}
		place := "middle"
		switch edge {
		case 0:
			place = "start"
		case n:
			place = "end"
		}
		p.Ticks = append(p.Ticks, tick{X: round(plotLeft + slot*float64(edge)), Text: start.Add(time.Duration(edge) * step).Format(layout), Place: place})
	}
}

// gridUnit is the distance of the grid's lines: 1, 2 or 5 times a power of ten, and at most five of them.
func gridUnit(highest int) int {
	for power := 1; ; power *= 10 {
		for _, unit := range []int{power, 2 * power, 5 * power} {
			if unit*5 >= highest {
				return unit
			}
		}
	}
}

// round keeps two digits, so that the text of a page does not depend on the last bits of a machine's arithmetic.
func round(x float64) float64 { return float64(int(x*100+0.5)) / 100 }

// blocks draw a bar in text.
var blocks = []rune(" ▁▂▃▄▅▆▇█")

// spark is the picture in one line of text.
func (p *plot) spark() string {
	highest := 1
	for _, b := range p.Buckets {
		highest = max(highest, b.All)
	}
	line := make([]rune, len(p.Buckets))
	for i, b := range p.Buckets {
		line[i] = blocks[(b.All*(len(blocks)-1)+highest-1)/highest]
	}
	return string(line)
}
