package main

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/types"

	"github.com/syncpass/syncpass/pass"
)

func (a *app) explainCommand() *cobra.Command {
	format, dns, hostName := outputFormats[0], false, ""
	cmd := &cobra.Command{
		Use:   "explain KIND NAMESPACE/NAME",
		Short: "Where a tenant object lands, how it stands, and what the next pass does about it",
		Long: "Where a tenant object lands and why there, what in the policy carries it, how both sides stand since they last agreed,\n" +
			"where they differ, what it refers to, the last decisions about it, what the next pass does, and how to settle a\n" +
			"conflict. It writes nothing. Values of Secrets are not shown.",
		Example: "  runner explain configmap default/app\n" +
			"  runner explain pod default/web -o yaml                      with the mirror as it should be, under projected\n" +
			"  runner explain configmap --host app-x-default-x-dev         the way back: whose mirror is this?\n" +
			"  runner explain node n1\n" +
			"  runner explain --dns                                        the Services whose names the tenant's DNS cannot serve",
		Args: func(cmd *cobra.Command, args []string) error {
			args = objectWords(args)
			switch {
			case dns && hostName != "":
				return usageError(cmd, errors.New("--dns and --host exclude each other"))
			case dns && len(args) > 0:
				return usageError(cmd, fmt.Errorf("explain takes --dns alone, and got %q beside it", args))
			case hostName != "" && len(args) > 1:
				return usageError(cmd, fmt.Errorf("explain takes at most a kind beside --host, and got %q", args))
			case !dns && hostName == "" && len(args) != 2:
				return usageError(cmd, fmt.Errorf("explain takes a kind and namespace/name, a kind and --host, or --dns alone, and got %q", args))
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			if dns {
				return a.explainDNS(cmd.Context(), format)
			}
			if hostName != "" {
				return a.explainHost(cmd.Context(), format, strings.Join(args, ""), hostName)
			}
			args = objectWords(args)
			object, err := objectArgument(cmd, args[0], args[1])
			if err != nil {
				return err
			}
			return a.explain(cmd.Context(), format, func(ctx context.Context, o pass.Options) (*pass.Explanation, error) {
				return pass.Explain(ctx, o, args[0], object)
			})
		},
	}
	addOutputFlag(cmd, &format)
	cmd.Flags().BoolVar(&dns, "dns", false, "list the Services whose names the tenant's DNS, manifests/tenant-dns, cannot serve")
	cmd.Flags().StringVar(&hostName, "host", "", "explain the tenant object whose mirror has this name on the host (NAME or NAMESPACE/NAME)")
	return cmd
}

// objectWords lets kind/namespace/name, as -o name prints it, stand for the two words.
func objectWords(args []string) []string {
	if len(args) == 1 {
		if kind, object, found := strings.Cut(args[0], "/"); found {
			return []string{kind, object}
		}
	}
	return args
}

// objectArgument takes namespace/name, or the name alone of what has no namespace: a Node.
func objectArgument(cmd *cobra.Command, kind, argument string) (types.NamespacedName, error) {
	if lower := strings.ToLower(kind); (lower == "node" || lower == "nodes") && argument != "" && !strings.Contains(argument, "/") {
		return types.NamespacedName{Name: argument}, nil
	}
	namespace, name, found := strings.Cut(argument, "/")
	if !found || namespace == "" || name == "" {
		return types.NamespacedName{}, usageError(cmd, fmt.Errorf("%q is not of the form namespace/name, such as default/%s", argument, strings.Trim(argument, "/")))
	}
	return types.NamespacedName{Namespace: namespace, Name: name}, nil
}

// explainHost explains the tenant object behind a name on the host, of whatever kind where none is named.
func (a *app) explainHost(ctx context.Context, format outputFormat, kind, hostName string) error {
	namespace, name, found := strings.Cut(hostName, "/")
	if !found {
		namespace, name = "", hostName
	}
	return a.explain(ctx, format, func(ctx context.Context, o pass.Options) (*pass.Explanation, error) {
		if namespace != "" && namespace != o.Namespace {
			return nil, &pass.InvalidError{Err: fmt.Errorf("%s is in namespace %s, and all mirrors of tenant %s are in %s", name, namespace, o.Tenant, o.Namespace)}
		}
		return pass.ExplainHost(ctx, o, kind, name)
	})
}

// explain explains one object of one tenant.
func (a *app) explain(ctx context.Context, format outputFormat, look func(context.Context, pass.Options) (*pass.Explanation, error)) error {
	options, done, err := a.oneTenant(ctx, "explain")
	if err != nil {
		return err
	}
	defer done()
	explained, err := look(ctx, options)
	if err != nil {
		return &failure{code: outcomeCode(pass.OutcomeOf(err), context.Cause(ctx)), err: err}
	}
	if explained.Conflict != nil {
		for i, command := range explained.Conflict.Settle {
			explained.Conflict.Settle[i] = a.typed(command)
		}
	}
	switch format {
	case "json", "yaml":
		return printStructured(a.stdout, format, explained)
	case "name":
		name := objectName(explained.HostNamespace, explained.HostName)
		_, err := fmt.Fprintln(a.stdout, printable(strings.ToLower(explained.Kind)+"/"+name))
		return err
	default:
		return printExplanation(a.stdout, explained)
	}
}

// oneTenant is for verbs that look at one tenant: how to make its pass, and what to call when that is over.
func (a *app) oneTenant(ctx context.Context, verb string) (options pass.Options, done func(), err error) {
	s, tenants, err := a.selectTenants(ctx, nobody)
	if err != nil {
		return pass.Options{}, nil, err
	}
	if len(tenants) != 1 {
		err = fmt.Errorf("%s looks at one tenant, and %d are selected: name one with --tenant (SYNCPASS_TENANT)", verb, len(tenants))
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
