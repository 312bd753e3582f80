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
	since := metav1.NewTime(time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC))
	created := record.Entry{
		Time:   metav1.NewMicroTime(time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)),
		Action: record.Create, Side: record.Host, Reason: record.NoMirror, Message: "has no mirror\x1b[31m yet", Error: "",
	}
	base := pass.Explanation{
		Tenant: "dev", Namespace: "team-dev", Policy: "default", PolicyPath: "spec.resources[0]", APIVersion: "v1", Kind: "ConfigMap",
		Direction: policy.Bidirectional, ConflictPolicy: policy.Manual, TenantNamespace: "default", TenantName: "app", TenantUID: "u1",
		HostNamespace: "team-dev", HostName: "app-x-default-x-dev", HostUID: "u2", HostNameReason: "it is <name>-x-<namespace>-x-<tenant>",
		TenantState: "Unchanged", HostState: "Unchanged", Agreed: true,
	}
	for _, test := range []struct {
		file string
		is   func(e *pass.Explanation)
	}{
		{"explain.txt", func(e *pass.Explanation) { e.Decisions = []record.Entry{created} }},
		{"explain-new.txt", func(e *pass.Explanation) {
			e.HostUID, e.Agreed, e.TenantState, e.HostState = "", false, "New", "Absent"
			e.Next = &record.Decision{Action: record.Skip, Side: record.Host, Reason: record.Rejected, Message: "the level forbids it", Error: "hostPath volumes"}
		}},
		{"explain-conflict.txt", func(e *pass.Explanation) {
			e.TenantState, e.HostState = "Changed", "Changed"
			e.Next = &record.Decision{Action: record.Skip, Side: record.Host, Reason: record.Conflict, Message: "both sides changed", Fields: []string{"data.a", "data.b"}}
			e.Conflict = &pass.Conflict{Reason: record.Conflict, Since: &since, Seen: "0123456789ab", Settle: []string{
				"runner resolve configmap default/app --keep tenant --seen 0123456789ab -n team-dev --tenant dev", "runner resolve configmap default/app --keep host --seen 0123456789ab -n team-dev --tenant dev",
			}}
			e.Differences = []pass.Difference{{Field: "data.a", Tenant: "1", Host: "2"}, {Field: "data.b", Host: "only here\n\u202e"}, {Field: "immutable", Tenant: true}}
			e.Decisions = []record.Entry{created}
		}},
		{"explain-left-out.txt", func(e *pass.Explanation) {
			e.HostUID, e.Agreed, e.TenantState, e.HostState = "", false, "", ""
			e.LeftOut = `the policy carries only objects of the namespaces ["shop"]`
		}},
		{"explain-pod.txt", func(e *pass.Explanation) {
			e.APIVersion, e.Kind, e.Direction = "v1", "Pod", policy.ToHost
			e.References = []pass.Reference{
				{Kind: "ServiceAccount", Name: "robot", HostName: "default", OnHost: true, Message: "the mirror runs as this ServiceAccount of the host, and mounts no token"},
				{Kind: "ConfigMap", Name: "app", HostName: "app-x-default-x-dev", OnHost: true},
				{Kind: "Secret", Name: "db\x1b[31m", HostName: "db-x-default-x-dev", Message: "the policy does not carry"},
			}
		}},
		{"explain-node.txt", func(e *pass.Explanation) {
			e.APIVersion, e.Kind, e.Direction, e.TenantNamespace, e.TenantName, e.HostNamespace, e.HostName = "v1", "Node", policy.FromHost, "", "n1", "", "n1"
			e.HostNameReason, e.Agreed, e.TenantState, e.HostState = "it is no mirror", false, "", ""
		}},
	} {
		t.Run(test.file, func(t *testing.T) {
			explained := base
			test.is(&explained)
			var out bytes.Buffer
			require.NoError(t, printExplanation(&out, &explained))
			golden(t, test.file, out.String())
		})
	}
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
		"two ways back":        {"explain", "--dns", "--host", "app"},
		"an object and --host": {"explain", "configmap", "default/app", "--host", "app"},
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
