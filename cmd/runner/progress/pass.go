package progress

import (
	"fmt"
	"log/slog"
	"math"
	"sync"
	"time"

	"github.com/syncpass/syncpass/pass"
)

const (
	// lineEvery is how often the line on a terminal is brought up to date, logEvery how often the log has one. A pass that
	// is over before has none.
	lineEvery = 200 * time.Millisecond
	logEvery  = 10 * time.Second
)

// Pass is a pass that is followed. Safe for concurrent use.
type Pass struct {
	began time.Time
	stop  func()

	mu          sync.Mutex
	phase       pass.Phase
	done, total int
	applying    time.Time // since when there are writes
}

// Follow begins to tell how a pass gets on, on the screen under a name, or in the log where there is no screen. The
// caller ends it.
func Follow(screen *Screen, log *slog.Logger, name string) *Pass {
	p := &Pass{began: time.Now()}
	every, tell, after := logEvery, func() { log.Info("Pass under way", p.attributes()...) }, func() {}
	if screen != nil {
		every, tell, after = lineEvery, func() { screen.set(name, p.text()) }, func() { screen.set(name, "") }
	}
	ending, ended := make(chan struct{}), make(chan struct{})
	p.stop = func() {
		close(ending)
		<-ended
	}
	go func() {
		defer close(ended)
		defer after()
		ticker := time.NewTicker(every)
		defer ticker.Stop()
		for {
			select {
			case <-ending:
				return
			case <-ticker.C:
				tell()
			}
		}
	}()
	return p
}

// End stops telling, and takes the line away. It is called once.
func (p *Pass) End() { p.stop() }

// Phase says which phase has begun.
func (p *Pass) Phase(phase pass.Phase) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.phase, p.done, p.total = phase, 0, 0
}

// Writes says how many of the writes are done. It has the form of pass.Options.Progress.
func (p *Pass) Writes(done, total int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.total == 0 {
		p.applying = time.Now()
	}
	p.done, p.total = max(done, p.done), total // they may overtake each other
}

// pace is how many writes are done a second, and how long the rest takes at that; ok is false where nobody can tell yet.
func (p *Pass) pace() (perSecond float64, left time.Duration, ok bool) {
	took := time.Since(p.applying).Seconds()
	if p.done == 0 || took <= 0 {
		return 0, 0, false
	}
	perSecond = float64(p.done) / took
	return perSecond, time.Duration(math.Ceil(float64(p.total-p.done)/perSecond)) * time.Second, true
}

// text is the line on the screen.
func (p *Pass) text() string {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.total == 0 {
		return fmt.Sprintf("%s, %s", p.phaseName(), time.Since(p.began).Truncate(time.Second))
	}
	text := fmt.Sprintf("%s %d/%d", p.phaseName(), p.done, p.total)
	if perSecond, left, ok := p.pace(); ok {
		text += fmt.Sprintf(", %.3g/s, %s left", perSecond, left)
	}
	return text
}

// attributes are the same for the log.
func (p *Pass) attributes() []any {
	p.mu.Lock()
	defer p.mu.Unlock()
	attributes := []any{"phase", p.phaseName(), "seconds", math.Round(time.Since(p.began).Seconds())}
	if p.total > 0 {
		attributes = append(attributes, "done", p.done, "total", p.total)
		if perSecond, left, ok := p.pace(); ok {
			attributes = append(attributes, "perSecond", math.Round(perSecond*10)/10, "secondsLeft", left.Seconds())
		}
	}
	return attributes
}

func (p *Pass) phaseName() string {
	if p.phase == "" {
		return "starting"
	}
	return string(p.phase)
}
