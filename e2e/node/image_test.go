package node

import (
	"archive/tar"
	"bytes"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestAnArchiveIsAnImageLayout(t *testing.T) {
	binary := filepath.Join(t.TempDir(), "program")
	require.NoError(t, os.WriteFile(binary, []byte("the program"), 0o600))
	image := RunnerImage("docker.io/local/syncpass:1", binary)
	var archive, again bytes.Buffer
	require.NoError(t, image.WriteArchive(&archive))
	require.NoError(t, image.WriteArchive(&again))
	assert.Equal(t, archive.Bytes(), again.Bytes(), "the same image gives the same bytes")

	files := untar(t, archive.Bytes())
	assert.JSONEq(t, `{"imageLayoutVersion":"1.0.0"}`, string(files["oci-layout"].data))
	blob := func(d descriptor) []byte {
		data := files["blobs/"+strings.Replace(d.Digest, ":", "/", 1)].data
		assert.Equal(t, d.Digest, fmt.Sprintf("sha256:%x", sha256.Sum256(data)))
		assert.EqualValues(t, d.Size, len(data))
		return data
	}
	var index struct{ Manifests []descriptor }
	require.NoError(t, json.Unmarshal(files["index.json"].data, &index))
	require.Len(t, index.Manifests, 1)
	assert.Equal(t, "docker.io/local/syncpass:1", index.Manifests[0].Annotations["io.containerd.image.name"])
	var manifest struct {
		Config descriptor
		Layers []descriptor
	}
	require.NoError(t, json.Unmarshal(blob(index.Manifests[0]), &manifest))
	require.Len(t, manifest.Layers, 1)
	var config struct {
		Config struct {
			Entrypoint []string
			User       string
		}
		RootFS struct {
			DiffIDs []string `json:"diff_ids"`
		}
	}
	require.NoError(t, json.Unmarshal(blob(manifest.Config), &config))
	assert.Equal(t, []string{"/runner"}, config.Config.Entrypoint)
	assert.Equal(t, "65532:65532", config.Config.User)
	assert.Equal(t, []string{manifest.Layers[0].Digest}, config.RootFS.DiffIDs)

	layer := untar(t, blob(manifest.Layers[0]))
	assert.Equal(t, map[string]archived{"runner": {mode: 0o755, data: []byte("the program")}}, layer)

	image.Binary += "-missing"
	assert.ErrorIs(t, image.WriteArchive(io.Discard), os.ErrNotExist)
}

func TestTheRunnerImageIsThatOfTheDockerfile(t *testing.T) {
	dockerfile, err := os.ReadFile("../../Dockerfile")
	require.NoError(t, err)
	image := RunnerImage("syncpass:latest", "runner")
	assert.Contains(t, string(dockerfile), "\nUSER "+image.User+"\n")
	assert.Contains(t, string(dockerfile), fmt.Sprintf("\nENTRYPOINT [%q]\n", image.Path))
}

type archived struct {
	mode int64
	data []byte
}

func untar(t *testing.T, archive []byte) map[string]archived {
	t.Helper()
	files := map[string]archived{}
	for r := tar.NewReader(bytes.NewReader(archive)); ; {
		header, err := r.Next()
		if errors.Is(err, io.EOF) {
			return files
		}
		require.NoError(t, err)
		data, err := io.ReadAll(r)
		require.NoError(t, err)
		files[header.Name] = archived{header.Mode, data}
	}
}
