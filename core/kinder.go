package core

// Payloads that know the kind of their tasks.

import "context"

// Kinder is a payload that knows the kind of its tasks, so that the two cannot be mixed up: NewTask.Kind may be left out with such a
// payload, and [HandleKind] registers its handler.
type Kinder interface{ Kind() string }

// HandleKind registers the handler of the kind that the zero value of a payload names. It panics as [Handle] does.
func HandleKind[P Kinder](s *Scheduler, fn func(ctx context.Context, t *Task[P]) error) {
	var zero P
	Handle(s, zero.Kind(), fn)
}
