package e2e

import (
	"context"
	"maps"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"

	runnerrender "github.com/syncpass/syncpass/cmd/runner/render"
	"github.com/syncpass/syncpass/e2e/proxy"
	"github.com/syncpass/syncpass/e2e/scenario"
	"github.com/syncpass/syncpass/policy"
)

// rightsNamespace is the host namespace of the tenant that is synced with no more rights than the manifests give.
const rightsNamespace = "rights"

// rightsObjects are the policy that the project's documentation uses, and a tenant for it.
const rightsObjects = `
apiVersion: tenantplane.io/v1alpha1
kind: SyncPolicy
metadata: {name: rights}
spec:
  resources:
    - {apiVersion: v1, kind: Pod, direction: toHost}
    - {apiVersion: v1, kind: Service, direction: bidirectional}
    - {apiVersion: v1, kind: ConfigMap, direction: bidirectional}
    - {apiVersion: v1, kind: Secret, direction: bidirectional}
---
apiVersion: tenantplane.io/v1alpha1
kind: TenantCluster
metadata: {name: dev, namespace: rights}
spec: {syncPolicyRef: {name: rights}}
`

// inReserve are rights of the Role that the passes of TestAPassGetsAlongWithTheRole do not come to use, and what they are
// for. TestEachRightOfTheRoleIsMissed has a pass for each of them as well.
var inReserve = map[string]string{
	"delete tenantplane.io/syncdecisions":        "pages of a long history that a new division replaced",
	"update tenantplane.io/syncdecisions/status": "pages of a long history",
	"patch events":                    "a disagreement that stands, every half hour",
	"update pods/ephemeralcontainers": "kubectl debug in the tenant",
	"update pods/resize":              "resizing a running Pod in the tenant",
	"update pods/status":              "the conditions of readiness gates, which the tenant's controllers set",
}

func TestAPassGetsAlongWithTheRole(t *testing.T) {
	r := newRightsTest(t)
	var requests []proxy.Request
	pass := func(stage string, env map[string]string) {
		t.Helper()
		result, err := r.runner.Run(t.Context(), env, "pass", "-o", "wide")
		require.NoError(t, err)
		require.Zero(t, result.Exit, "%s: exit code; stderr:\n%s\nstdout:\n%s", stage, result.Stderr, result.Stdout)
		for _, request := range result.Requests {
			assert.NotContains(t, []int{http.StatusUnauthorized, http.StatusForbidden}, request.Status, "%s: %s", stage, request)
		}
		requests = append(requests, result.Requests...)
	}

	r.makeTenantObjects()
	pass("everything is new", nil)

	r.changeBothSides()
	pass("each side changed some", nil)
	edited, err := r.tenant.CoreV1().ConfigMaps(rightsNamespace).Get(t.Context(), "edited-on-host", metav1.GetOptions{})
	require.NoError(t, err)
	assert.Equal(t, "host", edited.Data["by"], "the host's change was not carried to the tenant")

	r.deleteTenantObjects()
	pass("the tenant deleted all, and is found by its namespace", map[string]string{"SYNCPASS_TENANT": ""})
	left, err := r.host.CoreV1().ConfigMaps(rightsNamespace).List(t.Context(), metav1.ListOptions{LabelSelector: "app.kubernetes.io/managed-by=tenantplane"})
	require.NoError(t, err)
	assert.Empty(t, left.Items, "mirrors are left")

	granted := map[string]bool{}
	for _, rule := range find[rbacv1.Role](t, renderForm(t, "base"), "Role").Rules {
		for _, resource := range rule.Resources {
			for _, verb := range rule.Verbs {
				granted[verb+" "+strings.TrimPrefix(rule.APIGroups[0]+"/"+resource, "/")] = true
			}
		}
	}
	for _, request := range requests {
		delete(granted, rightOf(t, request, rightsNamespace))
	}
	assert.ElementsMatch(t, slices.Collect(maps.Keys(inReserve)), slices.Collect(maps.Keys(granted)),
		"rights that the Role gives and no pass used; take them out of the Role, or say in inReserve what they are for")
}

