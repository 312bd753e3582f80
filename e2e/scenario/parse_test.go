package scenario

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// minimal is a file with one step.
func minimal(step string) string {
	return "name: something holds\nsteps:\n  - " + step + "\n"
}

func TestParseReadsEveryStep(t *testing.T) {
	file, err := Parse([]byte(`
name: everything at once
needs: [tenant-controllers, host-node]
namespaces: [a, b]
policy: {conflictPolicy: host-wins, explain: {retain: 2}}
env: {SYNCPASS_CONCURRENCY: "1"}
files: {policy.yaml: "kind: SyncPolicy"}
steps:
  - apply: {tenant: [{apiVersion: v1, kind: Pod, metadata: {namespace: a, name: p}, spec: {priority: 1}}]}
  - patch: {host: [{apiVersion: v1, kind: Pod, metadata: {namespace: a, name: p}, spec: {x: null}}]}
  - patchStatus: {host: [{apiVersion: v1, kind: Pod, metadata: {namespace: a, name: p}, status: {phase: Running}}]}
  - delete: {tenant: [{apiVersion: v1, kind: Pod, metadata: {namespace: a, name: p}}], graceSeconds: 0}
  - bind: {host: [{ref: {apiVersion: v1, kind: Pod, metadata: {namespace: a, name: p}}, node: n1}]}
  - forgetHistory: true
  - pass: {}
  - plan: {exit: 3, outcome: Guarded, counts: {create: 1}, decisions: [{action: Skip, side: host, kind: Pod, reason: R, object: a/p, host: h, error: e, message: m, fields: [data.a]}], only: true, writes: 0}
  - expect: {host: [{count: {apiVersion: v1, kind: Pod, metadata: {namespace: a, name: p}}, path: "status.x[0]", is: 2}, {events: {reason: NoMirror}, is: 0}], within: 1m30s}
  - mark: {tenant: [{apiVersion: v1, kind: Namespace, metadata: {name: a}}]}
  - run: {args: [explain, pod, a/p], env: {A: b}, exit: 5, stdout: [x], stderr: [w], notStdout: [z]}
  - annotateFromLastPass: {}
  - save: {ip: {side: host, ref: {apiVersion: v1, kind: Pod, metadata: {namespace: a, name: p}}, path: status.podIP}}
`))
	require.NoError(t, err)
	var verbs []string
	for _, step := range file.Steps {
		verbs = append(verbs, step.verb)
	}
	assert.Equal(t, []string{"apply", "patch", "patchStatus", "delete", "bind", "forgetHistory", "pass", "plan", "expect",
		"mark", "run", "annotateFromLastPass", "save"}, verbs)

	assert.Equal(t, Object{"conflictPolicy": "host-wins", "explain": map[string]any{"retain": int64(2)}}, file.Policy)
	assert.Equal(t, int64(1), file.Steps[0].Apply.Tenant[0]["spec"].(map[string]any)["priority"])
	assert.Contains(t, file.Steps[1].Patch.Host[0]["spec"], "x", "null stays, it removes a field")
	assert.Equal(t, int64(0), *file.Steps[3].Delete.GraceSeconds)
	assert.Equal(t, "p", file.Steps[3].Delete.Tenant[0].Metadata.Name)
	assert.Equal(t, &Pass{}, file.Steps[6].Pass)
	plan := file.Steps[7].Plan
	assert.Equal(t, 0, *plan.Writes)
	assert.Equal(t, Decision{Action: "Skip", Side: "host", Kind: "Pod", Reason: "R", Object: "a/p", Host: "h", Error: "e",
		Message: "m", Fields: []string{"data.a"}}, plan.Decisions[0])
	assert.Equal(t, 90*time.Second, file.Steps[8].Expect.Within.Duration)
	assert.Equal(t, 0, *file.Steps[8].Expect.Host[1].Is)
}

