package redisstore_test

// Limits and budgets that span partitions.

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/seed-6f6f2c11/duly/core/redisstore"
	"github.com/seed-6f6f2c11/duly/core/store"
	"github.com/seed-6f6f2c11/duly/core/store/bound"
	"github.com/seed-6f6f2c11/duly/core/store/moment"
	"github.com/seed-6f6f2c11/duly/internal/race"
	"github.com/seed-6f6f2c11/duly/internal/redistest"
)

const spanParts = 8

// fleet are processes on one store of several partitions.
type fleet struct {
	*testing.T

	config redisstore.Config
	mu     sync.Mutex
	now    int             // runs under way
	most   int             // at once
	ended  map[string]int  // runs of each task
	wide   bool            // processes claim from all partitions at once
	claims []moment.Millis // when they started, by the clock of Redis
	nonce  int

	bears, refused int // runs at once that are served, and runs that were not
	holds          time.Duration
}

func newFleet(t *testing.T, c redisstore.Config) *fleet {
	t.Helper()
	c.Partitions = spanParts
	return &fleet{T: t, config: c, ended: map[string]int{}}
}

// submit stores n tasks of each of some agents.
func (f *fleet) submit(agents, n int, key string) int {
	f.Helper()
	st := open(f.T, f.config)
	var subs []store.Submission
	for i := range agents {
		for k := range n {
			s := sub(fmt.Sprint(key, "agent", i), fmt.Sprint(k))
			s.Kind, s.Key = "k", key
			subs = append(subs, s)
		}
	}
	for len(subs) > 0 {
		most := min(len(subs), 500)
		_, err := st.Submit(f.Context(), subs[:most])
		require.NoError(f, err)
		subs = subs[most:]
	}
	return agents * n
}

// request is a claim of a partition.
func (f *fleet) request(partition, limit int, kinds ...string) store.ClaimRequest {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.nonce++
	return store.ClaimRequest{Partition: partition, Nonce: fmt.Sprintf("fleet%011d", f.nonce), Kinds: kinds, Limit: limit, Lease: 10 * time.Second}
}

// begins and ends note what runs.
func (f *fleet) begins(claims []store.Claim) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, c := range claims {
		for range c.Tasks {
			f.now++
			f.claims = append(f.claims, c.Now)
		}
	}
	f.most = max(f.most, f.now)
}

// refuses reports whether whoever the runs ask, which bears so many at once, tells one of them to come back later.
func (f *fleet) refuses() bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.bears > 0 && f.now > f.bears
}

func (f *fleet) ends(tasks []store.Claimed, refused bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.now -= len(tasks)
	if refused {
		f.refused += len(tasks)
		return
	}
	for _, t := range tasks {
		f.ended[t.Agent+":"+t.ID]++
	}
}

func (f *fleet) done() int {
	f.mu.Lock()
	defer f.mu.Unlock()
	return len(f.ended)
}

// work is one process: it claims from all partitions in turns, runs what it gets for a while, and settles it, until all tasks have ended.
func (f *fleet) work(ctx context.Context, seed, all int, takes time.Duration, kinds ...string) {
	st := open(f.T, f.config)
	var opened []int
	for round := seed; f.done() < all && ctx.Err() == nil; round++ {
		var requests []store.ClaimRequest
		for _, p := range opened {
			if f.wide {
				break
			}
			requests = append(requests, f.request(p, 4, kinds...))
		}
		for p := 0; f.wide && p < spanParts; p++ {
			requests = append(requests, f.request(p, 4, kinds...))
		}
		if len(requests) == 0 {
			requests = append(requests, f.request(round%spanParts, 4, kinds...))
		}
		opened = nil
		claims, err := st.Claim(ctx, requests)
		if !assert.NoError(f, err) {
			return
		}
		var runs []store.Settlement
		var tasks []store.Claimed
		for _, c := range claims {
			tasks = append(tasks, c.Tasks...)
		}
		if len(tasks) == 0 {
			continue
		}
		f.begins(claims)
		select { // the run
		case <-time.After(takes):
		case <-ctx.Done():
		}
		refused := f.refuses()
		for _, t := range tasks {
			r := store.Settlement{Run: t.Run, Kind: t.Kind, Verb: store.VerbComplete, Record: []byte("r")}
			if refused {
				r.Verb, r.Record, r.Due, r.Spent = store.VerbAgain, nil, moment.When{After: f.holds}, &store.Spent{Busy: f.holds}
			}
			runs = append(runs, r)
		}
		f.ends(tasks, refused) // before the store knows: then others may start
		settled, err := st.Settle(ctx, runs)
		if !assert.NoError(f, err) {
			return
		}
		for _, s := range settled {
			assert.NoError(f, s.Err)
			opened = append(opened, s.Opened...)
		}
	}
}

