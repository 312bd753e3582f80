package main

import (
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"
)

// The names under which kubectl finds the binary: as the plugin, and as what completes the plugin's command line
// (https://kubernetes.io/docs/tasks/extend-kubectl/kubectl-plugins/).
const (
	pluginName         = "kubectl-syncpass"
	pluginCompleteName = "kubectl_complete-syncpass"
	pluginShown        = "kubectl syncpass"
)

const pluginHelp = `As a kubectl plugin: put the binary, or a link to it, onto the PATH as kubectl-syncpass, and once more as
kubectl_complete-syncpass for the shell's completion. It takes kubectl's KUBECONFIG.
`

// calledAs is what the name of the binary and its arguments come to: whether it is a plugin of kubectl, and the arguments
// that the verbs get. What completes kubectl's command line is cobra's hidden verb for that.
func calledAs(binary string, args []string) (plugin bool, rest []string) {
	switch strings.TrimSuffix(filepath.Base(binary), ".exe") {
	case pluginName:
		return true, args
	case pluginCompleteName:
		return true, append([]string{cobra.ShellCompRequestCmd}, args...)
	}
	return false, args
}

// typed is a command of the runner as whoever called this process types it.
func (a *app) typed(command string) string {
	if rest, found := strings.CutPrefix(command, "runner "); found && a.plugin {
		return pluginShown + " " + rest
	}
	return command
}

// asPlugin has the help texts say what a user of the plugin types.
func asPlugin(cmd *cobra.Command) {
	if !cmd.HasParent() {
		cmd.Use = pluginName
		cmd.Annotations = map[string]string{cobra.CommandDisplayNameAnnotation: pluginShown}
	}
	cmd.Example = strings.ReplaceAll(cmd.Example, "runner", pluginShown)
	cmd.Long = strings.ReplaceAll(cmd.Long, "runner ", pluginShown+" ")
	for _, sub := range cmd.Commands() {
		asPlugin(sub)
	}
}
