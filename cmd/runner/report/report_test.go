package report

import (
	"bytes"
	"flag"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"golang.org/x/net/html"
	"golang.org/x/net/html/atom"
	"k8s.io/utils/ptr"

	"github.com/syncpass/syncpass/record"
)

var update = flag.Bool("update", false, "write the golden files, and the picture in docs, anew")

func written(t *testing.T, format Format, in Input) string {
	t.Helper()
	var out bytes.Buffer
	require.NoError(t, Write(&out, format, in))
	return out.String()
}

func golden(t *testing.T, name, got string) {
	t.Helper()
	path := filepath.Join("testdata", name)
	if *update {
		require.NoError(t, os.WriteFile(path, []byte(got), 0o644))
	}
	want, err := os.ReadFile(path)
	require.NoError(t, err, "go test ./cmd/runner/report -update writes it")
	assert.Equal(t, string(want), got, "go test ./cmd/runner/report -update accepts a change")
}

func TestReport(t *testing.T) {
	for name, in := range map[string]Input{"sample": sample(), "none": {Now: now, Command: "runner"}} {
		for _, format := range Formats {
			t.Run(name+"."+string(format), func(t *testing.T) {
				got := written(t, format, in)
				golden(t, name+"."+string(format), got)
				require.Equal(t, got, written(t, format, in), "the same input gives the same page")
			})
		}
	}
	require.ErrorContains(t, Write(&bytes.Buffer{}, "pdf", Input{}), "pdf")
}

// hostile texts try to leave where they stand: for HTML, for Markdown, for a shell and for a terminal.
var hostile = []string{
	`<script>alert(1)</script>`, `"><img src=x onerror=alert(1)>`, `</style></title></svg><b>`, `{{.Now}}`, `javascript:alert(1)`,
	"[a](http://evil.example)", "![a](http://evil.example/a.png)", "`a` | b | @somebody #1", "a\n\n# heading", "a\x1b[31mred", "\u202egnp.exe",
	`$(reboot)`, "a; reboot", "-h", `a\`, `\|`, "*a* _b_ ~c~", "&lt;b&gt;", " ", "``",
}

func hostileTenant(text string) Input {
	t := newTenant("team-dev", "dev")
	t.Policy.Name = text
	for _, reason := range []record.Reason{record.Conflict, record.Rejected, record.NotOwned, record.GuardMaxDeletes} {
		d := t.decision(record.Skip, reason, "v1", "ConfigMap", text, text+string(reason))
		d.HostName, d.Message, d.Error, d.Fields = text, text, text, []string{text}
		t.holds(d, time.Hour)
	}
	t.holds(t.decision(record.Skip, record.Conflict, "v1", text, "a", "a"), time.Hour)
	t.Status.LastPass = &record.LastPass{ID: text, Outcome: record.Outcome(text), Message: text}
	t.Problems = []string{text}
	return Input{Now: now, Command: "runner", Tenants: []Tenant{t.Tenant}}
}

func TestAHostileTextStaysText(t *testing.T) {
	tag := regexp.MustCompile(`<[^>]*>`)
	// Pages without anything hostile have the tags, attributes and all, that a page with it may have.
	harmless := map[string]bool{}
	for _, in := range []Input{hostileTenant("a"), hostileTenant("$"), sample()} {
		for _, found := range tag.FindAllString(written(t, HTML, in), -1) {
			harmless[found] = true
		}
	}
	for _, text := range hostile {
		t.Run(text, func(t *testing.T) {
			page := written(t, HTML, hostileTenant(text))
			for _, found := range tag.FindAllString(page, -1) {
				require.True(t, harmless[found], found)
			}
			for _, active := range []string{"<script", "<img", "onerror=alert(1)>", "javascript:alert(1)\"", "\x1b", "\u202e"} {
				require.NotContains(t, page, active)
			}

			md := written(t, Markdown, hostileTenant(text))
			lines := strings.Split(md, "\n")
			for _, line := range lines {
				// What is left without the code is this package's own, but for what it quotes.
				own := regexp.MustCompile("`[^`|\\\\<>&]*`|<code>[A-Za-z0-9 &#;]*</code>").ReplaceAllString(line, "")
				require.NotRegexp(t, "[`<>@\x1b\u202e]|evil|reboot|onerror|\\{\\{", own, line)
				require.False(t, strings.HasPrefix(own, "# ") && own != "# syncpass report", line)
			}
			for _, page := range []string{page, md} {
				require.NotRegexp(t, `resolve configmap [^ ]*/`, page, "no command with such a name")
			}
		})
	}
}

// A tree that looks harmless may be another one where it is read: html.Render's documentation tells how.
func TestABrowserReadsTheTreeThatWasWritten(t *testing.T) {
	for _, text := range append([]string{"a"}, hostile...) {
		for _, in := range []Input{hostileTenant(text), sample(), {Now: now}} {
			page := written(t, HTML, in)
			read, err := html.Parse(strings.NewReader(page))
			require.NoError(t, err)
			var again strings.Builder
			require.NoError(t, html.Render(&again, read))
			// Where lines break between elements is the reader's to say, and no text has a line break in it.
			require.Equal(t, strings.ReplaceAll(page, "\n", ""), strings.ReplaceAll(again.String(), "\n", ""))
		}
	}
}

func TestATextAndAValueAreReadAsTheyWere(t *testing.T) {
	for _, s := range append([]string{`"`, `'`, "&amp;", `x" onload="alert(1)`, "a\rb"}, hostile...) {
		var written strings.Builder
		require.NoError(t, html.Render(&written, element("p", at("title", s), text(s))[0]))
		read, err := html.ParseFragment(strings.NewReader(written.String()), &html.Node{Type: html.ElementNode, Data: "body", DataAtom: atom.Body})
		require.NoError(t, err)
		require.Len(t, read, 1)
		require.Equal(t, []html.Attribute{{Key: "title", Val: s}}, read[0].Attr)
		require.Equal(t, s, read[0].FirstChild.Data)
		require.Nil(t, read[0].FirstChild.NextSibling)
	}
}

