package placing

// The breaker: it bounds the tasks that the runs of other tasks submit, by depth and by number.

import (
	"errors"

	"github.com/seed-6f6f2c11/duly/core/internal/check"
	"github.com/seed-6f6f2c11/duly/core/model"
	"github.com/seed-6f6f2c11/duly/core/store"
	"github.com/seed-6f6f2c11/duly/core/store/breaker"
)

// Checked returns tasks in their stored form, or an error for any fault that shows without asking the store.
func (p *Placer) Checked(tasks []model.NewTask, origin *model.Origin) ([]store.Submission, error) {
	subs, err := p.Base.Prepare(tasks, origin)
	if err != nil {
		return nil, err
	}
	if err := notTooLarge(subs); err != nil {
		return nil, err
	}
	if err := p.checkOrigin(origin, subs); err != nil {
		return nil, p.Broken(origin, subs, err)
	}
	return subs, nil
}

// checkOrigin gives submissions their root, and refuses those that are too deep.
func (p *Placer) checkOrigin(o *model.Origin, subs []store.Submission) error {
	if o == nil {
		return nil
	}
	// guard: breaker-depth
	if most := p.MaxDepth; most > 0 && o.Depth > most {
		return &breaker.Error{Agent: o.Root.Agent, ID: o.Root.ID, Depth: o.Depth, Limit: most}
	}
	if p.MaxSpawned > 0 {
		root := &breaker.Root{Agent: o.Root.Agent, ID: o.Root.ID, Most: p.MaxSpawned}
		for i := range subs {
			subs[i].Root = root
		}
	}
	return nil
}

// Broken reports that the breaker has refused the tasks of a run. It returns the error.
func (p *Placer) Broken(o *model.Origin, subs []store.Submission, err error) error {
	if full, is := errors.AsType[*breaker.Error](err); is && o != nil {
		p.Base.Emit(model.Event{Type: model.EventBreaker, Agent: o.By.Agent, ID: o.By.ID, By: check.ByDuly, Code: model.CodeOf(full), Count: len(subs), Error: check.Clip(full.Error())})
	}
	return err
}

// mostBytes is how many bytes the tasks of one Submit have at most, as they are stored. A task that is submitted alone may have as many as [core.Config].MaxPayload allows.
const mostBytes = 4 << 20

// notTooLarge refuses several tasks that have too many bytes to be stored in one step.
func notTooLarge(subs []store.Submission) error {
	n := 0
	for i := range subs {
		n += len(subs[i].Body) + len(subs[i].State)
	}
	if len(subs) > 1 && n > mostBytes {
		return check.Invalid("tasks", "have %d bytes in all: the limit is %d a call; submit them in several calls", n, mostBytes)
	}
	return nil
}
