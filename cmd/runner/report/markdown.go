package report

import (
	_ "embed" // the template
	"fmt"
	"io"
	"regexp"
	"strings"
	"text/template"

	"github.com/syncpass/syncpass/record"
)

//go:embed page.md.tmpl
var markdownText string

func markdownPage() *template.Template {
	return template.Must(template.New("page").Funcs(template.FuncMap{
		"series": func() []record.Action { return series },
		"code":   code,
		"codes": func(texts []string) string {
			all := make([]string, len(texts))
			for i, text := range texts {
				all[i] = code(text)
			}
			return strings.Join(all, ", ")
		},
	}).Parse(markdownText))
}

// writeMarkdown writes GitHub's flavour. Whatever was not written by this package stands in code, where nothing is a link,
// a mention, an image or a tag.
func writeMarkdown(w io.Writer, p page) error {
	if err := markdownPage().Execute(w, p); err != nil {
		return fmt.Errorf("writing the report: %w", err)
	}
	return nil
}

// simple is what means nothing to Markdown between two backticks, in a table or outside of one.
var simple = regexp.MustCompile(`^[^\x60|\\<>&]*[^\x60|\\<>& ]$`)

// code is a text as code. Where backticks cannot hold it, every character that could mean something is written by its number:
// Markdown takes such a character for itself and nothing else (https://spec.commonmark.org/0.31.2/#entity-and-numeric-character-references).
func code(text string) string {
	text = plain(text)
	if simple.MatchString(text) {
		return "`" + text + "`"
	}
	var b strings.Builder
	b.WriteString("<code>")
	for _, r := range text {
		if r < 0x80 && r != ' ' && (r < '0' || r > '9') && (r < 'A' || r > 'Z') && (r < 'a' || r > 'z') {
			fmt.Fprintf(&b, "&#%d;", r)
		} else {
			b.WriteRune(r)
		}
	}
	b.WriteString("</code>")
	return b.String()
}
