package cluster

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/kubernetes"
)

// ApplyCRDs applies manifests/crd of this module and waits until its kinds are served.
func (c *Cluster) ApplyCRDs(ctx context.Context) error {
	root, err := ModuleDir(ctx)
	if err != nil {
		return err
	}
	files, err := filepath.Glob(filepath.Join(root, "manifests", "crd", "tenantplane.io_*.yaml"))
	if err != nil {
		return err
	}
	if len(files) == 0 {
		return errors.New("no CustomResourceDefinitions in manifests/crd: run `make generate`")
	}
	for _, file := range files {
		data, err := os.ReadFile(file)
		if err != nil {
			return err
		}
		if err := c.Apply(ctx, data); err != nil {
			return fmt.Errorf("%s: %w", file, err)
		}
	}
	client, err := kubernetes.NewForConfig(c.Config)
	if err != nil {
		return err
	}
	for _, resource := range []string{"syncpolicies", "tenantclusters", "syncdecisions"} {
		err := wait.PollUntilContextTimeout(ctx, 20*time.Millisecond, time.Minute, true, func(ctx context.Context) (bool, error) {
			return client.RESTClient().Get().AbsPath("/apis/tenantplane.io/v1alpha1", resource).Do(ctx).Error() == nil, nil
		})
		if err != nil {
			return fmt.Errorf("%s are not served: %w", resource, err)
		}
	}
	return nil
}

// BuildRunner builds cmd/runner of this module into a folder, as it is released: without cgo, since it runs in an image
// that holds nothing else.
func BuildRunner(ctx context.Context, dir string) (path string, err error) {
	root, err := ModuleDir(ctx)
	if err != nil {
		return "", err
	}
	path = filepath.Join(dir, "runner")
	build := goCommand(ctx, "build", "-trimpath", "-ldflags", "-s -w", "-o", path, "./cmd/runner")
	build.Dir = root
	build.Env = append(build.Environ(), "CGO_ENABLED=0")
	if output, err := build.CombinedOutput(); err != nil {
		return "", fmt.Errorf("go build ./cmd/runner: %w\n%s", err, output)
	}
	return path, nil
}
