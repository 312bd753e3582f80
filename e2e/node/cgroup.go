package node

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"

	"k8s.io/apimachinery/pkg/util/wait"
)

// hierarchies returns the roots of the control groups: one with version 2, one a
// controller with version 1, where a second name of one may be a symbolic link.
func hierarchies() ([]string, error) {
	if unified() {
		return []string{cgroupFolder}, nil
	}
	entries, err := os.ReadDir(cgroupFolder)
	if err != nil {
		return nil, err
	}
	var roots []string
	for _, entry := range entries {
		if entry.IsDir() {
			roots = append(roots, filepath.Join(cgroupFolder, entry.Name()))
		}
	}
	if len(roots) == 0 {
		return nil, fmt.Errorf("nothing is mounted below %s", cgroupFolder)
	}
	return roots, nil
}

// unified tells whether the control groups are those of version 2.
func unified() bool {
	_, err := os.Stat(filepath.Join(cgroupFolder, "cgroup.controllers"))
	return err == nil
}

// makeCgroups makes a control group of that name in every hierarchy, for the
// containers of a node. The kubelet insists on finding it.
func makeCgroups(name string) error {
	roots, err := hierarchies()
	if err != nil {
		return err
	}
	for _, root := range roots {
		if err := os.Mkdir(filepath.Join(root, name), 0o755); err != nil {
			return errors.Join(err, removeCgroups(name))
		}
	}
	if !unified() {
		return nil
	}
	// With version 2 a group has the controllers that its parent hands down.
	available, err := os.ReadFile(filepath.Join(cgroupFolder, "cgroup.controllers"))
	if err != nil {
		return errors.Join(err, removeCgroups(name))
	}
	for _, folder := range []string{cgroupFolder, filepath.Join(cgroupFolder, name)} {
		for _, controller := range strings.Fields(string(available)) {
			err := os.WriteFile(filepath.Join(folder, "cgroup.subtree_control"), []byte("+"+controller), 0)
			if err != nil && slices.Contains([]string{"cpu", "cpuset", "memory", "pids"}, controller) {
				return errors.Join(fmt.Errorf("control group controller %s: %w", controller, err), removeCgroups(name))
			}
		}
	}
	return nil
}

// cgroupTimeout bounds the wait for the kernel to notice that a control group's
// last process is gone.
const cgroupTimeout = 10 * time.Second

// removeCgroups removes the control group of that name from every hierarchy, with
// all below it. Its processes must have ended.
func removeCgroups(name string) error {
	roots, err := hierarchies()
	if err != nil {
		return err
	}
	for _, root := range roots {
		var last error
		err := wait.PollUntilContextTimeout(context.Background(), 10*time.Millisecond, cgroupTimeout, true, func(context.Context) (bool, error) {
			last = removeTree(filepath.Join(root, name))
			return !errors.Is(last, syscall.EBUSY), nil
		})
		if err := errors.Join(err, last); err != nil {
			return fmt.Errorf("removing a control group: %w", err)
		}
	}
	return nil
}

// removeTree removes folders only, the innermost first: the files in a control
// group cannot be removed, and go with it.
func removeTree(folder string) error {
	var folders []string
	err := filepath.WalkDir(folder, func(path string, entry fs.DirEntry, err error) error {
		if err == nil && entry.IsDir() {
			folders = append(folders, path)
		}
		if errors.Is(err, fs.ErrNotExist) {
			return nil
		}
		return err
	})
	if err != nil {
		return err
	}
	for _, folder := range slices.Backward(folders) {
		if err := syscall.Rmdir(folder); err != nil && !errors.Is(err, syscall.ENOENT) {
			return &fs.PathError{Op: "rmdir", Path: folder, Err: err}
		}
	}
	return nil
}

// tryCgroups tells why no control group can be made here: in a container with
// version 2, for example, processes of its own stand in the way.
func tryCgroups() error {
	name := fmt.Sprintf("syncpass-trial-%d", os.Getpid())
	if err := makeCgroups(name); err != nil {
		return err
	}
	return removeCgroups(name)
}
