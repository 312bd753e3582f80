package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/util/jsonpath"

	"github.com/syncpass/syncpass/e2e/cluster"
)

// mirror is where the tenant's ConfigMap default/app lands on the host.
const mirror = "app-x-default-x-dev"

// trailTemplate prints one line for each recorded decision.
const trailTemplate = `{range .status.entries[*]}{.time}{"\t"}{.action}{"\t"}{.kind}{"\t"}{.tenantNamespace}/{.tenantName}{"\t"}{.reason}{"\n"}{end}`

// demo is the tour: everything happens on real API servers, which are gone
// afterwards.
type demo struct {
	out          io.Writer
	host, tenant *cluster.Cluster
	// runner is the path of the built binary, environment what it runs with.
	runner      string
	environment []string
	// step counts the headings.
	step int
}

func (p *playground) demo(ctx context.Context) (err error) {
	dir, err := os.MkdirTemp("", "syncpass-demo-")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	d := &demo{out: p.out}

	d.head("A host and a tenant: two real API servers, no nodes")
	start := time.Now()
	options := cluster.Options{Log: p.progress}
	if d.host, d.tenant, err = cluster.StartPair(ctx, p.provider, options, options); err != nil {
		return err
	}
	defer func() {
		err = errors.Join(err, d.host.Stop(), d.tenant.Stop())
		if err == nil {
			fmt.Fprintln(d.out, "\nBoth API servers are stopped and their data is removed.")
		}
	}()
	fmt.Fprintf(d.out, "ready after %.1f s: host %s, tenant %s\n"+
		"Below, host$ and tenant$ are kubectl commands against the one and the other. The demo asks the API servers the\n"+
		"same questions itself, so kubectl need not be installed. The runner, which is this project, really runs.\n",
		time.Since(start).Seconds(), d.host.Config.Host, d.tenant.Config.Host)
	fmt.Fprintln(p.progress, "building the runner ...")
	if err := d.buildRunner(ctx, dir); err != nil {
		return err
	}
	return d.tour(ctx)
}

func (d *demo) buildRunner(ctx context.Context, dir string) (err error) {
	if d.runner, err = cluster.BuildRunner(ctx, dir); err != nil {
		return err
	}
	kubeconfig := filepath.Join(dir, "host.kubeconfig")
	d.environment = append(foreignEnvironment(), "KUBECONFIG="+kubeconfig, "SYNCPASS_NAMESPACE="+hostNamespace,
		"SYNCPASS_LOG_FORMAT=text", "SYNCPASS_LOG_LEVEL=warn")
	return os.WriteFile(kubeconfig, d.host.Kubeconfig(), 0o600)
}

// foreignEnvironment is the environment without what configures a runner: the tour
// must not depend on settings somebody has for another cluster.
func foreignEnvironment() []string {
	return slices.DeleteFunc(os.Environ(), func(variable string) bool {
		return strings.HasPrefix(variable, "SYNCPASS_") || strings.HasPrefix(variable, "JOB_COMPLETION_INDEX=")
	})
}

func (d *demo) tour(ctx context.Context) error {
	steps := []func(context.Context) error{
		d.prepare, d.plan, d.firstPass, d.editHost, d.editBoth, d.showDecisions,
	}
	for _, step := range steps {
		if err := step(ctx); err != nil {
			return err
		}
	}
	return nil
}

func (d *demo) prepare(ctx context.Context) error {
	d.head("The host gets the CRDs, a SyncPolicy and a TenantCluster; the tenant gets a small application")
	d.prompt("host", "kubectl apply -f manifests/crd -f e2e/playground/objects/host.yaml")
	if err := prepareHost(ctx, d.host, d.tenant); err != nil {
		return err
	}
	d.prompt("tenant", "kubectl apply -f e2e/playground/objects/tenant.yaml")
	if err := d.tenant.Apply(ctx, tenantObjects); err != nil {
		return err
	}
	d.prompt("tenant", "kubectl get configmap/app secret/database service/web pod/web")
	return printObjects(ctx, d.out, d.tenant, metav1.NamespaceDefault, "", "app", "database", "web")
}

func (d *demo) plan(ctx context.Context) error {
	d.head("What would a pass do? A plan writes nothing anywhere")
	return d.run(ctx, "plan")
}

func (d *demo) firstPass(ctx context.Context) error {
	d.head("One pass: list both sides, plan, apply, record, exit")
	if err := d.run(ctx, "pass"); err != nil {
		return err
	}
	if err := d.showMirrors(ctx); err != nil {
		return err
	}
	fmt.Fprintln(d.out, "(The Pod stays Pending here: these API servers have no node to run it.)")
	return nil
}

