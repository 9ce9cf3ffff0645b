package daemon_test

// Adaptive limits over several daemons, in virtual time: providers that count calls find nearly all of their quota used, and nearly none above.

import (
	"context"
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

	"github.com/seed-6f6f2c11/duly/adapters/daemon"
	"github.com/seed-6f6f2c11/duly/core"
	"github.com/seed-6f6f2c11/duly/core/memstore"
)

// provider serves so many calls in each minute of the clock, and tells the others when the next begins.
type provider struct {
	quota int

	mu              sync.Mutex
	minute          time.Time
	served, refused int
	inMinute        int
	until           time.Time // nobody is to call before
	early           int       // calls that began before that, of which none may
}

func (p *provider) call(began time.Time) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	now := time.Now()
	if began.Before(p.until) && !p.until.IsZero() && began.After(p.until.Add(-time.Minute)) {
		p.early++
	}
	if minute := now.Truncate(time.Minute); minute.After(p.minute) {
		p.minute, p.inMinute = minute, 0
	}
	if p.inMinute < p.quota {
		p.inMinute++
		p.served++
		return nil
	}
	p.refused++
	return core.RetryAfter(p.minute.Add(time.Minute), fmt.Errorf("429: %d calls in this minute", p.quota))
}

// With 200 agents that all want more than there is, in five processes, for an hour (or as many minutes as DULY_QUOTA_MINUTES says: a few by
// default, of which the first search weighs more): under one in a hundred calls is refused, at least nine in ten of the quota are used,
// nobody calls before a time that was named, and nothing stands still.
func TestAnAdaptiveLimitFindsAQuota(t *testing.T) {
	t.Parallel()
	lasts, most := 6*time.Minute, 0.03
	if minutes, err := strconv.Atoi(os.Getenv("DULY_QUOTA_MINUTES")); err == nil {
		lasts, most = time.Duration(minutes)*time.Minute, 0.01
	}
	providers := map[string][]int{"two providers": {60, 30}}
	if lasts >= time.Hour {
		providers = map[string][]int{"one provider": {60}, "three providers": {60, 30, 120}}
	}
	for name, quotas := range providers {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) { askFor(t, lasts, most, quotas) })
		})
	}
}

func askFor(t *testing.T, lasts time.Duration, most float64, quotas []int) {
	t.Helper()
	providers := map[string]*provider{}
	for i, quota := range quotas {
		providers[fmt.Sprintf("p%d", i)] = &provider{quota: quota}
	}
	st := memstore.New(memstore.Config{Partitions: 1})
	ctx, cancel := context.WithCancel(t.Context())
	var ended sync.WaitGroup
	var first *core.Scheduler
	random := rand.New(rand.NewPCG(1, 2))
	var drawing sync.Mutex
	for i := range 5 {
		s, err := core.New(st, core.Config{Name: fmt.Sprint("process", i), Concurrency: 20, Limits: []core.Limit{
			{About: core.LimitTarget{Key: "*", Each: core.EachKey}, Adaptive: true},
		}})
		require.NoError(t, err)
		core.Handle(s, "call", func(ctx context.Context, task *core.Task[string]) error {
			began := time.Now()
			drawing.Lock()
			takes := time.Duration(200+random.IntN(1600)) * time.Millisecond
			drawing.Unlock()
			select {
			case <-time.After(takes / 2):
			case <-ctx.Done():
				return ctx.Err()
			}
			err := providers[task.Payload].call(began)
			if err == nil {
				time.Sleep(takes / 2)
			}
			return err
		})
		d, err := daemon.New(s, daemon.Config{Waker: st})
		require.NoError(t, err)
		ended.Go(func() { assert.NoError(t, d.Run(ctx)) })
		first = s
	}
	for i := range 200 {
		for key := range providers {
			_, err := first.Submit(ctx, core.NewTask{Agent: fmt.Sprint(i), ID: key, Kind: "call", LimitKey: key, Payload: key, Every: 90 * time.Second})
			require.NoError(t, err)
		}
	}
	time.Sleep(lasts)
	limits, err := first.Limits(ctx)
	require.NoError(t, err)
	cancel()
	ended.Wait()
	for key, p := range providers {
		used := float64(p.served) / float64(p.quota) / lasts.Minutes()
		refused := float64(p.refused) / float64(p.served+p.refused)
		t.Logf("figure: %s of %d a minute: %d served (%.1f %% of the quota), %d refused (%.2f %%); learned %v", key, p.quota, p.served, 100*used, p.refused, 100*refused, limits[0].Learned)
		assert.GreaterOrEqual(t, used, 0.9)
		assert.Less(t, refused, most)
		assert.Zero(t, p.early, "calls before the time that was named")
	}
}
