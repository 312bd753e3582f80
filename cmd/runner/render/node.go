package render

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"

	"github.com/syncpass/syncpass/manifests"
)

// documents are the YAML documents of one of the manifests, with their comments.
func documents(path string) ([]*yaml.Node, error) {
	data, err := manifests.Files.ReadFile(path)
	if err != nil {
		return nil, fmt.Errorf("reading the manifest that this one starts from: %w", err)
	}
	var all []*yaml.Node
	for decoder := yaml.NewDecoder(bytes.NewReader(data)); ; {
		document := &yaml.Node{}
		err := decoder.Decode(document)
		if errors.Is(err, io.EOF) {
			return all, nil
		}
		if err != nil {
			return nil, fmt.Errorf("reading manifests/%s: %w", path, err)
		}
		all = append(all, document)
	}
}

// object is the mapping that a document consists of.
func object(document *yaml.Node) *yaml.Node { return document.Content[0] }

// encode writes documents one after the other.
func encode(all []*yaml.Node) ([]byte, error) {
	var out bytes.Buffer
	encoder := yaml.NewEncoder(&out)
	encoder.SetIndent(2)
	for _, document := range all {
		if err := encoder.Encode(document); err != nil {
			return nil, fmt.Errorf("writing YAML: %w", err)
		}
	}
	if err := encoder.Close(); err != nil {
		return nil, fmt.Errorf("writing YAML: %w", err)
	}
	return out.Bytes(), nil
}

// at is what a mapping has under a path of keys, nil where there is none.
func at(node *yaml.Node, path ...string) *yaml.Node {
	for _, key := range path {
		i := indexOf(node, key)
		if i < 0 {
			return nil
		}
		node = node.Content[i+1]
	}
	return node
}

// indexOf is the place of a key in a mapping's content, its value being the next; -1 where there is none.
func indexOf(mapping *yaml.Node, key string) int {
	if mapping == nil || mapping.Kind != yaml.MappingNode {
		return -1
	}
	for i := 0; i < len(mapping.Content); i += 2 {
		if mapping.Content[i].Value == key {
			return i
		}
	}
	return -1
}

// put gives a key of a mapping a value, where the key stands, or else at the end. A comment, if given, replaces the key's.
func put(mapping *yaml.Node, key string, value *yaml.Node, comment ...string) {
	i := indexOf(mapping, key)
	if i < 0 {
		mapping.Content = append(mapping.Content, text(key), value)
		i = len(mapping.Content) - 2
	}
	value.LineComment = mapping.Content[i+1].LineComment
	mapping.Content[i+1] = value
	if len(comment) > 0 {
		mapping.Content[i].HeadComment = remark(strings.Join(comment, " "))
	}
}

// putAfter is put for a new key that is to stand right after another one.
func putAfter(mapping *yaml.Node, before, key string, value *yaml.Node, comment ...string) {
	name := text(key)
	if len(comment) > 0 {
		name.HeadComment = remark(strings.Join(comment, " "))
	}
	mapping.Content = slices.Insert(mapping.Content, indexOf(mapping, before)+2, name, value)
}

// drop takes a key out of a mapping.
func drop(mapping *yaml.Node, key string) {
	if i := indexOf(mapping, key); i >= 0 {
		mapping.Content = slices.Delete(mapping.Content, i, i+2)
	}
}

// take moves a key, with its comment, from one mapping to its place in another.
func take(mapping, from *yaml.Node, key string) {
	i, j := indexOf(mapping, key), indexOf(from, key)
	mapping.Content[i], mapping.Content[i+1] = from.Content[j], from.Content[j+1]
}

func text(value string) *yaml.Node {
	return &yaml.Node{Kind: yaml.ScalarNode, Tag: "!!str", Value: value}
}

func quoted(value string) *yaml.Node {
	node := text(value)
	node.Style = yaml.DoubleQuotedStyle
	return node
}

func number(value int64) *yaml.Node {
	return &yaml.Node{Kind: yaml.ScalarNode, Tag: "!!int", Value: fmt.Sprint(value)}
}

func truth(value bool) *yaml.Node {
	return &yaml.Node{Kind: yaml.ScalarNode, Tag: "!!bool", Value: fmt.Sprint(value)}
}

// inOneLine is a list as [a, b].
func inOneLine(values ...string) *yaml.Node {
	list := &yaml.Node{Kind: yaml.SequenceNode, Style: yaml.FlowStyle}
	for _, value := range values {
		list.Content = append(list.Content, text(value))
	}
	return list
}

func list(items ...*yaml.Node) *yaml.Node {
	return &yaml.Node{Kind: yaml.SequenceNode, Content: items}
}

// mapping is one of keys and values in turn.
func mapping(pairs ...any) *yaml.Node {
	node := &yaml.Node{Kind: yaml.MappingNode}
	for i := 0; i < len(pairs); i += 2 {
		value, ok := pairs[i+1].(*yaml.Node)
		if !ok {
			value = text(fmt.Sprint(pairs[i+1]))
		}
		node.Content = append(node.Content, text(fmt.Sprint(pairs[i])), value)
	}
	return node
}

// words are the values of a list of texts.
func words(list *yaml.Node) []string {
	var values []string
	if list != nil {
		for _, item := range list.Content {
			values = append(values, item.Value)
		}
	}
	return values
}

// remarkWidth is where the lines of a comment break.
const remarkWidth = 118

// remark is a text as comment lines.
func remark(text string) string {
	var lines []string
	for paragraph := range strings.SplitSeq(text, "\n") {
		line := "#"
		for _, word := range strings.Fields(paragraph) {
			if len(line)+1+len(word) > remarkWidth && line != "#" {
				lines, line = append(lines, line), "#"
			}
			line += " " + word
		}
		lines = append(lines, line)
	}
	return strings.Join(lines, "\n")
}
