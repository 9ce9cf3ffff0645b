package core_test

// Batches of a size, and what they wait for.

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/seed-6f6f2c11/duly/core"
	"github.com/seed-6f6f2c11/duly/core/memstore"
	"github.com/seed-6f6f2c11/duly/core/model"
	"github.com/seed-6f6f2c11/duly/core/store"
)

// batched keeps the batches that its handler gets: who, how many, and when.
type batched struct {
	mu  sync.Mutex
	got []string
}

func (b *batched) handle(w *world, takes time.Duration) {
	core.HandleBatch(w.s, "k", func(_ context.Context, ts []*core.Task[any]) []error {
		b.mu.Lock()
		b.got = append(b.got, strings.TrimSpace(fmt.Sprintf("%s %d %s %s", ts[0].Agent, len(ts), time.Since(w.begun), ts[0].Labels["mem_cube_id"])))
		b.mu.Unlock()
		time.Sleep(takes)
		return nil
	})
}

func (b *batched) seen() []string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return slices.Clone(b.got)
}

// inSeries pulls as a daemon does: each pull is one of a series, and the next begins when one has claimed all that is due. wake
// is what a wake-up of the store does.
func (w *world) inSeries(ctx context.Context) (wake, end func()) {
	series := w.s.NewSeries(time.Second)
	ctx, cancel := context.WithCancel(ctx)
	var pulls sync.WaitGroup
	pulls.Go(func() {
		for ctx.Err() == nil {
			idle := make(chan struct{})
			pulls.Go(func() {
				_, _ = w.s.RunDue(ctx, core.Scope{Series: series, Idle: func(time.Time) bool { close(idle); return true }})
			})
			select {
			case <-idle:
				time.Sleep(time.Millisecond)
			case <-ctx.Done():
			}
		}
	})
	return series.Forget, func() { cancel(); pulls.Wait() }
}

func batchConfig(size int, wait time.Duration, by ...string) core.Config {
	return core.Config{Concurrency: 20, Kinds: map[string]core.KindConfig{"k": {Batch: size, BatchWait: wait, BatchBy: by}}}
}

// A batch has at most its size, and one slot: with ten slots a hundred tasks run in batches side by side.
func TestABatchHasItsSizeAndOneSlot(t *testing.T) {
	config := batchConfig(4, 0)
	config.Concurrency, config.Urgent = 10, -1
	virtual(t, config, func(w *world) {
		var inUse int
		core.HandleBatch(w.s, "k", func(_ context.Context, ts []*core.Task[any]) []error {
			assert.LessOrEqual(t, len(ts), 4)
			time.Sleep(time.Second / 2)
			if ts[0].ID == "000" {
				inUse = w.s.Slots().InUse
			}
			time.Sleep(time.Second / 2)
			return nil
		})
		w.submit(numbered("a", "k", 12)...)
		w.run()
		assert.Equal(t, 4, inUse, "batches of 4, 4, 2 and 2, the last of a claim of its own")
		assert.Equal(t, time.Second, time.Since(w.begun), "all at once")
		assert.Zero(t, w.s.Slots().InUse)
		assert.Len(t, w.seen(model.EventFinish), 12)
	})
}

// A batch that is not full waits for more of its agent, and for nobody else's: its wait delays no other.
func TestABatchWaitsForMoreOfItsAgent(t *testing.T) {
	virtual(t, batchConfig(3, 200*time.Millisecond), func(w *world) {
		var b batched
		b.handle(w, 0)
		core.Handle(w.s, "other", func(context.Context, *core.Task[any]) error {
			b.mu.Lock()
			defer b.mu.Unlock()
			b.got = append(b.got, "other")
			return nil
		})
		wake, end := w.inSeries(w.Context())
		w.submit(core.NewTask{Agent: "a", Kind: "k"})
		wake()
		time.Sleep(20 * time.Millisecond)
		w.submit(core.NewTask{Agent: "b", Kind: "other", Delay: 20 * time.Millisecond})
		wake()
		time.Sleep(80 * time.Millisecond)
		assert.Equal(t, []string{"other"}, b.seen())
		w.submit(core.NewTask{Agent: "a", Kind: "k"})
		wake()
		time.Sleep(2 * time.Second)
		end()
		require.Len(t, b.seen(), 2)
		assert.Regexp(t, `^a 2 20\dms$`, b.seen()[1])
		assert.Zero(t, w.s.Slots().InUse)
	})
}

