// Package inspect is what is looked at: tasks and their history, why one has not run, what a store holds and whether something in it is wrong, what
// ran and what will be due, and the events of all processes. It decides and changes nothing, but for faults that an audit is told to repair. It
// needs no handler: core.New makes a scheduler without any, whose View this is.
package inspect

import (
	"context"

	"github.com/seed-6f6f2c11/duly/core/internal/base"
	"github.com/seed-6f6f2c11/duly/core/model"
	"github.com/seed-6f6f2c11/duly/core/store"
)

// Engine is what this process says of what it runs.
type Engine interface {
	Ready() error
	Slots() model.SlotStats
	OwnKinds() map[string]*KindInfo // those with a handler or settings, by name
	OwnKind(kind string) *KindInfo
	ExplainAlarm(ctx context.Context, e *Explanation, t *store.Stored) // adds what the alarm has to do with a task
}

// View is what is seen. It is safe for concurrent use.
type View struct {
	base   *base.Base
	engine Engine
}

// New makes the view of a scheduler.
func New(b *base.Base, e Engine) *View { return &View{base: b, engine: e} }
