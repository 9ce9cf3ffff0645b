package trigger

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/seed-6f6f2c11/duly/core"
	"github.com/seed-6f6f2c11/duly/core/model"
	"github.com/seed-6f6f2c11/duly/core/store"
)

// Messages that submit tasks, and of what to do when that fails.

// ReadTasks reads the tasks that a message brings, one at least, as POST /v1/tasks takes them. Those with neither an
// id nor a unique key, which makes one, get an id that starts with the message's, so that the same message delivered twice
// makes no second task.
func ReadTasks(data []byte, message string) ([]core.NewTask, error) {
	tasks, err := model.ParseTasks(data)
	switch {
	case err != nil:
		return nil, err
	case len(tasks) == 0:
		return nil, &core.InvalidError{Field: "tasks", Reason: "is empty"}
	}
	for i := range tasks {
		if tasks[i].ID == "" && tasks[i].UniqueKey == "" {
			tasks[i].ID = fmt.Sprintf("%s-%d", message, i)
		}
	}
	return tasks, nil
}

// Final reports whether an error is one of a message, which no repeat can mend. A kind that is disabled may be enabled.
// Everything else is worth another delivery.
func Final(err error) bool {
	switch core.CodeOf(err) {
	case core.CodeInvalid:
		return true
	case core.CodeConflict:
		return !errors.Is(err, store.ErrChanged)
	default:
		return false
	}
}

// Soon is a context that ends a margin before ctx does, so that there is time left to answer.
// Without a deadline it only adds a cancel.
func Soon(ctx context.Context, margin time.Duration) (context.Context, context.CancelFunc) {
	deadline, ok := ctx.Deadline()
	if !ok {
		return context.WithCancel(ctx)
	}
	return context.WithDeadline(ctx, deadline.Add(-margin))
}
