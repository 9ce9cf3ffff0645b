package memosstream

import (
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"sync"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/seed-6f6f2c11/duly/core"
	"github.com/seed-6f6f2c11/duly/core/model"
)

// MemOS's status tracker, as its API and its clients read it: a hash of each user with a record of each item, and a set for each
// business task.

// trackFor is how long MemOS keeps the records of a user after its last change.
const trackFor = 7 * 24 * time.Hour

// mostWaiting is how many events may wait to be written. Events must not block a run, so that beyond it they are dropped; the record of
// such an item shows an older status.
const mostWaiting = 10_000

// mirror writes the status of tasks to MemOS's tracker.
type mirror struct {
	intake *Intake
	events chan core.Event
	ending chan struct{} // closed when no more events come
	ended  chan struct{} // closed when all are written

	failures struct { // writes that failed
		sync.Mutex

		n          int // since that was last logged
		quietUntil time.Time
	}
}

func newMirror(i *Intake) *mirror {
	return &mirror{intake: i, events: make(chan core.Event, mostWaiting), ending: make(chan struct{}), ended: make(chan struct{})}
}

// metaKey and itemsKey are the names that MemOS gives them.
func metaKey(user string) string { return "memos:task_meta:" + user }

func itemsKey(user, businessTask string) string {
	return "memos:task_items:" + user + ":" + businessTask
}

// Event notes what became of a task. It never blocks.
func (i *Intake) Event(e core.Event) {
	if _, known := i.labels.Load(e.Kind); !known || e.ID == "" || statusOf(&e) == "" {
		return
	}
	select {
	case i.mirror.events <- e:
	default:
	}
}

// statusOf is MemOS's word for what an event has made of a task; empty if it has changed nothing that MemOS knows.
func statusOf(e *core.Event) core.Status {
	switch e.Type {
	case model.EventStart:
		return core.StatusInProgress
	case model.EventFinish, model.EventRelease, model.EventCancel, model.EventReplay:
		return e.Status
	default:
		return ""
	}
}

// stamp is a time as MemOS writes it.
func stamp(t time.Time) string { return t.UTC().Format("2006-01-02T15:04:05.000000-07:00") }

// waiting makes the records of items that have none, as their producer would have: most have them already. A failure is logged, as
// MemOS does with it.
func (m *mirror) waiting(ctx context.Context, all []taken) {
	if len(all) == 0 {
		return
	}
	_, err := m.intake.client.Pipelined(ctx, func(p redis.Pipeliner) error {
		for n := range all {
			t := &all[n].task
			record := map[string]any{
				"status": core.StatusWaiting, "task_type": t.Kind, "mem_cube_id": t.Labels["mem_cube_id"], "submitted_at": stamp(m.intake.config.Clock.Now()),
			}
			if t.Group != "" {
				record["business_task_id"] = t.Group
				p.SAdd(ctx, itemsKey(t.Agent, t.Group), t.ID)
				p.Expire(ctx, itemsKey(t.Agent, t.Group), trackFor)
			}
			data, _ := json.Marshal(record) //nolint:errchkjson // strings
			p.HSetNX(ctx, metaKey(t.Agent), t.ID, data)
			p.Expire(ctx, metaKey(t.Agent), trackFor)
		}
		return nil
	})
	m.failed(ctx, err)
}

// run writes events, in order, until the mirror ends; then those that are left.
func (m *mirror) run(ctx context.Context) {
	defer close(m.ended)
	for {
		select {
		case e := <-m.events:
			m.write(ctx, &e)
		case <-m.ending:
			ctx, cancel := context.WithTimeout(ctx, lastWrites)
			defer cancel() //nolint:revive // it returns below
			for {
				select {
				case e := <-m.events:
					m.write(ctx, &e)
				default:
					return
				}
			}
		}
	}
}

// write changes the record of an item. An item without one is no item of MemOS: other tasks may have the same kinds.
func (m *mirror) write(ctx context.Context, e *core.Event) {
	text, err := m.intake.client.HGet(ctx, metaKey(e.Agent), e.ID).Result()
	if errors.Is(err, redis.Nil) {
		return
	}
	record := map[string]any{}
	if err == nil && json.Unmarshal([]byte(text), &record) != nil {
		return // it is not MemOS's
	}
	if err == nil {
		change(record, e)
		data, _ := json.Marshal(record) //nolint:errchkjson // it was read as JSON
		_, err = m.intake.client.Pipelined(ctx, func(p redis.Pipeliner) error {
			p.HSet(ctx, metaKey(e.Agent), e.ID, data)
			p.Expire(ctx, metaKey(e.Agent), trackFor)
			return nil
		})
	}
	m.failed(ctx, err)
}

// change puts what an event says into a record, and leaves all else of it.
func change(record map[string]any, e *core.Event) {
	status := statusOf(e)
	record["status"] = status
	switch status {
	case core.StatusInProgress:
		record["started_at"] = stamp(e.Time)
	case core.StatusCompleted:
		record["completed_at"] = stamp(e.Time)
		delete(record, "error")
	case core.StatusFailed:
		record["failed_at"], record["error"] = stamp(e.Time), e.Error
	default:
	}
}

// quietFor is how long a failure to write the tracker is not logged again: one whose key has a wrong type fails for each message.
const quietFor = time.Minute

// failed logs that the tracker could not be written, and how often since that was last logged.
func (m *mirror) failed(ctx context.Context, err error) {
	if err == nil {
		return
	}
	m.failures.Lock()
	defer m.failures.Unlock()
	m.failures.n++
	now := m.intake.config.Clock.Now()
	if now.Before(m.failures.quietUntil) {
		return
	}
	m.intake.config.Logger.LogAttrs(ctx, slog.LevelWarn, "MemOS's status tracker cannot be written: its records are mended once it can be",
		slog.Int("writes", m.failures.n), slog.Any("err", err))
	m.failures.n, m.failures.quietUntil = 0, now.Add(quietFor)
}