// rightOf is the right that the host asks of a request, as "verb group/resource"; empty for a request to the tenant, and
// for one that is about no resource. It must be in the namespace, or about what is in none.
func rightOf(t *testing.T, request proxy.Request, namespace string) string {
	t.Helper()
	parts := strings.Split(strings.Trim(request.Path, "/"), "/")
	group := ""
	switch {
	case request.Server != "host" || len(parts) < 3:
		return ""
	case parts[0] == "apis":
		group, parts = parts[1]+"/", parts[3:]
	default:
		parts = parts[2:]
	}
	if len(parts) > 2 && parts[0] == "namespaces" {
		require.Equal(t, namespace, parts[1], "%s: outside the tenant's host namespace", request)
		parts = parts[2:]
	}
	if len(parts) == 0 {
		return ""
	}
	resource := group + parts[0]
	if len(parts) == 3 {
		resource += "/" + parts[2]
	}
	verb := map[string]string{
		http.MethodGet: "get", http.MethodPost: "create", http.MethodPut: "update", http.MethodPatch: "patch", http.MethodDelete: "delete",
	}[request.Method]
	query, err := url.ParseQuery(request.Query)
	require.NoError(t, err)
	switch {
	case query.Has("watch"):
		verb = "watch"
	case len(parts) == 1 && verb == "get":
		verb = "list"
	case len(parts) == 1 && verb == "delete":
		verb = "deletecollection"
	}
	return verb + " " + resource
}

// rightsTest is a tenant, and the runner with the token of a ServiceAccount for each side.
type rightsTest struct {
	*testing.T
	host, tenant kubernetes.Interface
	runner       scenario.Binary
}

func newRightsTest(t *testing.T) *rightsTest {
	t.Helper()
	s := suite(t)
	require.NoError(t, s.runner(t).Clean(s.context(t))) // of a test before this one, whose namespace may still be going
	r := &rightsTest{T: t, runner: s.binary(t)}
	r.host, r.tenant = s.clients(t)

	restrictedNamespace(t, r.host, rightsNamespace)
	require.NoError(t, s.host.Apply(t.Context(), []byte(rightsObjects)))
	for _, object := range overlay(t, "base", rightsNamespace) {
		require.NoError(t, strictCreate(t, s.host.Config, object))
	}
	r.grantInTenant()
	t.Cleanup(r.cleanUp)

	tenantKubeconfig, err := s.tenantProxy.Kubeconfig(r.token(r.tenant, "default", "syncpass"))
	require.NoError(t, err)
	_, err = r.host.CoreV1().Secrets(rightsNamespace).Create(t.Context(), &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Name: "dev-control-plane-kubeconfig"},
		Data:       map[string][]byte{"kubeconfig": tenantKubeconfig},
	}, metav1.CreateOptions{})
	require.NoError(t, err)

	hostKubeconfig, err := s.hostProxy.Kubeconfig(r.token(r.host, rightsNamespace, "syncpass-"+rightsNamespace))
	require.NoError(t, err)
	file := filepath.Join(t.TempDir(), "host.kubeconfig")
	require.NoError(t, os.WriteFile(file, hostKubeconfig, 0o600))
	maps.Copy(r.runner.Env, map[string]string{
		"SYNCPASS_HOST_KUBECONFIG": file, "SYNCPASS_NAMESPACE": rightsNamespace, "SYNCPASS_TENANT": "dev",
	})
	return r
}

func (r *rightsTest) token(client kubernetes.Interface, namespace, account string) string {
	r.Helper()
	token, err := client.CoreV1().ServiceAccounts(namespace).CreateToken(r.Context(), account,
		&authenticationv1.TokenRequest{}, metav1.CreateOptions{})
	require.NoError(r, err)
	return token.Status.Token
}

// grantInTenant makes the ServiceAccount default/syncpass in the tenant, with the rights that are rendered for it and that
// docs/tenants.md lists.
func (r *rightsTest) grantInTenant() {
	r.Helper()
	meta := metav1.ObjectMeta{Name: "syncpass"}
	rendered, err := runnerrender.TenantRights(renderOptions(runnerrender.Job, readmesPolicy(r.T)))
	require.NoError(r, err)
	rights := find[rbacv1.ClusterRole](r.T, objectsIn(r.T, rendered), "ClusterRole").Rules
	_, err = r.tenant.CoreV1().ServiceAccounts("default").Create(r.Context(), &corev1.ServiceAccount{ObjectMeta: meta}, metav1.CreateOptions{})
	require.NoError(r, err)
	_, err = r.tenant.RbacV1().ClusterRoles().Create(r.Context(), &rbacv1.ClusterRole{ObjectMeta: meta, Rules: rights}, metav1.CreateOptions{})
	require.NoError(r, err)
	_, err = r.tenant.RbacV1().ClusterRoleBindings().Create(r.Context(), &rbacv1.ClusterRoleBinding{
		ObjectMeta: meta,
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: "syncpass"},
		Subjects:   []rbacv1.Subject{{Kind: rbacv1.ServiceAccountKind, Namespace: "default", Name: "syncpass"}},
	}, metav1.CreateOptions{})
	require.NoError(r, err)
}

