package daemon_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/seed-6f6f2c11/duly/adapters/daemon"
	"github.com/seed-6f6f2c11/duly/core"
	"github.com/seed-6f6f2c11/duly/core/memstore"
	"github.com/seed-6f6f2c11/duly/core/redisstore"
	"github.com/seed-6f6f2c11/duly/core/store"
	"github.com/seed-6f6f2c11/duly/core/storetest"
	"github.com/seed-6f6f2c11/duly/internal/redistest"
)

// flood is a scheduler on which one agent has more to do, for ever, than all slots can; strangers have a task now and
// then. It notes how long after its due time each stranger's task starts.
type flood struct {
	scheduler *core.Scheduler
	strangers []string

	mu     sync.Mutex
	lates  []time.Duration
	floods int
}

const flooding = "flooding"

// strangersOf are agents in all partitions, also in the one of the agent that floods.
func strangersOf(partitions int) []string {
	var agents []string
	for p := range partitions {
		for i, n := 0, 0; n < 20/partitions+1; i++ {
			if name := fmt.Sprintf("stranger%d-%d", p, i); store.PartitionOf(name, partitions) == p {
				agents, n = append(agents, name), n+1
			}
		}
	}
	return agents
}

func newFlood(t *testing.T, st core.Store, takes time.Duration, config core.Config) *flood {
	t.Helper()
	s, err := core.New(st, config)
	require.NoError(t, err)
	f := &flood{scheduler: s, strangers: strangersOf(st.Partitions())}
	core.Handle(s, "work", func(ctx context.Context, task *core.Task[any]) error {
		f.mu.Lock()
		if task.Agent == flooding {
			f.floods++
		} else {
			f.lates = append(f.lates, task.Claimed.Sub(task.Due))
		}
		f.mu.Unlock()
		if task.Agent == flooding {
			select {
			case <-time.After(takes):
			case <-ctx.Done():
				return ctx.Err()
			}
		}
		return nil
	})
	tasks := make([]core.NewTask, 100)
	for i := range tasks {
		tasks[i] = core.NewTask{Agent: flooding, ID: fmt.Sprint(i), Kind: "work", Every: time.Second}
	}
	_, err = s.Submit(t.Context(), tasks...)
	require.NoError(t, err)
	return f
}

// book gives each stranger a task that falls due, one after the other, within a while.
func (f *flood) book(t *testing.T, id string, within time.Duration) {
	t.Helper()
	tasks := make([]core.NewTask, len(f.strangers))
	for i, agent := range f.strangers {
		tasks[i] = core.NewTask{Agent: agent, ID: id, Kind: "work", Delay: within * time.Duration(i+1) / time.Duration(len(tasks))}
	}
	_, err := f.scheduler.Submit(t.Context(), tasks...)
	require.NoError(t, err)
}

// steps is about how many times a process and Redis wait for one another between the end of a run and the start of the next
// in its slot: the outcome, a look, a claim, and the goroutines on the way.
const steps = 5

// started checks that as many tasks of strangers have started as there should, 99 in 100 of them within a handler's time
// and 100 ms, and that the slots were never idle. Each step may be as late as whatever else happens on the machine makes it.
func (f *flood) started(t *testing.T, want int, takes, lasted time.Duration, late lateness) {
	t.Helper()
	f.mu.Lock()
	defer f.mu.Unlock()
	require.Len(t, f.lates, want)
	slices.Sort(f.lates)
	p99 := f.lates[(len(f.lates)*99-1)/100]
	assert.LessOrEqual(t, p99, takes+100*time.Millisecond+steps*late.most, "the last: %s, the machine is %+v late", f.lates[len(f.lates)-1], late)
	slots := f.scheduler.Slots().Total - f.scheduler.Slots().Urgent
	assert.Greater(t, f.floods, int(lasted/(takes+steps*late.mean))*slots*9/10, "the flood has what nobody else wants; the machine is %+v late", late)
}

// lateness is how much later than it could Redis answers, as this process sees it: how busy the machine is with other things.
type lateness struct{ mean, most time.Duration } // most: of 99 in 100

// measure asks Redis every few milliseconds until ctx is done.
func measure(ctx context.Context, ask func(context.Context) error) lateness {
	const every = 5 * time.Millisecond
	var lates []time.Duration
	var sum time.Duration
	for ctx.Err() == nil {
		begun := time.Now()
		<-time.After(every)
		if ask(ctx) == nil {
			lates = append(lates, time.Since(begun)-every)
			sum += lates[len(lates)-1]
		}
	}
	if len(lates) == 0 {
		return lateness{}
	}
	slices.Sort(lates)
	return lateness{mean: sum / time.Duration(len(lates)), most: lates[len(lates)*99/100]}
}

