package main

// Instructions of redis-server for each task, by phase of its life: a figure without noise, to hold a change against. Store
// calls are made directly, from one goroutine and always in the same order, so that only the scripts decide.

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"time"

	"github.com/seed-6f6f2c11/duly/core/redisstore"
	"github.com/seed-6f6f2c11/duly/core/store"
	"github.com/seed-6f6f2c11/duly/core/store/moment"
)

// phases in the order of a task's life; a tick has a look in place of a submit.
const (
	phaseLook   = "look"
	phaseSubmit = "submit"
	phaseClaim  = "claim"
	phaseSettle = "settle"
	phaseSum    = "sum"
)

// countOf is the thousands of instructions of one phase of a shape, for a task.
type countOf struct {
	shape, phase string
	kilo         float64
}

// counts is what was counted, on what.
type counts struct {
	on     string // the counter and the server: figures of others cannot be compared
	counts []countOf
}

// countInstructions counts, and compares with what is kept. Where nothing can be counted it says so, and does not fail.
func countInstructions(ctx context.Context, o *options, out, progress io.Writer) error {
	c, err := findCounter(ctx)
	if errors.Is(err, errNoCounter) {
		_, _ = fmt.Fprintln(out, err)
		return nil
	}
	if err != nil {
		return err
	}
	found, err := countAgain(ctx, c, shapes(false), o, progress)
	if err := errors.Join(err, c.close()); err != nil {
		return err
	}
	return compareInstructions(found, o.instructions, o.update, out)
}

// mostCounts is how often a shape is counted that is not as it was: what falls into another millisecond, or into a write of Redis' own,
// changes a count now and then, and a change of the scripts every time.
const mostCounts = 3

// countAgain counts shapes, and again those that differ from what is kept: the nearest count stays. What is about to be kept is the
// middle of several counts, so that the next comparison does not start from an end of what they vary by.
func countAgain(ctx context.Context, c counter, all []shape, o *options, progress io.Writer) (*counts, error) {
	found, err := countShapes(ctx, c, all, progress)
	tries := []*counts{found}
	for n := 1; n < mostCounts && err == nil; n++ {
		var kept map[string]float64
		if kept, err = keptOn(o.instructions, found.on); err != nil {
			break
		}
		again := all
		if !o.update {
			again = slices.DeleteFunc(slices.Clone(all), func(s shape) bool { return found.changed(s.name, kept) <= 1 })
		}
		if len(again) == 0 || len(kept) == 0 && !o.update {
			break
		}
		var more *counts
		if more, err = countShapes(ctx, c, again, progress); err == nil && !o.update {
			found.nearer(more, kept)
		}
		tries = append(tries, more)
	}
	if err == nil && o.update {
		found = middle(tries)
	}
	return found, err
}

// countShapes plays each shape on a server of its own, so that none depends on the ones before.
func countShapes(ctx context.Context, c counter, all []shape, progress io.Writer) (*counts, error) {
	found := &counts{}
	for _, s := range all {
		_, _ = fmt.Fprintf(progress, "  %s: %s, %d an agent, %d a call\n", s.name, count(s.tasks, "task"), s.each, s.batch)
		version, err := found.play(ctx, c, s)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", s.name, err)
		}
		found.on = c.name() + " redis-" + version
	}
	return found, nil
}

// play counts one shape, and returns the version of the server.
func (f *counts) play(ctx context.Context, c counter, s shape) (version string, err error) {
	binary, err := redisBinary()
	if err != nil {
		return "", err
	}
	server, err := startServer(ctx, "unix", c.line(binary), quietCron()...)
	if err != nil {
		return "", err
	}
	defer func() { err = errors.Join(err, server.stop()) }()
	info, err := server.info(ctx, "server")
	if err != nil {
		return "", err
	}
	p := &player{shape: s, redis: server, counter: c, spent: map[string]float64{}, done: map[string]int{}}
	if err := errors.Join(p.play(ctx), p.close()); err != nil {
		return "", err
	}
	f.add(p)
	return info["redis_version"], nil
}

// add appends the figures of a shape, and their sum.
func (f *counts) add(p *player) {
	var sum float64
	for _, phase := range []string{phaseSubmit, phaseLook, phaseClaim, phaseSettle} {
		if n := p.done[phase]; n > 0 {
			kilo := p.spent[phase] / float64(n) / 1000
			f.counts = append(f.counts, countOf{p.name, phase, kilo})
			sum += kilo
		}
	}
	f.counts = append(f.counts, countOf{p.name, phaseSum, sum})
}

