package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/user"
	"strings"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/types"

	"github.com/syncpass/syncpass/pass"
	"github.com/syncpass/syncpass/record"
)

const resolveLong = `Settles a conflict: keeps one side's content and writes it over the other's. What differs is shown first, without the
values of Secrets, and then asked about; where nobody is at a terminal, --yes answers.

  the sides differ (Conflict, NoHistory, HistoryOff)   --keep tenant   the mirror becomes what the tenant object asks for
                                                       --keep host     the tenant object becomes what the mirror says
  the tenant object was deleted, the mirror changed    --keep tenant   the mirror is deleted too
                                                       --keep host     the tenant object is made again

The word holds for the two contents that were shown. If either is another one by the time of the write, nothing is
written: look again. --seen, which explain prints, binds it to what explain showed. All other pairs are left to the next
pass; the guards, the Lease and everything else are those of a pass, and so are the rights that it needs.

Who settled it and why stands in the SyncDecision and its Event: the user and machine, the user that the host knows, and
--message. With spec.explain.recordDecisions off it is done once, and only the log tells.

With kubectl alone, on the host: kubectl annotate -n NAMESPACE KIND MIRROR tenantplane.io/resolve=tenant (or =host). The
next pass does it and takes the annotation off, also where there is no conflict any more.

Exit codes: 0 all of it is settled, or --all found no conflict; 3 something changed meanwhile, or an API server refused
it; 4 a guard withheld it; 5 there is no such conflict, or nobody said yes; 6 and 7 as for a pass.`

// resolution is what the verb is asked for.
type resolution struct {
	kind   string
	object types.NamespacedName
	keep   string
	all    bool
	yes    bool
	seen   string
	why    string
}

