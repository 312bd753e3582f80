package report

import (
	"slices"
	"strconv"

	"golang.org/x/net/html"
)

// fragment is a piece of the page: elements and texts in a row, none where there is nothing to say. This package writes the
// names of elements and attributes; whatever comes from elsewhere is a text or a value, which are escaped when the page is.
type fragment []*html.Node

func text(s string) fragment {
	if s == "" {
		return nil
	}
	return fragment{{Type: html.TextNode, Data: s}}
}

// at are attributes: names and values in turn.
func at(pairs ...string) []html.Attribute {
	var attributes []html.Attribute
	for pair := range slices.Chunk(pairs, 2) {
		attributes = append(attributes, html.Attribute{Key: pair[0], Val: pair[1]})
	}
	return attributes
}

func element(name string, attributes []html.Attribute, content ...fragment) fragment {
	e := &html.Node{Type: html.ElementNode, Data: name, Attr: attributes}
	for _, child := range slices.Concat(content...) {
		e.AppendChild(child)
	}
	return fragment{e}
}

// lines puts each part on a line of its own, so that a page can be read, and compared, as a text too.
func lines(parts ...fragment) fragment {
	var all fragment
	for _, part := range parts {
		if len(part) == 0 {
			continue
		}
		if len(all) > 0 {
			all = append(all, text("\n")...)
		}
		all = append(all, part...)
	}
	return all
}

// block is an element on lines of its own, with parts that are.
func block(name string, attributes []html.Attribute, parts ...fragment) fragment {
	return element(name, attributes, text("\n"), lines(parts...), text("\n"))
}

func paragraph(content ...fragment) fragment { return element("p", nil, content...) }

func heading(s string) fragment { return element("h3", nil, text(s)) }

func quiet(s string) fragment { return element("span", at("class", "quiet"), text(s)) }

func verbatim(s string) fragment { return element("code", nil, text(s)) }

func command(s string) fragment { return element("code", at("class", "command"), text(s)) }

func momentElement(m moment) fragment {
	return slices.Concat(element("time", at("datetime", m.ISO), text(m.Text)), text(" "),
		element("span", at("class", "quiet whole"), text("("+m.Distance+")")))
}

// wide is what scrolls by itself where the window is too narrow for it; the keyboard reaches it by its name.
func wide(label string, parts ...fragment) fragment {
	return block("div", at("class", "wide", "role", "region", "tabindex", "0", "aria-label", label), parts...)
}

// grid is a table: first columns of text, then columns of numbers.
type grid struct {
	class, caption string
	texts, numbers []string
	rows           []fragment
	// foot is the last row, none where nothing is summed up.
	foot fragment
}

func (g grid) element() fragment {
	var class []string
	if g.class != "" {
		class = []string{"class", g.class}
	}
	var head fragment
	for _, column := range g.texts {
		head = append(head, element("th", at("scope", "col"), text(column))...)
	}
	for _, column := range g.numbers {
		head = append(head, element("th", at("scope", "col", "class", "number"), text(column))...)
	}
	var foot fragment
	if g.foot != nil {
		foot = element("tfoot", nil, g.foot)
	}
	return block("table", at(class...), element("caption", nil, text(g.caption)), element("thead", nil, element("tr", nil, head)),
		block("tbody", nil, g.rows...), foot)
}

// row is a row of a table, which its first cell names.
func row(name fragment, cells ...fragment) fragment {
	return element("tr", nil, element("th", at("scope", "row"), name), slices.Concat(cells...))
}

func cell(content ...fragment) fragment { return element("td", nil, content...) }

func broadCell(content ...fragment) fragment {
	return element("td", at("class", "broad"), content...)
}

// numbers are the cells of numbers.
func numbers(all ...int) fragment {
	var cells fragment
	for _, n := range all {
		class := "number"
		if n == 0 {
			class = "number zero"
		}
		cells = append(cells, element("td", at("class", class), text(strconv.Itoa(n)))...)
	}
	return cells
}
