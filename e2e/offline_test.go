package e2e

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/yaml"

	"github.com/syncpass/syncpass/e2e/scenario"
	"github.com/syncpass/syncpass/e2e/tally"
	"github.com/syncpass/syncpass/pass"
	"github.com/syncpass/syncpass/pass/snapshot"
	"github.com/syncpass/syncpass/policy"
	"github.com/syncpass/syncpass/record"
)

// comparisons is how often two plans are compared that controllers may have come between.
const comparisons = 5

// comparison holds plans from files to those against clusters: before each pass of a scenario it prints both sides and the
// record as kubectl does, plans from that without a cluster, and compares with what a plan against the clusters decides.
type comparison struct {
	runner *scenario.Runner
	// files and plans count what was compared, decisions the decisions in it.
	files, plans int
	decisions    map[record.Reason]int
}

func newComparison(t *testing.T, s *surroundings) *comparison {
	t.Helper()
	require.NoError(t, s.runner(t).Clean(s.context(t)))
	c := &comparison{decisions: map[record.Reason]int{}}
	environment := s.environment(t)
	environment.Before = func(ctx context.Context, run func(map[string]string, ...string) (*scenario.Result, error)) error {
		var last error
		for range comparisons {
			same, err := s.compare(ctx, t.TempDir(), run)
			if err == nil {
				c.plans++
				for _, d := range same {
					c.decisions[d.Reason]++
				}
				return nil
			}
			last = err
		}
		return last
	}
	c.runner = s.runnerIn(t, environment)
	return c
}

// conclude says what was compared, if that was all core scenarios.
func (c *comparison) conclude(t *testing.T) {
	t.Helper()
	core, err := filepath.Glob("testdata/scenarios/core/*.yaml")
	require.NoError(t, err)
	if c == nil || c.files < len(core) || t.Failed() {
		return
	}
	require.Greater(t, c.plans, c.files)
	total := 0
	for _, count := range c.decisions {
		total += count
	}
	// Those that take the history's hashes to tell apart, the host's managedFields, and the guards.
	for _, reason := range []record.Reason{record.NoMirror, record.MirrorDeleted, record.TenantChanged, record.HostChanged, record.HostDrifted,
		record.TenantDeleted, record.Conflict, record.NoHistory, record.HistoryOff, record.NotOwned, record.GuardEmptyTenant} {
		require.NotZero(t, c.decisions[reason], "no plan was compared with a decision %s", reason)
	}
	tally.Line(t, "plans from files: %d, with %d decisions, each the same as against the clusters", c.plans, total)
}

// compare plans both ways, and returns the decisions, which must be the same.
func (s *surroundings) compare(ctx context.Context, dir string, run func(map[string]string, ...string) (*scenario.Result, error)) ([]record.Decision, error) {
	live, err := run(nil, "plan", "-o", "json")
	if err != nil {
		return nil, err
	}
	args, err := s.print(ctx, dir)
	if err != nil {
		return nil, err
	}
	// Without any way to the host.
	offline, err := run(map[string]string{"SYNCPASS_HOST_KUBECONFIG": "", "HOME": dir}, append([]string{"plan", "-o", "json"}, args...)...)
	if err != nil {
		return nil, err
	}
	if live.Exit != offline.Exit {
		return nil, fmt.Errorf("the live plan exits with %d, the one from files with %d: %s", live.Exit, offline.Exit, offline.Stderr)
	}
	var wanted, got passOutput
	if len(live.Stdout) == 0 && len(offline.Stdout) == 0 {
		return nil, nil // both refuse the policy
	}
	if err := json.Unmarshal(live.Stdout, &wanted); err != nil {
		return nil, err
	}
	if err := json.Unmarshal(offline.Stdout, &got); err != nil {
		return nil, err
	}
	want, is := fixedPart(wanted.Passes[0]), fixedPart(got.Passes[0])
	if string(want) != string(is) {
		return nil, fmt.Errorf("the live plan:\n%s\nthe plan from files:\n%s\nwhich says: %s", want, is, offline.Stderr)
	}
	return wanted.Passes[0].Decisions, nil
}

// fixedPart is what of a plan does not hang on when and how it was made.
func fixedPart(p pass.Result) []byte {
	p.ID, p.StartTime, p.EndTime, p.Counts.Requests = "", metav1.MicroTime{}, metav1.MicroTime{}, 0
	text, err := json.MarshalIndent(p, "", " ")
	if err != nil {
		panic(err) // it came from JSON
	}
	return text
}

