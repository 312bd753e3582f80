package e2e

import (
	"bytes"
	"context"
	"errors"
	"io"
	"maps"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	authenticationv1 "k8s.io/api/authentication/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	utilyaml "k8s.io/apimachinery/pkg/util/yaml"
	"k8s.io/client-go/kubernetes"

	runnerrender "github.com/syncpass/syncpass/cmd/runner/render"
	"github.com/syncpass/syncpass/e2e/proxy"
	"github.com/syncpass/syncpass/e2e/scenario"
	"github.com/syncpass/syncpass/policy"
)

const renderImage = "registry.example.com/syncpass@sha256:0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"

// renderOptions are those of a form, the tenant team-dev/dev and this policy.
func renderOptions(form runnerrender.Form, p *policy.SyncPolicy) runnerrender.Options {
	o := runnerrender.Options{
		Form: form, Namespace: "team-dev", Tenant: "dev", Policies: []*policy.SyncPolicy{p}, Image: renderImage,
		KubeconfigSecrets: []string{"dev-control-plane-kubeconfig"},
		RequestTimeout:    requestTimeout, LeaseDuration: 30 * time.Second, PassTimeout: passTimeout,
	}
	if form == runnerrender.Sharded {
		o.Namespace, o.Tenant, o.Shards, o.TenantNamespaces = runnerrender.SystemNamespace, "", 4, []string{"team-dev"}
	}
	return o
}

// renderedObjects are what `runner render` writes for them.
func renderedObjects(t *testing.T, form runnerrender.Form, p *policy.SyncPolicy) []*unstructured.Unstructured {
	t.Helper()
	data, err := runnerrender.Manifests(renderOptions(form, p))
	require.NoError(t, err)
	return objectsIn(t, data)
}

// objectsIn are the objects of a YAML stream.
func objectsIn(t *testing.T, data []byte) []*unstructured.Unstructured {
	t.Helper()
	var objects []*unstructured.Unstructured
	for decoder := utilyaml.NewYAMLOrJSONDecoder(bytes.NewReader(data), 4096); ; {
		object := &unstructured.Unstructured{}
		err := decoder.Decode(object)
		if errors.Is(err, io.EOF) {
			return objects
		}
		require.NoError(t, err)
		objects = append(objects, object)
	}
}

func readmesPolicy(t *testing.T) *policy.SyncPolicy {
	t.Helper()
	text, _, _ := strings.Cut(strings.TrimSpace(rightsObjects), "\n---\n")
	p, err := policy.Parse([]byte(text))
	require.NoError(t, err)
	return p
}

// allForms are the forms, and the one for all tenants.
var allForms = []runnerrender.Form{runnerrender.CronJob, runnerrender.Job, runnerrender.Schedule, runnerrender.Sharded}

// workloadOf is the one object that makes Pods, without what differs by design between an overlay and what is rendered: the
// names, the labels, the image, and where settings come from.
func workloadOf(t *testing.T, objects []*unstructured.Unstructured) (workload map[string]any, env map[string]string) {
	t.Helper()
	settings := map[string]string{}
	var found *unstructured.Unstructured
	for _, object := range objects {
		switch object.GetKind() {
		case "ConfigMap":
			data, _, err := unstructured.NestedStringMap(object.Object, "data")
			require.NoError(t, err)
			maps.Copy(settings, data)
		case "CronJob", "Job", "Deployment":
			found = object.DeepCopy()
		}
	}
	require.NotNil(t, found)
	spec := found.Object["spec"].(map[string]any)
	if job, ok := spec["jobTemplate"].(map[string]any); ok {
		delete(job, "metadata")
		spec = job["spec"].(map[string]any)
	}
	delete(spec, "selector")
	template := spec["template"].(map[string]any)
	delete(template, "metadata")
	pod := template["spec"].(map[string]any)
	delete(pod, "serviceAccountName")
	container := pod["containers"].([]any)[0].(map[string]any)
	for _, one := range container["env"].([]any) {
		variable := one.(map[string]any)
		settings[variable["name"].(string)] = variable["value"].(string)
	}
	for _, key := range []string{"env", "envFrom", "image"} {
		delete(container, key)
	}
	return found.Object["spec"].(map[string]any), settings
}

func TestRenderMakesOfThePodsWhatTheManifestsMake(t *testing.T) {
	defaults := map[string]string{"SYNCPASS_POD_SECURITY": "baseline", "SYNCPASS_TENANT_CONCURRENCY": "4"}
	for _, form := range allForms {
		t.Run(string(form), func(t *testing.T) {
			want, wantEnv := workloadOf(t, renderForm(t, string(form)))
			got, gotEnv := workloadOf(t, renderedObjects(t, form, readmesPolicy(t)))
			assert.Equal(t, want, got)
			maps.DeleteFunc(wantEnv, func(name, value string) bool { return defaults[name] == value })
			assert.Equal(t, wantEnv, gotEnv)
		})
	}
}

