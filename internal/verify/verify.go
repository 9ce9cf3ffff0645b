// Package verify tries a function, or a file of handlers, as a bad day does: each event comes twice, and its process is killed at random moments,
// from a seed that makes the same moments again. It goes on until all tasks have ended, and counts what ran once, more than once and never.
//
// What ran is counted by the marks that the function makes, if it makes any: an effect that must happen once for each task, such as a row that
// is inserted. Without them it is what the tracker says, which each run reaches under the fence of its claim: a task that has completed
// did so once. What a killed run had done before is unknown then, and the report says how many tasks were started again.
package verify

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/seed-6f6f2c11/duly/core"
	"github.com/seed-6f6f2c11/duly/core/model"
)

// Subject is what is verified: a process that is started when it is needed, and again after it was killed.
type Subject interface {
	// Deliver hands over tasks as its host brings them. It may be called again with the same ones.
	Deliver(ctx context.Context, tasks []core.NewTask) error
	// Tick runs what is due of an agent, and returns when that is done, or the process has ended: then with an error.
	Tick(ctx context.Context, agent string) error
	// Kill ends the process at once, if it runs: nothing of it can clean up.
	Kill()
}

// Config says what is tried.
type Config struct {
	Scheduler *core.Scheduler // on the store of the subject; it runs nothing
	Subject   Subject
	Agent     string // whose tasks they are; nothing of others is run
	Kind      string
	Payload   json.RawMessage // of each task; nil for none
	Tasks     int
	Kills     int
	Seed      uint64
	// Marks are how many marks each task has made, by its id; nil if the function makes none.
	Marks func(ctx context.Context) (map[string]int, error)
	// Progress, if not nil, is called after each round.
	Progress func(ended, tasks, kills int)
}

// Kill is a kill of the process.
type Kill struct {
	Number int           `json:"number"`
	During string        `json:"during"` // deliver or tick
	After  time.Duration `json:"after_ns"`
}

// Fault is a task that did not run once.
type Fault struct {
	ID    string `json:"id"`
	Times int    `json:"times"`
	Kill  int    `json:"after_kill,omitempty"` // the last kill before it was seen to have run again; zero if there was none
	Why   string `json:"why,omitempty"`
}

// Report is what became of the tasks.
type Report struct {
	Seed     uint64  `json:"seed"`
	Tasks    int     `json:"tasks"`
	Once     int     `json:"once"`
	More     []Fault `json:"more_than_once"`
	Never    []Fault `json:"never"`
	Again    int     `json:"started_again"` // tasks of which a run was killed, and that were started again
	Kills    []Kill  `json:"kills"`
	Exits    int     `json:"ended_by_itself"` // ticks that nobody has killed and that failed, mostly as the process has ended
	Marked   bool    `json:"marked"`          // it is counted by marks
	Duration int64   `json:"duration_ms"`
}

// Passed reports whether each task ran once.
func (r *Report) Passed() bool { return r.Once == r.Tasks }

// Last is the report in a line.
func (r *Report) Last() string { return fmt.Sprintf("ran once: %d of %d", r.Once, r.Tasks) }

// Bounds of a trial.
const (
	batch      = 10               // tasks that are delivered together
	mostTasks  = 1000             // that are listed in one page
	mostDeaths = 2                // of one task, which the kit kills: core gives a task up after a few more
	idle       = time.Second / 10 // between two ticks that find nothing to do, as leases of killed runs have to run out
)

// trial is one under way.
type trial struct {
	Config

	random *rand.Rand
	report Report
	usual  map[string]time.Duration // how long a call takes that is not killed, by what it does
	misses int                      // kills in a row that came too late: the next one comes sooner
	tasks  []core.TaskInfo
	more   map[string]*Fault
}

// Run tries the subject until all tasks have ended, or ctx has: what has not ended then never ran. Its error is one of the store, the marks or
// ctx; the report says what was found until then.
func Run(ctx context.Context, c Config) (Report, error) {
	if c.Tasks < 1 || c.Tasks > mostTasks || c.Kills < 0 {
		return Report{}, fmt.Errorf("tasks must be between 1 and %d, and kills not negative", mostTasks)
	}
	begun := time.Now()
	t := &trial{Config: c, random: rand.New(rand.NewPCG(c.Seed, 1)), more: map[string]*Fault{}, usual: map[string]time.Duration{}}
	t.report = Report{Seed: c.Seed, Tasks: c.Tasks, Marked: c.Marks != nil}
	err := t.run(ctx)
	t.conclude(context.WithoutCancel(ctx), err)
	t.report.Duration = time.Since(begun).Milliseconds()
	return t.report, err
}

// run delivers the tasks batch by batch, each twice, with a tick between them, and then ticks until all have ended.
func (t *trial) run(ctx context.Context) error {
	for from := 0; from < t.Tasks; from += batch {
		var tasks []core.NewTask
		for i := from; i < min(from+batch, t.Tasks); i++ {
			task := core.NewTask{Agent: t.Agent, ID: fmt.Sprintf("task-%04d", i), Kind: t.Kind}
			if t.Payload != nil {
				task.Payload = t.Payload
			}
			tasks = append(tasks, task)
		}
		for range 2 {
			if err := t.insist(ctx, tasks); err != nil {
				return err
			}
			if err := t.tick(ctx); err != nil {
				return err
			}
		}
	}
	for {
		if err := t.tick(ctx); err != nil {
			return err
		}
		left := 0
		for i := range t.tasks {
			if !t.tasks[i].Status.Finished() {
				left++
			}
		}
		if left == 0 {
			return nil
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("%d tasks have not ended: %w", left, ctx.Err())
		case <-time.After(idle):
		}
	}
}

