package node

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/util/wait"

	"github.com/syncpass/syncpass/e2e/cluster"
	"github.com/syncpass/syncpass/e2e/node/machine"
)

const (
	// readyTimeout is generous: each part is ready within a few seconds on an idle machine.
	readyTimeout = 2 * time.Minute
	readyPoll    = 50 * time.Millisecond
)

// Options of a node.
type Options struct {
	// Log takes lines of progress; nil drops them.
	Log io.Writer
}

// Node is a running node. Its methods must not be called concurrently, ImportImage apart.
type Node struct {
	// Name is that of the Node object, and of the node's control groups and folder:
	// no two nodes have the same.
	Name string
	// HostAddress is the address at which the node and its Pods reach this machine:
	// the AdvertiseAddress of every API server that they are to reach.
	HostAddress string

	dir     string
	lock    *os.File
	binary  map[string]string
	machine *machine.Machine
	link    *link
}

// Start makes a node with a running containerd that has the images of this package.
// It belongs to no cluster yet: that takes Join, and an API server that can be
// reached at HostAddress. The context bounds the start, not the life of the node. A
// failed start leaves nothing behind. The first start on a machine compiles the
// Kubernetes components for a few minutes; the next take about three seconds.
func Start(ctx context.Context, opts Options) (n *Node, err error) {
	if lacks := Requirements(); len(lacks) > 0 {
		return nil, errors.New(strings.Join(lacks, "; "))
	}
	if opts.Log == nil {
		opts.Log = io.Discard
	}
	n = &Node{}
	if n.binary, err = cluster.Binaries(ctx, opts.Log, Components...); err != nil {
		return nil, err
	}
	if n.dir, n.lock, err = newFolder(); err != nil {
		return nil, fmt.Errorf("folder of a node: %w", err)
	}
	n.Name = filepath.Base(n.dir)
	defer func() {
		if err != nil {
			n, err = nil, errors.Join(fmt.Errorf("starting a node: %w", err), n.Stop())
		}
	}()
	programs, err := buildPrograms(ctx, n.dir)
	if err != nil {
		return n, err
	}
	if n.machine, err = machine.Start(programs.init); err != nil {
		return n, err
	}
	link, err := newLink(ctx, n.machine.PID())
	if err != nil {
		return n, err
	}
	n.link = &link
	n.HostAddress = link.hostAddress()
	if err := makeCgroups(n.Name); err != nil {
		return n, err
	}
	if err := n.furnish(); err != nil {
		return n, err
	}
	if err := n.startContainerd(ctx); err != nil {
		return n, err
	}
	for _, image := range []Image{
		{Name: pauseImage, Binary: programs.tool, Path: "/tool", Args: []string{"pause"}},
		{Name: ToolImage, Binary: programs.tool, Path: "/tool"},
		{Name: NextToolImage, Binary: programs.tool, Path: "/tool"},
	} {
		if err := n.ImportImage(ctx, image); err != nil {
			return n, err
		}
	}
	return n, nil
}

// furnish writes the node's files, and mounts its folders over this machine's.
func (n *Node) furnish() error {
	files := map[string]string{
		containerdFile: containerdConfig(pluginFolder()),
		networkFile:    networkConfig(n.link.pods()),
		kubeletFile:    kubeletConfig(*n.link, n.Name),
		proxyFile:      proxyConfig(*n.link),
		// No name server: what a Pod asks for outside of its cluster does not exist.
		resolverFile: "",
	}
	mounts := []machine.Mount{
		{Source: "proc", Target: "/proc", Type: "proc"},
		{Source: "/proc/sys/kernel", Target: "/proc/sys/kernel", ReadOnly: true},
		{Source: "/proc/sys/vm", Target: "/proc/sys/vm", ReadOnly: true},
	}
	for name, value := range sysctls {
		files["/sysctl/"+name] = value + "\n"
		mounts = append(mounts, machine.Mount{Source: n.path("/sysctl/" + name), Target: "/proc/sys/" + name})
	}
	for name, file := range n.binary {
		target := filepath.Join(binFolder, name)
		files[target] = ""
		mounts = append(mounts, machine.Mount{Source: file, Target: n.path(target)})
	}
	for file, content := range files {
		if err := n.write(file, []byte(content)); err != nil {
			return err
		}
	}
	for _, folder := range []string{logFolder, "/var"} {
		if err := os.MkdirAll(n.path(folder), 0o755); err != nil {
			return err
		}
	}
	if err := os.Symlink("/run", n.path("/var/run")); err != nil {
		return err
	}
	return n.machine.Mount(append(mounts, n.ownFolders()...)...)
}

