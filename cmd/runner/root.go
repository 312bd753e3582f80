package main

import (
	"fmt"
	"strings"
	"text/tabwriter"

	"github.com/spf13/cobra"
)

const about = `runner carries out SyncPolicies: one complete pass for each selected tenant, then it exits.

A pass lists the objects of the policy's kinds in the tenant and on the host, plans what crosses which way, applies
it, and records each decision in the tenant's SyncDecision. Nothing runs between passes.`

const tracesHelp = `OpenTelemetry traces are sent where the standard OTEL_ variables say, by http/protobuf; there are none without
OTEL_EXPORTER_OTLP_ENDPOINT, OTEL_EXPORTER_OTLP_TRACES_ENDPOINT or OTEL_TRACES_EXPORTER=otlp.`

func (a *app) rootCommand() *cobra.Command {
	root := a.passCommand()
	root.Use = "runner"
	root.Short = "One complete pass for each selected tenant"
	root.Long = about + "\n\n" + environmentHelp() + "\n" + tracesHelp + "\n\n" + exitCodeHelp() + "\n" + pluginHelp
	root.Example = "  runner                     one pass (the same as runner pass)\n" +
		"  runner plan -o wide        what the next pass would do\n" +
		"  SYNCPASS_TENANT=dev SYNCPASS_NAMESPACE=team-dev runner pass -o json"
	root.SilenceErrors, root.SilenceUsage = true, true
	root.SuggestionsMinimumDistance = 2
	root.SetOut(a.stdout)
	root.SetErr(a.stderr)
	root.SetFlagErrorFunc(func(cmd *cobra.Command, err error) error { return usageError(cmd, err) })
	root.AddCommand(a.passCommand(), a.planCommand(), a.scheduleCommand(), a.explainCommand(), a.resolveCommand(), a.renderCommand(), a.reportCommand(), a.versionCommand(), a.docsCommand())
	a.addSelectionFlags(root)
	a.addCompletions(root)
	a.addVersionFlag(root)
	root.InitDefaultHelpCmd()
	if help, _, err := root.Find([]string{"help"}); err == nil {
		help.Args = aVerb
	}
	if a.plugin {
		asPlugin(root)
	}
	return root
}

func (a *app) passCommand() *cobra.Command {
	format := outputFormats[0]
	cmd := &cobra.Command{
		Use:   "pass",
		Short: "One complete pass for each selected tenant (default verb)",
		Args:  noArguments,
		RunE:  func(cmd *cobra.Command, _ []string) error { return a.pass(cmd.Context(), printing{format: format}) },
	}
	addOutputFlag(cmd, &format)
	return cmd
}

func (a *app) scheduleCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "schedule",
		Short: "Passes at each policy's driftDetection.interval, the first one at once",
		Long: "Passes at each policy's driftDetection.interval, the first one at once, until a signal comes or SYNCPASS_WINDOW closes.\n" +
			"/metrics, /healthz and /readyz are served on SYNCPASS_METRICS_ADDR.",
		Args: noArguments,
		RunE: func(cmd *cobra.Command, _ []string) error { return a.schedule(cmd.Context()) },
	}
}

func (a *app) versionCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "version",
		Short: "Version of this binary",
		Args:  noArguments,
		RunE:  func(*cobra.Command, []string) error { return a.version() },
	}
}

func (a *app) version() error {
	_, err := fmt.Fprintln(a.stdout, thisBuild())
	return err
}

// addVersionFlag has --version do what the verb does. Cobra's own flag would say it in other words, or by a template,
// for which the linker would keep every method there is.
func (a *app) addVersionFlag(root *cobra.Command) {
	pass := root.RunE
	asked := root.Flags().Bool("version", false, "the same as runner version")
	root.RunE = func(cmd *cobra.Command, args []string) error {
		if *asked {
			return a.version()
		}
		return pass(cmd, args)
	}
}

func addOutputFlag(cmd *cobra.Command, format *outputFormat) {
	cmd.Flags().VarP(format, "output", "o", "output format: "+formatNames())
	mustComplete(cmd, "output", cobra.FixedCompletions(stringsOf(outputFormats), cobra.ShellCompDirectiveNoFileComp))
}

// aVerb refuses help on a verb that does not exist.
func aVerb(help *cobra.Command, args []string) error {
	verb, rest, err := help.Root().Find(args)
	if err != nil {
		return err
	}
	return noArguments(verb, rest)
}

// noArguments refuses what stands after the verb; on the root command that is a verb that does not exist.
func noArguments(cmd *cobra.Command, args []string) error {
	if len(args) == 0 {
		return nil
	}
	if cmd.HasParent() {
		return usageError(cmd, fmt.Errorf("%s takes no arguments, and got %q", cmd.CommandPath(), args))
	}
	suggestion := ""
	if near := cmd.SuggestionsFor(args[0]); len(near) > 0 {
		suggestion = ", did you mean " + strings.Join(near, " or ") + "?"
	}
	return usageError(cmd, fmt.Errorf("unknown verb %q%s", args[0], suggestion))
}

func usageError(cmd *cobra.Command, err error) error {
	return invalid(fmt.Errorf("%w (see '%s --help')", err, cmd.CommandPath()))
}

func environmentHelp() string {
	var text strings.Builder
	text.WriteString("Environment (a variable set to the empty string counts as unset):\n")
	table := tabwriter.NewWriter(&text, 0, 0, 2, ' ', 0)
	for _, v := range variables() {
		line := v.doc
		if v.defaultValue != "" {
			line += " (default: " + v.defaultValue + ")"
		}
		fmt.Fprintf(table, "  %s\t%s\n", v.name, line)
	}
	table.Flush()
	return text.String()
}

func exitCodeHelp() string {
	var text strings.Builder
	text.WriteString("Exit codes (with several tenants, the highest):\n")
	table := tabwriter.NewWriter(&text, 0, 0, 2, ' ', 0)
	for _, e := range exitCodes {
		fmt.Fprintf(table, "  %s\t%s\n", e.code, e.meaning)
	}
	table.Flush()
	return text.String()
}
