package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/restmapper"

	"github.com/syncpass/syncpass/cmd/runner/render"
	"github.com/syncpass/syncpass/pass"
	"github.com/syncpass/syncpass/pass/access"
	"github.com/syncpass/syncpass/policy"
	"github.com/syncpass/syncpass/record"
)

// renderFlags are what the command line says of the manifests.
type renderFlags struct {
	form             renderForm
	image            string
	allowTag         bool
	policies         []string
	tenantNamespaces []string
	side             renderSide
	// changed says whether a flag was given.
	changed func(name string) bool
}

// renderSide is the value of the --side flag.
type renderSide record.Side

// String implements pflag.Value.
func (s *renderSide) String() string { return string(*s) }

// Type implements pflag.Value; it is shown in the help.
func (s *renderSide) Type() string { return "side" }

// Set implements pflag.Value.
func (s *renderSide) Set(value string) error {
	if side := record.Side(value); side != record.Host && side != record.Tenant {
		return fmt.Errorf("accepted are %s, %s", record.Host, record.Tenant)
	}
	*s = renderSide(value)
	return nil
}

// renderForm is the value of the --form flag.
type renderForm render.Form

// String implements pflag.Value.
func (f *renderForm) String() string { return string(*f) }

// Type implements pflag.Value; it is shown in the help.
func (f *renderForm) Type() string { return "form" }

// Set implements pflag.Value.
func (f *renderForm) Set(value string) error {
	if !slices.Contains(render.Forms, render.Form(value)) {
		return fmt.Errorf("accepted are %s", formList())
	}
	*f = renderForm(value)
	return nil
}

func formList() string { return strings.Join(stringsOf(render.Forms), ", ") }

// defaultShards is into how many parts the sharded form splits the tenants where SYNCPASS_SHARDS says nothing.
const defaultShards = 4

func (a *app) renderCommand() *cobra.Command {
	f := renderFlags{form: renderForm(render.CronJob), side: renderSide(record.Host)}
	cmd := &cobra.Command{
		Use:   "render",
		Short: "The manifests that carry out passes over a tenant, with the least rights that its policy asks for",
		Long: "The manifests that carry out passes over a tenant, to pipe into kubectl or to keep in git: a ServiceAccount, the least\n" +
			"rights for the policy's kinds, and a CronJob, Job or Deployment whose schedule and deadlines follow from the policy's\n" +
			"interval and the settings. The same input gives the same text.\n\n" +
			"The tenant's policy comes from the host, or from --policy; then nothing is asked of any API server, and SYNCPASS_TENANT\n" +
			"and SYNCPASS_NAMESPACE are needed. The policy itself, the TenantCluster and the tenant's kubeconfig are not part of the\n" +
			"output, nor is the namespace: deleting that would delete every mirror.\n\n" +
			"A setting of a pass that is in the environment (such as SYNCPASS_POD_SECURITY) is part of the output too. What is about this\n" +
			"machine is not: SYNCPASS_HOST_KUBECONFIG, SYNCPASS_TENANT_KUBECONFIG, SYNCPASS_POLICY and those of the log.\n\n" +
			"Forms:\n" +
			"  cronjob   a Job whenever the interval is over, as far as cron can say it; every minute below that, with a process that\n" +
			"            makes the passes within the minute\n" +
			"  job       one pass, once\n" +
			"  schedule  a Deployment that stays and makes a pass at every interval\n" +
			"  sharded   one CronJob for all TenantClusters of the host, whose Pods split them: SYNCPASS_SHARDS of them, or 4\n\n" +
			"A policy that is paused (driftDetection.enabled: false) gives a suspended CronJob.",
		Example: "  runner render --tenant dev -n team-dev --image registry.example.com/syncpass@sha256:… | kubectl apply -f -\n" +
			"  runner render --form job --policy policy.yaml --tenant dev -n team-dev --allow-tag --image syncpass:v1\n" +
			"  SYNCPASS_SHARDS=8 runner render --form sharded\n" +
			"  runner render --side tenant --tenant dev -n team-dev | kubectl --kubeconfig tenant.kubeconfig apply -f -",
		Args: noArguments,
		RunE: func(cmd *cobra.Command, _ []string) error {
			f.changed = cmd.Flags().Changed
			return a.render(cmd.Context(), f)
		},
	}
	flags := cmd.Flags()
	flags.Var(&f.side, "side", "host; or tenant: the ServiceAccount and rights that the tenant's kubeconfig needs there")
	flags.Var(&f.form, "form", "what carries out the passes: "+formList())
	flags.StringVar(&f.image, "image", "", "image of the runner, by its digest (default "+defaultImage()+")")
	flags.BoolVar(&f.allowTag, "allow-tag", false, "take an image that is named by its tag alone")
	flags.StringArrayVar(&f.policies, "policy", nil, "file with the SyncPolicy, instead of the host's (SYNCPASS_POLICY); with --form sharded, any number of times")
	flags.StringSliceVar(&f.tenantNamespaces, "tenant-namespaces", nil, "with --form sharded and --policy: the namespaces that tenants are in")
	mustComplete(cmd, "form", cobra.FixedCompletions(stringsOf(render.Forms), cobra.ShellCompDirectiveNoFileComp))
	mustComplete(cmd, "side", cobra.FixedCompletions(stringsOf([]record.Side{record.Host, record.Tenant}), cobra.ShellCompDirectiveNoFileComp))
	mustComplete(cmd, "policy", func(*cobra.Command, []string, string) ([]string, cobra.ShellCompDirective) {
		return []string{"yaml", "yml"}, cobra.ShellCompDirectiveFilterFileExt
	})
	return cmd
}

