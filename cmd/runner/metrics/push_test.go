package metrics

import (
	"context"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"sync"
	"testing"
	"time"

	dto "github.com/prometheus/client_model/go"
	"github.com/prometheus/common/expfmt"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/types"

	"github.com/syncpass/syncpass/pass/access"
	"github.com/syncpass/syncpass/record"
)

// gateway is a Pushgateway that keeps what is pushed as a real one does: a POST replaces the metrics of the same name.
type gateway struct {
	mu     sync.Mutex
	groups map[string]map[string]*dto.MetricFamily // by namespace/tenant, by metric
	users  []string
	fault  error
	refuse int
}

func (g *gateway) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	g.mu.Lock()
	defer g.mu.Unlock()
	user, password, _ := r.BasicAuth()
	g.users = append(g.users, user+" "+password)
	if g.refuse != 0 {
		http.Error(w, "no", g.refuse)
		return
	}
	parts := strings.Split(strings.TrimPrefix(r.URL.Path, "/prefix/metrics/"), "/")
	group := map[string]string{}
	for i := 0; i+1 < len(parts); i += 2 {
		group[parts[i]] = parts[i+1]
	}
	if r.Method != http.MethodPost || group["job"] != "syncpass" || len(group) != 3 {
		g.fault = errors.New(r.Method + " " + r.URL.Path)
		return
	}
	key := group["namespace"] + "/" + group["tenant"]
	if g.groups[key] == nil {
		g.groups[key] = map[string]*dto.MetricFamily{}
	}
	for decoder := expfmt.NewDecoder(r.Body, expfmt.ResponseFormat(r.Header)); ; {
		family := &dto.MetricFamily{}
		if err := decoder.Decode(family); err != nil {
			if !errors.Is(err, io.EOF) {
				g.fault = err
			}
			return
		}
		g.groups[key][family.GetName()] = family
	}
}

// serve starts the gateway and returns its address, with credentials in it.
func (g *gateway) serve(t *testing.T) *url.URL {
	g.groups = map[string]map[string]*dto.MetricFamily{}
	server := httptest.NewServer(g)
	t.Cleanup(server.Close)
	address, err := ParseGateway(strings.Replace(server.URL, "http://", "http://me:s3cret@", 1) + "/prefix/")
	require.NoError(t, err)
	return address
}

func TestEachTenantIsPushedAsAGroupOfItsOwn(t *testing.T) {
	var g gateway
	address := g.serve(t)
	other := types.NamespacedName{Namespace: "team-b", Name: "dev"}
	m := New()
	m.Pass(busy(dev))
	m.Pass(ended(other, record.Completed))
	m.Request(record.Host, access.Request{Verb: "list"}, 200, time.Second)
	require.NoError(t, m.Push(t.Context(), address, []types.NamespacedName{dev, other}))
	require.NoError(t, g.fault)
	assert.Equal(t, []string{"me s3cret", "me s3cret"}, g.users)
	require.Len(t, g.groups, 2)

	conflicts, found := value(t, g.groups["team-dev/dev"], "syncpass_open_conflicts")
	assert.True(t, found, "the group's own labels are not on its series")
	assert.EqualValues(t, 2, conflicts)
	created, found := value(t, g.groups["team-dev/dev"], "syncpass_decisions_total", "action=Create", "reason=NoMirror")
	assert.True(t, found)
	assert.EqualValues(t, 2, created)
	took, found := value(t, g.groups["team-b/dev"], "syncpass_pass_duration_seconds")
	assert.True(t, found)
	assert.EqualValues(t, 1, took)
	assert.Contains(t, g.groups["team-b/dev"], "syncpass_last_success_timestamp_seconds")
	assert.NotContains(t, g.groups["team-b/dev"], "syncpass_api_requests_total", "they are of all tenants together")
	assert.NotContains(t, g.groups["team-b/dev"], "go_goroutines")
}

func TestAFailureLeavesThePushedSuccessAsItWas(t *testing.T) {
	var g gateway
	address := g.serve(t)
	first := New()
	first.Pass(ended(dev, record.Completed))
	require.NoError(t, first.Push(t.Context(), address, []types.NamespacedName{dev}))

	second := New() // of another process
	second.Pass(ended(dev, record.Unreachable))
	require.NoError(t, second.Push(t.Context(), address, []types.NamespacedName{dev}))
	require.NoError(t, g.fault)
	group := g.groups["team-dev/dev"]
	succeeded, _ := value(t, group, "syncpass_last_success_timestamp_seconds")
	assert.EqualValues(t, began.Add(2*time.Second).Unix(), succeeded)
	pairs, _ := value(t, group, "syncpass_pairs")
	assert.EqualValues(t, 40, pairs)
	_, found := value(t, group, "syncpass_passes_total", "outcome=Unreachable")
	assert.True(t, found)
	_, found = value(t, group, "syncpass_passes_total", "outcome=Completed")
	assert.False(t, found, "the outcome is that of the last pass alone")
}

func TestAPushThatFailsNamesTheTenantAndNotThePassword(t *testing.T) {
	m := New()
	m.Pass(ended(dev, record.Completed))
	refusing := gateway{refuse: http.StatusUnauthorized}
	err := m.Push(t.Context(), refusing.serve(t), []types.NamespacedName{dev})
	require.ErrorContains(t, err, "pushing the metrics of team-dev/dev: unexpected status code 401")
	assert.NotContains(t, err.Error(), "s3cret")

	nobody, err := ParseGateway("http://me:s3cret@127.0.0.1:1")
	require.NoError(t, err)
	err = m.Push(t.Context(), nobody, []types.NamespacedName{dev})
	require.ErrorContains(t, err, "connection refused")
	assert.NotContains(t, err.Error(), "s3cret")
}

func TestAPushIsNotSentOnToAnotherServer(t *testing.T) {
	elsewhere := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { t.Error("followed") }))
	defer elsewhere.Close()
	redirecting := httptest.NewServer(http.RedirectHandler(elsewhere.URL, http.StatusTemporaryRedirect))
	defer redirecting.Close()
	address, err := ParseGateway(redirecting.URL)
	require.NoError(t, err)
	m := New()
	m.Pass(ended(dev, record.Completed))
	require.ErrorContains(t, m.Push(t.Context(), address, []types.NamespacedName{dev}), "unexpected status code 307")
}

func TestAPushEndsWithItsContext(t *testing.T) {
	asked := make(chan struct{})
	over := make(chan struct{})
	silent := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {
		close(asked)
		<-over
	}))
	defer silent.Close()
	defer close(over)
	address, err := ParseGateway(silent.URL)
	require.NoError(t, err)
	m := New()
	m.Pass(ended(dev, record.Completed))
	ctx, cancel := context.WithCancel(t.Context())
	go func() {
		<-asked
		cancel()
	}()
	require.ErrorIs(t, m.Push(ctx, address, []types.NamespacedName{dev}), context.Canceled)
}
