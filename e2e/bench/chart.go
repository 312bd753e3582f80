package main

import (
	"bytes"
	_ "embed"
	"errors"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"text/template"
)

// The chart's size and that of its two panels, in SVG units.
const (
	chartWidth, chartHeight = 880, 380
	panelWidth, panelHeight = 340, 230
	panelTop                = 72
)

// panel is one diagram: cost against a quantity, both on logarithmic scales.
type panel struct {
	Title, Axis string
	Left        int
	XTicks      []tick
	YTicks      []tick
	Lines       []line
}

// tick is a mark on an axis; At is in SVG units.
type tick struct {
	At    float64
	Label string
}

// line is one series; Class names its colour in chart.svg.tmpl.
type line struct {
	Class, Label string
	Points       []point
	// Path is the line in SVG's words.
	Path string
}

// legend explains a line; the words begin behind a piece of it.
type legend struct {
	Class, Text string
	At, End     int
}

var legends = []legend{
	{"loop", "loop: object by object", 330, 360}, {"pass", "syncpass", 540, 570}, {"floor", "floor: the bare API calls", 660, 690},
}

// point is a value before and after it was scaled.
type point struct{ Value, Seconds, X, Y float64 }

//go:embed chart.svg.tmpl
var chartTemplate string

// chart draws what a pass over ConfigMaps costs against their number and against the changes among most of them.
func chart(r *results) ([]byte, error) {
	byCount := panel{Title: "A pass that finds nothing to do", Axis: "objects", Left: 70}
	byCount.Lines = series(r, func(row Row) (float64, bool) {
		return float64(row.Pairs), strings.HasPrefix(row.Name, "configmaps/") && strings.HasSuffix(row.Name, "/quiet")
	})
	pairs := chartPairs(r)
	byChanges := panel{Title: fmt.Sprintf("A pass over %s objects", grouped(pairs)), Axis: "changed objects", Left: 480}
	byChanges.Lines = series(r, func(row Row) (float64, bool) {
		wanted := strings.HasPrefix(row.Name, "configmaps/") && row.Pairs == pairs && row.Changes > 0 && !strings.HasSuffix(row.Name, "/deleted")
		return float64(row.Changes), wanted
	})
	panels := []panel{byCount, byChanges}
	for i := range panels {
		if len(panels[i].Lines) == 0 {
			return nil, errors.New("there is nothing to draw: the rows of ConfigMaps are missing")
		}
		panels[i].scale()
	}
	parsed, err := template.New("chart").Parse(chartTemplate)
	if err != nil {
		return nil, err
	}
	var drawing bytes.Buffer
	err = parsed.Execute(&drawing, map[string]any{
		"Width": chartWidth, "Height": chartHeight, "Top": panelTop, "Bottom": panelTop + panelHeight,
		"Panels": panels, "Legend": legends, "Machine": r.Machine.String(),
	})
	return drawing.Bytes(), err
}

// chartPairs is the number of ConfigMaps whose changes are drawn: 10,000, or else the largest.
func chartPairs(r *results) int {
	largest := 0
	for _, row := range r.Rows {
		if strings.HasPrefix(row.Name, "configmaps/") {
			if row.Pairs == 10000 {
				return row.Pairs
			}
			largest = max(largest, row.Pairs)
		}
	}
	return largest
}

// series are the lines of the rows that x wants, at the place it gives.
func series(r *results, x func(Row) (float64, bool)) []line {
	lines := []line{{Class: "loop", Label: "loop"}, {Class: "pass", Label: "syncpass"}, {Class: "floor", Label: "floor"}}
	for _, row := range r.Rows {
		at, wanted := x(row)
		if !wanted {
			continue
		}
		for i, seconds := range []float64{row.LoopSeconds, row.WallSeconds, row.FloorSeconds} {
			if seconds > 0 {
				lines[i].Points = append(lines[i].Points, point{Value: at, Seconds: seconds})
			}
		}
	}
	for i := range lines {
		slices.SortFunc(lines[i].Points, func(a, b point) int { return int(a.Value - b.Value) })
	}
	return slices.DeleteFunc(lines, func(l line) bool { return len(l.Points) == 0 })
}

// scale puts points and ticks where they belong.
func (p *panel) scale() {
	var xs, ys []float64
	for _, l := range p.Lines {
		for _, at := range l.Points {
			xs, ys = append(xs, at.Value), append(ys, at.Seconds)
		}
	}
	fromX, toX := decades(xs)
	fromY, toY := decades(ys)
	x := func(v float64) float64 {
		return float64(p.Left) + panelWidth*(math.Log10(v)-float64(fromX))/float64(toX-fromX)
	}
	y := func(v float64) float64 {
		return panelTop + panelHeight*(1-(math.Log10(v)-float64(fromY))/float64(toY-fromY))
	}
	for d := fromX; d <= toX; d++ {
		p.XTicks = append(p.XTicks, tick{At: x(math.Pow10(d)), Label: grouped(int(math.Pow10(d)))})
	}
	for d := fromY; d <= toY; d++ {
		p.YTicks = append(p.YTicks, tick{At: y(math.Pow10(d)), Label: strconv.FormatFloat(math.Pow10(d), 'f', -1, 64) + " s"})
	}
	for i := range p.Lines {
		l := &p.Lines[i]
		path := make([]string, 0, len(l.Points))
		for k := range l.Points {
			at := &l.Points[k]
			at.X, at.Y = x(at.Value), y(at.Seconds)
			path = append(path, fmt.Sprintf("%.1f,%.1f", at.X, at.Y))
		}
		l.Path = strings.Join(path, " ")
	}
}

// Right is where the panel ends.
func (p panel) Right() int { return p.Left + panelWidth }

// decades are the powers of ten around values, at least one apart.
func decades(values []float64) (from, to int) {
	from = int(math.Floor(math.Log10(slices.Min(values))))
	to = int(math.Ceil(math.Log10(slices.Max(values))))
	return from, max(to, from+1)
}

// grouped is a number with commas.
func grouped(n int) string {
	text := strconv.Itoa(n)
	for i := len(text) - 3; i > 0; i -= 3 {
		text = text[:i] + "," + text[i:]
	}
	return text
}
