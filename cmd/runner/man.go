package main

import (
	"fmt"
	"os"

	"github.com/spf13/cobra"
	"github.com/spf13/cobra/doc"
)

// docsCommand is for whoever packages the binary.
func (a *app) docsCommand() *cobra.Command {
	docs := &cobra.Command{
		Use:    "docs",
		Short:  "Documentation in other forms, for packages",
		Hidden: true,
		Args:   noArguments,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return usageError(cmd, fmt.Errorf("docs takes a form: man"))
		},
	}
	docs.AddCommand(&cobra.Command{
		Use:     "man DIRECTORY",
		Short:   "A man page for each verb",
		Long:    "A man page for each verb, written to a folder. Their date is SOURCE_DATE_EPOCH, where that is set.",
		Example: "  runner docs man /usr/local/share/man/man1",
		Args: func(cmd *cobra.Command, args []string) error {
			if len(args) != 1 {
				return usageError(cmd, fmt.Errorf("man takes one directory, and got %q", args))
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := os.MkdirAll(args[0], 0o755); err != nil {
				return fmt.Errorf("making the folder for the man pages: %w", err)
			}
			root := cmd.Root()
			root.DisableAutoGenTag = true
			header := &doc.GenManHeader{Section: "1", Source: "syncpass " + thisBuild().version, Manual: "syncpass"}
			if err := doc.GenManTree(root, header, args[0]); err != nil {
				return fmt.Errorf("writing the man pages: %w", err)
			}
			return nil
		},
	})
	return docs
}