// run has so many processes work until all tasks have ended.
func (f *fleet) run(processes, all int, takes time.Duration, kinds ...string) time.Duration {
	f.Helper()
	ctx, cancel := context.WithTimeout(f.Context(), 40*time.Second)
	defer cancel()
	var working sync.WaitGroup
	begun := time.Now()
	for i := range processes {
		working.Go(func() { f.work(ctx, i, all, takes, kinds...) })
	}
	working.Wait()
	took := time.Since(begun)
	assert.Len(f, f.ended, all, "all tasks have ended")
	for task, n := range f.ended {
		assert.Equal(f, 1, n, task)
	}
	return took
}

// hops are how often somebody has to be woken from the end of a run to the start of the next, at most: three calls go to Redis and back, through a
// connection's goroutine, and then through the pulls of all that wait.
const hops = 18

// tooLate is how late a machine wakes others on average that has so much else to do that what it takes says nothing of duly.
const tooLate = time.Millisecond

// lateWhile is how much later than an idle machine this one wakes whoever waits, on average, while something is done: what is measured then is
// about duly, and beside nothing else its bound is what it says.
func lateWhile(do func()) time.Duration {
	const pause, idle = 5 * time.Millisecond, 500 * time.Microsecond
	done, late := make(chan struct{}), make(chan time.Duration)
	go func() {
		var sum time.Duration
		for n := time.Duration(1); ; n++ {
			begun := time.Now()
			select {
			case <-done:
				late <- sum / n
				return
			case <-time.After(pause):
				sum += time.Since(begun) - pause
			}
		}
	}()
	do()
	close(done)
	return max(<-late-idle, 0)
}

// However many processes and partitions there are, no more than the limit allows run at once, and nearly as many as it allows do.
func TestALimitSpansPartitions(t *testing.T) { //nolint:tparallel // each by itself: what they measure is time
	t.Parallel()
	if testing.Short() {
		t.Skip("it measures for seconds: make check runs it")
	}
	for name, config := range map[string]redisstore.Config{ //nolint:paralleltest // as above
		"redis":   {URL: redistest.Start(t).URL},
		"cluster": {Options: &redis.UniversalOptions{Addrs: []string{redistest.StartCluster(t).Addr}, IsClusterMode: true}},
	} {
		t.Run(name, func(t *testing.T) {
			const limit, takes = 3, 100 * time.Millisecond
			var f *fleet
			var st *redisstore.Store
			var all int
			var best, took, late time.Duration
			for try := range 3 { // a busy machine may take time that nobody else does
				config.Prefix = fmt.Sprintf("try%d:", try)
				f = newFleet(t, config)
				st = open(t, f.config)
				_, err := st.Limit(t.Context(), []bound.LimitChange{{Limit: bound.Limit{About: bound.LimitTarget{Kind: "k"}, Concurrency: limit}}})
				require.NoError(t, err)
				all = f.submit(18, 5, "")
				late = lateWhile(func() { took = f.run(8, all, takes, "k") })
				assert.Equal(t, limit, f.most, "as many at once as the limit allows, and never more")
				best = (takes + hops*late) * time.Duration(all/limit)
				if race.Enabled || best.Seconds()/took.Seconds() > 0.8 { // .ci/run has it run by itself
					break
				}
			}
			if !race.Enabled && late < tooLate {
				assert.Greater(t, best.Seconds()/took.Seconds(), 0.8, "and nearly all of the time")
			}
			t.Logf("figure: %d runs of %s, %d at once, in %s, %.0f %% of what is allowed, of which the machine has taken %s", all, takes, limit, took.Round(time.Millisecond),
				100*best.Seconds()/took.Seconds(), (best - takes*time.Duration(all/limit)).Round(time.Millisecond))
			use, err := st.Limits(t.Context())
			require.NoError(t, err)
			assert.Zero(t, use[0].Running)
			assert.Zero(t, use[0].Waiting)
		})
	}
}

