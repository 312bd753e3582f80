package e2e

import (
	"context"
	"crypto/sha256"
	"encoding/base32"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	authenticationv1 "k8s.io/api/authentication/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"

	"github.com/syncpass/syncpass/e2e/scenario"
	"github.com/syncpass/syncpass/e2e/tally"
	"github.com/syncpass/syncpass/pass"
	"github.com/syncpass/syncpass/policy"
	"github.com/syncpass/syncpass/record"
	"github.com/syncpass/syncpass/record/store"
)

// right is one verb on one resource.
type right struct{ verb, group, resource string }

// String is the right as rightUsed writes it.
func (r right) String() string {
	return strings.TrimPrefix(r.verb+" "+strings.TrimPrefix(r.group+"/"+r.resource, "/"), " ")
}

// grantedRights are all rights that the manifests give: the Role's, and the cluster-wide ones.
func grantedRights(t *testing.T) (role, clusterWide []right) {
	t.Helper()
	spread := func(rules []rbacv1.PolicyRule) (all []right) {
		for _, rule := range rules {
			for _, group := range rule.APIGroups {
				for _, resource := range rule.Resources {
					for _, verb := range rule.Verbs {
						all = append(all, right{verb, group, resource})
					}
				}
			}
		}
		return all
	}
	role = spread(find[rbacv1.Role](t, renderForm(t, "base"), "Role").Rules)
	clusterWide = spread(find[rbacv1.ClusterRole](t, renderForm(t, "base"), "ClusterRole").Rules)
	return role, append(clusterWide, right{"get", "", "nodes"}) // manifests/nodes, see its own test
}

// TestEachRightOfTheRoleIsMissed takes the rights of the manifests away, one by one, and shows the request that is refused
// without each, in a pass over changes that need it; none of the others is refused. So no right is there for nothing.
func TestEachRightOfTheRoleIsMissed(t *testing.T) {
	role, clusterWide := grantedRights(t)
	s := usePlaces(t)
	var missed atomic.Int32
	t.Run("all", func(t *testing.T) {
		slots := make(chan struct{}, 4) // more passes at once only wait for each other
		for i, taken := range append(slices.Clone(role), clusterWide...) {
			t.Run(taken.String(), func(t *testing.T) {
				t.Parallel()
				slots <- struct{}{}
				defer func() { <-slots }()
				l := newLeast(t, s, fmt.Sprintf("least-%d", i), taken)
				l.prepare()
				result := l.run(t, l.env, "pass", "-o", "json")
				refused := false
				for _, request := range result.Requests {
					if request.Server != "host" {
						continue
					}
					used := rightOf(t, request, l.name)
					assert.NotContains(t, used, "watch")
					if request.Status == http.StatusForbidden {
						assert.Equal(t, taken.String(), used, "%s is refused, which no right was taken away for", request)
						refused = true
					}
				}
				assert.True(t, refused, "nothing was refused; exit %d\n%s\n%s", result.Exit, result.Stdout, result.Stderr)
				missed.Add(1)
			})
		}
	})
	if !t.Failed() {
		tally.Line(t, "least rights: %d rights taken away one by one, each missed; no watch among %d", missed.Load(), len(role)+len(clusterWide))
	}
}

// least is a place whose passes run with the rights of the manifests but one.
type least struct {
	*place
	*testing.T
	taken right
	host  kubernetes.Interface
	env   map[string]string
}

func newLeast(t *testing.T, s *surroundings, name string, taken right) *least {
	t.Helper()
	l := &least{place: newPlace(t, s, name, leastPolicy(taken)), T: t, taken: taken, env: map[string]string{}}
	var err error
	l.host, err = kubernetes.NewForConfig(s.host.Config)
	require.NoError(t, err)
	for _, side := range []record.Side{record.Host, record.Tenant} {
		l.apply(t, side, "{apiVersion: v1, kind: ServiceAccount, metadata: {name: default}}")
	}
	return l
}

// leastPolicy carries the kind that the right is about, ConfigMaps where it is about none.
func leastPolicy(taken right) scenario.Object {
	resource := object{"apiVersion": "v1", "kind": "ConfigMap", "direction": "bidirectional"}
	switch name, _, _ := strings.Cut(taken.resource, "/"); name {
	case "secrets":
		resource["kind"] = "Secret"
	case "services":
		resource["kind"] = "Service"
	case "pods", "nodes":
		resource["kind"], resource["direction"] = "Pod", "toHost"
	}
	return scenario.Object{"conflictPolicy": "manual", "explain": object{"recordDecisions": true}, "resources": []any{resource}}
}

