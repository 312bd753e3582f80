package e2e

import (
	"os"
	"os/exec"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/syncpass/syncpass/e2e/cluster"
)

// TestTheImageHoldsTheBinaryAndNothingElse reads how the image is made: there is no shell, no package and no other file in
// it, and it runs as nobody in particular. e2e/node runs it, and TestThePodIsClosedAndBounded and
// TestPodSecurityRestrictedAdmitsTheRunnersPods hold the Pod to the rest (read-only root, no capabilities).
func TestTheImageHoldsTheBinaryAndNothingElse(t *testing.T) {
	text, err := os.ReadFile("../Dockerfile")
	require.NoError(t, err)
	bases := map[string]string{}
	copied := map[string][]string{}
	user := map[string]string{}
	stage := ""
	for line := range strings.Lines(strings.ReplaceAll(string(text), "\\\n", " ")) {
		words := strings.Fields(line)
		switch {
		case len(words) == 0 || strings.HasPrefix(words[0], "#"):
		case words[0] == "FROM":
			words = slices.DeleteFunc(words, func(word string) bool { return strings.HasPrefix(word, "--") })
			stage = "final"
			if len(words) == 4 {
				stage = words[3]
			}
			bases[stage] = words[1]
		case words[0] == "COPY" || words[0] == "ADD" || words[0] == "RUN":
			copied[stage] = append(copied[stage], words[0]+" "+words[len(words)-1])
		case words[0] == "USER":
			user[stage] = words[1]
		}
	}
	require.Equal(t, "scratch", bases["base"])
	require.Regexp(t, regexp.MustCompile(`^[1-9][0-9]*:[1-9][0-9]*$`), user["base"])
	for _, last := range []string{"final", "prebuilt"} {
		require.Equal(t, "base", bases[last])
		require.Equal(t, []string{"COPY /runner"}, copied[last])
	}
	require.Empty(t, copied["base"])
}

// imageLimit is how large the image may be, which holds the binary and nothing else; in bytes.
const imageLimit = 40_000_000

// initLimit is how much one of this module's packages may allocate before main begins, in bytes: a table or a few errors,
// and no regular expression or codec, which most starts never use.
const initLimit = 8 << 10

func TestTheBinaryIsSmallAndStartsAtOnce(t *testing.T) {
	path := *runnerFlag
	if path == "" {
		if testing.Short() {
			t.Skip("this test links the runner, which takes seconds")
		}
		var err error
		path, err = cluster.BuildRunner(t.Context(), t.TempDir())
		require.NoError(t, err)
	}
	binary, err := os.Stat(path)
	require.NoError(t, err)
	assert.Less(t, binary.Size(), int64(imageLimit), `the runner is too large for an image of 40 MB. Either
- something new in it can call any method by its name, so that the linker keeps every method of every type: text/template,
  html/template, or reflect's Method and MethodByName with what is no constant. The first line of this names it:
  go build -ldflags=-dumpdep -o /dev/null ./cmd/runner 2>&1 | grep -e '-> .* <ReflectMethod>'
- or a library that is large by itself came in. This sorts what is in the binary:
  go build -o bin/runner ./cmd/runner && go tool nm -size -sort size bin/runner | head -50`)

	version := exec.CommandContext(t.Context(), path, "version")
	version.Env = append(os.Environ(), "GODEBUG=inittrace=1")
	output, err := version.CombinedOutput()
	require.NoError(t, err, "%s", output)
	traced := regexp.MustCompile(`(?m)^init (\S+) .*, (\d+) bytes, \d+ allocs$`).FindAllSubmatch(output, -1)
	require.NotEmpty(t, traced, "%s", output)
	for _, match := range traced {
		name := string(match[1])
		if name != "main" && !strings.HasPrefix(name, "github.com/syncpass/syncpass/") {
			continue
		}
		bytes, err := strconv.Atoi(string(match[2]))
		require.NoError(t, err)
		assert.Less(t, bytes, initLimit, "package %s does much before main begins, at every start of every verb: leave it to who needs it first (sync.OnceValue)", name)
	}
}
