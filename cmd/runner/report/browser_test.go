package report

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"html"
	"image"
	"image/color"
	"image/draw"
	"image/png"
	"maps"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// chromium runs a headless one over a page, without a profile that outlives it, and returns what it printed.
func chromium(t *testing.T, scheme string, arguments ...string) string {
	t.Helper()
	if testing.Short() {
		t.Skip("starts a browser")
	}
	var binary string
	for _, name := range []string{"chromium", "chromium-browser", "google-chrome"} {
		if path, err := exec.LookPath(name); err == nil {
			binary = path
			break
		}
	}
	if binary == "" {
		t.Skip("no chromium is on the PATH: on Debian, apt-get install --no-install-recommends chromium")
	}
	// 0 is dark and 1 is light: third_party/blink/public/common/css/preferred_color_scheme.h.
	preferred := map[string]string{"dark": "0", "light": "1"}[scheme]
	command := exec.CommandContext(t.Context(), binary, append([]string{
		"--headless", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--disable-background-networking", "--no-first-run",
		"--hide-scrollbars", "--force-device-scale-factor=1", "--virtual-time-budget=10000", "--user-data-dir=" + t.TempDir(),
		"--blink-settings=preferredColorScheme=" + preferred,
	}, arguments...)...)
	var out, log bytes.Buffer
	command.Stdout, command.Stderr = &out, &log
	require.NoError(t, command.Run(), "%s:\n%s", binary, &log)
	return out.String()
}

// measured is what the frame below finds out about the page in it.
type measured struct {
	Ground, Scheme       string
	Scrolls              int
	Caption              string
	Pairs                [][]string
	Scopes               []string
	Focus                []string
	SkipShown            bool
	Named, Bars, Scripts int
	Hidden               []string
	Resources            int
}

// frame shows the page as wide as it is told, and says what became of it. The page itself has no script.
const frame = `<!DOCTYPE html><body style="margin:0"><iframe id="f" style="width:%dpx;height:900px;border:0" src="/report"></iframe><pre id="measured"></pre><script>
document.getElementById('f').onload = e => {
  const w = e.target.contentWindow, d = w.document, all = q => [...d.querySelectorAll(q)], text = n => n.textContent.trim();
  const table = d.querySelector('table.pairs'), skip = d.querySelector('.skip-link');
  const focusable = all('a[href], summary, [tabindex="0"]');
  focusable.forEach(n => n.focus());
  skip.focus();
  const box = skip.getBoundingClientRect();
  document.getElementById('measured').textContent = JSON.stringify({
    Ground: w.getComputedStyle(d.body).backgroundColor, Scheme: w.matchMedia('(prefers-color-scheme: dark)').matches ? 'dark' : 'light',
    Scrolls: d.documentElement.scrollWidth - d.documentElement.clientWidth,
    Caption: text(table.caption), Pairs: [...table.rows].map(r => [...r.cells].map(text)),
    Scopes: [...new Set(all('th').map(n => n.getAttribute('scope')))],
    Focus: focusable.slice(0, 3).map(n => n.getAttribute('aria-label') || text(n)),
    SkipShown: box.left >= 0 && box.top >= 0 && box.width > 0,
    Named: all('section').filter(n => text(d.getElementById(n.getAttribute('aria-labelledby')))).length,
    Bars: all('svg rect').filter(n => n.getBoundingClientRect().height > 0).length,
    Scripts: d.scripts.length,
    Hidden: all('table, svg').filter(n => !n.closest('details') && n.getBoundingClientRect().width < 200).map(n => n.outerHTML.slice(0, 80)),
    Resources: w.performance.getEntriesByType('resource').length,
  });
};
</script>`