func TestAnAPIServerTakesWhatIsRendered(t *testing.T) {
	host := suite(t).host
	client, err := kubernetes.NewForConfig(host.Config)
	require.NoError(t, err)
	require.NoError(t, suite(t).runner(t).Clean(suite(t).context(t)))
	for _, name := range []string{"team-dev", runnerrender.SystemNamespace} {
		if _, err := client.CoreV1().Namespaces().Get(t.Context(), name, metav1.GetOptions{}); err == nil {
			continue // of the surroundings
		}
		restrictedNamespace(t, client, name)
	}
	for _, form := range allForms {
		for _, object := range renderedObjects(t, form, readmesPolicy(t)) {
			assert.NoError(t, strictCreate(t, host.Config, object, metav1.DryRunAll), "%s: %s %s", form, object.GetKind(), object.GetName())
		}
	}
}

// renderedScenarios are core scenarios that between them take most rights that are rendered for their policies.
var renderedScenarios = []string{
	"01-create-then-quiet", "04-manual-conflict", "05-manual-no-history", "09-from-host", "11-delete-follows-tenant", "14-same-name-two-kinds",
	"16-guard-empty-tenant", "18-immutable", "19-service-fields", "24-custom-resource",
}

// renderedInReserve are rights that are rendered and that these scenarios do not come to use, and what they are for.
// TestEachRightOfTheRoleIsMissed has a pass for each of them.
var renderedInReserve = map[string]string{
	"delete tenantplane.io/syncdecisions":        "pages of a long history that a new division replaced",
	"update tenantplane.io/syncdecisions/status": "pages of a long history",
	"patch events":                    "a disagreement that stands, every half hour",
	"update pods/ephemeralcontainers": "kubectl debug in the tenant",
	"update pods/resize":              "resizing a running Pod in the tenant",
	"update pods/status":              "the conditions of readiness gates, which the tenant's controllers set",
	"get example.com/gadgets":         "a kind that the scenario names and no side serves",
	"list example.com/gadgets":        "the same",
	"create example.com/gadgets":      "the same",
	"update example.com/gadgets":      "the same",
	"delete example.com/gadgets":      "the same",
	"delete example.com/widgets":      "a custom resource that the tenant deletes; the verbs are the same for all kinds",
}

// renderedRest uses what the core scenarios leave out.
const renderedRest = `
name: a Pod and a Service come, change and go; what the tenant deleted is made again
steps:
  - apply:
      tenant:
        - {apiVersion: v1, kind: Service, metadata: {namespace: default, name: web}, spec: {selector: {app: web}, ports: [{port: 80}]}}
        - {apiVersion: v1, kind: Pod, metadata: {namespace: default, name: web}, spec: {automountServiceAccountToken: false, containers: [{name: c, image: local/tool:1}]}}
  - pass: {counts: {create: 2}}
  - patch: {tenant: [{apiVersion: v1, kind: Pod, metadata: {namespace: default, name: web, labels: {app: web}}}]}
  - pass: {counts: {update: 1}}
  - delete: {tenant: [{apiVersion: v1, kind: Pod, metadata: {namespace: default, name: web}}, {apiVersion: v1, kind: Service, metadata: {namespace: default, name: web}}]}
  - pass: {counts: {delete: 2}}
  - apply: {tenant: [{apiVersion: v1, kind: ConfigMap, metadata: {namespace: default, name: app}, data: {a: "1"}}]}
  - pass: {counts: {create: 1}}
  - delete: {tenant: [{apiVersion: v1, kind: ConfigMap, metadata: {namespace: default, name: app}}]}
  - patch: {host: [{apiVersion: v1, kind: ConfigMap, metadata: {namespace: team-dev, name: app-x-default-x-dev}, data: {a: "2"}}]}
  - run: {args: [resolve, configmap, default/app, --keep, host, --yes], stdout: [Resolved, "1 create", "0 errors"]}
`

