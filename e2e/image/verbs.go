package main

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

// requestLimit bounds one request or look-up, and the end of those under way when
// the server is told to end.
const requestLimit = 5 * time.Second

// serve answers until the context ends.
func serve(ctx context.Context, address string) error {
	server := &http.Server{Addr: address, Handler: handler(), ReadHeaderTimeout: requestLimit}
	ended := make(chan error, 1)
	go func() { ended <- server.ListenAndServe() }()
	select {
	case err := <-ended:
		return err
	case <-ctx.Done():
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), requestLimit)
	defer cancel()
	return server.Shutdown(ctx)
}

func handler() http.Handler {
	hostname := func() string {
		name, err := os.Hostname()
		if err != nil {
			return err.Error()
		}
		return name
	}
	mux := http.NewServeMux()
	mux.HandleFunc("GET /{$}", func(w http.ResponseWriter, _ *http.Request) {
		page, ok := os.LookupEnv("PAGE")
		if !ok {
			page = hostname()
		}
		fmt.Fprintln(w, page)
	})
	mux.HandleFunc("GET /hostname", func(w http.ResponseWriter, _ *http.Request) { fmt.Fprintln(w, hostname()) })
	mux.HandleFunc("GET /env/{name}", func(w http.ResponseWriter, r *http.Request) {
		value, ok := os.LookupEnv(r.PathValue("name"))
		if !ok {
			http.Error(w, "no such variable", http.StatusNotFound)
			return
		}
		fmt.Fprintln(w, value)
	})
	mux.HandleFunc("GET /file/{path...}", func(w http.ResponseWriter, r *http.Request) {
		data, err := os.ReadFile("/" + r.PathValue("path"))
		if err != nil {
			http.Error(w, err.Error(), http.StatusNotFound)
			return
		}
		_, _ = w.Write(data) // a client that has gone away needs no answer
	})
	return mux
}

func get(ctx context.Context, out io.Writer, url string) error {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return err
	}
	body, err := do(&http.Client{Timeout: requestLimit}, request)
	if err != nil {
		return err
	}
	_, err = out.Write(body)
	return err
}

// do returns the body of a good answer.
func do(client *http.Client, request *http.Request) ([]byte, error) {
	response, err := client.Do(request)
	if err != nil {
		return nil, err
	}
	defer response.Body.Close()
	body, err := io.ReadAll(response.Body)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", request.URL, err)
	}
	if response.StatusCode < 200 || response.StatusCode > 299 {
		return nil, fmt.Errorf("%s answers %s: %s", request.URL, response.Status, bytes.TrimSpace(body))
	}
	return body, nil
}

// api is what a Pod is told about the Kubernetes API: two variables of its
// environment and a volume.
type api struct{ host, port, volume string }

func mountedAPI() api {
	return api{
		host:   os.Getenv("KUBERNETES_SERVICE_HOST"),
		port:   os.Getenv("KUBERNETES_SERVICE_PORT"),
		volume: "/var/run/secrets/kubernetes.io/serviceaccount",
	}
}

// whoami asks the API who it takes the bearer of the mounted token for.
func whoami(ctx context.Context, out io.Writer, a api) error {
	if a.host == "" || a.port == "" {
		return errors.New("KUBERNETES_SERVICE_HOST or KUBERNETES_SERVICE_PORT is not set")
	}
	token, err := os.ReadFile(filepath.Join(a.volume, "token"))
	if err != nil {
		return err
	}
	ca, err := os.ReadFile(filepath.Join(a.volume, "ca.crt"))
	if err != nil {
		return err
	}
	roots := x509.NewCertPool()
	if !roots.AppendCertsFromPEM(ca) {
		return errors.New("the mounted ca.crt holds no certificate")
	}
	const review = `{"apiVersion":"authentication.k8s.io/v1","kind":"SelfSubjectReview"}`
	url := "https://" + net.JoinHostPort(a.host, a.port) + "/apis/authentication.k8s.io/v1/selfsubjectreviews"
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, url, strings.NewReader(review))
	if err != nil {
		return err
	}
	request.Header.Set("Content-Type", "application/json")
	request.Header.Set("Authorization", "Bearer "+strings.TrimSpace(string(token)))
	client := &http.Client{Timeout: requestLimit, Transport: &http.Transport{TLSClientConfig: &tls.Config{RootCAs: roots}}}
	body, err := do(client, request)
	if err != nil {
		return err
	}
	var answer struct {
		Status struct{ UserInfo struct{ Username string } }
	}
	if err := json.Unmarshal(body, &answer); err != nil {
		return fmt.Errorf("%s: %w", url, err)
	}
	_, err = fmt.Fprintln(out, answer.Status.UserInfo.Username)
	return err
}

func resolve(ctx context.Context, out io.Writer, name string) error {
	ctx, cancel := context.WithTimeout(ctx, requestLimit)
	defer cancel()
	addresses, err := net.DefaultResolver.LookupHost(ctx, name)
	if err != nil {
		return err
	}
	slices.Sort(addresses)
	_, err = fmt.Fprintln(out, strings.Join(addresses, "\n"))
	return err
}

func printEnvironment(out io.Writer, environment []string) {
	for _, variable := range slices.Sorted(slices.Values(environment)) {
		fmt.Fprintln(out, variable)
	}
}
