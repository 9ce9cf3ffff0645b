package world

// The row of callbacks: who is notified of the ends of tasks, and how the deliveries end.

import (
	"bytes"
	"context"
	"errors"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/seed-6f6f2c11/duly/core"
	"github.com/seed-6f6f2c11/duly/core/model"
	"github.com/seed-6f6f2c11/duly/core/store"
	"github.com/seed-6f6f2c11/duly/internal/proof/sim/draw"
)

var (
	callbackIsTold     = invariant("callback-is-told", "42", "In a kind world each end of a task with a callback that was stored is delivered, or its delivery is a dead letter.")
	callbackHasOneID   = invariant("callback-one-id", "42", "Each end with a callback has one message id, whoever delivers it and however often, and no other end has it.")
	callbackOfAnEnd    = invariant("callback-of-an-end", "42", "Nothing is told of an end that was not stored.")
	callbackNotSkipped = invariant("callback-not-skipped", "42", "No delivery is given up while the run that it follows can still end its task: a slow process is not a dead one.")
	callbackIsNamed    = invariant("callback-named", "42", "The record of an end names its delivery if the task has a callback, and only then.")
)

// The URL of all callbacks; the fault of the calls that end tasks: for a while no settlement of a process gets through; and the request of a
// client that does not wait until a delivery is due.
const (
	callbackURL                  = "https://hooks.example.com/"
	FaultMute   draw.FaultKind   = "mute"
	AskHurry    draw.RequestKind = "hurry"
)

var callbacks = &feature{
	name:   "callbacks",
	fields: []string{"Callback", "Submission.Owed"},
	verbs:  []string{"Replan"},
	holds: []held{
		{callbackIsTold, "callback-lost"},
		{callbackHasOneID, "callback-id-of-attempt"},
		{callbackOfAnEnd, "callback-of-nothing"},
		{callbackNotSkipped, "callback-slow-is-dead"},
		{callbackIsNamed, "callback-not-named"},
	},
	plan: planCallbacks,
	config: func(w *World, p *process, c *core.Config) {
		if w.plan.Settings.Callbacks {
			c.Callbacks = postbox{p}
			c.Kinds[model.KindCallback] = core.KindConfig{MaxAttempts: 12, Backoff: time.Second, MaxBackoff: 2 * time.Second}
		}
	},
	asks:  map[draw.RequestKind]asking{AskHurry: askHurry},
	watch: watchCallbacks,
}

// planCallbacks gives some of the tasks that are planned a callback, and lets settlements be slow.
func planCallbacks(g *draw.Generator) {
	if g.In(75) {
		return
	}
	g.Plan.Settings.Callbacks = true
	for i := range g.Plan.Requests {
		for _, def := range g.Plan.Requests[i].Tasks {
			if g.In(60) && def.Agent != crowdAgent {
				def.Callback = callbackURL + strconv.Itoa(def.Number)
			}
		}
	}
	// A settlement has to be on its way for longer than a lease and the time that a delivery waits behind it.
	g.Plan.Horizon = max(g.Plan.Horizon, 35*time.Second)
	for range 4 + g.IntN(8) {
		g.Plan.Requests = append(g.Plan.Requests, draw.Request{At: g.Span(0, g.Plan.Horizon*2/3), Process: g.IntN(4), Kind: AskHurry})
	}
	for i := range 1 + g.IntN(2) {
		f := draw.Fault{At: g.Span(0, g.Plan.Horizon/3), Kind: FaultMute, Process: i + g.IntN(2), For: g.Span(time.Second, 30*time.Second)}
		g.Plan.Faults = append(g.Plan.Faults, f)
	}
}

// askHurry runs all deliveries by hand that wait.
func askHurry(ctx context.Context, w *World, p *process, _ *draw.Request) (func(), error) {
	var all []ref
	for _, t := range w.audit.model.sorted() {
		if t.kind == model.KindCallback && t.phase == waiting {
			all = append(all, t.ref)
		}
	}
	for _, r := range all {
		if _, err := p.s.RunNow(ctx, r.agent, r.id); err != nil {
			return func() {}, err
		}
	}
	return func() {}, nil
}

// postbox delivers what a process has to tell. It does so at once: a delivery has asked the store before, and stores how it went after.
type postbox struct{ p *process }

// Check allows the URLs of the world.
func (postbox) Check(url string) error {
	if !strings.HasPrefix(url, callbackURL) {
		return errors.New("must begin with " + callbackURL)
	}
	return nil
}

// post is a callback message that was delivered.
type post struct {
	r  ref // of the delivery
	id string
}

// Deliver takes every second message at the second attempt.
func (b postbox) Deliver(_ context.Context, _, id string, message []byte) error {
	w := b.p.w
	r := ref{textOf(message, `"agent_id":"`), textOf(message, `"callback_task":"`)}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.posted = append(w.posted, post{r, id})
	if w.posts == nil {
		w.posts = map[ref]int{}
	}
	if w.posts[r]++; w.posts[r] == 1 && len(r.id) > 0 && r.id[len(r.id)-1]%2 == 0 {
		return errors.New("503")
	}
	return nil
}

// textOf is what follows a mark in a message, up to the next quote.
func textOf(message []byte, mark string) string {
	_, rest, _ := bytes.Cut(message, []byte(mark))
	text, _, _ := bytes.Cut(rest, []byte{'"'})
	return string(text)
}

