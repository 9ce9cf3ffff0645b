package core

// Payloads that know the kind of their tasks.

import (
	"context"

	"github.com/seed-6f6f2c11/duly/core/model"
)

// HandleKind registers the handler of the kind that the zero value of a payload names. It panics as [Handle] does.
func HandleKind[P model.Kinder](s *Scheduler, fn func(ctx context.Context, t *Task[P]) error) {
	var zero P
	Handle(s, zero.Kind(), fn)
}
