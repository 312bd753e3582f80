package access

import (
	"bytes"
	"compress/gzip"
	"context"
	"crypto/tls"
	"encoding/base64"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/rest"
)

// serve starts a tenant's API server that answers with handler, over HTTP/2 as real ones do.
func serve(t *testing.T, handler http.HandlerFunc) *httptest.Server {
	t.Helper()
	server := httptest.NewUnstartedServer(handler)
	server.EnableHTTP2 = true
	server.StartTLS()
	t.Cleanup(server.Close)
	return server
}

// tenantOf returns the way to it that its kubeconfig gives.
func tenantOf(t *testing.T, server *httptest.Server, timeout time.Duration) *Cluster {
	t.Helper()
	authority := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw})
	file := kubeconfigWith(object{"server": server.URL, "certificate-authority-data": base64.StdEncoding.EncodeToString(authority)}, nil)
	c, err := NewTenant(file, Options{RequestTimeout: timeout, UserAgent: "syncpass/test"})
	require.NoError(t, err)
	t.Cleanup(c.Close)
	return c
}

func getApp(c *Cluster) error {
	_, err := c.Core().ConfigMaps("default").Get(context.Background(), "app", metav1.GetOptions{})
	return err
}

func sendApp(w http.ResponseWriter) {
	w.Header().Set("Content-Type", "application/json")
	fmt.Fprint(w, `{"kind":"ConfigMap","apiVersion":"v1","metadata":{"name":"app","namespace":"default"}}`)
}

func TestATenantIsAskedWithItsTokenInJSONUncompressedAndInTime(t *testing.T) {
	var got *http.Request
	server := serve(t, func(w http.ResponseWriter, r *http.Request) {
		got = r
		w.Header().Set("Warning", `299 - "spam"`)
		sendApp(w)
	})
	c := tenantOf(t, server, 7*time.Second)
	require.NoError(t, getApp(c))
	assert.Equal(t, "Bearer a-token", got.Header.Get("Authorization"))
	assert.Equal(t, "syncpass/test", got.UserAgent())
	assert.Equal(t, "7s", got.URL.Query().Get("timeout"), "the server gives up when its client does")
	assert.Empty(t, got.Header.Get("Accept-Encoding"))
	assert.Equal(t, "HTTP/2.0", got.Proto)
	assert.Equal(t, server.URL, c.Server())
	assert.Nil(t, c.Core().RESTClient().GetRateLimiter(), "the server says when it is too much")

	_, err := c.Dynamic().Resource(schema.GroupVersionResource{Version: "v1", Resource: "configmaps"}).Namespace("default").Get(context.Background(), "app", metav1.GetOptions{})
	require.NoError(t, err)
	assert.Equal(t, "application/json", got.Header.Get("Accept"))
	assert.EqualValues(t, 2, c.Requests())
}

func TestAViewCountsItsOwnRequests(t *testing.T) {
	server := serve(t, func(w http.ResponseWriter, _ *http.Request) { sendApp(w) })
	c := tenantOf(t, server, 0)
	require.NoError(t, getApp(c))
	views := []*Cluster{c.ForPass(), c.ForPass(), c.ForPass()}
	var group sync.WaitGroup
	for i, view := range views {
		for range i {
			group.Go(func() { assert.NoError(t, getApp(view)) })
		}
	}
	group.Wait()
	for i, view := range views {
		assert.EqualValues(t, i, view.Requests())
		assert.Equal(t, c.Credential(), view.Credential())
	}
	assert.EqualValues(t, 1, c.Requests())
}

func TestARedirectIsNotFollowedNorTheTokenSentOn(t *testing.T) {
	var hits atomic.Int64
	elsewhere := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		hits.Add(1)
		sendApp(w)
	}))
	defer elsewhere.Close()
	for _, status := range []int{301, 302, 303, 307, 308} {
		server := serve(t, func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Location", elsewhere.URL+"/\u202e") // Turns the rest of a line around on a terminal.
			w.WriteHeader(status)
		})
		c := tenantOf(t, server, 0)
		_, createErr := c.Core().ConfigMaps("default").Create(context.Background(), &corev1.ConfigMap{}, metav1.CreateOptions{})
		for _, err := range []error{getApp(c), createErr} {
			require.ErrorIs(t, err, ErrRedirect)
			assert.True(t, Unreachable(err), "what is there is no API server")
			assert.NotContains(t, err.Error(), "\u202e")
		}
		assert.EqualValues(t, 2, c.Requests())
	}
	assert.Zero(t, hits.Load())
}

