// Package operate has the commands of operators: pause, cancel, run now, edit, replay, delete, and the same for many tasks at once; limits, budgets and
// profiles; export, import and forget. Each command is one step of the store, and holds for all processes. It needs no handler: core.New makes
// a scheduler without any, and Desk is part of it.
package operate

import (
	"context"

	"github.com/seed-6f6f2c11/duly/core/inspect"
	"github.com/seed-6f6f2c11/duly/core/internal/base"
	"github.com/seed-6f6f2c11/duly/core/internal/codec"
	"github.com/seed-6f6f2c11/duly/core/internal/record"
	"github.com/seed-6f6f2c11/duly/core/model"
	"github.com/seed-6f6f2c11/duly/core/store"
)

// Engine is what commands need from the part that submits and runs tasks.
type Engine interface {
	Submit(ctx context.Context, tasks ...model.NewTask) ([]model.Submitted, error)
	Kinds() []string // that have a handler in this process
	// EnsureDelivery makes sure of the callback for the end of a task, before the task is deleted or replayed.
	EnsureDelivery(ctx context.Context, t *store.Stored) error
	// StoreCancelDelivery stores the callback delivery for a cancel, before the cancel is ordered; ConfirmCancel says that the cancel was carried out.
	StoreCancelDelivery(ctx context.Context, t *store.Stored, b *codec.Body, rec *record.Finished) (*store.Submission, error)
	ConfirmCancel(ctx context.Context, t *store.Stored, delivery *store.Submission)
}

// Desk carries out the commands of operators: those about tasks and agents itself, those about limits and budgets, and about profiles, by desks of their
// own, whose methods it has. It is safe for concurrent use.
type Desk struct {
	*BoundDesk
	*ProfileDesk

	base   *base.Base
	engine Engine
	view   *inspect.View
}

// New makes the desk of a scheduler.
func New(b *base.Base, e Engine, v *inspect.View) *Desk {
	bounds := &BoundDesk{base: b}
	return &Desk{BoundDesk: bounds, ProfileDesk: &ProfileDesk{base: b, bounds: bounds}, base: b, engine: e, view: v}
}
