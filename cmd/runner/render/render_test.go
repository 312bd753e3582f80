package render

import (
	"bytes"
	"errors"
	"flag"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.yaml.in/yaml/v3"
	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/utils/ptr"
	"pgregory.net/rapid"
	sigsyaml "sigs.k8s.io/yaml"

	"github.com/syncpass/syncpass/manifests"
	"github.com/syncpass/syncpass/policy"
)

var update = flag.Bool("update", false, "write the golden files anew")

const image = "registry.example.com/syncpass@sha256:0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"

func resource(apiVersion, kind string, direction policy.Direction) policy.Resource {
	return policy.Resource{APIVersion: apiVersion, Kind: kind, Direction: direction}
}

// policyOf is one with these kinds, and all else by default.
func policyOf(name string, interval time.Duration, resources ...policy.Resource) *policy.SyncPolicy {
	p := &policy.SyncPolicy{Spec: policy.SyncPolicySpec{
		DriftDetection: policy.DriftDetection{Interval: &metav1.Duration{Duration: interval}}, Resources: resources,
	}}
	p.Name = name
	p.SetDefaults()
	return p
}

// readmePolicy is the one that the project's documentation uses, and that manifests/base gives the rights for.
func readmePolicy() *policy.SyncPolicy {
	return policyOf("default", 30*time.Second,
		resource("v1", "Pod", policy.ToHost), resource("v1", "Service", policy.Bidirectional),
		resource("v1", "ConfigMap", policy.Bidirectional), resource("v1", "Secret", policy.Bidirectional))
}

func optionsFor(form Form, policies ...*policy.SyncPolicy) Options {
	o := Options{
		Form: form, Namespace: "team-dev", Tenant: "dev", Policies: policies, Shards: 1, Image: image,
		KubeconfigSecrets: []string{"dev-control-plane-kubeconfig", "dev-kubeconfig"},
		RequestTimeout:    15 * time.Second, LeaseDuration: 30 * time.Second, PassTimeout: 5 * time.Minute,
	}
	if form == Sharded {
		o.Namespace, o.Tenant, o.Shards, o.TenantNamespaces = SystemNamespace, "", 4, []string{"team-b", "team-dev"}
	}
	return o
}

// rendered are the objects of the manifests, each read strictly into its Go type.
type rendered struct {
	text       string
	account    corev1.ServiceAccount
	role       rbacv1.Role
	bindings   []rbacv1.RoleBinding
	cluster    []rbacv1.ClusterRole
	clusterFor rbacv1.ClusterRoleBinding
	cronJob    batchv1.CronJob
	job        batchv1.Job
	deployment appsv1.Deployment
}

type fataler interface {
	require.TestingT
	Helper()
}

func renderedBy(t fataler, o Options) rendered {
	t.Helper()
	data, err := Manifests(o)
	require.NoError(t, err)
	return readStrictly(t, data)
}

func readStrictly(t fataler, data []byte) rendered {
	t.Helper()
	r := rendered{text: string(data)}
	for decoder := yaml.NewDecoder(bytes.NewReader(data)); ; {
		var node yaml.Node
		err := decoder.Decode(&node)
		if errors.Is(err, io.EOF) {
			return r
		}
		require.NoError(t, err)
		document, err := yaml.Marshal(&node)
		require.NoError(t, err)
		strictly := func(into any) {
			require.NoError(t, sigsyaml.UnmarshalStrict(document, into), "%s", document)
		}
		switch kind := at(object(&node), "kind").Value; kind {
		case "ServiceAccount":
			strictly(&r.account)
		case "Role":
			strictly(&r.role)
		case "RoleBinding":
			r.bindings = append(r.bindings, rbacv1.RoleBinding{})
			strictly(&r.bindings[len(r.bindings)-1])
		case "ClusterRole":
			r.cluster = append(r.cluster, rbacv1.ClusterRole{})
			strictly(&r.cluster[len(r.cluster)-1])
		case "ClusterRoleBinding":
			strictly(&r.clusterFor)
		case "CronJob":
			strictly(&r.cronJob)
		case "Job":
			strictly(&r.job)
		case "Deployment":
			strictly(&r.deployment)
		default:
			require.Fail(t, "an object of another kind", kind)
		}
	}
}

