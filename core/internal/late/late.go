// Package late finds out which tasks have not succeeded within the time that they were to. Each such task has a watch: a task of duly's own agent, so that no
// pause, limit or quiet time of the task's agent, kind or key keeps it from looking. A watch sleeps until the next success should have come, so that a task that
// succeeds in time costs one look in that time, and no write.
package late

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"time"

	"github.com/seed-6f6f2c11/duly/core/internal/base"
	"github.com/seed-6f6f2c11/duly/core/internal/check"
	"github.com/seed-6f6f2c11/duly/core/internal/codec"
	"github.com/seed-6f6f2c11/duly/core/internal/outcome"
	"github.com/seed-6f6f2c11/duly/core/internal/record"
	"github.com/seed-6f6f2c11/duly/core/model"
	"github.com/seed-6f6f2c11/duly/core/store"
	"github.com/seed-6f6f2c11/duly/core/store/moment"
)

// Agent has the watches of all tasks, and Group those of tasks that are late.
const (
	Agent = "duly.late"
	Group = "late"
)

// How often the watch of a task that is late looks whether it has succeeded, within these bounds: ten times in the time that it was to take, and four times in that
// for which it has been late.
const (
	soonest = time.Second
	latest  = 5 * time.Minute
)

// longest is how long a watch sleeps at most, so that one whose task has gone without a word does not stay for years.
const longest = 24 * time.Hour

// tryAgain is how soon a watch looks again that could not: it is never given up.
const tryAgain = 10 * time.Second

// Watch is what a watch knows: its payload.
type Watch struct {
	Agent  string        `json:"agent_id"`
	ID     string        `json:"id"`
	From   moment.Millis `json:"from"`   // when the task began to be watched, or is first due: it counts until the task has succeeded
	Within time.Duration `json:"within"` // as the process knew it that armed the watch
	Armed  moment.Millis `json:"armed"`  // when it was armed: its task may not be stored yet
	Notify string        `json:"notify,omitempty"`
	Late   *Late         `json:"late,omitempty"` // nil while the task is on time
}

// Late is since when a task has been late, and what kept it from succeeding when that was found.
type Late struct {
	Since   moment.Millis     `json:"since"`
	Because model.BecauseCode `json:"because"`
	Text    string            `json:"text"`
}

// Task is a task that is to be watched.
type Task struct {
	Agent, ID string
	Expects   *record.Expectation
	From      moment.Millis
	Recurs    bool // an expectation that has begun goes on when it is edited
}

// Of is what is expected of a task: what it says itself, or else its kind. It is nil for a task of which nothing is expected.
func Of(b *base.Base, agent, kind string, body *codec.Body) *record.Expectation {
	k := b.Kind(kind)
	switch {
	case body.Expects != nil:
		return body.Expects
	case k.ExpectSuccess == 0 || body.Manual || body.Activity != nil || !body.Recurs():
		return nil
	}
	between := body.Every
	if body.Cron != "" {
		spec := b.Profiles.LastOf(agent).Zoned(body.Spec(), b.Config.Zone)
		_, most, err := b.Crons.Gaps(spec, b.StoreNow())
		if err != nil {
			return nil
		}
		between = most
	}
	// guard: expect-of-kind
	if between+body.Jitter >= k.ExpectSuccess {
		return nil
	}
	return &record.Expectation{Within: k.ExpectSuccess, Notify: k.OnLate}
}

// idOf is the id of the watch of a task.
func idOf(agent, id string) string {
	sum := sha256.Sum256(fmt.Appendf(nil, "%d:%s%s", len(agent), agent, id))
	return "watch:" + hex.EncodeToString(sum[:16])
}

// Arm makes sure that tasks are watched: a watch that lives stays as it is, unless it is to begin afresh, as its task has. It is called before a task is stored,
// so that a task whose process dies then is watched too; the watch of a task that was not stored ends by itself. It returns those that had no watch before.
func Arm(ctx context.Context, b *base.Base, tasks []Task, afresh bool) (armed []Task, err error) {
	if len(tasks) == 0 {
		return nil, nil
	}
	b.Watching.Store(true)
	for range base.MostTries {
		if armed, err = arm(ctx, b, tasks, afresh); !errors.Is(err, store.ErrChanged) {
			return armed, err
		}
	}
	return nil, err
}