// objectOf is one of the policy's kind.
func (l *least) objectOf(name, by string) string {
	switch resource, _, _ := strings.Cut(l.taken.resource, "/"); resource {
	case "secrets":
		return fmt.Sprintf("{apiVersion: v1, kind: Secret, metadata: {name: %s}, stringData: {by: %s}}", name, by)
	case "services":
		return fmt.Sprintf("{apiVersion: v1, kind: Service, metadata: {name: %s}, spec: {selector: {by: %s}, ports: [{port: 80}]}}", name, by)
	case "pods", "nodes":
		return podOf(l.T, name, fmt.Sprintf("{metadata: {labels: {by: %s}}, spec: {readinessGates: [{conditionType: example.com/gate}], containers: [{name: c, image: i, resources: {requests: {cpu: 10m}, limits: {cpu: 100m}}}]}}", by))
	default:
		return fmt.Sprintf("{apiVersion: v1, kind: ConfigMap, metadata: {name: %s}, data: {by: %s}}", name, by)
	}
}

func (l *least) kindResource() string {
	switch resource, _, _ := strings.Cut(l.taken.resource, "/"); resource {
	case "secrets", "services":
		return resource
	case "pods", "nodes":
		return "pods"
	}
	return "configmaps"
}

// prepare makes some objects and their mirrors, with every right, then changes that take every verb to carry, and gives
// the next pass the manifests' rights but the one.
func (l *least) prepare() {
	l.Helper()
	l.apply(l.T, record.Tenant, l.objectOf("edited", "a")+"\n---\n"+l.objectOf("gone", "a"))
	l.place.pass(l.T, 0, nil)
	l.apply(l.T, record.Tenant, l.objectOf("edited", "b")+"\n---\n"+l.objectOf("new", "a"))
	objects := l.objects(record.Tenant, corev1.SchemeGroupVersion.WithResource(l.kindResource()))
	require.NoError(l, objects.Delete(l.Context(), "gone", *metav1.NewDeleteOptions(0)))
	l.change()
	l.grant()
}

// change makes the further changes that only some rights are needed for.
func (l *least) change() {
	l.Helper()
	tenantPods := l.objects(record.Tenant, podsResource)
	patchPod := func(subresource, change string) {
		l.Helper()
		_, err := tenantPods.Patch(l.Context(), "edited", types.StrategicMergePatchType, []byte(change), metav1.PatchOptions{}, subresource)
		require.NoError(l, err)
	}
	switch l.taken {
	case right{"list", policy.GroupVersion.Group, "tenantclusters"}:
		l.env["SYNCPASS_TENANT"] = ""
	case right{"create", policy.GroupVersion.Group, "syncdecisions"}, right{"list", policy.GroupVersion.Group, "syncdecisions"}:
		require.NoError(l, l.objects(record.Host, store.Resource).Delete(l.Context(), l.name, metav1.DeleteOptions{}))
	case right{"delete", policy.GroupVersion.Group, "syncdecisions"}:
		l.layStrayPage()
		require.NoError(l, l.objects(record.Host, store.Resource).Delete(l.Context(), l.name, metav1.DeleteOptions{}))
	case right{"update", policy.GroupVersion.Group, "syncdecisions/status"}:
		l.layLongHistory()
	case right{"create", "coordination.k8s.io", "leases"}:
		require.NoError(l, l.host.CoordinationV1().Leases(l.name).Delete(l.Context(), "syncpass-"+l.name, metav1.DeleteOptions{}))
	case right{"patch", "", "events"}:
		l.letAConflictStand()
	case right{"update", "", "pods/ephemeralcontainers"}:
		patchPod("ephemeralcontainers", `{"spec":{"ephemeralContainers":[{"name":"debug","image":"i"}]}}`)
	case right{"update", "", "pods/resize"}:
		patchPod("resize", `{"spec":{"containers":[{"name":"c","resources":{"requests":{"cpu":"20m"}}}]}}`)
	case right{"update", "", "pods/status"}:
		patchPod("status", `{"status":{"conditions":[{"type":"example.com/gate","status":"True"}]}}`)
	case right{"get", "", "nodes"}:
		l.runOnANode()
	}
}