// No window of a rate has more starts than it may, by the clock of Redis, whoever starts them; and nearly all that may start do.
func TestARateSpansPartitions(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("it measures for seconds: make check runs it")
	}
	f := newFleet(t, redisstore.Config{URL: redistest.Start(t).URL})
	const rate, per, burst, all = 50, time.Second, 10, 200
	st := open(t, f.config)
	set := bound.Limit{About: bound.LimitTarget{Key: "p*", Each: bound.EachKey}, Rate: rate, Per: per, Burst: burst}
	_, err := st.Limit(t.Context(), []bound.LimitChange{{Limit: set}})
	require.NoError(t, err)
	f.submit(all/2, 2, "provider")
	var took time.Duration
	late := lateWhile(func() { took = f.run(6, all, time.Millisecond, "k") })
	slices.Sort(f.claims)
	most := 0
	for i, from := range f.claims {
		n := 0
		for _, at := range f.claims[i:] {
			if at < from.Add(per) {
				n++
			}
		}
		most = max(most, n)
	}
	assert.LessOrEqual(t, most, rate+burst)
	least := time.Duration(all-burst)*per/rate + all*late
	if !race.Enabled && late < tooLate {
		assert.Greater(t, least.Seconds()/took.Seconds(), 0.8)
	}
	t.Logf("figure: %d starts, at most %d in %s, %.0f %% of what is allowed", all, most, per, 100*least.Seconds()/took.Seconds())
}

// Of what runs report no more is used than a budget over partitions has, with many claims of all partitions before anything ends.
func TestABudgetOverPartitionsIsExact(t *testing.T) {
	t.Parallel()
	f := newFleet(t, redisstore.Config{URL: redistest.Start(t).URL})
	st := open(t, f.config)
	about := bound.BudgetTarget{LimitTarget: bound.LimitTarget{Kind: "k"}, Unit: "tokens", Per: bound.PerDay}
	_, err := st.Budget(t.Context(), []bound.BudgetChange{{Budget: bound.Budget{
		About: about, Amount: 20 * bound.AmountOne, Then: bound.ThenHold, Zone: "UTC", Clock: bound.Clock{{}},
	}}})
	require.NoError(t, err)
	f.submit(60, 1, "")
	started, idle, most := 0, 0, 0
	for round := 0; idle < 3; round++ {
		var tasks []store.Claimed
		for p := range 2 * spanParts {
			claims, err := st.Claim(t.Context(), []store.ClaimRequest{f.request(p%spanParts, 5, "k")})
			require.NoError(t, err)
			tasks = append(tasks, claims[0].Tasks...)
		}
		for _, task := range tasks {
			run := store.Settlement{Run: task.Run, Kind: task.Kind, Verb: store.VerbComplete, Record: []byte("r")}
			run.Spent = &store.Spent{Used: []bound.Used{{Unit: "tokens", Amount: 2 * bound.AmountOne}}}
			_, err := st.Settle(t.Context(), []store.Settlement{run})
			require.NoError(t, err)
		}
		most = max(most, len(tasks))
		if started += len(tasks); len(tasks) == 0 {
			idle++
		}
	}
	use, err := st.Budgets(t.Context())
	require.NoError(t, err)
	assert.Equal(t, 20*bound.AmountOne, use[0].Used)
	assert.Equal(t, 10, started)
	assert.Greater(t, most, 4, "side by side, once it is known what they use")
}

// No more start than a budget has, however many processes ask, and what runs have used in any partition counts in all.
func TestABudgetSpansPartitions(t *testing.T) {
	t.Parallel()
	srv := redistest.Start(t)
	for unit, want := range map[string]int{bound.UnitRuns: 10, "tokens": 10} {
		t.Run(unit, func(t *testing.T) {
			t.Parallel()
			f := newFleet(t, redisstore.Config{URL: srv.URL, Prefix: unit + ":"})
			st := open(t, f.config)
			about := bound.BudgetTarget{LimitTarget: bound.LimitTarget{Kind: "k"}, Unit: unit, Per: bound.PerMonth}
			_, err := st.Budget(t.Context(), []bound.BudgetChange{{Budget: bound.Budget{
				About: about, Amount: 10 * bound.AmountOne, Then: bound.ThenHold, Zone: "UTC", Clock: bound.Clock{{}},
			}}})
			require.NoError(t, err)
			f.submit(30, 1, "")
			var crossed []bound.Crossing
			started := 0
			for round := range 60 {
				claims, err := st.Claim(t.Context(), []store.ClaimRequest{f.request(round%spanParts, 1, "k")})
				require.NoError(t, err)
				crossed = append(crossed, claims[0].Crossed...)
				started += len(claims[0].Tasks)
				for _, task := range claims[0].Tasks {
					run := store.Settlement{Run: task.Run, Kind: task.Kind, Verb: store.VerbComplete, Record: []byte("r")}
					run.Spent = &store.Spent{Used: []bound.Used{{Unit: "tokens", Amount: bound.AmountOne}}}
					settled, err := st.Settle(t.Context(), []store.Settlement{run})
					require.NoError(t, err)
					if settled[0].Crossed != nil {
						crossed = append(crossed, settled[0].Crossed.Budgets...)
					}
				}
			}
			assert.Equal(t, want, started)
			assert.Len(t, crossed, 1, "it is told once that it is used up")
			use, err := st.Budgets(t.Context())
			require.NoError(t, err)
			assert.Equal(t, 10*bound.AmountOne, use[0].Used)
			assert.Equal(t, int64(20), use[0].Waiting)
			found, err := st.List(t.Context(), store.List{Agent: "agent29", Limit: 1})
			require.NoError(t, err)
			get, err := st.Get(t.Context(), store.Get{Agent: "agent29", IDs: []string{found.Tasks[0].ID}, Explain: true})
			require.NoError(t, err)
			if line := get.Tasks[0].Line; assert.NotNil(t, line.Budget) {
				assert.Equal(t, 10*bound.AmountOne, line.Budget.Used, "whoever asks is told what all have used")
			}
		})
	}
}