// template is that of the Pods.
func (r rendered) template() corev1.PodTemplateSpec {
	switch {
	case r.job.Name != "":
		return r.job.Spec.Template
	case r.deployment.Name != "":
		return r.deployment.Spec.Template
	}
	return r.cronJob.Spec.JobTemplate.Spec.Template
}

func (r rendered) env() map[string]string {
	values := map[string]string{}
	for _, v := range r.template().Spec.Containers[0].Env {
		values[v.Name] = v.Value
	}
	return values
}

// rights are the rights that rules give, as "verb group/resource", with the names that they are for.
func rights(rules []rbacv1.PolicyRule) []string {
	var all []string
	for _, rule := range rules {
		for _, group := range rule.APIGroups {
			for _, resource := range rule.Resources {
				for _, verb := range rule.Verbs {
					right := verb + " " + strings.TrimPrefix(group+"/"+resource, "/")
					if len(rule.ResourceNames) > 0 {
						right += " " + strings.Join(rule.ResourceNames, ",")
					}
					all = append(all, right)
				}
			}
		}
	}
	slices.Sort(all)
	return slices.Compact(all)
}

func TestManifestsAreThoseOfTheGoldenFiles(t *testing.T) {
	few := policyOf("few", 7*time.Minute, resource("v1", "ConfigMap", policy.Bidirectional), resource("example.com/v1", "Gadget", policy.FromHost),
		resource("networking.k8s.io/v1", "Ingress", policy.ToHost))
	settled := optionsFor(CronJob, few)
	settled.Settings = []Setting{{"SYNCPASS_PASS_TIMEOUT", "10m"}, {"SYNCPASS_CONCURRENCY", "8"}}
	settled.PassTimeout = 10 * time.Minute
	paused := readmePolicy()
	paused.Spec.DriftDetection.Enabled = ptr.To(false)
	tagged := optionsFor(CronJob, paused)
	tagged.Image = "syncpass:latest"
	for name, o := range map[string]Options{
		"cronjob":          optionsFor(CronJob, readmePolicy()),
		"cronjob-settings": settled,
		"cronjob-paused":   tagged,
		"cronjob-90m":      optionsFor(CronJob, policyOf("nodes", 90*time.Minute, resource("v1", "Pod", policy.ToHost), resource("v1", "Node", policy.FromHost))),
		"job":              optionsFor(Job, readmePolicy()),
		"schedule":         optionsFor(Schedule, readmePolicy()),
		"sharded":          optionsFor(Sharded, readmePolicy(), few),
		"tenant":           optionsFor(Job, readmePolicy()),
		"tenant-nodes":     optionsFor(Job, policyOf("nodes", time.Minute, resource("v1", "Pod", policy.Bidirectional), resource("v1", "Node", policy.FromHost), resource("networking.k8s.io/v1", "Ingress", policy.ToHost))),
	} {
		t.Run(name, func(t *testing.T) {
			write := Manifests
			if strings.HasPrefix(name, "tenant") {
				write = TenantRights
			}
			data, err := write(o)
			require.NoError(t, err)
			got := string(data)
			readStrictly(t, data)
			file := filepath.Join("testdata", name+".yaml")
			if *update {
				require.NoError(t, os.WriteFile(file, []byte(got), 0o600))
			}
			want, err := os.ReadFile(file)
			require.NoError(t, err)
			assert.Equal(t, string(want), got)
			for line := range strings.Lines(got) {
				assert.LessOrEqual(t, len(line), 160, "a line that nobody reads to its end: %s", line)
			}
		})
	}
}

