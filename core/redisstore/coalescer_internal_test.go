package redisstore

// Callers that share a call, and give up at every moment.

import (
	"context"
	"errors"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
)

// counter answers a number with itself, an hour after it was asked.
func counter(batches *[][]int, ended *[]error) *coalescer[int, int] {
	return newCoalescer(func(ctx context.Context, batch []int) []outcome[int] {
		*batches = append(*batches, batch)
		select {
		case <-time.After(time.Hour):
		case <-ctx.Done():
		}
		*ended = append(*ended, ctx.Err())
		out := make([]outcome[int], len(batch))
		for i, n := range batch {
			out[i] = outcome[int]{answer: n, err: ctx.Err()}
		}
		return out
	})
}

var errEnough = errors.New("enough")

// asks has somebody ask a number, and gives up after a while.
func asks(t *testing.T, wg *sync.WaitGroup, c *coalescer[int, int], n int, patience time.Duration, want error) {
	t.Helper()
	wg.Go(func() {
		ctx, cancel := context.WithTimeoutCause(t.Context(), patience, errEnough)
		defer cancel()
		got, err := c.do(ctx, n)
		if want != nil {
			assert.ErrorIs(t, err, want, "%d", n)
			return
		}
		assert.NoError(t, err, "%d", n)
		assert.Equal(t, n, got)
	})
	synctest.Wait()
}

func TestWhoGivesUpSpoilsNothingForTheOthers(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var batches [][]int
		var ended []error
		c := counter(&batches, &ended)
		var wg sync.WaitGroup
		asks(t, &wg, c, 1, 2*time.Hour, nil)
		asks(t, &wg, c, 2, 30*time.Minute, errEnough) // waits, and gives up before it is asked
		asks(t, &wg, c, 3, 90*time.Minute, nil)       // leads the second batch, which goes on for the others
		asks(t, &wg, c, 4, 3*time.Hour, nil)
		asks(t, &wg, c, 5, 91*time.Minute, errEnough)
		wg.Wait()
		assert.Equal(t, [][]int{{1}, {3, 4, 5}}, batches)
		assert.Equal(t, []error{nil, nil}, ended)
	})
}

func TestABatchThatNobodyWaitsForEnds(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var batches [][]int
		var ended []error
		c := counter(&batches, &ended)
		var wg sync.WaitGroup
		asks(t, &wg, c, 1, 2*time.Hour, nil)
		asks(t, &wg, c, 2, 70*time.Minute, context.Canceled) // leads
		asks(t, &wg, c, 3, 80*time.Minute, errEnough)
		start := time.Now()
		wg.Wait()
		assert.Equal(t, 80*time.Minute, time.Since(start))
		assert.Equal(t, [][]int{{1}, {2, 3}}, batches)
		assert.Equal(t, []error{nil, context.Canceled}, ended)
	})
}

// The turn to lead may come at the very moment at which its caller gives up: then the next one has it.
func TestTheTurnToLeadIsNotLost(t *testing.T) {
	t.Parallel()
	var batches [][]int
	var ended []error
	c := counter(&batches, &ended)
	leaves := &ask[int, int]{news: make(chan news, 2)}
	next := &ask[int, int]{news: make(chan news, 2)}
	c.working, c.waiting = true, []*ask[int, int]{leaves, next}
	leaves.news <- lead
	c.leave(leaves)
	assert.Equal(t, []*ask[int, int]{next}, c.waiting)
	assert.Len(t, next.news, 1)
	assert.Equal(t, lead, <-next.news)
	next.news <- lead
	c.leave(next)
	assert.False(t, c.working, "nobody is left: whoever asks next leads")
}