// served serves a page, and the frame around it, and keeps a list of what was asked for.
func served(t *testing.T, page string) (address string, asked func() []string) {
	var mu sync.Mutex
	var paths []string
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		mu.Lock()
		paths = append(paths, r.URL.Path)
		mu.Unlock()
		w.Header().Set("Content-Type", "text/html; charset=utf-8")
		switch r.URL.Path {
		case "/report":
			fmt.Fprint(w, page)
		case "/400":
			fmt.Fprintf(w, frame, 400)
		case "/1280":
			fmt.Fprintf(w, frame, 1280)
		default:
			http.NotFound(w, r)
		}
	}))
	t.Cleanup(server.Close)
	return server.URL, func() []string {
		mu.Lock()
		defer mu.Unlock()
		return paths
	}
}

func TestInABrowser(t *testing.T) {
	page := written(t, HTML, sample())
	for scheme, ground := range map[string]string{"light": "rgb(255, 255, 255)", "dark": "rgb(20, 23, 27)"} {
		for _, width := range []int{1280, 400} {
			t.Run(fmt.Sprintf("%s at %d", scheme, width), func(t *testing.T) {
				address, asked := served(t, page)
				dom := chromium(t, scheme, "--window-size=1280,1000", "--dump-dom", fmt.Sprintf("%s/%d", address, width))
				match := regexp.MustCompile(`<pre id="measured">(.+)</pre>`).FindStringSubmatch(dom)
				require.NotNil(t, match, dom)
				var m measured
				require.NoError(t, json.Unmarshal([]byte(html.UnescapeString(match[1])), &m))

				assert.Equal(t, scheme, m.Scheme)
				assert.Equal(t, ground, m.Ground, "the style sheet applies, so the page's own policy lets it through")
				assert.LessOrEqual(t, m.Scrolls, 0, "the page is no wider than the window")
				assert.Empty(t, m.Hidden)
				assert.Contains(t, m.Caption, "Each pair is in one column")
				assert.Equal(t, [][]string{
					{"Kind", "Direction", "Agreed", "Conflict", "Withheld", "Held", "Unconfirmed", "All"},
					{"ConfigMap", "bidirectional", "12", "2", "0", "1", "1", "16"},
					{"Secret", "bidirectional", "6", "1", "0", "0", "0", "7"},
					{"Service", "bidirectional", "9", "1", "0", "0", "0", "10"},
					{"Pod", "toHost", "11", "0", "0", "1", "0", "12"},
					{"Deployment.apps", "toHost", "6", "0", "0", "0", "0", "6"},
					{"Job.batch", "not in the policy", "1", "0", "0", "0", "0", "1"},
					{"All kinds", "45", "4", "0", "2", "1", "52"},
				}, m.Pairs)
				assert.ElementsMatch(t, []string{"col", "row"}, m.Scopes, "every heading of a table says what it is of")
				assert.Equal(t, []string{"Skip to the report", "Tenants", "team-dev/dev"}, m.Focus)
				assert.True(t, m.SkipShown, "the link that skips shows when it has the focus")
				assert.Equal(t, 4, m.Named, "every section has a heading")
				assert.Greater(t, m.Bars, 20)
				assert.Zero(t, m.Scripts)
				assert.Zero(t, m.Resources)
				for _, path := range asked() {
					assert.Contains(t, []string{"/report", fmt.Sprint("/", width), "/favicon.ico"}, path, "the page loads nothing")
				}
			})
		}
	}
}

func TestAHostilePageRunsNothingInABrowser(t *testing.T) {
	address, asked := served(t, written(t, HTML, hostileTenant(`</style></title><script src="/evil"></script><img src="/evil" onerror="document.title='evil'">`)))
	dom := chromium(t, "light", "--dump-dom", address+"/report")
	assert.Contains(t, dom, "<title>syncpass report</title>")
	assert.NotContains(t, dom, "<img")
	assert.NotContains(t, asked(), "/evil")
}

// pictured is the part of the page that the picture shows, down to the plot.
var pictured = image.Rect(0, 0, 1280, 2190)

// picture is where the documentation shows the page.
var picture = filepath.Join("..", "..", "..", "docs", "report.png")

