package access

import (
	"context"
	"net/http"
	"strings"
)

// Request says what a request is about: enough to count it and to name it, and nothing of what it carries.
type Request struct {
	// Verb is what RBAC calls it: get, list, create, update, patch or delete. A path that leads to no resource, as discovery
	// does, is a get.
	Verb string
	// Resource is the plural name, with the subresource after a slash; empty where the path leads to no resource.
	Resource string
	Method   string
	// Server is the address of the API server, host and port; Path is that of the URL, without its query.
	Server, Path string
}

// Observe is told of each request when it is sent, retries one by one, under the context of whoever asked for it. What it
// returns is told the status code once the head of the answer is there, 0 where none came. It is called from many
// goroutines at once.
type Observe func(ctx context.Context, r Request) (answered func(status int))

// describe says what an HTTP request to an API server is about.
// https://kubernetes.io/docs/reference/using-api/api-concepts/#resource-uris
func describe(req *http.Request) Request {
	r := Request{Method: req.Method, Server: req.URL.Host, Path: req.URL.Path}
	resource, name := split(req.URL.Path)
	r.Resource = resource
	switch req.Method {
	case http.MethodPost:
		r.Verb = "create"
	case http.MethodPut:
		r.Verb = "update"
	case http.MethodPatch:
		r.Verb = "patch"
	case http.MethodDelete:
		r.Verb = "delete"
	default:
		r.Verb = "get"
		if resource != "" && name == "" {
			r.Verb = "list"
		}
	}
	return r
}

// split takes the resource and the object's name out of a path; both are empty where it leads to neither.
func split(path string) (resource, name string) {
	parts := strings.Split(strings.Trim(path, "/"), "/")
	switch {
	case len(parts) > 2 && parts[0] == "api":
		parts = parts[2:]
	case len(parts) > 3 && parts[0] == "apis":
		parts = parts[3:]
	default:
		return "", ""
	}
	// A namespace's own subresources are its alone: anything else behind it is in it.
	if len(parts) > 2 && parts[0] == "namespaces" && parts[2] != "status" && parts[2] != "finalize" {
		parts = parts[2:]
	}
	resource = parts[0]
	if len(parts) > 1 {
		name = parts[1]
	}
	if len(parts) > 2 {
		resource += "/" + parts[2]
	}
	return resource, name
}
