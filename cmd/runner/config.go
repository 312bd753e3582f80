package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/sethvargo/go-envconfig"
	"k8s.io/apimachinery/pkg/util/validation"
	podsecurity "k8s.io/pod-security-admission/api"

	"github.com/syncpass/syncpass/cmd/runner/metrics"
)

// config is everything the environment can say. The tags are the one source of names, defaults and descriptions: the
// help text and the table in docs/reference.md come from them (see variables). "shown" replaces the default in these where the
// default is not a literal; "accepts" completes the sentence "accepted: …" of an error; "credentials" marks an address that
// may have a password in it.
type config struct {
	Namespace     string `env:"SYNCPASS_NAMESPACE" shown:"own pod's, else the kubeconfig context's" accepts:"the name of a namespace" doc:"namespace of the TenantClusters"`
	Tenant        string `env:"SYNCPASS_TENANT" shown:"all in the namespace" accepts:"the name of a TenantCluster" doc:"one TenantCluster"`
	AllNamespaces bool   `env:"SYNCPASS_ALL_NAMESPACES,default=false" accepts:"true or false" doc:"every TenantCluster of the host"`

	HostKubeconfig         string `env:"SYNCPASS_HOST_KUBECONFIG" shown:"in-cluster, else KUBECONFIG and ~/.kube/config" accepts:"the path of a kubeconfig file" doc:"host access"`
	TenantKubeconfig       string `env:"SYNCPASS_TENANT_KUBECONFIG" accepts:"the path of a kubeconfig file" doc:"the tenant's kubeconfig as a file, instead of a Secret"`
	TenantKubeconfigSecret string `env:"SYNCPASS_TENANT_KUBECONFIG_SECRET" shown:"<tenant>-control-plane-kubeconfig, <tenant>-kubeconfig, vc-<tenant>, <tenant>-admin-kubeconfig" accepts:"the name of a Secret" doc:"Secret in the TenantCluster's namespace that holds the tenant's kubeconfig"`
	Policy                 string `env:"SYNCPASS_POLICY" shown:"the policy that the TenantCluster names" accepts:"the path of a YAML file" doc:"a SyncPolicy in a YAML file instead"`

	Window         time.Duration `env:"SYNCPASS_WINDOW,default=0s" shown:"0: for ever" accepts:"a duration such as 55s, or 0" doc:"schedule only: exit when no further pass fits"`
	Rendered       time.Duration `env:"SYNCPASS_RENDERED_INTERVAL,default=0s" shown:"0: nothing is compared" accepts:"a duration such as 30s, or 0" doc:"the policy's interval that the CronJob behind this process was rendered for; a pass says once that its schedule fits no more"`
	PassTimeout    time.Duration `env:"SYNCPASS_PASS_TIMEOUT,default=5m" accepts:"a duration such as 5m" doc:"deadline of one pass; longer than the lease"`
	RequestTimeout time.Duration `env:"SYNCPASS_REQUEST_TIMEOUT,default=15s" accepts:"a duration such as 15s" doc:"deadline of one request; shorter than the lease"`
	LeaseDuration  time.Duration `env:"SYNCPASS_LEASE_DURATION,default=30s" accepts:"a duration such as 30s" doc:"how long a dead pass keeps others out; at least 1.5 times the request timeout"`

	Concurrency       int `env:"SYNCPASS_CONCURRENCY,default=16" accepts:"a whole number from 1 on" doc:"writes in flight per tenant"`
	TenantConcurrency int `env:"SYNCPASS_TENANT_CONCURRENCY,default=4" accepts:"a whole number from 1 on" doc:"tenants in flight"`
	Shards            int `env:"SYNCPASS_SHARDS,default=1" accepts:"a whole number from 1 on" doc:"into how many parts an Indexed Job splits the tenants"`
	ShardIndex        int `env:"JOB_COMPLETION_INDEX,default=0" accepts:"a whole number from 0 to SYNCPASS_SHARDS - 1" doc:"which of these parts this process takes; set by the Job controller"`

	MaxDeletePercent int  `env:"SYNCPASS_MAX_DELETE_PERCENT,default=50" accepts:"a whole number from 0 to 100" doc:"guard: the share of the mirrors that one pass may delete, judged once 10 deletes or more are planned"`
	RetireKinds      bool `env:"SYNCPASS_RETIRE_KINDS,default=false" accepts:"true or false" doc:"delete the mirrors of kinds that left the policy"`

	WorkloadServiceAccount string `env:"SYNCPASS_WORKLOAD_SERVICE_ACCOUNT,default=default" accepts:"the name of a ServiceAccount" doc:"host ServiceAccount that mirrored Pods run under; give it no rights"`
	TenantAPIEndpoint      string `env:"SYNCPASS_TENANT_API_ENDPOINT" shown:"the TenantCluster's status.endpoint, else the kubeconfig's server" accepts:"host:port or a URL" doc:"where mirrored Pods reach the tenant's API server"`
	TenantDNS              string `env:"SYNCPASS_TENANT_DNS" accepts:"an IP address" doc:"DNS server of the tenant, for mirrored Pods with dnsPolicy ClusterFirst; without it they use the host's"`

	PodSecurity     string   `env:"SYNCPASS_POD_SECURITY,default=baseline" accepts:"privileged, baseline or restricted" doc:"Pod Security level: a tenant's Pods that it forbids are refused before any write; privileged forbids none"`
	PriorityClasses []string `env:"SYNCPASS_PRIORITY_CLASSES" accepts:"names of PriorityClasses with commas between them, without those that start with system-" doc:"priority classes of the host that tenants' Pods may name; one that the host does not have makes it refuse the Pod"`

	LogLevel    slog.Level `env:"SYNCPASS_LOG_LEVEL,default=info" accepts:"debug, info, warn or error" doc:"least severe log line to print"`
	LogFormat   string     `env:"SYNCPASS_LOG_FORMAT" shown:"text on a tty, json elsewhere" accepts:"text or json" doc:"form of the log"`
	MetricsAddr string     `env:"SYNCPASS_METRICS_ADDR,default=:9090" accepts:"an address such as :9090" doc:"schedule only: where /metrics, /healthz and /readyz are served"`
	Pushgateway string     `env:"SYNCPASS_PUSHGATEWAY" credentials:"before the @" accepts:"an http or https URL such as http://pushgateway:9091" doc:"where pass, and schedule with a window, push their metrics at the end"`
}

