package main

import (
	"context"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/syncpass/syncpass/e2e/cluster"
)

func TestUpAndDownCanBeRepeated(t *testing.T) {
	if testing.Short() {
		t.Skip("starts API servers")
	}
	// Not t.TempDir(): its long name would not leave room for the path of a socket.
	dir, err := os.MkdirTemp("", "sp")
	require.NoError(t, err)
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	var out strings.Builder
	p := &playground{provider: cluster.Local(), dir: filepath.Join(dir, "playground"), out: &out, progress: io.Discard}
	t.Cleanup(func() { _ = p.down(context.Background()) })

	require.NoError(t, p.down(t.Context()), "down before up is no error")
	require.NoError(t, p.up(t.Context()))
	first := out.String()
	assert.Equal(t, "export KUBECONFIG="+p.kubeconfig("host")+"\nexport TENANT_KUBECONFIG="+p.kubeconfig("tenant")+"\nexport SYNCPASS_NAMESPACE=team-dev\n", first)
	uid := kubeSystemUID(t, p.kubeconfig("host"))
	assert.NotEqual(t, uid, kubeSystemUID(t, p.kubeconfig("tenant")), "host and tenant are two clusters")
	assertTenantIsReachedThroughItsSecret(t, p)

	out.Reset()
	require.NoError(t, p.up(t.Context()), "up finds what runs")
	assert.Equal(t, first, out.String())
	assert.Equal(t, uid, kubeSystemUID(t, p.kubeconfig("host")), "the same host as before")

	tenant, err := p.provider.Attach(t.Context(), "tenant", p.clusterDir("tenant"))
	require.NoError(t, err)
	require.NoError(t, tenant.Stop())
	assert.ErrorContains(t, p.up(t.Context()), "only the host of the playground still runs")

	require.NoError(t, p.down(t.Context()))
	assert.NoDirExists(t, p.dir)
	require.NoError(t, p.down(t.Context()), "down twice is no error")
}

func kubeSystemUID(t *testing.T, kubeconfig string) string {
	t.Helper()
	config, err := clientcmd.BuildConfigFromFlags("", kubeconfig)
	require.NoError(t, err)
	client, err := kubernetes.NewForConfig(config)
	require.NoError(t, err)
	namespace, err := client.CoreV1().Namespaces().Get(t.Context(), metav1.NamespaceSystem, metav1.GetOptions{})
	require.NoError(t, err)
	return string(namespace.UID)
}

func assertTenantIsReachedThroughItsSecret(t *testing.T, p *playground) {
	t.Helper()
	config, err := clientcmd.BuildConfigFromFlags("", p.kubeconfig("host"))
	require.NoError(t, err)
	client, err := kubernetes.NewForConfig(config)
	require.NoError(t, err)
	secret, err := client.CoreV1().Secrets(hostNamespace).Get(t.Context(), "dev-control-plane-kubeconfig", metav1.GetOptions{})
	require.NoError(t, err)
	want, err := os.ReadFile(p.kubeconfig("tenant"))
	require.NoError(t, err)
	assert.Equal(t, string(want), string(secret.Data["kubeconfig"]))
}

func TestTheDemoShowsEveryStepAndLeavesNothing(t *testing.T) {
	if testing.Short() {
		t.Skip("starts API servers")
	}
	temp, err := os.MkdirTemp("", "sp")
	require.NoError(t, err)
	t.Cleanup(func() { _ = os.RemoveAll(temp) })
	t.Setenv("TMPDIR", temp)
	var out strings.Builder
	p := &playground{provider: cluster.Local(), out: &out, progress: io.Discard}
	err = p.demo(t.Context())
	text := out.String()
	require.NoError(t, err, text)

	for _, want := range []string{
		`(?m)^configmap/app-x-default-x-dev +1`,
		`(?m)^secret/database-x-default-x-dev +Opaque +1`,
		`(?m)^service/web-x-default-x-dev +ClusterIP +10\.96\.`,
		`(?m)^pod/web-x-default-x-dev +0/1 +Pending`,
		`(?m)^hello from the host$`,
		`(?m)^good morning$`,
		`(?m)^good evening$`,
		`(?m)^dev +Completed .* 1 +4$`,
		`(?m) Create +ConfigMap +default/app +NoMirror$`,
		`(?m) Update +ConfigMap +default/app +HostChanged$`,
		`(?m) Skip +ConfigMap +default/app +Conflict$`,
		`Both API servers are stopped`,
	} {
		assert.Regexp(t, regexp.MustCompile(want), text)
	}
	assert.NotContains(t, text, "s3cr3t", "no value of a Secret is shown")
	left, err := os.ReadDir(temp)
	require.NoError(t, err)
	assert.Empty(t, left)
}

func TestABadInvocationNamesItsFault(t *testing.T) {
	for want, args := range map[string][]string{
		"exactly one verb":                nil,
		`unknown verb "start"`:            {"start"},
		`unknown cluster provider "mini"`: {"-provider", "mini", "up"},
	} {
		assert.ErrorContains(t, run(t.Context(), args), want)
	}
}

func TestATableShowsWhatKubectlWould(t *testing.T) {
	table := &metav1.Table{
		ColumnDefinitions: []metav1.TableColumnDefinition{{Name: "Name"}, {Name: "Data"}, {Name: "Node", Priority: 1}, {Name: "Age"}},
		Rows: []metav1.TableRow{
			{Cells: []any{"app", float64(2), "n1", "5s"}},
			{Cells: []any{"kube-root-ca.crt", float64(1), "n1", nil}},
		},
	}
	var all, one strings.Builder
	require.NoError(t, writeTable(&all, table, "configmap/", nil))
	assert.Equal(t, "NAME                         DATA   AGE\n"+
		"configmap/app                2      5s\n"+
		"configmap/kube-root-ca.crt   1      \n", all.String())
	require.NoError(t, writeTable(&one, table, "", []string{"app"}))
	assert.Equal(t, "NAME   DATA   AGE\napp    2      5s\n", one.String())
}

func TestTheTrailHasALineForEachEntry(t *testing.T) {
	entry := func(action, reason string) any {
		return map[string]any{"time": "2026-01-02T03:04:05Z", "action": action, "kind": "ConfigMap",
			"tenantNamespace": "default", "tenantName": "app", "reason": reason}
	}
	decision := &unstructured.Unstructured{Object: map[string]any{
		"status": map[string]any{"entries": []any{entry("Create", "NoMirror"), entry("Skip", "Conflict")}}}}
	var out strings.Builder
	require.NoError(t, printTrail(&out, decision))
	assert.Equal(t, "2026-01-02T03:04:05Z   Create   ConfigMap   default/app   NoMirror\n"+
		"2026-01-02T03:04:05Z   Skip     ConfigMap   default/app   Conflict\n", out.String())
}
