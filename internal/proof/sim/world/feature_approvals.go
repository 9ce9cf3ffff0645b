package world

// The row of approvals: waits that want one, people who answer the question of one wait, in time or late, and others who say the same without the right to.

import (
	"context"
	"encoding/json"
	"errors"
	"strconv"
	"time"

	"github.com/seed-6f6f2c11/duly/core"
	"github.com/seed-6f6f2c11/duly/core/model"
	"github.com/seed-6f6f2c11/duly/core/store"
	"github.com/seed-6f6f2c11/duly/internal/proof/sim/draw"
)

var (
	approvalCounts    = invariant("approval-counts", "41", "A wait that wants an approval is told by approvals alone.")
	replyIsNoApproval = invariant("reply-is-no-approval", "41", "The answer of a caller who may not approve is taken by no wait that wants an approval.")
	answerIsForOne    = invariant("answer-is-for-one", "41", "The answer to a question is told to the wait that has asked it, and to no other, and is kept for none.")
)

// The requests of approvals, and what their tasks wait for.
const (
	AskAnswer draw.RequestKind = "answer"
	AskRemark draw.RequestKind = "remark"

	approvalKey = "may"
)

var approvals = &feature{
	name: "approvals",
	holds: []held{
		{approvalCounts, "approval-by-anybody"},
		{replyIsNoApproval, "reply-by-anybody"},
		{answerIsForOne, "answer-to-any-wait"},
	},
	plan:  planApprovals,
	asks:  map[draw.RequestKind]asking{AskAnswer: askAnswer, AskRemark: askRemark},
	watch: watchApprovals,
}

// planApprovals draws tasks that ask more than once, answers to them, and signals of a sender who may not approve.
func planApprovals(g *draw.Generator) {
	if g.In(75) {
		return
	}
	script := func() draw.Script {
		s := g.Script(false)
		s.Then, s.Submits = Await, nil
		s.Signal = core.Signal{Key: approvalKey, OnTimeout: draw.One(g.Dice, "", core.TimeoutRun, core.TimeoutCancel), From: draw.One(g.Dice, core.FromApproval, core.FromApproval, "")}
		if g.In(60) {
			s.Signal.Timeout = g.Span(time.Second, 10*time.Second)
		}
		return s
	}
	for range 1 + g.IntN(3) {
		r := draw.Request{At: g.Span(0, g.Plan.Horizon/2), Process: g.IntN(4), Kind: draw.AskSubmit, Agent: g.Agent(), ID: g.ID()}
		def := g.Definition(r.Agent, r.ID, false)
		if def.Kind == "batch" {
			def.Kind = "plain"
		}
		def.Scripts = append([]draw.Script{script()}, def.Scripts...)
		if g.In(60) {
			def.Scripts = append(def.Scripts, script(), g.Script(false))
		}
		r.Tasks = []*draw.Definition{def}
		g.Plan.Requests = append(g.Plan.Requests, r)
		for range 1 + g.IntN(4) {
			at := r.At + g.Span(0, g.Plan.Horizon/2)
			g.Plan.Requests = append(g.Plan.Requests, draw.Request{
				At: at, Process: g.IntN(4), Kind: draw.One(g.Dice, AskAnswer, AskAnswer, AskRemark), Agent: r.Agent, ID: r.ID, Target: core.Target{Kind: draw.One(g.Dice, "first", "last")},
			})
		}
	}
}

// waits are those that tasks have had, oldest first: what pages show that people have.
type waits map[ref][]question

// question is one of them, and whether it wants an approval.
type question struct {
	core.Question

	approval bool
}

// watchApprovals keeps which questions there were.
func watchApprovals(a *auditor, _ *storeModel) watcher {
	if a.w.waits == nil {
		a.w.waits = waits{}
	}
	return watcher{settled: func(s *store.Settlement, t *task, _ *store.Settled) {
		if s.Await != nil && s.Await.Key == approvalKey {
			asked := &a.w.waits
			q := core.Question{Agent: t.agent, ID: t.id, Key: approvalKey, Fence: s.Await.Wait, Text: "may " + t.id}
			(*asked)[t.ref] = append((*asked)[t.ref], question{Question: q, approval: s.Await.Approval})
		}
	}}
}

// askAnswer answers the first or the last question of a task, however long ago that was. A task that has asked nothing is answered all the same.
func askAnswer(ctx context.Context, w *World, p *process, r *draw.Request) (func(), error) {
	err := p.s.Answer(ctx, questionOf(w, r).Question, json.RawMessage(strconv.Itoa(w.signalled(r))), core.ByPage)
	if errors.Is(err, model.ErrClosed) || errors.Is(err, model.ErrNotOpen) {
		err = nil // the auditor has seen what the store has made of it
	}
	return func() {}, err
}

// questionOf is the first or the last question of a task; one that was never asked if it has asked none.
func questionOf(w *World, r *draw.Request) question {
	all := w.waits[ref{r.Agent, r.ID}]
	switch {
	case len(all) == 0:
		return question{Question: core.Question{Agent: r.Agent, ID: r.ID, Key: approvalKey, Fence: 1, Text: "may " + r.ID}}
	case r.Target.Kind == "last":
		return all[len(all)-1]
	default:
		return all[0]
	}
}

// askRemark sends a signal with a credential that approves nothing, or the answer to the last question.
func askRemark(ctx context.Context, w *World, p *process, r *draw.Request) (func(), error) {
	ctx = core.WithPrincipal(ctx, core.Principal{Name: "passer-by", Rights: core.AuthorizerFunc(func(_ context.Context, _ core.Principal, what core.Access) error {
		if what.Action == model.ActionApprove {
			return errors.New("approves nothing")
		}
		return nil
	})})
	payload := json.RawMessage(strconv.Itoa(w.signalled(r)))
	if r.Target.Kind != "last" {
		_, err := p.s.Signal(ctx, r.Agent, approvalKey, payload)
		if errors.Is(err, model.ErrUnapproved) {
			err = nil
		}
		return func() {}, err
	}
	q := questionOf(w, r)
	err := p.s.Answer(ctx, q.Question, payload, "")
	w.audit.must(replyIsNoApproval, err != nil || !q.approval, "%s/%s wants an approval, and has taken an answer that is none", q.Agent, q.ID)
	if errors.Is(err, model.ErrUnapproved) || errors.Is(err, model.ErrClosed) || errors.Is(err, model.ErrNotOpen) {
		err = nil
	}
	return func() {}, err
}

// meant reports whether a signal is for a task that waits for its key. Any other task must not receive it.
func (a *auditor) meant(n *store.Signal, t *task) bool {
	another, unapproved := n.ID != "" && (t.id != n.ID || t.await.wait != n.Wait), t.await.approval && !n.Approval
	if !another && !unapproved {
		return true
	}
	heard, err := a.w.store.Heard(a.w.ctx, []store.Wait{{Agent: t.agent, ID: t.id, Key: n.Key}})
	told := err == nil && heard[0] != nil
	a.must(answerIsForOne, !another || !told, "%s is told the answer to the question of another run", t.ref)
	a.must(approvalCounts, !unapproved || !told, "%s wants an approval, and is told a signal that is none", t.ref)
	return false
}
