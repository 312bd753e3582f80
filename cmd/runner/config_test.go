package main

import (
	"bytes"
	"log/slog"
	"maps"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func environmentOf(variables map[string]string) environment {
	return func(name string) (string, bool) {
		value, set := variables[name]
		return value, set
	}
}

var defaults = config{
	PassTimeout: 5 * time.Minute, RequestTimeout: 15 * time.Second, LeaseDuration: 30 * time.Second,
	Concurrency: 16, TenantConcurrency: 4, Shards: 1, MaxDeletePercent: 50, WorkloadServiceAccount: "default", PodSecurity: "baseline", MetricsAddr: ":9090",
}

func TestWithoutVariablesTheDefaultsHold(t *testing.T) {
	c, err := loadConfig(environmentOf(nil))
	require.NoError(t, err)
	assert.Equal(t, defaults, c)
}

func TestAVariableSetToTheEmptyStringCountsAsUnset(t *testing.T) {
	empty := map[string]string{}
	for _, v := range variables() {
		empty[v.name] = ""
	}
	c, err := loadConfig(environmentOf(empty))
	require.NoError(t, err)
	assert.Equal(t, defaults, c)
}

func TestEveryVariableIsRead(t *testing.T) {
	c, err := loadConfig(environmentOf(map[string]string{
		"SYNCPASS_NAMESPACE": "team-dev", "SYNCPASS_TENANT": "dev.eu", "SYNCPASS_HOST_KUBECONFIG": "/host",
		"SYNCPASS_TENANT_KUBECONFIG": "/tenant", "SYNCPASS_POLICY": "/policy.yaml", "SYNCPASS_WINDOW": "55s",
		"SYNCPASS_PASS_TIMEOUT": "20s", "SYNCPASS_REQUEST_TIMEOUT": "2s", "SYNCPASS_LEASE_DURATION": "3s",
		"SYNCPASS_CONCURRENCY": "1", "SYNCPASS_TENANT_CONCURRENCY": "2", "SYNCPASS_SHARDS": "3", "JOB_COMPLETION_INDEX": "2",
		"SYNCPASS_MAX_DELETE_PERCENT": "0", "SYNCPASS_RETIRE_KINDS": "true", "SYNCPASS_LOG_LEVEL": "WARN",
		"SYNCPASS_LOG_FORMAT": "json", "SYNCPASS_METRICS_ADDR": "127.0.0.1:0", "SYNCPASS_PUSHGATEWAY": "http://pushgateway:9091",
		"SYNCPASS_WORKLOAD_SERVICE_ACCOUNT": "nobody", "SYNCPASS_TENANT_API_ENDPOINT": "https://tenant:6443", "SYNCPASS_TENANT_DNS": "10.0.0.10",
		"SYNCPASS_POD_SECURITY": "restricted", "SYNCPASS_PRIORITY_CLASSES": "high, low.example.com",
	}))
	require.NoError(t, err)
	assert.Equal(t, config{
		Namespace: "team-dev", Tenant: "dev.eu", HostKubeconfig: "/host", TenantKubeconfig: "/tenant", Policy: "/policy.yaml",
		Window: 55 * time.Second, PassTimeout: 20 * time.Second, RequestTimeout: 2 * time.Second, LeaseDuration: 3 * time.Second,
		Concurrency: 1, TenantConcurrency: 2, Shards: 3, ShardIndex: 2, MaxDeletePercent: 0, RetireKinds: true,
		WorkloadServiceAccount: "nobody", TenantAPIEndpoint: "https://tenant:6443", TenantDNS: "10.0.0.10",
		PodSecurity: "restricted", PriorityClasses: []string{"high", "low.example.com"},
		LogLevel: slog.LevelWarn, LogFormat: "json", MetricsAddr: "127.0.0.1:0", Pushgateway: "http://pushgateway:9091",
	}, c)

	c, err = loadConfig(environmentOf(map[string]string{"SYNCPASS_ALL_NAMESPACES": "true", "SYNCPASS_TENANT_KUBECONFIG_SECRET": "admin"}))
	require.NoError(t, err)
	assert.True(t, c.AllNamespaces)
	assert.Equal(t, "admin", c.TenantKubeconfigSecret)
}

func TestEachFaultNamesVariableValueCauseAndWhatIsAccepted(t *testing.T) {
	tests := []struct {
		name      string
		variables map[string]string
		want      string // of the only fault
	}{
		{"a number that is none", map[string]string{"SYNCPASS_CONCURRENCY": "many"},
			`SYNCPASS_CONCURRENCY="many": cannot be read; accepted: a whole number from 1 on`},
		{"a number without a unit as a duration", map[string]string{"SYNCPASS_WINDOW": "55"},
			`SYNCPASS_WINDOW="55": cannot be read; accepted: a duration such as 55s, or 0`},
		{"a truth value that is none", map[string]string{"SYNCPASS_RETIRE_KINDS": "yes"},
			`SYNCPASS_RETIRE_KINDS="yes": cannot be read; accepted: true or false`},
		{"a level that would let client-go print bodies", map[string]string{"SYNCPASS_LOG_LEVEL": "debug-4"},
			`SYNCPASS_LOG_LEVEL="debug-4": is no such level; accepted: debug, info, warn or error`},
		{"a log format nobody knows", map[string]string{"SYNCPASS_LOG_FORMAT": "xml"},
			`SYNCPASS_LOG_FORMAT="xml": is no such form; accepted: text or json`},
		{"a lease too short for the requests", map[string]string{"SYNCPASS_REQUEST_TIMEOUT": "21s"},
			`SYNCPASS_LEASE_DURATION=30s (default): is less than 1.5 times SYNCPASS_REQUEST_TIMEOUT (21s), so a request of a dead pass could outlive its lease: raise it, or lower SYNCPASS_REQUEST_TIMEOUT; accepted: a duration such as 30s`},
		{"a pass shorter than its lease", map[string]string{"SYNCPASS_PASS_TIMEOUT": "30s"},
			`SYNCPASS_PASS_TIMEOUT="30s": is not longer than SYNCPASS_LEASE_DURATION (30s): raise it, or lower SYNCPASS_LEASE_DURATION and SYNCPASS_REQUEST_TIMEOUT; accepted: a duration such as 5m`},
		{"no time for a request", map[string]string{"SYNCPASS_REQUEST_TIMEOUT": "0s"},
			`SYNCPASS_REQUEST_TIMEOUT="0s": is not above 0; accepted: a duration such as 15s`},
		{"a window that closed before it opened", map[string]string{"SYNCPASS_WINDOW": "-1s"},
			`SYNCPASS_WINDOW="-1s": is negative; accepted: a duration such as 55s, or 0`},
		{"no write in flight", map[string]string{"SYNCPASS_CONCURRENCY": "0"},
			`SYNCPASS_CONCURRENCY="0": is below 1; accepted: a whole number from 1 on`},
		{"no tenant in flight", map[string]string{"SYNCPASS_TENANT_CONCURRENCY": "-1"},
			`SYNCPASS_TENANT_CONCURRENCY="-1": is below 1; accepted: a whole number from 1 on`},
		{"no part", map[string]string{"SYNCPASS_SHARDS": "0"},
			`SYNCPASS_SHARDS="0": is below 1; accepted: a whole number from 1 on`},
		{"a part that does not exist", map[string]string{"SYNCPASS_SHARDS": "3", "JOB_COMPLETION_INDEX": "3"},
			`JOB_COMPLETION_INDEX="3": there is no such part of 3: set SYNCPASS_SHARDS to the Job's completions; accepted: a whole number from 0 to SYNCPASS_SHARDS - 1`},
		{"more than all", map[string]string{"SYNCPASS_MAX_DELETE_PERCENT": "101"},
			`SYNCPASS_MAX_DELETE_PERCENT="101": is not between 0 and 100; accepted: a whole number from 0 to 100`},
		{"an address without a port", map[string]string{"SYNCPASS_METRICS_ADDR": "localhost"},
			`SYNCPASS_METRICS_ADDR="localhost": is no address to listen on; accepted: an address such as :9090`},
		{"a Pushgateway without a scheme, with a password", map[string]string{"SYNCPASS_PUSHGATEWAY": "me:s3cret/@pushgateway:9091"},
			`SYNCPASS_PUSHGATEWAY="***@pushgateway:9091": is no http or https URL; accepted: an http or https URL such as http://pushgateway:9091`},
		{"a Pushgateway with a port that is none, and a password", map[string]string{"SYNCPASS_PUSHGATEWAY": "http://me:s3cret@pushgateway:metrics"},
			`SYNCPASS_PUSHGATEWAY="http://***@pushgateway:metrics": is no URL; accepted: an http or https URL such as http://pushgateway:9091`},
		{"a Pushgateway of another scheme, with a password", map[string]string{"SYNCPASS_PUSHGATEWAY": "ftp://me:s3cret@pushgateway:9091"},
			`SYNCPASS_PUSHGATEWAY="ftp://***@pushgateway:9091": is no http or https URL; accepted: an http or https URL such as http://pushgateway:9091`},
		{"a Pushgateway without a host", map[string]string{"SYNCPASS_PUSHGATEWAY": "http://:9091"},
			`SYNCPASS_PUSHGATEWAY="http://:9091": names no host; accepted: an http or https URL such as http://pushgateway:9091`},
		{"a Pushgateway with a query", map[string]string{"SYNCPASS_PUSHGATEWAY": "http://pushgateway:9091/?a=b"},
			`SYNCPASS_PUSHGATEWAY="http://pushgateway:9091/?a=b": has a query or a fragment; accepted: an http or https URL such as http://pushgateway:9091`},
		{"a DNS server by name", map[string]string{"SYNCPASS_TENANT_DNS": "kube-dns"},
			`SYNCPASS_TENANT_DNS="kube-dns": is no IP address; accepted: an IP address`},
		{"a Pod Security level that is none", map[string]string{"SYNCPASS_POD_SECURITY": "Baseline"},
			`SYNCPASS_POD_SECURITY="Baseline": is no such level; accepted: privileged, baseline or restricted`},
		{"a priority class above all of the host's own", map[string]string{"SYNCPASS_PRIORITY_CLASSES": "high,system-node-critical"},
			`SYNCPASS_PRIORITY_CLASSES="high,system-node-critical": system-node-critical is for what the host itself runs, which a tenant's Pod could then drive out; accepted: names of PriorityClasses with commas between them, without those that start with system-`},
		{"one tenant in all namespaces", map[string]string{"SYNCPASS_ALL_NAMESPACES": "true", "SYNCPASS_TENANT": "dev"},
			`SYNCPASS_ALL_NAMESPACES="true": one tenant and all namespaces exclude each other: give its SYNCPASS_NAMESPACE instead; accepted: true or false`},
		{"two sources of the tenant's kubeconfig", map[string]string{"SYNCPASS_TENANT_KUBECONFIG": "/k", "SYNCPASS_TENANT_KUBECONFIG_SECRET": "s"},
			`SYNCPASS_TENANT_KUBECONFIG_SECRET="s": a file and a Secret exclude each other: unset one of SYNCPASS_TENANT_KUBECONFIG and SYNCPASS_TENANT_KUBECONFIG_SECRET; accepted: the name of a Secret`},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			_, err := loadConfig(environmentOf(tt.variables))
			assert.Equal(t, []string{tt.want}, errorLines(err))
		})
	}
}

