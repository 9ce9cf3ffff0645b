package metrics

import (
	"context"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/seed-6f6f2c11/duly/core"
	"github.com/seed-6f6f2c11/duly/core/inspect"
	"github.com/seed-6f6f2c11/duly/core/model"
	"github.com/seed-6f6f2c11/duly/core/store/bound"
)

// The store's figures: what each means, for the /metrics page. They are of all processes together.

// figures are what the store last said. One scrape at a time asks it; those that waited meanwhile have its answer, good or
// bad.
// Without it each of several scrapers would read all counters of the store at the same moment.
type figures struct {
	m         *Metrics
	scheduler *core.Scheduler
	turn      chan struct{} // holds one value while no request reads

	// known says that the store was asked at all; the others are its last answer.
	known bool
	at    time.Time
	said  answer
	err   error
}

// answer is what the store says when it is asked: its counters, its limits and budgets with what is used of them, and who has reported lately.
type answer struct {
	stats     inspect.Stats
	limits    []bound.LimitUse
	budgets   []bound.BudgetUse
	late      inspect.Lateness
	processes []model.Process
}

// newFigures has the turn free.
func newFigures(m *Metrics, s *core.Scheduler) *figures {
	f := &figures{m: m, scheduler: s, turn: make(chan struct{}, 1)}
	f.turn <- struct{}{}
	return f
}

// read is the store's answer, at most Fresh old, or why there is none.
func (f *figures) read(ctx context.Context) (answer, error) {
	select {
	case <-f.turn:
	case <-ctx.Done():
		return answer{}, ctx.Err()
	}
	defer func() { f.turn <- struct{}{} }()
	clock := f.m.config.Clock
	if f.known && clock.Now().Sub(f.at) < f.m.config.Fresh {
		return f.said, f.err
	}
	// A scraper has a timeout of its own, and would otherwise lose the process's metrics as well.
	limited, cancel := context.WithTimeout(ctx, f.m.config.Timeout)
	defer cancel()
	var said answer
	var err error
	if said.stats, err = f.scheduler.Stats(limited); err == nil {
		said.limits, err = f.scheduler.Limits(limited)
	}
	if err == nil {
		said.budgets, err = f.scheduler.Budgets(limited)
	}
	if err == nil {
		said.late, err = f.scheduler.Lateness(limited)
	}
	if err == nil {
		said.processes, err = f.scheduler.Processes(limited)
	}
	if ctx.Err() == nil { // a scraper that went away says nothing of the store
		f.known, f.at, f.said, f.err = true, clock.Now(), said, err
	}
	return said, err
}

// Their help texts are what Prometheus shows; docs/reference/metrics.md is written out of them.
var (
	upDesc       = prometheus.NewDesc("duly_store_up", "Whether the store answered this scrape.", nil, nil)
	tasksDesc    = prometheus.NewDesc("duly_tasks", "Tasks in the store: waiting, resting and in progress now, the others since the store was first used.", []string{"status"}, nil)
	parkedDesc   = prometheus.NewDesc("duly_parked_tasks", "Waiting tasks that no process can run now.", []string{"reason"}, nil)
	droppedDesc  = prometheus.NewDesc("duly_dropped_records", "Finished records dropped before their retention ended, because their agents had more than are kept.", nil, nil)
	reportedDesc = prometheus.NewDesc("duly_processes", "Processes that have reported in the last minute: those that run tasks, and workers outside.", []string{"role"}, nil)
	overdueDesc  = prometheus.NewDesc("duly_overdue_seconds", "How long the first agent in line has had due work that no process has claimed; 0 if nothing is due.", nil, nil)
)

// What limits allow and hold back. Their labels name a limit as its flags do: at most bound.MostLimits limits can be set, so
// that the series are bounded although limit keys are not.
var (
	limitLabels      = []string{"kind", "limit_key", "each"}
	concurrencyDesc  = prometheus.NewDesc("duly_limit_concurrency", "How many runs at once a limit allows; missing for a limit of a rate alone.", limitLabels, nil)
	limitRunningDesc = prometheus.NewDesc("duly_limit_running", "Runs that count in a limit now.", limitLabels, nil)
	limitWaitingDesc = prometheus.NewDesc("duly_limit_waiting", "Due tasks that wait in line for a limit.", limitLabels, nil)

	budgetLabels      = []string{"kind", "limit_key", "each", "unit", "per"}
	budgetAmountDesc  = prometheus.NewDesc("duly_budget_amount", "How much a budget allows in its period, for each agent, key or task if it has each.", budgetLabels, nil)
	budgetUsedDesc    = prometheus.NewDesc("duly_budget_used", "How much of a budget is used in the period that is now, by all together.", budgetLabels, nil)
	budgetUsedUpDesc  = prometheus.NewDesc("duly_budget_used_up", "How many agents, keys or tasks have used their budget up; 1 at most if all count together.", budgetLabels, nil)
	lateDesc          = prometheus.NewDesc("duly_late_tasks", "Tasks that have not succeeded within the time of expect_success.", nil, nil)
	lateUnknownDesc   = prometheus.NewDesc("duly_late_unknown_seconds", "For how long no process has looked whether tasks are late; 0 if less than a minute.", nil, nil)
	budgetWaitingDesc = prometheus.NewDesc("duly_budget_waiting", "Due tasks that a budget holds back.", budgetLabels, nil)
)