func TestAnAnswerIsReadUpToABoundAndNoFurther(t *testing.T) {
	chunk := bytes.Repeat([]byte("x"), 1<<20)
	endless := func(w http.ResponseWriter, r *http.Request, status int) {
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(status)
		for r.Context().Err() == nil {
			if _, err := w.Write(chunk); err != nil {
				return
			}
		}
	}
	for name, tt := range map[string]struct {
		handler http.HandlerFunc
		want    string
	}{
		"a body without end":   {func(w http.ResponseWriter, r *http.Request) { endless(w, r, http.StatusOK) }, "more than 67108864 bytes"},
		"an error without end": {func(w http.ResponseWriter, r *http.Request) { endless(w, r, http.StatusForbidden) }, "more than 1048576 bytes"},
		"a body announced as too long": {func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Length", "99999999999")
			w.WriteHeader(http.StatusOK)
		}, "99999999999 bytes announced, at most 67108864 are read"},
	} {
		t.Run(name, func(t *testing.T) {
			err := getApp(tenantOf(t, serve(t, tt.handler), time.Minute))
			require.ErrorIs(t, err, ErrBodyTooLarge)
			assert.ErrorContains(t, err, tt.want)
			assert.False(t, Unreachable(err))
		})
	}
}

func TestACompressedAnswerThatWasNotAskedForIsNotUnpacked(t *testing.T) {
	// gzip members can follow one another: what one mebibyte of zeros packs into, once for each to unpack.
	var member bytes.Buffer
	packed := gzip.NewWriter(&member)
	_, err := packed.Write(make([]byte, 1<<20))
	require.NoError(t, err)
	require.NoError(t, packed.Close())
	bomb := bytes.Repeat(member.Bytes(), 2*MaxBodyBytes>>20)
	require.Less(t, len(bomb), 1<<20)
	server := serve(t, func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		w.Header().Set("Content-Encoding", "gzip")
		_, _ = w.Write(bomb)
	})
	err = getApp(tenantOf(t, server, time.Minute))
	require.Error(t, err)
	assert.NotErrorIs(t, err, ErrBodyTooLarge, "it stayed as small as it was on the wire")
}

func TestTheBoundOfABodyIsExact(t *testing.T) {
	const limit = 10
	for length, tooLarge := range map[int]bool{0: false, 9: false, 10: false, 11: true, 1000: true} {
		for _, size := range []int{1, 3, 10, 11, 64} {
			body := &boundedBody{ReadCloser: io.NopCloser(strings.NewReader(strings.Repeat("x", length))), left: limit, limit: limit}
			var read []byte
			var err error
			for buffer := make([]byte, size); err == nil; {
				var n int
				n, err = body.Read(buffer)
				read = append(read, buffer[:n]...)
			}
			if !tooLarge {
				assert.Equal(t, io.EOF, err)
				assert.Len(t, read, length)
				continue
			}
			require.ErrorIs(t, err, ErrBodyTooLarge)
			assert.LessOrEqual(t, len(read), limit)
			_, err = body.Read(make([]byte, 1))
			assert.ErrorIs(t, err, ErrBodyTooLarge, "and it stays so")
		}
	}
}

func TestAServerThatDoesNotGetToTheEndIsUnreachable(t *testing.T) {
	drip := func(w http.ResponseWriter, r *http.Request) {
		tick := time.NewTicker(5 * time.Millisecond)
		defer tick.Stop()
		for {
			select {
			case <-r.Context().Done():
				return
			case <-tick.C:
				fmt.Fprint(w, " ")
				_ = http.NewResponseController(w).Flush()
			}
		}
	}
	for name, handler := range map[string]http.HandlerFunc{
		"a body drop by drop": drip,
		"no answer":           func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() },
		"a body that breaks off": func(w http.ResponseWriter, _ *http.Request) {
			fmt.Fprint(w, `{"kind":"ConfigMap",`)
			_ = http.NewResponseController(w).Flush()
			panic(http.ErrAbortHandler)
		},
		"a body shorter than announced": func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Length", "1000")
			fmt.Fprint(w, `{}`)
		},
	} {
		t.Run(name, func(t *testing.T) {
			err := getApp(tenantOf(t, serve(t, handler), 300*time.Millisecond))
			require.Error(t, err)
			assert.True(t, Unreachable(err), "%v", err)
		})
	}
}

