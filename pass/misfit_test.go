package pass

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"

	"github.com/syncpass/syncpass/policy"
)

func TestMisfit(t *testing.T) {
	for _, tt := range []struct {
		name             string
		rendered, wanted time.Duration
		paused, forAll   bool
		fits             bool
	}{
		{name: "nobody says what passes were rendered for", wanted: time.Hour, fits: true},
		{name: "the same interval", rendered: 30 * time.Second, wanted: 30 * time.Second, fits: true},
		{name: "the process itself follows the policy within a minute", rendered: 30 * time.Second, wanted: 10 * time.Second, fits: true},
		{name: "cron says both in the same way", rendered: 5 * time.Minute, wanted: 5*time.Minute + 30*time.Second, fits: true},
		{name: "too often", rendered: 30 * time.Second, wanted: 5 * time.Minute},
		{name: "not often enough", rendered: 5 * time.Minute, wanted: 30 * time.Second},
		{name: "a paused policy asks for nothing", rendered: 5 * time.Minute, wanted: 30 * time.Second, paused: true, fits: true},
		{name: "other tenants ask for more", rendered: 30 * time.Second, wanted: 5 * time.Minute, forAll: true, fits: true},
		{name: "this one asks for the most", rendered: 5 * time.Minute, wanted: 30 * time.Second, forAll: true},
	} {
		t.Run(tt.name, func(t *testing.T) {
			got := misfit(policy.Schedule{Enabled: !tt.paused, Interval: tt.wanted}, Options{RenderedInterval: tt.rendered, RenderedForAll: tt.forAll})
			if tt.fits {
				assert.Empty(t, got)
			} else {
				assert.Contains(t, got, "asks for a pass every "+tt.wanted.String()+", and the schedule that started this one was rendered for every "+tt.rendered.String())
			}
		})
	}
}
