package main

import (
	"context"
	"fmt"
	"io"
	"text/tabwriter"

	"github.com/syncpass/syncpass/pass"
)

// explainDNS lists the Services of one tenant that its DNS cannot serve.
func (a *app) explainDNS(ctx context.Context, format outputFormat) error {
	options, done, err := a.oneTenant(ctx, "explain")
	if err != nil {
		return err
	}
	defer done()
	explained, err := pass.ExplainDNS(ctx, options)
	if err != nil {
		return &failure{code: outcomeCode(pass.OutcomeOf(err), context.Cause(ctx)), err: err}
	}
	switch format {
	case "json", "yaml":
		return printStructured(a.stdout, format, explained)
	case "name":
		for _, service := range explained.Unresolved {
			if _, err := fmt.Fprintf(a.stdout, "service/%s/%s\n", explained.Namespace, service.HostName); err != nil {
				return err
			}
		}
		return nil
	default:
		return printDNS(a.stdout, explained)
	}
}

func printDNS(w io.Writer, e *pass.DNSExplanation) error {
	if len(e.Unresolved) > 0 {
		table := tabwriter.NewWriter(w, 6, 4, 3, ' ', 0)
		fmt.Fprintln(table, "SERVICE\tHOST NAME\tMESSAGE")
		for _, service := range e.Unresolved {
			fmt.Fprintf(table, "%s\t%s\t%s\n", printable(objectName(service.TenantNamespace, service.TenantName)), printable(service.HostName), printable(service.Message))
		}
		if err := table.Flush(); err != nil {
			return err
		}
	}
	_, err := fmt.Fprintf(w, "%s: the names of %d of %d Services do not resolve\n", printable(e.Tenant), len(e.Unresolved), e.Services)
	return err
}
