package main

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"slices"
	"strconv"
	"strings"
	"syscall"

	"github.com/syncpass/syncpass/e2e/cluster"
)

func main() {
	if len(os.Args) > 1 && os.Args[1] == launchVerb {
		if err := launch(os.Args[2:]); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		return
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := bench(ctx, os.Args[1:], os.Stdout, os.Stderr)
	stop()
	if err != nil && !errors.Is(err, flag.ErrHelp) {
		fmt.Fprintln(os.Stderr, "bench:", err)
		os.Exit(1)
	}
}

// options are the flags.
type options struct {
	quick                      bool
	json, chart, from, runner  string
	only, direction, sizesFlag string
	sizes                      []int
	samples                    int
}

func parse(args []string) (options, error) {
	var o options
	flags := flag.NewFlagSet("bench", flag.ContinueOnError)
	flags.BoolVar(&o.quick, "quick", false, "only what fits into five minutes on an idle machine with two cores")
	flags.StringVar(&o.json, "json", "", "write the results to this file too")
	flags.StringVar(&o.chart, "chart", "", "draw the results into this SVG file")
	flags.StringVar(&o.from, "from", "", "measure nothing: take the results from this file, which -json wrote")
	flags.StringVar(&o.runner, "runner", "", "measure this binary instead of one built from cmd/runner")
	flags.StringVar(&o.only, "only", "", "only these `subjects`, of configmaps,pods,tenants")
	flags.StringVar(&o.sizesFlag, "sizes", "", "these `numbers` of objects (of tenants for tenants) instead of the usual ones, such as 1000,10000")
	flags.StringVar(&o.direction, "direction", "", "toHost or bidirectional for all kinds, instead of bidirectional for ConfigMaps and toHost for Pods")
	flags.IntVar(&o.samples, "samples", 3, "how often each row is measured; its numbers are medians")
	if err := flags.Parse(args); err != nil {
		return o, err
	}
	if flags.NArg() > 0 {
		return o, fmt.Errorf("unexpected argument %q", flags.Arg(0))
	}
	if o.samples < 1 {
		return o, errors.New("-samples must be at least 1")
	}
	if !slices.Contains([]string{"", "toHost", "bidirectional"}, o.direction) {
		return o, fmt.Errorf("-direction: %q is neither toHost nor bidirectional, and it is the tenant that is edited here", o.direction)
	}
	if o.sizesFlag != "" {
		for part := range strings.SplitSeq(o.sizesFlag, ",") {
			size, err := strconv.Atoi(part)
			if err != nil || size < 1 {
				return o, fmt.Errorf("-sizes: %q is no number of objects", part)
			}
			o.sizes = append(o.sizes, size)
		}
	}
	if o.only != "" {
		for subject := range strings.SplitSeq(o.only, ",") {
			if !slices.Contains([]string{configMaps.resource, pods.resource, tenantsName}, subject) {
				return o, fmt.Errorf("-only: there is no subject %q", subject)
			}
		}
	}
	return o, nil
}

// bench measures, or reads what was measured, and shows it. Data goes to out, progress to log.
func bench(ctx context.Context, args []string, out, log io.Writer) error {
	o, err := parse(args)
	if err != nil {
		return err
	}
	results := &results{}
	if o.from != "" {
		data, err := os.ReadFile(o.from)
		if err != nil {
			return err
		}
		if err := json.Unmarshal(data, results); err != nil {
			return fmt.Errorf("%s: %w", o.from, err)
		}
	} else if results, err = measureAll(ctx, o, log); err != nil {
		return err
	}
	results.Bars = judge(results.Rows)
	if err := results.print(out); err != nil {
		return err
	}
	if o.json != "" {
		data, err := json.MarshalIndent(results, "", "  ")
		if err != nil {
			return err
		}
		if err := os.WriteFile(o.json, append(data, '\n'), 0o644); err != nil {
			return err
		}
	}
	if o.chart != "" {
		drawing, err := chart(results)
		if err != nil {
			return err
		}
		return os.WriteFile(o.chart, drawing, 0o644)
	}
	return nil
}

// measureAll measures the subjects one after the other, each on API servers of its own.
func measureAll(ctx context.Context, o options, log io.Writer) (_ *results, err error) {
	dir, err := os.MkdirTemp("", "syncpass-bench-")
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	runner := o.runner
	if runner == "" {
		fmt.Fprintln(log, "building the runner ...")
		if runner, err = cluster.BuildRunner(ctx, dir); err != nil {
			return nil, err
		}
	}
	results := &results{Machine: machine()}
	for _, s := range subjects(o) {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		rows, err := s.measure(ctx, runner, log)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", s.name(), err)
		}
		results.Rows = append(results.Rows, rows...)
	}
	return results, nil
}
