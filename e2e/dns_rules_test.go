package e2e

import (
	"context"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"golang.org/x/net/dns/dnsmessage"

	"github.com/syncpass/syncpass/e2e/cluster"
	"github.com/syncpass/syncpass/e2e/node"
)

// hostDNS stands for the host's cluster DNS. It knows a few names, and notes every one that it was asked for.
type hostDNS struct {
	conn net.PacketConn
	mu   sync.Mutex
	// asked are the names, with a dot at the end.
	asked map[string]bool
}

const mirrorDomain = "team-dev.svc.host.example."

// answers are what the host's DNS has for a name: an address, or the name that a record of another type leads to.
var answers = map[string]dnsmessage.ResourceBody{
	"web-x-shop-x-dev." + mirrorDomain:               &dnsmessage.AResource{A: [4]byte{10, 0, 0, 1}},
	"db-0.db-x-shop-x-dev." + mirrorDomain:           &dnsmessage.AResource{A: [4]byte{10, 0, 0, 2}},
	"_sql._tcp.db-x-shop-x-dev." + mirrorDomain:      &dnsmessage.SRVResource{Port: 5432, Target: dnsmessage.MustNewName("db-0.db-x-shop-x-dev." + mirrorDomain)},
	"outside-x-shop-x-dev." + mirrorDomain:           &dnsmessage.CNAMEResource{CNAME: dnsmessage.MustNewName("example.com.")},
	"10-0-0-2.team-dev.pod.host.example.":            &dnsmessage.AResource{A: [4]byte{10, 0, 0, 2}},
	"2.0.0.10.in-addr.arpa.":                         &dnsmessage.PTRResource{PTR: dnsmessage.MustNewName("db-0.db-x-shop-x-dev." + mirrorDomain)},
	"kubernetes.default.svc.cluster.local.":          &dnsmessage.AResource{A: [4]byte{10, 0, 0, 3}},
	"kubernetes.default.svc.host.example.":           &dnsmessage.AResource{A: [4]byte{10, 0, 0, 3}},
	"http.tcp.kubernetes.default.svc.cluster.local.": &dnsmessage.AResource{A: [4]byte{10, 0, 0, 3}},
	"example.com.": &dnsmessage.AResource{A: [4]byte{192, 0, 2, 1}},
	strings.Repeat("a", 50) + "-x-shop-x-dev." + mirrorDomain: &dnsmessage.AResource{A: [4]byte{10, 0, 0, 4}},
}

func startHostDNS(t *testing.T) *hostDNS {
	t.Helper()
	conn, err := net.ListenPacket("udp", "127.0.0.1:0")
	require.NoError(t, err)
	h := &hostDNS{conn: conn, asked: map[string]bool{}}
	var serving sync.WaitGroup
	serving.Go(func() { h.serve() })
	t.Cleanup(func() {
		assert.NoError(t, conn.Close())
		serving.Wait()
	})
	return h
}

// serve answers until the connection is closed.
func (h *hostDNS) serve() {
	buffer := make([]byte, 4096)
	for {
		n, from, err := h.conn.ReadFrom(buffer)
		if err != nil {
			return
		}
		var query dnsmessage.Message
		if query.Unpack(buffer[:n]) != nil || len(query.Questions) != 1 {
			continue
		}
		reply := dnsmessage.Message{Header: dnsmessage.Header{ID: query.ID, Response: true, RecursionAvailable: true}, Questions: query.Questions}
		name := strings.ToLower(query.Questions[0].Name.String())
		h.mu.Lock()
		h.asked[name] = true
		h.mu.Unlock()
		if body, found := answers[name]; found {
			reply.Answers = []dnsmessage.Resource{{
				Header: dnsmessage.ResourceHeader{Name: query.Questions[0].Name, Class: dnsmessage.ClassINET, TTL: 5}, Body: body,
			}}
		} else {
			reply.RCode = dnsmessage.RCodeNameError
		}
		if packed, err := reply.Pack(); err == nil {
			_, _ = h.conn.WriteTo(packed, from) // one that waits in vain asks again
		}
	}
}

