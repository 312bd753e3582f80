package node

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestWhatIsMissingIsNamedWithWhatToDo(t *testing.T) {
	t.Setenv("PATH", t.TempDir())
	lacks := strings.Join(Requirements(), "\n")
	if os.Geteuid() != 0 {
		assert.Contains(t, lacks, "as root")
		return
	}
	for _, word := range []string{"containerd", "runc", "iptables", "apt-get install --no-install-recommends containerd runc containernetworking-plugins iptables"} {
		assert.Contains(t, lacks, word)
	}
	_, err := Start(t.Context(), Options{})
	assert.ErrorContains(t, err, "apt-get install")
}

func TestAFolderServesIfItHasAllPlugins(t *testing.T) {
	folder := t.TempDir()
	for _, plugin := range plugins {
		assert.False(t, hasPlugins(folder), "before it has %s", plugin)
		require.NoError(t, os.WriteFile(filepath.Join(folder, plugin), nil, 0o700))
	}
	assert.True(t, hasPlugins(folder))
}