// A full batch does not wait, nor does one of which a task is urgent, nor one that no claim can add to.
func TestABatchDoesNotWaitInVain(t *testing.T) {
	for name, tasks := range map[string][]core.NewTask{
		"full": numbered("a", "k", 3), "urgent": {{Agent: "a", Kind: "k", Level: core.LevelHigh}, {Agent: "a", Kind: "k"}, {Agent: "a", Kind: "k"}},
		"no slot": {{Agent: "a", ID: "1", Kind: "k"}, {Agent: "b", ID: "1", Kind: "k"}},
	} {
		t.Run(name, func(t *testing.T) {
			config := batchConfig(3, 10*time.Second)
			if name == "no slot" {
				config.Concurrency = 2
				config.Urgent = -1
			}
			virtual(t, config, func(w *world) {
				var b batched
				b.handle(w, time.Second)
				w.submit(tasks...)
				_, end := w.inSeries(w.Context())
				time.Sleep(500 * time.Millisecond)
				assert.NotEmpty(t, b.seen())
				time.Sleep(time.Second)
				end()
				assert.Len(t, w.seen(model.EventFinish), len(tasks))
			})
		})
	}
}

// A pull that no other follows does not wait: nothing more comes.
func TestABatchOfASinglePullDoesNotWait(t *testing.T) {
	virtual(t, batchConfig(50, time.Minute), func(w *world) {
		var b batched
		b.handle(w, 0)
		w.submit(numbered("a", "k", 20)...)
		w.run()
		assert.Equal(t, []string{"a 20 0s"}, b.seen())
	})
}

// Tasks of an agent whose labels differ are in batches of their own, if the kind says so; a label that is missing is not one that is empty.
func TestBatchesSplitByLabel(t *testing.T) {
	virtual(t, batchConfig(50, 0, core.BatchByAgent, "mem_cube_id"), func(w *world) {
		var b batched
		b.handle(w, 0)
		cube := func(id string) core.NewTask {
			return core.NewTask{Agent: "a", Kind: "k", Labels: map[string]string{"mem_cube_id": id}}
		}
		w.submit(cube("x"), cube("y"), cube("x"), core.NewTask{Agent: "a", Kind: "k"}, core.NewTask{Agent: "b", Kind: "k"})
		w.run()
		assert.ElementsMatch(t, []string{"a 2 0s x", "a 1 0s y", "a 1 0s", "b 1 0s"}, b.seen())
	})
}

// A pull that ends while a batch waits gives its tasks back, uncharged.
func TestABatchThatWaitsIsReleasedAtTheEnd(t *testing.T) {
	virtual(t, batchConfig(50, time.Minute), func(w *world) {
		var b batched
		b.handle(w, 0)
		w.submit(numbered("a", "k", 3)...)
		_, end := w.inSeries(w.Context())
		time.Sleep(time.Second)
		end()
		assert.Empty(t, b.seen())
		assert.Zero(t, w.s.Slots().InUse)
		w.run()
		assert.Equal(t, []string{"a 3 1s"}, b.seen())
		assert.Equal(t, 1, w.seen(model.EventFinish)[0].Attempt)
	})
}

// A pull that has an end is not spent on waiting: if its batches waited for as long as it has, each pull would give them back.
func TestABatchWaitsForAPartOfAPullThatHasAnEnd(t *testing.T) {
	virtual(t, batchConfig(50, time.Minute), func(w *world) {
		var b batched
		b.handle(w, 2*time.Second)
		w.submit(numbered("a", "k", 3)...)
		ctx, cancel := context.WithTimeout(w.Context(), 12*time.Second)
		defer cancel()
		_, end := w.inSeries(ctx)
		<-ctx.Done()
		end()
		assert.Len(t, b.seen(), 1)
		assert.Equal(t, core.StatusCompleted, w.task("a", "000").Status)
	})
}