func TestNamesAreCheckedAsKubernetesDoes(t *testing.T) {
	for name, value := range map[string]string{
		"SYNCPASS_NAMESPACE": "team.dev", "SYNCPASS_TENANT": "Dev", "SYNCPASS_TENANT_KUBECONFIG_SECRET": "-",
		"SYNCPASS_PRIORITY_CLASSES": "high,,low",
	} {
		_, err := loadConfig(environmentOf(map[string]string{name: value}))
		assert.ErrorContains(t, err, name+`="`+value+`": `)
	}
}

func TestAllFaultsAreReportedTogether(t *testing.T) {
	c, err := loadConfig(environmentOf(map[string]string{
		"SYNCPASS_REQUEST_TIMEOUT": "soon", "SYNCPASS_LEASE_DURATION": "later", "SYNCPASS_PASS_TIMEOUT": "1s",
		"SYNCPASS_CONCURRENCY": "0", "SYNCPASS_SHARDS": "x", "JOB_COMPLETION_INDEX": "7", "SYNCPASS_MAX_DELETE_PERCENT": "all",
		"SYNCPASS_LOG_LEVEL": "loud", "SYNCPASS_LOG_FORMAT": "json",
	}))
	var faulty []string
	for _, line := range errorLines(err) {
		name, _, _ := strings.Cut(line, "=")
		faulty = append(faulty, name)
	}
	// Not PASS_TIMEOUT and JOB_COMPLETION_INDEX: what they are to be measured by is unknown.
	assert.Equal(t, []string{"SYNCPASS_REQUEST_TIMEOUT", "SYNCPASS_LEASE_DURATION", "SYNCPASS_SHARDS",
		"SYNCPASS_MAX_DELETE_PERCENT", "SYNCPASS_LOG_LEVEL", "SYNCPASS_CONCURRENCY"}, faulty)
	assert.Equal(t, "json", c.LogFormat, "what could be read serves to report the rest")
	assert.Equal(t, slog.LevelInfo, c.LogLevel)
}

