package access

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
)

// answer is what a server that exists only in memory says.
type answer struct {
	status     int
	retryAfter string
}

// answers is the transport to that server: one answer after the other, the last one for ever.
type answers struct {
	script []answer
	sent   []time.Time
}

func (a *answers) RoundTrip(req *http.Request) (*http.Response, error) {
	next := a.script[min(len(a.sent), len(a.script)-1)]
	a.sent = append(a.sent, time.Now())
	body := `{"kind":"ConfigMap","apiVersion":"v1","metadata":{"name":"app"}}`
	if next.status != http.StatusOK {
		body = fmt.Sprintf(`{"kind":"Status","apiVersion":"v1","status":"Failure","code":%d}`, next.status)
	}
	resp := &http.Response{
		StatusCode: next.status, Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1, Request: req, ContentLength: int64(len(body)),
		Header: http.Header{"Content-Type": {"application/json"}}, Body: io.NopCloser(strings.NewReader(body)),
	}
	if next.retryAfter != "" {
		resp.Header.Set("Retry-After", next.retryAfter)
	}
	return resp, nil
}

// over returns a cluster whose server is the transport.
func over(t *testing.T, transport http.RoundTripper, timeout time.Duration) *Cluster {
	t.Helper()
	c := &Cluster{config: &rest.Config{Host: "https://in.memory", QPS: -1, Timeout: timeout}, transport: newBounded(transport)}
	require.NoError(t, c.connect())
	return c
}

func TestWhatIsTriedAgain(t *testing.T) {
	ok := answer{status: http.StatusOK}
	const timeout = time.Minute
	for name, tt := range map[string]struct {
		script   []answer
		write    bool
		requests int
		atLeast  time.Duration
		below    time.Duration
		code     int32 // 0: success
	}{
		"a read that fails once succeeds the second time":               {script: []answer{{status: 503}, ok}, requests: 2, atLeast: 200 * time.Millisecond, below: time.Second},
		"a read that fails for ever is sent three times":                {script: []answer{{status: 500}}, requests: 3, atLeast: 800 * time.Millisecond, below: 3 * time.Second, code: 500},
		"a read that is throttled without a time is sent three times":   {script: []answer{{status: 429}}, requests: 3, below: 3 * time.Second, code: 429},
		"a read that is refused is not repeated":                        {script: []answer{{status: 403}}, requests: 1, code: 403},
		"a read waits as long as it is asked to":                        {script: []answer{{429, "7"}, ok}, requests: 2, atLeast: 7 * time.Second, below: 8 * time.Second},
		"a read waits 30s where it is asked for an hour":                {script: []answer{{429, "3600"}, ok}, requests: 2, atLeast: 30 * time.Second, below: 31 * time.Second},
		"a read waits 30s where the number overflows":                   {script: []answer{{503, "99999999999999999999999"}, ok}, requests: 2, atLeast: 30 * time.Second, below: 31 * time.Second},
		"a read waits 1s where it is asked for none":                    {script: []answer{{429, "0"}, ok}, requests: 2, atLeast: time.Second, below: 2 * time.Second},
		"a time in the past is none":                                    {script: []answer{{429, "-5"}, ok}, requests: 2, atLeast: 200 * time.Millisecond, below: time.Second},
		"a time that overflows downwards is none":                       {script: []answer{{429, "-99999999999999999999999"}, ok}, requests: 2, below: time.Second},
		"a time that is no number is none":                              {script: []answer{{429, "Wed, 21 Oct 2015 07:28:00 GMT"}, ok}, requests: 2, below: time.Second},
		"a read that may not be repeated in time fails at once":         {script: []answer{{429, "30"}, {429, "29"}, {429, "5"}, ok}, requests: 3, atLeast: 59 * time.Second, below: timeout, code: 429},
		"a server that asks to wait for ever is given up in time":       {script: []answer{{429, "1"}}, requests: 11, atLeast: 10 * time.Second, below: 11 * time.Second, code: 429},
		"a write that was throttled before it had an effect is resent":  {script: []answer{{429, "2"}, ok}, write: true, requests: 2, atLeast: 2 * time.Second, below: 3 * time.Second},
		"a write that was throttled without a time is not resent":       {script: []answer{{status: 429}, ok}, write: true, requests: 1, code: 429},
		"a write that failed is not resent":                             {script: []answer{{status: 500}, ok}, write: true, requests: 1, code: 500},
		"a write that failed is not resent when the server asks for it": {script: []answer{{504, "1"}, ok}, write: true, requests: 1, below: time.Second, code: 504},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				transport := &answers{script: tt.script}
				c, start := over(t, transport, timeout), time.Now()
				var err error
				if tt.write {
					_, err = c.Core().ConfigMaps("default").Create(context.Background(), &corev1.ConfigMap{}, metav1.CreateOptions{})
				} else {
					_, err = c.Core().ConfigMaps("default").Get(context.Background(), "app", metav1.GetOptions{})
				}
				assert.Len(t, transport.sent, tt.requests)
				assert.EqualValues(t, tt.requests, c.Requests(), "every try counts")
				assert.GreaterOrEqual(t, time.Since(start), tt.atLeast)
				if tt.below > 0 {
					assert.Less(t, time.Since(start), tt.below)
				}
				if tt.code == 0 {
					require.NoError(t, err)
					return
				}
				var status apierrors.APIStatus
				require.ErrorAs(t, err, &status, "what the server said is the error, not the time that ran out")
				assert.Equal(t, tt.code, status.Status().Code)
				assert.Equal(t, tt.code != 403, Unreachable(err))
			})
		})
	}
}

func TestACancelledReadIsNotRepeated(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		transport := &answers{script: []answer{{status: 503}}}
		c := over(t, transport, time.Minute)
		ctx, cancel := context.WithCancel(context.Background())
		time.AfterFunc(100*time.Millisecond, cancel)
		_, err := c.Core().ConfigMaps("default").Get(ctx, "app", metav1.GetOptions{})
		require.Error(t, err)
		assert.Len(t, transport.sent, 1)
	})
}
