package ahead

import (
	"math/rand/v2"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"

	"github.com/seed-6f6f2c11/duly/core/model"
	"github.com/seed-6f6f2c11/duly/core/store/moment"
)

// However long answers take, and whatever part of a millisecond they leave out, the clock is never ahead of the store's, and soon hardly behind.
func TestClockIsNeverAhead(t *testing.T) {
	t.Parallel()
	for seed := range uint64(200) {
		r := rand.New(rand.NewPCG(seed, 1))
		skew := time.Duration(r.Int64N(int64(time.Hour))) - 30*time.Minute
		var c Clock
		at := time.Now()
		for range 50 {
			at = at.Add(time.Duration(r.Int64N(int64(200 * time.Millisecond))))
			sent, there, received := at, at.Add(time.Duration(r.Int64N(int64(2*time.Millisecond)))), at.Add(2*time.Millisecond+time.Duration(r.Int64N(int64(3*time.Millisecond))))
			c.Observe(moment.Millis(there.Add(skew).UnixMilli()), sent, received)
		}
		due := moment.Of(at.Add(skew)) + 80
		behind := c.Reaches(due).Add(skew).Sub(due.Time())
		assert.GreaterOrEqual(t, behind, time.Duration(0), "seed %d", seed)
		assert.Less(t, behind, 6*time.Millisecond, "seed %d", seed)
	}
}

// A store whose clock was put back, as after a failover, is believed with its first answer.
func TestClockThatWasPutBack(t *testing.T) {
	t.Parallel()
	var c Clock
	now := time.Now()
	c.Observe(moment.Millis(now.UnixMilli()), now, now)
	back := moment.Millis(now.UnixMilli()) - 5000
	c.Observe(back, now, now.Add(time.Millisecond))
	assert.GreaterOrEqual(t, c.Reaches(back+10).Sub(now), 11*time.Millisecond)
	assert.Less(t, c.Reaches(back+10).Sub(now), 12*time.Millisecond)
}

func TestWaiting(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		type began struct {
			after time.Duration
			what  []string
		}
		all := make(chan began, 3)
		begun := time.Now()
		w := NewWaiting(model.SystemClock{}, func(what []string) { all <- began{time.Since(begun), what} })
		assert.True(t, w.First().IsZero())
		w.Add(begun.Add(30*time.Millisecond), "c")
		w.Add(begun.Add(10*time.Millisecond), "a")
		w.Add(begun.Add(20*time.Millisecond), "gone")
		w.Add(begun.Add(30*time.Millisecond), "d")
		assert.Equal(t, begun.Add(10*time.Millisecond), w.First())
		assert.Equal(t, []string{"gone"}, w.Take(func(what *string) bool { return *what == "gone" }))
		assert.Equal(t, began{10 * time.Millisecond, []string{"a"}}, <-all)
		assert.Equal(t, began{30 * time.Millisecond, []string{"c", "d"}}, <-all)
		w.Add(begun, "late")
		assert.Equal(t, began{30 * time.Millisecond, []string{"late"}}, <-all)
	})
}
