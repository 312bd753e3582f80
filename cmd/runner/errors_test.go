package main

import (
	"errors"
	"fmt"
	"testing"

	"github.com/stretchr/testify/assert"
	utilerrors "k8s.io/apimachinery/pkg/util/errors"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/syncpass/syncpass/pass/access"
	"github.com/syncpass/syncpass/policy"
)

func TestErrorLines(t *testing.T) {
	a, b, c := errors.New("a"), errors.New("b"), errors.New("c")
	faults := field.ErrorList{
		field.Required(field.NewPath("spec", "resources"), "say what crosses"),
		field.Invalid(field.NewPath("spec", "explain", "retain"), -1, "must not be negative"),
	}
	tests := []struct {
		name string
		err  error
		want []string
	}{
		{"none", nil, nil},
		{"one", a, []string{"a"}},
		{"joined", errors.Join(a, b), []string{"a", "b"}},
		{"joined twice", errors.Join(a, errors.Join(b, c)), []string{"a", "b", "c"}},
		{"wrapped around joined", fmt.Errorf("reading: %w", errors.Join(a, b)), []string{"reading: a", "reading: b"}},
		{"wrapped at each level", fmt.Errorf("x: %w", errors.Join(a, fmt.Errorf("y: %w", errors.Join(b, c)))), []string{"x: a", "x: y: b", "x: y: c"}},
		{"a class and a cause are one fault", fmt.Errorf("%w: %w", a, b), []string{"a: b"}},
		{"a class and joined causes", fmt.Errorf("%w: %w", a, errors.Join(b, c)), []string{"a: b", "a: c"}},
		{"a sentence that goes on", fmt.Errorf("reading: %w: try again", errors.Join(a, b)), []string{"reading: a\nb: try again"}},
		{"through the exit code", invalid(errors.Join(a, b)), []string{"a", "b"}},
		{"a kubeconfig", fmt.Errorf("Secret s: %w", &access.ConfigError{Problems: []error{a, b}}), []string{"Secret s: a", "Secret s: b"}},
		{"a policy", fmt.Errorf("file: %w", &policy.InvalidError{Name: "p", Faults: faults}), []string{
			`file: SyncPolicy "p": spec.resources: Required value: say what crosses`,
			`file: SyncPolicy "p": spec.explain.retain: Invalid value: -1: must not be negative`}},
		{"an aggregate puts all into one sentence", utilerrors.NewAggregate([]error{a, b}), []string{"[a, b]"}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			assert.Equal(t, tt.want, errorLines(tt.err))
		})
	}
}