// Disarm ends the watches of tasks that have ended, or were refused: an agent must not have watches beyond its tasks. A watch that is left, as this fails, ends by
// itself within a day.
func Disarm(ctx context.Context, b *base.Base, tasks []Task) {
	if len(tasks) == 0 {
		return
	}
	deletions := make([]store.Deletion, len(tasks))
	for i := range tasks {
		deletions[i] = store.Deletion{Agent: Agent, ID: idOf(tasks[i].Agent, tasks[i].ID), Group: Group}
	}
	if _, err := b.Store.Delete(ctx, deletions); err != nil {
		b.Config.Logger.WarnContext(ctx, "the watches of tasks that have ended end later, by themselves", slog.Int("tasks", len(tasks)), slog.Any("err", err))
	}
}

// arm is one try of Arm.
func arm(ctx context.Context, b *base.Base, tasks []Task, afresh bool) (armed []Task, err error) {
	q := store.Get{Agent: Agent}
	for i := range tasks {
		q.IDs = append(q.IDs, idOf(tasks[i].Agent, tasks[i].ID))
	}
	page, err := b.Store.Get(ctx, q)
	if err != nil {
		return nil, err
	}
	var subs []store.Submission
	for i := range tasks {
		was := &page.Tasks[i]
		lives := was.Status != "" && !was.Status.Finished()
		if lives && !afresh {
			continue
		}
		if !lives {
			armed = append(armed, tasks[i])
		}
		subs = append(subs, tasks[i].watch(was, page.Now, afresh))
	}
	if len(subs) > 0 {
		_, err = b.Store.Submit(ctx, subs)
	}
	return armed, err
}

// watch is the watch of the task, as it is stored in place of what there was.
func (t *Task) watch(was *store.Stored, now moment.Millis, afresh bool) store.Submission {
	w := Watch{Agent: t.Agent, ID: t.ID, From: t.From, Within: t.Expects.Within, Notify: t.Expects.Notify, Armed: now}
	at := min(t.From.Add(w.Within), now.Add(longest))
	if afresh { // the task may have succeeded before, or may have to sooner than it had
		at = now
		if from := fromOf(was); t.Recurs && from != 0 && from < at {
			w.From = from
		}
	}
	sub := w.submission(at)
	if was.Status != "" {
		sub.replaces(was)
	}
	return sub.Submission
}

// fromOf is since when a watch that lives counts; zero for one that does not.
func fromOf(was *store.Stored) moment.Millis {
	b, err := record.DecodeBody(was.Body)
	if err != nil || was.Status.Finished() {
		return 0
	}
	return Read(b.Payload).From
}

// Read is the watch of a payload; the zero Watch if it has none.
func Read(payload []byte) Watch {
	var says struct{ Watch Watch }
	if json.Unmarshal(payload, &says) != nil {
		return Watch{}
	}
	return says.Watch
}

// submission is a watch as it is stored.
type submission struct{ store.Submission }

// submission is the watch as it is stored, to look at a time. Watches of tasks that are late are a group, which the store counts.
func (w *Watch) submission(at moment.Millis) submission {
	payload, _ := json.Marshal(struct { // strings, numbers and a struct of them always have a JSON
		Watch *Watch `json:"watch"`
	}{w})
	body := record.Body{Payload: payload}
	if w.Late != nil {
		body.Group = Group
	}
	return submission{store.Submission{
		Agent: Agent, ID: idOf(w.Agent, w.ID), Kind: check.KindWatch, Level: store.LevelHigh, Group: body.Group, Body: body.Encode(),
		Due: moment.When{At: max(at, 1)}, Owed: true,
	}}
}

