package lease

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestALeaseTellsWhenTheNewestPassBegan(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &store{}
		seen, err := Read(t.Context(), s, Name("dev"), time.Now())
		require.NoError(t, err)
		assert.Nil(t, seen, "no pass has taken it yet")

		began := time.Now()
		held, err := Acquire(t.Context(), s, Options{Name: Name("dev"), Identity: "me", Duration: 30 * time.Second})
		require.NoError(t, err)
		seen, err = Read(t.Context(), s, Name("dev"), time.Now())
		require.NoError(t, err)
		assert.Equal(t, "me", seen.Holder)
		assert.True(t, began.Equal(seen.Began), seen.Began)

		seen, err = Read(t.Context(), s, Name("dev"), began.Add(30*time.Second))
		require.NoError(t, err)
		assert.Empty(t, seen.Holder, "who died does not hold it")

		require.NoError(t, held.Release(t.Context()))
		writes := s.writes
		seen, err = Read(t.Context(), s, Name("dev"), time.Now())
		require.NoError(t, err)
		assert.Empty(t, seen.Holder)
		assert.True(t, began.Equal(seen.Began))
		assert.Equal(t, writes, s.writes, "reading writes nothing")

		s.before = func(context.Context, string) error { return errors.New("no answer") }
		_, err = Read(t.Context(), s, Name("dev"), time.Now())
		assert.ErrorContains(t, err, "reading lease syncpass-dev: no answer")
	})
}
