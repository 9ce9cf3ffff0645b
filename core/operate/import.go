package operate

// Imports: an exported agent is restored, under its own name or another.

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/seed-6f6f2c11/duly/core/internal/check"
	"github.com/seed-6f6f2c11/duly/core/internal/codec"
	"github.com/seed-6f6f2c11/duly/core/model"
	"github.com/seed-6f6f2c11/duly/core/store"
)

// Bounds of an import, besides those of tasks.
const (
	// MaxImport is the most lines that one import takes.
	MaxImport = 100_000
	// MaxImportErrors is for how many refused lines an import says why; the others are counted.
	MaxImportErrors = 100

	importBatch = 100       // tasks that are stored in one step, unless they have more bytes than importBytes
	ImportBytes = 1 << 20   //
	besides     = 512 << 10 // bytes that a line may have besides the payload
)

// Imported counts the imported profiles, pauses of agents, and tasks by what happened to them.
type Imported struct {
	New     int // did not exist, and was created
	Same    int // existed, and stays unchanged
	Differs int // of these, had another definition
	Refused int // is wrong, or may not be stored
	Errors  []ImportError
}

// ImportError says why a line was refused, counted from 1. Nothing of it was written, except what a head line has before the fault.
type ImportError struct {
	Line int
	Err  error
}

// Error names the line.
func (e *ImportError) Error() string { return fmt.Sprintf("line %d: %v", e.Line, e.Err) }

// Unwrap is why it was refused.
func (e *ImportError) Unwrap() error { return e.Err }

// RefusedError is why a line was refused elsewhere, in an answer that was read.
type RefusedError struct {
	Code model.Code
	Text string
}

// Error is the text.
func (e *RefusedError) Error() string { return e.Text }

// Import reads what [Desk.Export] has written and stores it: for the agent as, or if that is empty for the agent that the lines name. What
// exists stays unchanged, so that an import may be repeated, whole or after a failure; an agent that was resumed since is paused again, if the
// lines say so. A wrong line is refused alone, before anything of it is written, and the others are stored. A task comes
// with the due time of its line, now if that has passed. The error is never about a line, but about the store or the reader: some
// lines are imported then, and importing again is safe.
//
// Import asks [core.Scheduler.Authorize] for each task as Submit does, and for control of the agent if there is a profile or a pause.
func (s *Desk) Import(ctx context.Context, as string, from io.Reader) (Imported, error) {
	im := &importing{s: s, ctx: ctx, as: as, agent: as}
	if as != "" {
		if err := check.ValidID("agent_id", as); err != nil {
			return im.done, err
		}
	}
	if _, err := s.base.AskedNow(ctx); err != nil {
		return im.done, err
	}
	err := im.lines(bufio.NewReaderSize(from, min(s.base.Config.MaxPayload, 1<<26)+besides))
	return im.done, err
}

// lines imports all lines of a reader, whose buffer size bounds their length.
func (im *importing) lines(from *bufio.Reader) error {
	for n := 1; ; n++ {
		line, long, err := nextLine(from)
		last := errors.Is(err, io.EOF)
		if err != nil && !last {
			return err
		}
		switch {
		case n > MaxImport && (long || len(line) > 0):
			return errors.Join(im.flush(), check.Invalid("lines", "are more than %d: import the rest by itself", MaxImport))
		case long:
			im.refuse(n, check.Invalid("line", "is longer than %d bytes", from.Size()))
		case len(line) > 0:
			if err := im.line(n, line); err != nil {
				return err
			}
		}
		if last {
			return im.flush()
		}
	}
}

// nextLine reads a line, without blanks around it. One that is too long is read to its end, and not returned.
func nextLine(from *bufio.Reader) (line []byte, long bool, err error) {
	line, err = from.ReadSlice('\n')
	for errors.Is(err, bufio.ErrBufferFull) {
		long = true
		_, err = from.ReadSlice('\n')
	}
	return bytes.TrimSpace(line), long, err
}

// importing is one import under way.
type importing struct {
	s     *Desk
	ctx   context.Context //nolint:containedctx // that of the one call that it lives for
	as    string
	agent string // of tasks that name none
	done  Imported

	batch []model.NewTask
	at    []int // the lines of these
	ids   map[[2]string]bool
	bytes int
}

// refuse counts a line that is wrong.
func (im *importing) refuse(line int, err error) {
	im.done.Refused++
	if len(im.done.Errors) < MaxImportErrors {
		im.done.Errors = append(im.done.Errors, ImportError{Line: line, Err: err})
	}
}

