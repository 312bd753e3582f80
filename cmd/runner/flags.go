package main

import (
	"github.com/spf13/cobra"
)

// selectionFlags are flags of every verb that say the same as a variable, and win over it.
var selectionFlags = []struct{ name, short, variable, usage string }{
	{"namespace", "n", "SYNCPASS_NAMESPACE", "namespace of the TenantClusters"},
	{"tenant", "", "SYNCPASS_TENANT", "one TenantCluster"},
}

// addSelectionFlags adds them, and has the environment answer with what they are given. One that is given the empty string
// counts as not given, as a variable does.
func (a *app) addSelectionFlags(root *cobra.Command) {
	given := map[string]*string{}
	for _, f := range selectionFlags {
		given[f.variable] = root.PersistentFlags().StringP(f.name, f.short, "", f.usage+" (wins over "+f.variable+")")
	}
	variables := a.env
	a.env = func(name string) (string, bool) {
		if value := given[name]; value != nil && *value != "" {
			return *value, true
		}
		return variables(name)
	}
	mustComplete(root, "namespace", a.completeNamespaces)
	mustComplete(root, "tenant", a.completeTenants)
}

// mustComplete says how a flag is completed. Only a flag that does not exist, or that has this twice, is an error.
func mustComplete(cmd *cobra.Command, flag string, f cobra.CompletionFunc) {
	if err := cmd.RegisterFlagCompletionFunc(flag, f); err != nil {
		panic(err)
	}
}
