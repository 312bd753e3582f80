package e2e

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/syncpass/syncpass/policy"
)

func readme(t *testing.T) string {
	t.Helper()
	data, err := os.ReadFile("../README.md")
	require.NoError(t, err)
	return string(data)
}

// section returns the text from a heading of the README to the next one.
func section(t *testing.T, heading string) string {
	t.Helper()
	_, after, found := strings.Cut(readme(t), "\n## "+heading+"\n")
	require.True(t, found, "README.md has no section %q", heading)
	text, _, _ := strings.Cut(after, "\n## ")
	return text
}

// tableRows returns the cells of the tables in a text, headers aside, without the marks for code.
func tableRows(t *testing.T, text string) [][]string {
	t.Helper()
	var rows [][]string
	lines := strings.Split(text, "\n")
	for i, line := range lines {
		isHeader := i+1 < len(lines) && strings.HasPrefix(lines[i+1], "| ---")
		if !strings.HasPrefix(line, "| ") || strings.HasPrefix(line, "| ---") || isHeader {
			continue
		}
		cells := strings.Split(strings.Trim(strings.ReplaceAll(line, "`", ""), "|"), "|")
		for i := range cells {
			cells[i] = strings.TrimSpace(cells[i])
		}
		rows = append(rows, cells)
	}
	require.NotEmpty(t, rows)
	return rows
}

// help returns a table of `runner --help`, one line an entry: the entry, two spaces or more, what it means.
func help(t *testing.T, heading string) map[string]string {
	t.Helper()
	command := exec.CommandContext(t.Context(), "go", "run", "../cmd/runner", "--help")
	var errors bytes.Buffer
	command.Stderr = &errors
	out, err := command.Output()
	require.NoError(t, err, "runner --help:\n%s", &errors)
	_, table, found := strings.Cut(string(out), "\n"+heading)
	require.True(t, found, "runner --help has no heading %q:\n%s", heading, out)
	_, table, _ = strings.Cut(table, "\n")
	table, _, _ = strings.Cut(table, "\n\n")
	entries := map[string]string{}
	for line := range strings.Lines(table) {
		entry, meaning, found := strings.Cut(strings.TrimSpace(line), "  ")
		require.True(t, found, "line %q", line)
		entries[entry] = strings.TrimSpace(meaning)
	}
	return entries
}

func TestTheREADMEListsTheExitCodes(t *testing.T) {
	listed := map[string]string{}
	for _, row := range tableRows(t, section(t, "Exit codes")) {
		require.Len(t, row, 2)
		listed[row[0]] = row[1]
	}
	assert.Equal(t, help(t, "Exit codes"), listed)
}

func TestTheREADMEsPolicyIsValid(t *testing.T) {
	_, after, found := strings.Cut(section(t, "Install"), "```yaml\n")
	require.True(t, found)
	text, _, _ := strings.Cut(after, "```")
	parsed, err := policy.Parse([]byte(text))
	require.NoError(t, err)
	assert.Len(t, parsed.Spec.Resources, 4)
}

// documentFiles are all that is written for people, from the root of the repository.
func documentFiles(t *testing.T) []string {
	t.Helper()
	found := []string{"README.md", "CHANGELOG.md", "CONTRIBUTING.md", "SECURITY.md"}
	docs, err := filepath.Glob("../docs/*.md")
	require.NoError(t, err)
	require.NotEmpty(t, docs)
	for _, path := range docs {
		found = append(found, filepath.Join("docs", filepath.Base(path)))
	}
	return found
}

func TestLinksInTheDocumentsLeadSomewhere(t *testing.T) {
	link := regexp.MustCompile(`\]\(([^):#]*)(#[^)]*)?\)`)
	for _, document := range documentFiles(t) {
		path := filepath.Join("..", document)
		data, err := os.ReadFile(path)
		require.NoError(t, err)
		for _, match := range link.FindAllStringSubmatch(string(data), -1) {
			target := path
			if match[1] != "" {
				target = filepath.Join(filepath.Dir(path), match[1])
			}
			_, err := os.Stat(target)
			assert.NoError(t, err, "%s links to %s", document, match[1])
			if match[2] != "" {
				assert.Contains(t, anchors(t, target), match[2], "%s links to a heading of %s", document, target)
			}
		}
	}
}

// anchors are the names under which GitHub links to the headings of a document.
func anchors(t *testing.T, path string) []string {
	t.Helper()
	data, err := os.ReadFile(path)
	require.NoError(t, err)
	punctuation := regexp.MustCompile(`[^\p{L}\p{N}_ -]`)
	var found []string
	for _, heading := range regexp.MustCompile(`(?m)^#+ (.+)$`).FindAllStringSubmatch(string(data), -1) {
		plain := punctuation.ReplaceAllString(strings.ToLower(heading[1]), "")
		found = append(found, "#"+strings.ReplaceAll(plain, " ", "-"))
	}
	return found
}