// environment looks variables up. A variable that is set to the empty string counts as unset: left to itself,
// go-envconfig takes it for a value, and its default is lost.
type environment func(name string) (value string, set bool)

// Lookup implements [envconfig.Lookuper].
func (e environment) Lookup(name string) (string, bool) {
	value, set := e(name)
	return value, set && value != ""
}

// loadConfig reads and validates the configuration. All faults are reported together; the configuration returned
// beside them has defaults in the faulty places and is good enough to set up the log that reports them.
func loadConfig(env environment) (config, error) {
	var faults []error
	faulty := map[string]bool{}
	for {
		// go-envconfig stops at the first value it cannot read. Its fields are read in order, so the last variable
		// looked up is the faulty one; it is reported, left out, and the rest is read again.
		var c config
		last := ""
		err := envconfig.ProcessWith(context.Background(), &envconfig.Config{Target: &c, Lookuper: environment(func(name string) (string, bool) {
			last = name
			if faulty[name] {
				return "", false
			}
			return env.Lookup(name)
		})})
		if err == nil {
			return c, errors.Join(append(faults, c.faults(env, faulty)...)...)
		}
		if faulty[last] {
			return c, fmt.Errorf("reading the environment: %w", err) // the default itself is at fault
		}
		faulty[last] = true
		faults = append(faults, fault(env, last, "cannot be read"))
	}
}

