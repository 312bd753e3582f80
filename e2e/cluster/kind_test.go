package cluster

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestKindWithoutAContainerRuntimeSaysWhatIsMissing(t *testing.T) {
	t.Setenv("PATH", t.TempDir())
	for name, call := range map[string]func() error{
		"start":  func() error { _, err := Kind().Start(t.Context(), "host", Options{}); return err },
		"attach": func() error { _, err := Kind().Attach(t.Context(), "host", ""); return err },
	} {
		err := call()
		assert.ErrorContains(t, err, "no docker, nerdctl or podman on PATH", name)
		assert.ErrorContains(t, err, "use the local provider", name)
	}
}

func TestKindWithADockerThatDoesNotAnswerShowsItsError(t *testing.T) {
	bin := t.TempDir()
	script := "#!/bin/sh\nif [ \"$1\" = -v ]; then echo 'Docker version 28.0.0, build 0'; exit 0; fi\necho 'Cannot connect to the Docker daemon' >&2\nexit 1\n"
	require.NoError(t, os.WriteFile(filepath.Join(bin, "docker"), []byte(script), 0o755))
	t.Setenv("PATH", bin)
	_, err := Kind().Start(t.Context(), "host", Options{})
	assert.ErrorContains(t, err, "Cannot connect to the Docker daemon")
	assert.ErrorContains(t, err, "`docker ps` must succeed")
}

func TestKindRefusesWhatItCannotDo(t *testing.T) {
	for _, opts := range []Options{
		{WithoutControllers: true},
		{AdvertiseAddress: "10.0.0.1"},
		{APIServerArgs: []string{"--v=4"}},
	} {
		_, err := Kind().Start(t.Context(), "host", opts)
		assert.ErrorContains(t, err, "use the local provider")
	}
}

func TestAnUnknownProviderIsNamed(t *testing.T) {
	_, err := NewProvider("minikube")
	assert.ErrorContains(t, err, `unknown cluster provider "minikube"`)
	provider, err := NewProvider("")
	require.NoError(t, err)
	assert.Equal(t, Local(), provider)
	provider, err = NewProvider("kind")
	require.NoError(t, err)
	assert.Equal(t, Kind(), provider)
}
