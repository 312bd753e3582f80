package node

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"github.com/syncpass/syncpass/e2e/cluster"
)

const (
	folderPattern = "syncpass-node-"
	lockFile      = "lock"
	// sweepAge keeps the sweep away from a folder that was made a moment ago and
	// whose lock is about to be taken.
	sweepAge = time.Minute
)

// newFolder makes a temporary folder that is locked for as long as this process
// lives, and removes those of processes that do not any more. With the process
// that started it, a node is gone, save for its folder and its control groups.
func newFolder() (dir string, lock *os.File, err error) {
	temp, err := filepath.EvalSymlinks(os.TempDir())
	if err != nil {
		return "", nil, err
	}
	sweep(temp)
	if dir, err = os.MkdirTemp(temp, folderPattern); err != nil {
		return "", nil, err
	}
	lock, err = lockFolder(dir, os.O_CREATE)
	if err != nil {
		return "", nil, errors.Join(err, os.RemoveAll(dir))
	}
	return dir, lock, nil
}

// lockFolder fails if another process holds the lock.
func lockFolder(dir string, flags int) (*os.File, error) {
	lock, err := os.OpenFile(filepath.Join(dir, lockFile), os.O_RDWR|flags, 0o600)
	if err != nil {
		return nil, err
	}
	if err := syscall.Flock(int(lock.Fd()), syscall.LOCK_EX|syscall.LOCK_NB); err != nil {
		return nil, errors.Join(fmt.Errorf("locking %s: %w", dir, err), lock.Close())
	}
	return lock, nil
}

// sweep is a courtesy: what cannot be removed stays.
func sweep(temp string) {
	dirs, err := filepath.Glob(filepath.Join(temp, folderPattern+"*"))
	if err != nil {
		return
	}
	for _, dir := range dirs {
		info, err := os.Lstat(dir)
		if err != nil || !info.IsDir() || time.Since(info.ModTime()) < sweepAge {
			continue
		}
		lock, err := lockFolder(dir, 0)
		if err != nil && !errors.Is(err, os.ErrNotExist) {
			continue
		}
		if removeCgroups(filepath.Base(dir)) == nil {
			_ = os.RemoveAll(dir)
		}
		lock.Close()
	}
}

// ownPrograms are this module's own, built for the node.
type ownPrograms struct{ init, tool string }

// interruptGrace is how long the go command may take to end its compilers.
const interruptGrace = 10 * time.Second

func buildPrograms(ctx context.Context, dir string) (ownPrograms, error) {
	root, err := cluster.ModuleDir(ctx)
	if err != nil {
		return ownPrograms{}, err
	}
	built := ownPrograms{init: filepath.Join(dir, "init"), tool: filepath.Join(dir, "image")}
	cmd := exec.CommandContext(ctx, "go", "build", "-trimpath", "-buildvcs=false", "-ldflags=-s -w", "-o", dir,
		"./e2e/node/machine/init", "./e2e/image")
	cmd.Dir = root
	cmd.Cancel = func() error { return cmd.Process.Signal(os.Interrupt) }
	cmd.WaitDelay = interruptGrace
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0")
	return built, runQuietly(cmd)
}

// runCommand runs a program of this machine with an input, which may be nil.
func runCommand(ctx context.Context, input io.Reader, name string, args ...string) error {
	cmd := exec.CommandContext(ctx, name, args...)
	cmd.Stdin = input
	return runQuietly(cmd)
}

// runQuietly runs a command, whose output becomes part of the error.
func runQuietly(cmd *exec.Cmd) error {
	if output, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("%s: %w: %s", strings.Join(cmd.Args, " "), err, strings.TrimSpace(string(output)))
	}
	return nil
}