func TestTheRoleOfTheREADMEsPolicyIsTheManifests(t *testing.T) {
	data, err := manifests.Files.ReadFile("base/role.yaml")
	require.NoError(t, err)
	data, _, _ = bytes.Cut(data, []byte("\n---\n"))
	var base rbacv1.Role
	require.NoError(t, sigsyaml.UnmarshalStrict(data, &base))
	want := rights(base.Rules)

	tenant := renderedBy(t, optionsFor(CronJob, readmePolicy()))
	var narrowed []string
	for _, right := range rights(tenant.role.Rules) {
		for _, name := range []string{" dev", " syncpass-dev"} {
			right = strings.TrimSuffix(right, name)
		}
		narrowed = append(narrowed, right)
	}
	assert.ElementsMatch(t, slices.DeleteFunc(slices.Clone(want), func(right string) bool { return right == "list tenantplane.io/tenantclusters" }), narrowed,
		"where the tenant is named, none is looked for")

	shards := renderedBy(t, optionsFor(Sharded, readmePolicy()))
	assert.Equal(t, slices.DeleteFunc(slices.Clone(want), func(right string) bool { return strings.HasSuffix(right, "/tenantclusters") }),
		rights(shards.cluster[0].Rules), "what is done in all namespaces is another role's")
	assert.Equal(t, []string{"get tenantplane.io/syncpolicies", "get tenantplane.io/tenantclusters", "list tenantplane.io/tenantclusters"}, rights(shards.cluster[1].Rules))
}

// mirrors are the rights that every kind takes.
func mirrors(resources ...string) []string {
	var all []string
	for _, resource := range resources {
		for _, verb := range []string{"get", "list", "create", "update", "delete"} {
			all = append(all, verb+" "+resource)
		}
	}
	return all
}

func TestRights(t *testing.T) {
	always := []string{
		"create coordination.k8s.io/leases", "create events", "create tenantplane.io/syncdecisions", "delete tenantplane.io/syncdecisions",
		"get coordination.k8s.io/leases syncpass-dev", "get tenantplane.io/syncdecisions", "get tenantplane.io/tenantclusters dev",
		"list tenantplane.io/syncdecisions", "patch events", "patch tenantplane.io/syncdecisions/status", "update coordination.k8s.io/leases syncpass-dev",
		"update tenantplane.io/syncdecisions/status",
	}
	kubeconfig := "get secrets dev-control-plane-kubeconfig,dev-kubeconfig"
	for _, tt := range []struct {
		name      string
		resources []policy.Resource
		role      []string
		cluster   []string
	}{
		{
			"the kubeconfig is read by its names where no other Secret is",
			[]policy.Resource{resource("v1", "ConfigMap", policy.Bidirectional)},
			append(mirrors("configmaps"), kubeconfig), nil,
		},
		{
			"a mirror is made, marked and deleted in every direction",
			[]policy.Resource{resource("v1", "ConfigMap", policy.FromHost)},
			append(mirrors("configmaps"), kubeconfig), nil,
		},
		{
			"Pods mount the tenant's tokens",
			[]policy.Resource{resource("v1", "Pod", policy.ToHost)},
			append(mirrors("pods"), "get secrets", "list secrets", "create secrets", "update secrets",
				"update pods/ephemeralcontainers", "update pods/resize", "update pods/status"), nil,
		},
		{
			"Nodes are read, in the whole cluster",
			[]policy.Resource{resource("v1", "Node", policy.FromHost)},
			[]string{kubeconfig}, []string{"get nodes"},
		},
		{
			"a kind has its group, and its plural",
			[]policy.Resource{resource("networking.k8s.io/v1", "NetworkPolicy", policy.ToHost), resource("v1", "Endpoints", policy.ToHost)},
			append(mirrors("networking.k8s.io/networkpolicies", "endpoints"), kubeconfig), nil,
		},
		{
			"what the host knows better is not guessed",
			[]policy.Resource{resource("example.com/v1", "Proxy", policy.ToHost)},
			append(mirrors("example.com/proxies-of-ours"), kubeconfig), nil,
		},
		{
			"what does not cross is not written",
			[]policy.Resource{resource("autoscaling/v2", "HorizontalPodAutoscaler", policy.ToHost), resource("example.com/v1", "Zone", policy.ToHost)},
			[]string{kubeconfig, "list autoscaling/horizontalpodautoscalers"}, nil,
		},
	} {
		t.Run(tt.name, func(t *testing.T) {
			o := optionsFor(CronJob, policyOf("p", time.Minute, tt.resources...))
			o.Resource = func(kind schema.GroupVersionKind) (string, bool) {
				name, known := map[string]string{"Proxy": "proxies-of-ours", "Zone": ""}[kind.Kind]
				return name, known
			}
			got := renderedBy(t, o)
			assert.ElementsMatch(t, slices.Concat(always, tt.role), rights(got.role.Rules))
			assert.ElementsMatch(t, append([]string{"get tenantplane.io/syncpolicies p"}, tt.cluster...), rights(got.cluster[0].Rules))
		})
	}
}

