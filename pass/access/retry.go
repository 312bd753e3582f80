package access

import (
	"errors"
	"io"
	"net/http"
	"strconv"
	"time"

	"k8s.io/apimachinery/pkg/util/wait"
)

// maxRetryAfter bounds how long a server can make its client wait before the next try.
const maxRetryAfter = 30 * time.Second

// retryBackoff spaces the tries of one read: the first, and two more.
var retryBackoff = wait.Backoff{Duration: 200 * time.Millisecond, Factor: 3, Jitter: 0.5, Steps: 3}

// retrier decides what is tried again. client-go repeats any request, reads and writes alike, whose answer is 429 or 5xx
// with a Retry-After, up to ten times and for whatever time it is told; it repeats no other answer. So:
//
//	answer       Retry-After           read                      write
//	429          1s..30s, in time      client-go waits, repeats  client-go waits, repeats: 429 comes before any effect
//	429          beyond the deadline   fails at once             fails at once
//	429          none                  repeated here, twice      fails at once
//	500,502-504  1s..30s, in time      client-go waits, repeats  fails at once: perhaps it was carried out, and then a
//	                                                             repetition would meet its own work as a conflict
//	500,502-504  beyond the deadline   fails at once             fails at once
//	500,502-504  none                  repeated here, twice      fails at once
//
// A longer Retry-After is cut to 30s; one of 0 counts as 1s; one that is negative or no number as none. Everything
// happens within the request's own deadline.
type retrier struct {
	next    http.RoundTripper
	backoff wait.Backoff
}

// RoundTrip implements http.RoundTripper.
func (r *retrier) RoundTrip(req *http.Request) (*http.Response, error) {
	read := req.Method == http.MethodGet
	backoff := r.backoff // A copy: Step counts down.
	for {
		resp, err := r.next.RoundTrip(req)
		if err != nil {
			return nil, err
		}
		asked, ok := retryAfter(resp)
		resp.Header.Del("Retry-After")
		switch {
		case ok && inTime(req, asked) && (read || resp.StatusCode == http.StatusTooManyRequests):
			resp.Header.Set("Retry-After", strconv.Itoa(int(asked/time.Second)))
			return resp, nil
		case ok, !read, !passing(resp.StatusCode):
			return resp, nil
		}
		delay := backoff.Step()
		if backoff.Steps == 0 || !sleep(req, delay) {
			return resp, nil
		}
		// What is left of a short body is read so that its connection can be used again.
		_, _ = io.CopyN(io.Discard, resp.Body, 2<<10)
		resp.Body.Close()
	}
}

// retryAfter returns how long the server asks its client to wait, within bounds, and whether it does ask.
func retryAfter(resp *http.Response) (time.Duration, bool) {
	seconds, err := strconv.ParseInt(resp.Header.Get("Retry-After"), 10, 64)
	if (err != nil && !errors.Is(err, strconv.ErrRange)) || seconds < 0 {
		return 0, false
	}
	// Compared as seconds: as a Duration, the largest values overflow.
	return time.Duration(min(max(seconds, 1), int64(maxRetryAfter/time.Second))) * time.Second, true
}

// passing says whether the same request may be answered in a moment.
func passing(status int) bool {
	switch status {
	case http.StatusTooManyRequests, http.StatusInternalServerError, http.StatusBadGateway, http.StatusServiceUnavailable, http.StatusGatewayTimeout:
		return true
	}
	return false
}

// inTime says whether the request's deadline leaves time for a wait of d.
func inTime(req *http.Request, d time.Duration) bool {
	deadline, ok := req.Context().Deadline()
	return !ok || time.Until(deadline) > d
}

// sleep waits, and returns false at once where there is no time for it or the request is cancelled.
func sleep(req *http.Request, d time.Duration) bool {
	if !inTime(req, d) {
		return false
	}
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-req.Context().Done():
		return false
	case <-timer.C:
		return true
	}
}
