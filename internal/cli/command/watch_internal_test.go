package command

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"

	"github.com/seed-6f6f2c11/duly/core/store"
)

// A watch outlives a store that is away for a moment, ends with any other fault, and with its user's wish, which is none.
func TestWhatEndsAWatch(t *testing.T) {
	t.Parallel()
	away, broken := &store.Error{Verb: "stats", Err: errors.New("away")}, errors.New("broken")
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		o := &Options{Watch: time.Second}
		for _, c := range []struct {
			answers []error
			want    error
			calls   int
		}{
			{[]error{away}, away, 1},
			{[]error{nil, away, away, nil, broken}, broken, 5},
			{[]error{broken}, broken, 1},
			{[]error{nil, context.Canceled}, nil, 2},
		} {
			calls := 0
			err := o.again(ctx, func() error {
				calls++
				answer := c.answers[calls-1]
				if errors.Is(answer, context.Canceled) {
					cancel() // while it is asked
				}
				return answer
			})
			assert.Equal(t, c.want, err)
			assert.Equal(t, c.calls, calls)
		}
	})
	assert.Equal(t, []string{"queue", "--watch=5s", "--json", "--watch", "kind", "--", "--watch", "5s"},
		JoinWatch([]string{"queue", "--watch", "5s", "--json", "--watch", "kind", "--", "--watch", "5s"}))
}