// print writes both sides and the record into files, as kubectl get -o yaml --show-managed-fields prints them, and returns
// the flags that name them.
func (s *surroundings) print(ctx context.Context, dir string) ([]string, error) {
	host, err := dynamic.NewForConfig(s.host.Config)
	if err != nil {
		return nil, err
	}
	policies, err := host.Resource(policy.SyncPolicyResource).List(ctx, metav1.ListOptions{})
	if err != nil {
		return nil, err
	}
	kinds := []schema.GroupVersionKind{{Version: "v1", Kind: "Namespace"}, {Version: "v1", Kind: "Secret"}, policy.GroupVersion.WithKind("TenantCluster"),
		policy.GroupVersion.WithKind("SyncPolicy"), {Group: "apiextensions.k8s.io", Version: "v1", Kind: "CustomResourceDefinition"}}
	for _, one := range policies.Items {
		resources, _, _ := unstructured.NestedSlice(one.Object, "spec", "resources")
		for _, resource := range resources {
			apiVersion, _ := resource.(map[string]any)["apiVersion"].(string)
			kind, _ := resource.(map[string]any)["kind"].(string)
			if gvk := schema.FromAPIVersionAndKind(apiVersion, kind); !slices.Contains(kinds, gvk) {
				kinds = append(kinds, gvk)
			}
		}
	}
	args := []string{"--tenant-dir", filepath.Join(dir, "tenant"), "--host-dir", filepath.Join(dir, "host")}
	if err := errors.Join(printSide(ctx, s.tenant.Config, args[1], "", kinds), printSide(ctx, s.host.Config, args[3], "team-dev", kinds)); err != nil {
		return nil, err
	}
	decisions, err := host.Resource(policy.GroupVersion.WithResource("syncdecisions")).Namespace("team-dev").List(ctx, metav1.ListOptions{})
	if err != nil || len(decisions.Items) == 0 {
		return args, err
	}
	path := filepath.Join(dir, "record.yaml")
	return append(args, "--record", path), printList(path, decisions.Items)
}

// printSide writes a file for each kind that a side serves.
func printSide(ctx context.Context, config *rest.Config, dir, namespace string, kinds []schema.GroupVersionKind) error {
	config = rest.CopyConfig(config)
	config.WarningHandler = rest.NoWarnings{} // of kinds that are out of date
	objects, err := dynamic.NewForConfig(config)
	if err != nil {
		return err
	}
	found, err := discovery.NewDiscoveryClientForConfig(config)
	if err != nil {
		return err
	}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	for _, kind := range kinds {
		served, err := found.ServerResourcesForGroupVersion(kind.GroupVersion().String())
		if apierrors.IsNotFound(err) {
			continue
		}
		if err != nil {
			return err
		}
		for _, resource := range served.APIResources {
			if resource.Kind != kind.Kind || strings.Contains(resource.Name, "/") {
				continue
			}
			within := namespace
			if !resource.Namespaced {
				within = ""
			}
			list, err := objects.Resource(kind.GroupVersion().WithResource(resource.Name)).Namespace(within).List(ctx, metav1.ListOptions{})
			if err != nil {
				return err
			}
			if err := printList(filepath.Join(dir, resource.Name+"."+kind.Group+".yaml"), list.Items); err != nil {
				return err
			}
		}
	}
	return nil
}

func printList(path string, items []unstructured.Unstructured) error {
	list := map[string]any{"apiVersion": "v1", "kind": "List", "metadata": map[string]any{"resourceVersion": ""}, "items": []any{}}
	for _, item := range items {
		list["items"] = append(list["items"].([]any), item.Object)
	}
	text, err := yaml.Marshal(list)
	if err != nil {
		return err
	}
	return os.WriteFile(path, text, 0o600)
}

// TestFilesKnowTheScopeOfEveryBuiltInKind compares what is known of kinds without a cluster with what an API server serves.
func TestFilesKnowTheScopeOfEveryBuiltInKind(t *testing.T) {
	s := suite(t)
	found, err := discovery.NewDiscoveryClientForConfig(s.tenant.Config)
	require.NoError(t, err)
	_, lists, err := found.ServerGroupsAndResources()
	require.NoError(t, err)
	var request snapshot.Request
	want := map[policyKind]metav1.APIResource{}
	for _, list := range lists {
		for _, resource := range list.APIResources {
			version, err := schema.ParseGroupVersion(list.GroupVersion)
			require.NoError(t, err)
			if strings.Contains(resource.Name, "/") || !scheme.Scheme.Recognizes(version.WithKind(resource.Kind)) {
				continue
			}
			want[policyKind{list.GroupVersion, resource.Kind}] = resource
			request.Resources = append(request.Resources, policy.Resource{APIVersion: list.GroupVersion, Kind: resource.Kind})
		}
	}
	require.Greater(t, len(want), 50)
	nothing := filepath.Join(t.TempDir(), "nothing.yaml")
	require.NoError(t, os.WriteFile(nothing, []byte("# nothing\n"), 0o600))
	files, err := snapshot.ReadFiles(nothing)
	require.NoError(t, err)
	sides := &snapshot.FileSides{Host: files, Tenant: files}
	taken, resources, err := sides.Take(t.Context(), request)
	require.NoError(t, err)
	for _, kind := range taken.Kinds {
		served := want[policyKind{kind.Resource.APIVersion, kind.Resource.Kind}]
		switch says := kind.Unavailable; {
		case served.Kind == "Node":
		case !slices.Contains(served.Verbs, "list"):
			require.NotEmpty(t, says, served.Kind)
		case !served.Namespaced:
			require.Contains(t, says, "is cluster-scoped", "%s %s", kind.Resource.APIVersion, served.Kind)
		default:
			require.Empty(t, says, "%s %s", kind.Resource.APIVersion, served.Kind)
			gvk := schema.FromAPIVersionAndKind(kind.Resource.APIVersion, kind.Resource.Kind)
			require.Equal(t, served.Name, resources["tenant"][gvk].Resource)
		}
	}
}

type policyKind struct{ apiVersion, kind string }