func stringsOf[T ~string](values []T) []string {
	texts := make([]string, len(values))
	for i, value := range values {
		texts[i] = string(value)
	}
	return texts
}

// image is what a released binary renders: -ldflags "-X main.image=registry/name@sha256:…", once the image is published.
var image string

// defaultImage is what is rendered where --image names none: what the binary was released with, else what `make image` makes.
func defaultImage() string { return cmp.Or(image, "syncpass:latest") }

// render runs the verb render.
func (a *app) render(ctx context.Context, f renderFlags) error {
	c, err := loadConfig(a.env)
	a.log, a.text = newLog(a.stderr, c.LogLevel, c.LogFormat, a.tty), textLog(c.LogFormat, a.tty)
	if len(f.policies) == 0 && c.Policy != "" {
		f.policies = []string{c.Policy}
	}
	policies, policyErr := policyFiles(f.policies)
	if err := errors.Join(err, policyErr, f.check(c)); err != nil {
		return invalid(err)
	}
	o := a.renderOptions(c, f)
	if o.Policies = policies; len(policies) == 0 {
		if err := a.fromHost(ctx, c, &o); err != nil {
			return err
		}
	}
	write := render.Manifests
	if record.Side(f.side) == record.Tenant {
		write = render.TenantRights
	}
	text, err := write(o)
	if err != nil {
		return invalid(err)
	}
	if record.Side(f.side) == record.Host && f.image == "" && render.CheckImage(o.Image, false) != nil {
		a.log.Warn("The image has no digest; name one by --image", "image", o.Image)
	}
	_, err = a.stdout.Write(text)
	return err
}

// policyFiles reads SyncPolicies from files.
func policyFiles(paths []string) (policies []*policy.SyncPolicy, err error) {
	for _, path := range paths {
		p, fileErr := policyFile(path)
		err = errors.Join(err, fileErr)
		if fileErr == nil && p != nil {
			policies = append(policies, p)
		}
	}
	return policies, err
}

// check says what is wrong with the flags, and with the variables that go with them.
func (f renderFlags) check(c config) error {
	var faults []error
	check := func(ok bool, format string, args ...any) {
		if !ok {
			faults = append(faults, fmt.Errorf(format, args...))
		}
	}
	sharded, offline := render.Form(f.form) == render.Sharded, len(f.policies) > 0
	if f.image != "" {
		faults = append(faults, render.CheckImage(f.image, f.allowTag))
	}
	check(sharded || len(f.policies) < 2, "--policy is given %d times, and --form %s is for one tenant: give it once", len(f.policies), f.form)
	check(sharded || !offline || c.Tenant != "", "with a policy from a file the host is not asked which tenant there is: set --tenant or SYNCPASS_TENANT")
	check(sharded || !offline || c.Namespace != "", "with a policy from a file the host is not asked for a namespace: set --namespace or SYNCPASS_NAMESPACE")
	check(sharded || !c.AllNamespaces, "--form %s is for one tenant: unset SYNCPASS_ALL_NAMESPACES, or give --form sharded", f.form)
	check(!sharded || c.Tenant == "", "--form sharded is for all TenantClusters: leave out --tenant, and unset SYNCPASS_TENANT")
	check(!sharded || !offline || len(f.tenantNamespaces) > 0, "with policies from files the host is not asked where tenants are: give --tenant-namespaces")
	check(len(f.tenantNamespaces) == 0 || sharded && offline, "--tenant-namespaces goes with --form sharded and --policy; otherwise the host knows")
	for _, flag := range []string{"form", "image", "allow-tag"} {
		check(record.Side(f.side) == record.Host || !f.changed(flag), "--%s is about the host's side: it does not go with --side tenant", flag)
	}
	for _, namespace := range f.tenantNamespaces {
		check(len(validation.IsDNS1123Label(namespace)) == 0, "--tenant-namespaces: %q is no name of a namespace", namespace)
	}
	return errors.Join(faults...)
}

