package monitoring

import (
	"context"
	"testing"
	"time"

	"github.com/prometheus/prometheus/model/histogram"
	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/promql"
	"github.com/prometheus/prometheus/storage"
	"github.com/prometheus/prometheus/tsdb/chunkenc"
	"github.com/prometheus/prometheus/tsdb/chunks"
	"github.com/prometheus/prometheus/util/annotations"
)

// store has series in memory. Prometheus' own way of testing queries brings its database along, and with it the clients
// of three clouds.
type store struct{ series []storage.Series }

// load adds a series in the notation of Prometheus' unit tests of rules, a sample at each interval from time 0 on.
func (s *store) load(t *testing.T, every time.Duration, series string) {
	t.Helper()
	metric, values, err := promQL.ParseSeriesDesc(series)
	if err != nil {
		t.Fatal(err)
	}
	samples := make([]chunks.Sample, len(values))
	for i, value := range values {
		samples[i] = sample{at: int64(i) * every.Milliseconds(), value: value.Value}
	}
	s.series = append(s.series, storage.NewListSeries(metric, samples))
}

// evaluate is what a query yields some time after time 0.
func (s *store) evaluate(t *testing.T, query string, at time.Duration) promql.Vector {
	t.Helper()
	engine := promql.NewEngine(promql.EngineOpts{MaxSamples: 10_000, Timeout: time.Minute, LookbackDelta: 5 * time.Minute})
	defer engine.Close()
	asked, err := engine.NewInstantQuery(t.Context(), s, nil, query, time.UnixMilli(at.Milliseconds()))
	if err != nil {
		t.Fatal(err)
	}
	defer asked.Close()
	result := asked.Exec(t.Context())
	if result.Err != nil {
		t.Fatal(result.Err)
	}
	vector, err := result.Vector()
	if err != nil {
		t.Fatal(err)
	}
	return append(promql.Vector{}, vector...)
}

// Querier implements storage.Queryable.
func (s *store) Querier(int64, int64) (storage.Querier, error) { return querier{s.series}, nil }

type querier struct{ series []storage.Series }

// Select implements storage.Querier.
func (q querier) Select(_ context.Context, _ bool, _ *storage.SelectHints, matchers ...*labels.Matcher) storage.SeriesSet {
	found := &set{at: -1}
	for _, series := range q.series {
		matches := true
		for _, matcher := range matchers {
			matches = matches && matcher.Matches(series.Labels().Get(matcher.Name))
		}
		if matches {
			found.series = append(found.series, series)
		}
	}
	return found
}

// LabelValues implements storage.LabelQuerier; nothing asks for them.
func (querier) LabelValues(context.Context, string, *storage.LabelHints, ...*labels.Matcher) ([]string, annotations.Annotations, error) {
	return nil, nil, nil
}

// LabelNames implements storage.LabelQuerier; nothing asks for them.
func (querier) LabelNames(context.Context, *storage.LabelHints, ...*labels.Matcher) ([]string, annotations.Annotations, error) {
	return nil, nil, nil
}

// Close implements storage.LabelQuerier.
func (querier) Close() error { return nil }

// set implements storage.SeriesSet.
type set struct {
	series []storage.Series
	at     int
}

func (s *set) Next() bool {
	s.at++
	return s.at < len(s.series)
}
func (s *set) At() storage.Series                { return s.series[s.at] }
func (s *set) Err() error                        { return nil }
func (s *set) Warnings() annotations.Annotations { return nil }

// sample implements chunks.Sample: a number at a time, in milliseconds.
type sample struct {
	at    int64
	value float64
}

func (s sample) T() int64                      { return s.at }
func (s sample) ST() int64                     { return 0 }
func (s sample) F() float64                    { return s.value }
func (s sample) H() *histogram.Histogram       { return nil }
func (s sample) FH() *histogram.FloatHistogram { return nil }
func (s sample) Type() chunkenc.ValueType      { return chunkenc.ValFloat }
func (s sample) Copy() chunks.Sample           { return s }
