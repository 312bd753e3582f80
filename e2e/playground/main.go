// Package main is the playground: two real API servers on this machine, a host
// and a tenant, to try syncpass on. It needs Go and git alone.
//
//	go run ./e2e/playground demo      shows syncpass at work, and leaves nothing behind
//	go run ./e2e/playground up        leaves host and tenant running, prints the exports to use them
//	go run ./e2e/playground down      stops them and removes their data
//	go run ./e2e/playground binaries  gets the control-plane binaries, and prints where they are
//
// Data goes to stdout, progress to stderr, so that
// `eval "$(go run ./e2e/playground up)"` works. The playground drives the runner
// from outside, through its command line: it must not import its packages.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"slices"
	"strings"
	"syscall"

	"github.com/syncpass/syncpass/e2e/cluster"
	"github.com/syncpass/syncpass/e2e/node"
)

const usage = `Usage: go run ./e2e/playground [flags] VERB

  demo      bring up a host and a tenant, sync them, show what happened, take them down
  up        bring them up, leave them running, print the exports to use them
  down      stop them and remove their data
  binaries  find, download or build etcd, kube-apiserver and kube-controller-manager, and what a node
            is made of where one can run

Flags:
`

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM, syscall.SIGHUP)
	err := run(ctx, os.Args[1:])
	stop()
	if err == nil || errors.Is(err, flag.ErrHelp) {
		return
	}
	fmt.Fprintln(os.Stderr, "playground:", err)
	os.Exit(1)
}

func run(ctx context.Context, args []string) error {
	flags := flag.NewFlagSet("playground", flag.ContinueOnError)
	flags.Usage = func() {
		fmt.Fprint(flags.Output(), usage)
		flags.PrintDefaults()
	}
	providerName := flags.String("provider", "local", "where the clusters run: local (processes) or kind (needs Docker)")
	dir := flags.String("dir", "", "folder for what up leaves running (default syncpass/playground in the user's cache folder)")
	if err := flags.Parse(args); err != nil {
		return err
	}
	if flags.NArg() != 1 {
		flags.Usage()
		return errors.New("exactly one verb is needed")
	}
	provider, err := cluster.NewProvider(*providerName)
	if err != nil {
		return err
	}
	p := &playground{provider: provider, dir: *dir, out: os.Stdout, progress: os.Stderr}
	if p.dir == "" {
		cache, err := os.UserCacheDir()
		if err != nil {
			return fmt.Errorf("no folder for the playground: %w; use -dir", err)
		}
		p.dir = filepath.Join(cache, "syncpass", "playground")
	}
	switch verb := flags.Arg(0); verb {
	case "demo":
		return p.demo(ctx)
	case "up":
		return p.up(ctx)
	case "down":
		return p.down(ctx)
	case "binaries":
		return p.binaries(ctx)
	default:
		flags.Usage()
		return fmt.Errorf("unknown verb %q", verb)
	}
}

// binaries lets the clusters of later steps start at once.
func (p *playground) binaries(ctx context.Context) error {
	wanted := cluster.ControlPlane
	if len(node.Requirements()) == 0 {
		wanted = slices.Concat(wanted, node.Components, []string{cluster.CoreDNS})
	}
	paths, err := cluster.Binaries(ctx, p.progress, wanted...)
	if err != nil {
		return err
	}
	lines := make([]string, 0, len(paths))
	for _, path := range paths {
		lines = append(lines, path)
	}
	slices.Sort(lines)
	fmt.Fprintln(p.out, strings.Join(lines, "\n"))
	return nil
}