func TestThePicture(t *testing.T) {
	address, _ := served(t, written(t, HTML, Input{Now: now, Command: "runner", Tenants: []Tenant{busy()}}))
	for scheme, ground := range map[string]color.RGBA{"light": {255, 255, 255, 255}, "dark": {20, 23, 27, 255}} {
		t.Run(scheme, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "report.png")
			// The window has a frame, which the picture is as high as, and the page is not: the rest stays unpainted.
			chromium(t, scheme, fmt.Sprintf("--window-size=%d,%d", pictured.Dx(), pictured.Dy()+300), "--screenshot="+path, address+"/report")
			data, err := os.ReadFile(path)
			require.NoError(t, err)
			shot := image.NewRGBA(pictured)
			draw.Draw(shot, pictured, decoded(t, data), image.Point{}, draw.Src)
			assert.Equal(t, ground, color.RGBAModel.Convert(shot.At(2, 2)))
			for name, want := range colours(t)[scheme] {
				if name == "create" || name == "update" || name == "delete" || name == "skip" {
					assert.True(t, shows(shot, want), "no pixel has the colour of %s", name)
				}
			}
			if *update && scheme == "light" {
				require.NoError(t, os.MkdirAll(filepath.Dir(picture), 0o755))
				require.NoError(t, os.WriteFile(picture, smaller(t, shot), 0o644))
			}
		})
	}
	data, err := os.ReadFile(picture)
	require.NoError(t, err, "go test ./cmd/runner/report -update makes it")
	assert.Less(t, len(data), 200_000)
	assert.Equal(t, pictured, decoded(t, data).Bounds())
}

// smaller is a picture with its 256 most frequent colours alone. What differs is the soft edge of letters.
func smaller(t *testing.T, shot image.Image) []byte {
	t.Helper()
	seen := map[color.RGBA]int{}
	for y := range pictured.Dy() {
		for x := range pictured.Dx() {
			seen[color.RGBAModel.Convert(shot.At(x, y)).(color.RGBA)]++
		}
	}
	all := slices.SortedFunc(maps.Keys(seen), func(a, b color.RGBA) int {
		return cmp.Or(seen[b]-seen[a], int(a.R)-int(b.R), int(a.G)-int(b.G), int(a.B)-int(b.B))
	})
	var palette color.Palette
	for _, c := range all[:min(256, len(all))] {
		palette = append(palette, c)
	}
	small := image.NewPaletted(shot.Bounds(), palette)
	draw.Draw(small, small.Bounds(), shot, image.Point{}, draw.Src)
	var out bytes.Buffer
	require.NoError(t, (&png.Encoder{CompressionLevel: png.BestCompression}).Encode(&out, small))
	return out.Bytes()
}

func decoded(t *testing.T, data []byte) image.Image {
	t.Helper()
	shot, err := png.Decode(bytes.NewReader(data))
	require.NoError(t, err)
	return shot
}

// shows says whether a picture has a pixel of that colour.
func shows(shot image.Image, want color.RGBA) bool {
	for y := range shot.Bounds().Dy() {
		for x := range shot.Bounds().Dx() {
			if color.RGBAModel.Convert(shot.At(x, y)) == want {
				return true
			}
		}
	}
	return false
}

// colours are the style sheet's, by scheme and name.
func colours(t *testing.T) map[string]map[string]color.RGBA {
	t.Helper()
	light, dark, found := strings.Cut(style, "@media (prefers-color-scheme: dark)")
	require.True(t, found)
	all := map[string]map[string]color.RGBA{"light": {}, "dark": {}}
	for scheme, text := range map[string]string{"light": light, "dark": dark} {
		for _, match := range regexp.MustCompile(`--([a-z]+): #([0-9a-f]{6});`).FindAllStringSubmatch(text, -1) {
			var c color.RGBA
			_, err := fmt.Sscanf(match[2], "%02x%02x%02x", &c.R, &c.G, &c.B)
			require.NoError(t, err)
			c.A = 255
			all[scheme][match[1]] = c
		}
		require.Len(t, all[scheme], 11)
	}
	return all
}
