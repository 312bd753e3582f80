package node

import (
	"archive/tar"
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"path"
	"path/filepath"
	"runtime"
	"strings"
)

// Names of the images that every node has. ToolImage and NextToolImage are the
// program in e2e/image twice, so that a rolling update has somewhere to go.
const (
	ToolImage     = "docker.io/local/tool:1"
	NextToolImage = "docker.io/local/tool:2"
	pauseImage    = "docker.io/local/pause:1"
)

// Image is a container image of one static binary and nothing else.
type Image struct {
	// Name is the full name, with registry and tag: nothing is ever asked of that
	// registry as long as Pods say `imagePullPolicy: Never`.
	Name string
	// Binary is the file to pack, built for Linux and without cgo.
	Binary string
	// Path is where it lies in the image, and what runs.
	Path string
	// Args come after it, unless a container has args of its own.
	Args []string
	// User is "uid:gid"; root if empty.
	User string
}

// RunnerImage is the image that the Dockerfile in the root of this module
// describes, with this binary.
func RunnerImage(name, binary string) Image {
	return Image{Name: name, Binary: binary, Path: "/runner", User: "65532:65532"}
}

// Media types of the OCI image specification,
// https://github.com/opencontainers/image-spec/blob/v1.1.1/media-types.md
const (
	indexType    = "application/vnd.oci.image.index.v1+json"
	manifestType = "application/vnd.oci.image.manifest.v1+json"
	configType   = "application/vnd.oci.image.config.v1+json"
	layerType    = "application/vnd.oci.image.layer.v1.tar"
)

// descriptor is how one blob of an image refers to another.
type descriptor struct {
	MediaType   string            `json:"mediaType"`
	Digest      string            `json:"digest"`
	Size        int64             `json:"size"`
	Annotations map[string]string `json:"annotations,omitempty"`
}

// WriteArchive writes the image as a tar archive of an OCI image layout, as
// `ctr images import` takes it. The same image gives the same bytes.
func (i Image) WriteArchive(w io.Writer) error {
	binary, err := os.ReadFile(i.Binary)
	if err != nil {
		return fmt.Errorf("image %s: %w", i.Name, err)
	}
	archive := tar.NewWriter(w)
	var layer bytes.Buffer
	files := tar.NewWriter(&layer)
	if err := addFile(files, strings.TrimPrefix(path.Clean(i.Path), "/"), 0o755, binary); err != nil {
		return err
	}
	if err := files.Close(); err != nil {
		return err
	}
	layerBlob, err := addBlob(archive, layerType, layer.Bytes())
	if err != nil {
		return err
	}
	configBlob, err := addJSON(archive, configType, map[string]any{
		"architecture": runtime.GOARCH,
		"os":           "linux",
		"config":       map[string]any{"Entrypoint": []string{i.Path}, "Cmd": i.Args, "User": i.User},
		// The layer is not compressed, so this is its digest in the manifest, too.
		"rootfs": map[string]any{"type": "layers", "diff_ids": []string{layerBlob.Digest}},
	})
	if err != nil {
		return err
	}
	manifest, err := addJSON(archive, manifestType, map[string]any{
		"schemaVersion": 2, "mediaType": manifestType, "config": configBlob, "layers": []descriptor{layerBlob},
	})
	if err != nil {
		return err
	}
	// The specification has no place for a full name; this is containerd's.
	manifest.Annotations = map[string]string{"io.containerd.image.name": i.Name}
	index, err := json.Marshal(map[string]any{"schemaVersion": 2, "mediaType": indexType, "manifests": []descriptor{manifest}})
	if err != nil {
		return err
	}
	if err := addFile(archive, "index.json", 0o644, index); err != nil {
		return err
	}
	if err := addFile(archive, "oci-layout", 0o644, []byte(`{"imageLayoutVersion":"1.0.0"}`)); err != nil {
		return err
	}
	return archive.Close()
}

func addJSON(archive *tar.Writer, mediaType string, value any) (descriptor, error) {
	data, err := json.Marshal(value)
	if err != nil {
		return descriptor{}, err
	}
	return addBlob(archive, mediaType, data)
}

func addBlob(archive *tar.Writer, mediaType string, data []byte) (descriptor, error) {
	digest := fmt.Sprintf("%x", sha256.Sum256(data))
	d := descriptor{MediaType: mediaType, Digest: "sha256:" + digest, Size: int64(len(data))}
	return d, addFile(archive, "blobs/sha256/"+digest, 0o644, data)
}

// addFile leaves the times at zero, so that they do not change the digest.
func addFile(archive *tar.Writer, name string, mode int64, data []byte) error {
	header := &tar.Header{Typeflag: tar.TypeReg, Name: name, Mode: mode, Size: int64(len(data))}
	if err := archive.WriteHeader(header); err != nil {
		return err
	}
	_, err := archive.Write(data)
	return err
}

// ImportImage makes an image known to the node, in place of one of the same name.
func (n *Node) ImportImage(ctx context.Context, image Image) error {
	var archive bytes.Buffer
	if err := image.WriteArchive(&archive); err != nil {
		return err
	}
	err := runCommand(ctx, &archive, "ctr", "--address", filepath.Join(n.dir, containerdSocket), "--namespace", "k8s.io",
		"images", "import", "--snapshotter", snapshotter, "-")
	if err != nil {
		return fmt.Errorf("importing image %s: %w", image.Name, err)
	}
	return nil
}