func (a *app) resolveCommand() *cobra.Command {
	var r resolution
	cmd := &cobra.Command{
		Use:   "resolve KIND NAMESPACE/NAME --keep tenant|host",
		Short: "Settles a conflict by keeping one side's content",
		Long:  resolveLong,
		Example: "  runner resolve configmap default/app --keep tenant\n" +
			"  runner resolve secret default/db --keep host --message 'rotated on the host, see OPS-12' --yes\n" +
			"  runner resolve --all --keep host",
		Args: func(cmd *cobra.Command, args []string) error {
			args = objectWords(args)
			switch {
			case r.all && len(args) > 0:
				return usageError(cmd, fmt.Errorf("resolve takes --all or one object, and got both: %q", args))
			case r.all && r.seen != "":
				return usageError(cmd, errors.New("--seen is about one conflict, and --all about all of them"))
			case !r.all && len(args) != 2:
				return usageError(cmd, fmt.Errorf("resolve takes a kind and namespace/name, or --all, and got %q", args))
			case r.keep != string(record.Tenant) && r.keep != string(record.Host):
				return usageError(cmd, fmt.Errorf("say which side's content to keep, by --keep tenant or --keep host, not %q", r.keep))
			case len(r.why) > longestWhy:
				return usageError(cmd, fmt.Errorf("--message is %d bytes long, and the record keeps %d of it", len(r.why), longestWhy))
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			if !r.all {
				var err error
				args = objectWords(args)
				r.kind = args[0]
				if r.object, err = objectArgument(cmd, args[0], args[1]); err != nil {
					return err
				}
			}
			return a.settle(cmd.Context(), r)
		},
	}
	cmd.Flags().StringVar(&r.keep, "keep", "", "the side whose content stays: tenant or host")
	cmd.Flags().BoolVar(&r.all, "all", false, "settle all open conflicts of the tenant in the same way")
	cmd.Flags().BoolVar(&r.yes, "yes", false, "do not ask")
	cmd.Flags().StringVar(&r.seen, "seen", "", "settle it only if the two contents are those that explain showed beside this")
	cmd.Flags().StringVar(&r.why, "message", "", "why, for the record")
	return cmd
}

// longestWhy leaves room in a recorded message for who, what and the rest.
const longestWhy = 512

// settle shows conflicts, asks about them, and settles them.
func (a *app) settle(ctx context.Context, r resolution) error {
	options, done, err := a.oneTenant(ctx, "resolve")
	if err != nil {
		return err
	}
	defer done()
	conflicts, err := a.findConflicts(ctx, options, r.kind, r.object)
	if err != nil {
		return &failure{code: outcomeCode(pass.OutcomeOf(err), context.Cause(ctx)), err: err}
	}
	if len(conflicts) == 0 {
		_, err := fmt.Fprintf(a.stdout, "%s: no conflict is open, so there is nothing to resolve\n", printable(options.Tenant))
		return err
	}
	if err := printConflicts(a.stdout, options.Namespace, conflicts); err != nil {
		return fmt.Errorf("printing the conflicts: %w", err)
	}
	if seen := conflicts[0].Seen; r.seen != "" && r.seen != seen {
		return &failure{code: exitErrors, err: fmt.Errorf("it was changed since explain showed it (--seen %s, now %s), so nothing was written: look at the above, and say so again", r.seen, seen)}
	}
	if err := a.agreed(ctx, r, conflicts); err != nil {
		return err
	}
	by, err := operator()
	if err != nil {
		return err
	}
	result := a.resolve(ctx, options, pass.Verdict{Keep: record.Side(r.keep), Conflicts: conflicts, By: by, Why: r.why})
	a.results = []pass.Result{result}
	if err := printResults(a.stdout, "table", false, a.results); err != nil {
		return fmt.Errorf("printing the results: %w", err)
	}
	if result.Err != nil {
		return &failure{code: outcomeCode(result.Outcome, context.Cause(ctx)), err: result.Err}
	}
	return unsettled(result, len(conflicts))
}

// unsettled says how many of the conflicts were not settled; nil where all were.
func unsettled(result pass.Result, asked int) error {
	settled := 0
	for _, d := range result.Decisions {
		if d.Reason == record.Resolved {
			settled++
		}
	}
	if settled == asked {
		return nil
	}
	return &failure{code: exitErrors, err: fmt.Errorf("%d of %d conflicts were not settled, for the reasons above; what is not listed is in agreement by now", asked-settled, asked)}
}

// agreed asks the person, unless --yes has answered.
func (a *app) agreed(ctx context.Context, r resolution, conflicts []pass.Conflict) error {
	if r.yes {
		return nil
	}
	if !a.asks {
		return invalid(errors.New("nothing was written: there is no terminal to ask at. Look at the above, and run it again with --yes"))
	}
	what := "settle this conflict"
	if len(conflicts) > 1 {
		what = fmt.Sprintf("settle these %d conflicts", len(conflicts))
	}
	fmt.Fprintf(a.stderr, "Keep the %s's content and %s? [y/N] ", r.keep, what)
	type line struct {
		text string
		err  error
	}
	answered := make(chan line, 1)
	go func() { // a read from a terminal cannot be called off, and a signal does not wait for it
		text, err := bufio.NewReader(a.stdin).ReadString('\n')
		answered <- line{text, err}
	}()
	select {
	case <-ctx.Done():
		fmt.Fprintln(a.stderr)
		return &failure{code: outcomeCode(record.Stopped, context.Cause(ctx)), err: fmt.Errorf("nothing was written: %w", context.Cause(ctx))}
	case answer := <-answered:
		if answer.err != nil && !errors.Is(answer.err, io.EOF) {
			return fmt.Errorf("reading the answer: %w", answer.err)
		}
		switch strings.ToLower(strings.TrimSpace(answer.text)) {
		case "y", "yes":
			return nil
		}
		return invalid(errors.New("nothing was written: the answer was not yes"))
	}
}

// operator is who runs this process, as far as the machine knows.
func operator() (string, error) {
	machine, err := os.Hostname()
	if err != nil {
		return "", fmt.Errorf("finding out who settles this: %w", err)
	}
	name := fmt.Sprintf("uid %d", os.Getuid()) // in most containers, users have no names
	if known, err := user.Current(); err == nil && known.Username != "" {
		name = known.Username
	}
	return name + "@" + machine, nil
}

// printConflicts shows what a person is asked about.
func printConflicts(w io.Writer, namespace string, conflicts []pass.Conflict) error {
	for i, c := range conflicts {
		if i > 0 {
			fmt.Fprintln(w)
		}
		lines := []string{
			fmt.Sprintf("%s %s and its mirror %s: %s, %s", c.Kind, objectName(c.TenantNamespace, c.TenantName), objectName(namespace, c.HostName), c.Reason, since(&c)),
			"  tenant: " + states[c.TenantState],
			"  host:   " + states[c.HostState],
		}
		for _, line := range lines {
			if _, err := fmt.Fprintln(w, printable(line)); err != nil {
				return err
			}
		}
		if err := printDifferences(w, c.Differences); err != nil {
			return err
		}
	}
	fmt.Fprintln(w)
	return nil
}