// For a day one agent floods a daemon; nobody else notices, whether his task was booked before the flood or during it.
func TestNobodyWaitsForAStranger(t *testing.T) {
	t.Parallel()
	for name, agents := range map[string]func(f *flood) []string{
		"all agents":        func(*flood) []string { return nil },
		"registered agents": func(f *flood) []string { return append(f.strangers, flooding) },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				const takes, day = 30 * time.Second, 24 * time.Hour // shorter ones are tested for real below
				st := memstore.New(memstore.Config{Partitions: 8})
				f := newFlood(t, st, takes, core.Config{Urgent: -1}) // asking for urgent tasks takes a virtual day long
				f.book(t, "before", day)
				d, err := daemon.New(f.scheduler, daemon.Config{Waker: st, Agents: agents(f), Grace: time.Minute})
				require.NoError(t, err)
				require.NoError(t, d.Start())
				for hour := range 23 {
					time.Sleep(time.Hour)
					f.book(t, fmt.Sprint("hour", hour), time.Hour-10*time.Second)
				}
				time.Sleep(time.Hour + takes + time.Second) // the last one may have to wait for a handler; a second settles what ends with it
				require.NoError(t, d.Stop(context.Background()))
				f.started(t, 24*len(f.strangers), takes, day, lateness{})
			})
		})
	}
}

// The same for twelve real seconds, on Redis and on a cluster, in a daemon and in a pull with a budget. They take place at the
// same time, each under a prefix of its own, and before the other tests of this package: what is measured as lateness of the machine has no part in it
// of what the virtual days of these take from its goroutines.
func TestNobodyWaitsForAStrangerOnRedis(t *testing.T) { //nolint:paralleltest // see above
	servers := map[string]redisstore.Config{
		"redis":   {URL: redistest.Start(t).URL},
		"cluster": {Options: &redis.UniversalOptions{Addrs: []string{redistest.StartCluster(t).Addr}, IsClusterMode: true}},
	}
	modes := map[string]func(t *testing.T, f *flood, st store.Waker, lasts time.Duration){
		"all agents": func(t *testing.T, f *flood, st store.Waker, lasts time.Duration) {
			t.Helper()
			runDaemon(t, f, daemon.Config{Waker: st}, lasts)
		},
		"registered agents": func(t *testing.T, f *flood, st store.Waker, lasts time.Duration) {
			t.Helper()
			runDaemon(t, f, daemon.Config{Waker: st, Agents: append(f.strangers, flooding)}, lasts)
		},
		"a budget": func(t *testing.T, f *flood, _ store.Waker, lasts time.Duration) {
			t.Helper()
			runPull(t, f, nil, lasts)
		},
		"a budget, some agents": func(t *testing.T, f *flood, _ store.Waker, lasts time.Duration) {
			t.Helper()
			runPull(t, f, append(f.strangers, flooding), lasts)
		},
	}
	var all sync.WaitGroup
	for name, config := range servers { //nolint:paralleltest // its parts all run at once, however many tests may
		for mode, run := range modes {
			all.Go(func() {
				t.Run(name+"/"+mode, func(t *testing.T) { floodRedis(t, config, fmt.Sprintf("duly%d:", len(mode)), run) })
			})
		}
	}
	all.Wait()
}

func floodRedis(t *testing.T, config redisstore.Config, prefix string, run func(t *testing.T, f *flood, st store.Waker, lasts time.Duration)) {
	t.Helper()
	const takes, lasts = 200 * time.Millisecond, 12 * time.Second
	config.Prefix = prefix
	st, err := redisstore.Open(t.Context(), config)
	require.NoError(t, err)
	defer func() { _ = st.Close() }()
	f := newFlood(t, st, takes, core.Config{})
	f.book(t, "before", lasts/2)
	booked := make(chan struct{})
	time.AfterFunc(lasts/2, func() {
		defer close(booked)
		f.book(t, "during", lasts/2-4*time.Second) // so that the last one has time to be late in, where the machine is
	})
	ctx, end := context.WithCancel(t.Context())
	late := make(chan lateness, 1)
	look := func(ctx context.Context) error { // a script and its answer, as the steps of a run are
		_, err := st.Look(ctx, []store.LookRequest{{Kinds: []string{"work"}}})
		return err
	}
	go func() { late <- measure(ctx, look) }()
	run(t, f, st, lasts)
	<-booked
	end()
	f.started(t, 2*len(f.strangers), takes, lasts, <-late)
}

