package pass

import (
	"bytes"
	"encoding/base64"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/yaml"

	"github.com/syncpass/syncpass/pass/access"
	"github.com/syncpass/syncpass/pass/kinds"
	"github.com/syncpass/syncpass/pass/plan"
	"github.com/syncpass/syncpass/record"
)

// printedSides are the files of two sides, which tests change before they plan from them.
type printedSides struct {
	tenant, host, decision []string
	policy                 string
	options                Options
	log                    bytes.Buffer
	history                *record.History
	tenantUID              string
}

const tenantKubeconfig = `{apiVersion: v1, kind: Config, current-context: c, clusters: [{name: c, cluster: {server: "https://tenant.example.com:6443"}}],
  users: [{name: u, user: {token: %s}}], contexts: [{name: c, context: {cluster: c, user: u}}]}`

var offlineMapping = kinds.Mapping{
	Tenant: "dev", HostNamespace: "team-dev",
	Owner: metav1.OwnerReference{APIVersion: "tenantplane.io/v1alpha1", Kind: "TenantCluster", Name: "dev", UID: "owner", Controller: new(true), BlockOwnerDeletion: new(false)},
}

func offlineHasher(t *testing.T) record.Hasher {
	t.Helper()
	tenant, err := access.NewTenant(fmt.Appendf(nil, tenantKubeconfig, "secret-token"), access.Options{})
	require.NoError(t, err)
	return record.NewHasher(tenant.Credential())
}

// newPrintedSides has a TenantCluster, a Secret with the tenant's kubeconfig, and a policy of these kinds on the host.
func newPrintedSides(t *testing.T, kinds ...string) *printedSides {
	t.Helper()
	p := &printedSides{history: record.NewHistory(offlineHasher(t).KeyID())}
	p.policy = "apiVersion: tenantplane.io/v1alpha1\nkind: SyncPolicy\nmetadata: {name: default}\nspec:\n  resources:\n"
	for _, kind := range kinds {
		p.policy += "  - " + kind + "\n"
	}
	p.host = []string{
		"{apiVersion: tenantplane.io/v1alpha1, kind: TenantCluster, metadata: {namespace: team-dev, name: dev, uid: owner}, spec: {syncPolicyRef: {name: default}}}",
		p.policy,
		"{apiVersion: v1, kind: Secret, metadata: {namespace: team-dev, name: dev-kubeconfig}, data: {kubeconfig: " +
			base64.StdEncoding.EncodeToString(fmt.Appendf(nil, tenantKubeconfig, "secret-token")) + "}}",
	}
	p.options.MaxDeletePercent = 50
	return p
}

const twoWay, toHost = "{apiVersion: v1, kind: ConfigMap, direction: bidirectional}", "{apiVersion: v1, kind: ConfigMap, direction: toHost}"

// configMap is a ConfigMap of the tenant with this value.
func configMap(name, value, version string) *unstructured.Unstructured {
	return &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "v1", "kind": "ConfigMap", "data": map[string]any{"a": value},
		"metadata": map[string]any{"namespace": "default", "name": name, "uid": "t-" + name, "resourceVersion": version},
	}}
}

// mirrorOf is a tenant object's mirror as a pass made it.
func mirrorOf(tenant *unstructured.Unstructured, version string) *unstructured.Unstructured {
	mirror := offlineMapping.Project(kinds.For(tenant.GroupVersionKind().GroupKind()), tenant, nil, kinds.KeepNone)
	mirror.SetUID("h-" + tenant.GetUID())
	mirror.SetResourceVersion(version)
	return mirror
}

func edited(object *unstructured.Unstructured, value, version string) *unstructured.Unstructured {
	changed := object.DeepCopy()
	changed.Object["data"] = map[string]any{"a": value}
	changed.SetResourceVersion(version)
	return changed
}

// broken is an object whose data are none.
func broken(object *unstructured.Unstructured) *unstructured.Unstructured {
	changed := object.DeepCopy()
	changed.Object["data"] = "x"
	return changed
}

func printed(t *testing.T, object *unstructured.Unstructured) string {
	t.Helper()
	text, err := yaml.Marshal(object.Object)
	require.NoError(t, err)
	return string(text)
}

// see puts objects into the files; nil is none.
func (p *printedSides) see(t *testing.T, tenant, host *unstructured.Unstructured) {
	t.Helper()
	if tenant != nil {
		p.tenant = append(p.tenant, printed(t, tenant))
	}
	if host != nil {
		p.host = append(p.host, printed(t, host))
	}
}

// agreed records that two objects agreed.
func (p *printedSides) agreed(t *testing.T, tenant, host *unstructured.Unstructured) {
	t.Helper()
	group := tenant.GroupVersionKind()
	p.history.Set(record.Key{Group: group.Group, Kind: group.Kind, Namespace: tenant.GetNamespace(), Name: tenant.GetName()}, record.State{Baseline: &record.Baseline{
		Tenant: plan.Version(offlineHasher(t), kinds.For(group.GroupKind()), record.Tenant, tenant),
		Host:   plan.Version(offlineHasher(t), kinds.For(group.GroupKind()), record.Host, host),
	}})
}

// record is the SyncDecision as kubectl prints it.
func (p *printedSides) record(t *testing.T) string {
	t.Helper()
	pages, err := p.history.Encode()
	require.NoError(t, err)
	decision := &record.SyncDecision{
		TypeMeta:   metav1.TypeMeta{APIVersion: "tenantplane.io/v1alpha1", Kind: "SyncDecision"},
		ObjectMeta: metav1.ObjectMeta{Namespace: "team-dev", Name: "dev", UID: "d", ResourceVersion: "9", OwnerReferences: []metav1.OwnerReference{offlineMapping.Owner}},
		Status:     record.SyncDecisionStatus{History: &pages[0], Pairs: int32(p.history.Pairs()), Epoch: 3},
	}
	if p.tenantUID != "" {
		decision.Status.Tenant = &record.TenantIdentity{UID: p.tenantUID}
	}
	content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(decision)
	require.NoError(t, err)
	return printed(t, &unstructured.Unstructured{Object: content})
}

// plan plans from the files; the SyncDecision is among the host's unless a test gave a file of its own.
func (p *printedSides) plan(t *testing.T) (Result, error) {
	t.Helper()
	dir := t.TempDir()
	write := func(name string, documents []string) string {
		path := filepath.Join(dir, name)
		require.NoError(t, os.WriteFile(path, []byte(strings.Join(append(documents, "# the end\n"), "\n---\n")), 0o600))
		return path
	}
	files := Files{Tenant: write("tenant.yaml", p.tenant)}
	if p.decision != nil {
		files.Record = write("decision.yaml", p.decision)
	} else if p.history.Len() > 0 {
		p.host = append(p.host, p.record(t))
	}
	files.Host = write("host.yaml", p.host)
	p.options.Log = slog.New(slog.NewTextHandler(&p.log, nil))
	return PlanFiles(t.Context(), p.options, files)
}

// decided plans and writes each decision down.
func (p *printedSides) decided(t *testing.T) string {
	t.Helper()
	result, err := p.plan(t)
	require.NoError(t, err)
	lines := make([]string, 0, len(result.Decisions))
	for _, d := range result.Decisions {
		lines = append(lines, fmt.Sprintf("%s %s %s %s", d.Action, d.Side, d.TenantName, d.Reason))
	}
	return strings.Join(append(lines, fmt.Sprintf("%d unchanged", result.Counts.Unchanged)), ", ")
}
