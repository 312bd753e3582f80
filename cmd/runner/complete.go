package main

import (
	"context"
	"errors"
	"log/slog"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/syncpass/syncpass/pass"
)

// completionTimeout is how long a shell waits for an API server before it completes nothing.
const completionTimeout = 2 * time.Second

// completedVerbs take KIND NAMESPACE/NAME.
var completedVerbs = []string{"explain", "resolve"}

// addCompletions has the verbs about one object complete it.
func (a *app) addCompletions(root *cobra.Command) {
	// Nothing that is not completed here is a file.
	root.CompletionOptions.SetDefaultShellCompDirective(cobra.ShellCompDirectiveNoFileComp)
	for _, cmd := range root.Commands() {
		if slices.Contains(completedVerbs, cmd.Name()) {
			cmd.ValidArgsFunction = a.completeObject
		}
	}
}

func (a *app) completeNamespaces(cmd *cobra.Command, _ []string, start string) ([]string, cobra.ShellCompDirective) {
	return a.completed(cmd, start, func(ctx context.Context, s *session) ([]string, error) {
		tenants, err := s.host.list(ctx, "")
		var names []string
		for _, t := range tenants {
			names = append(names, t.Namespace)
		}
		return slices.Compact(names), err
	})
}

func (a *app) completeTenants(cmd *cobra.Command, _ []string, start string) ([]string, cobra.ShellCompDirective) {
	return a.completed(cmd, start, func(ctx context.Context, s *session) ([]string, error) {
		tenants, err := s.host.tenants(ctx, config{Namespace: s.config.Namespace, AllNamespaces: s.config.AllNamespaces, Shards: 1})
		var names []string
		for _, t := range tenants {
			names = append(names, t.Name)
		}
		return names, err
	})
}

// completeObject completes a kind of the policy, and then an object of that kind in the tenant.
func (a *app) completeObject(cmd *cobra.Command, args []string, start string) ([]string, cobra.ShellCompDirective) {
	return a.completed(cmd, start, func(ctx context.Context, s *session) ([]string, error) {
		tenants, err := s.host.tenants(ctx, s.config)
		if err != nil || len(tenants) != 1 {
			return nil, err
		}
		options, err := s.options(tenants[0])
		if err != nil {
			return nil, err
		}
		options.Log = s.log
		switch len(args) {
		case 0:
			p, err := pass.LoadPolicy(ctx, options)
			if err != nil {
				return nil, err
			}
			var kinds []string
			for _, r := range p.Spec.Resources {
				kind := schema.FromAPIVersionAndKind(r.APIVersion, r.Kind)
				kinds = append(kinds, cobra.CompletionWithDesc(strings.ToLower(kind.Kind), string(r.Direction)))
			}
			slices.Sort(kinds)
			return kinds, nil
		case 1:
			return pass.ObjectNames(ctx, options, args[0])
		}
		return nil, nil
	})
}

// completed asks the host for what can stand next. Whatever goes wrong, the shell just has nothing to offer: an error
// message would stand in the middle of the line that somebody types.
func (a *app) completed(cmd *cobra.Command, start string, find func(context.Context, *session) ([]string, error)) ([]string, cobra.ShellCompDirective) {
	ctx, cancel := context.WithTimeoutCause(cmd.Context(), completionTimeout, errors.New("a shell waits no longer"))
	defer cancel()
	found, err := a.look(ctx, find)
	if err != nil {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	return slices.DeleteFunc(found, func(name string) bool { return !strings.HasPrefix(name, start) }), cobra.ShellCompDirectiveNoFileComp
}

// look is a session without a log.
func (a *app) look(ctx context.Context, find func(context.Context, *session) ([]string, error)) ([]string, error) {
	c, err := loadConfig(a.env)
	if err != nil {
		return nil, err
	}
	c.RequestTimeout = min(c.RequestTimeout, completionTimeout)
	h, err := connectHost(c, thisBuild().userAgent(), nil)
	if err != nil {
		return nil, err
	}
	defer h.cluster.Close()
	s := &session{config: c, log: slog.New(slog.DiscardHandler), host: h, userAgent: thisBuild().userAgent()}
	return find(ctx, s)
}
