package operation

// The table.

import (
	"encoding/json"
	"io"
	"net/http"

	"github.com/seed-6f6f2c11/duly/core"
	"github.com/seed-6f6f2c11/duly/core/inspect"
	"github.com/seed-6f6f2c11/duly/core/model"
	"github.com/seed-6f6f2c11/duly/core/operate"
	"github.com/seed-6f6f2c11/duly/core/store/bound"
)

const (
	get    = http.MethodGet
	post   = http.MethodPost
	put    = http.MethodPut
	patch  = http.MethodPatch
	remove = http.MethodDelete
)

// Tasks, and orders about one of them.
var (
	RunDue     = Op[Run, core.Report]{&Call{ID: "runDue", Method: post, Path: "/v1/run-due", Needs: ScopeTrigger, HasBody: true, Long: true}}
	Cron       = Op[None, core.Report]{&Call{ID: "cron", Method: get, Path: "/v1/cron", Needs: ScopeTrigger, NoHead: true, Long: true}}
	SubmitAll  = Op[Submit, Submitted]{&Call{ID: "submit", Method: post, Path: "/v1/tasks", Submits: true, HasBody: true}}
	ListTasks  = Op[List, Tasks]{&Call{ID: "list", Method: get, Path: "/v1/tasks"}}
	ListJobs   = Op[JobList, Jobs]{&Call{ID: "jobs", Method: get, Path: "/v1/jobs"}}
	Task       = Op[Wait, core.TaskInfo]{&Call{ID: "task", Method: get, Path: task}}
	Edit       = Op[json.RawMessage, core.TaskInfo]{&Call{ID: "edit", Method: patch, Path: task, Submits: true, HasBody: true}}
	Delete     = Op[None, DeletedTask]{&Call{ID: "delete", Method: remove, Path: task}}
	PauseTask  = Op[Pause, core.TaskInfo]{&Call{ID: "pause", Method: post, Path: task + "/pause"}}
	ResumeTask = Op[Resume, core.TaskInfo]{&Call{ID: "resume", Method: post, Path: task + "/resume"}}
	RunNow     = Op[Empty, core.TaskInfo]{&Call{ID: "run", Method: post, Path: task + "/run"}}
	Cancel     = Op[Order, core.TaskInfo]{&Call{ID: "cancel", Method: post, Path: task + "/cancel"}}
	Replay     = Op[Replayed, core.TaskInfo]{&Call{ID: "replay", Method: post, Path: task + "/replay"}}
	Explain    = Op[None, inspect.Explanation]{&Call{ID: "explain", Method: get, Path: task + "/explain"}}
	TaskRuns   = Op[None, Runs]{&Call{ID: "runs", Method: get, Path: task + "/runs"}}
	TaskOutput = Op[OutputFrom, inspect.Output]{&Call{ID: "output", Method: get, Path: task + "/output"}}
	Group      = Op[None, model.GroupCounts]{&Call{ID: "group", Method: get, Path: "/v1/groups/{agent}/{group}"}}
	Notice     = Op[Activity, model.Noticed]{&Call{ID: "activity", Method: post, Path: "/v1/activity", HasBody: true, Status: http.StatusAccepted}}
	// ReceiveHook takes what its hook says, and answers as a signal or a submit does.
	ReceiveHook = Op[None, json.RawMessage]{&Call{ID: "hook", Method: post, Path: "/v1/hooks/{name}"}}
	SendSignal  = Op[Signal, model.Signalled]{&Call{ID: "signal", Method: post, Path: "/v1/signals/{agent}/{key}", Asks: true}}
)

// Runs of workers.
var (
	ClaimRuns  = Op[Claim, Lent]{&Call{ID: "claimRuns", Method: post, Path: "/v1/work/claim", Needs: ScopeWork, HasBody: true, Long: true}}
	KeepRuns   = Op[Keep, Kept]{&Call{ID: "keepRuns", Method: post, Path: "/v1/work/keep", Needs: ScopeWork, HasBody: true}}
	ReturnRuns = Op[Return, Returned]{&Call{ID: "returnRuns", Method: post, Path: "/v1/work/return", Needs: ScopeWork, HasBody: true, Long: true}}
)

const task = "/v1/agents/{agent}/tasks/{id}"

// BulkOf is a command for the tasks of a list.
func BulkOf(verb operate.BulkVerb) Op[Bulk, operate.BulkStep] {
	return Op[Bulk, operate.BulkStep]{&Call{ID: string(verb) + "Tasks", Method: post, Path: "/v1/tasks/" + string(verb)}}
}

