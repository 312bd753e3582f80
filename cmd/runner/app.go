package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/uuid"

	"github.com/syncpass/syncpass/cmd/runner/progress"
	"github.com/syncpass/syncpass/pass"
	"github.com/syncpass/syncpass/record"
)

// app is one run of the program: what it takes from the world around it, and what it leaves behind.
type app struct {
	stdin          io.Reader
	stdout, stderr io.Writer
	// tty says that a person reads stderr, stdoutTTY that one reads stdout, asks that one types into stdin as well; width, how
	// many characters fit into a line of stderr.
	tty, stdoutTTY, asks bool
	width                func() int
	env                  environment
	// environ lists the environment as os.Environ does.
	environ []string
	// terminationFile is where the last words go.
	terminationFile string
	// plugin says that kubectl started it.
	plugin bool
	passFuncs

	log  *slog.Logger
	text bool
	// screen is stderr where lines can change in place; nil elsewhere.
	screen *progress.Screen
	// flush sends what is left of the traces.
	flush   func(context.Context)
	started bool // whether a verb that works on tenants got under way
	results []pass.Result
	// policy is the file that a flag names in place of SYNCPASS_POLICY; empty where none does.
	policy string
	// differences says that planned writes are to show in the exit code.
	differences bool
}

// execute runs the verb that args name, and returns the exit code.
func (a *app) execute(ctx context.Context, args []string) int {
	if a.tty {
		if terminal, _ := a.env.Lookup("TERM"); terminal != "dumb" {
			a.screen = progress.NewScreen(a.stderr, a.width)
			a.stderr = a.screen // so that what is written there and the lines leave each other whole
		}
	}
	// Until the configuration says otherwise, errors are about the command line, and somebody reads them.
	a.log, a.text = newLog(a.stderr, slog.LevelInfo, "text", a.tty), true
	a.flush = func(context.Context) {} // until there are traces
	root := a.rootCommand()
	root.SetArgs(args)
	defer func() { a.flush(ctx) }() // last: nobody waits for it
	err := root.ExecuteContext(ctx)
	cause := context.Cause(ctx)
	code := exitCode(err, cause, a.results, a.differences)
	printErrors(a.stderr, a.log, a.text, err)
	if !a.started {
		return code
	}
	message, termErr := terminationMessage(code, err, cause, a.results)
	if termErr == nil {
		termErr = writeTermination(a.terminationFile, message)
	}
	if termErr != nil {
		a.log.Warn("The termination message is missing", "error", termErr)
	}
	return code
}

// start reads the configuration and finds the host. to is who the verb tells its metrics.
func (a *app) start(ctx context.Context, to audience) (*session, error) {
	c, err := a.configure()
	if err != nil {
		return nil, err
	}
	b := thisBuild()
	w := a.newTelemetry(ctx, b.version, to == scrapers || to == gateway && c.Pushgateway != "")
	h, err := connectHost(c, b.userAgent(), w.observe(record.Host))
	if err != nil {
		return nil, err
	}
	hostname, err := os.Hostname()
	if err != nil {
		return nil, fmt.Errorf("finding a name for this process: %w", err)
	}
	// The hostname, which in a Pod is its name, is for people; the rest tells two processes of one machine apart.
	identity := hostname + "_" + string(uuid.NewUUID())
	return &session{config: c, log: a.log, host: h, identity: identity, userAgent: b.userAgent(), telemetry: w, passFuncs: a.passFuncs}, nil
}

// configure reads the configuration. Everything that is wrong with it, and with the policy file that it names, is reported
// together, and before any request is sent.
func (a *app) configure() (config, error) {
	a.started = true
	c, err := loadConfig(a.env)
	a.log, a.text = newLog(a.stderr, c.LogLevel, c.LogFormat, a.tty), textLog(c.LogFormat, a.tty)
	for _, unknown := range unknownVariables(a.environ) {
		a.log.Warn("Unknown environment variable", "name", unknown.name, "nearest", unknown.nearest)
	}
	name := "SYNCPASS_POLICY"
	if a.policy != "" {
		name, c.Policy = "--policy", a.policy
	}
	_, policyErr := policyFrom(name, c.Policy)
	if err := errors.Join(err, policyErr); err != nil {
		return c, invalid(err)
	}
	a.log.Debug("Configuration", "build", thisBuild().String(), "variables", c)
	return c, nil
}

// pass runs the verbs pass and plan: one pass or dry run for each tenant, printed.
func (a *app) pass(ctx context.Context, p printing) error {
	to := gateway
	if p.dryRun {
		to = nobody
	}
	s, tenants, err := a.selectTenants(ctx, to)
	if err != nil {
		return err
	}
	defer s.host.cluster.Close()
	if err := s.checkTenants(tenants); err != nil {
		return err
	}
	s.changes = p.diff
	a.results = s.passes(ctx, tenants, p.dryRun)
	if !p.dryRun {
		defer s.push(ctx, tenantsOf(a.results)) // after people have what they wait for
	}
	if err := p.print(a.stdout, a.results); err != nil {
		return fmt.Errorf("printing the results: %w", err)
	}
	for _, r := range a.results {
		if r.Err != nil {
			printErrors(a.stderr, a.log, a.text, fmt.Errorf("%s/%s: %w", r.Namespace, r.Tenant, r.Err))
		}
	}
	return nil
}

// selectTenants starts a session and lists the tenants that its configuration selects. The session's host is the
// caller's to close.
func (a *app) selectTenants(ctx context.Context, to audience) (*session, []types.NamespacedName, error) {
	s, err := a.start(ctx, to)
	if err != nil {
		return nil, nil, err
	}
	tenants, err := s.host.tenants(ctx, s.config)
	if err != nil {
		s.host.cluster.Close()
		return nil, nil, err
	}
	return s, tenants, nil
}

// checkTenants says whether there being no tenants is a mistake. In one namespace it most likely is; a host without tenants, or a
// part of an Indexed Job without any, is none.
func (s *session) checkTenants(tenants []types.NamespacedName) error {
	if len(tenants) > 0 {
		return nil
	}
	if s.config.AllNamespaces || s.config.Shards > 1 {
		s.log.Info("No TenantCluster to look after", "allNamespaces", s.config.AllNamespaces, "shards", s.config.Shards, "shardIndex", s.config.ShardIndex)
		return nil
	}
	namespace, source := s.config.Namespace, "-n or SYNCPASS_NAMESPACE"
	if namespace == "" {
		namespace, source = s.host.namespace, "the host access"
	}
	return invalid(fmt.Errorf("there is no TenantCluster in namespace %q (from %s) of the host %s: create one, or name another namespace with -n, or all with SYNCPASS_ALL_NAMESPACES=true",
		namespace, source, s.host.cluster.Server()))
}
