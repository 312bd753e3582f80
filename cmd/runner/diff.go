package main

import (
	"bytes"
	"encoding/hex"
	"fmt"
	"io"
	"regexp"
	"strings"
	"sync"
	"unicode"

	"github.com/rogpeppe/go-internal/diff"
	"sigs.k8s.io/yaml"

	"github.com/syncpass/syncpass/pass"
)

// printDiffs writes what the decisions of a dry run change, set off by empty lines, and nothing where that is nothing.
func (p printing) printDiffs(w io.Writer, changes [][]pass.Change) error {
	var all strings.Builder
	for _, ofDecision := range changes {
		text, err := unifiedDiff(ofDecision)
		if err != nil {
			return err
		}
		if p.colour {
			text = coloured(text)
		}
		all.WriteString(text)
	}
	if all.Len() == 0 {
		return nil
	}
	_, err := fmt.Fprintf(w, "\n%s\n", all.String())
	return err
}

// unifiedDiff is what one decision changes as a unified diff of YAML. The diff is anchored: its time is bounded also where a
// tenant has written the two sides to make it long.
func unifiedDiff(changes []pass.Change) (string, error) {
	var text strings.Builder
	for _, change := range changes {
		name := printable(fmt.Sprintf("%s %s %s", change.Side, change.Kind, objectName(change.Namespace, change.Name)))
		oldName, newName := name, name
		if change.Before == nil {
			oldName = "/dev/null"
		}
		if change.After == nil {
			newName = "/dev/null"
		}
		before, err := printableYAML(change.Before)
		if err != nil {
			return "", fmt.Errorf("%s: %w", name, err)
		}
		after, err := printableYAML(change.After)
		if err != nil {
			return "", fmt.Errorf("%s: %w", name, err)
		}
		// A diff's lines are the object's; that it is a dry run says what they are of, where others have a time. The
		// library's first line repeats the names.
		_, found, _ := bytes.Cut(diff.Diff(oldName, before, newName+"\t(dry run)", after), []byte("\n"))
		text.Write(found)
	}
	return text.String(), nil
}

// hidden stands around a text, in hex, that is not fit for terminals. A private-use character is not fit itself, so it is in
// no text that is.
const hidden = '\uE000'

var hiddenText = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(string(hidden) + "([0-9a-f]*)" + string(hidden))
})

// printableYAML is an object as YAML of which nothing can act on a terminal (CVE-2021-25743): a text with control characters,
// or with invisible or text-reordering ones, stands in double quotes with these escaped. What the YAML says is as it was.
func printableYAML(object map[string]any) ([]byte, error) {
	if object == nil {
		return nil, nil
	}
	text, err := yaml.Marshal(hide(object))
	if err != nil {
		return nil, fmt.Errorf("writing it as YAML: %w", err)
	}
	return hiddenText().ReplaceAllFunc(text, func(match []byte) []byte {
		decoded, err := hex.DecodeString(string(hiddenText().FindSubmatch(match)[1]))
		if err != nil {
			return match // hide made no such thing
		}
		return []byte(quoted(string(decoded)))
	}), nil
}

// hide replaces the texts that are not fit for terminals.
func hide(value any) any {
	switch value := value.(type) {
	case string:
		if strings.ContainsFunc(value, unfit) {
			return string(hidden) + hex.EncodeToString([]byte(value)) + string(hidden)
		}
	case map[string]any:
		all := make(map[string]any, len(value))
		for name, child := range value {
			all[hide(name).(string)] = hide(child)
		}
		return all
	case []any:
		all := make([]any, len(value))
		for i, child := range value {
			all[i] = hide(child)
		}
		return all
	}
	return value
}

func unfit(r rune) bool { return r != '\n' && r != '\t' && !unicode.IsPrint(r) }

// quoted is a text in YAML's double quotes, in ASCII.
func quoted(text string) string {
	var all strings.Builder
	all.WriteByte('"')
	for _, r := range text {
		switch {
		case r == '"' || r == '\\':
			all.WriteString(`\` + string(r))
		case r == '\n':
			all.WriteString(`\n`)
		case r >= ' ' && r < unicode.MaxASCII:
			all.WriteRune(r)
		case r <= 0xff:
			fmt.Fprintf(&all, `\x%02x`, r)
		case r <= 0xffff:
			fmt.Fprintf(&all, `\u%04x`, r)
		default:
			fmt.Fprintf(&all, `\U%08x`, r)
		}
	}
	all.WriteByte('"')
	return all.String()
}

// The colours of a diff are git's, and those of actions go with them.
const (
	bold    = "1"
	red     = "31"
	green   = "32"
	yellow  = "33"
	magenta = "35"
	cyan    = "36"
)

// paint puts text into a colour (https://en.wikipedia.org/wiki/ANSI_escape_code#SGR).
func paint(colour, text string) string { return "\x1b[" + colour + "m" + text + "\x1b[0m" }

// coloured paints each line of a unified diff.
func coloured(text string) string {
	var all strings.Builder
	for line := range strings.Lines(text) {
		line, ended := strings.CutSuffix(line, "\n")
		switch {
		case strings.HasPrefix(line, "--- "), strings.HasPrefix(line, "+++ "):
			line = paint(bold, line)
		case strings.HasPrefix(line, "@@"):
			line = paint(cyan, line)
		case strings.HasPrefix(line, "-"):
			line = paint(red, line)
		case strings.HasPrefix(line, "+"):
			line = paint(green, line)
		}
		all.WriteString(line)
		if ended {
			all.WriteByte('\n')
		}
	}
	return all.String()
}

// colourMode is the value of --color.
type colourMode string

var colourModes = []string{"auto", "always", "never"}

// String implements pflag.Value.
func (c *colourMode) String() string { return string(*c) }

// Type implements pflag.Value; it is shown in the help.
func (c *colourMode) Type() string { return "when" }

// Set implements pflag.Value.
func (c *colourMode) Set(value string) error {
	for _, mode := range colourModes {
		if value == mode {
			*c = colourMode(value)
			return nil
		}
	}
	return fmt.Errorf("accepted are %s", strings.Join(colourModes, ", "))
}

// on decides whether to colour: as the flag says, and left to itself on a terminal, unless NO_COLOR is set to anything
// (https://no-color.org).
func (c colourMode) on(tty bool, env environment) bool {
	_, noColour := env.Lookup("NO_COLOR")
	return c == "always" || c == "auto" && tty && !noColour
}