// ofThisMachine are variables that say nothing about the passes to come: what is about this machine, this call, or set
// otherwise in the manifests.
var ofThisMachine = []string{
	"SYNCPASS_NAMESPACE", "SYNCPASS_TENANT", "SYNCPASS_ALL_NAMESPACES", "SYNCPASS_HOST_KUBECONFIG", "SYNCPASS_TENANT_KUBECONFIG",
	"SYNCPASS_POLICY", "SYNCPASS_WINDOW", "SYNCPASS_RENDERED_INTERVAL", "SYNCPASS_SHARDS", "JOB_COMPLETION_INDEX",
	"SYNCPASS_LOG_LEVEL", "SYNCPASS_LOG_FORMAT", "SYNCPASS_METRICS_ADDR",
}

// renderOptions is what the command line and the environment say.
func (a *app) renderOptions(c config, f renderFlags) render.Options {
	o := render.Options{
		Form: render.Form(f.form), Namespace: c.Namespace, Tenant: c.Tenant, TenantNamespaces: f.tenantNamespaces,
		Shards: c.Shards, Image: cmp.Or(f.image, defaultImage()),
		RequestTimeout: c.RequestTimeout, LeaseDuration: c.LeaseDuration, PassTimeout: c.PassTimeout,
	}
	if o.Form == render.Sharded {
		o.Namespace = cmp.Or(o.Namespace, render.SystemNamespace)
		if _, set := a.env.Lookup("SYNCPASS_SHARDS"); !set {
			o.Shards = defaultShards
		}
	}
	if o.KubeconfigSecrets = access.KubeconfigSecrets(c.Tenant); c.TenantKubeconfigSecret != "" {
		o.KubeconfigSecrets = []string{c.TenantKubeconfigSecret}
	}
	for _, v := range variables() {
		if value, set := a.env.Lookup(v.name); set && !slices.Contains(ofThisMachine, v.name) {
			o.Settings = append(o.Settings, render.Setting{Name: v.name, Value: value})
		}
	}
	return o
}

// fromHost asks the host for the tenants, their policies, and what it calls their kinds.
func (a *app) fromHost(ctx context.Context, c config, o *render.Options) error {
	h, err := connectHost(c, thisBuild().userAgent(), nil)
	if err != nil {
		return err
	}
	defer h.cluster.Close()
	// All of them, whichever part this process would take, and wherever their kubeconfigs are.
	c.Shards, c.ShardIndex, c.TenantKubeconfig = 1, 0, ""
	c.AllNamespaces = o.Form == render.Sharded
	tenants, err := h.tenants(ctx, c)
	if err != nil {
		return err
	}
	switch {
	case o.Form == render.Sharded && len(tenants) == 0:
		return invalid(fmt.Errorf("the host %s has no TenantCluster yet, and the rights hang on their policies: create one, or give --policy and --tenant-namespaces", h.cluster.Server()))
	case o.Form != render.Sharded && len(tenants) != 1:
		return invalid(fmt.Errorf("render is about one tenant, and %d are selected: set --tenant or SYNCPASS_TENANT, or give --form sharded", len(tenants)))
	case o.Form != render.Sharded:
		o.Namespace, o.Tenant = tenants[0].Namespace, tenants[0].Name
		if c.TenantKubeconfigSecret == "" {
			o.KubeconfigSecrets = access.KubeconfigSecrets(o.Tenant)
		}
	}
	if err := a.policiesOf(ctx, h, tenants, o); err != nil {
		return err
	}
	o.Resource, err = resourcesOf(ctx, h)
	return err
}

// policiesOf reads the policies that the tenants name, each once.
func (a *app) policiesOf(ctx context.Context, h host, tenants []types.NamespacedName, o *render.Options) error {
	known := map[string]bool{}
	for _, t := range tenants {
		p, err := pass.LoadPolicy(ctx, pass.Options{Host: h.cluster, Namespace: t.Namespace, Tenant: t.Name, Log: a.log})
		if err != nil {
			return &failure{code: outcomeCode(pass.OutcomeOf(err), context.Cause(ctx)), err: err}
		}
		if !known[p.Name] {
			known[p.Name] = true
			o.Policies = append(o.Policies, p)
		}
		if o.Form == render.Sharded {
			o.TenantNamespaces = append(o.TenantNamespaces, t.Namespace)
		}
	}
	return nil
}

// resourcesOf asks the host what it calls kinds.
func resourcesOf(ctx context.Context, h host) (func(schema.GroupVersionKind) (string, bool), error) {
	groups, err := restmapper.GetAPIGroupResourcesWithContext(ctx, discovery.ToDiscoveryInterfaceWithContext(h.cluster.Discovery()))
	if err != nil && !discovery.IsGroupDiscoveryFailedError(err) {
		return nil, hostFailure(ctx, fmt.Errorf("asking the host %s which kinds it serves: %w", h.cluster.Server(), err))
	}
	mapper := restmapper.NewDiscoveryRESTMapper(groups)
	return func(kind schema.GroupVersionKind) (string, bool) {
		mapping, err := mapper.RESTMapping(kind.GroupKind(), kind.Version)
		switch {
		case err != nil:
			return "", false
		case mapping.Scope.Name() == meta.RESTScopeNameRoot:
			return "", true // it does not cross
		}
		return mapping.Resource.Resource, true
	}, nil
}
