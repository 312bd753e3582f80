package main

import (
	"bytes"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/syncpass/syncpass/pass"
	"github.com/syncpass/syncpass/policy"
	"github.com/syncpass/syncpass/record"
)

func TestAnExplanationSaysWhereHowAndWhatNext(t *testing.T) {
	explained := &pass.Explanation{
		Tenant: "dev", Namespace: "team-dev", APIVersion: "v1", Kind: "ConfigMap", Direction: policy.Bidirectional,
		TenantNamespace: "default", TenantName: "app", TenantUID: "u1", HostNamespace: "team-dev", HostName: "app-x-default-x-dev",
		Agreed: true,
		Next:   &record.Decision{Action: record.Skip, Side: record.Host, Reason: record.Conflict, Message: "both sides changed", Fields: []string{"data.a"}},
		Decisions: []record.Entry{{
			Time:   metav1.NewMicroTime(time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)),
			Action: record.Create, Side: record.Host, Reason: record.NoMirror, Message: "has no mirror\x1b[31m yet", Error: "",
		}},
	}
	var out bytes.Buffer
	require.NoError(t, printExplanation(&out, explained))
	require.Equal(t, `Object:               ConfigMap default/app of tenant dev
Mirror:               ConfigMap team-dev/app-x-default-x-dev on the host (there is none)
Direction:            bidirectional
History:              both sides have agreed before
Next pass:            skip on the host, Conflict: both sides changed
Differs in:           data.a
2026-01-02 03:04:05:  create on the host, NoMirror: has no mirror[31m yet
`, out.String())

	explained.Next = &record.Decision{Action: record.Skip, Side: record.Host, Reason: record.Rejected, Message: "the level forbids it", Error: "hostPath volumes"}
	out.Reset()
	require.NoError(t, printExplanation(&out, explained))
	require.Contains(t, out.String(), "skip on the host, Rejected: the level forbids it hostPath volumes\n")

	explained.Next, explained.Agreed, explained.Decisions = nil, false, nil
	out.Reset()
	require.NoError(t, printExplanation(&out, explained))
	require.Contains(t, out.String(), "no agreement of both sides is recorded")
	require.Contains(t, out.String(), "leaves it as it is")
	require.NotContains(t, out.String(), "DNS:")
}

func TestAnExplanationOfAServiceSaysWhetherItsNameResolves(t *testing.T) {
	explained := &pass.Explanation{Kind: "Service", DNS: &pass.DNSName{Name: "web.shop.svc.cluster.local", Resolves: true}}
	var out bytes.Buffer
	require.NoError(t, printExplanation(&out, explained))
	require.Regexp(t, `(?m)^DNS: +web\.shop\.svc\.cluster\.local, served by manifests/tenant-dns$`, out.String())

	explained.DNS.Resolves, explained.DNS.Message = false, "it is too long"
	out.Reset()
	require.NoError(t, printExplanation(&out, explained))
	require.Regexp(t, `(?m)^DNS: +web\.shop\.svc\.cluster\.local does not resolve: it is too long$`, out.String())
}

func TestNamesThatDoNotResolveAreListed(t *testing.T) {
	explained := &pass.DNSExplanation{Tenant: "dev", Namespace: "team-dev", Services: 3}
	var out bytes.Buffer
	require.NoError(t, printDNS(&out, explained))
	require.Equal(t, "dev: the names of 0 of 3 Services do not resolve\n", out.String())

	explained.Unresolved = []pass.UnresolvedService{{TenantNamespace: "shop", TenantName: "a-x-b", HostName: "a-x-b-x-shop-x-dev-2222", DNSName: pass.DNSName{Message: "read\x1b[31m in two ways"}}}
	out.Reset()
	require.NoError(t, printDNS(&out, explained))
	require.Equal(t, `SERVICE      HOST NAME                 MESSAGE
shop/a-x-b   a-x-b-x-shop-x-dev-2222   read[31m in two ways
dev: the names of 1 of 3 Services do not resolve
`, out.String())
}

func TestExplainTakesAKindAndNamespaceSlashName(t *testing.T) {
	for name, args := range map[string][]string{
		"nothing":              {"explain"},
		"no name":              {"explain", "configmap"},
		"a name by itself":     {"explain", "configmap", "app"},
		"an empty namespace":   {"explain", "configmap", "/app"},
		"an object with --dns": {"explain", "--dns", "service", "default/app"},
		"one word too many":    {"explain", "configmap", "default/app", "now"},
		"an unknown format":    {"explain", "configmap", "default/app", "-o", "xml"},
		"a flag that is none":  {"explain", "configmap", "default/app", "--now"},
	} {
		t.Run(name, func(t *testing.T) {
			var stdout, stderr bytes.Buffer
			a := &app{stdout: &stdout, stderr: &stderr, env: func(string) (string, bool) { return "", false }}
			require.Equal(t, exitInvalid, a.execute(t.Context(), args))
			require.Empty(t, stdout.String())
			require.Contains(t, stderr.String(), "explain")
		})
	}
}