func TestRightsAreTheAccountsAlone(t *testing.T) {
	for _, form := range Forms {
		got := renderedBy(t, optionsFor(form, readmePolicy()))
		want := []rbacv1.Subject{{Kind: "ServiceAccount", Name: got.account.Name, Namespace: got.account.Namespace}}
		for _, binding := range got.bindings {
			assert.Equal(t, want, binding.Subjects)
			if form == Sharded {
				assert.Equal(t, rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: got.cluster[0].Name}, binding.RoleRef)
			} else {
				assert.Equal(t, rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: got.role.Name}, binding.RoleRef)
			}
		}
		assert.Equal(t, want, got.clusterFor.Subjects)
		assert.Equal(t, got.cluster[len(got.cluster)-1].Name, got.clusterFor.RoleRef.Name)
		assert.Equal(t, got.account.Name, got.template().Spec.ServiceAccountName)
	}
}

func TestTenantsShareNoObject(t *testing.T) {
	names := map[string]bool{}
	for _, tenant := range [][2]string{{"a", "b-c"}, {"a-b", "c"}, {"a", "b.c"}, {"a", strings.Repeat("long-", 10) + "x"}, {"a", strings.Repeat("long-", 10) + "y"}} {
		o := optionsFor(CronJob, readmePolicy())
		o.Namespace, o.Tenant = tenant[0], tenant[1]
		got := renderedBy(t, o)
		for _, name := range []string{got.cronJob.Namespace + "/" + got.cronJob.Name, got.cluster[0].Name} {
			assert.False(t, names[name], "%s is there already", name)
			names[name] = true
		}
		assert.LessOrEqual(t, len(got.cronJob.Name), 52, "longer, a CronJob is refused")
		assert.Regexp(t, `^syncpass(-[a-z0-9-]+)?$`, got.account.Name, "manifests/isolation/admission knows the runner by this")
		assert.LessOrEqual(t, len(got.account.Labels["app.kubernetes.io/instance"]), 63)
	}
}

// What hangs on nothing but the order in which a policy lists its kinds would be a difference in git that says nothing.
func TestTheOrderOfAPolicysKindsIsNoDifference(t *testing.T) {
	all := []policy.Resource{
		resource("v1", "Pod", policy.ToHost), resource("v1", "Node", policy.FromHost), resource("v1", "ConfigMap", policy.Bidirectional),
		resource("v1", "Secret", policy.FromHost), resource("v1", "Service", policy.ToHost), resource("apps/v1", "Deployment", policy.ToHost),
		resource("example.com/v1", "Widget", policy.Bidirectional), resource("networking.k8s.io/v1", "Ingress", policy.ToHost),
		resource("autoscaling/v2", "HorizontalPodAutoscaler", policy.ToHost),
	}
	written := func(t *rapid.T, o Options) string {
		data, err := Manifests(o)
		require.NoError(t, err)
		return string(data)
	}
	rapid.Check(t, func(t *rapid.T) {
		some := rapid.Permutation(all).Draw(t, "kinds")[:rapid.IntRange(1, len(all)).Draw(t, "how many")]
		interval := rapid.SampledFrom([]time.Duration{time.Second, 30 * time.Second, 90 * time.Second, 7 * time.Minute, time.Hour, 5 * time.Hour, 1000 * time.Hour}).Draw(t, "interval")
		form := rapid.SampledFrom(Forms).Draw(t, "form")
		got := renderedBy(t, optionsFor(form, policyOf("p", interval, some...))).text
		sorted := slices.SortedFunc(slices.Values(some), func(a, b policy.Resource) int { return strings.Compare(a.Kind, b.Kind) })
		require.Equal(t, written(t, optionsFor(form, policyOf("p", interval, sorted...))), got)

		other := resource("batch/v1", "CronJob", policy.ToHost)
		more := written(t, optionsFor(form, policyOf("p", interval, append(slices.Clone(some), other)...)))
		before, after := strings.Split(got, "\n"), strings.Split(more, "\n")
		require.Len(t, after, len(before)+4, "a kind of a group of its own is a rule more: a comment, and three lines")
	})
}