func (h *hostDNS) wasAsked(name string) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.asked[name]
}

// startTenantDNS runs CoreDNS with the Corefile of manifests/tenant-dns on a port of this machine, and returns its address.
func startTenantDNS(t *testing.T, upstream string) string {
	t.Helper()
	binaries, err := cluster.Binaries(testsCtx, os.Stderr, cluster.CoreDNS)
	require.NoError(t, err)
	corefile, err := os.ReadFile(filepath.Join(manifestsDir, "tenant-dns", "Corefile"))
	require.NoError(t, err)
	free, err := net.ListenPacket("udp", "127.0.0.1:0")
	require.NoError(t, err)
	address := free.LocalAddr().String()
	require.NoError(t, free.Close())
	_, port, err := net.SplitHostPort(address)
	require.NoError(t, err)
	// The ports of the probes are taken on many a machine.
	text := strings.NewReplacer(":53 {", ":"+port+" {", "/etc/resolv.conf", upstream, "    health {\n        lameduck 5s\n    }\n    ready\n", "").Replace(string(corefile))
	require.NotContains(t, text, "ready")
	file := filepath.Join(t.TempDir(), "Corefile")
	require.NoError(t, os.WriteFile(file, []byte(text), 0o600))

	ctx, stop := context.WithCancel(testsCtx)
	command := exec.CommandContext(ctx, binaries[cluster.CoreDNS], "-conf", file)
	command.Env = append(os.Environ(), "TENANT=dev", "HOST_NAMESPACE=team-dev", "HOST_CLUSTER_DOMAIN=host.example")
	var output strings.Builder
	command.Stdout, command.Stderr = &output, &output
	require.NoError(t, command.Start())
	t.Cleanup(func() {
		stop()
		_ = command.Wait() // killed, as it should be
		if t.Failed() {
			t.Logf("CoreDNS said:\n%s", &output)
		}
	})
	require.EventuallyWithT(t, func(t *assert.CollectT) {
		answer, err := lookUp(address, "example.com.", dnsmessage.TypeA)
		require.NoError(t, err)
		assert.Equal(t, "example.com. 192.0.2.1", answer)
	}, 30*time.Second, 50*time.Millisecond)
	return address
}

// lookUp returns the records of an answer as their names and what they lead to, or else the code of the refusal.
func lookUp(server, name string, of dnsmessage.Type) (string, error) {
	query := dnsmessage.Message{Header: dnsmessage.Header{ID: 1, RecursionDesired: true}, Questions: []dnsmessage.Question{{
		Name: dnsmessage.MustNewName(name), Type: of, Class: dnsmessage.ClassINET,
	}}}
	packed, err := query.Pack()
	if err != nil {
		return "", err
	}
	conn, err := net.Dial("udp", server)
	if err != nil {
		return "", err
	}
	defer conn.Close()
	if err := conn.SetDeadline(time.Now().Add(5 * time.Second)); err != nil {
		return "", err
	}
	if _, err := conn.Write(packed); err != nil {
		return "", err
	}
	buffer := make([]byte, 4096)
	n, err := conn.Read(buffer)
	if err != nil {
		return "", err
	}
	var reply dnsmessage.Message
	if err := reply.Unpack(buffer[:n]); err != nil {
		return "", err
	}
	if got := reply.Questions[0].Name.String(); got != name {
		return "", fmt.Errorf("the answer is to another question: %s", got)
	}
	if reply.RCode != dnsmessage.RCodeSuccess {
		return strings.TrimPrefix(reply.RCode.String(), "RCode"), nil
	}
	var lines []string
	for _, record := range reply.Answers {
		line := record.Header.Name.String() + " "
		switch body := record.Body.(type) {
		case *dnsmessage.AResource:
			line += net.IP(body.A[:]).String()
		case *dnsmessage.SRVResource:
			line += fmt.Sprint(body.Target, " ", body.Port)
		case *dnsmessage.CNAMEResource:
			line += body.CNAME.String()
		case *dnsmessage.PTRResource:
			line += body.PTR.String()
		}
		lines = append(lines, line)
	}
	return strings.Join(lines, "\n"), nil
}