func runDaemon(t *testing.T, f *flood, config daemon.Config, lasts time.Duration) {
	t.Helper()
	d, err := daemon.New(f.scheduler, config)
	require.NoError(t, err)
	ctx, cancel := context.WithTimeout(t.Context(), lasts)
	defer cancel()
	require.NoError(t, d.Run(ctx))
}

func runPull(t *testing.T, f *flood, agents []string, lasts time.Duration) {
	t.Helper()
	_, err := f.scheduler.RunDue(t.Context(), core.Scope{Agents: agents, MaxDuration: lasts})
	if _, ok := errors.AsType[*core.RunsError](err); !ok {
		require.NoError(t, err)
	}
}

// A quiet agent of one tenant beside 2,000 agents of another, whose runs take a minute: two claims of its partition pass it over at most, and two batches of
// runs.
func TestATenantIsNotStarved(t *testing.T) {
	t.Parallel()
	home := store.PartitionOf("quiet", 8)
	for name, c := range map[string]struct {
		partitions, slots int
		big               func(agent string) bool // whether it is of the big tenant
	}{
		"one partition":     {1, 16, func(string) bool { return true }},
		"eight partitions":  {8, 16, func(string) bool { return true }},
		"another partition": {8, 5, func(agent string) bool { return store.PartitionOf(agent, 8) != home }},
		"the same one":      {8, 5, func(agent string) bool { return store.PartitionOf(agent, 8) == home }},
	} {
		partitions := c.partitions
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				var passed atomic.Int64 // claims of the partition that have taken something since
				st := &storetest.Spy{Store: memstore.New(memstore.Config{Partitions: partitions})}
				st.After = func(_ context.Context, _ string, answer any) error {
					claims, _ := answer.([]store.Claim)
					for i := range claims {
						if claims[i].Partition == store.PartitionOf("quiet", partitions) && len(claims[i].Tasks) > 0 {
							passed.Add(1)
						}
					}
					return nil
				}
				s, err := core.New(st, core.Config{Concurrency: c.slots, Urgent: -1})
				require.NoError(t, err)
				started := make(chan time.Duration, 1)
				core.Handle(s, "work", func(ctx context.Context, task *core.Task[any]) error {
					if task.Agent == "quiet" {
						started <- task.Claimed.Sub(task.Due)
						return nil
					}
					select {
					case <-time.After(time.Minute):
					case <-ctx.Done():
					}
					return ctx.Err()
				})
				tenantFlood(t, s, c.big)
				d, err := daemon.New(s, daemon.Config{Grace: time.Second})
				require.NoError(t, err)
				require.NoError(t, d.Start())
				for i := range 3 {
					time.Sleep(10 * time.Second)
					passed.Store(0)
					_, err = s.Submit(t.Context(), core.NewTask{Agent: "quiet", Kind: "work", ID: fmt.Sprint(i)})
					require.NoError(t, err)
					assert.Less(t, <-started, 3*time.Minute, "run %d: a batch is a minute", i)
					assert.LessOrEqual(t, passed.Load()-1, int64(2), "run %d: the last one has it", i)
				}
				require.NoError(t, d.Stop(t.Context()))
			})
		})
	}
}

// tenantFlood stores a task of each of 2,000 agents of a tenant, those that it has, and gives the quiet agent another one.
func tenantFlood(t *testing.T, s *core.Scheduler, has func(agent string) bool) {
	t.Helper()
	tenant := func(agent, name string) {
		_, err := s.SetProfile(t.Context(), core.Profile{Agent: agent, Tenant: name})
		require.NoError(t, err)
	}
	tenant("quiet", "small")
	var flood []core.NewTask
	for i := 0; len(flood) < 2000; i++ {
		if agent := fmt.Sprint("big", i); has(agent) {
			flood = append(flood, core.NewTask{Agent: agent, Kind: "work", ID: "1"})
			tenant(agent, "big")
		}
	}
	for batch := range slices.Chunk(flood, 100) {
		_, err := s.Submit(t.Context(), batch...)
		require.NoError(t, err)
	}
}
