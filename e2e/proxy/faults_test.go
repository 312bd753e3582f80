package proxy

import (
	"io"
	"net/http"
	"net/url"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// always is a hook that has one handler answer everything.
func always(handler http.Handler) Hook {
	return func(m Moment, _ Request) http.Handler {
		if m == Before {
			return handler
		}
		return nil
	}
}

func TestAStatusIsWhatAnAPIServerRefusesWith(t *testing.T) {
	p, _, client, _ := fixture(t, http.StatusOK)
	p.SetHook(always(Status(http.StatusTooManyRequests, metav1.StatusReasonTooManyRequests, "later", RetryAfter("7"))))
	response, body, err := send(t, client, http.MethodGet, p.URL()+configMaps, "")
	require.NoError(t, err)
	require.Equal(t, http.StatusTooManyRequests, response.StatusCode)
	require.Equal(t, "7", response.Header.Get("Retry-After"))
	require.JSONEq(t, `{"kind":"Status","apiVersion":"v1","metadata":{},"status":"Failure","message":"later","reason":"TooManyRequests","code":429}`, body)
}

func TestACutBodyIsAnErrorToItsReader(t *testing.T) {
	for name, quietly := range map[string]bool{"reset": false, "as if it were whole": true} {
		t.Run(name, func(t *testing.T) {
			p, _, client, _ := fixture(t, http.StatusOK)
			p.SetHook(always(Cut([]byte("0123456789"), quietly)))
			_, body, err := send(t, client, http.MethodGet, p.URL()+configMaps, "")
			require.Error(t, err)
			require.Equal(t, "01234", body)
		})
	}
}

func TestWhatHangsOrDripsEndsWithTheClientsPatience(t *testing.T) {
	for name, handler := range map[string]http.Handler{"hangs": Hang, "drips": Drip([]byte("0123456789"), time.Hour)} {
		t.Run(name, func(t *testing.T) {
			p, log, client, _ := fixture(t, http.StatusOK)
			client.Timeout = 50 * time.Millisecond
			p.SetHook(always(handler))
			_, _, err := send(t, client, http.MethodGet, p.URL()+configMaps, "")
			require.Error(t, err)
			_, err = log.Settled(t.Context(), 0)
			require.NoError(t, err, "the proxy lets go of it")
		})
	}
}

func TestABodyDripsThrough(t *testing.T) {
	p, _, client, _ := fixture(t, http.StatusOK)
	p.SetHook(always(Drip([]byte("0123"), time.Millisecond)))
	_, body, err := send(t, client, http.MethodGet, p.URL()+configMaps, "")
	require.NoError(t, err)
	require.Equal(t, "0123", body)
}

func TestAFilterSeesTheWholeAnswerAndMayChangeIt(t *testing.T) {
	p, log, client, _ := fixture(t, http.StatusOK)
	p.SetFilter(func(r Request, a Answer) http.Handler {
		if r.Method == http.MethodPut {
			return nil
		}
		return Body(http.StatusAccepted, "text/plain", append(a.Body, "!"...))
	})
	response, body, err := send(t, client, http.MethodPost, p.URL()+configMaps, "x")
	require.NoError(t, err)
	require.Equal(t, http.StatusAccepted, response.StatusCode)
	require.Equal(t, "HTTP/2.0 Bearer the client's "+configMaps+" x!", body)
	require.Equal(t, http.StatusAccepted, log.Since(0)[0].Status)
	require.Equal(t, 1, Writes(log.Since(0)))

	_, body, err = send(t, client, http.MethodPut, p.URL()+configMaps, "x")
	require.NoError(t, err)
	require.Equal(t, "HTTP/2.0 Bearer the client's "+configMaps+" x", body, "what it does not change arrives whole")
}

func TestAQueryIsChangedOnItsWayOnly(t *testing.T) {
	p, log, client, _ := fixture(t, http.StatusOK)
	p.SetQuery(func(path string, query url.Values) {
		require.Equal(t, configMaps, path)
		query.Set("limit", "3")
	})
	_, body, err := send(t, client, http.MethodGet, p.URL()+configMaps+"?limit=500", "")
	require.NoError(t, err)
	require.Contains(t, body, configMaps+"?limit=3")
	require.Equal(t, "limit=500", log.Since(0)[0].Query)
}

func TestAfterAGoAwayTheClientComesBackOnAnotherConnection(t *testing.T) {
	p, _, client, seen := fixture(t, http.StatusOK)
	p.SetFilter(func(_ Request, a Answer) http.Handler { return GoAway(a) })
	for range 3 {
		request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, p.URL()+configMaps, nil)
		require.NoError(t, err)
		response, err := client.Do(request)
		require.NoError(t, err)
		_, err = io.Copy(io.Discard, response.Body)
		require.NoError(t, err)
		require.NoError(t, response.Body.Close())
	}
	require.Equal(t, 3, seen())
}