// TestTenantDNSTranslatesNamesBothWays asks CoreDNS with the Corefile of the manifests: what it asks the host, what it never
// asks, and what it answers.
func TestTenantDNSTranslatesNamesBothWays(t *testing.T) {
	if testing.Short() {
		t.Skip("this test runs CoreDNS, which -short leaves out")
	}
	if lacks := node.Requirements(); len(lacks) > 0 {
		t.Skip("CoreDNS is built where Pods can run: " + strings.Join(lacks, "; "))
	}
	host := startHostDNS(t)
	server := startTenantDNS(t, host.conn.LocalAddr().String())
	const a, srv, cname, ptr, missing = dnsmessage.TypeA, dnsmessage.TypeSRV, dnsmessage.TypeCNAME, dnsmessage.TypePTR, "NameError"
	long := strings.Repeat("a", 50) + ".shop.svc.cluster.local."
	tooLong := strings.Repeat("a", 51) + ".shop.svc.cluster.local."
	for _, test := range []struct {
		name, ask string
		of        dnsmessage.Type
		want      string
	}{
		{"a Service", "web.shop.svc.cluster.local.", a, "web.shop.svc.cluster.local. 10.0.0.1"},
		{"a Service in capitals", "WEB.Shop.svc.cluster.local.", a, "web.shop.svc.cluster.local. 10.0.0.1"},
		{"a Pod of a headless Service", "db-0.db.shop.svc.cluster.local.", a, "db-0.db.shop.svc.cluster.local. 10.0.0.2"},
		{"a port", "_sql._tcp.db.shop.svc.cluster.local.", srv, "_sql._tcp.db.shop.svc.cluster.local. db-0.db.shop.svc.cluster.local. 5432"},
		{"an external name", "outside.shop.svc.cluster.local.", cname, "outside.shop.svc.cluster.local. example.com."},
		{"a Pod by its address", "10-0-0-2.shop.pod.cluster.local.", a, "10-0-0-2.shop.pod.cluster.local. 10.0.0.2"},
		{"an address", "2.0.0.10.in-addr.arpa.", ptr, "2.0.0.10.in-addr.arpa. db-0.db.shop.svc.cluster.local."},
		{"a name outside", "example.com.", a, "example.com. 192.0.2.1"},
		{"a mirror's name of 63 characters", long, a, long + " 10.0.0.4"},
		{"one of 64", tooLong, a, missing},
		{"a Pod behind one of 64", "db-0." + tooLong, a, missing},
		{"a Service that is not there", "web.other.svc.cluster.local.", a, missing},
		{"the host's API server", "kubernetes.default.svc.cluster.local.", a, missing},
		{"a port of the host's API server", "http.tcp.kubernetes.default.svc.cluster.local.", a, missing},
		{"the search list behind a name outside", "www.example.com.shop.svc.cluster.local.", a, missing},
		{"the search list's end behind one", "example.com.cluster.local.", a, missing},
		{"the inner form of a name", "web.x.shop.x.dev.__.svc.cluster.local.", a, missing},
	} {
		t.Run(test.name, func(t *testing.T) {
			got, err := lookUp(server, test.ask, test.of)
			require.NoError(t, err)
			assert.Equal(t, test.want, got)
			if strings.HasSuffix(strings.ToLower(test.ask), "cluster.local.") {
				assert.False(t, host.wasAsked(strings.ToLower(test.ask)), "the host is asked for it untranslated")
			}
		})
	}
	assert.True(t, host.wasAsked("kubernetes-x-default-x-dev."+mirrorDomain), "where the tenant's API server is looked for")
}
