package main

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/syncpass/syncpass/record"
)

const referenceFile = "../../docs/reference.md"

// TestTheReferenceSaysWhatTheCodeSays compares docs/reference.md with what the tags of config, the exit codes and the
// comments of package record come to.
func TestTheReferenceSaysWhatTheCodeSays(t *testing.T) {
	text := reference(t)
	if *update {
		require.NoError(t, os.WriteFile(referenceFile, []byte(text), 0o644))
	}
	written, err := os.ReadFile(referenceFile)
	require.NoError(t, err)
	require.Equal(t, text, string(written), "write it anew: go test ./cmd/runner -run Reference -update")
}

func reference(t *testing.T) string {
	t.Helper()
	var text strings.Builder
	text.WriteString("# Reference\n\n" +
		"<!-- Written from the code by: go test ./cmd/runner -run Reference -update -->\n\n" +
		"What the code itself says. [operations.md](operations.md) says what to do about it.\n\n" +
		"## Variables\n\n" +
		"A variable that is set to the empty string counts as unset. All faults are reported together, and exit with code 5.\n\n" +
		"| variable | default | accepted | meaning |\n| --- | --- | --- | --- |\n")
	for _, v := range variables() {
		fallback := v.defaultValue
		switch inWords := strings.Contains(fallback, " ") && !strings.Contains(fallback, "<"); {
		case fallback == "":
			fallback = "–"
		case !inWords:
			fallback = inCode(fallback)
		}
		writeRow(&text, inCode(v.name), fallback, v.accepts, v.doc)
	}
	text.WriteString("\nDeadlines nest: request < lease < pass < the Job's `activeDeadlineSeconds`. Requests are not limited on the client's side; an\n" +
		"API server's `429` and `Retry-After` are obeyed. `-n` and `--tenant` say the same as `SYNCPASS_NAMESPACE` and\n`SYNCPASS_TENANT`, and win over them.\n")
	text.WriteString("\n## Exit codes\n\nWith several tenants, the highest.\n\n| code | meaning |\n| --- | --- |\n")
	for _, e := range exitCodes {
		writeRow(&text, e.code, e.meaning)
	}
	text.WriteString("\n## Outcomes\n\nHow one pass ended: `outcome` in JSON, in the log, and in `status.lastPass` of the SyncDecision.\n\n" +
		"| outcome | exit code | meaning |\n| --- | --- | --- |\n")
	for _, c := range constants(t, "types.go", "Outcome") {
		exit := fmt.Sprint(outcomeCode(record.Outcome(c.value), nil))
		if record.Outcome(c.value) == record.Stopped {
			exit = fmt.Sprintf("%d or %d", exitSignal+2, exitSignal+15)
		}
		writeRow(&text, inCode(c.value), exit, c.meaning)
	}
	text.WriteString("\n## Reasons\n\nThe same word in tables, JSON, the SyncDecision and Events. What is skipped is left as it is on both sides.\n\n" +
		"| reason | of a | meaning |\n| --- | --- | --- |\n")
	for _, c := range constants(t, "decision.go", "Reason") {
		writeRow(&text, inCode(c.value), c.group, c.meaning)
	}
	return text.String()
}

func writeRow(text *strings.Builder, cells ...string) {
	for i := range cells {
		cells[i] = strings.ReplaceAll(cells[i], "|", `\|`)
	}
	fmt.Fprintf(text, "| %s |\n", strings.Join(cells, " | "))
}

func inCode(text string) string { return "`" + text + "`" }

// constant is a constant of package record: its value, the last word of its group's comment ("Reasons of a Skip."), and
// what its own comment says of it.
type constant struct{ value, group, meaning string }

// constants are those of a type, in the order of the file.
func constants(t *testing.T, file, typeName string) []constant {
	t.Helper()
	parsed, err := parser.ParseFile(token.NewFileSet(), "../../record/"+file, nil, parser.ParseComments)
	require.NoError(t, err)
	var found []constant
	for _, declaration := range parsed.Decls {
		group, ok := declaration.(*ast.GenDecl)
		if !ok || group.Tok != token.CONST {
			continue
		}
		words := strings.Fields(strings.TrimSuffix(strings.TrimSpace(group.Doc.Text()), "."))
		for _, spec := range group.Specs {
			one := spec.(*ast.ValueSpec)
			if name, ok := one.Type.(*ast.Ident); !ok || name.Name != typeName {
				continue
			}
			value := strings.Trim(one.Values[0].(*ast.BasicLit).Value, `"`)
			meaning, named := strings.CutPrefix(strings.Join(strings.Fields(one.Doc.Text()), " "), value+": ")
			require.True(t, named, "the comment of %s does not start with %q", value, value+": ")
			found = append(found, constant{value, words[len(words)-1], strings.TrimSuffix(meaning, ".")})
		}
	}
	require.NotEmpty(t, found)
	return found
}

// TestOperationsHasARowForEveryReason: each with its cause and what to do.
func TestOperationsHasARowForEveryReason(t *testing.T) {
	text, err := os.ReadFile("../../docs/operations.md")
	require.NoError(t, err)
	_, section, found := strings.Cut(string(text), "\n## Reasons\n")
	require.True(t, found)
	section, _, _ = strings.Cut(section, "\n## ")
	var listed, want []string
	for _, match := range regexp.MustCompile("(?m)^\\| `([A-Za-z]+)` \\| [^|]+ \\| [^|]*\\|$").FindAllStringSubmatch(section, -1) {
		listed = append(listed, match[1])
	}
	for _, c := range constants(t, "decision.go", "Reason") {
		want = append(want, c.value)
	}
	require.ElementsMatch(t, want, listed)
}
