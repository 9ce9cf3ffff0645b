package core_test

// Processes that die between the steps of an end and of its callback.

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
	"github.com/seed-6f6f2c11/duly/core/internal/record"
	"github.com/seed-6f6f2c11/duly/core/memstore"
	"github.com/seed-6f6f2c11/duly/core/store"
	"github.com/seed-6f6f2c11/duly/core/storetest/spy"
	"github.com/seed-6f6f2c11/duly/internal/race"
)

// ends is a store that notes which ends are stored, by the callbacks that their records name. It does so whatever process hears of it.
type ends struct {
	store.Store

	mu     sync.Mutex
	stored map[string]bool
}

func (e *ends) note(data []byte) {
	rec, err := record.DecodeFinished(data)
	if err != nil || rec.Callback == "" {
		return
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	e.stored[rec.Callback] = true
}

func (e *ends) Settle(ctx context.Context, runs []store.Settlement) ([]store.Settled, error) {
	settled, err := e.Store.Settle(ctx, runs)
	for i := range settled {
		if settled[i].Err == nil && runs[i].Verb.Ends() {
			e.note(runs[i].Record)
		}
	}
	return settled, err
}

func (e *ends) Cancel(ctx context.Context, tasks []store.Cancellation) ([]store.Effect, error) {
	effects, err := e.Store.Cancel(ctx, tasks)
	for i := range effects {
		if effects[i].Code == store.EffectDone {
			e.note(tasks[i].Record)
		}
	}
	return effects, err
}

// ending is a history in which tasks end and live again.
type ending struct {
	*testing.T

	store  *ends
	to     *receiver
	random *rand.Rand
	deaths int
}

// process is one that dies after some steps; never if there are none.
func (h *ending) process(steps int) (*core.Scheduler, *dying) {
	m := &dying{left: steps}
	var st store.Store = h.store
	if steps > 0 {
		st = &spy.Store{
			Store:  h.store,
			Before: func(context.Context, string) error { return m.step() },
			After:  func(context.Context, string, any) error { return m.step() },
		}
	}
	s, err := core.New(st, core.Config{
		Callbacks: h.to, MaxCrashes: 1000, Default: core.KindConfig{Lease: time.Minute, Spread: -1, MaxAttempts: 2, Backoff: time.Second},
	})
	require.NoError(h, err)
	core.Handle(s, "k", func(_ context.Context, t *core.Task[note]) error {
		switch len(t.ID+t.Submitted.String()) % 3 {
		case 0:
			return errors.New("boom")
		case 1:
			return core.SkipRetry(errors.New("no use"))
		default:
			return nil
		}
	})
	return s, m
}

// step is what one process does, or has begun to do when it dies.
func (h *ending) step(id string) {
	s, m := h.process(1 + h.random.IntN(30))
	ctx := h.Context()
	switch h.random.IntN(8) {
	case 0:
		task := core.NewTask{Agent: "a", ID: id, Kind: "k", Delay: time.Duration(h.random.IntN(3)) * time.Minute, Callback: hook}
		if h.random.IntN(2) == 0 {
			task.OnConflict = core.OnConflictReplace
		}
		_, _ = s.Submit(ctx, task)
	case 1:
		_, _ = s.Cancel(ctx, "a", id, core.Order{})
	case 2:
		_, _ = s.Replay(ctx, "a", id)
	case 3:
		if h.random.IntN(4) == 0 {
			_ = s.Delete(ctx, "a", id)
		}
	default:
		_, _ = s.RunDue(ctx, core.Scope{})
	}
	if m.dead {
		h.deaths++
	}
}

// However processes die that end tasks, at whatever step, each end that is stored is told at least once, and nothing else is told.
func TestEachEndIsToldWhateverDies(t *testing.T) {
	seeds := 300
	if race.Enabled {
		seeds /= 4
	}
	if n, err := strconv.Atoi(os.Getenv("DULY_CALLBACK_SEEDS")); err == nil {
		seeds = n
	}
	t.Parallel()
	died, ended, told := 0, 0, 0
	for seed := range seeds {
		synctest.Test(t, func(t *testing.T) {
			h := &ending{
				T: t, to: &receiver{}, random: rand.New(rand.NewPCG(uint64(seed), 7)),
				store: &ends{Store: memstore.New(memstore.Config{}), stored: map[string]bool{}},
			}
			for range 40 {
				h.step(fmt.Sprint(h.random.IntN(3)))
				time.Sleep(time.Duration(h.random.IntN(90)) * time.Second)
			}
			s, _ := h.process(0)
			for range 60 { // what is left is done, and what was foretold comes to be due
				_, _ = s.RunDue(t.Context(), core.Scope{})
				time.Sleep(time.Minute)
			}
			heard := map[string]bool{}
			for _, d := range h.to.got {
				heard[d.Task["callback_task"].(string)] = true
			}
			assert.Equal(t, h.store.stored, heard, "seed %d", seed)
			died, ended, told = died+h.deaths, ended+len(h.store.stored), told+len(h.to.got)
		})
	}
	t.Logf("figure: %d ends of tasks while %d processes died: each was told, %d of them again", ended, died, told-ended)
	assert.Greater(t, died, 5*seeds)
	assert.Greater(t, ended, 2*seeds)
}
