package proxy

import (
	"context"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/util/wait"
)

// Request is one request that came to a proxy, and what became of it.
type Request struct {
	// Number is its place in the log, from 0.
	Number int
	// Server is the name of the proxy that took it.
	Server    string
	Method    string
	Path      string
	Query     string
	UserAgent string
	// Start is when it came in.
	Start time.Time
	// Status is the code that the client was answered with; 0 while it waits, and
	// for good when the client got no answer.
	Status int
	// Sent and Received are the bytes of the client's body and of the one that it
	// was answered with, compressed where they travel so. They are settled when the
	// request is Done.
	Sent, Received int64
	// Write says that the request changed something, or may have: see isWrite. It
	// is settled when the request is Done.
	Write bool
	// Done says that the proxy has finished with it.
	Done bool
}

// String is the request as one line of a log.
func (r Request) String() string {
	mark := " "
	if r.Write {
		mark = "W"
	}
	status := "-"
	if r.Status != 0 {
		status = fmt.Sprint(r.Status)
	}
	line := fmt.Sprintf("%s %-6s %3s %-6s %s", mark, r.Server, status, r.Method, r.Path)
	if r.Query != "" {
		line += "?" + r.Query
	}
	return line
}

// Log is the requests of one proxy or of several, in the order they came in. The
// zero value is ready for use, by many goroutines at once.
type Log struct {
	mu       sync.Mutex
	requests []*Request
}

// Mark is a point in a Log: what came in before it is not returned by Since.
type Mark int

// Mark returns the present end of the log.
func (l *Log) Mark() Mark {
	l.mu.Lock()
	defer l.mu.Unlock()
	return Mark(len(l.requests))
}

// Since returns a copy of what came in after the mark.
func (l *Log) Since(m Mark) []Request {
	l.mu.Lock()
	defer l.mu.Unlock()
	since := make([]Request, 0, len(l.requests)-int(m))
	for _, r := range l.requests[m:] {
		since = append(since, *r)
	}
	return since
}

// Settled waits until every request since the mark is Done and returns them. A
// client that has exited leaves no request behind for long: its connections are
// closed, which ends them.
func (l *Log) Settled(ctx context.Context, m Mark) ([]Request, error) {
	var since []Request
	err := wait.PollUntilContextCancel(ctx, 5*time.Millisecond, true, func(context.Context) (bool, error) {
		since = l.Since(m)
		for _, r := range since {
			if !r.Done {
				return false, nil
			}
		}
		return true, nil
	})
	if err != nil {
		return since, fmt.Errorf("requests are still open: %w", err)
	}
	return since, nil
}

// Writes counts those that changed something.
func Writes(requests []Request) int {
	n := 0
	for _, r := range requests {
		if r.Write {
			n++
		}
	}
	return n
}

func (l *Log) add(server string, r *http.Request) *Request {
	entry := &Request{
		Server: server, Method: r.Method, Path: r.URL.Path, Query: r.URL.RawQuery,
		UserAgent: r.UserAgent(), Start: time.Now(),
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	entry.Number = len(l.requests)
	l.requests = append(l.requests, entry)
	return entry
}

// update changes an entry under the log's lock.
func (l *Log) update(entry *Request, change func(*Request)) {
	l.mu.Lock()
	defer l.mu.Unlock()
	change(entry)
}

// read returns a copy of an entry.
func (l *Log) read(entry *Request) Request {
	l.mu.Lock()
	defer l.mu.Unlock()
	return *entry
}

// notCounted are the resources, by group, whose writes are no change of an
// object: the records that a pass keeps for itself, and questions that the API
// has to be asked by POST.
var notCounted = map[string][]string{
	"":                      {"events"},
	"events.k8s.io":         {"events"},
	"coordination.k8s.io":   {"leases"},
	"tenantplane.io":        {"syncdecisions"},
	"authentication.k8s.io": {"tokenreviews", "selfsubjectreviews"},
	"authorization.k8s.io": {
		"selfsubjectaccessreviews", "selfsubjectrulesreviews", "subjectaccessreviews", "localsubjectaccessreviews",
	},
}

// mayWrite says whether a request asks for a change of an object on the server.
// Writes to the records of syncpass itself (SyncDecision, Lease, Event), dry runs
// and reviews are none. An update that happens to change nothing is one.
func mayWrite(method, path string, dryRun bool) bool {
	switch method {
	case http.MethodPost, http.MethodPut, http.MethodPatch, http.MethodDelete:
	default:
		return false
	}
	if dryRun {
		return false
	}
	group, resource, subresource := split(path)
	if group == "" && resource == "serviceaccounts" && subresource == "token" {
		return false
	}
	for _, r := range notCounted[group] {
		if r == resource {
			return false
		}
	}
	return true
}

// isWrite says whether a request that asked for a change made one. Without an
// answer (status 0) nobody knows, and it counts.
func isWrite(mayWrite bool, status int) bool {
	return mayWrite && (status == 0 || status < 300 || status >= 500)
}

// split takes a path of the Kubernetes API apart: /api/VERSION/… or
// /apis/GROUP/VERSION/…, then [namespaces/NAME/]RESOURCE[/NAME[/SUBRESOURCE]].
// Anything else gives no resource.
func split(path string) (group, resource, subresource string) {
	parts := strings.Split(strings.Trim(path, "/"), "/")
	switch {
	case len(parts) >= 2 && parts[0] == "api":
		parts = parts[2:]
	case len(parts) >= 3 && parts[0] == "apis":
		group, parts = parts[1], parts[3:]
	default:
		return "", "", ""
	}
	// namespaces/NAME and its subresources are about the namespace itself.
	if len(parts) >= 3 && parts[0] == "namespaces" && parts[2] != "status" && parts[2] != "finalize" {
		parts = parts[2:]
	}
	if len(parts) > 0 {
		resource = parts[0]
	}
	if len(parts) > 2 {
		subresource = parts[2]
	}
	return group, resource, subresource
}
