package cluster

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"syscall"
	"time"

	"k8s.io/apimachinery/pkg/util/wait"
)

const (
	lockFile      = "lock"
	folderPattern = "syncpass-cluster-"
	// stopTimeout bounds the wait for killed processes to be gone.
	stopTimeout = 30 * time.Second
	// sweepAge keeps the sweep away from a folder that was made a moment ago and
	// whose lock is about to be taken.
	sweepAge = time.Minute
)

// folder holds everything a local cluster leaves on disk: keys, data, logs,
// process ids, and a lock file that every process of the cluster holds locked.
type folder struct {
	dir      string
	lock     *os.File
	detached bool
}

func (f *folder) path(elements ...string) string {
	return filepath.Join(append([]string{f.dir}, elements...)...)
}

// newFolder makes the folder of a new cluster: detachedDir, or a temporary one.
func newFolder(detachedDir string) (*folder, error) {
	if detachedDir != "" {
		return newDetachedFolder(detachedDir)
	}
	sweep(os.TempDir())
	dir, err := os.MkdirTemp("", folderPattern)
	if err != nil {
		return nil, err
	}
	return lockNew(dir, false)
}

func newDetachedFolder(dir string) (*folder, error) {
	dir, err := filepath.Abs(dir)
	if err != nil {
		return nil, err
	}
	if running(dir) {
		return nil, fmt.Errorf("a cluster already runs in %s: attach to it, or stop it first", dir)
	}
	// What is left of a cluster that no longer runs, after a reboot for example.
	if err := os.RemoveAll(dir); err != nil {
		return nil, err
	}
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, err
	}
	return lockNew(dir, true)
}

func lockNew(dir string, detached bool) (*folder, error) {
	lock, err := os.OpenFile(filepath.Join(dir, lockFile), os.O_CREATE|os.O_RDWR, 0o600)
	if err == nil {
		err = syscall.Flock(int(lock.Fd()), syscall.LOCK_EX|syscall.LOCK_NB)
	}
	if err != nil {
		return nil, errors.Join(fmt.Errorf("locking %s: %w", dir, err), os.RemoveAll(dir))
	}
	return &folder{dir: dir, lock: lock, detached: detached}, nil
}

// running tells whether any process still holds the lock of the folder. It asks
// for a shared lock, so that two who ask do not mistake each other for a cluster.
func running(dir string) bool {
	lock, err := os.OpenFile(filepath.Join(dir, lockFile), os.O_RDWR, 0)
	if err != nil {
		return false
	}
	defer lock.Close()
	return syscall.Flock(int(lock.Fd()), syscall.LOCK_SH|syscall.LOCK_NB) != nil
}

// stopFolder kills the processes of the cluster in this folder, waits until they
// are gone, and removes the folder. The caller must not hold its lock.
func stopFolder(dir string) error {
	if running(dir) {
		if err := killRecorded(dir); err != nil {
			return err
		}
		gone := func(context.Context) (bool, error) { return !running(dir), nil }
		err := wait.PollUntilContextTimeout(context.Background(), 20*time.Millisecond, stopTimeout, true, gone)
		if err != nil {
			return fmt.Errorf("a process of the cluster in %s still runs after %v: see the *.pid files there", dir, stopTimeout)
		}
	}
	return os.RemoveAll(dir)
}

// sweep removes the folders of clusters whose parent was killed before it could
// do so itself. It is a courtesy: what cannot be removed stays.
func sweep(tempDir string) {
	dirs, err := filepath.Glob(filepath.Join(tempDir, folderPattern+"*"))
	if err != nil {
		return
	}
	for _, dir := range dirs {
		info, err := os.Lstat(dir)
		if err != nil || !info.IsDir() || time.Since(info.ModTime()) < sweepAge || running(dir) {
			continue
		}
		_ = os.RemoveAll(dir)
	}
}
