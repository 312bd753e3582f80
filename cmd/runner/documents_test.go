package main

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

var (
	// typed finds what a document tells people to type: in a line of code, or behind a prompt.
	typed = regexp.MustCompile("(?m)`[^`\n]+`|^ *\\$ .*$|^(?:[A-Z]+=\\S+ )*(?:bin/)?runner .*$")
	// calls finds, in that, a verb of the runner or of its plugin, with what stands behind it up to the end of the command.
	calls = regexp.MustCompile("(?:^|[ `(])(?:bin/)?(?:runner|kubectl syncpass) ([a-z][^`|;<>]*)")
	flags = regexp.MustCompile(`^--?[a-z][a-z-]*`)
)

func TestTheDocumentsSayCommandsThatThereAre(t *testing.T) {
	documents, err := filepath.Glob("../../docs/*.md")
	require.NoError(t, err)
	found := 0
	for _, document := range append(documents, "../../README.md", "../../CONTRIBUTING.md") {
		text, err := os.ReadFile(document)
		require.NoError(t, err)
		for _, line := range typed.FindAllString(string(text), -1) {
			for _, call := range calls.FindAllStringSubmatch(line, -1) {
				command, _, _ := strings.Cut(call[1], " #")
				assertCommand(t, strings.Fields(command), document+": "+line)
				found++
			}
		}
	}
	assert.Greater(t, found, 30, "the documents are full of commands")
}

// assertCommand asks for the verb, and for each flag behind it.
func assertCommand(t *testing.T, words []string, where string) {
	t.Helper()
	root := (&app{}).rootCommand()
	root.InitDefaultCompletionCmd() // this and the help are else added when it runs
	verb, _, err := root.Find(words[:1])
	if !assert.NoError(t, err, where) || !assert.True(t, verb.HasParent(), "no verb %q: %s", words[0], where) {
		return
	}
	verb.InitDefaultHelpFlag()
	for _, word := range words[1:] {
		name := flags.FindString(word)
		switch {
		case strings.HasPrefix(name, "--"):
			assert.NotNil(t, verb.Flag(name[2:]), "%s has no flag %s: %s", verb.Name(), name, where)
		case name != "":
			known := verb.Flags().ShorthandLookup(name[1:]) != nil || verb.InheritedFlags().ShorthandLookup(name[1:]) != nil
			assert.True(t, known, "%s has no flag %s: %s", verb.Name(), name, where)
		}
	}
}