// ownFolders mounts the one last that hides the node's folder itself, if one does.
func (n *Node) ownFolders() []machine.Mount {
	mounts := []machine.Mount{{Source: n.path("/run"), Target: "/run"}, {Source: n.path("/var"), Target: "/var"}}
	if strings.HasPrefix(n.dir, "/run/") {
		slices.Reverse(mounts)
	}
	return mounts
}

// path is where this machine sees a file of the node's /run or /var.
func (n *Node) path(file string) string { return filepath.Join(n.dir, file) }

func (n *Node) write(file string, data []byte) error {
	file = n.path(file)
	if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
		return err
	}
	return os.WriteFile(file, data, 0o600)
}

func (n *Node) startContainerd(ctx context.Context) error {
	if err := n.run(containerd, containerd, "--config="+containerdFile); err != nil {
		return err
	}
	return n.await(ctx, containerd, func(ctx context.Context) (bool, error) {
		return runCommand(ctx, nil, "ctr", "--address", n.path(containerdSocket), "version") == nil, nil
	})
}

func (n *Node) run(name string, args ...string) error {
	return n.machine.Run(machine.Process{Name: name, Args: args, Log: filepath.Join(logFolder, name+".log")})
}

// await polls until the condition holds. It ends early when any process of the node
// does. An error shows the end of a log: that process's, or the named one's.
func (n *Node) await(ctx context.Context, name string, condition wait.ConditionWithContextFunc) error {
	ctx, cancel := context.WithTimeoutCause(ctx, readyTimeout, fmt.Errorf("not ready after %v", readyTimeout))
	defer cancel()
	ctx, end := context.WithCancelCause(ctx)
	defer end(nil)
	defer context.AfterFunc(n.machine.Context(), func() { end(context.Cause(n.machine.Context())) })()
	err := wait.PollUntilContextCancel(ctx, readyPoll, true, condition)
	if ctx.Err() != nil {
		err = context.Cause(ctx)
	}
	if err == nil {
		return nil
	}
	var exit *machine.ExitError
	if errors.As(err, &exit) {
		name = exit.Name
	}
	return fmt.Errorf("waiting for %s: %w; the end of its log:\n%s", name, err, n.logTail(name))
}

// logTail returns the last lines of a process's log, at most 3000 bytes.
func (n *Node) logTail(name string) string {
	const limit = 3000
	data, err := os.ReadFile(n.path(filepath.Join(logFolder, name+".log")))
	if err != nil {
		return err.Error()
	}
	return strings.TrimSpace(string(data[max(0, len(data)-limit):]))
}

// Stop ends the node and everything that runs on it, and removes what it left on
// this machine. Its objects stay in the cluster. If a process had ended before, the
// error says so. Stopping twice is no error.
func (n *Node) Stop() error {
	if n.dir == "" {
		return nil
	}
	var errs []error
	if n.machine != nil {
		var exit *machine.ExitError
		if err := context.Cause(n.machine.Context()); errors.As(err, &exit) {
			errs = append(errs, fmt.Errorf("%w; the end of its log:\n%s", err, n.logTail(exit.Name)))
		}
	}
	if n.link != nil {
		errs = append(errs, n.link.remove())
	}
	if n.machine != nil {
		errs = append(errs, n.machine.Stop())
	}
	errs = append(errs, removeCgroups(n.Name), os.RemoveAll(n.dir), n.lock.Close())
	*n = Node{Name: n.Name, HostAddress: n.HostAddress}
	return errors.Join(errs...)
}
