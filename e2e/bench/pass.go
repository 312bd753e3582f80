package main

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"path/filepath"
	"strings"
	"time"

	"github.com/syncpass/syncpass/e2e/proxy"
	"github.com/syncpass/syncpass/record"
)

// settleTimeout bounds the wait for the proxies to have finished with a pass that has ended.
const settleTimeout = 30 * time.Second

// output is what the bench reads of what `-o json` prints; not the decisions, which are many.
type output struct {
	Passes []struct {
		Outcome record.Outcome `json:"outcome"`
		Message string         `json:"message"`
		PlanID  string         `json:"planID"`
		Counts  record.Counts  `json:"counts"`
	} `json:"passes"`
}

// run is one run of the binary.
type run struct {
	usage
	output
	// seen is nil where the run did not go through the proxies.
	seen *seen
}

// counts are those of all passes together.
func (r *run) counts() record.Counts {
	var sum record.Counts
	for _, p := range r.Passes {
		c := p.Counts
		sum.Create += c.Create
		sum.Update += c.Update
		sum.Delete += c.Delete
		sum.Skip += c.Skip
		sum.Unchanged += c.Unchanged
		sum.Error += c.Error
		sum.Requests += c.Requests
	}
	return sum
}

// environment is that of a run: nothing of the user's own settings.
func (w *world) environment(p place, proxied bool, more ...string) []string {
	kubeconfig := directFile
	if proxied {
		kubeconfig = proxiedFile
	}
	return append([]string{
		"HOME=" + w.dir, "SYNCPASS_HOST_KUBECONFIG=" + filepath.Join(w.dir, kubeconfig),
		"SYNCPASS_NAMESPACE=" + p.namespace, "SYNCPASS_TENANT=" + p.tenant,
		// The largest rows take longer than the default, which is for a CronJob.
		"SYNCPASS_PASS_TIMEOUT=1h",
		// The same for passes through the proxy: mirrored Pods are told this address.
		"SYNCPASS_TENANT_API_ENDPOINT=" + w.tenant.cluster.Config.Host,
		"SYNCPASS_LOG_FORMAT=json", "SYNCPASS_LOG_LEVEL=warn",
	}, more...)
}

// run runs one verb of the binary.
func (w *world) run(ctx context.Context, env []string, verb string) (*run, error) {
	taken, stdout, stderr, err := measure(ctx, w.dir, env, w.runner, verb, "-o", "json")
	if err != nil {
		return nil, err
	}
	r := &run{usage: taken}
	if err := json.Unmarshal(stdout, &r.output); err != nil {
		return nil, fmt.Errorf("runner %s ended with exit code %d, and its output cannot be read: %w\n%s", verb, taken.Exit, err, stderr)
	}
	return r, nil
}

// want is what a pass must have done, so that no number is taken of one that failed.
type want struct {
	passes, create, update, delete, unchanged int
}

// pass runs one pass for a place, or through the proxies and writes down what it sent, and checks what it did.
func (w *world) pass(ctx context.Context, p place, proxied bool, wanted want, env ...string) (*run, error) {
	mark := w.requests.Mark()
	r, err := w.run(ctx, w.environment(p, proxied, env...), "pass")
	if err != nil {
		return nil, err
	}
	if err := r.check(wanted); err != nil {
		return nil, err
	}
	if proxied {
		ctx, cancel := context.WithTimeout(ctx, settleTimeout)
		defer cancel()
		requests, err := w.requests.Settled(ctx, mark)
		if err != nil {
			return nil, err
		}
		r.seen = look(requests)
	}
	return r, nil
}

func (r *run) check(wanted want) error {
	got := r.counts()
	got.Requests = 0
	expected := record.Counts{Create: wanted.create, Update: wanted.update, Delete: wanted.delete, Unchanged: wanted.unchanged}
	if len(r.Passes) == wanted.passes && got == expected && r.Exit == 0 {
		return nil
	}
	message := ""
	for _, p := range r.Passes {
		if p.Outcome != record.Completed {
			message = fmt.Sprintf("%s: %s", p.Outcome, p.Message)
		}
	}
	return fmt.Errorf("the pass did not do what is measured: exit code %d, %d passes with %+v, wanted were %d with %+v; %s",
		r.Exit, len(r.Passes), got, wanted.passes, expected, message)
}

// seen is what the proxies saw of one run.
type seen struct {
	// Requests are all, Writes those that changed an object other than the Lease, Events and the record among them.
	Requests, Writes int
	// RecordBytes are the bodies of all writes of SyncDecisions, RecordObjects how many were written to.
	RecordBytes   int64
	RecordObjects int
	// Received are the bytes of the answers' bodies by side, compressed where they came so.
	Received map[string]int64
}

func look(requests []proxy.Request) *seen {
	s := &seen{Requests: len(requests), Received: map[string]int64{}}
	decisions := map[string]bool{}
	for _, r := range requests {
		s.Received[r.Server] += r.Received
		path := strings.TrimSuffix(r.Path, "/status")
		switch {
		case r.Method == http.MethodGet || strings.Contains(path, "/leases"):
			continue
		case strings.Contains(path, "/syncdecisions"):
			s.RecordBytes += r.Sent
			if !strings.HasSuffix(path, "/syncdecisions") { // a create, whose object is written to next
				decisions[path] = true
			}
		case !r.Write && !strings.Contains(path, "/events"):
			continue // a dry run, or a write that was refused
		}
		s.Writes++
	}
	s.RecordObjects = len(decisions)
	return s
}
