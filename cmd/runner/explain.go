package main

import (
	"context"
	"fmt"
	"io"
	"strings"
	"text/tabwriter"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/types"

	"github.com/syncpass/syncpass/pass"
	"github.com/syncpass/syncpass/record"
)

func (a *app) explainCommand() *cobra.Command {
	format, dns := outputFormats[0], false
	cmd := &cobra.Command{
		Use:   "explain KIND NAMESPACE/NAME",
		Short: "Where a tenant object lands, how it stands, and what the next pass does about it",
		Example: "  runner explain configmap default/app\n" +
			"  runner explain pod default/web -o yaml     with the mirror as it should be, under projected\n" +
			"  runner explain --dns                       the Services whose names the tenant's DNS cannot serve",
		Args: func(cmd *cobra.Command, args []string) error {
			if dns && len(args) == 0 {
				return nil
			}
			if dns || len(args) != 2 {
				return usageError(cmd, fmt.Errorf("explain takes a kind and namespace/name, or --dns alone, and got %q", args))
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			if dns {
				return a.explainDNS(cmd.Context(), format)
			}
			namespace, name, found := strings.Cut(args[1], "/")
			if !found || namespace == "" || name == "" {
				return usageError(cmd, fmt.Errorf("%q is not of the form namespace/name", args[1]))
			}
			return a.explain(cmd.Context(), format, args[0], types.NamespacedName{Namespace: namespace, Name: name})
		},
	}
	addOutputFlag(cmd, &format)
	cmd.Flags().BoolVar(&dns, "dns", false, "list the Services whose names the tenant's DNS, manifests/tenant-dns, cannot serve")
	return cmd
}

// explain explains one object of one tenant.
func (a *app) explain(ctx context.Context, format outputFormat, kind string, object types.NamespacedName) error {
	options, done, err := a.oneTenant(ctx)
	if err != nil {
		return err
	}
	defer done()
	explained, err := pass.Explain(ctx, options, kind, object)
	if err != nil {
		return &failure{code: outcomeCode(pass.OutcomeOf(err), context.Cause(ctx)), err: err}
	}
	if format == "json" || format == "yaml" {
		return printStructured(a.stdout, format, explained)
	}
	if format == "name" {
		_, err := fmt.Fprintf(a.stdout, "%s/%s/%s\n", strings.ToLower(explained.Kind), explained.HostNamespace, explained.HostName)
		return err
	}
	return printExplanation(a.stdout, explained)
}

// oneTenant is for verbs that look at one tenant: how to make its pass, and what to call when that is over.
func (a *app) oneTenant(ctx context.Context) (options pass.Options, done func(), err error) {
	s, tenants, err := a.selectTenants(ctx)
	if err != nil {
		return pass.Options{}, nil, err
	}
	if len(tenants) != 1 {
		err = fmt.Errorf("explain looks at one tenant, and %d are selected: set SYNCPASS_TENANT", len(tenants))
	} else {
		options, err = s.options(tenants[0])
	}
	if err != nil {
		s.host.cluster.Close()
		return pass.Options{}, nil, invalid(err)
	}
	options.Log = s.log.With("namespace", tenants[0].Namespace, "tenant", tenants[0].Name)
	return options, s.host.cluster.Close, nil
}

// printExplanation writes what a person asks first: where, how, and what next.
func printExplanation(w io.Writer, e *pass.Explanation) error {
	table := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	row := func(name, format string, args ...any) {
		fmt.Fprintf(table, "%s:\t%s\n", name, record.Plain(fmt.Sprintf(format, args...), record.MaxMessage))
	}
	row("Object", "%s %s/%s of tenant %s%s", e.Kind, e.TenantNamespace, e.TenantName, e.Tenant, existence(e.TenantUID))
	row("Mirror", "%s %s/%s on the host%s", e.Kind, e.HostNamespace, e.HostName, existence(e.HostUID))
	row("Direction", "%s", e.Direction)
	if e.DNS != nil && e.DNS.Resolves {
		row("DNS", "%s, served by manifests/tenant-dns", e.DNS.Name)
	} else if e.DNS != nil {
		row("DNS", "%s does not resolve: %s", e.DNS.Name, e.DNS.Message)
	}
	if e.Agreed {
		row("History", "both sides have agreed before")
	} else {
		row("History", "no agreement of both sides is recorded")
	}
	if e.Next == nil {
		row("Next pass", "leaves it as it is")
	} else {
		row("Next pass", "%s on the %s, %s: %s", strings.ToLower(string(e.Next.Action)), e.Next.Side, e.Next.Reason, strings.Join([]string{e.Next.Message, e.Next.Error}, " "))
		if len(e.Next.Fields) > 0 {
			row("Differs in", "%s", strings.Join(e.Next.Fields, ", "))
		}
	}
	for _, entry := range e.Decisions {
		row(entry.Time.UTC().Format("2006-01-02 15:04:05"), "%s on the %s, %s: %s", strings.ToLower(string(entry.Action)), entry.Side, entry.Reason, strings.Join([]string{entry.Message, entry.Error}, " "))
	}
	return table.Flush()
}

func existence(uid string) string {
	if uid == "" {
		return " (there is none)"
	}
	return ""
}