func TestACommandIsForTheTenantAndTheKindsGroup(t *testing.T) {
	tenant := Tenant{Namespace: "team-dev", Name: "dev"}
	require.Equal(t, []string{
		"kubectl syncpass resolve deployment.apps shop/web --keep tenant -n team-dev --tenant dev",
		"kubectl syncpass resolve deployment.apps shop/web --keep host -n team-dev --tenant dev",
	}, keep("kubectl syncpass", tenant, record.Key{Group: "apps", Kind: "Deployment", Namespace: "shop", Name: "web"}))
	require.Nil(t, keep("runner", tenant, record.Key{Kind: "ConfigMap", Namespace: "shop", Name: "--all"}))
	require.Nil(t, keep("runner", tenant, record.Key{Kind: "ConfigMap", Namespace: "shop", Name: "a b"}))
}

func TestAPlanIsConfirmedByWhatTheGuardSaidLast(t *testing.T) {
	for name, test := range map[string]struct{ message, want string }{
		"the end of the message names the plan":        {"withheld: cause; tenantplane.io/confirm-deletes=" + planID, planID},
		"a tenant that is quoted before it does not":   {`UID "tenantplane.io/confirm-deletes=ffffffffffffffff"; tenantplane.io/confirm-deletes=` + planID, planID},
		"one that is quoted in a message that was cut": {`UID "tenantplane.io/confirm-deletes=ffffffffffffffff"…`, ""},
		"what is no plan is none":                      {"tenantplane.io/confirm-deletes=$(reboot)", ""},
	} {
		t.Run(name, func(t *testing.T) {
			tenant := newTenant("team-dev", "dev")
			tenant.held(record.GuardTenantIdentity, "v1", "ConfigMap", "older", "tenantplane.io/confirm-deletes=aaaaaaaaaaaaaaaa", time.Hour)
			tenant.Status.Entries = nil // the trail has lost it
			tenant.held(record.GuardTenantIdentity, "v1", "ConfigMap", "a", test.message, time.Minute)
			g := guardsOf(tenant.Tenant, standingOf(tenant.Tenant, Input{Now: now}).withheld, now)
			require.Equal(t, test.want, g.PlanID)
			require.Equal(t, test.want != "", strings.HasSuffix(g.Confirm, "="+planID))
			require.Equal(t, 2, g.Withheld.Count)
			require.Equal(t, "2026-03-14 14:09:26 UTC", g.Causes[0].Since.Text)
		})
	}
}

func TestWhenTheNextPassIsDue(t *testing.T) {
	every := func(change func(*Tenant)) Tenant {
		tenant := newTenant("team-dev", "dev").Tenant
		change(&tenant)
		return tenant
	}
	for name, test := range map[string]struct {
		tenant Tenant
		want   string
	}{
		"an interval after the last one began": {every(func(*Tenant) {}), " 2026-03-14 15:12:26 UTC in 3m"},
		"that is over":                         {every(func(t *Tenant) { t.Run.Began = now.Add(-time.Hour) }), "since 2026-03-14 14:14:26 UTC 55m ago"},
		"while one is running":                 {every(func(t *Tenant) { t.Run.Holder = "me" }), "a pass is running"},
		"with a paused policy":                 {every(func(t *Tenant) { t.Policy.Spec.DriftDetection.Enabled = ptr.To(false) }), "never, the policy is paused (driftDetection.enabled: false)"},
		"before the first pass":                {every(func(t *Tenant) { t.Run = nil }), "not known, since no pass has left its Lease"},
		"without the policy":                   {every(func(t *Tenant) { t.Policy = nil }), "not known, since the policy could not be read"},
	} {
		t.Run(name, func(t *testing.T) {
			got := dueOf(test.tenant, now)
			text := got.Text
			if got.At != nil {
				text += " " + got.At.Text + " " + got.At.Distance
			}
			require.Equal(t, test.want, text)
		})
	}
}

func TestEachPairIsInOneColumn(t *testing.T) {
	rows, total := pairsOf(busy())
	for _, row := range append(rows, total) {
		require.Equal(t, row.All, row.Agreed+row.Conflict+row.Withheld+row.Held+row.Unconfirmed, row.Kind)
	}
	require.Equal(t, kindRow{Kind: "ConfigMap", Direction: "bidirectional", Agreed: 12, Conflict: 2, Held: 1, Unconfirmed: 1, All: 16}, rows[0])
	require.Equal(t, kindRow{Kind: "Job.batch", Direction: "not in the policy", Agreed: 1, All: 1}, rows[len(rows)-1], "a kind that the policy does not name comes last")
	require.Equal(t, busy().History.Pairs(), total.All)
}

func TestALongTableIsCutAndSaysSo(t *testing.T) {
	tenant := newTenant("team-dev", "dev")
	tenant.agreed("v1", "ConfigMap", "c", maxRows+7, time.Hour)
	for i := range maxRows + 7 {
		tenant.held(record.Conflict, "v1", "ConfigMap", tenant.Status.Entries[i].TenantName, "both sides changed", time.Minute)
	}
	in := Input{Now: now, Command: "runner", Tenants: []Tenant{tenant.Tenant}}
	for _, format := range Formats {
		page := written(t, format, in)
		require.Contains(t, page, "7 more of 207 are not shown.")
		require.Equal(t, maxRows, strings.Count(page, "--keep tenant"))
	}
}