// ends is what is known of the ends of tasks with callbacks, by the deliveries that their records name.
type ends struct {
	stored map[ref]bool
	first  map[ref]string // the message id of a delivery
	of     map[string]ref
	told   map[ref]bool
}

func watchCallbacks(a *auditor, _ *storeModel) watcher {
	e := &ends{stored: map[ref]bool{}, first: map[ref]string{}, of: map[string]ref{}, told: map[ref]bool{}}
	return watcher{
		called: func(_ *call, request, answer any) {
			if all, ok := request.([]store.Replan); ok {
				effects, _ := answer.([]store.Effect)
				for i := range all {
					a.replanned(&all[i], &effects[i])
				}
			}
		},
		ended:   func(t *task) { a.endNamed(e, t) },
		step:    func() { a.posted(e) },
		decided: func(o *outcome) bool { return a.delivered(o) },
		rest:    func() { a.allTold(e) },
	}
}

// replanned gives a task another due time and state.
func (a *auditor) replanned(r *store.Replan, effect *store.Effect) {
	if t := a.orders.asIs(r.Agent, r.ID); t != nil && effect.Code == store.EffectDone {
		if r.Due == r.Was { // a client runs it by hand, and may die before it reports that, or was refused
			t.history.hand = len(r.State) > len(t.state)
		}
		t.state, t.parked = nil, false
		if len(r.State) > 0 {
			t.state = r.State
		}
		t.due = r.Due
	}
}

// endNamed notes an end.
func (a *auditor) endNamed(e *ends, t *task) {
	info := &t.history.info
	if info.Dropped || info.ID == "" || t.def == nil || t.parent != "" || a.w.restored {
		return
	}
	tells := t.def.Callback != ""
	// A cancel is about the definition of its time, which may be another one than runs when it arrives. That run may have cancelled the task itself,
	// by its own definition, while this was on its way.
	if t.history.order != nil && t.status == core.StatusCancelled {
		tells = bytes.Contains(t.history.order, []byte(callbackURL)) || bytes.Contains(t.history.order, []byte(overKey))
	}
	named := info.CallbackTask != ""
	a.must(callbackIsNamed, named == tells || t.history.own && named == t.history.tells, "%s ended as %s, with the delivery %q", t.ref, t.status, info.CallbackTask)
	if info.CallbackTask != "" && !strings.HasPrefix(t.def.Callback, "signal") { // those are no messages
		e.stored[ref{t.agent, info.CallbackTask}] = true
	}
}

// posted checks the messages that were delivered.
func (a *auditor) posted(e *ends) {
	a.w.mu.Lock()
	all := a.w.posted
	a.w.posted = nil
	a.w.mu.Unlock()
	slices.SortFunc(all, func(a, b post) int { return strings.Compare(a.id, b.id) })
	for _, p := range all {
		a.w.trace("the end of %s is told as %s", p.r, p.id)
		if a.w.restored {
			continue
		}
		// Where few records are kept, the record of the end may be gone: an unknown end may still be delivered.
		a.must(callbackOfAnEnd, e.stored[p.r] || a.w.plan.Settings.Kept != 0, "%s was told", p.r)
		if e.first[p.r] == "" {
			e.first[p.r] = p.id
		}
		other, taken := e.of[p.id]
		a.must(callbackHasOneID, e.first[p.r] == p.id && (!taken || other == p.r), "%s is told as %s, and was as %s; %s was told as that", p.r, p.id, e.first[p.r], other)
		e.of[p.id], e.told[p.r] = p.r, true
	}
}

// delivered checks the outcome of a delivery, which differs from that of other tasks.
func (a *auditor) delivered(o *outcome) bool {
	if o.t.kind != model.KindCallback && o.t.kind != tellKind && o.t.kind != watchKind {
		return false
	}
	if o.s.Verb != store.VerbComplete || !bytes.Contains(o.after.Result, []byte(`"skipped"`)) || a.w.restored {
		return true
	}
	of := a.model.live(ref{o.t.agent, textOf(bytes.Split(o.t.body, []byte(`"task":`))[0], `"id":"`)})
	_, rest, _ := bytes.Cut(o.t.body, []byte(`"fence":`))
	digits, _, _ := bytes.Cut(rest, []byte{','})
	fence, _ := strconv.ParseInt(string(digits), 10, 64) // none is a command's
	can := of != nil && fence != 0 && of.phase == claimed && of.lease.fence == store.Fence(fence) && !a.takenBack(of)
	a.must(callbackNotSkipped, !can, "%s was given up, and its task is held under %s", o.t.ref, a.w.fence(store.Fence(fence)))
	return true
}

// allTold asserts that every end was delivered whose delivery still exists, or existed and was not removed by a client.
func (a *auditor) allTold(e *ends) {
	a.posted(e)
	for r := range e.stored {
		t := a.model.tasks[r]
		// A record that was kept for a minute says nothing after a pause of more, nor does one that had to make room for another.
		if a.w.restored || a.w.plan.Settings.Retention != 0 || a.w.plan.Settings.Kept != 0 || t != nil && t.phase == ended && t.status == core.StatusFailed {
			continue
		}
		a.must(callbackIsTold, e.told[r], "%s was stored and never told", r)
	}
}