// faults says what is wrong with values that could be read. A rule that looks at a faulty variable is left out, since
// it would judge a default that nobody chose.
func (c config) faults(env environment, faulty map[string]bool) []error {
	var found []error
	check := func(ok bool, cause string, names ...string) {
		if !ok && !slices.ContainsFunc(names, func(name string) bool { return faulty[name] }) {
			found = append(found, fault(env, names[0], cause))
		}
	}
	checkName := func(name string, problems []string) {
		check(len(problems) == 0, strings.Join(problems, ", "), name)
	}

	if c.Namespace != "" {
		checkName("SYNCPASS_NAMESPACE", validation.IsDNS1123Label(c.Namespace))
	}
	if c.Tenant != "" {
		checkName("SYNCPASS_TENANT", validation.IsDNS1123Subdomain(c.Tenant))
	}
	if c.TenantKubeconfigSecret != "" {
		checkName("SYNCPASS_TENANT_KUBECONFIG_SECRET", validation.IsDNS1123Subdomain(c.TenantKubeconfigSecret))
	}
	check(c.Tenant == "" || !c.AllNamespaces, "one tenant and all namespaces exclude each other: give its SYNCPASS_NAMESPACE instead", "SYNCPASS_ALL_NAMESPACES", "SYNCPASS_TENANT")
	check(c.TenantKubeconfig == "" || c.TenantKubeconfigSecret == "", "a file and a Secret exclude each other: unset one of SYNCPASS_TENANT_KUBECONFIG and SYNCPASS_TENANT_KUBECONFIG_SECRET", "SYNCPASS_TENANT_KUBECONFIG_SECRET", "SYNCPASS_TENANT_KUBECONFIG")

	check(c.Window >= 0, "is negative", "SYNCPASS_WINDOW")
	check(c.Rendered >= 0, "is negative", "SYNCPASS_RENDERED_INTERVAL")
	check(c.RequestTimeout > 0, "is not above 0", "SYNCPASS_REQUEST_TIMEOUT")
	check(c.LeaseDuration-c.RequestTimeout >= c.RequestTimeout/2, fmt.Sprintf("is less than 1.5 times SYNCPASS_REQUEST_TIMEOUT (%s), so a request of a dead pass could outlive its lease: raise it, or lower SYNCPASS_REQUEST_TIMEOUT", c.RequestTimeout), "SYNCPASS_LEASE_DURATION", "SYNCPASS_REQUEST_TIMEOUT")
	check(c.PassTimeout > c.LeaseDuration, fmt.Sprintf("is not longer than SYNCPASS_LEASE_DURATION (%s): raise it, or lower SYNCPASS_LEASE_DURATION and SYNCPASS_REQUEST_TIMEOUT", c.LeaseDuration), "SYNCPASS_PASS_TIMEOUT", "SYNCPASS_LEASE_DURATION")

	check(c.Concurrency >= 1, "is below 1", "SYNCPASS_CONCURRENCY")
	check(c.TenantConcurrency >= 1, "is below 1", "SYNCPASS_TENANT_CONCURRENCY")
	check(c.Shards >= 1, "is below 1", "SYNCPASS_SHARDS")
	check(c.ShardIndex >= 0, "is below 0", "JOB_COMPLETION_INDEX")
	check(c.ShardIndex < max(c.Shards, 1), fmt.Sprintf("there is no such part of %d: set SYNCPASS_SHARDS to the Job's completions", c.Shards), "JOB_COMPLETION_INDEX", "SYNCPASS_SHARDS")
	check(c.MaxDeletePercent >= 0 && c.MaxDeletePercent <= 100, "is not between 0 and 100", "SYNCPASS_MAX_DELETE_PERCENT")

	checkName("SYNCPASS_WORKLOAD_SERVICE_ACCOUNT", validation.IsDNS1123Subdomain(c.WorkloadServiceAccount))
	check(c.TenantDNS == "" || net.ParseIP(c.TenantDNS) != nil, "is no IP address", "SYNCPASS_TENANT_DNS")

	_, levelErr := podsecurity.ParseLevel(c.PodSecurity)
	check(levelErr == nil, "is no such level", "SYNCPASS_POD_SECURITY")
	for _, class := range c.PriorityClasses {
		checkName("SYNCPASS_PRIORITY_CLASSES", validation.IsDNS1123Subdomain(class))
		check(!strings.HasPrefix(class, systemClasses), class+" is for what the host itself runs, which a tenant's Pod could then drive out", "SYNCPASS_PRIORITY_CLASSES")
	}

	// Below debug, client-go would print request and response bodies, and with them Secrets.
	levels := []slog.Level{slog.LevelDebug, slog.LevelInfo, slog.LevelWarn, slog.LevelError}
	check(slices.Contains(levels, c.LogLevel), "is no such level", "SYNCPASS_LOG_LEVEL")
	check(slices.Contains([]string{"", "text", "json"}, c.LogFormat), "is no such form", "SYNCPASS_LOG_FORMAT")
	check(isListenAddress(c.MetricsAddr), "is no address to listen on", "SYNCPASS_METRICS_ADDR")
	if c.Pushgateway != "" {
		_, err := metrics.ParseGateway(c.Pushgateway)
		check(err == nil, fmt.Sprint(err), "SYNCPASS_PUSHGATEWAY")
	}
	return found
}

// systemClasses is the prefix of the priority classes above all that users can define. Kubernetes allows them in every
// namespace unless a quota for them says otherwise
// (https://kubernetes.io/docs/tasks/administer-cluster/guaranteed-scheduling-critical-addon-pods/).
const systemClasses = "system-"

func isListenAddress(addr string) bool {
	_, port, err := net.SplitHostPort(addr)
	if err != nil {
		return false
	}
	_, err = strconv.ParseUint(port, 10, 16)
	return err == nil
}

// fault is one thing that is wrong with one variable: its name, its value, the cause, and what is accepted.
func fault(env environment, name, cause string) error {
	all := variables()
	v := all[slices.IndexFunc(all, func(v variable) bool { return v.name == name })]
	value := v.defaultValue + " (default)"
	if given, set := env.Lookup(name); set {
		value = mask(v.withoutCredentials(given))
	}
	return fmt.Errorf("%s=%s: %s; accepted: %s", name, value, cause, v.accepts)
}

// isSecret says that a value does not look like a name, path, number or address (it has more than one line, or is long):
// most likely it is a kubeconfig, pasted where its path belongs.
func isSecret(value string) bool {
	const longest = 200
	return len(value) > longest || strings.ContainsAny(value, "\r\n")
}

// mask is a value as errors show it: quoted, or only its size.
func mask(value string) string {
	if isSecret(value) {
		return fmt.Sprintf("(%d bytes, not shown)", len(value))
	}
	return strconv.Quote(value)
}

// LogValue implements [slog.LogValuer]: the variables by name, masked.
func (c config) LogValue() slog.Value {
	var attrs []slog.Attr
	for _, v := range variables() {
		value := v.withoutCredentials(fmt.Sprint(v.valueIn(c)))
		if isSecret(value) {
			value = mask(value)
		}
		attrs = append(attrs, slog.String(v.name, value))
	}
	return slog.GroupValue(attrs...)
}
