// Package inspect has the queries: tasks and their history, why one has not run, what a store contains and whether something in it is wrong, what
// ran and what will be due, and the events of all processes. It decides and changes nothing, except for the faults that an audit repairs if asked. It
// needs no handler: core.New makes a scheduler without any, and View is part of it.
package inspect

import (
	"context"

	"github.com/seed-6f6f2c11/duly/core/internal/base"
	"github.com/seed-6f6f2c11/duly/core/model"
	"github.com/seed-6f6f2c11/duly/core/store"
)

// Engine is what this process reports about what it runs.
type Engine interface {
	Ready() error
	Slots() model.SlotStats
	OwnKinds() map[string]*KindInfo // those with a handler or settings, by name
	OwnKind(kind string) *KindInfo
	ExplainAlarm(ctx context.Context, e *Explanation, t *store.Stored) // adds how the alarm affects a task
}

// View answers the queries. It is safe for concurrent use.
type View struct {
	base   *base.Base
	engine Engine
	outputs
}

// New makes the view of a scheduler.
func New(b *base.Base, e Engine) *View { return &View{b, e, outputs{b}} }