// replaces has it replace a watch as it was read, whose history it keeps.
func (s *submission) replaces(was *store.Stored) {
	s.Conflict, s.Version, s.OldLen = store.ConflictReplace, was.Version, len(was.Body)
	if b, err := record.DecodeBody(was.Body); err == nil {
		s.OldGroup = b.Group
	}
	stored := was.State
	if rec, err := record.DecodeFinished(was.Record); err == nil && was.Status.Finished() {
		stored = rec.State
	}
	if st, err := record.DecodeState(stored); err == nil {
		kept := st.Carry()
		s.State = kept.First()
	}
}

// Looker looks at tasks for their watches.
type Looker struct {
	Base  *base.Base
	Fence store.Fence // of the run that looks: what it finds counts as long as that has the watch
	// Why is what keeps a task from running, or from ending.
	Why func(ctx context.Context, agent, id string) (model.Because, error)
	// Notify tells once that a task is late.
	Notify func(ctx context.Context, w *Watch, t *store.Stored) error
}

// Look is a run of a watch: it says when to look again, as an outcome. Nil ends the watch. If something cannot be read or stored, it is tried again.
func (l *Looker) Look(ctx context.Context, w *Watch) error {
	again, err := l.look(ctx, w)
	if err != nil && ctx.Err() == nil {
		l.Base.Config.Logger.WarnContext(ctx, "it is not known whether a task is late: it is looked at again",
			slog.String("agent", w.Agent), slog.String("task", w.ID), slog.Any("err", err))
	}
	if err != nil {
		again = tryAgain
	}
	if again == 0 {
		return nil
	}
	return outcome.Snooze(again)
}

// look is one look, and after how long to look again; zero for never.
func (l *Looker) look(ctx context.Context, w *Watch) (again time.Duration, err error) {
	page, err := l.Base.Store.Get(ctx, store.Get{Agent: w.Agent, IDs: []string{w.ID}})
	if err != nil {
		return 0, err
	}
	t, now := &page.Tasks[0], page.Now
	if t.Status == "" || t.Status.Finished() { // also of one that was never stored
		return over(now, w, t), nil
	}
	body, err := codec.DecodeBody(t.Body)
	if err != nil {
		return 0, err
	}
	expects := l.expects(w, t, &body)
	if expects == nil {
		return 0, nil
	}
	succeeded, err := l.succeeded(ctx, t)
	if err != nil {
		return 0, err
	}
	from := succeeded
	if from == 0 {
		from = max(w.From, t.Submitted)
	}
	by := from.Add(expects.Within)
	switch {
	case now < by && w.Late == nil:
		return min(by.Sub(now), longest), nil
	case now < by:
		return l.onTime(ctx, w, t, by)
	// guard: late
	case w.Late == nil:
		w.Notify, w.Within = expects.Notify, expects.Within
		return l.late(ctx, w, t, by)
	default:
		return recheck(expects.Within, now.Sub(w.Late.Since)), nil
	}
}

// over is when the watch of a task looks again that does not live; zero for never. A task may be about to be stored: Arm comes first.
func over(now moment.Millis, w *Watch, t *store.Stored) time.Duration {
	if left := w.Armed.Add(latest).Sub(now); t.Status == "" && left > 0 && w.Late == nil {
		return min(left, recheck(w.Within, 0))
	}
	return 0
}

// expects is what is expected of a task now. A process that has no handler for its kind does not know what the kind says: what the watch was armed with counts.
func (l *Looker) expects(w *Watch, t *store.Stored, body *codec.Body) *record.Expectation {
	if own := Of(l.Base, t.Agent, t.Kind, body); own != nil {
		return own
	}
	if _, known := l.Base.OfKind[t.Kind]; known || slices.Contains(l.Base.Handled(), t.Kind) {
		return nil
	}
	return &record.Expectation{Within: w.Within, Notify: w.Notify}
}