// player makes the calls of a shape.
type player struct {
	shape
	store   *redisstore.Store
	redis   *redisServer
	counter counter
	claims  int       // as many as were made, for their nonces
	opened  time.Time // when the store was opened
	spent   map[string]float64
	done    map[string]int // tasks of each phase that were counted
	off     bool           // warming up: nothing is counted
}

// fresh is how long a store is used. Its first claim, and one every ten seconds, also sweeps a part of what has finished: how many
// do that while we count would depend on how fast this machine is today.
const fresh = 4 * time.Second

// freshen sees to it that no claim of the next seconds sweeps.
func (p *player) freshen(ctx context.Context) error {
	if p.store != nil && time.Since(p.opened) < fresh {
		return nil
	}
	if err := p.close(); err != nil {
		return err
	}
	st, err := redisstore.Open(ctx, redisstore.Config{URL: p.redis.url(), Partitions: 1, MaxTasks: uncut, Kept: uncut})
	if err != nil {
		return err
	}
	p.store, p.opened = st, time.Now()
	_, err = p.claimOne(ctx, "nobody")
	return err
}

func (p *player) close() error {
	if p.store == nil {
		return nil
	}
	return p.store.Close()
}

// play warms up with one batch, so that scripts are loaded and the connection is open, then counts.
func (p *player) play(ctx context.Context) error {
	whole := p.shape
	p.off, p.tasks = true, p.batch
	if err := p.bind(ctx); err != nil {
		return err
	}
	for i := range 2 { // what a run uses is known from the second one on
		if err := p.course(ctx, fmt.Sprint("warm", i)); err != nil {
			return err
		}
	}
	p.off, p.shape = false, whole
	if err := p.collect(ctx); err != nil {
		return err
	}
	return p.course(ctx, "task")
}

// collect has Lua collect its garbage, so that each round begins alike: a collection more or less is two percent of a round.
func (p *player) collect(ctx context.Context) error {
	if err := p.redis.client.Eval(ctx, "return collectgarbage('collect')", nil).Err(); err != nil {
		return fmt.Errorf("collect garbage: %w", err)
	}
	return nil
}

func (p *player) course(ctx context.Context, prefix string) error {
	if err := p.freshen(ctx); err != nil {
		return err
	}
	if p.idle {
		return p.ticks(ctx, prefix)
	}
	submit := func() error { return p.submit(ctx, prefix, 0) }
	if p.again == 0 {
		if err := p.phase(ctx, phaseSubmit, p.tasks, submit); err != nil {
			return err
		}
		return p.run(ctx, store.VerbComplete)
	}
	if err := submit(); err != nil { // once for all runs: it is no part of one
		return err
	}
	// The first round is not counted: it is the only one that finds tasks without a state.
	counted := !p.off
	for round := range p.again + 1 {
		p.off = round == 0 || !counted
		// Once: a collection more or less is two percent of a round, and less of them all.
		if round < 2 {
			if err := p.collect(ctx); err != nil {
				return err
			}
		}
		if err := p.run(ctx, store.VerbAgain); err != nil {
			return err
		}
		if !pause(ctx, soon+50*time.Millisecond) {
			return ctx.Err()
		}
	}
	if !counted { // what warmed up is out of the way
		return p.run(ctx, store.VerbComplete)
	}
	return nil
}

// phase does a part of the work for n tasks and counts its instructions.
func (p *player) phase(ctx context.Context, name string, n int, work func() error) error {
	if err := p.freshen(ctx); err != nil {
		return err
	}
	if p.off {
		return work()
	}
	spent, err := p.counter.count(ctx, p.redis, work)
	p.spent[name] += spent
	p.done[name] += n
	return err
}

func (p *player) submit(ctx context.Context, prefix string, delay time.Duration) error {
	agents := max(p.tasks/p.each, 1)
	for first := 0; first < p.tasks; first += p.batch {
		tasks := make([]store.Submission, 0, p.batch)
		for i := first; i < min(first+p.batch, p.tasks); i++ {
			tasks = append(tasks, store.Submission{
				Agent: agentName(i, agents), ID: fmt.Sprintf("%s-%021d", prefix, i), Kind: kind, Level: 3,
				Due: moment.When{After: delay}, Body: filler(cmp.Or(p.body, usualBody)),
			})
		}
		if _, err := p.store.Submit(ctx, tasks); err != nil {
			return err
		}
	}
	return nil
}

