package operate

// Exports: all of an agent as lines of JSON.

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"slices"
	"time"

	"github.com/seed-6f6f2c11/duly/core/inspect"
	"github.com/seed-6f6f2c11/duly/core/internal/check"
	"github.com/seed-6f6f2c11/duly/core/internal/codec"
	"github.com/seed-6f6f2c11/duly/core/internal/plan"
	"github.com/seed-6f6f2c11/duly/core/internal/record"
	"github.com/seed-6f6f2c11/duly/core/internal/wire"
	"github.com/seed-6f6f2c11/duly/core/model"
	"github.com/seed-6f6f2c11/duly/core/store"
)

// exportPage is how many tasks are read, and written, at a time.
const exportPage = 200

// Export writes all of an agent as lines of JSON, for [Desk.Import]: one with its profile and its pause, then one for each live task, with
// its definition, when it is due next, how far its occurrence has come, and its pause. It returns how many tasks it has written. It reads a
// page at a time, so that it never blocks others, however many tasks the agent has; a task that moves meanwhile may be missing or come twice, as on the
// pages of [core.Scheduler.Tasks]. Not exported are histories, results, finished tasks, callbacks of these, tasks that are about to be cancelled, and activity tasks that
// rest: the next activity creates those. A task that runs is exported as due now. It fails with ErrNotFound, before it writes anything,
// if the agent has nothing to export.
func (s *Desk) Export(ctx context.Context, agent string, w io.Writer) (tasks int, err error) {
	if err := check.ValidID("agent_id", agent); err != nil {
		return 0, err
	}
	for q := (store.List{Agent: agent, Statuses: []store.Status{store.StatusWaiting, store.StatusInProgress}, Limit: exportPage}); ; {
		page, err := s.base.Store.List(ctx, q)
		if err != nil {
			return tasks, err
		}
		var head *headLine
		if q.After == "" {
			if head, err = s.head(ctx, agent, page.Tasks); err != nil {
				return 0, err
			}
		}
		n, err := exportPageTo(w, head, page.Tasks)
		if tasks += n; err != nil {
			return tasks, err
		}
		if q.After = page.Next; q.After == "" {
			return tasks, nil
		}
	}
}

// exportPageTo writes the lines of a page in one piece, and returns how many tasks they have.
func exportPageTo(w io.Writer, head *headLine, page []store.Stored) (tasks int, err error) {
	var text bytes.Buffer
	lines := json.NewEncoder(&text)
	lines.SetEscapeHTML(false) // so that payloads do not grow
	if head != nil {
		if err := lines.Encode(head); err != nil {
			return 0, err
		}
	}
	for i := range page {
		line, err := exported(&page[i])
		if err == nil && line != nil {
			tasks++
			err = lines.Encode(line)
		}
		if err != nil {
			return 0, err
		}
	}
	_, err = w.Write(text.Bytes())
	return tasks, err
}

// headLine is the first line of an export. It names the agent, also for the following lines that name none.
type headLine struct {
	Agent   string           `json:"agent_id"`
	Profile *model.Profile   `json:"profile,omitempty"`
	Pause   *model.PauseLine `json:"pause,omitempty"`
}

// taskLine is a live task as it is exported, without times that follow from its definition, or from when it is imported.
type taskLine struct {
	Task       any              `json:"task"`                // its definition, as it was submitted
	Due        wire.Stamp       `json:"due_at,omitzero"`     // when it is due next, if it waits for a time
	Nominal    wire.Stamp       `json:"nominal_at,omitzero"` // when that occurrence was planned, if that is another time
	Interval   wire.Span        `json:"interval,omitzero"`   // that its handler has set
	Attempt    int              `json:"attempt,omitempty"`   // that of the next run, if another one has failed
	Calls      int              `json:"calls,omitempty"`
	Failures   int              `json:"consecutive_failures,omitempty"`
	Checkpoint json.RawMessage  `json:"checkpoint,omitempty"`
	Activity   *pulseLine       `json:"activity,omitempty"`
	Pause      *model.PauseLine `json:"pause,omitempty"`
}