// Processes that race for a budget start as much as it allows, and what one has got and not used another uses.
func TestRacingProcessesUseABudgetUp(t *testing.T) {
	t.Parallel()
	srv := redistest.Start(t)
	const amount = 20
	for round := range 6 {
		f := newFleet(t, redisstore.Config{URL: srv.URL, Prefix: fmt.Sprintf("race%d:", round)})
		f.wide = round%2 == 1
		st := open(t, f.config)
		about := bound.BudgetTarget{LimitTarget: bound.LimitTarget{Kind: "k"}, Unit: bound.UnitRuns, Per: bound.PerMonth}
		_, err := st.Budget(t.Context(), []bound.BudgetChange{{Budget: bound.Budget{
			About: about, Amount: amount * bound.AmountOne, Then: bound.ThenHold, Zone: "UTC", Clock: bound.Clock{{}},
		}}})
		require.NoError(t, err)
		f.submit(60, 1, "")
		f.run(6, amount, 0, "k")
		use, err := st.Budgets(t.Context())
		require.NoError(t, err)
		assert.Equal(t, amount*bound.AmountOne, use[0].Used)
	}
}

// An adaptive limit learns at its home what all partitions bear: few are refused, and nothing gets stuck behind a refusal or its probe.
func TestAnAdaptiveLimitSpansPartitions(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("it measures for seconds: make check runs it")
	}
	f := newFleet(t, redisstore.Config{URL: redistest.Start(t).URL})
	f.bears, f.holds = 4, 200*time.Millisecond
	st := open(t, f.config)
	about := bound.LimitTarget{Kind: "k"}
	_, err := st.Limit(t.Context(), []bound.LimitChange{{Limit: bound.Limit{About: about, Adaptive: true, Concurrency: 20}}})
	require.NoError(t, err)
	all := f.submit(30, 10, "")
	f.run(6, all, 10*time.Millisecond, "k")
	assert.NotZero(t, f.refused, "it has found the bound")
	assert.Less(t, f.refused, all/4)
	assert.LessOrEqual(t, f.most, 3*f.bears)
	t.Logf("figure: %d served, %d refused, %d at once at most where %d are served", len(f.ended), f.refused, f.most, f.bears)
	use, err := st.Limits(t.Context())
	require.NoError(t, err)
	assert.Zero(t, use[0].Running)
	assert.Len(t, use[0].Learned, 1)
}

// What a process had that has died is free again once its lease is over, in all partitions.
func TestTheDeadGiveTheirPermitsBack(t *testing.T) {
	t.Parallel()
	f := newFleet(t, redisstore.Config{URL: redistest.Start(t).URL})
	st := open(t, f.config)
	_, err := st.Limit(t.Context(), []bound.LimitChange{{Limit: bound.Limit{About: bound.LimitTarget{Kind: "k"}, Concurrency: 2}}})
	require.NoError(t, err)
	all := f.submit(20, 1, "")
	dead := 0
	for p := range spanParts {
		r := f.request(p, 2, "k")
		r.Lease = 200 * time.Millisecond
		claims, err := st.Claim(t.Context(), []store.ClaimRequest{r})
		require.NoError(t, err)
		dead += len(claims[0].Tasks)
	}
	require.Equal(t, 2, dead, "no more than the limit allows")
	f.run(3, all, time.Millisecond, "k")
	assert.LessOrEqual(t, f.most, 2)
}

// muted is a process that can no longer reach the home of any bucket: as if it had died between a settlement and the report of it.
type muted struct {
	*spy

	now atomic.Bool
}

