package proxy

import (
	"bytes"
	"encoding/json"
	"io"
	"net/http"
	"net/url"
	"strconv"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Answer is an API server's whole answer, not compressed.
type Answer struct {
	Status int
	Header http.Header
	Body   []byte
}

// Filter may change an answer on its way to the client. It is called after a hook has let the answer pass, from many
// goroutines at once. If it returns a handler, this answers the client instead.
type Filter func(Request, Answer) http.Handler

// SetFilter makes filter the one that sees answers from now on; nil takes it away. While there is one, answers are read
// to their end before the client gets the first byte: a watch would never arrive.
func (p *Proxy) SetFilter(filter Filter) {
	if filter == nil {
		p.filter.Store(nil)
		return
	}
	p.filter.Store(&filter)
}

// SetQuery lets change alter the query that reaches the API server, of a GET; nil leaves all queries alone.
func (p *Proxy) SetQuery(change func(path string, query url.Values)) {
	if change == nil {
		p.query.Store(nil)
		return
	}
	p.query.Store(&change)
}

// pass is the way of an answer through the filter; nil lets it go on as it is.
func (f Filter) pass(r Request, answer *http.Response) (http.Handler, error) {
	body, err := io.ReadAll(answer.Body)
	_ = answer.Body.Close()
	if err != nil {
		return nil, err
	}
	answer.Body = io.NopCloser(bytes.NewReader(body))
	return f(r, Answer{Status: answer.StatusCode, Header: answer.Header, Body: body}), nil
}

// Status answers as an API server does that refuses: with a Status of this code and reason. What changes it comes last.
func Status(code int, reason metav1.StatusReason, message string, changes ...func(*metav1.Status, http.Header)) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		status := &metav1.Status{
			TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Status"},
			Status:   metav1.StatusFailure, Code: int32(code), Reason: reason, Message: message,
		}
		for _, change := range changes {
			change(status, w.Header())
		}
		data, err := json.Marshal(status)
		if err != nil {
			panic(err) // a Status of strings and numbers
		}
		Body(code, "application/json", data).ServeHTTP(w, nil)
	})
}

// RetryAfter adds that header to a Status.
func RetryAfter(value string) func(*metav1.Status, http.Header) {
	return func(_ *metav1.Status, header http.Header) { header.Set("Retry-After", value) }
}

// Body answers with this.
func Body(code int, contentType string, body []byte) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", contentType)
		w.WriteHeader(code)
		_, _ = w.Write(body) // a client that went away is no fault of the answer
	})
}

// Cut answers with the first half of a body that it announced whole, then resets the stream; or, quietly, ends as if
// that had been all.
func Cut(body []byte, quietly bool) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		w.Header().Set("Content-Length", strconv.Itoa(len(body)))
		_, _ = w.Write(body[:len(body)/2])
		_ = http.NewResponseController(w).Flush()
		if !quietly {
			panic(http.ErrAbortHandler)
		}
	})
}

// Hang answers nothing for as long as the client waits.
var Hang http.Handler = http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
	<-r.Context().Done()
	panic(http.ErrAbortHandler)
})

// Drip answers with a byte a time for as long as the client waits, until the body is through.
func Drip(body []byte, every time.Duration) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		ticker := time.NewTicker(every)
		defer ticker.Stop()
		for i := range body {
			_, _ = w.Write(body[i : i+1])
			_ = http.NewResponseController(w).Flush()
			select {
			case <-r.Context().Done():
				panic(http.ErrAbortHandler)
			case <-ticker.C:
			}
		}
	})
}

// GoAway passes an answer on and tells an HTTP/2 client to use this connection no more.
func GoAway(answer Answer) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Connection", "close") // net/http sends a GOAWAY for it
		w.Header().Set("Content-Type", answer.Header.Get("Content-Type"))
		w.WriteHeader(answer.Status)
		_, _ = w.Write(answer.Body)
	})
}