func TestParseRefuses(t *testing.T) {
	const ref = "{apiVersion: v1, kind: Pod, metadata: {namespace: a, name: p}}"
	for _, test := range []struct{ name, file, want string }{
		{"an unknown key of the file", "name: x\nstep: []\n", `unknown field "step"`},
		{"a key that is there twice", "name: x\nname: y\n", "already set"},
		{"a file without a name", "steps: [{pass: {}}]", "name: missing"},
		{"a file without steps", "name: x", "steps: there are none"},
		{"an unknown need", minimal("pass: {}") + "needs: [gpu]", `needs[0]: unknown need "gpu"`},
		{"a file outside its folder", minimal("pass: {}") + `files: {../x: ""}`, "not a plain file name"},
		{"an unknown verb", minimal("passs: {}"), `unknown field "steps[0].passs"`},
		{"a misspelt expectation", minimal("pass: {wirtes: 0}"), `unknown field "steps[0].pass.wirtes"`},
		{"a key in another case", minimal("pass: {Writes: 0}"), `unknown field "steps[0].pass.Writes"`},
		{"a misspelt field of a decision", minimal("pass: {decisions: [{reson: x}]}"), `unknown field "steps[0].pass.decisions[0].reson"`},
		{"a misspelt field of a reference", minimal("delete: {tenant: [{apiVersion: v1, kind: Pod, metadata: {nane: p}}]}"), `unknown field "steps[0].delete.tenant[0].metadata.nane"`},
		{"an unknown count", minimal("pass: {counts: {created: 1}}"), `unknown count "created"`},
		{"a step of two keys", minimal("pass: {}\n    plan: {}"), "this one has 2"},
		{"a step that is empty", minimal("pass:"), "write pass: {}"},
		{"an object without a name", minimal("apply: {host: [{apiVersion: v1, kind: Pod, metadata: {namespace: a}}]}"), "apply.host[0]: apiVersion, kind and metadata.name"},
		{"a patch without a kind", minimal("patch: {host: [{apiVersion: v1, metadata: {name: a}}]}"), "patch.host[0]: apiVersion, kind and metadata.name"},
		{"history that is not to be forgotten", minimal("forgetHistory: false"), "can only be true"},
		{"an expectation of nothing", minimal("expect: {host: [{}]}"), "not 0 of them"},
		{"an expectation of two things", minimal("expect: {host: [{absent: " + ref + ", unchanged: " + ref + "}]}"), "not 2 of them"},
		{"lacks without paths", minimal("expect: {host: [{lacks: " + ref + "}]}"), "lacks and paths belong together"},
		{"paths without lacks", minimal("expect: {host: [{absent: " + ref + ", paths: [a]}]}"), "lacks and paths belong together"},
		{"count without a number", minimal("expect: {host: [{count: " + ref + ", path: a}]}"), "need an is"},
		{"count without a path", minimal("expect: {host: [{count: " + ref + ", is: 1}]}"), "count and path belong together"},
		{"has with a number", minimal("expect: {host: [{has: " + ref + ", is: 1}]}"), "the others take none"},
		{"a bad path", minimal("expect: {host: [{lacks: " + ref + ", paths: ['a[']}]}"), `path "a["`},
		{"Events in the tenant", minimal("expect: {tenant: [{events: {reason: x}, is: 1}]}"), "counted on the host"},
		{"a time without a unit", minimal("expect: {host: [], within: 30}"), "within"},
		{"a binding without a node", minimal("bind: {host: [{ref: " + ref + "}]}"), "node: missing"},
		{"a saved value of no side", minimal("save: {x: {side: left, ref: " + ref + ", path: a}}"), `not "left"`},
		{"a run without arguments", minimal("run: {exit: 1}"), "run.args: there are none"},
	} {
		t.Run(test.name, func(t *testing.T) {
			_, err := Parse([]byte(test.file))
			require.ErrorContains(t, err, test.want)
		})
	}
}

func TestParseReportsAllUnknownKeysTogether(t *testing.T) {
	_, err := Parse([]byte(minimal("pass: {wirtes: 0, onyl: true}")))
	require.ErrorContains(t, err, "wirtes")
	require.ErrorContains(t, err, "onyl")
}

func TestResolveReplacesInEveryStringOfAStep(t *testing.T) {
	file, err := Parse([]byte(minimal("run: {args: [plan, '${dir}/x'], env: {A: '${ip}:${ip}'}, stdout: ['$(a) ${ip}']}")))
	require.NoError(t, err)
	step, err := file.Steps[0].resolve(map[string]string{"dir": "/tmp/d", "ip": "10.0.0.1"})
	require.NoError(t, err)
	assert.Equal(t, &Run{Args: []string{"plan", "/tmp/d/x"}, Env: map[string]string{"A": "10.0.0.1:10.0.0.1"},
		Stdout: []string{"$(a) 10.0.0.1"}}, step.Run)
	assert.Equal(t, "run", step.verb)
	assert.Equal(t, "${dir}/x", file.Steps[0].Run.Args[1], "the file itself stays as it is")

	_, err = file.Steps[0].resolve(map[string]string{"dir": "/tmp/d"})
	require.ErrorContains(t, err, "${ip}, ${ip} in")
	require.ErrorContains(t, err, "known here are dir")
}

func TestResolveKeepsNumbersWhole(t *testing.T) {
	file, err := Parse([]byte(minimal("apply: {host: [{apiVersion: v1, kind: X, metadata: {name: a}, spec: {whole: 9007199254740993, f: 1.5}}]}")))
	require.NoError(t, err)
	step, err := file.Steps[0].resolve(nil)
	require.NoError(t, err)
	assert.Equal(t, map[string]any{"whole": int64(9007199254740993), "f": 1.5}, step.Apply.Host[0]["spec"])
}

func FuzzParse(f *testing.F) {
	f.Add(minimal("pass: {}"))
	f.Add(minimal("expect: {host: [{has: {apiVersion: v1, kind: X, metadata: {name: a}}}], within: 1s}"))
	f.Add(minimal("[1]"))
	f.Fuzz(func(t *testing.T, text string) {
		file, err := Parse([]byte(text))
		if err != nil {
			return
		}
		for i, step := range file.Steps {
			if _, err := step.resolve(nil); err != nil && !strings.Contains(err.Error(), "was never saved") {
				t.Fatalf("step %d was parsed and cannot be resolved: %v", i, err)
			}
		}
	})
}
