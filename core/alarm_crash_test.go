package core_test

// Processes that die between the steps of booking an alarm.

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"strconv"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/seed-6f6f2c11/duly/core"
	"github.com/seed-6f6f2c11/duly/core/storetest/spy"
	"github.com/seed-6f6f2c11/duly/internal/race"
)

// dying is a process that dies at one of its steps: before or after a call of the store, or of the clock outside. What it does
// afterwards nobody hears of.
type dying struct {
	cloud *cloud

	mu   sync.Mutex
	left int // steps
	dead bool
}

var errDied = errors.New("the process is dead")

// step is the moment before or after something.
func (m *dying) step() error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.left--; m.left == 0 {
		m.dead = true
	}
	if m.dead {
		return errDied
	}
	return nil
}

// Set is a step, or two.
func (m *dying) Set(ctx context.Context, at time.Time) error {
	if err := m.step(); err != nil {
		return err
	}
	if err := m.cloud.Set(ctx, at); err != nil {
		return err
	}
	return m.step()
}

// process is one that dies.
func (m *dying) process() *core.Scheduler {
	st := &spy.Store{
		Store:  m.cloud.store,
		Before: func(context.Context, string) error { return m.step() },
		After:  func(context.Context, string, any) error { return m.step() },
	}
	return m.cloud.process(st, m)
}

// Whatever step a process dies at, what it has accepted starts when the watchdog comes at the latest.
func TestNoWakeUpIsLostBeyondTheWatchdog(t *testing.T) {
	seeds := 100
	if race.Enabled {
		seeds /= 4
	}
	if n, err := strconv.Atoi(os.Getenv("DULY_ALARM_SEEDS")); err == nil {
		seeds = n
	}
	t.Parallel()
	const watchdog, lease = 15 * time.Minute, time.Minute
	crashed, inTime, runs := 0, 0, 0
	for seed := range seeds {
		synctest.Test(t, func(t *testing.T) {
			c, random := newCloud(t), rand.New(rand.NewPCG(uint64(seed), 3))
			dues := map[string]time.Time{}
			var deaths []time.Time
			call := func(do func(s *core.Scheduler) error) {
				m := &dying{cloud: c, left: 1 + random.IntN(24)} // many live on
				_ = do(m.process())
				if m.dead {
					deaths = append(deaths, time.Now())
				}
			}
			pull := func(s *core.Scheduler) error { _, err := s.RunDue(c.Context(), core.Scope{}); return err }
			tick := c.begun.Add(watchdog)
			for i := range 12 {
				call(func(s *core.Scheduler) error {
					id, after := fmt.Sprint("t", i), time.Duration(random.IntN(3600))*time.Second
					placed, err := s.Submit(c.Context(), core.NewTask{Agent: fmt.Sprint("a", i%5), ID: id, Kind: "k", Delay: after})
					if err == nil {
						dues[id] = placed[0].Due
					}
					return err
				})
				for until := c.begun.Add(time.Duration(i+1) * 4 * time.Minute); ; {
					at, rings := c.next(until)
					if tick.Before(at) { // a ring that was taken is answered late, by the watchdog: as if its message had been lost
						at, rings, tick = tick, true, tick.Add(watchdog)
					}
					time.Sleep(time.Until(at))
					if !rings {
						break
					}
					call(pull)
				}
			}
			healthy := c.process(c.store, c)
			for range 8 { // the watchdog goes on
				c.live(tick.Sub(c.begun), func() { _ = pull(healthy) })
				_ = pull(healthy)
				tick = tick.Add(watchdog)
			}
			crashed += len(deaths)
			for id, due := range dues {
				started := time.Time{}
				for key, at := range c.starts {
					if len(key) > len(id) && key[:len(id)] == id && key[len(id)] == '2' {
						started = at
					}
				}
				require.False(t, started.IsZero(), "seed %d: %s has not started", seed, id)
				runs++
				late, died := started.Sub(due), 1 // one that booked nothing
				for _, at := range deaths {
					if !at.Before(due) && at.Before(started) { // it may have had the task, and the next one may come with the watchdog only
						died++
					}
				}
				require.LessOrEqual(t, late, time.Duration(died)*(watchdog+lease), "seed %d: %s", seed, id)
				if late <= 2*time.Second {
					inTime++
				}
			}
		})
	}
	t.Logf("figure: %d seeds, %d crashes, %d runs, %d of them within 2 s", seeds, crashed, runs, inTime)
	assert.Greater(t, crashed, seeds)
	assert.Greater(t, runs, 8*seeds)
}