func TestAKubeconfigPastedWhereItsPathBelongsIsNotShown(t *testing.T) {
	pasted := map[string]string{"SYNCPASS_TENANT": "users:\n- user: {token: s3cret}", "SYNCPASS_TENANT_KUBECONFIG": strings.Repeat("s3cret", 50)}
	c, err := loadConfig(environmentOf(pasted))
	require.ErrorContains(t, err, "SYNCPASS_TENANT=(30 bytes, not shown)")
	assert.NotContains(t, err.Error(), "s3cret")

	var log bytes.Buffer
	slog.New(slog.NewTextHandler(&log, nil)).Info("Configuration", "variables", c)
	assert.NotContains(t, log.String(), "s3cret")
	assert.Contains(t, log.String(), `variables.SYNCPASS_TENANT_KUBECONFIG="(300 bytes, not shown)"`)
	assert.Contains(t, log.String(), `variables.SYNCPASS_LEASE_DURATION=30s`)
}

func TestThePasswordOfThePushgatewayIsNotShown(t *testing.T) {
	c, err := loadConfig(environmentOf(map[string]string{"SYNCPASS_PUSHGATEWAY": "https://me:s3cret@pushgateway:9091/prefix", "SYNCPASS_POLICY": "/home/me@here/policy.yaml"}))
	require.NoError(t, err)
	var log bytes.Buffer
	slog.New(slog.NewTextHandler(&log, nil)).Info("Configuration", "variables", c)
	assert.Contains(t, log.String(), "variables.SYNCPASS_PUSHGATEWAY=https://***@pushgateway:9091/prefix")
	assert.Contains(t, log.String(), "variables.SYNCPASS_POLICY=/home/me@here/policy.yaml")
}