// layStrayPage leaves a page of an earlier division of the history, as a pass that was killed may.
func (l *least) layStrayPage() {
	l.Helper()
	rest := "-history-7-3-"
	hash := sha256.New()
	for _, part := range []string{l.name, rest} {
		fmt.Fprintf(hash, "%d:%s", len(part), part)
	}
	name := l.name + rest + strings.ToLower(base32.StdEncoding.EncodeToString(hash.Sum(nil)[:10]))
	l.apply(l.T, record.Host, fmt.Sprintf("{apiVersion: %s, kind: SyncDecision, metadata: {name: %s, labels: {tenantplane.io/history-of: %s}}}", policy.GroupVersion, name, l.name))
}

// layLongHistory has the history remember so many pairs that it takes several pages, of a kind that is not in the policy.
func (l *least) layLongHistory() {
	l.Helper()
	records, loaded := l.records()
	gone := record.Version{UID: "5f1c0a52-0000-4000-8000-000000000001", ResourceVersion: "1"}
	for i := range 6000 {
		key := record.Key{Kind: "Secret", Namespace: l.name, Name: fmt.Sprintf("kept-%d", i)}
		loaded.History.Set(key, record.State{Baseline: &record.Baseline{Tenant: gone, Host: gone}})
	}
	l.rewrite(records, loaded)
}

// letAConflictStand makes a conflict, has a pass find it, and sets the record of it back by more than half an hour.
func (l *least) letAConflictStand() {
	l.Helper()
	_, err := l.objects(record.Host, configsResource).Patch(l.Context(), l.mirror("edited"), types.MergePatchType, []byte(`{"data":{"by":"host"}}`), metav1.PatchOptions{})
	require.NoError(l, err)
	found, _ := l.place.pass(l.T, 0, nil)
	require.Equal(l, record.Conflict, decidedIn(l.T, found, "edited").Reason)

	records, loaded := l.records()
	for key := range loaded.History.All() {
		if state := loaded.History.Get(key); state.Standing != nil {
			standing := *state.Standing
			standing.LastTime = standing.LastTime.Add(-record.StandingRefresh - time.Minute)
			state.Standing = &standing
			loaded.History.Set(key, state)
		}
	}
	l.rewrite(records, loaded)
}

// records reads the record of the place, to be rewritten.
func (l *least) records() (*store.Store, *store.Loaded) {
	l.Helper()
	cluster, err := l.objects(record.Host, policy.TenantClusterResource).Get(l.Context(), l.name, metav1.GetOptions{})
	require.NoError(l, err)
	records := store.New(l.hostObjects, l.hostObjects, l.name, l.name, metav1.OwnerReference{
		APIVersion: cluster.GetAPIVersion(), Kind: cluster.GetKind(), Name: cluster.GetName(), UID: cluster.GetUID(),
	})
	loaded, err := records.Load(l.Context())
	require.NoError(l, err)
	require.Empty(l, loaded.Problems)
	return records, loaded
}

// rewrite stores a record as it is, but for the history.
func (l *least) rewrite(records *store.Store, loaded *store.Loaded) {
	l.Helper()
	_, err := records.Record(l.Context(), loaded, store.Result{
		LastPass: *loaded.Status.LastPass, Conflicts: loaded.Status.Conflicts, Entries: loaded.Status.Entries, History: loaded.History,
	})
	require.NoError(l, err)
}

// runOnANode has the policy show Nodes, and the mirror run on one.
func (l *least) runOnANode() {
	l.Helper()
	nodes := l.host.CoreV1().Nodes()
	_, err := nodes.Create(l.Context(), &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: l.name}}, metav1.CreateOptions{})
	require.NoError(l, err)
	l.Cleanup(func() { assert.NoError(l, nodes.Delete(context.Background(), l.name, metav1.DeleteOptions{})) })
	require.NoError(l, l.host.CoreV1().Pods(l.name).Bind(l.Context(), &corev1.Binding{
		ObjectMeta: metav1.ObjectMeta{Namespace: l.name, Name: l.mirror("edited")}, Target: corev1.ObjectReference{Kind: "Node", Name: l.name},
	}, metav1.CreateOptions{}))
	require.NoError(l, l.s.host.Apply(l.s.context(l.T), documents(l.T, object{"apiVersion": policy.GroupVersion.String(), "kind": "SyncPolicy", "metadata": object{"name": l.name},
		"spec": object{"conflictPolicy": "manual", "resources": []any{
			object{"apiVersion": "v1", "kind": "Pod", "direction": "toHost", "namespaces": []any{l.name}},
			object{"apiVersion": "v1", "kind": "Node", "direction": "fromHost"},
		}}})))
}

