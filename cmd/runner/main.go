package main

import (
	"context"
	"os"
	"os/signal"
	"syscall"

	"golang.org/x/term"

	"github.com/syncpass/syncpass/pass"
)

func main() {
	os.Exit(run(passFuncs{run: pass.Run, loadSchedule: pass.LoadSchedule, findConflicts: pass.FindConflicts, resolve: pass.Resolve}))
}

// run is the whole program but for its end.
func run(passes passFuncs) (exitCode int) {
	signals := make(chan os.Signal, 2)
	signal.Notify(signals, os.Interrupt, syscall.SIGTERM)
	defer signal.Stop(signals)
	ctx, stop := stopOnSignal(context.Background(), signals, os.Exit)
	defer stop()
	if os.Getenv("GOGC") == "" && os.Getenv("GOMEMLIMIT") == "" {
		collectSparingly()
	}
	plugin, args := calledAs(os.Args[0], os.Args[1:])
	tty := term.IsTerminal(int(os.Stderr.Fd()))
	a := app{
		stdin:           os.Stdin,
		stdout:          os.Stdout,
		stderr:          os.Stderr,
		tty:             tty,
		stdoutTTY:       term.IsTerminal(int(os.Stdout.Fd())),
		asks:            tty && term.IsTerminal(int(os.Stdin.Fd())),
		width:           width,
		env:             os.LookupEnv,
		environ:         os.Environ(),
		terminationFile: terminationFile,
		plugin:          plugin,
		passFuncs:       passes,
	}
	return a.execute(ctx, args)
}

// width is that of the terminal that stderr is, in characters; 0 where it is none, or does not say.
func width() int {
	columns, _, err := term.GetSize(int(os.Stderr.Fd()))
	if err != nil {
		return 0
	}
	return columns
}
