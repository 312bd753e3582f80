package main

import (
	"bytes"
	"strings"
	"testing"
	"unicode"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
	"sigs.k8s.io/yaml"

	"github.com/syncpass/syncpass/pass"
	"github.com/syncpass/syncpass/record"
)

type object = map[string]any

// diffedPass is onePass with what its decisions change; texts that do something to terminals are among it.
func diffedPass() pass.Result {
	r := onePass()
	configMap := func(namespace, name string, data object) object {
		return object{"apiVersion": "v1", "kind": "ConfigMap", "metadata": object{"namespace": namespace, "name": name}, "data": data}
	}
	deployment := func(replicas int) object {
		return object{"apiVersion": "apps/v1", "kind": "Deployment", "metadata": object{"namespace": "web", "name": "front"},
			"spec": object{"replicas": int64(replicas), "selector": object{"matchLabels": object{"app": "front"}}, "paused": false, "template": object{"metadata": object{"labels": object{"app": "front"}}}}}
	}
	r.Changes = [][]pass.Change{
		{{Side: record.Host, Kind: "ConfigMap", Namespace: "team-dev", Name: "app-x-default-x-dev",
			After: configMap("team-dev", "app-x-default-x-dev", object{"text": "first\nsecond\n", "hostile": "a\x1b[2Jb\r\nc\u202e\"\\", "long": strings.Repeat("word ", 40)})}},
		nil, nil,
		{
			{Side: record.Tenant, Kind: "Deployment", Namespace: "web", Name: "front", Before: deployment(1), After: deployment(3)},
			{Side: record.Host, Kind: "Secret", Namespace: "team-dev", Name: "token-x-web-x-dev",
				Before: object{"kind": "Secret", "data": object{"password": "*** (before)", "user": "***"}},
				After:  object{"kind": "Secret", "data": object{"password": "*** (after)", "user": "***"}}},
		},
		{{Side: record.Host, Kind: "Service", Namespace: "team-dev", Name: "old-x-web-x-dev",
			Before: object{"apiVersion": "v1", "kind": "Service", "metadata": object{"namespace": "team-dev", "name": "old-x-web-x-dev"}}}},
		nil,
	}
	return r
}

func TestDiffs(t *testing.T) {
	undecided := onePass()
	undecided.Undecided = 2
	for _, test := range []struct {
		file     string
		printing printing
		results  []pass.Result
	}{
		{"plan-diff.txt", printing{format: "table", dryRun: true, diff: true}, []pass.Result{diffedPass()}},
		{"plan-diff-wide.txt", printing{format: "wide", dryRun: true, diff: true}, []pass.Result{diffedPass()}},
		{"plan-diff-colour.txt", printing{format: "table", dryRun: true, diff: true, colour: true}, []pass.Result{diffedPass()}},
		{"plan-diff.json", printing{format: "json", dryRun: true, diff: true}, []pass.Result{diffedPass(), {}}},
		{"plan-diff.yaml", printing{format: "yaml", dryRun: true, diff: true}, []pass.Result{diffedPass()}},
		{"plan-undecided.txt", printing{format: "table", dryRun: true}, []pass.Result{undecided}},
		{"plan-wide.txt", printing{format: "wide", dryRun: true}, []pass.Result{onePass()}},
		{"plan-name.txt", printing{format: "name", dryRun: true}, []pass.Result{onePass()}},
	} {
		t.Run(test.file, func(t *testing.T) {
			var out bytes.Buffer
			require.NoError(t, test.printing.print(&out, test.results))
			golden(t, test.file, out.String())
		})
	}
}

func TestColoursAreTheOnlyDifference(t *testing.T) {
	var plain, colour bytes.Buffer
	require.NoError(t, printing{format: "wide", dryRun: true, diff: true}.print(&plain, []pass.Result{diffedPass()}))
	require.NoError(t, printing{format: "wide", dryRun: true, diff: true, colour: true}.print(&colour, []pass.Result{diffedPass()}))
	without := strings.NewReplacer("\x1b[0m", "", "\x1b[1m", "", "\x1b[31m", "", "\x1b[32m", "", "\x1b[33m", "", "\x1b[35m", "", "\x1b[36m", "")
	assert.Equal(t, plain.String(), without.Replace(colour.String()))
	assert.NotContains(t, plain.String(), "\x1b")
}

func TestWhenThereIsColour(t *testing.T) {
	for _, test := range []struct {
		mode    colourMode
		tty     bool
		noColor string
		want    bool
	}{
		{"auto", true, "", true},
		{"auto", false, "", false},
		{"auto", true, "1", false},
		{"auto", true, "0", false},
		{"always", false, "", true},
		{"always", false, "1", true},
		{"never", true, "", false},
	} {
		env := func(name string) (string, bool) { return test.noColor, name == "NO_COLOR" }
		assert.Equal(t, test.want, test.mode.on(test.tty, env), "%+v", test)
	}
	var mode colourMode
	assert.ErrorContains(t, mode.Set("sometimes"), "accepted are auto, always, never")
}

// Whatever an object holds, its YAML can act on no terminal, and says what the object does.
func TestPrintableYAML(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		texts := rapid.OneOf(rapid.String(), rapid.SampledFrom([]string{
			"", "---", "*** (before)", "yes", "1e3", "\x1b[2J", "a\r\nb", "\u202e", "\uE000", "\uE00061\uE000", "\u2028", "\u00a0", "\U0001F600", "\U000E0001", "a\tb\n  c", "|", "\"\\", "\x7f",
		}))
		object := map[string]any{"kind": "ConfigMap", "data": map[string]any{}, "list": []any{texts.Draw(t, "item"), int64(1), true, nil}}
		for range rapid.IntRange(0, 5).Draw(t, "entries") {
			object["data"].(map[string]any)[texts.Draw(t, "key")] = texts.Draw(t, "value")
		}
		text, err := printableYAML(object)
		require.NoError(t, err)
		for _, r := range string(text) {
			require.True(t, r == '\n' || r == '\t' || unicode.IsPrint(r), "%U in %q", r, text)
		}
		var back map[string]any
		require.NoError(t, yaml.Unmarshal(text, &back), "%s", text)
		back["list"].([]any)[1] = int64(1)
		require.Equal(t, object, back, "%s", text)
	})
}
