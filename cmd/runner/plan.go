package main

import (
	"context"
	"errors"
	"fmt"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/types"

	"github.com/syncpass/syncpass/pass"
)

const aboutPlan = `What the next pass would do, decision by decision; it writes nothing anywhere.

With --tenant-dir and --host-dir no cluster is asked: files are the two sides, such as a pull request would have them. They
are YAML or JSON as kubectl prints it, lists, many documents to a file and folders in folders included:

  kubectl get configmaps,secrets,services,namespaces -A -o yaml --show-managed-fields         in the tenant
  kubectl get configmaps,secrets,services,tenantclusters -n team-dev -o yaml --show-managed-fields    on the host
  kubectl get syncdecisions -n team-dev -o yaml                                               on the host, for --record

What is in no file is not there. The TenantCluster is found among the host's files, or named by SYNCPASS_NAMESPACE and
SYNCPASS_TENANT; so are the policy and the SyncDecision, unless flags name their files. The SyncDecision can be read in full
with the tenant's credential alone: from its Secret among the host's files, or the kubeconfig that --tenant-kubeconfig names.
Without it, two-way pairs that differ are held as NoHistory. An object without uid and resourceVersion, as people write them,
is taken for the one of its name in the cluster; defaults that its server would fill in are not. What only a dry run on the
host could tell is held as undecided, and that a tenant went back in time does not show in files. What else is assumed is said
on stderr.`

// planFlags are those of the verb plan that say what is planned.
type planFlags struct {
	files            pass.Files
	tenantKubeconfig string
}

func (a *app) planCommand() *cobra.Command {
	format, colour := outputFormats[0], colourMode(colourModes[0])
	var from planFlags
	diff := false
	cmd := &cobra.Command{
		Use:   "plan",
		Short: "What the next pass would do; writes nothing anywhere",
		Long:  aboutPlan,
		Example: "  runner plan --diff                       with what each decision changes\n" +
			"  runner plan --policy new-policy.yaml     under a policy that is not applied yet\n" +
			"  runner plan --tenant-dir tenant --host-dir host --policy policy.yaml --record syncdecision.yaml --exit-code",
		Args: noArguments,
		RunE: func(cmd *cobra.Command, _ []string) error {
			offline := from.files.Tenant != "" || from.files.Host != ""
			switch {
			case diff && format == "name":
				return usageError(cmd, errors.New("--diff goes with -o table, wide, json and yaml; name prints names alone"))
			case offline && (from.files.Tenant == "" || from.files.Host == ""):
				return usageError(cmd, errors.New("--tenant-dir and --host-dir go together: a plan looks at both sides"))
			case !offline && (from.files.Record != "" || from.tenantKubeconfig != ""):
				return usageError(cmd, errors.New("--record and --tenant-kubeconfig go with --tenant-dir and --host-dir; a plan against clusters finds both by itself"))
			}
			p := printing{format: format, dryRun: true, diff: diff, colour: colour.on(a.stdoutTTY, a.env)}
			if offline {
				return a.planFiles(cmd.Context(), p, from)
			}
			return a.pass(cmd.Context(), p)
		},
	}
	addOutputFlag(cmd, &format)
	flags := cmd.Flags()
	flags.BoolVar(&a.differences, "exit-code", false, fmt.Sprintf("exit with %d if there is something to create, update or delete, or something undecided", exitDifferences))
	flags.BoolVar(&diff, "diff", false, "show what each decision changes as a unified diff of YAML, under diff in json and yaml; values of Secrets as ***")
	flags.Var(&colour, "color", "colour tables and diffs: auto (on a terminal, unless NO_COLOR is set), always, never")
	flags.StringVar(&a.policy, "policy", "", "`file` with a SyncPolicy in place of SYNCPASS_POLICY")
	flags.StringVar(&from.files.Tenant, "tenant-dir", "", "`folder` with the tenant's objects, in place of its API server")
	flags.StringVar(&from.files.Host, "host-dir", "", "`folder` with the host's objects, in place of its API server")
	flags.StringVar(&from.files.Record, "record", "", "`file` with the SyncDecision and its pages, with --host-dir (default: among the host's objects)")
	flags.StringVar(&from.tenantKubeconfig, "tenant-kubeconfig", "", "`file` with the tenant's kubeconfig, to read the record with; nothing is sent to it (default: SYNCPASS_TENANT_KUBECONFIG, else its Secret among the host's objects)")
	mustComplete(cmd, "color", cobra.FixedCompletions(colourModes, cobra.ShellCompDirectiveNoFileComp))
	for _, flag := range []string{"policy", "tenant-dir", "host-dir", "record", "tenant-kubeconfig"} {
		mustComplete(cmd, flag, func(*cobra.Command, []string, string) ([]string, cobra.ShellCompDirective) {
			return nil, cobra.ShellCompDirectiveDefault // files
		})
	}
	return cmd
}

// planFiles plans one tenant from files.
func (a *app) planFiles(ctx context.Context, p printing, from planFlags) error {
	c, err := a.configure()
	if err != nil {
		return err
	}
	if from.tenantKubeconfig != "" {
		c.TenantKubeconfig = from.tenantKubeconfig
	}
	s := &session{config: c, log: a.log}
	options, err := s.options(types.NamespacedName{Namespace: c.Namespace, Name: c.Tenant})
	if err != nil {
		return invalid(err)
	}
	options.Changes, options.Log = p.diff, a.log
	result, err := pass.PlanFiles(ctx, options, from.files)
	if err != nil {
		return invalid(err)
	}
	a.results = []pass.Result{result}
	if err := p.print(a.stdout, a.results); err != nil {
		return fmt.Errorf("printing the results: %w", err)
	}
	return nil
}
