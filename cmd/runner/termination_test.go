package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/syncpass/syncpass/pass"
	"github.com/syncpass/syncpass/record"
)

func TestTerminationMessageIsOneLineOfJSON(t *testing.T) {
	message, err := terminationMessage(3, errors.Join(errors.New("a\nb"), errors.New("c")), nil, []pass.Result{onePass()})
	require.NoError(t, err)
	assert.JSONEq(t, `{"exitCode":3,"errors":["a b","c"],"passes":[{"id":"20260301T120000Z-abcde","tenant":"dev","namespace":"team-dev",
		"outcome":"CompletedWithErrors","message":"","planID":"","counts":{"create":1,"update":1,"delete":1,"skip":3,"unchanged":41,"error":1,"requests":12}}]}`, string(message))
	assert.Equal(t, 1, bytes.Count(message, []byte("\n")))
	assert.True(t, bytes.HasSuffix(message, []byte("\n")))
}

func TestTerminationMessageFitsAndKeepsTheWorst(t *testing.T) {
	long := strings.Repeat("<é\n", 1000)
	var results []pass.Result
	for i := range 300 {
		results = append(results, pass.Result{Tenant: fmt.Sprint("t", i), Namespace: "team-dev", Outcome: record.Completed, Message: long})
	}
	results[250].Outcome = record.Unreachable
	for _, tt := range []struct {
		name    string
		err     error
		results []pass.Result
	}{
		{"many passes", nil, results},
		{"many passes and errors", errors.Join(errors.New(long), errors.New(long), errors.New(long)), results},
		{"one pass and many errors", errors.Join(slices.Repeat([]error{errors.New(long)}, 100)...), results[250:251]},
		{"nothing but errors", errors.Join(slices.Repeat([]error{errors.New(long)}, 100)...), nil},
	} {
		t.Run(tt.name, func(t *testing.T) {
			message, err := terminationMessage(7, tt.err, nil, tt.results)
			require.NoError(t, err)
			assert.LessOrEqual(t, len(message), maxTermination)
			var got lastWords
			require.NoError(t, json.Unmarshal(message, &got))
			assert.Equal(t, len(errorLines(tt.err))+len(tt.results), len(got.Errors)+len(got.Passes)+got.Omitted)
			if len(tt.results) > 0 {
				require.NotEmpty(t, got.Passes)
				assert.Equal(t, "t250", got.Passes[0].Tenant)
			}
		})
	}
}

func TestTerminationMessageIsWrittenOnlyWhereThereIsAFile(t *testing.T) {
	path := filepath.Join(t.TempDir(), "termination-log")
	require.NoError(t, writeTermination(path, []byte("new\n")))
	assert.NoFileExists(t, path)

	require.NoError(t, os.WriteFile(path, []byte("something longer that was there\n"), 0o600))
	require.NoError(t, writeTermination(path, []byte("new\n")))
	text, err := os.ReadFile(path)
	require.NoError(t, err)
	assert.Equal(t, "new\n", string(text))

	require.NoError(t, writeTermination(t.TempDir(), []byte("new\n")), "a folder is no such file")
}