// refusable reports whether an error is about what was to be stored: else every line would fail with it.
func refusable(err error) bool {
	switch model.CodeOf(err) {
	case model.CodeInvalid, model.CodeLimit, model.CodeQuota, model.CodeConflict, model.CodeDisabled, model.CodeForbidden:
		return true
	default:
		return false
	}
}

// line imports one line. An error that it returns ends the import.
func (im *importing) line(n int, data []byte) error {
	head, task, err := parseImport(data)
	if err == nil && head != nil {
		err = im.head(head)
	}
	if err == nil && task != nil {
		err = im.task(n, task, len(data))
	}
	if err != nil && refusable(err) {
		im.refuse(n, err)
		return nil
	}
	return err
}

// head imports a profile and a pause.
func (im *importing) head(head *headLine) error {
	if im.as != "" {
		head.Agent = im.as
	}
	if err := check.ValidID("agent_id", head.Agent); err != nil {
		return err
	}
	im.agent = head.Agent
	if head.Profile == nil && head.Pause == nil {
		return nil
	}
	if err := im.s.base.Authorize(im.ctx, model.Access{Action: model.ActionControl, Agent: head.Agent}); err != nil {
		return err
	}
	if head.Profile != nil {
		head.Profile.Agent = head.Agent
		if err := im.profile(head.Profile); err != nil {
			return err
		}
	}
	return im.pause(head.Agent, head.Pause)
}

// profile sets a profile, unless the agent has one.
func (im *importing) profile(p *model.Profile) error {
	old, err := im.s.Profile(im.ctx, p.Agent)
	switch {
	case err == nil:
		p.Revision = old.Revision
		im.kept(p, &old)
		return nil
	case model.CodeOf(err) != model.CodeNotFound:
		return err
	}
	if _, err = im.s.SetProfile(im.ctx, *p); err == nil {
		im.done.New++
	}
	return err
}

// kept counts what existed; both are compared as they would be exported.
func (im *importing) kept(wanted, exists any) {
	im.done.Same++
	a, err1 := json.Marshal(wanted)
	b, err2 := json.Marshal(exists)
	if err1 != nil || err2 != nil || !bytes.Equal(a, b) {
		im.done.Differs++
	}
}

// pause pauses the agent, unless it is already paused for as long.
func (im *importing) pause(agent string, p *model.PauseLine) error {
	if p == nil {
		return nil
	}
	hold := codec.PauseHold(im.ctx, p, im.s.base.StoreNow())
	if hold == nil {
		return nil
	}
	target := store.Target{Agent: agent}
	change, err := im.s.base.AllowTarget(im.ctx, model.EventPause, target, model.OrderOf(im.ctx, p.Order()))
	if err != nil {
		return err
	}
	hold.Target, hold.Prolong = target, true
	effects, err := im.s.base.Store.Hold(im.ctx, []store.Hold{*hold})
	switch {
	case err != nil:
		return err
	case effects[0].Code == store.EffectNone:
		im.done.Same++
	default:
		im.done.New++
		im.s.base.ChangedAll(change, hold.Until.At.Time())
	}
	return nil
}

// task checks a task, and queues it for the next step that stores tasks.
func (im *importing) task(n int, t *model.NewTask, size int) error {
	switch {
	case im.as != "":
		if t.Restored().Activity != nil && t.Agent != "" && t.Agent != im.as {
			return check.Invalid("activity", "is that of a subject of the agent %q: it cannot be imported for another one, whose activity makes its own task", t.Agent)
		}
		t.Agent = im.as
	case t.Agent == "":
		t.Agent = im.agent
	}
	if t.ID == "" && t.UniqueKey == "" {
		return check.Invalid("task.id", "is required: without it each import would make another task")
	}
	if t.Restored().Pause != nil {
		t.Restored().Hold = codec.PauseHold(im.ctx, t.Restored().Pause, im.s.base.StoreNow())
	}
	tasks, err := im.s.base.Filled(im.ctx, []model.NewTask{*t})
	if err != nil {
		return check.Within("task", err)
	}
	subs, err := im.s.base.Prepare(tasks, nil)
	if err != nil {
		return check.Within("task", err)
	}
	if t.Restored().Activity != nil {
		return im.activity(&tasks[0], &subs[0])
	}
	name := [2]string{subs[0].Agent, subs[0].ID}
	if im.ids[name] || len(im.batch) == importBatch || im.bytes+size > ImportBytes {
		if err := im.flush(); err != nil {
			return err
		}
	}
	if im.ids == nil {
		im.ids = map[[2]string]bool{}
	}
	im.ids[name] = true
	im.batch, im.at, im.bytes = append(im.batch, tasks[0]), append(im.at, n), im.bytes+size
	return nil
}

