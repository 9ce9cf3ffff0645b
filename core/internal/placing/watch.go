package placing

// The watches of tasks that are to succeed within a time: armed before the tasks are stored.

import (
	"context"
	"log/slog"
	"slices"

	"github.com/seed-6f6f2c11/duly/core/internal/base"
	"github.com/seed-6f6f2c11/duly/core/internal/codec"
	"github.com/seed-6f6f2c11/duly/core/internal/late"
	"github.com/seed-6f6f2c11/duly/core/model"
	"github.com/seed-6f6f2c11/duly/core/store"
)

// WatchFirst makes sure that those of some tasks are watched that are to succeed within a time, and returns them, and those of them that were not watched
// before.
func WatchFirst(ctx context.Context, b *base.Base, tasks []model.NewTask, subs []store.Submission) (out, armed []late.Task, err error) {
	for i := range subs {
		if tasks[i].ExpectSuccess == 0 && b.Kind(subs[i].Kind).ExpectSuccess == 0 {
			continue
		}
		body, err := codec.DecodeBody(subs[i].Body)
		if expects := late.Of(b, subs[i].Agent, subs[i].Kind, &body); err == nil && expects != nil {
			// guard: watched-by-the-store
			now, err := b.AskedNow(ctx)
			if err != nil {
				return nil, nil, err
			}
			out = append(out, late.Task{Agent: subs[i].Agent, ID: subs[i].ID, Expects: expects, From: max(now, subs[i].Due.At, now.Add(subs[i].Due.After)), Recurs: body.Recurs()})
		}
	}
	// guard: watched-first
	armed, err = late.Arm(ctx, b, out, false)
	return out, armed, err
}

// WatchNoMore ends the watches of tasks that were refused, unless it is not known whether they are stored.
func WatchNoMore(ctx context.Context, b *base.Base, armed []late.Task, err error) {
	// guard: watched-refused
	if code := model.CodeOf(err); code == model.CodeUnavailable || code == model.CodeInternal {
		return
	}
	late.Disarm(ctx, b, armed)
}

// WatchReplaced begins the watches of tasks afresh that have a new definition: what they did before says nothing about it. Where that fails, the watch looks at its
// time before, and finds the new definition.
func WatchReplaced(ctx context.Context, b *base.Base, watched []late.Task, subs []store.Submission, placed []store.Submitted) {
	watched = slices.DeleteFunc(watched, func(t late.Task) bool {
		at := slices.IndexFunc(subs, func(sub store.Submission) bool { return sub.Agent == t.Agent && sub.ID == t.ID })
		return !placed[at].Replaced
	})
	// guard: watched-afresh
	if _, err := late.Arm(ctx, b, watched, true); err != nil {
		b.Config.Logger.WarnContext(ctx, "the watches of tasks with a new definition look as they would have before", slog.Int("tasks", len(watched)), slog.Any("err", err))
	}
}
