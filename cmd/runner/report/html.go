package report

import (
	"crypto/sha256"
	_ "embed" // the templates
	"encoding/base64"
	"fmt"
	"html/template"
	"io"
	"strings"

	"github.com/syncpass/syncpass/record"
)

//go:embed style.css
var style string

//go:embed page.html.tmpl
var htmlText string

// htmlPage is parsed when a report is written: all other verbs start without it.
func htmlPage() *template.Template {
	return template.Must(template.New("page").Funcs(template.FuncMap{
		"series": func() []record.Action { return series },
		"lower":  func(a record.Action) string { return strings.ToLower(string(a)) },
	}).Parse(htmlText))
}

// writeHTML writes one document that loads nothing: its policy for content allows the one style sheet in it, by its hash,
// and nothing else, so that nothing a tenant wrote could run or be fetched even if it got past the escaping.
func writeHTML(w io.Writer, p page) error {
	sum := sha256.Sum256([]byte(style))
	err := htmlPage().Execute(w, struct {
		page
		Style  template.CSS
		Policy string
	}{p, template.CSS(style), fmt.Sprintf("default-src 'none'; style-src 'sha256-%s'; base-uri 'none'; form-action 'none'", base64.StdEncoding.EncodeToString(sum[:]))})
	if err != nil {
		return fmt.Errorf("writing the report: %w", err)
	}
	return nil
}
