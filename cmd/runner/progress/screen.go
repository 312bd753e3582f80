package progress

import (
	"bytes"
	"fmt"
	"io"
	"slices"
	"strings"
	"sync"
)

const (
	// mostLines is how many passes have a line of their own; terminals are not high.
	mostLines = 8
	// defaultWidth is that of a terminal that does not say.
	defaultWidth = 80
)

// Screen is a terminal whose last lines change in place. What is written to it appears above them, untorn. Safe for
// concurrent use.
type Screen struct {
	w     io.Writer
	width func() int

	mu    sync.Mutex
	lines []line // by name
	drawn int    // lines at the bottom that are there now
	// midline says that the last line written has no end yet: nothing can be drawn below it.
	midline bool
}

type line struct{ name, text string }

// NewScreen makes one of a terminal. width says how many characters fit into a line now, 0 where it does not know.
func NewScreen(w io.Writer, width func() int) *Screen { return &Screen{w: w, width: width} }

// Write implements io.Writer.
func (s *Screen) Write(p []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(p) > 0 {
		s.midline = p[len(p)-1] != '\n'
	}
	if err := s.draw(p); err != nil {
		return 0, err
	}
	return len(p), nil
}

// set changes the line of a name; an empty text takes it away.
func (s *Screen) set(name, text string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	i, found := slices.BinarySearchFunc(s.lines, name, func(l line, name string) int { return strings.Compare(l.name, name) })
	switch {
	case found && text == "":
		s.lines = slices.Delete(s.lines, i, i+1)
	case found && s.lines[i].text != text:
		s.lines[i].text = text
	case !found && text != "":
		s.lines = slices.Insert(s.lines, i, line{name, text})
	default:
		return
	}
	_ = s.draw(nil) // a terminal that is gone has nobody to tell
}

// draw replaces the lines at the bottom by what is to stand above them and the lines there are now, in one write.
func (s *Screen) draw(above []byte) error {
	var out bytes.Buffer
	if s.drawn > 0 {
		fmt.Fprintf(&out, "\x1b[%dA\x1b[J", s.drawn) // up, and clear what is below
		s.drawn = 0
	}
	out.Write(above)
	if !s.midline {
		for i, l := range s.lines {
			text := l.name + ": " + l.text
			if i == mostLines-1 && len(s.lines) > mostLines {
				text = fmt.Sprintf("… and %d more", len(s.lines)-i)
			}
			// One character is left free: in the last column some terminals wrap at once.
			out.WriteString(cut(text, s.columns()-1) + "\n")
			s.drawn++
			if s.drawn == mostLines {
				break
			}
		}
	}
	_, err := s.w.Write(out.Bytes())
	return err
}

func (s *Screen) columns() int {
	if width := s.width(); width > 1 {
		return width
	}
	return defaultWidth
}

func cut(text string, longest int) string {
	if runes := []rune(text); len(runes) > longest {
		return string(runes[:longest])
	}
	return text
}
