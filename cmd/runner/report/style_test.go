package report

import (
	"image/color"
	"math"
	"regexp"
	"testing"

	"github.com/stretchr/testify/require"
)

// contrast is the WCAG's: https://www.w3.org/TR/WCAG22/#dfn-contrast-ratio.
func contrast(a, b color.RGBA) float64 {
	luminance := func(c color.RGBA) float64 {
		linear := func(v uint8) float64 {
			x := float64(v) / 255
			if x <= 0.04045 {
				return x / 12.92
			}
			return math.Pow((x+0.055)/1.055, 2.4)
		}
		return 0.2126*linear(c.R) + 0.7152*linear(c.G) + 0.0722*linear(c.B)
	}
	high, low := luminance(a), luminance(b)
	if low > high {
		high, low = low, high
	}
	return (high + 0.05) / (low + 0.05)
}

func TestTextAndBarsStandOutInLightAndDark(t *testing.T) {
	for scheme, all := range colours(t) {
		for _, ground := range []string{"ground", "raised"} {
			for _, text := range []string{"ink", "quiet", "link", "alert"} {
				require.GreaterOrEqual(t, contrast(all[text], all[ground]), 4.5, "%s: %s on %s", scheme, text, ground)
			}
		}
		for _, bar := range []string{"create", "update", "delete", "skip"} {
			require.GreaterOrEqual(t, contrast(all[bar], all["ground"]), 3.0, "%s: %s", scheme, bar)
		}
	}
}

func TestThePageLoadsNothing(t *testing.T) {
	page := written(t, HTML, sample())
	require.NotRegexp(t, regexp.MustCompile(`(?i)\b(src|srcset|action|background|data|poster)=|url\(|@import|<(script|link|iframe|object|embed|form|base)\b`), page)
	for _, reference := range regexp.MustCompile(`href="([^"]*)"`).FindAllStringSubmatch(page, -1) {
		require.Regexp(t, `^#`, reference[1])
	}
	require.Contains(t, page, "default-src &#39;none&#39;")
}
