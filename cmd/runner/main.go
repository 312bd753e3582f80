package main

import (
	"context"
	"os"
	"os/signal"
	"runtime/debug"
	"syscall"

	"golang.org/x/term"

	"github.com/syncpass/syncpass/pass"
)

func main() { os.Exit(run(passFuncs{run: pass.Run, loadSchedule: pass.LoadSchedule})) }

// run is the whole program but for its end.
func run(passes passFuncs) (exitCode int) {
	signals := make(chan os.Signal, 2)
	signal.Notify(signals, os.Interrupt, syscall.SIGTERM)
	defer signal.Stop(signals)
	ctx, stop := stopOnSignal(context.Background(), signals, os.Exit)
	defer stop()
	if os.Getenv("GOGC") == "" {
		// A pass holds much for a short time. Collecting at half its size again instead of at double costs a few percent of
		// the processor time, and saves a third of the memory that its Pod must ask for.
		debug.SetGCPercent(50)
	}
	plugin, args := calledAs(os.Args[0], os.Args[1:])
	a := app{
		stdout:          os.Stdout,
		stderr:          os.Stderr,
		tty:             term.IsTerminal(int(os.Stderr.Fd())),
		stdoutTTY:       term.IsTerminal(int(os.Stdout.Fd())),
		env:             os.LookupEnv,
		environ:         os.Environ(),
		terminationFile: terminationFile,
		plugin:          plugin,
		passFuncs:       passes,
	}
	return a.execute(ctx, args)
}
