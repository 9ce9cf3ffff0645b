package console

// Controls: buttons, the pages that ask again, and what forms order.

import (
	"net/url"
	"strings"
	"time"

	"github.com/seed-6f6f2c11/duly/adapters/internal/problem"
	"github.com/seed-6f6f2c11/duly/core"
	"github.com/seed-6f6f2c11/duly/core/model"
)

// verb is something that can be ordered.
type verb struct {
	label  string
	about  string // what it can be about: a task, an agent; anything if empty
	danger bool   // asks again, and wants the name of what it is about
	warns  string // what the page that asks again says
	said   string // what the next page says once it is done
	run    func(v *visit, t core.Target) error
}

// What verbs can be about.
const (
	aTask   = "task"
	anAgent = "agent"
)

// verbs are all that forms order, by the name that addresses have for it. Each is about a task, an agent, a kind, a limit key or everything; the
// calls of core refuse what makes no sense.
func verbs() map[string]verb {
	return map[string]verb{
		"pause":  {label: "Pause", said: "paused", run: pause},
		"resume": {label: "Resume", said: "resumed", run: func(v *visit, t core.Target) error { return v.scheduler.Resume(v.r.Context(), t) }},
		"run":    {label: "Run now", about: aTask, said: "run", run: runNow},
		"replay": {label: "Replay", about: aTask, said: "replayed", run: func(v *visit, t core.Target) error {
			_, err := v.scheduler.Replay(v.r.Context(), t.Agent, t.ID)
			return err
		}},
		"cancel": {
			label: "Cancel", about: aTask, danger: true, said: "cancelled",
			warns: "A cancelled task never runs again. A run under way is told to stop, and its result is dropped.",
			run: func(v *visit, t core.Target) error {
				_, err := v.scheduler.Cancel(v.r.Context(), t.Agent, t.ID, core.Order{By: v.by(), Reason: v.reason()})
				return err
			},
		},
		"delete": {
			label: "Delete", about: aTask, danger: true, said: "deleted", warns: "The task, its result and its history are gone for good. A run under way is told to stop.",
			run: func(v *visit, t core.Target) error { return v.scheduler.Delete(v.r.Context(), t.Agent, t.ID) },
		},
		"forget": {
			label: "Forget", about: anAgent, danger: true, said: "forgotten",
			warns: "All tasks of the agent, their history, its pauses and its profile are gone for good. Runs under way are told to stop.",
			run: func(v *visit, t core.Target) error {
				_, err := v.scheduler.Forget(v.r.Context(), t.Agent, nil)
				return err
			},
		},
	}
}

// said is what a page says of the form before.
var said = map[string]string{
	"paused": "Paused: no run starts before it is resumed. Runs under way continue.", "resumed": "Resumed.", "run": "The task is due now.",
	"replayed": "The task is due again, with all its attempts. This page shows how its run ends.",
	"replaced": "The task is due again with the changed payload and all its attempts. This page shows how its run ends.", "cancelled": "Cancelled.", "deleted": "Deleted.", "forgotten": "Forgotten.",
	"limited": "The limit is set: it counts from the next claim on.", "lifted": "The limit is lifted.", "budgeted": "The budget is set: it counts from the next claim on.",
	"unbudgeted": "The budget is lifted.", "edited": "Changed: all other fields, the history and the pauses stay.", "bulk": "Replayed: the tasks are due again. They are among the live ones until they end; one that fails again comes back here.",
	"answered": "Answered: the task continues.",
}

// button is a form of a single button, or a link to the page that asks again.
type button struct {
	Label, To, Token string
	Danger           bool
	About            string // for users who cannot see what it is next to
}

// act is the button for something about a target.
func act(l *layout, do, agent, id string) button {
	return actOn(l, do, core.Target{Agent: agent, ID: id})
}

// actOn is act for any target.
func actOn(l *layout, do string, t core.Target) button {
	v := verbs()[do]
	b := button{Label: v.label, Token: l.Token, Danger: v.danger, To: Path + "/do?" + targetQuery(do, t), About: t.String()}
	if v.danger {
		b.To = Path + "/confirm?" + targetQuery(do, t)
	}
	return b
}

// targetQuery is a target as an address has it.
func targetQuery(do string, t core.Target) string {
	q := url.Values{"do": {do}}
	for name, value := range map[string]string{"agent": t.Agent, "id": t.ID, "kind": t.Kind, "key": t.Key} {
		if value != "" {
			q.Set(name, value)
		}
	}
	return q.Encode()
}

// ordered is what a request orders, and about what, if the visitor may.
func (v *visit) ordered() (string, core.Target, error) {
	t := core.Target{Agent: v.q.Get("agent"), ID: v.q.Get("id"), Kind: v.q.Get("kind"), Key: v.q.Get("key")}
	do := v.q.Get("do")
	one, known := verbs()[do]
	switch {
	case v.options.ReadOnly:
		return "", t, errReadOnly
	case !known:
		return "", t, &core.InvalidError{Field: "do", Reason: "is nothing that this console does"}
	case one.about == aTask && t.ID == "":
		return "", t, &core.InvalidError{Field: "id", Reason: "is required: the id of a task"}
	case one.about == anAgent && (t.Agent == "" || t.ID != ""):
		return "", t, &core.InvalidError{Field: "agent", Reason: "is required, and no id"}
	case t.ID != "" && t.Agent == "":
		return "", t, &core.InvalidError{Field: "agent", Reason: "is required with id"}
	}
	return do, t, v.may(model.ActionControl, t.Agent)
}