func TestAServerThatIsNotTheRightOneIsUnreachable(t *testing.T) {
	silent := func(http.ResponseWriter, *http.Request) {}
	reach := func(server, authority *httptest.Server, address string) error {
		pemOf := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: authority.Certificate().Raw})
		c, err := NewTenant(kubeconfigWith(object{"server": address, "certificate-authority-data": base64.StdEncoding.EncodeToString(pemOf)}, nil), Options{})
		require.NoError(t, err)
		defer c.Close()
		return getApp(c)
	}
	server := serve(t, silent)
	plain := httptest.NewServer(http.HandlerFunc(silent))
	defer plain.Close()
	gone := httptest.NewServer(http.HandlerFunc(silent))
	gone.Close()
	old := httptest.NewUnstartedServer(http.HandlerFunc(silent))
	old.TLS = &tls.Config{MaxVersion: tls.VersionTLS11}
	old.StartTLS()
	defer old.Close()

	cert, _ := certificate()
	block, _ := pem.Decode(cert)
	for name, err := range map[string]error{
		"another authority": func() error {
			c, err := NewTenant(kubeconfigWith(object{"server": server.URL, "certificate-authority-data": base64.StdEncoding.EncodeToString(pem.EncodeToMemory(block))}, nil), Options{})
			require.NoError(t, err)
			return getApp(c)
		}(),
		"another name":       reach(server, server, strings.Replace(server.URL, "127.0.0.1", "localhost", 1)),
		"no TLS":             reach(plain, server, strings.Replace(plain.URL, "http:", "https:", 1)),
		"nobody listens":     reach(gone, server, strings.Replace(gone.URL, "http:", "https:", 1)),
		"a TLS of the past":  reach(old, old, old.URL),
		"a link-local place": reach(server, server, "https://169.254.169.254"),
	} {
		require.Error(t, err, name)
		assert.True(t, Unreachable(err), "%s: %v", name, err)
	}
}

func TestUnreachableTellsRefusalsFromSilence(t *testing.T) {
	resource := schema.GroupResource{Resource: "configmaps"}
	stopped, cancel := context.WithCancelCause(context.Background())
	cancel(fmt.Errorf("lease lost: %w", context.Canceled))
	for _, tt := range []struct {
		err  error
		want bool
	}{
		{nil, false},
		{errors.New("anything"), false},
		{apierrors.NewForbidden(resource, "a", nil), false},
		{apierrors.NewUnauthorized("a"), false},
		{apierrors.NewConflict(resource, "a", nil), false},
		{apierrors.NewTooManyRequests("a", 1), true},
		{apierrors.NewInternalError(errors.New("a")), true},
		{fmt.Errorf("listing: %w", apierrors.NewServiceUnavailable("a")), true},
		{context.Canceled, false},
		{&url.Error{Op: "Get", Err: context.Cause(stopped)}, false},
		{context.DeadlineExceeded, true},
		{&url.Error{Op: "Get", Err: io.EOF}, true},
		{&ConfigError{Problems: []error{errors.New("a")}}, false},
	} {
		assert.Equal(t, tt.want, Unreachable(tt.err), "%v", tt.err)
	}
}

func TestTheHostIsReachedAsItsConfigurationSays(t *testing.T) {
	var got *http.Request
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		got = r
		sendApp(w)
	}))
	defer server.Close()
	config := &rest.Config{Host: server.URL, Impersonate: rest.ImpersonationConfig{UserName: "operator"}}
	c, err := NewHost(config, Options{})
	require.NoError(t, err)
	require.NoError(t, getApp(c))
	assert.Equal(t, "operator", got.Header.Get("Impersonate-User"))
	assert.Equal(t, "15s", got.URL.Query().Get("timeout"))
	assert.Zero(t, config.Timeout, "the caller's configuration is left as it was")
	assert.Nil(t, c.Credential())

	_, err = NewHost(&rest.Config{Host: "https://a", TLSClientConfig: rest.TLSClientConfig{CAFile: "/does/not/exist"}}, Options{})
	var problem *ConfigError
	require.ErrorAs(t, err, &problem)
	assert.ErrorContains(t, err, "host cluster configuration: ")
}