func TestUnknownVariablesAreNamedWithTheNearestKnownOne(t *testing.T) {
	environ := []string{
		"PATH=/bin", "SYNCPASS_TENANTS=dev", "SYNCPASS_MAX_DELETES_PERCENT=10", "SYNCPASS_FROBNICATE=1", "SYNCPASS_NAMESPACE=team-dev",
		"SYNCPASS_OLD=", // unset, in effect
		// A Service named syncpass, and one named syncpass-web, in the Pod's namespace:
		"SYNCPASS_SERVICE_HOST=10.0.0.1", "SYNCPASS_SERVICE_PORT=80", "SYNCPASS_SERVICE_PORT_HTTP=80", "SYNCPASS_PORT=tcp://10.0.0.1:80",
		"SYNCPASS_WEB_PORT_80_TCP=tcp://10.0.0.1:80", "SYNCPASS_WEB_PORT_80_TCP_PROTO=tcp", "SYNCPASS_WEB_PORT_80_TCP_ADDR=10.0.0.1",
	}
	assert.Equal(t, []unknownVariable{
		{name: "SYNCPASS_FROBNICATE"},
		{name: "SYNCPASS_MAX_DELETES_PERCENT", nearest: "SYNCPASS_MAX_DELETE_PERCENT"},
		{name: "SYNCPASS_TENANTS", nearest: "SYNCPASS_TENANT"},
	}, unknownVariables(environ))
}

func TestEveryVariableIsDescribed(t *testing.T) {
	seen := map[string]bool{}
	for _, v := range variables() {
		assert.NotEmpty(t, v.doc, v.name)
		assert.NotEmpty(t, v.accepts, v.name)
		seen[v.name] = true
	}
	assert.Len(t, seen, len(variables()), "names are used once")
	assert.NotContains(t, maps.Collect(maps.All(seen)), "")
}
