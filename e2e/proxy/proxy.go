package proxy

import (
	"bytes"
	"context"
	"crypto/tls"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httputil"
	"net/url"
	"slices"
	"sync/atomic"

	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
)

// Moment is when a Hook is asked.
type Moment int

const (
	// Before: the API server has not seen the request.
	Before Moment = iota
	// After: the API server has carried the request out, and the client has not
	// seen the answer.
	After
)

// Hook may interfere with a request. It is called at both moments, from many
// goroutines at once, and may block to hold the request up. If it returns a
// handler, this answers the client: Before, the API server then never sees the
// request, and After, its answer is lost. Nil lets the request go on.
type Hook func(Moment, Request) http.Handler

// Drop answers nothing and resets the client's stream, as a lost connection does.
var Drop http.Handler = http.HandlerFunc(func(http.ResponseWriter, *http.Request) {
	panic(http.ErrAbortHandler)
})

// Proxy is a running proxy in front of one API server.
type Proxy struct {
	name     string
	url      string
	ca       []byte
	log      *Log
	hook     atomic.Pointer[Hook]
	filter   atomic.Pointer[Filter]
	query    atomic.Pointer[func(string, url.Values)]
	upstream *httputil.ReverseProxy
	server   *http.Server
	served   chan error
}

// Start serves a proxy to the API server of config on a free port of 127.0.0.1,
// over HTTP/2 and HTTP/1.1. Of config only the address and the CA are used, never
// the credentials. Requests are written to log, under the name.
func Start(name string, config *rest.Config, log *Log) (*Proxy, error) {
	target, _, err := rest.DefaultServerUrlFor(config)
	if err != nil {
		return nil, fmt.Errorf("proxy %s: address of the API server: %w", name, err)
	}
	transport, err := rest.TransportFor(rest.AnonymousClientConfig(config))
	if err != nil {
		return nil, fmt.Errorf("proxy %s: transport to the API server: %w", name, err)
	}
	shows, err := certificate()
	if err != nil {
		return nil, fmt.Errorf("proxy %s: %w", name, err)
	}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, fmt.Errorf("proxy %s: %w", name, err)
	}

	p := &Proxy{
		name: name, url: "https://" + listener.Addr().String(), ca: shows.pem, log: log, served: make(chan error, 1),
	}
	// Handshake errors of clients that were killed are no news to a test.
	quiet := slog.NewLogLogger(slog.DiscardHandler, slog.LevelError)
	p.upstream = &httputil.ReverseProxy{
		Rewrite:        func(r *httputil.ProxyRequest) { p.rewrite(r, target) },
		Transport:      transport,
		FlushInterval:  -1, // a watch is passed on event by event
		ErrorLog:       quiet,
		ModifyResponse: p.answered,
		ErrorHandler:   p.failed,
	}
	p.server = &http.Server{
		Handler:   http.HandlerFunc(p.serve),
		TLSConfig: &tls.Config{Certificates: []tls.Certificate{shows.pair}, MinVersion: tls.VersionTLS12},
		ErrorLog:  quiet,
	}
	go func() { p.served <- p.server.ServeTLS(listener, "", "") }()
	return p, nil
}

// rewrite sends a request to the API server, with the path, the query and the
// headers it came with, unless a test wants them otherwise.
func (p *Proxy) rewrite(r *httputil.ProxyRequest, target *url.URL) {
	r.Out.URL.Scheme, r.Out.URL.Host, r.Out.Host = target.Scheme, target.Host, ""
	r.Out.URL.RawQuery = r.In.URL.RawQuery
	if change := p.query.Load(); change != nil && r.In.Method == http.MethodGet {
		query := r.In.URL.Query()
		(*change)(r.In.URL.Path, query)
		r.Out.URL.RawQuery = query.Encode()
	}
	if p.filter.Load() != nil {
		r.Out.Header.Del("Accept-Encoding") // the transport then unpacks what it asks for itself
	}
}

// URL is the address of the proxy.
func (p *Proxy) URL() string { return p.url }

// CA is the certificate, in PEM, that a client must trust.
func (p *Proxy) CA() []byte { return p.ca }

// SetHook makes hook the one that is asked from now on; nil takes it away.
func (p *Proxy) SetHook(hook Hook) {
	if hook == nil {
		p.hook.Store(nil)
		return
	}
	p.hook.Store(&hook)
}

// Kubeconfig is a kubeconfig for the proxy with a token of the API server behind.
func (p *Proxy) Kubeconfig(token string) ([]byte, error) {
	config := clientcmdapi.NewConfig()
	config.Clusters[p.name] = &clientcmdapi.Cluster{Server: p.url, CertificateAuthorityData: p.ca}
	config.AuthInfos[p.name] = &clientcmdapi.AuthInfo{Token: token}
	config.Contexts[p.name] = &clientcmdapi.Context{Cluster: p.name, AuthInfo: p.name}
	config.CurrentContext = p.name
	data, err := clientcmd.Write(*config)
	if err != nil {
		return nil, fmt.Errorf("proxy %s: writing a kubeconfig: %w", p.name, err)
	}
	return data, nil
}

