package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"golang.org/x/sync/errgroup"
	"k8s.io/apimachinery/pkg/types"

	"github.com/syncpass/syncpass/cmd/runner/report"
	"github.com/syncpass/syncpass/pass"
)

// reportFormat is the value of report's -o flag.
type reportFormat report.Format

// String implements pflag.Value.
func (f *reportFormat) String() string { return string(*f) }

// Type implements pflag.Value; it is shown in the help.
func (f *reportFormat) Type() string { return "format" }

// Set implements pflag.Value.
func (f *reportFormat) Set(value string) error {
	if !slices.Contains(report.Formats, report.Format(value)) {
		return fmt.Errorf("accepted are %s", reportFormatNames())
	}
	*f = reportFormat(value)
	return nil
}

func reportFormatNames() string { return strings.Join(stringsOf(report.Formats), ", ") }

func (a *app) reportCommand() *cobra.Command {
	format := reportFormat(report.Formats[0])
	cmd := &cobra.Command{
		Use:   "report",
		Short: "One page about the selected tenants: pairs, decisions over time, and what waits for a person",
		Long: "One page about the selected tenants: pairs by kind and state, decisions over time, open conflicts with the command that\n" +
			"settles each, what guards withhold and how to let it through, errors by object, and when passes ran and are due.\n\n" +
			"It reads what the host remembers and asks no tenant: TenantClusters, SyncPolicies, SyncDecisions and the Leases of the\n" +
			"passes. So it needs no access to tenants, writes nothing, and says nothing of what changed since a tenant's last pass.\n" +
			"The HTML is one file that loads nothing, and has no script. What could not be read is on the page and on stderr, and\n" +
			"shows in the exit code; the rest of the page is whole.",
		Example: "  runner report > report.html\n" +
			"  runner report --tenant dev -n team-dev -o md\n" +
			"  SYNCPASS_ALL_NAMESPACES=true runner report > report.html",
		Args: noArguments,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return a.report(cmd.Context(), report.Format(format))
		},
	}
	cmd.Flags().VarP(&format, "output", "o", "output format: "+reportFormatNames())
	mustComplete(cmd, "output", cobra.FixedCompletions(stringsOf(report.Formats), cobra.ShellCompDirectiveNoFileComp))
	return cmd
}

// report runs the verb report.
func (a *app) report(ctx context.Context, format report.Format) error {
	s, tenants, err := a.selectTenants(ctx, nobody)
	if err != nil {
		return err
	}
	defer s.host.cluster.Close()
	if err := s.checkTenants(tenants); err != nil {
		return err
	}
	in := report.Input{Now: time.Now(), Command: "runner", Tenants: make([]report.Tenant, len(tenants))}
	if a.plugin {
		in.Command = pluginShown
	}
	faults := make([][]error, len(tenants))
	var group errgroup.Group
	group.SetLimit(s.config.TenantConcurrency)
	for i, tenant := range tenants {
		group.Go(func() error {
			in.Tenants[i], faults[i] = s.recall(ctx, tenant)
			return nil
		})
	}
	_ = group.Wait() // what went wrong is in faults
	var failed []error
	code := exitOK
	for i, tenant := range tenants {
		for _, err := range faults[i] {
			failed = append(failed, fmt.Errorf("%s: %w", tenant, err))
			code = max(code, outcomeCode(pass.OutcomeOf(err), context.Cause(ctx)))
		}
	}
	if ctx.Err() == nil { // a page about what was not read by then would be wrong
		if err := report.Write(a.stdout, format, in); err != nil {
			failed, code = append(failed, err), max(code, exitUnexpected)
		}
	}
	if len(failed) > 0 {
		return &failure{code: code, err: errors.Join(failed...)}
	}
	return nil
}

// recall is what the page says about one tenant. The errors are what could not be read of it, and are on the page too.
func (s *session) recall(ctx context.Context, tenant types.NamespacedName) (report.Tenant, []error) {
	t := report.Tenant{Namespace: tenant.Namespace, Name: tenant.Name}
	options, err := s.options(tenant)
	if err != nil {
		t.Problems = append(t.Problems, err.Error())
		return t, []error{&pass.InvalidError{Err: err}}
	}
	memory, errs := pass.Recall(ctx, options)
	t.Policy, t.Status, t.History = memory.Policy, memory.Status, memory.History
	if memory.Lease != nil {
		t.Run = &report.Run{Began: memory.Lease.Began, Holder: memory.Lease.Holder}
	}
	for _, problem := range slices.Concat(errs, memory.Problems) {
		t.Problems = append(t.Problems, problem.Error())
	}
	return t, errs
}
