package operate

// Whether what is to be paused or resumed exists, as far as that can be known.

import (
	"context"
	"fmt"
	"slices"

	"github.com/seed-6f6f2c11/duly/core/inspect"
	"github.com/seed-6f6f2c11/duly/core/model"
	"github.com/seed-6f6f2c11/duly/core/store"
	"github.com/seed-6f6f2c11/duly/core/store/count"
)

// UnknownTargetError says that the target of a pause or a resume does not exist, as far as can be known: pausing a misspelt
// name would silently pause nothing. Its code is CodeNotFound.
type UnknownTargetError struct{ Target store.Target }

// Error names the target, and says what would make it exist.
func (e *UnknownTargetError) Error() string {
	if e.Target.Agent != "" {
		return fmt.Sprintf("agent %q does not exist: it has neither tasks nor a pause", e.Target.Agent)
	}
	return fmt.Sprintf("kind %q does not exist: it has neither a handler nor settings here, and no tasks, runs or pause", e.Target.Kind)
}

// Unwrap is ErrNotFound.
func (*UnknownTargetError) Unwrap() error { return model.ErrNotFound }

// mustExist fails for a target that does not exist. An agent exists while it has tasks, live or remembered, or is paused;
// a kind if this scheduler knows it, tasks of it live or ran, or it is paused. Keys have no index: each is accepted, as
// is everything. The store checks a single task.
func (s *Desk) mustExist(ctx context.Context, t store.Target) error {
	var known bool
	var err error
	switch {
	case t.ID != "" || t.Key != "" || t == store.Target{}:
		return nil
	case t.Agent != "":
		known, err = s.hasTasks(ctx, t.Agent)
	default:
		known, err = s.knowsKind(ctx, t.Kind)
	}
	if err == nil && !known {
		known, err = s.paused(ctx, t)
	}
	if err == nil && !known {
		err = &UnknownTargetError{Target: t}
	}
	return err
}

// hasTasks reports whether an agent has any task, live or finished.
func (s *Desk) hasTasks(ctx context.Context, agent string) (bool, error) {
	page, err := s.base.Store.List(ctx, store.List{Agent: agent, Limit: 1, Brief: true})
	return len(page.Tasks) > 0, err
}

// knowsKind reports whether a kind has settings or a handler here, or tasks in the store.
func (s *Desk) knowsKind(ctx context.Context, kind string) (bool, error) {
	if _, set := s.base.Config.Kinds[kind]; set || slices.Contains(s.engine.Kinds(), kind) {
		return true, nil
	}
	stats, err := s.base.Store.Stats(ctx)
	return slices.ContainsFunc(stats.Kinds, func(k count.KindStats) bool { return k.Kind == kind }), err
}

// paused reports whether a target itself is paused. It reads all pauses, which is only done for a target of which
// nothing else is known.
func (s *Desk) paused(ctx context.Context, t store.Target) (bool, error) {
	q := store.PageOf{Limit: inspect.MaxPage}
	for {
		page, err := s.base.Store.Holds(ctx, q)
		if err != nil || slices.ContainsFunc(page.Holds, func(h store.Held) bool { return h.Target == t }) {
			return err == nil, err
		}
		if q.After = page.Next; q.After == "" {
			return false, nil
		}
	}
}