// insist delivers tasks until that has succeeded, as a queue does.
func (t *trial) insist(ctx context.Context, tasks []core.NewTask) error {
	for try := 1; ; try++ {
		err := t.call(ctx, "deliver", func() error { return t.Subject.Deliver(ctx, tasks) })
		if err == nil || ctx.Err() != nil {
			return errors.Join(err, ctx.Err())
		}
		if try == 10 { // the kills of one batch are fewer
			return fmt.Errorf("tasks cannot be delivered: %w", err)
		}
	}
}

// tick lets the subject run what is due, and looks what became of it. A tick that fails is another one's to repeat.
func (t *trial) tick(ctx context.Context) error {
	kills := len(t.report.Kills)
	if err := t.call(ctx, "tick", func() error { return t.Subject.Tick(ctx, t.Agent) }); err != nil && len(t.report.Kills) == kills {
		t.report.Exits++
	}
	tasks, _, err := t.Scheduler.Tasks(ctx, core.List{Agent: t.Agent, Kind: t.Kind, Limit: mostTasks})
	if err != nil {
		return err
	}
	t.tasks = tasks
	if err := t.count(ctx); err != nil {
		return err
	}
	ended := 0
	for i := range tasks {
		if tasks[i].Status.Finished() {
			ended++
		}
	}
	if t.Progress != nil {
		t.Progress(ended, t.Tasks, len(t.report.Kills))
	}
	return nil
}

// call makes a call, and kills the process at a moment of it if there are kills left: before it has begun to work, while it does, or when it is about
// to answer.
func (t *trial) call(ctx context.Context, what string, do func() error) error {
	begun, usual := time.Now(), t.usual[what]
	if usual == 0 || !t.mayKill() { // nobody knows yet how long it takes
		err := do()
		if took := time.Since(begun); err == nil {
			t.usual[what] = max((3*usual+took)/4, time.Millisecond)
		}
		return err
	}
	after := time.Duration(t.random.Int64N(int64(usual)*5/4)) >> min(t.misses, 10)
	done := make(chan error, 1)
	go func() { done <- do() }()
	timer := time.NewTimer(after)
	defer timer.Stop()
	select {
	case err := <-done:
		t.misses++
		return err
	case <-timer.C:
		t.Subject.Kill()
		t.misses = 0
		t.report.Kills = append(t.report.Kills, Kill{Number: len(t.report.Kills) + 1, During: what, After: after})
		return <-done
	case <-ctx.Done():
		t.Subject.Kill()
		return <-done
	}
}

// mayKill reports whether the next call is one that is killed: one in two, while there are kills left and no task has died too often by them.
func (t *trial) mayKill() bool {
	if len(t.report.Kills) >= t.Kills || t.random.IntN(2) == 0 {
		return false
	}
	for i := range t.tasks {
		if !t.tasks[i].Status.Finished() && t.tasks[i].Crashes >= mostDeaths {
			return false
		}
	}
	return true
}

// count looks which tasks have made more than one mark, or have succeeded more than once, since the last time.
func (t *trial) count(ctx context.Context) error {
	times, err := t.times(ctx)
	if err != nil {
		return err
	}
	for id, n := range times {
		f := t.more[id]
		if n > 1 && f == nil {
			f = &Fault{ID: id, Kill: len(t.report.Kills)}
			t.more[id] = f
		}
		if f != nil {
			f.Times = n
		}
	}
	return nil
}

// times are how often each task ran, by its id.
func (t *trial) times(ctx context.Context) (map[string]int, error) {
	if t.Marks != nil {
		return t.Marks(ctx)
	}
	times := map[string]int{}
	for i := range t.tasks {
		if t.tasks[i].Status == core.StatusCompleted {
			times[t.tasks[i].ID]++
		}
	}
	return times, nil
}

// conclude counts what each task came to. failed is what has ended the trial; nil if all tasks have ended.
func (t *trial) conclude(ctx context.Context, failed error) {
	times, err := t.times(ctx)
	if err != nil {
		times = map[string]int{}
	}
	for i := range t.tasks {
		info := &t.tasks[i]
		n, killed := times[info.ID], false
		for _, run := range info.Runs {
			killed = killed || run.Outcome == model.OutcomeCrashed
		}
		if killed {
			t.report.Again++
		}
		switch {
		case n > 1:
			t.report.More = append(t.report.More, *t.more[info.ID])
		case n == 1 && info.Status == core.StatusCompleted:
			t.report.Once++
		default:
			t.report.Never = append(t.report.Never, Fault{ID: info.ID, Times: n, Why: whyNever(info)})
		}
	}
	for i := len(t.tasks); i < t.Tasks; i++ {
		t.report.Never = append(t.report.Never, Fault{ID: fmt.Sprintf("task-%04d", i), Why: fmt.Sprint("was not delivered: ", failed)})
	}
}

// whyNever says why a task has not run as it should.
func whyNever(info *core.TaskInfo) string {
	switch {
	case info.Status == core.StatusCompleted:
		return "it completed, and has made no mark"
	case info.Status.Finished():
		return fmt.Sprintf("it is %s (%s): %s", info.Status, info.Reason, info.LastError)
	default:
		return fmt.Sprintf("it is still %s, after %d crashes of its process", info.Status, info.Crashes)
	}
}