// storeCollector makes metrics of the store's figures.
// It is made for one scrape, of figures that were read before: collecting calls no store.
type storeCollector struct {
	answer

	up bool
}

// Describe lists the metrics that a scrape may have.
func (storeCollector) Describe(descs chan<- *prometheus.Desc) {
	for _, d := range []*prometheus.Desc{
		upDesc, tasksDesc, parkedDesc, droppedDesc, overdueDesc, reportedDesc, concurrencyDesc, limitRunningDesc, limitWaitingDesc,
		budgetAmountDesc, budgetUsedDesc, budgetUsedUpDesc, budgetWaitingDesc, lateDesc, lateUnknownDesc,
	} {
		descs <- d
	}
}

// Collect makes them; of a store that is away only that it is.
// A store that does not answer has unknown counts, and zeros would be read as facts.
func (c storeCollector) Collect(out chan<- prometheus.Metric) {
	if !c.up {
		gauge(out, upDesc, 0)
		return
	}
	gauge(out, upDesc, 1)
	st := &c.stats
	const resting = core.Status(model.BecauseResting) // waiting tasks, counted apart
	for status, n := range map[core.Status]int64{
		core.StatusWaiting: st.Waiting, resting: st.Resting, core.StatusInProgress: st.InProgress, core.StatusCompleted: st.Completed,
		core.StatusFailed: st.Failed, core.StatusCancelled: st.Cancelled,
	} {
		gauge(out, tasksDesc, float64(n), string(status))
	}
	// Held tasks are parked too, so that the two reasons add up to all that are parked.
	gauge(out, parkedDesc, float64(st.Held), "paused")
	gauge(out, parkedDesc, float64(max(st.Parked-st.Held, 0)), "no_handler")
	gauge(out, droppedDesc, float64(st.Trimmed))
	var overdue time.Duration
	if !st.NextDue.IsZero() {
		overdue = max(st.Now.Sub(st.NextDue), 0)
	}
	gauge(out, overdueDesc, overdue.Seconds())
	gauge(out, lateDesc, float64(c.late.Tasks))
	gauge(out, lateUnknownDesc, c.late.Behind.Seconds())
	collectProcesses(out, c.processes)
	for i := range c.limits {
		collectLimit(out, &c.limits[i])
	}
	for i := range c.budgets {
		collectBudget(out, &c.budgets[i])
	}
}

// collectProcesses counts who has reported lately. A worker outside has no slots of its own.
func collectProcesses(out chan<- prometheus.Metric, all []model.Process) {
	roles := map[string]int{"process": 0, "worker": 0}
	for i := range all {
		if all[i].Slots == 0 {
			roles["worker"]++
		} else {
			roles["process"]++
		}
	}
	for role, n := range roles {
		gauge(out, reportedDesc, float64(n), role)
	}
}

// collectBudget makes the metrics of one budget.
func collectBudget(out chan<- prometheus.Metric, b *bound.BudgetUse) {
	name := []string{b.About.Kind, b.About.Key, string(b.About.Each), b.About.Unit, string(b.About.Per)}
	one := float64(core.AmountOf(1))
	gauge(out, budgetAmountDesc, float64(b.Amount)/one, name...)
	gauge(out, budgetUsedDesc, float64(b.Used)/one, name...)
	gauge(out, budgetUsedUpDesc, float64(b.UsedUp), name...)
	gauge(out, budgetWaitingDesc, float64(b.Waiting), name...)
}

// collectLimit makes the metrics of one limit. One of a rate alone has no bound of runs, and zero would be read as one.
func collectLimit(out chan<- prometheus.Metric, l *bound.LimitUse) {
	name := []string{l.About.Kind, l.About.Key, string(l.About.Each)}
	gauge(out, limitRunningDesc, float64(l.Running), name...)
	gauge(out, limitWaitingDesc, float64(l.Waiting), name...)
	if l.Concurrency > 0 {
		gauge(out, concurrencyDesc, float64(l.Concurrency), name...)
	}
}
