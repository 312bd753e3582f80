package main

import (
	"bytes"
	"context"
	"encoding/pem"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestAWrongCommandLineIsRefusedAndExplained(t *testing.T) {
	for _, test := range []struct {
		name string
		args []string
		says string
	}{
		{"no verb", nil, "a verb is needed"},
		{"an unknown verb", []string{"dance"}, `unknown verb "dance"`},
		{"too few arguments", []string{"get"}, "get takes 1 arguments, not 0"},
		{"too many arguments", []string{"env", "PATH"}, "env takes 0 arguments, not 1"},
		{"an exit code that is no number", []string{"exit", "well"}, "exit code"},
	} {
		t.Run(test.name, func(t *testing.T) {
			code, err := run(t.Context(), test.args)
			assert.Equal(t, 2, code)
			assert.ErrorContains(t, err, test.says)
		})
	}
}

func TestExitEndsWithTheCodeAndNoMessage(t *testing.T) {
	code, err := run(t.Context(), []string{"exit", "3"})
	require.NoError(t, err)
	assert.Equal(t, 3, code)
}

func TestPauseAndServeEndWithTheirContext(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	code, err := run(ctx, []string{"pause"})
	require.NoError(t, err)
	assert.Zero(t, code)
	require.NoError(t, serve(ctx, "127.0.0.1:0"))
}

func TestServeAnswers(t *testing.T) {
	hostname, err := os.Hostname()
	require.NoError(t, err)
	file := filepath.Join(t.TempDir(), "file")
	require.NoError(t, os.WriteFile(file, []byte("content"), 0o600))
	server := httptest.NewServer(handler())
	defer server.Close()
	for _, test := range []struct{ name, page, path, want string }{
		{"with the page", "hello", "/", "hello\n"},
		{"with the page that was set to nothing", "", "/", "\n"},
		{"with the hostname", "hello", "/hostname", hostname + "\n"},
		{"with a variable", "hello", "/env/PAGE", "hello\n"},
		{"with a file", "hello", "/file" + file, "content"},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Setenv("PAGE", test.page)
			var out bytes.Buffer
			require.NoError(t, get(t.Context(), &out, server.URL+test.path))
			assert.Equal(t, test.want, out.String())
		})
	}
	t.Run("with the hostname where no page is set", func(t *testing.T) {
		t.Setenv("PAGE", "") // put back what was there, after the test
		require.NoError(t, os.Unsetenv("PAGE"))
		var out bytes.Buffer
		require.NoError(t, get(t.Context(), &out, server.URL))
		assert.Equal(t, hostname+"\n", out.String())
	})
	for _, path := range []string{"/nowhere", "/env/NO_SUCH_VARIABLE", "/file/no/such/file"} {
		assert.ErrorContains(t, get(t.Context(), &bytes.Buffer{}, server.URL+path), "404")
	}
}

func TestWhoamiShowsTheTokenAndPrintsTheUser(t *testing.T) {
	server := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Authorization") != "Bearer abc" || r.Method != http.MethodPost {
			http.Error(w, "who?", http.StatusUnauthorized)
			return
		}
		assert.Equal(t, "/apis/authentication.k8s.io/v1/selfsubjectreviews", r.URL.Path)
		_, err := w.Write([]byte(`{"status":{"userInfo":{"username":"system:serviceaccount:apps:bot"}}}`))
		assert.NoError(t, err)
	}))
	defer server.Close()
	address, err := url.Parse(server.URL)
	require.NoError(t, err)
	a := api{host: address.Hostname(), port: address.Port(), volume: t.TempDir()}
	ca := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw})
	require.NoError(t, os.WriteFile(filepath.Join(a.volume, "ca.crt"), ca, 0o600))

	require.NoError(t, os.WriteFile(filepath.Join(a.volume, "token"), []byte("abc\n"), 0o600))
	var out bytes.Buffer
	require.NoError(t, whoami(t.Context(), &out, a))
	assert.Equal(t, "system:serviceaccount:apps:bot\n", out.String())

	require.NoError(t, os.WriteFile(filepath.Join(a.volume, "token"), []byte("xyz"), 0o600))
	assert.ErrorContains(t, whoami(t.Context(), &out, a), "401 Unauthorized: who?")
	assert.ErrorContains(t, whoami(t.Context(), &out, api{}), "KUBERNETES_SERVICE_HOST")
}

func TestResolvePrintsAddresses(t *testing.T) {
	var out bytes.Buffer
	require.NoError(t, resolve(t.Context(), &out, "127.0.0.7"))
	assert.Equal(t, "127.0.0.7\n", out.String())
	assert.Error(t, resolve(t.Context(), &out, "no-such-name.invalid"))
}

func TestTheEnvironmentIsPrintedSorted(t *testing.T) {
	var out bytes.Buffer
	printEnvironment(&out, []string{"B=2", "A=1"})
	assert.Equal(t, "A=1\nB=2\n", out.String())
}