// A batch that waits keeps its leases. Tasks that lose theirs are not in it, and the slot of the batch is kept by the others.
func TestABatchThatWaitsHoldsItsLeases(t *testing.T) {
	config := batchConfig(50, 30*time.Second)
	config.Default.Lease = 3 * time.Second
	virtual(t, config, func(w *world) {
		var b batched
		b.handle(w, 0)
		w.submit(numbered("a", "k", 3)...)
		_, end := w.inSeries(w.Context())
		time.Sleep(10 * time.Second)
		claims, err := w.store.Claim(w.Context(), []store.ClaimRequest{{
			Partition: store.PartitionOf("a", 8), Nonce: "0123456789abcdef", Kinds: []string{"k"}, Limit: 4, Lease: time.Minute,
		}})
		require.NoError(t, err)
		assert.Empty(t, claims[0].Tasks)
		time.Sleep(25 * time.Second)
		end()
		assert.Len(t, b.seen(), 1)
		assert.Zero(t, w.s.Slots().InUse)
	})
}

func TestBatchSettingsThatMakeNoSense(t *testing.T) {
	t.Parallel()
	for want, k := range map[string]core.KindConfig{
		"must be between 1 and 1000, not 1001":                        {Batch: 1001},
		"must be between 1 and 1000, not -1":                          {Batch: -1},
		"must be at most 1m0s, not 1m1s":                              {Batch: 2, BatchWait: 61 * time.Second},
		"needs the size of a batch: set it too":                       {BatchWait: time.Second},
		"needs at least 2 slots for the kind, not 1":                  {Batch: 2, BatchWait: time.Second, Slots: 1},
		`must contain "agent": all tasks of a batch are of one agent`: {Batch: 2, BatchBy: []string{"mem_cube_id"}},
		"must name labels of 1 to 64 bytes":                           {Batch: 2, BatchBy: []string{"agent", ""}},
	} {
		_, err := core.New(memstore.New(memstore.Config{Partitions: 1}), core.Config{Kinds: map[string]core.KindConfig{"k": k}})
		assert.ErrorContains(t, err, want)
	}
}

// The first of a batch has its slot. If another process has taken that task over, the slot is that of the next.
func TestTheSlotOfABatchOutlivesItsFirstTask(t *testing.T) {
	config := batchConfig(50, 10*time.Second)
	config.Default.Lease = 3 * time.Second
	virtual(t, config, func(w *world) {
		var inUse []int
		core.HandleBatch(w.s, "k", func(_ context.Context, ts []*core.Task[any]) []error {
			time.Sleep(time.Second)
			inUse = append(inUse, len(ts), w.s.Slots().InUse)
			return nil
		})
		wake, end := w.inSeries(w.Context())
		for i := range 3 {
			w.submit(numbered("a", "k", 3)[i])
			wake()
			time.Sleep(100 * time.Millisecond)
		}
		p := store.PartitionOf("a", 8)
		_, err := w.store.Store.Extend(w.Context(), []store.Extension{{Partition: p, Fence: w.seen(model.EventDequeue)[0].Fence, Lease: time.Millisecond}})
		require.NoError(t, err)
		time.Sleep(time.Millisecond)
		claims, err := w.store.Store.Claim(w.Context(), []store.ClaimRequest{{Partition: p, Nonce: "thief-0123456789", Kinds: []string{"k"}, Limit: 1, Lease: time.Hour}})
		require.NoError(t, err)
		require.Len(t, claims[0].Tasks, 1)
		time.Sleep(15 * time.Second)
		end()
		assert.Equal(t, []int{2, 1}, inUse)
		assert.Zero(t, w.s.Slots().InUse)
	})
}
