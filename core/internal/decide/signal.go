package decide

// A task that waits for its signal.

import (
	"github.com/seed-6f6f2c11/duly/core/internal/outcome"
	"github.com/seed-6f6f2c11/duly/core/internal/record"
	"github.com/seed-6f6f2c11/duly/core/model"
	"github.com/seed-6f6f2c11/duly/core/store"
	"github.com/seed-6f6f2c11/duly/core/store/moment"
)

// await makes the task wait for a signal.
func (d *Decision) await(v *Verdict, e *outcome.AwaitError) {
	d.heard(v)
	// guard: await
	d.State.Checkpoint = e.Checkpoint
	d.State.Await = &record.Await{Key: e.Signal.Key, Then: string(e.Signal.OnTimeout), Fence: d.Fence, From: e.Signal.From, Question: e.Signal.Question, Answer: string(e.Signal.Answer)}
	d.note(v, model.OutcomeAwaiting, nil)
	d.sameOccurrence()
	w := wait(v)
	w.Key, w.Wait, w.Approval = e.Signal.Key, d.Fence, e.Signal.From == outcome.FromApproval
	if e.Signal.Timeout == 0 {
		d.again(v, moment.When{At: moment.Never})
		return
	}
	d.State.Await.Until = d.Now.Add(e.Signal.Timeout)
	d.again(v, moment.When{At: d.State.Await.Until})
}

// heard ends the wait of a task, if it has waited.
func (d *Decision) heard(v *Verdict) {
	if d.State.Await != nil {
		wait(v).Heard, d.State.Await = true, nil
	}
}

// wait is the part of a settlement about the signal that the task waits for.
func wait(v *Verdict) *store.Await {
	if v.Settlement.Await == nil {
		v.Settlement.Await = &store.Await{}
	}
	return v.Settlement.Await
}