// flush stores the queued tasks: in one step, or if that is refused one by one, so that each line is refused alone.
func (im *importing) flush() error {
	batch, at := im.batch, im.at
	im.batch, im.at, im.ids, im.bytes = nil, nil, nil, 0
	placed, err := im.s.engine.Submit(im.ctx, batch...)
	if err == nil {
		return im.count(batch, placed)
	}
	if !refusable(err) {
		return err
	}
	for i := range batch {
		placed, err := im.s.engine.Submit(im.ctx, batch[i])
		if err == nil {
			err = im.count(batch[i:i+1], placed)
		}
		switch {
		case err == nil:
		case !refusable(err):
			return err
		default:
			im.refuse(at[i], check.Within("task", err))
		}
	}
	return nil
}

// count counts tasks that were submitted. JSON of the same meaning counts as the same, as exports write it without blanks.
func (im *importing) count(tasks []model.NewTask, placed []model.Submitted) error {
	for i := range placed {
		p := &placed[i]
		if p.Created {
			im.done.New++
			continue
		}
		if !p.Differs {
			im.done.Same++
			continue
		}
		exists, err := im.s.view.Task(im.ctx, p.Agent, p.ID)
		if model.CodeOf(err) == model.CodeNotFound { // it was just deleted
			exists, err = model.TaskInfo{}, nil
		}
		if err != nil {
			return err
		}
		subs, err := im.s.base.Prepare(tasks[i:i+1], nil)
		if err != nil {
			return err
		}
		t := &subs[0]
		wanted := codec.Inform(&store.Stored{Agent: t.Agent, ID: t.ID, Kind: t.Kind, Level: t.Level, Status: store.StatusWaiting, Body: t.Body})
		im.kept(wanted.Definition(), exists.Definition())
	}
	return nil
}

// activity imports an activity task: it is touched, so that activity finds it, and then gets its own time. If the process dies in
// between it is due a little late; one that was to be paused then lacks its pause, and is due a minute late.
func (im *importing) activity(t *model.NewTask, sub *store.Submission) error {
	s, ctx := im.s, im.ctx
	if err := s.base.AuthorizeSubmit(ctx, []model.NewTask{*t}); err != nil {
		return err
	}
	found, err := s.base.Store.Get(ctx, store.Get{Agent: sub.Agent, IDs: []string{sub.ID}})
	if err != nil {
		return err
	}
	if !found.Tasks[0].Status.Finished() && found.Tasks[0].Status != "" {
		im.done.Same++
		return nil
	}
	change := &model.Transition{Type: model.EventActivity, Agent: sub.Agent, ID: sub.ID, Kind: sub.Kind, To: store.StatusWaiting, Order: model.OrderOf(ctx, model.Order{})}
	if err := s.base.AllowActivity(ctx, change); err != nil {
		return err
	}
	touch := store.Touch{Agent: sub.Agent, ID: sub.ID, Kind: sub.Kind, Level: sub.Level, Body: sub.Body, Pulse: t.Restored().Activity.Pulse}
	touch.Pulse.Delay = max(sub.Due.At.Sub(found.Now), 0)
	if t.Restored().Hold != nil {
		touch.Pulse.Delay = max(touch.Pulse.Delay, pausedSoon)
	}
	touched, err := s.base.Store.Touch(ctx, []store.Touch{touch})
	if err != nil {
		return err
	}
	im.done.New++
	s.base.ChangedAll(change, touched[0].Due.Time())
	if t.Restored().Hold != nil {
		hold := *t.Restored().Hold
		hold.Target = store.Target{Agent: sub.Agent, ID: sub.ID}
		if _, err := s.base.Store.Hold(ctx, []store.Hold{hold}); err != nil {
			return err
		}
	}
	return im.replan(sub)
}

// pausedSoon is how long an activity task that is to be paused is not due: its pause is stored long before.
const pausedSoon = time.Minute

// replan gives an activity task its own time and state. One that has changed already is left alone.
func (im *importing) replan(sub *store.Submission) error {
	found, err := im.s.base.Store.Get(im.ctx, store.Get{Agent: sub.Agent, IDs: []string{sub.ID}})
	if err != nil || found.Tasks[0].Status != store.StatusWaiting {
		return err
	}
	t := &found.Tasks[0]
	due := max(sub.Due.At, found.Now)
	_, err = im.s.base.Store.Replan(im.ctx, []store.Replan{{Agent: t.Agent, ID: t.ID, Version: t.Version, Was: t.Due, Due: due, State: sub.State}})
	return err
}