// grant gives the runner a ServiceAccount with all rights of the manifests but the one, and waits until they count.
func (l *least) grant() {
	l.Helper()
	role, clusterWide := grantedRights(l.T)
	rules := func(rights []right) []rbacv1.PolicyRule {
		all := []rbacv1.PolicyRule{}
		for _, one := range rights {
			if one != l.taken {
				all = append(all, rbacv1.PolicyRule{APIGroups: []string{one.group}, Resources: []string{one.resource}, Verbs: []string{one.verb}})
			}
		}
		return all
	}
	meta := metav1.ObjectMeta{Name: l.name}
	subjects := []rbacv1.Subject{{Kind: rbacv1.ServiceAccountKind, Namespace: l.name, Name: l.name}}
	rbac, ctx, create := l.host.RbacV1(), l.Context(), metav1.CreateOptions{}
	_, err := l.host.CoreV1().ServiceAccounts(l.name).Create(ctx, &corev1.ServiceAccount{ObjectMeta: meta}, create)
	require.NoError(l, err)
	_, err = rbac.Roles(l.name).Create(ctx, &rbacv1.Role{ObjectMeta: meta, Rules: rules(role)}, create)
	require.NoError(l, err)
	_, err = rbac.RoleBindings(l.name).Create(ctx, &rbacv1.RoleBinding{ObjectMeta: meta, Subjects: subjects,
		RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: l.name}}, create)
	require.NoError(l, err)
	_, err = rbac.ClusterRoles().Create(ctx, &rbacv1.ClusterRole{ObjectMeta: meta, Rules: rules(clusterWide)}, create)
	require.NoError(l, err)
	_, err = rbac.ClusterRoleBindings().Create(ctx, &rbacv1.ClusterRoleBinding{ObjectMeta: meta, Subjects: subjects,
		RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: l.name}}, create)
	require.NoError(l, err)
	l.Cleanup(func() {
		assert.NoError(l, rbac.ClusterRoleBindings().Delete(context.Background(), l.name, metav1.DeleteOptions{}))
		assert.NoError(l, rbac.ClusterRoles().Delete(context.Background(), l.name, metav1.DeleteOptions{}))
	})
	for _, one := range append(role, clusterWide...) {
		if one != l.taken {
			l.awaitRight(one)
		}
	}
	token, err := l.host.CoreV1().ServiceAccounts(l.name).CreateToken(ctx, l.name, &authenticationv1.TokenRequest{}, create)
	require.NoError(l, err)
	kubeconfig, err := l.hostProxy.Kubeconfig(token.Status.Token)
	require.NoError(l, err)
	l.env["SYNCPASS_HOST_KUBECONFIG"] = writeFile(l.T, "host.kubeconfig", string(kubeconfig))
}

func (l *least) awaitRight(one right) {
	l.Helper()
	resource, subresource, _ := strings.Cut(one.resource, "/")
	attributes := &authorizationv1.ResourceAttributes{Verb: one.verb, Group: one.group, Resource: resource, Subresource: subresource}
	if one.resource != "nodes" && one.resource != "syncpolicies" {
		attributes.Namespace = l.name
	}
	eventually(l.T, one.String()+" is granted", func(ctx context.Context) (bool, error) {
		review, err := l.host.AuthorizationV1().SubjectAccessReviews().Create(ctx, &authorizationv1.SubjectAccessReview{Spec: authorizationv1.SubjectAccessReviewSpec{
			User: "system:serviceaccount:" + l.name + ":" + l.name, ResourceAttributes: attributes,
		}}, metav1.CreateOptions{})
		return err == nil && review.Status.Allowed, err
	})
}

func decidedIn(t *testing.T, result pass.Result, name string) record.Decision {
	t.Helper()
	for _, d := range result.Decisions {
		if d.TenantName == name {
			return d
		}
	}
	require.Fail(t, "nothing was decided", "about %s", name)
	return record.Decision{}
}

// Besides the Role, the manifests grant getting SyncPolicies, and getting Nodes where asked.
func TestTheRunnerHasNoOtherClusterWideRight(t *testing.T) {
	_, clusterWide := grantedRights(t)
	require.ElementsMatch(t, []right{{"get", policy.GroupVersion.Group, "syncpolicies"}, {"get", "", "nodes"}}, clusterWide)
	for form := range maps.Keys(forms) {
		for _, object := range renderForm(t, form) {
			if object.GetKind() == "ClusterRoleBinding" {
				require.Equal(t, "syncpass-policy-reader", object.GetName())
			}
		}
	}
}
