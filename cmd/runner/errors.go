package main

import (
	"errors"
	"fmt"
	"strings"

	"github.com/syncpass/syncpass/pass/access"
	"github.com/syncpass/syncpass/policy"
)

// errorLines takes err apart into one text for each fault that it joins, so that a person can go through them one by
// one. What was wrapped around the joined error is put in front of each of its texts.
func errorLines(err error) []string {
	if err == nil {
		return nil
	}
	whole, parts := joined(err)
	prefix, isSuffix := strings.CutSuffix(err.Error(), whole)
	if len(parts) == 0 || !isSuffix {
		// One fault only, or faults put into a sentence that does not end with them, which is left as it is.
		return []string{err.Error()}
	}
	var lines []string
	for _, part := range parts {
		for _, line := range errorLines(part) {
			lines = append(lines, prefix+line)
		}
	}
	return lines
}

// joined finds the outermost error in the chain of err that holds several faults, and returns its text and the faults.
func joined(err error) (whole string, parts []error) {
	for err != nil {
		switch e := err.(type) {
		case *policy.InvalidError:
			for _, fault := range e.Faults {
				parts = append(parts, fmt.Errorf("SyncPolicy %q: %w", e.Name, fault))
			}
			return e.Error(), parts
		case *access.ConfigError:
			return e.Error(), e.Problems
		case interface{ Unwrap() []error }:
			parts = e.Unwrap()
			if isJoin(err, parts) {
				return err.Error(), parts
			}
			// fmt.Errorf with more than one %w: a class and a cause, or a cause and a note. What can be taken apart
			// into lines stands last.
			err = parts[len(parts)-1]
		default:
			err = errors.Unwrap(err)
		}
	}
	return "", nil
}

// isJoin tells what errors.Join made from what fmt.Errorf did.
func isJoin(err error, parts []error) bool {
	texts := make([]string, len(parts))
	for i, part := range parts {
		texts[i] = part.Error()
	}
	return err.Error() == strings.Join(texts, "\n")
}
