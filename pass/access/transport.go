package access

import (
	"errors"
	"fmt"
	"io"
	"net/http"
	"sync/atomic"
)

const (
	// MaxBodyBytes bounds the body of one answer, in bytes after decompression. A list page that is larger fails with
	// ErrBodyTooLarge; asking for fewer items a page is the way out.
	MaxBodyBytes = 64 << 20
	// maxErrorBodyBytes bounds the body of an answer that is an error: its text ends up in messages.
	maxErrorBodyBytes = 1 << 20
)

var (
	// ErrBodyTooLarge is the cause of a failed request whose answer exceeded its bound. Nothing of it is used.
	ErrBodyTooLarge = errors.New("the answer is too large")
	// ErrRedirect is the cause of a failed request that was answered with a redirect.
	ErrRedirect = errors.New("the answer is a redirect, and redirects are not followed")
	// errBodyBroken marks a body that ended before its end.
	errBodyBroken = errors.New("the answer broke off")
)

// bounded refuses the answers that a server must not give:
//
//	redirect   an error. net/http would follow it and send the body again, client-go the token too (CVE-2022-3172), and
//	           a redirected POST arrives as a GET, whose 200 looks as if something had been created
//	body       an error once it is longer than MaxBodyBytes, never a silent cut
type bounded struct{ next http.RoundTripper }

func newBounded(next http.RoundTripper) http.RoundTripper { return &bounded{next: next} }

// WrappedRoundTripper lets client-go find the transport inside.
func (b *bounded) WrappedRoundTripper() http.RoundTripper { return b.next }

// RoundTrip implements http.RoundTripper.
func (b *bounded) RoundTrip(req *http.Request) (*http.Response, error) {
	resp, err := b.next.RoundTrip(req)
	if err != nil {
		// Not wrapped: client-go recognises some of these by identity.
		return nil, err
	}
	switch resp.StatusCode {
	case http.StatusMovedPermanently, http.StatusFound, http.StatusSeeOther, http.StatusTemporaryRedirect, http.StatusPermanentRedirect:
		resp.Body.Close()
		return nil, fmt.Errorf("%w: status %d, to %s", ErrRedirect, resp.StatusCode, quote(resp.Header.Get("Location")))
	}
	limit := int64(MaxBodyBytes)
	if resp.StatusCode >= http.StatusBadRequest {
		limit = maxErrorBodyBytes
	}
	if resp.ContentLength > limit {
		resp.Body.Close()
		return nil, fmt.Errorf("%w: %d bytes announced, at most %d are read", ErrBodyTooLarge, resp.ContentLength, limit)
	}
	resp.Body = &boundedBody{ReadCloser: resp.Body, left: limit, limit: limit}
	return resp, nil
}

// boundedBody fails once more than limit bytes have been read.
type boundedBody struct {
	io.ReadCloser
	left, limit int64
}

// Read implements io.Reader.
func (b *boundedBody) Read(p []byte) (int, error) {
	if b.left < 0 {
		return 0, b.tooLarge()
	}
	// One byte more than is allowed tells a body of exactly the limit from a longer one.
	if int64(len(p)) > b.left+1 {
		p = p[:b.left+1]
	}
	n, err := b.ReadCloser.Read(p)
	b.left -= int64(n)
	switch {
	case b.left < 0:
		return n - 1, b.tooLarge()
	case err != nil && err != io.EOF:
		return n, fmt.Errorf("%w: %w", errBodyBroken, err)
	}
	return n, err
}

func (b *boundedBody) tooLarge() error {
	return fmt.Errorf("%w: more than %d bytes", ErrBodyTooLarge, b.limit)
}

// counter counts requests, and tells of each. It stands before the transport that adds the credentials.
type counter struct {
	next     http.RoundTripper
	requests *atomic.Int64
	observe  Observe // nil for nobody
}

// RoundTrip implements http.RoundTripper.
func (c *counter) RoundTrip(req *http.Request) (*http.Response, error) {
	c.requests.Add(1)
	if c.observe == nil {
		return c.next.RoundTrip(req)
	}
	answered := c.observe(req.Context(), describe(req))
	resp, err := c.next.RoundTrip(req)
	status := 0
	if err == nil {
		status = resp.StatusCode
	}
	answered(status)
	return resp, err
}
