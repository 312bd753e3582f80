package report

import (
	"crypto/sha256"
	_ "embed" // the style sheet
	"encoding/base64"
	"fmt"
	"io"

	"golang.org/x/net/html"
)

//go:embed style.css
var style string

// writeHTML writes one document that loads nothing: its policy for content allows the one style sheet in it, by its hash,
// and nothing else, so that nothing a tenant wrote could run or be fetched even if it got past the escaping.
//
// It is a tree of nodes, and no html/template: those call methods by names that nobody knows before they run, so the linker
// would keep every exported method of every type in the whole program, a quarter of the binary.
func writeHTML(w io.Writer, p page) error {
	sum := sha256.Sum256([]byte(style))
	policy := fmt.Sprintf("default-src 'none'; style-src 'sha256-%s'; base-uri 'none'; form-action 'none'", base64.StdEncoding.EncodeToString(sum[:]))
	sections := []fragment{tenantsElement(p)}
	for _, s := range p.Tenants {
		sections = append(sections, s.element())
	}
	document := &html.Node{Type: html.DocumentNode}
	for _, child := range lines(
		fragment{{Type: html.DoctypeNode, Data: "html"}},
		block("html", at("lang", "en"),
			block("head", nil,
				element("meta", at("charset", "utf-8")),
				element("meta", at("http-equiv", "Content-Security-Policy", "content", policy)),
				element("meta", at("name", "viewport", "content", "width=device-width, initial-scale=1")),
				element("meta", at("name", "color-scheme", "content", "light dark")),
				element("meta", at("name", "referrer", "content", "no-referrer")),
				element("title", nil, text("syncpass report")),
				element("style", nil, text(style))),
			block("body", nil,
				element("a", at("class", "skip-link", "href", "#main"), text("Skip to the report")),
				block("header", nil,
					element("h1", nil, text("syncpass report")),
					paragraph(text("Made "), element("time", at("datetime", p.Now.ISO), text(p.Now.Text)),
						text(sources), verbatim("runner plan"), text(" shows it."))),
				block("main", at("id", "main", "tabindex", "-1"), sections...),
				block("footer", nil, paragraph(text(phases))))),
	) {
		document.AppendChild(child)
	}
	document.AppendChild(text("\n")[0])
	if err := html.Render(w, document); err != nil {
		return fmt.Errorf("writing the report: %w", err)
	}
	return nil
}

// tenantsElement is the table of all tenants.
func tenantsElement(p page) fragment {
	title := element("h2", at("id", "tenants"), text("Tenants"))
	if len(p.Tenants) == 0 {
		return block("section", at("aria-labelledby", "tenants"), title, paragraph(text("There is no TenantCluster.")))
	}
	var rows []fragment
	for _, s := range p.Tenants {
		outcome, began := quiet("nothing recorded"), quiet("not known")
		if s.Last != nil {
			outcome = text(s.Last.Outcome)
		}
		if s.Began != nil {
			began = momentElement(*s.Began)
		}
		rows = append(rows, row(element("a", at("class", "whole", "href", "#"+s.Anchor), text(s.title())),
			cell(outcome), cell(began), cell(s.Due.element()), numbers(s.open()...)))
	}
	return block("section", at("aria-labelledby", "tenants"), title, wide("Tenants", grid{
		class:   "rows",
		caption: p.waiting(),
		texts:   []string{"Tenant", "Recorded outcome", "Last pass began", "Next pass due"},
		numbers: []string{"Pairs", "Conflicts", "Withheld", "Errors"},
		rows:    rows,
	}.element()))
}

func (d due) element() fragment {
	f := text(d.Text)
	if d.At == nil {
		return f
	}
	if d.Text != "" {
		f = append(f, text(" ")...)
	}
	return append(f, momentElement(*d.At)...)
}
