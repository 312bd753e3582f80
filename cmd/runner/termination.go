package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"slices"

	"github.com/syncpass/syncpass/pass"
	"github.com/syncpass/syncpass/record"
)

const (
	// terminationFile is where the kubelet reads a container's last words from; they show in `kubectl describe pod`.
	terminationFile = "/dev/termination-log"
	// maxTermination is the most that the kubelet reads of it, in bytes.
	// https://kubernetes.io/docs/tasks/debug/debug-application/determine-reason-pod-failure/
	maxTermination = 4096
	// maxTerminationText bounds one text in it, in characters.
	maxTerminationText = 300
	// maxTerminationItems is more passes, or errors, than there can be room for.
	maxTerminationItems = 40
)

// lastWords is the summary that a process leaves behind.
type lastWords struct {
	ExitCode int           `json:"exitCode"`
	Errors   []string      `json:"errors,omitempty"`
	Passes   []passSummary `json:"passes"`
	// Omitted is how many errors and passes had no room.
	Omitted int `json:"omitted,omitempty"`
}

type passSummary struct {
	ID        string         `json:"id"`
	Tenant    string         `json:"tenant"`
	Namespace string         `json:"namespace"`
	Outcome   record.Outcome `json:"outcome"`
	Message   string         `json:"message"`
	PlanID    string         `json:"planID"`
	Counts    record.Counts  `json:"counts"`
}

// terminationMessage is one line of JSON that fits into what the kubelet reads. Where not all has room, the passes
// that went well go first.
func terminationMessage(code int, err, cause error, results []pass.Result) ([]byte, error) {
	words := lastWords{ExitCode: code, Passes: []passSummary{}}
	lines := errorLines(err)
	for _, line := range lines[:min(len(lines), maxTerminationItems)] {
		words.Errors = append(words.Errors, clipped(maxTerminationText, printable(line)))
	}
	worstFirst := slices.SortedStableFunc(slices.Values(results), func(a, b pass.Result) int {
		return outcomeCode(b.Outcome, cause) - outcomeCode(a.Outcome, cause)
	})
	for _, r := range worstFirst[:min(len(worstFirst), maxTerminationItems)] {
		words.Passes = append(words.Passes, passSummary{ID: r.ID, Tenant: r.Tenant, Namespace: r.Namespace, Outcome: r.Outcome,
			Message: clipped(maxTerminationText, printable(r.Message)), PlanID: r.PlanID, Counts: r.Counts})
	}
	words.Omitted = len(lines) - len(words.Errors) + len(results) - len(words.Passes)
	for {
		line, err := json.Marshal(words)
		if err != nil || len(line) < maxTermination {
			return append(line, '\n'), err
		}
		if n := len(words.Passes); n > 1 || n > 0 && len(words.Errors) == 0 {
			words.Passes = words.Passes[:n-1]
		} else {
			words.Errors = words.Errors[:len(words.Errors)-1]
		}
		words.Omitted++
	}
}

// writeTermination writes the message where the kubelet looks for it, if there is such a file: only containers have
// it, and it is not for this program to make one elsewhere.
func writeTermination(path string, message []byte) error {
	info, err := os.Stat(path)
	if errors.Is(err, fs.ErrNotExist) || err == nil && !info.Mode().IsRegular() {
		return nil
	}
	if err == nil {
		err = os.WriteFile(path, message, info.Mode().Perm())
	}
	if err != nil {
		return fmt.Errorf("writing the termination message: %w", err)
	}
	return nil
}
