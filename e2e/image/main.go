// Package main is the program in the container images of the tests, which run on
// real nodes: a web server, a client of it, and a few ways to tell what a container
// finds around itself. It is static, needs no file beside it, and prints its answer
// alone to standard output.
package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"strconv"
	"syscall"
)

const usage = `Usage: tool VERB

  serve        answer HTTP on :8080 until told to end:
                 /            $PAGE, or else the hostname
                 /hostname    the hostname
                 /env/NAME    an environment variable
                 /file/PATH   a file
  pause        do nothing until told to end
  exit N       end with exit code N
  get URL      print what is there; an answer other than 2xx is an error
  whoami       print the user name that the Kubernetes API knows the Pod's ServiceAccount by
  resolve NAME print the addresses of a host name, one a line
  env          print the environment, sorted
`

func main() {
	// A container's first process ends on no signal that it does not handle.
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	code, err := run(ctx, os.Args[1:])
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "tool:", err)
	}
	os.Exit(code)
}

// run returns the exit code, which is not 0 where there is an error.
func run(ctx context.Context, args []string) (int, error) {
	verb, args, err := parse(args)
	if err != nil {
		return 2, fmt.Errorf("%w\n\n%s", err, usage)
	}
	switch verb {
	case "serve":
		err = serve(ctx, ":8080")
	case "pause":
		<-ctx.Done()
	case "exit":
		code, err := strconv.Atoi(args[0])
		if err != nil {
			return 2, fmt.Errorf("exit code: %w", err)
		}
		return code, nil
	case "get":
		err = get(ctx, os.Stdout, args[0])
	case "whoami":
		err = whoami(ctx, os.Stdout, mountedAPI())
	case "resolve":
		err = resolve(ctx, os.Stdout, args[0])
	case "env":
		printEnvironment(os.Stdout, os.Environ())
	}
	if err != nil {
		return 1, err
	}
	return 0, nil
}

// arguments has the number of arguments of each verb.
var arguments = map[string]int{"serve": 0, "pause": 0, "exit": 1, "get": 1, "whoami": 0, "resolve": 1, "env": 0}

func parse(args []string) (verb string, rest []string, err error) {
	if len(args) == 0 {
		return "", nil, errors.New("a verb is needed")
	}
	verb, rest = args[0], args[1:]
	count, ok := arguments[verb]
	if !ok {
		return "", nil, fmt.Errorf("unknown verb %q", verb)
	}
	if len(rest) != count {
		return "", nil, fmt.Errorf("%s takes %d arguments, not %d", verb, count, len(rest))
	}
	return verb, rest, nil
}
