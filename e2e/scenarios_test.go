package e2e

import (
	"flag"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"

	"github.com/syncpass/syncpass/e2e/cluster"
	"github.com/syncpass/syncpass/e2e/scenario"
)

var scenariosFlag = flag.String("scenarios", "testdata/scenarios",
	"folder of scenario files, searched to any depth; relative to this package or to the repository")

// TestScenarios runs every scenario file of a folder, each as a test of its own
// named by its path there. Before each pass of the core ones, a plan from files is
// held to the one against the clusters.
func TestScenarios(t *testing.T) {
	dir := *scenariosFlag
	if _, err := os.Stat(dir); err != nil && !filepath.IsAbs(dir) {
		dir = filepath.Join("..", dir)
	}
	var files []string
	require.NoError(t, filepath.WalkDir(dir, func(path string, entry fs.DirEntry, err error) error {
		if ext := filepath.Ext(path); err == nil && !entry.IsDir() && (ext == ".yaml" || ext == ".yml") {
			files = append(files, path)
		}
		return err
	}))
	require.NotEmpty(t, files, "there is no scenario file in %s", dir)

	var plans *comparison // of the core scenarios
	defer func() { plans.conclude(t) }()
	parent := t
	for _, path := range files {
		name, err := filepath.Rel(dir, path)
		require.NoError(t, err)
		t.Run(filepath.ToSlash(name), func(t *testing.T) {
			file, err := scenario.Read(path)
			require.NoError(t, err)
			find := suite
			if slices.Contains(file.Needs, scenario.NeedHostNode) {
				find = nodeSuite
			}
			s := find(t)
			runner := s.runner(t)
			if strings.HasPrefix(filepath.ToSlash(name), "core/") {
				if plans == nil {
					plans = newComparison(parent, s)
				}
				runner = plans.runner
				defer func() { plans.files++ }()
			}
			if missing := runner.Missing(file); len(missing) > 0 {
				t.Skipf("%q needs %s, which these control planes do not have", file.Name, strings.Join(missing, ", "))
			}
			if err := runner.Run(s.context(t), file); err != nil {
				t.Fatal(err)
			}
		})
	}
}

// TestAScenarioThatDoesNotHoldFails changes what core scenarios expect, each in
// one way that only the whole path can notice: proxies, cluster and binary.
func TestAScenarioThatDoesNotHoldFails(t *testing.T) {
	s := suite(t)
	for _, test := range []struct{ name, file, old, new, says string }{
		{"a write is counted by the proxies", "12-mirror-deleted.yaml", "pass: {only: true", "pass: {writes: 0, only: true", "writes: want 0, got 1"},
		{"the mirror is really there", "12-mirror-deleted.yaml", "  - pass: {writes: 0}",
			"  - expect: {host: [{absent: {apiVersion: v1, kind: ConfigMap, metadata: {namespace: team-dev, name: app-x-default-x-dev}}}]}", "must be absent"},
		{"the plan is really withheld", "16-guard-empty-tenant.yaml", "  - annotateFromLastPass: {}\n", "", "exit: want 0, got 4"},
		{"Events are counted", "21-retain.yaml", "type: Normal}, is: 3", "type: Normal}, is: 4", "got 3"},
	} {
		t.Run(test.name, func(t *testing.T) {
			text, err := os.ReadFile(filepath.Join("testdata/scenarios/core", test.file))
			require.NoError(t, err)
			require.Contains(t, string(text), test.old)
			file, err := scenario.Parse([]byte(strings.Replace(string(text), test.old, test.new, 1)))
			require.NoError(t, err)
			require.ErrorContains(t, s.runner(t).Run(s.context(t), file), test.says)
		})
	}
}

// leftovers makes what is hard to get rid of: finalizers on a namespaced object,
// on one in a namespace of the file's own, on a custom resource and on a
// cluster-scoped object.
const leftovers = `
name: everything that a file makes is removed after it
namespaces: [mine]
steps:
  - apply:
      tenant:
        - {apiVersion: v1, kind: ConfigMap, metadata: {namespace: default, name: held, finalizers: [example.com/hold]}}
        - {apiVersion: v1, kind: ConfigMap, metadata: {namespace: mine, name: held, finalizers: [example.com/hold]}}
        - {apiVersion: scheduling.k8s.io/v1, kind: PriorityClass, metadata: {name: held, finalizers: [example.com/hold]}, value: 7}
      host:
        - {apiVersion: v1, kind: Namespace, metadata: {name: other}}
        - {apiVersion: v1, kind: Secret, metadata: {namespace: other, name: held, finalizers: [example.com/hold]}}
        - {apiVersion: apiextensions.k8s.io/v1, kind: CustomResourceDefinition, metadata: {name: widgets.example.com}, spec: {group: example.com, scope: Namespaced, names: {plural: widgets, kind: Widget}, versions: [{name: v1, served: true, storage: true, schema: {openAPIV3Schema: {type: object}}}]}}
        - {apiVersion: example.com/v1, kind: Widget, metadata: {namespace: team-dev, name: held, finalizers: [example.com/hold]}}
        - {apiVersion: coordination.k8s.io/v1, kind: Lease, metadata: {namespace: team-dev, name: syncpass-dev}}
        - {apiVersion: tenantplane.io/v1alpha1, kind: SyncDecision, metadata: {namespace: team-dev, name: dev}}
  - delete: {tenant: [{apiVersion: v1, kind: ConfigMap, metadata: {namespace: default, name: held}}, {apiVersion: v1, kind: Namespace, metadata: {name: mine}}]}
`

func TestNothingThatAScenarioMadeIsLeft(t *testing.T) {
	s := suite(t)
	file, err := scenario.Parse([]byte(leftovers))
	require.NoError(t, err)
	require.NoError(t, s.runner(t).Run(s.context(t), file))

	for _, left := range []struct {
		on                               *cluster.Cluster
		group, version, resource, inside string
		name                             string
	}{
		{s.tenant, "", "v1", "configmaps", "default", "held"},
		{s.tenant, "", "v1", "configmaps", "mine", "held"},
		{s.tenant, "", "v1", "namespaces", "", "mine"},
		{s.tenant, "scheduling.k8s.io", "v1", "priorityclasses", "", "held"},
		{s.host, "", "v1", "namespaces", "", "other"},
		{s.host, "", "v1", "secrets", "other", "held"},
		{s.host, "apiextensions.k8s.io", "v1", "customresourcedefinitions", "", "widgets.example.com"},
		{s.host, "coordination.k8s.io", "v1", "leases", "team-dev", "syncpass-dev"},
		{s.host, "tenantplane.io", "v1alpha1", "syncdecisions", "team-dev", "dev"},
	} {
		client, err := dynamic.NewForConfig(left.on.Config)
		require.NoError(t, err)
		resource := schema.GroupVersionResource{Group: left.group, Version: left.version, Resource: left.resource}
		_, err = client.Resource(resource).Namespace(left.inside).Get(t.Context(), left.name, metav1.GetOptions{})
		assert.True(t, apierrors.IsNotFound(err), "%s: %s %s/%s: %v", left.on.Name, left.resource, left.inside, left.name, err)
	}

	again, err := scenario.Parse([]byte(leftovers))
	require.NoError(t, err)
	require.NoError(t, s.runner(t).Run(s.context(t), again), "the same file must run again at once")
}