// errReadOnly refuses controls of a console that only shows.
var errReadOnly = problem.New(core.CodeForbidden, "this console is read-only")

// confirmPage asks again.
type confirmPage struct {
	About, Label, Warns, Name, To string
	Reason                        bool // asks for one
}

// confirm is the page that asks again before something is destroyed, and wants its name typed.
func (*console) confirm(v *visit) (*page, error) {
	do, t, err := v.ordered()
	if err != nil {
		return nil, err
	}
	one := verbs()[do]
	if !one.danger {
		return nil, &core.InvalidError{Field: "do", Reason: "needs no confirmation"}
	}
	if t.ID != "" {
		if _, err := v.scheduler.Task(v.r.Context(), t.Agent, t.ID); err != nil {
			return nil, err
		}
	}
	return &page{name: "confirm", title: one.label + " " + t.String() + "?", body: confirmPage{
		About: t.String(), Label: one.label, Warns: one.warns, Name: nameOf(t), To: Path + "/do?" + targetQuery(do, t), Reason: do == "cancel",
	}}, nil
}

// nameOf is what the user has to type: the id of a task, or of an agent.
func nameOf(t core.Target) string {
	if t.ID != "" {
		return t.ID
	}
	return t.Agent
}

// do carries out what a form orders.
func (*console) do(v *visit) (*page, error) {
	do, t, err := v.ordered()
	if err != nil {
		return nil, err
	}
	one := verbs()[do]
	// Compared as the page showed it: a user cannot type invisible characters.
	if typed := strings.TrimSpace(v.r.PostForm.Get("name")); one.danger && string(visible([]byte(typed))) != strings.TrimSpace(string(visible([]byte(nameOf(t))))) {
		return nil, &core.InvalidError{Field: "name", Reason: "is not that of " + t.String() + ": type it exactly as it is shown"}
	}
	if err := one.run(v, t); err != nil {
		return nil, err
	}
	return &page{to: v.after(do, t, one.said)}, nil
}

// after is where the browser goes once something is done: back, unless what it came from is gone.
func (v *visit) after(do string, t core.Target, code string) string {
	to := v.sameReferer()
	switch {
	case do == "forget":
		to = Path + "/agents"
	case do == "delete":
		to = agentURL(t.Agent)
	case to != "" && !strings.HasPrefix(to, Path+"/confirm"):
	case t.ID != "":
		to = taskURL(t.Agent, t.ID)
	case t.Agent != "":
		to = agentURL(t.Agent)
	default:
		to = Path + "/pauses"
	}
	return withSaid(to, code)
}

// withSaid is an address whose page says how a form ended.
func withSaid(to, code string) string {
	if strings.Contains(to, "?") {
		return to + "&said=" + code
	}
	return to + "?said=" + code
}

// by names the user who gives an order, where no credential does.
func (v *visit) by() string {
	if v.who.Name != "" {
		return v.who.Name
	}
	return "console"
}

// reason is the reason that the user typed.
func (v *visit) reason() string { return strings.TrimSpace(v.r.PostForm.Get("reason")) }

// pause pauses a target: for a time, if the form has one.
func pause(v *visit, t core.Target) error {
	p := core.Pause{Reason: v.reason(), By: v.by()}
	if text := v.r.PostForm.Get("for"); text != "" {
		d, err := time.ParseDuration(text)
		if err != nil || d <= 0 {
			return &core.InvalidError{Field: "for", Reason: "must be a duration such as 90s or 1h30m"}
		}
		p.For = d
	}
	return v.scheduler.Pause(v.r.Context(), t, p)
}

// runNow makes a task due now.
func runNow(v *visit, t core.Target) error {
	_, err := v.scheduler.RunNow(v.r.Context(), t.Agent, t.ID)
	return err
}

// pauseKey pauses the limit key that a form names.
func (*console) pauseKey(v *visit) (*page, error) {
	key := v.r.PostForm.Get("key")
	if key == "" {
		return nil, &core.InvalidError{Field: "key", Reason: "must not be empty"}
	}
	v.q = url.Values{"do": {"pause"}, "key": {key}}
	_, t, err := v.ordered()
	if err != nil {
		return nil, err
	}
	// The console does not know which keys tasks have, so a key that no task has is paused too.
	p := core.Pause{Reason: v.reason(), By: v.by(), Ahead: true}
	if err := v.scheduler.Pause(v.r.Context(), t, p); err != nil {
		return nil, err
	}
	return &page{to: v.after("pause", t, "paused")}, nil
}