// TestScenariosHoldUnderTheRenderedRights runs core scenarios with the token of a ServiceAccount on each side that has, for
// each one's policy, what `runner render --policy` gives there and nothing else. On the host, the rules of the Role stand in a ClusterRole here, since
// the namespace is emptied before each scenario; that no request leaves the namespace is looked at in the requests.
func TestScenariosHoldUnderTheRenderedRights(t *testing.T) {
	r := newRenderedRights(t)
	granted, used := map[string]bool{}, map[string]bool{}
	rest, err := scenario.Parse([]byte(renderedRest))
	require.NoError(t, err)
	files := []*scenario.File{rest}
	for _, name := range renderedScenarios {
		file, err := scenario.Read(filepath.Join("testdata/scenarios/core", name+".yaml"))
		require.NoError(t, err)
		files = append(files, file)
	}
	for _, file := range files {
		t.Run(file.Name, func(t *testing.T) {
			r.grant(t, file.Policy, granted)
			before := r.log.Mark()
			require.NoError(t, r.scenarios.Run(r.s.context(t), file))
			for _, request := range r.log.Since(before) {
				assert.NotContains(t, []int{http.StatusUnauthorized, http.StatusForbidden}, request.Status, "%s", request)
				used[rightOf(t, request, "team-dev")] = true
			}
		})
	}
	if t.Failed() {
		return
	}
	maps.DeleteFunc(granted, func(right string, _ bool) bool { return used[right] || renderedInReserve[right] != "" })
	assert.Empty(t, slices.Sorted(maps.Keys(granted)), "rights that are rendered and that no scenario used; do not render them, or say in renderedInReserve what they are for")
}

// renderedRights is a ServiceAccount on the host, and the scenarios run as it.
type renderedRights struct {
	s            *surroundings
	log          *proxy.Log
	host, tenant kubernetes.Interface
	scenarios    *scenario.Runner
	binary       scenario.Binary
}

// renderedAccount is the name of the ServiceAccount, of its namespace, which no scenario touches, and of its ClusterRole.
const renderedAccount = "rendered"

func newRenderedRights(t *testing.T) *renderedRights {
	t.Helper()
	s := usePlaces(t)
	r := &renderedRights{s: s, log: &proxy.Log{}}
	r.host, r.tenant = s.clients(t)
	ctx := s.context(t)
	hostProxy, _, err := s.front(ctx, "host", s.host, r.log)
	require.NoError(t, err)
	tenantProxy, _, err := s.front(ctx, "tenant", s.tenant, r.log)
	require.NoError(t, err)
	t.Cleanup(func() { assert.NoError(t, errors.Join(hostProxy.Close(), tenantProxy.Close())) })

	meta := metav1.ObjectMeta{Name: renderedAccount}
	_, err = r.host.CoreV1().Namespaces().Create(ctx, &corev1.Namespace{ObjectMeta: meta}, metav1.CreateOptions{})
	require.NoError(t, err)
	_, err = r.host.CoreV1().ServiceAccounts(renderedAccount).Create(ctx, &corev1.ServiceAccount{ObjectMeta: meta}, metav1.CreateOptions{})
	require.NoError(t, err)
	_, err = r.host.RbacV1().ClusterRoles().Create(ctx, &rbacv1.ClusterRole{ObjectMeta: meta}, metav1.CreateOptions{})
	require.NoError(t, err)
	_, err = r.host.RbacV1().ClusterRoleBindings().Create(ctx, &rbacv1.ClusterRoleBinding{ObjectMeta: meta,
		RoleRef:  rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: renderedAccount},
		Subjects: []rbacv1.Subject{{Kind: rbacv1.ServiceAccountKind, Namespace: renderedAccount, Name: renderedAccount}}}, metav1.CreateOptions{})
	require.NoError(t, err)
	t.Cleanup(func() {
		ctx := context.WithoutCancel(t.Context())
		assert.NoError(t, r.host.RbacV1().ClusterRoleBindings().Delete(ctx, renderedAccount, metav1.DeleteOptions{}))
		assert.NoError(t, r.host.RbacV1().ClusterRoles().Delete(ctx, renderedAccount, metav1.DeleteOptions{}))
	})
	hostKubeconfig, err := hostProxy.Kubeconfig(tokenOf(t, r.host, renderedAccount, renderedAccount))
	require.NoError(t, err)
	r.binary = s.binary(t)
	r.binary.Env = map[string]string{"SYNCPASS_HOST_KUBECONFIG": writeFile(t, "host.kubeconfig", string(hostKubeconfig)), "HOME": t.TempDir()}
	r.binary.Log = r.log
	r.applyInTenant(t, scenario.DefaultPolicy())
	t.Cleanup(func() {
		ctx := context.WithoutCancel(t.Context())
		assert.NoError(t, r.tenant.RbacV1().ClusterRoleBindings().Delete(ctx, "syncpass", metav1.DeleteOptions{}))
		assert.NoError(t, r.tenant.RbacV1().ClusterRoles().Delete(ctx, "syncpass", metav1.DeleteOptions{}))
		assert.NoError(t, r.tenant.CoreV1().ServiceAccounts("kube-system").Delete(ctx, "syncpass", metav1.DeleteOptions{}))
	})
	tenantKubeconfig, err := tenantProxy.Kubeconfig(tokenOf(t, r.tenant, "kube-system", "syncpass"))
	require.NoError(t, err)
	// The namespace of the ServiceAccount on the host is there now, so that it counts as the system's.
	r.scenarios, err = scenario.NewRunner(ctx, scenario.Environment{
		Host: s.host.Config, Tenant: s.tenant.Config, TenantKubeconfig: tenantKubeconfig, Binary: r.binary, Has: []string{scenario.NeedTenantControllers},
	})
	require.NoError(t, err)
	return r
}