// run claims and settles all tasks, as many at a time as are in flight.
func (p *player) run(ctx context.Context, verb store.Verb) error {
	for left := p.tasks; left > 0; left -= p.inFlight {
		n := min(left, p.inFlight)
		var claimed [][]store.Claimed
		err := p.phase(ctx, phaseClaim, n, func() (err error) {
			claimed, err = p.claim(ctx, n)
			return err
		})
		if err != nil {
			return err
		}
		if err := p.phase(ctx, phaseSettle, n, func() error { return p.settle(ctx, claimed, verb) }); err != nil {
			return err
		}
	}
	return nil
}

func (p *player) claim(ctx context.Context, n int) ([][]store.Claimed, error) {
	var all [][]store.Claimed
	for got := 0; got < n; {
		tasks, err := p.claimOne(ctx)
		if err != nil {
			return nil, err
		}
		if len(tasks) != min(p.batch, n-got) {
			return nil, fmt.Errorf("a claim brought %d tasks instead of %d", len(tasks), min(p.batch, n-got))
		}
		got += len(tasks)
		all = append(all, tasks)
	}
	return all, nil
}

// claimOne claims a batch of some agents, or of any.
func (p *player) claimOne(ctx context.Context, agents ...string) ([]store.Claimed, error) {
	p.claims++
	// The lease is too long to end, or to be extended, in between.
	claims, err := p.store.Claim(ctx, []store.ClaimRequest{{
		Nonce: fmt.Sprintf("%0*d", store.NonceLen, p.claims), Kinds: []string{kind}, Agents: agents, Limit: p.batch, Lease: time.Hour,
	}})
	if err != nil {
		return nil, err
	}
	return claims[0].Tasks, claims[0].Err
}

func (p *player) settle(ctx context.Context, claimed [][]store.Claimed, verb store.Verb) error {
	for _, tasks := range claimed {
		runs := make([]store.Settlement, len(tasks))
		now := moment.Of(time.Now())
		for i := range tasks {
			runs[i] = settlement(&tasks[i], verb, now.Add(soon+time.Duration(i)*time.Millisecond))
			if p.used != nil {
				runs[i].Spent = &store.Spent{Used: p.used}
			}
		}
		settled, err := p.store.Settle(ctx, runs)
		if err != nil {
			return err
		}
		for i := range settled {
			if settled[i].Err != nil {
				return settled[i].Err
			}
		}
	}
	return nil
}

// settlement is what core makes of a run that has succeeded.
func settlement(c *store.Claimed, verb store.Verb, due moment.Millis) store.Settlement {
	s := store.Settlement{
		Run: c.Run, Verb: verb, Kind: c.Kind, BodyLen: len(c.Body),
		Tally: &store.RunStat{Kind: c.Kind, Schedule: store.ScheduleAt, Duration: time.Millisecond, Lag: 2 * time.Millisecond},
	}
	if verb == store.VerbAgain {
		s.Due, s.State, s.Tally.Schedule = moment.When{At: due}, filler(120), store.ScheduleEvery
		return s
	}
	s.Record = filler(80)
	return s
}

// ticks look and claim while nothing is due.
func (p *player) ticks(ctx context.Context, prefix string) error {
	if err := p.submit(ctx, prefix, time.Hour); err != nil {
		return err
	}
	err := p.phase(ctx, phaseLook, p.tasks, func() error {
		for range p.tasks {
			if _, err := p.store.Look(ctx, []store.LookRequest{{Kinds: []string{kind}}}); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		return err
	}
	return p.phase(ctx, phaseClaim, p.tasks, func() error {
		for range p.tasks {
			switch tasks, err := p.claimOne(ctx); {
			case err != nil:
				return err
			case len(tasks) > 0:
				return errors.New("a claim brought tasks although nothing is due")
			}
		}
		return nil
	})
}

// soon is how long after its settlement a recurring task is due again.
const soon = 300 * time.Millisecond

// filler is n bytes that a store only keeps. Their content does not matter.
func filler(n int) []byte {
	b := make([]byte, n)
	for i := range b {
		b[i] = 'a' + byte(i%26)
	}
	return b
}
