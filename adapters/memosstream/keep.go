package memosstream

import (
	"context"
	"errors"
	"log/slog"
	"maps"

	"github.com/redis/go-redis/v9"

	"github.com/seed-6f6f2c11/duly/core"
)

// Entries that were read: stored and then acknowledged, set aside, or left pending.

// DeadStream is where, by default, entries are set aside that can never become a task, with their fields, their stream, their id and the reason.
// Its name begins with no prefix of MemOS, which would take it for one of its own. It keeps about the last ten thousand.
const DeadStream = "duly:memos:dead"

const mostDead = 10_000

// taken is an entry and the task that it makes.
type taken struct {
	entry *redis.XMessage
	task  core.NewTask
}

// take stores entries of a stream, and then acknowledges them. What was read before the end is still stored. An error says that the
// store or the Redis is away; the entries stay pending then.
func (i *Intake) take(ctx context.Context, name string, entries []redis.XMessage) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), lastWrites)
	defer cancel()
	var good []taken
	var done []string // ids to acknowledge
	for n := range entries {
		e := &entries[n]
		if len(e.Values) == 0 { // it was deleted
			done = append(done, e.ID)
			continue
		}
		t, err := taskOf(name, e)
		if err != nil {
			if err := i.setAside(ctx, name, e, err); err != nil {
				return err
			}
			continue
		}
		good = append(good, taken{e, t})
	}
	// Before the tasks are stored: one that ends at once has its record then.
	i.mirror.waiting(ctx, good)
	stored, err := i.submit(ctx, name, good)
	if ackErr := i.acknowledge(ctx, name, append(done, stored...)); ackErr != nil {
		err = errors.Join(err, ackErr)
	}
	return err
}

// submit stores the tasks of entries, and returns the ids of those that are stored. What is wrong with one does not stop the others.
func (i *Intake) submit(ctx context.Context, name string, all []taken) ([]string, error) {
	if len(all) == 0 {
		return nil, nil
	}
	tasks := make([]core.NewTask, len(all))
	for n := range all {
		i.labels.LoadOrStore(all[n].task.Kind, true)
		tasks[n] = all[n].task
	}
	placed, err := i.scheduler.Submit(ctx, tasks...)
	if err == nil {
		return i.again(ctx, name, all, placed)
	}
	if away(err) {
		return nil, err
	}
	if len(all) == 1 {
		return nil, i.refused(ctx, name, &all[0], err)
	}
	var stored []string
	for n := range all {
		one, err := i.submit(ctx, name, all[n:n+1])
		stored = append(stored, one...)
		if err != nil {
			return stored, err
		}
	}
	return stored, nil
}

// away reports whether an error is about the store and not about a task.
func away(err error) bool {
	code := core.CodeOf(err)
	return code == core.CodeUnavailable || code == core.CodeStoreFull || errors.Is(err, context.DeadlineExceeded)
}

// again stores messages whose item_id another live message has, under the ids of their entries, and returns the ids of all entries that
// are stored. One that has to wait is none of them.
func (i *Intake) again(ctx context.Context, name string, all []taken, placed []core.Submitted) ([]string, error) {
	var stored []string
	for n := range placed {
		e := all[n]
		id := idOf(name, e.entry.ID)
		if !placed[n].Differs || e.task.ID == id {
			stored = append(stored, e.entry.ID)
			continue
		}
		i.config.Logger.LogAttrs(ctx, slog.LevelWarn, "a message has the item_id of another one and gets an id of its own",
			slog.String("stream", name), slog.String("entry", e.entry.ID), slog.String("agent", placed[n].Agent), slog.String("task", id))
		e.task.ID = id
		one, err := i.submit(ctx, name, []taken{e})
		stored = append(stored, one...)
		if err != nil {
			return stored, err
		}
	}
	return stored, nil
}

// refused decides about an entry whose task is not taken: it waits if that may change, and is set aside if not.
func (i *Intake) refused(ctx context.Context, name string, e *taken, why error) error {
	switch core.CodeOf(why) {
	case core.CodeInvalid, core.CodeForbidden, core.CodeDisabled, core.CodeConflict:
		return i.setAside(ctx, name, e.entry, why)
	default: // it may be taken later
	}
	if st := i.streams[name]; st != nil {
		st.owes, st.rests = true, i.config.Clock.Now().Add(restFor)
	}
	i.config.Logger.LogAttrs(ctx, slog.LevelWarn, "a message cannot be stored now, its stream will be read again later",
		slog.String("stream", name), slog.String("entry", e.entry.ID), slog.Any("err", why))
	return nil
}

// acknowledge acknowledges and deletes entries in one step, as MemOS does, so that no entry is left that is never delivered again.
func (i *Intake) acknowledge(ctx context.Context, name string, ids []string) error {
	if len(ids) == 0 {
		return nil
	}
	_, err := i.client.TxPipelined(ctx, func(p redis.Pipeliner) error {
		p.XAck(ctx, name, group, ids...)
		p.XDel(ctx, name, ids...)
		return nil
	})
	return err
}

// setAside moves an entry to Config.Dead, at once with its acknowledgement.
func (i *Intake) setAside(ctx context.Context, name string, e *redis.XMessage, why error) error {
	fields := maps.Clone(e.Values)
	fields["duly_stream"], fields["duly_entry"], fields["duly_reason"] = name, e.ID, why.Error()
	_, err := i.client.TxPipelined(ctx, func(p redis.Pipeliner) error {
		p.XAdd(ctx, &redis.XAddArgs{Stream: i.config.Dead, MaxLen: mostDead, Approx: true, Values: fields})
		p.XAck(ctx, name, group, e.ID)
		p.XDel(ctx, name, e.ID)
		return nil
	})
	if err == nil {
		i.config.Logger.LogAttrs(ctx, slog.LevelWarn, "a message makes no task and was set aside",
			slog.String("stream", name), slog.String("entry", e.ID), slog.String("into", i.config.Dead), slog.Any("err", why))
	}
	return err
}