// Pauses of more than a task.
var (
	PauseAgent  = Op[Pause, Paused]{&Call{ID: "pauseAgent", Method: post, Path: "/v1/agents/{agent}/pause"}}
	ResumeAgent = Op[Resume, Paused]{&Call{ID: "resumeAgent", Method: post, Path: "/v1/agents/{agent}/resume"}}
	PauseKind   = Op[Pause, Paused]{&Call{ID: "pauseKind", Method: post, Path: "/v1/kinds/{kind}/pause", Wide: true}}
	ResumeKind  = Op[Resume, Paused]{&Call{ID: "resumeKind", Method: post, Path: "/v1/kinds/{kind}/resume", Wide: true}}
	PauseKey    = Op[Pause, Paused]{&Call{ID: "pauseKey", Method: post, Path: "/v1/keys/{key}/pause", Wide: true}}
	ResumeKey   = Op[Resume, Paused]{&Call{ID: "resumeKey", Method: post, Path: "/v1/keys/{key}/resume", Wide: true}}
	PauseAll    = Op[Pause, Paused]{&Call{ID: "pauseAll", Method: post, Path: "/v1/pause", Wide: true}}
	ResumeAll   = Op[Resume, Paused]{&Call{ID: "resumeAll", Method: post, Path: "/v1/resume", Wide: true}}
	ListPauses  = Op[Page, Pauses]{&Call{ID: "pauses", Method: get, Path: "/v1/pauses", Wide: true}}
)

// Agents.
var (
	ListAgents    = Op[Page, Agents]{&Call{ID: "agents", Method: get, Path: "/v1/agents", Wide: true}}
	ListProfiles  = Op[Page, Profiles]{&Call{ID: "profiles", Method: get, Path: "/v1/profiles", Wide: true}}
	AgentProfile  = Op[Empty, core.Profile]{&Call{ID: "agentProfile", Method: get, Path: agent}}
	SetProfile    = Op[Profile, core.Profile]{&Call{ID: "setAgentProfile", Method: put, Path: agent, HasBody: true, Long: true}}
	DeleteProfile = Op[Empty, DeletedProfile]{&Call{ID: "deleteAgentProfile", Method: remove, Path: agent + "/profile", Long: true}}
	ForgetAgent   = Op[Forget, Forgotten]{&Call{ID: "forgetAgent", Method: remove, Path: agent, Long: true}}
	Export        = Op[Empty, Lines]{&Call{ID: "exportAgent", Method: get, Path: agent + "/export", NoHead: true, Long: true}}
	Import        = Op[io.Reader, operate.Imported]{&Call{ID: "importAgent", Method: post, Path: agent + "/import", HasBody: true, Long: true}}
)

const agent = "/v1/agents/{agent}"

// Limits and budgets.
var (
	ListLimits  = Op[Empty, Limits]{&Call{ID: "limits", Method: get, Path: "/v1/limits", Wide: true}}
	SetLimit    = Op[Limit, bound.LimitUse]{&Call{ID: "setLimit", Method: put, Path: "/v1/limits", Wide: true, HasBody: true}}
	LiftLimit   = Op[core.LimitTarget, LiftedLimit]{&Call{ID: "liftLimit", Method: remove, Path: "/v1/limits", Wide: true}}
	ListBudgets = Op[Empty, Budgets]{&Call{ID: "budgets", Method: get, Path: "/v1/budgets", Wide: true}}
	SetBudget   = Op[Budget, bound.BudgetUse]{&Call{ID: "setBudget", Method: put, Path: "/v1/budgets", Wide: true, HasBody: true}}
	LiftBudget  = Op[core.BudgetTarget, LiftedBudget]{&Call{ID: "liftBudget", Method: remove, Path: "/v1/budgets", Wide: true}}
)

// The store, and the process itself.
var (
	Stats         = Op[Window, inspect.Stats]{&Call{ID: "stats", Method: get, Path: "/v1/stats", Wide: true}}
	WindowStats   = Op[Window, inspect.Window](Stats) // the same with a window
	Kinds         = Op[Empty, inspect.KindList]{&Call{ID: "kinds", Method: get, Path: "/v1/kinds", Wide: true}}
	ListProcesses = Op[Empty, Processes]{&Call{ID: "processes", Method: get, Path: "/v1/processes", Wide: true}}
	AuditStep     = Op[Audit, Audited]{&Call{ID: "audit", Method: post, Path: "/v1/audit", Wide: true}}
	Doctor        = Op[Empty, Checks]{&Call{ID: "doctor", Method: get, Path: "/v1/doctor", Wide: true}}
	ListPresets   = Op[Empty, Presets]{&Call{ID: "presets", Method: get, Path: "/v1/presets"}}
	Forecast      = Op[inspect.Preview, inspect.Forecast]{&Call{ID: "next", Method: post, Path: "/v1/next", Needs: ScopeRead, HasBody: true}}
	Events        = Op[None, Lines]{&Call{ID: "events", Method: get, Path: "/v1/events", NoHead: true}}
	Metrics       = Op[None, Lines]{&Call{ID: "metrics", Method: get, Path: "/metrics", Wide: true}}
	Healthz       = Op[None, Health]{&Call{ID: "health", Method: get, Path: "/healthz", Open: true}}
	Readyz        = Op[None, Readiness]{&Call{ID: "ready", Method: get, Path: "/readyz", Open: true}}
	DocumentV1    = Op[None, json.RawMessage]{&Call{ID: "openapiV1", Method: get, Path: "/v1/openapi.json", Open: true}}
	Document      = Op[None, json.RawMessage]{&Call{ID: "openapi", Method: get, Path: "/openapi.json", Open: true}}
)
