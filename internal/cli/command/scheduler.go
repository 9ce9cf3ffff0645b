package command

// What commands ask and order: of the store by themselves, or of a server.

import (
	"context"
	"encoding/json"
	"io"
	"time"

	"github.com/seed-6f6f2c11/duly/core"
	"github.com/seed-6f6f2c11/duly/core/inspect"
	"github.com/seed-6f6f2c11/duly/core/model"
	"github.com/seed-6f6f2c11/duly/core/operate"
	"github.com/seed-6f6f2c11/duly/core/store/bound"
	"github.com/seed-6f6f2c11/duly/internal/cli/remote"
)

// Scheduler is what a command works on: a *core.Scheduler on a Redis, or a *remote.Client. A command is written once, and prints the same
// for both.
type Scheduler interface {
	tasks
	orders
	rules
	agents
	state
}

var (
	_ Scheduler = (*core.Scheduler)(nil)
	_ Scheduler = (*remote.Client)(nil)
)

// tasks are submitted, read and changed.
type tasks interface {
	WithParent(ctx context.Context, parent string) (context.Context, error)
	Submit(ctx context.Context, tasks ...core.NewTask) ([]core.Submitted, error)
	Edit(ctx context.Context, agent, id string, change json.RawMessage) (core.Submitted, error)
	Task(ctx context.Context, agent, id string) (core.TaskInfo, error)
	Tasks(ctx context.Context, l core.List) ([]core.TaskInfo, string, error)
	TimeOrAgo(ctx context.Context, field, text string) (time.Time, error)
	Explain(ctx context.Context, agent, id string) (inspect.Explanation, error)
	Output(ctx context.Context, agent, id string, from inspect.OutputFrom) (inspect.Output, error)
}

// orders are an operator's.
type orders interface {
	Pause(ctx context.Context, t core.Target, p core.Pause) error
	Resume(ctx context.Context, t core.Target) error
	Pauses(ctx context.Context, limit int, cursor string) ([]model.PauseInfo, string, error)
	RunNow(ctx context.Context, agent, id string) (time.Time, error)
	Cancel(ctx context.Context, agent, id string, by core.Order) (core.Status, error)
	Delete(ctx context.Context, agent, id string) error
	ReplayWith(ctx context.Context, agent, id string, payload json.RawMessage) (time.Time, error)
	Bulk(ctx context.Context, b operate.Bulk) (operate.BulkStep, error)
}

// rules are limits and budgets.
type rules interface {
	Limits(ctx context.Context) ([]bound.LimitUse, error)
	SetLimits(ctx context.Context, limits ...core.Limit) error
	LimitOn(ctx context.Context, about core.LimitTarget) (bound.LimitUse, error)
	LiftLimit(ctx context.Context, about core.LimitTarget) error
	Budgets(ctx context.Context) ([]bound.BudgetUse, error)
	SetBudgets(ctx context.Context, budgets ...core.Budget) error
	BudgetOn(ctx context.Context, about core.BudgetTarget) (bound.BudgetUse, error)
	LiftBudget(ctx context.Context, about core.BudgetTarget) error
}

// agents have profiles, and are moved and forgotten.
type agents interface {
	Profile(ctx context.Context, agent string) (core.Profile, error)
	Profiles(ctx context.Context, cursor string, limit int) ([]core.Profile, string, error)
	SetProfile(ctx context.Context, p core.Profile) (core.Profile, error)
	DeleteProfile(ctx context.Context, agent string) error
	Forget(ctx context.Context, agent string, progress func(soFar operate.Forgotten)) (operate.Forgotten, error)
	CountForget(ctx context.Context, agent string) (operate.Forgotten, error)
	Export(ctx context.Context, agent string, w io.Writer) (int, error)
	Import(ctx context.Context, as string, from io.Reader) (operate.Imported, error)
}

// state reads and changes the state of the whole store.
type state interface {
	Stats(ctx context.Context) (inspect.Stats, error)
	Window(ctx context.Context, d time.Duration) (inspect.Window, error)
	DescribeKinds(ctx context.Context) (inspect.KindList, error)
	Processes(ctx context.Context) ([]model.Process, error)
	Agents(ctx context.Context, limit int, cursor string) ([]model.AgentStats, string, error)
	Audit(ctx context.Context, o inspect.AuditOptions) (inspect.AuditReport, error)
	Signal(ctx context.Context, agent, key string, payload json.RawMessage) (model.Signalled, error)
	Notice(ctx context.Context, kind string, subject core.Subject) (model.Noticed, error)
}
