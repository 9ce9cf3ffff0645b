package events

// The command events without a server: it reads them from the store.

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/seed-6f6f2c11/duly/core"
	"github.com/seed-6f6f2c11/duly/core/inspect"
	"github.com/seed-6f6f2c11/duly/internal/cli/exit"
	"github.com/seed-6f6f2c11/duly/internal/cli/storage"
	"github.com/seed-6f6f2c11/duly/internal/dulyfile"
)

// listen prints the events of all processes of a store until ctx is done. A failure of the store ends it, with the id to continue after.
func (f *follower) listen(ctx context.Context, c *dulyfile.File) error {
	s, st, err := storage.OpenScheduler(ctx, c)
	if err != nil {
		return err
	}
	defer st.End(ctx)
	begun := false
	err = s.Listen(ctx, f.since, func(page inspect.EventPage) error {
		if !begun {
			begun = true
			f.begun(st.Name)
		}
		f.last = page.Next
		for i := range page.Items {
			if err := f.printHeard(&page.Items[i]); err != nil {
				return err
			}
		}
		return nil
	})
	if ctx.Err() != nil || errors.Is(err, errEnough) { // the user has asked for the end
		return nil
	}
	if core.CodeOf(err) == core.CodeUnavailable {
		return &exit.Failure{Why: err, Todo: f.again("try again once it is back")}
	}
	return err
}

// printHeard prints an event that is asked for, or how many were lost.
func (f *follower) printHeard(e *inspect.StoreEvent) error {
	switch {
	case e.Data != nil && f.wants(&e.Event):
		return f.printEvent(string(e.Event.Type), string(e.Data))
	case e.Data == nil:
		missed, err := json.Marshal(struct {
			Count int `json:"count,omitempty"`
		}{max(e.Lost, 0)})
		if err != nil {
			return err
		}
		return f.printEvent("missed", string(missed))
	}
	return nil
}

// wants reports whether an event is one of those that the flags ask for.
func (f *follower) wants(e *core.Event) bool {
	return (f.agent == "" || f.agent == e.Agent) && (f.kind == "" || f.kind == e.Kind)
}

// again says what to do after a failure, and how to miss nothing.
func (f *follower) again(todo string) string {
	if f.last == "" {
		return todo
	}
	return fmt.Sprintf("%s, with --since-id %s", todo, f.last)
}
