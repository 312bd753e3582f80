package policy

import (
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// TestGeneratedFilesAreCurrent runs the generators of doc.go into a temporary folder and compares.
func TestGeneratedFilesAreCurrent(t *testing.T) {
	if testing.Short() {
		t.Skip("loads and type-checks both packages with all that they import, which takes some seconds")
	}
	for _, dir := range []string{".", "../record"} {
		// One run for each package, since both have a file of the same name.
		out := t.TempDir()
		output, err := exec.CommandContext(t.Context(), "go", "tool", "controller-gen", "object", "crd", "paths="+dir, "output:dir="+out).CombinedOutput()
		require.NoError(t, err, "%s", output)
		generated, err := filepath.Glob(filepath.Join(out, "*"))
		require.NoError(t, err)
		require.GreaterOrEqual(t, len(generated), 2, "a CRD and the deepcopy functions of %s", dir)
		for _, file := range generated {
			checkedIn := filepath.Join("../manifests/crd", filepath.Base(file))
			if filepath.Ext(file) == ".go" {
				checkedIn = filepath.Join(dir, filepath.Base(file))
			}
			want, err := os.ReadFile(file)
			require.NoError(t, err)
			got, err := os.ReadFile(checkedIn)
			require.NoError(t, err)
			assert.Equal(t, string(want), string(got), "%s is not current: run `go generate ./policy`", checkedIn)
		}
	}
}