// makeTenantObjects makes some of every kind of the policy.
func (r *rightsTest) makeTenantObjects() {
	r.Helper()
	core := r.tenant.CoreV1()
	_, err := core.Namespaces().Create(r.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: rightsNamespace}}, metav1.CreateOptions{})
	require.NoError(r, err)
	for _, name := range []string{"edited", "edited-on-host", "untouched"} {
		_, err := core.ConfigMaps(rightsNamespace).Create(r.Context(), &corev1.ConfigMap{
			ObjectMeta: metav1.ObjectMeta{Name: name}, Data: map[string]string{"by": "tenant"},
		}, metav1.CreateOptions{})
		require.NoError(r, err)
	}
	_, err = core.Secrets(rightsNamespace).Create(r.Context(), &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Name: "password"}, StringData: map[string]string{"password": "old"},
	}, metav1.CreateOptions{})
	require.NoError(r, err)
	_, err = core.Services(rightsNamespace).Create(r.Context(), &corev1.Service{
		ObjectMeta: metav1.ObjectMeta{Name: "web"},
		Spec:       corev1.ServiceSpec{Selector: map[string]string{"app": "web"}, Ports: []corev1.ServicePort{{Port: 80}}},
	}, metav1.CreateOptions{})
	require.NoError(r, err)
	r.makePod()
}

// makePod makes a Pod, as soon as there is the ServiceAccount that it runs as.
func (r *rightsTest) makePod() {
	r.Helper()
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "web"}, Spec: podTemplate(r.T, "job").Spec}
	pod.Spec.ServiceAccountName = ""
	err := wait.PollUntilContextTimeout(r.Context(), 50*time.Millisecond, 30*time.Second, true, func(ctx context.Context) (bool, error) {
		_, err := r.tenant.CoreV1().Pods(rightsNamespace).Create(ctx, pod, metav1.CreateOptions{})
		if apierrors.IsForbidden(err) {
			return false, nil
		}
		return err == nil, err
	})
	require.NoError(r, err)
}

// changeBothSides changes one object of every kind in the tenant, and one mirror on the host.
func (r *rightsTest) changeBothSides() {
	r.Helper()
	labelled := []byte(`{"metadata":{"labels":{"edited":"yes"}}}`)
	core := r.tenant.CoreV1()
	_, err := core.ConfigMaps(rightsNamespace).Patch(r.Context(), "edited", types.MergePatchType, labelled, metav1.PatchOptions{})
	require.NoError(r, err)
	_, err = core.Secrets(rightsNamespace).Patch(r.Context(), "password", types.MergePatchType, labelled, metav1.PatchOptions{})
	require.NoError(r, err)
	_, err = core.Services(rightsNamespace).Patch(r.Context(), "web", types.MergePatchType, labelled, metav1.PatchOptions{})
	require.NoError(r, err)
	_, err = core.Pods(rightsNamespace).Patch(r.Context(), "web", types.MergePatchType, labelled, metav1.PatchOptions{})
	require.NoError(r, err)
	_, err = r.host.CoreV1().ConfigMaps(rightsNamespace).Patch(r.Context(), "edited-on-host-x-"+rightsNamespace+"-x-dev",
		types.MergePatchType, []byte(`{"data":{"by":"host"}}`), metav1.PatchOptions{})
	require.NoError(r, err)
}

func (r *rightsTest) deleteTenantObjects() {
	r.Helper()
	core, now := r.tenant.CoreV1(), metav1.NewDeleteOptions(0)
	for _, name := range []string{"edited", "edited-on-host", "untouched"} {
		require.NoError(r, core.ConfigMaps(rightsNamespace).Delete(r.Context(), name, *now))
	}
	require.NoError(r, core.Secrets(rightsNamespace).Delete(r.Context(), "password", *now))
	require.NoError(r, core.Services(rightsNamespace).Delete(r.Context(), "web", *now))
	require.NoError(r, core.Pods(rightsNamespace).Delete(r.Context(), "web", *now))
}

// cleanUp removes what is in no namespace of the host's, and the tenant's namespace.
func (r *rightsTest) cleanUp() {
	ctx, none := context.WithoutCancel(r.Context()), metav1.DeleteOptions{}
	policies := dynamic.NewForConfigOrDie(shared.host.Config).Resource(policy.SyncPolicyResource)
	for _, err := range []error{
		policies.Delete(ctx, rightsNamespace, none),
		r.host.RbacV1().ClusterRoles().Delete(ctx, "syncpass-policy-reader-"+rightsNamespace, none),
		r.host.RbacV1().ClusterRoleBindings().Delete(ctx, "syncpass-policy-reader-"+rightsNamespace, none),
		r.tenant.RbacV1().ClusterRoles().Delete(ctx, "syncpass", none),
		r.tenant.RbacV1().ClusterRoleBindings().Delete(ctx, "syncpass", none),
		r.tenant.CoreV1().Namespaces().Delete(ctx, rightsNamespace, none),
	} {
		if !apierrors.IsNotFound(err) {
			assert.NoError(r, err)
		}
	}
}