func tokenOf(t *testing.T, client kubernetes.Interface, namespace, account string) string {
	t.Helper()
	granted, err := client.CoreV1().ServiceAccounts(namespace).CreateToken(t.Context(), account, &authenticationv1.TokenRequest{}, metav1.CreateOptions{})
	require.NoError(t, err)
	return granted.Status.Token
}

// render runs the verb, offline, for a policy of this content.
func (r *renderedRights) render(t *testing.T, spec scenario.Object, args ...string) []byte {
	t.Helper()
	if len(spec) == 0 {
		spec = scenario.DefaultPolicy()
	}
	file := filepath.Join(t.TempDir(), "policy.yaml")
	text := documents(t, object{"apiVersion": policy.GroupVersion.String(), "kind": "SyncPolicy", "metadata": object{"name": "default"}, "spec": spec})
	require.NoError(t, os.WriteFile(file, text, 0o600))
	args = append([]string{"render", "--policy", file, "--tenant", "dev", "-n", "team-dev"}, args...)
	result, err := r.binary.Run(r.s.context(t), map[string]string{"SYNCPASS_HOST_KUBECONFIG": "/none"}, args...)
	require.NoError(t, err)
	require.Zero(t, result.Exit, "%s", result.Stderr)
	require.Empty(t, result.Requests, "rendered offline")
	return result.Stdout
}

// grant gives the ServiceAccounts the rights that are rendered for a policy, adds the host's to all, and waits until they
// count.
func (r *renderedRights) grant(t *testing.T, spec scenario.Object, all map[string]bool) {
	t.Helper()
	objects := objectsIn(t, r.render(t, spec, "--form", "job", "--image", renderImage))
	role := &rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: renderedAccount},
		Rules: append(find[rbacv1.Role](t, objects, "Role").Rules, find[rbacv1.ClusterRole](t, objects, "ClusterRole").Rules...)}
	_, err := r.host.RbacV1().ClusterRoles().Update(r.s.context(t), role, metav1.UpdateOptions{})
	require.NoError(t, err)
	awaitRules(t, r.host, renderedAccount, renderedAccount, "team-dev", role.Rules)
	for _, rule := range role.Rules {
		for _, resource := range rule.Resources {
			for _, verb := range rule.Verbs {
				all[right{verb, rule.APIGroups[0], resource}.String()] = true
			}
		}
	}
	r.applyInTenant(t, spec)
}

// applyInTenant applies what is rendered for the tenant, as it is, and waits until it counts.
func (r *renderedRights) applyInTenant(t *testing.T, spec scenario.Object) {
	t.Helper()
	manifests := r.render(t, spec, "--side", "tenant")
	require.NoError(t, r.s.tenant.Apply(r.s.context(t), manifests))
	awaitRules(t, r.tenant, "kube-system", "syncpass", "", find[rbacv1.ClusterRole](t, objectsIn(t, manifests), "ClusterRole").Rules)
}

// awaitRules waits until a ServiceAccount has the rights, in a namespace or (empty) in all.
func awaitRules(t *testing.T, client kubernetes.Interface, namespace, account, where string, rules []rbacv1.PolicyRule) {
	t.Helper()
	for _, rule := range rules {
		for _, resource := range rule.Resources {
			for _, verb := range rule.Verbs {
				resource, subresource, _ := strings.Cut(resource, "/")
				attributes := &authorizationv1.ResourceAttributes{Verb: verb, Group: rule.APIGroups[0], Resource: resource, Subresource: subresource, Namespace: where}
				if len(rule.ResourceNames) > 0 {
					attributes.Name = rule.ResourceNames[0]
				}
				eventually(t, verb+" "+resource+" is granted", func(ctx context.Context) (bool, error) {
					review, err := client.AuthorizationV1().SubjectAccessReviews().Create(ctx, &authorizationv1.SubjectAccessReview{Spec: authorizationv1.SubjectAccessReviewSpec{
						User: "system:serviceaccount:" + namespace + ":" + account, ResourceAttributes: attributes,
					}}, metav1.CreateOptions{})
					return err == nil && review.Status.Allowed, err
				})
			}
		}
	}
}