// succeeded is when a task has last succeeded; zero for never. Occurrences that are tasks of their own are asked themselves: the task hears of them with its next
// occurrence only.
func (l *Looker) succeeded(ctx context.Context, t *store.Stored) (last moment.Millis, err error) {
	st, err := record.DecodeState(t.State)
	if err != nil {
		return 0, err
	}
	if st.Watched != nil {
		last = st.Watched.Succeeded
	}
	if len(st.Children) == 0 {
		return last, nil
	}
	page, err := l.Base.Store.Get(ctx, store.Get{Agent: t.Agent, IDs: st.Children})
	if err != nil {
		return 0, err
	}
	for i := range page.Tasks {
		// guard: late-children
		if page.Tasks[i].Status == store.StatusCompleted {
			last = max(last, page.Tasks[i].Finished)
		}
	}
	return last, nil
}

// recheck is how soon a task is looked at again that has been late for a time: less and less often, so that many short expectations that fail cost little.
func recheck(within, late time.Duration) time.Duration {
	// guard: late-tires
	return min(max(within/10, late/4, soonest), latest)
}

// late tells that a task is late, and has the watch know that.
func (l *Looker) late(ctx context.Context, w *Watch, t *store.Stored, since moment.Millis) (time.Duration, error) {
	own, err := l.own(ctx, w)
	if err != nil {
		return 0, err
	}
	why, err := l.Why(ctx, w.Agent, w.ID)
	if err != nil {
		return 0, err
	}
	w.Late = &Late{Since: since, Because: why.Code, Text: check.Clip(why.Text)}
	// guard: late-notified
	err = l.Notify(ctx, w, t)
	// guard: late-refused
	if code := model.CodeOf(err); code == model.CodeUnavailable || code == model.CodeStoreFull {
		return 0, err
	}
	if err != nil { // such as by the quota of the agent: the task is late all the same
		l.Base.Config.Logger.WarnContext(ctx, "a task is late, and what it has as on_late is refused",
			slog.String("agent", w.Agent), slog.String("task", w.ID), slog.Any("err", err))
	}
	again := recheck(w.Within, 0)
	if err := l.become(ctx, w, &own, l.Base.StoreNow().Add(again)); err != nil {
		return 0, err
	}
	l.emit(model.EventLate, w, t)
	return again, nil
}

// onTime tells that a task that was late has succeeded.
func (l *Looker) onTime(ctx context.Context, w *Watch, t *store.Stored, by moment.Millis) (time.Duration, error) {
	own, err := l.own(ctx, w)
	if err != nil {
		return 0, err
	}
	was := *w
	w.Late = nil
	at := min(by, l.Base.StoreNow().Add(longest))
	if err := l.become(ctx, w, &own, at); err != nil {
		return 0, err
	}
	l.emit(model.EventOnTime, &was, t)
	return at.Sub(l.Base.StoreNow()), nil
}

// own is the watch as it is stored. A run that has lost it, such as one whose process was frozen for longer than its lease, is refused: another one has looked since.
func (l *Looker) own(ctx context.Context, w *Watch) (store.Stored, error) {
	own, _, err := l.Base.Look(ctx, store.Get{Agent: Agent, IDs: []string{idOf(w.Agent, w.ID)}, Explain: true})
	// guard: late-lost
	if err == nil && own.Fence != l.Fence {
		err = store.ErrLeaseLost
	}
	return own, err
}

// become has the watch, which runs, know something else when its run ends.
func (l *Looker) become(ctx context.Context, w *Watch, own *store.Stored, at moment.Millis) error {
	sub := w.submission(at)
	sub.replaces(own)
	_, err := l.Base.Store.Submit(ctx, []store.Submission{sub.Submission})
	return err
}

// emit reports what was found about a task.
func (l *Looker) emit(what model.EventType, w *Watch, t *store.Stored) {
	e := model.Event{Type: what, Agent: w.Agent, ID: w.ID, Kind: t.Kind, Status: t.Status, Due: w.Late.Since.Time(), By: check.ByDuly, Key: t.Key}
	if what == model.EventLate {
		e.Because, e.Reason = w.Late.Because, w.Late.Text
	}
	if b, err := codec.DecodeBody(t.Body); err == nil {
		e.Group, e.TraceID, e.SessionID, e.Labels = b.Group, b.TraceID, b.SessionID, b.AllLabels()
	}
	l.Base.Emit(e)
}
