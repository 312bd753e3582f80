package e2e

import (
	"encoding/base64"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"

	dto "github.com/prometheus/client_model/go"
	"github.com/prometheus/common/expfmt"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	tracev1 "go.opentelemetry.io/proto/otlp/trace/v1"
	"google.golang.org/protobuf/proto"
)

// receiver keeps what is sent to it, by path.
type receiver struct {
	lock sync.Mutex
	sent map[string][]byte
}

func (r *receiver) ServeHTTP(w http.ResponseWriter, sent *http.Request) {
	body, err := io.ReadAll(sent.Body)
	if err != nil {
		w.WriteHeader(http.StatusBadRequest)
		return
	}
	r.lock.Lock()
	defer r.lock.Unlock()
	r.sent[sent.URL.Path] = append(r.sent[sent.URL.Path], body...) // messages that follow each other are one
	w.Header().Set("Content-Type", "application/x-protobuf")
}

// TestAPassIsTracedAndPushed runs a real pass with a collector and a Pushgateway: every request that it counts is a span
// in a phase of the one pass, and nothing of a Secret leaves the clusters.
func TestAPassIsTracedAndPushed(t *testing.T) {
	s := suite(t)
	layPolicy(t, s, nil)
	require.NoError(t, s.tenant.Apply(t.Context(), []byte(exampleTenant)))
	received := &receiver{sent: map[string][]byte{}}
	server := httptest.NewServer(received)
	defer server.Close()
	result, requests := onePass(t, s, map[string]string{
		"OTEL_EXPORTER_OTLP_ENDPOINT": server.URL, "SYNCPASS_PUSHGATEWAY": server.URL + "/push",
	})
	require.Equal(t, 4, result.Counts.Create)

	var export tracev1.TracesData
	require.NoError(t, proto.Unmarshal(received.sent["/v1/traces"], &export))
	spans := map[string]*tracev1.Span{}
	for _, resource := range export.ResourceSpans {
		for _, scope := range resource.ScopeSpans {
			for _, span := range scope.Spans {
				spans[string(span.SpanId)] = span
			}
		}
	}
	phases, traced := map[string]int{}, 0
	for _, span := range spans {
		parent := spans[string(span.ParentSpanId)]
		switch {
		case span.Name == "pass":
			assert.Empty(t, span.ParentSpanId)
			phases["pass"]++
		case span.Kind == tracev1.Span_SPAN_KIND_CLIENT:
			require.NotNil(t, parent, span.Name)
			traced++
		default:
			require.NotNil(t, parent, span.Name)
			assert.Equal(t, "pass", parent.Name)
			phases[span.Name]++
		}
	}
	assert.Equal(t, map[string]int{"pass": 1, "load": 1, "lease": 1, "snapshot": 1, "plan": 1, "reserve": 1, "apply": 1, "record": 1, "events": 1}, phases)
	assert.Equal(t, len(requests), traced, "requests")
	for path, sent := range received.sent {
		assert.NotContains(t, string(sent), "hunter2", path)
		assert.NotContains(t, string(sent), base64.StdEncoding.EncodeToString([]byte("hunter2")), path)
	}

	pushed := map[string]*dto.MetricFamily{}
	for path, sent := range received.sent {
		if strings.HasPrefix(path, "/push/metrics/job/syncpass/") {
			decoder := expfmt.NewDecoder(strings.NewReader(string(sent)), expfmt.NewFormat(expfmt.TypeProtoDelim))
			for {
				family := &dto.MetricFamily{}
				err := decoder.Decode(family)
				if errors.Is(err, io.EOF) {
					break
				}
				require.NoError(t, err)
				pushed[family.GetName()] = family
			}
		}
	}
	require.Contains(t, pushed, "syncpass_pairs")
	assert.EqualValues(t, 4, pushed["syncpass_pairs"].Metric[0].Gauge.GetValue())
	assert.Contains(t, pushed, "syncpass_last_success_timestamp_seconds")
}