// Close ends the proxy and every connection of its clients.
func (p *Proxy) Close() error {
	err := p.server.Close()
	if served := <-p.served; !errors.Is(served, http.ErrServerClosed) {
		err = errors.Join(err, served)
	}
	if err != nil {
		return fmt.Errorf("closing proxy %s: %w", p.name, err)
	}
	return nil
}

// exchange is one request on its way, carried in its context.
type exchange struct {
	entry    *Request
	mayWrite bool
}

type exchangeKey struct{}

func (p *Proxy) serve(w http.ResponseWriter, r *http.Request) {
	sent, received := &countedBody{ReadCloser: r.Body}, &countedWriter{ResponseWriter: w}
	r.Body, w = sent, received
	dry, err := isDryRun(r)
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	x := &exchange{entry: p.log.add(p.name, r), mayWrite: mayWrite(r.Method, r.URL.Path, dry)}
	// Until an answer says otherwise nobody knows whether a change was made.
	p.log.update(x.entry, func(e *Request) { e.Write = x.mayWrite })
	defer p.log.update(x.entry, func(e *Request) {
		e.Sent, e.Received, e.Done = sent.bytes.Load(), received.bytes, true
	})

	if handler := p.ask(Before, x); handler != nil {
		p.log.update(x.entry, func(e *Request) { e.Write = false })
		p.replace(handler, x, w, r)
		return
	}
	p.upstream.ServeHTTP(w, r.WithContext(context.WithValue(r.Context(), exchangeKey{}, x)))
}

func (p *Proxy) ask(m Moment, x *exchange) http.Handler {
	hook := p.hook.Load()
	if hook == nil {
		return nil
	}
	return (*hook)(m, p.log.read(x.entry))
}

// replaced says that a hook took the API server's answer away.
type replaced struct{ handler http.Handler }

func (replaced) Error() string { return "the answer was replaced" }

// answered is called with the API server's answer, before the client sees it.
func (p *Proxy) answered(answer *http.Response) error {
	x := answer.Request.Context().Value(exchangeKey{}).(*exchange)
	p.log.update(x.entry, func(e *Request) {
		e.Status, e.Write = answer.StatusCode, isWrite(x.mayWrite, answer.StatusCode)
	})
	if handler := p.ask(After, x); handler != nil {
		p.log.update(x.entry, func(e *Request) { e.Status = 0 })
		return replaced{handler}
	}
	if filter := p.filter.Load(); filter != nil {
		handler, err := filter.pass(p.log.read(x.entry), answer)
		if err != nil {
			return err
		}
		if handler != nil {
			return replaced{handler}
		}
	}
	return nil
}

// failed is called in place of passing an answer on.
func (p *Proxy) failed(w http.ResponseWriter, r *http.Request, err error) {
	x := r.Context().Value(exchangeKey{}).(*exchange)
	if instead, ok := errors.AsType[replaced](err); ok {
		p.replace(instead.handler, x, w, r)
		return
	}
	// An API server that cannot be reached looks so to the client too: an answer
	// of the proxy's own would hide that.
	p.replace(Drop, x, w, r)
}

// replace lets a hook's handler answer and notes the status it gives.
func (p *Proxy) replace(handler http.Handler, x *exchange, w http.ResponseWriter, r *http.Request) {
	handler.ServeHTTP(&statusWriter{ResponseWriter: w, note: func(code int) {
		p.log.update(x.entry, func(e *Request) { e.Status = code })
	}}, r)
}

// statusWriter notes the status of an answer.
type statusWriter struct {
	http.ResponseWriter
	note  func(code int)
	noted bool
}

func (w *statusWriter) WriteHeader(code int) {
	if !w.noted {
		w.noted = true
		w.note(code)
	}
	w.ResponseWriter.WriteHeader(code)
}

func (w *statusWriter) Write(data []byte) (int, error) {
	if !w.noted {
		w.WriteHeader(http.StatusOK)
	}
	return w.ResponseWriter.Write(data)
}

// Unwrap lets http.ResponseController flush.
func (w *statusWriter) Unwrap() http.ResponseWriter { return w.ResponseWriter }

// isDryRun says whether a request asks for a dry run: in its query, or, as
// client-go does for a DELETE, in the options that are its body. A body in another
// encoding than JSON is taken for no dry run, so that no write goes uncounted.
func isDryRun(r *http.Request) (bool, error) {
	if slices.Contains(r.URL.Query()["dryRun"], "All") {
		return true, nil
	}
	if r.Method != http.MethodDelete || r.Body == nil {
		return false, nil
	}
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return false, fmt.Errorf("reading the body of a DELETE: %w", err)
	}
	r.Body = io.NopCloser(bytes.NewReader(body))
	var options struct {
		DryRun []string `json:"dryRun"`
	}
	if json.Unmarshal(body, &options) != nil {
		return false, nil
	}
	return slices.Contains(options.DryRun, "All"), nil
}