var errMuted = errors.New("the process has died")

func (m *muted) ProcessHook(next redis.ProcessHook) redis.ProcessHook {
	return func(ctx context.Context, cmd redis.Cmder) error {
		if m.now.Load() && m.script(cmd.Args()) == "permit" {
			cmd.SetErr(errMuted)
			return errMuted
		}
		return next(ctx, cmd)
	}
}

func (m *muted) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return func(ctx context.Context, cmds []redis.Cmder) error {
		if m.now.Load() && slices.ContainsFunc(cmds, func(c redis.Cmder) bool { return m.script(c.Args()) == "permit" }) {
			for _, c := range cmds {
				c.SetErr(errMuted)
			}
			return errMuted
		}
		return next(ctx, cmds)
	}
}

// A process that dies after it has settled and before it has told the home keeps its permits for no longer than it takes to ask for them, also
// if nothing of that limit is left in its partition.
func TestPermitsThatNobodyReportedAreAskedFor(t *testing.T) {
	t.Parallel()
	f := newFleet(t, redisstore.Config{URL: redistest.Start(t).URL})
	st, silent := open(t, f.config), &muted{spy: newSpy()}
	st.AddHook(silent)
	_, err := st.Limit(t.Context(), []bound.LimitChange{{Limit: bound.Limit{About: bound.LimitTarget{Kind: "k"}, Concurrency: 2}}})
	require.NoError(t, err)
	f.submit(1, 2, "")
	partition := store.PartitionOf("agent0", spanParts)
	claims, err := st.Claim(t.Context(), []store.ClaimRequest{f.request(partition, 2, "k")})
	require.NoError(t, err)
	require.Len(t, claims[0].Tasks, 2)
	others, stored := 0, open(t, f.config)
	for i := range 20 {
		if agent := fmt.Sprint("other", i); store.PartitionOf(agent, spanParts) != partition {
			s := sub(agent, "1")
			s.Kind = "k"
			_, err := stored.Submit(t.Context(), []store.Submission{s})
			require.NoError(t, err)
			others++
		}
	}
	silent.now.Store(true)
	var runs []store.Settlement
	for _, task := range claims[0].Tasks {
		runs = append(runs, store.Settlement{Run: task.Run, Kind: task.Kind, Verb: store.VerbComplete, Record: []byte("r")})
	}
	settled, err := st.Settle(t.Context(), runs)
	require.NoError(t, err)
	require.NoError(t, settled[0].Err)
	f.run(1, others, 0, "k")
}

// again sends each question for permits twice, as if the first answer had been lost.
type again struct {
	*spy

	asked atomic.Int64
}

func (a *again) ProcessHook(next redis.ProcessHook) redis.ProcessHook {
	return func(ctx context.Context, cmd redis.Cmder) error {
		err := next(ctx, cmd)
		if err == nil && a.script(cmd.Args()) == "permit" {
			a.asked.Add(1)
			return next(ctx, cmd)
		}
		return err
	}
}

func (a *again) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return func(ctx context.Context, cmds []redis.Cmder) error {
		err := next(ctx, cmds)
		if err == nil && slices.ContainsFunc(cmds, func(c redis.Cmder) bool { return a.script(c.Args()) == "permit" }) {
			a.asked.Add(1)
			return next(ctx, cmds)
		}
		return err
	}
}

// A question for permits that comes twice, as its answer was lost, takes them once: the others are there for other partitions.
func TestAPermitIsGivenOnce(t *testing.T) {
	t.Parallel()
	f := newFleet(t, redisstore.Config{URL: redistest.Start(t).URL})
	st, twice, other := open(t, f.config), &again{spy: newSpy()}, open(t, f.config)
	st.AddHook(twice)
	_, err := st.Limit(t.Context(), []bound.LimitChange{{Limit: bound.Limit{About: bound.LimitTarget{Kind: "k"}, Concurrency: 2 * spanParts}}})
	require.NoError(t, err)
	f.submit(20*spanParts, 1, "")
	take := func(s *redisstore.Store, partition, limit int) int {
		n := 0
		for range 20 {
			claims, err := s.Claim(t.Context(), []store.ClaimRequest{f.request(partition, limit-n, "k")})
			require.NoError(t, err)
			if n += len(claims[0].Tasks); n == limit {
				break
			}
		}
		return n
	}
	for p := range spanParts - 1 {
		require.Equal(t, 2, take(st, p, 2))
	}
	require.Positive(t, twice.asked.Load())
	assert.Equal(t, 2, take(other, spanParts-1, 2), "what is left of the limit")
}
