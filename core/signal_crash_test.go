package core_test

// Processes that die between the steps of a wait.

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"strconv"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/seed-6f6f2c11/duly/core"
	"github.com/seed-6f6f2c11/duly/core/model"
	"github.com/seed-6f6f2c11/duly/internal/race"
)

// However the processes die that send a signal and that run what waits for it, at whatever step and in whatever order, each task hears it, and
// completes once.
func TestASignalIsHeardOnceWhateverDies(t *testing.T) {
	seeds := 100
	if race.Enabled {
		seeds /= 4
	}
	if n, err := strconv.Atoi(os.Getenv("DULY_SIGNAL_SEEDS")); err == nil {
		seeds = n
	}
	t.Parallel()
	crashed, repeated := 0, 0
	for seed := range seeds {
		synctest.Test(t, func(t *testing.T) {
			c, random := newCloud(t), rand.New(rand.NewPCG(uint64(seed), 5))
			heard, completed, deaths := map[string]int{}, map[string]int{}, 0
			call := func(do func(s *core.Scheduler) error) error {
				m := &dying{cloud: c, left: 1 + random.IntN(40)}
				s := m.process()
				core.Handle(s, "ask", func(_ context.Context, task *core.Task[note]) error {
					c.mu.Lock()
					defer c.mu.Unlock()
					if h, waited := task.Heard(); waited {
						assert.Equal(t, json.RawMessage(`"`+task.ID+`"`), h.Payload)
						heard[task.ID]++
						return nil
					}
					return core.Await(core.Signal{Key: "yes-" + task.ID, Timeout: 24 * time.Hour, OnTimeout: core.TimeoutFail}, nil)
				})
				err := do(s)
				if m.dead {
					deaths++
				}
				return err
			}
			const tasks = 4
			said := map[int]bool{}
			for i := 0; len(completed) < tasks; i++ {
				require.Less(t, i, 500, "seed %d: %v of %d tasks are completed", seed, completed, tasks)
				switch n := random.IntN(tasks); random.IntN(3) {
				case 0:
					_ = call(func(s *core.Scheduler) error {
						_, err := s.Submit(c.Context(), core.NewTask{Agent: "a", ID: fmt.Sprint(n), Kind: "ask"})
						return err
					})
				case 1:
					if said[n] { // it was acknowledged: nobody sends it again
						continue
					}
					err := call(func(s *core.Scheduler) error {
						_, err := s.Signal(c.Context(), "a", fmt.Sprint("yes-", n), json.RawMessage(fmt.Sprintf(`"%d"`, n)))
						return err
					})
					var taken *model.SignalTakenError
					said[n] = err == nil || errors.As(err, &taken)
				default:
					_ = call(func(s *core.Scheduler) error { _, err := s.RunDue(c.Context(), core.Scope{}); return err })
				}
				time.Sleep(time.Duration(random.IntN(90)) * time.Second)
				for id := range tasks {
					if info, err := c.process(c.store, nil).Task(c.Context(), "a", fmt.Sprint(id)); err == nil && info.Status == core.StatusCompleted {
						completed[info.ID] = 1
						assert.LessOrEqual(t, info.RunCount, 2+info.ErrorCount, "a wait, a run, and those whose process died")
					}
				}
			}
			for id, n := range heard {
				repeated += n - 1
				assert.LessOrEqual(t, n, 1+deaths, "task %s of seed %d is told again after a death alone", id, seed)
			}
			crashed += deaths
			assert.Len(t, heard, tasks)
		})
	}
	t.Logf("figure: %d tasks waited for a signal while %d processes died: all heard it and completed; %d were told again after a death", 4*seeds, crashed, repeated)
	assert.Greater(t, crashed, seeds)
}