// pulseLine is how an activity task responds to activity.
type pulseLine struct {
	Delay       wire.Span `json:"delay"`
	MaxWait     wire.Span `json:"max_wait,omitzero"` // only with debounce
	Debounce    bool      `json:"debounce,omitempty"`
	MaxFailures int       `json:"max_failures,omitempty"`
}

// head is the first line of the export of an agent. Its pause is read from one of its tasks; without tasks all pauses are searched.
func (s *Desk) head(ctx context.Context, agent string, tasks []store.Stored) (*headLine, error) {
	head := &headLine{Agent: agent}
	profile, err := s.Profile(ctx, agent)
	switch {
	case err == nil:
		profile.Agent, profile.Revision = "", 0 // the line names the agent, and the store gives the revision
		head.Profile = &profile
	case model.CodeOf(err) != model.CodeNotFound:
		return nil, err
	}
	if len(tasks) > 0 {
		head.Pause = pausedBy(tasks[0].Holds, store.Target{Agent: agent})
		return head, nil
	}
	for q := (store.PageOf{Limit: inspect.MaxPage}); ; {
		page, err := s.base.Store.Holds(ctx, q)
		if err != nil {
			return nil, err
		}
		head.Pause = pausedBy(page.Holds, store.Target{Agent: agent})
		q.After = page.Next
		switch {
		case head.Pause != nil || q.After == "" && head.Profile != nil:
			return head, nil
		case q.After == "":
			return nil, model.ErrNotFound
		}
	}
}

// pausedBy is the pause of a target among holds; nil if there is none.
func pausedBy(holds []store.Held, target store.Target) *model.PauseLine {
	for i := range holds {
		if holds[i].Target == target {
			order := codec.Order(holds[i].Note)
			return &model.PauseLine{By: order.By, Note: order.Note, Reason: order.Reason, Until: wire.Stamp(holds[i].Until.Time())}
		}
	}
	return nil
}

// exported is the line of a live task; nil for one that is not exported. One that cannot be read fails the export: a copy must not
// silently lack a task.
func exported(t *store.Stored) (*taskLine, error) {
	if t.Order != nil || t.Resting || t.Kind == model.KindCallback || slices.Contains(check.Everywhere, t.Kind) {
		return nil, nil //nolint:nilnil // there is no such line
	}
	b, err := codec.DecodeBody(t.Body)
	if err != nil {
		return nil, err
	}
	st, err := record.DecodeState(t.State)
	if err != nil {
		return nil, err
	}
	info := codec.Inform(t)
	definition := info.Definition()
	fields, err := definition.Written()
	if err != nil {
		return nil, err
	}
	line := &taskLine{
		Task: fields, Interval: wire.Span(st.Interval), Calls: st.Calls, Failures: st.Failures, Checkpoint: check.WellFormed(st.Checkpoint),
		Pause: pausedBy(t.Holds, store.Target{Agent: t.Agent, ID: t.ID}),
	}
	if st.Attempt > 0 {
		line.Attempt = st.Attempt + 1
	}
	if t.Status == store.StatusWaiting {
		line.Due = wire.Stamp(plan.BaseOf(&st, t.Due).Time()) // without the quiet hours, which are in the profile
	}
	line.Nominal = wire.Stamp(st.Nominal.Time())
	if st.Await != nil { // the signal it waits for is not exported: it is due, and asks again
		line.Due = line.Nominal
	}
	if time.Time(line.Nominal).Equal(time.Time(line.Due)) && !b.Fixed() { // set by quiet hours alone
		line.Nominal = wire.Stamp{}
	}
	if a := b.Activity; a != nil {
		line.Activity = &pulseLine{Delay: wire.Span(a.Delay), MaxWait: wire.Span(a.MaxWait), Debounce: a.Debounce, MaxFailures: a.MaxFailures}
	}
	return line, nil
}