func (d *demo) editHost(ctx context.Context) error {
	d.head("Someone edits the mirror on the host; the next pass carries the change to the tenant")
	if err := d.patch(ctx, d.host, hostNamespace, mirror, `{"data":{"greeting":"hello from the host"}}`); err != nil {
		return err
	}
	if err := d.run(ctx, "pass"); err != nil {
		return err
	}
	return d.showGreeting(ctx, d.tenant, metav1.NamespaceDefault, "app")
}

func (d *demo) editBoth(ctx context.Context) error {
	d.head("Both sides edit the same object: under conflictPolicy manual neither change is lost")
	if err := d.patch(ctx, d.host, hostNamespace, mirror, `{"data":{"greeting":"good morning"}}`); err != nil {
		return err
	}
	if err := d.patch(ctx, d.tenant, metav1.NamespaceDefault, "app", `{"data":{"greeting":"good evening"}}`); err != nil {
		return err
	}
	if err := d.run(ctx, "pass"); err != nil {
		return err
	}
	if err := d.showGreeting(ctx, d.host, hostNamespace, mirror); err != nil {
		return err
	}
	return d.showGreeting(ctx, d.tenant, metav1.NamespaceDefault, "app")
}

func (d *demo) showDecisions(ctx context.Context) error {
	d.head("Why did it do all that? The SyncDecision on the host says so, and is the only state there is")
	d.prompt("host", "kubectl get syncdecision -n "+hostNamespace)
	path := "/apis/tenantplane.io/v1alpha1/namespaces/" + hostNamespace + "/syncdecisions"
	if err := printTable(ctx, d.out, d.host, path, "", ""); err != nil {
		return err
	}
	d.prompt("host", fmt.Sprintf("kubectl get syncdecision %s -n %s -o jsonpath='%s'", tenantName, hostNamespace, trailTemplate))
	client, err := dynamic.NewForConfig(d.host.Config)
	if err != nil {
		return err
	}
	decision, err := client.Resource(schema.GroupVersionResource{Group: "tenantplane.io", Version: "v1alpha1", Resource: "syncdecisions"}).
		Namespace(hostNamespace).Get(ctx, tenantName, metav1.GetOptions{})
	if err != nil {
		return err
	}
	return printTrail(d.out, decision)
}

func printTrail(out io.Writer, decision *unstructured.Unstructured) error {
	template := jsonpath.New("trail").AllowMissingKeys(true)
	if err := template.Parse(trailTemplate); err != nil {
		return err
	}
	columns := newColumns(out)
	if err := template.Execute(columns, decision.Object); err != nil {
		return err
	}
	return columns.Flush()
}

// showMirrors prints what a pass made on the host.
func (d *demo) showMirrors(ctx context.Context) error {
	const ours = "app.kubernetes.io/managed-by=tenantplane"
	d.prompt("host", "kubectl get configmaps,secrets,services,pods -n "+hostNamespace+" -l "+ours)
	return printObjects(ctx, d.out, d.host, hostNamespace, ours)
}

func (d *demo) showGreeting(ctx context.Context, c *cluster.Cluster, namespace, name string) error {
	d.prompt(c.Name, fmt.Sprintf("kubectl get configmap %s -n %s -o jsonpath='{.data.greeting}'", name, namespace))
	client, err := kubernetes.NewForConfig(c.Config)
	if err != nil {
		return err
	}
	configMap, err := client.CoreV1().ConfigMaps(namespace).Get(ctx, name, metav1.GetOptions{})
	if err != nil {
		return err
	}
	fmt.Fprintln(d.out, configMap.Data["greeting"])
	return nil
}

func (d *demo) patch(ctx context.Context, c *cluster.Cluster, namespace, name, patch string) error {
	d.prompt(c.Name, fmt.Sprintf("kubectl patch configmap %s -n %s --type merge -p '%s'", name, namespace, patch))
	client, err := kubernetes.NewForConfig(c.Config)
	if err != nil {
		return err
	}
	_, err = client.CoreV1().ConfigMaps(namespace).Patch(ctx, name, types.MergePatchType, []byte(patch), metav1.PatchOptions{})
	return err
}

// run shows and runs one command of the runner.
func (d *demo) run(ctx context.Context, verb string) error {
	d.prompt("", "runner "+verb)
	command := exec.CommandContext(ctx, d.runner, verb)
	command.Env = d.environment
	command.Stdout, command.Stderr = d.out, d.out
	if err := command.Run(); err != nil {
		return fmt.Errorf("runner %s: %w", verb, err)
	}
	return nil
}

func (d *demo) head(text string) {
	d.step++
	fmt.Fprintf(d.out, "\n=== %d. %s ===\n", d.step, text)
}

func (d *demo) prompt(where, command string) { fmt.Fprintf(d.out, "\n%s$ %s\n", where, command) }
