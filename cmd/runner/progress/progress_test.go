package progress

import (
	"bytes"
	"errors"
	"fmt"
	"log/slog"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/syncpass/syncpass/pass"
)

// terminal does what a terminal does with the sequences that a Screen writes.
type terminal struct {
	mu    sync.Mutex
	lines []string
	row   int
}

var up = regexp.MustCompile(`^\x1b\[(\d+)A\x1b\[J`)

func (t *terminal) Write(p []byte) (int, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for text := string(p); text != ""; {
		if t.row == len(t.lines) {
			t.lines = append(t.lines, "")
		}
		if move := up.FindStringSubmatch(text); move != nil {
			n, _ := strconv.Atoi(move[1])
			t.row -= n
			t.lines = t.lines[:t.row]
			text = text[len(move[0]):]
			continue
		}
		if text[0] == '\n' {
			t.row++
		} else {
			t.lines[t.row] += text[:1]
		}
		text = text[1:]
	}
	return len(p), nil
}

// shows are the lines that stand on the terminal.
func (t *terminal) shows() []string {
	t.mu.Lock()
	defer t.mu.Unlock()
	return append([]string{}, t.lines...)
}

func TestALineChangesInPlaceBelowTheLog(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var terminal terminal
		screen := NewScreen(&terminal, func() int { return 0 })
		log := slog.New(slog.NewTextHandler(screen, &slog.HandlerOptions{ReplaceAttr: withoutTime}))

		p := Follow(screen, nil, "team-dev/dev")
		assert.Empty(t, terminal.shows(), "a pass that is over at once leaves no trace")
		p.Phase(pass.PhaseSnapshot)
		time.Sleep(3500 * time.Millisecond)
		synctest.Wait()
		assert.Equal(t, []string{"team-dev/dev: snapshot, 3s"}, terminal.shows())

		log.Warn("Something happened", "n", 1)
		p.Phase(pass.PhaseApply)
		p.Writes(0, 450)
		time.Sleep(time.Second)
		synctest.Wait()
		assert.Equal(t, []string{`level=WARN msg="Something happened" n=1`, "team-dev/dev: apply 0/450"}, terminal.shows())

		time.Sleep(3 * time.Second)
		p.Writes(120, 450)
		p.Writes(119, 450) // overtaken
		time.Sleep(lineEvery)
		synctest.Wait()
		log.Warn("Something happened", "n", 2)
		assert.Equal(t, []string{`level=WARN msg="Something happened" n=1`, `level=WARN msg="Something happened" n=2`,
			"team-dev/dev: apply 120/450, 29.3/s, 12s left"}, terminal.shows())

		p.Phase(pass.PhaseRecord)
		time.Sleep(lineEvery)
		synctest.Wait()
		assert.Equal(t, "team-dev/dev: record, 7s", terminal.shows()[2])
		p.End()
		assert.Equal(t, []string{`level=WARN msg="Something happened" n=1`, `level=WARN msg="Something happened" n=2`}, terminal.shows())
	})
}

func TestEachTenantHasALineAndTheTerminalBoundsThem(t *testing.T) {
	var terminal terminal
	screen := NewScreen(&terminal, func() int { return 20 })
	for i := range mostLines + 2 {
		screen.set(fmt.Sprintf("n/%c", 'j'-i), "starting, 0s, and much more than fits")
	}
	want := []string{}
	for i := range mostLines - 1 {
		want = append(want, fmt.Sprintf("n/%c: starting, 0s, ", 'a'+i)[:19])
	}
	assert.Equal(t, append(want, "… and 3 more"), terminal.shows())
	for i := range mostLines + 2 {
		screen.set(fmt.Sprintf("n/%c", 'a'+i), "")
	}
	assert.Empty(t, terminal.shows())
}

func TestNothingIsDrawnIntoALineThatHasNoEndYet(t *testing.T) {
	var terminal terminal
	screen := NewScreen(&terminal, func() int { return 80 })
	screen.set("n/a", "starting, 0s")
	for _, part := range []string{"error: ", "half a line", "\n"} {
		_, err := screen.Write([]byte(part))
		require.NoError(t, err)
		screen.set("n/a", "at "+strconv.Quote(part))
	}
	assert.Equal(t, []string{"error: half a line", `n/a: at "\n"`}, terminal.shows())
}

func TestManyWritersTearNothing(t *testing.T) {
	var terminal terminal
	screen := NewScreen(&terminal, func() int { return 80 })
	var group sync.WaitGroup
	for writer := range 8 {
		group.Go(func() {
			name := fmt.Sprintf("n/%d", writer)
			for i := range 50 {
				screen.set(name, fmt.Sprintf("apply %d/50", i))
				fmt.Fprintf(screen, "line %d of %d\n", i, writer)
			}
			screen.set(name, "")
		})
	}
	group.Wait()
	shown := terminal.shows()
	assert.Len(t, shown, 8*50)
	for _, line := range shown {
		assert.Regexp(t, `^line \d+ of \d$`, line)
	}
}

func TestElsewhereTheLogHasALineEveryTenSeconds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var out bytes.Buffer
		p := Follow(nil, slog.New(slog.NewTextHandler(&out, &slog.HandlerOptions{ReplaceAttr: withoutTime})), "team-dev/dev")
		time.Sleep(9 * time.Second)
		p.Phase(pass.PhaseSnapshot)
		time.Sleep(6 * time.Second)
		p.Phase(pass.PhaseApply)
		p.Writes(0, 1000)
		time.Sleep(2 * time.Second)
		p.Writes(30, 1000)
		time.Sleep(12 * time.Second)
		p.End()
		time.Sleep(time.Minute)
		assert.Equal(t, strings.Join([]string{
			`level=INFO msg="Pass under way" phase=snapshot seconds=10`,
			`level=INFO msg="Pass under way" phase=apply seconds=20 done=30 total=1000 perSecond=6 secondsLeft=162`, "",
		}, "\n"), out.String())
	})
}

func TestATerminalThatIsGoneIsAnErrorOfTheWriterOnly(t *testing.T) {
	gone := errors.New("input/output error")
	screen := NewScreen(failing{gone}, func() int { return 80 })
	screen.set("n/a", "starting, 0s")
	_, err := screen.Write([]byte("x\n"))
	require.ErrorIs(t, err, gone)
}

type failing struct{ err error }

func (f failing) Write([]byte) (int, error) { return 0, f.err }

func withoutTime(_ []string, attr slog.Attr) slog.Attr {
	if attr.Key == slog.TimeKey {
		return slog.Attr{}
	}
	return attr
}
