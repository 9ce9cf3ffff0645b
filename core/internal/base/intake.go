package base

// New tasks: what is filled in, what is refused without asking the store, and when they are first due.

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/seed-6f6f2c11/duly/core/internal/check"
	"github.com/seed-6f6f2c11/duly/core/internal/codec"
	"github.com/seed-6f6f2c11/duly/core/internal/plan"
	"github.com/seed-6f6f2c11/duly/core/internal/spread"
	"github.com/seed-6f6f2c11/duly/core/model"
	"github.com/seed-6f6f2c11/duly/core/store"
	"github.com/seed-6f6f2c11/duly/core/store/moment"
)

// MaxCallbackLen is how long the URL of a callback may be, in bytes.
const MaxCallbackLen = 2048

// checkCallback refuses a callback that is not allowed. field is the one of the task that has it.
func (s *Base) checkCallback(t *model.NewTask, field, url string) error {
	if url == "" {
		return nil
	}
	if err := check.ValidText(field, url, MaxCallbackLen); err != nil {
		return err
	}
	if url == check.TellTask || url == check.TellGroup {
		return check.Invalid(field, "%s needs the key of a signal behind it", url)
	}
	if key, group := check.Tells(url); key != "" {
		if group && t.Group == "" {
			return check.Invalid(field, "%s%s needs a task that has a group", check.TellGroup, key)
		}
		return check.ValidID(field, key)
	}
	if s.Config.Callbacks == nil {
		return check.Invalid(field, "is not enabled: name the URLs that may be called under callbacks in duly.yaml (Config.Callbacks), and pass that file with -c")
	}
	if err := s.Config.Callbacks.Check(url); err != nil {
		return check.Invalid(field, "%v", err)
	}
	return nil
}

// checkLate refuses an expectation that the schedule of a task cannot meet, and a notice of lateness that cannot be given.
func checkLate(s *Base, t *model.NewTask) error {
	if t.ExpectSuccess != 0 && t.Cron != "" {
		_, most, err := s.Crons.Gaps(s.Profiles.LastOf(t.Agent).Zoned(codec.CronOf(t), s.Config.Zone), s.StoreNow())
		if err != nil {
			return err
		}
		// guard: expect-too-short
		if most+t.Jitter >= t.ExpectSuccess {
			return check.TooShort(most + t.Jitter)
		}
	}
	kind, is := strings.CutPrefix(t.OnLate, check.LateTask)
	switch {
	case !is && strings.HasPrefix(t.OnLate, check.TellGroup):
		return check.Invalid("on_late", "must be a URL, %sKEY or %sKIND: a group has ended, and is not late", check.TellTask, check.LateTask)
	case !is:
		return s.checkCallback(t, "on_late", t.OnLate)
	}
	if err := check.ValidKind("on_late", kind); err != nil {
		return err
	}
	if model.NotReserved(kind) != nil {
		return check.Invalid("on_late", "names the kind %q, which is duly's own", kind)
	}
	return nil
}

// Plan works out when tasks with fixed times are first due, by the store's clock. If that is not known yet the store
// is asked, but only once all tasks have been checked.
func (s *Base) Plan(ctx context.Context, tasks []model.NewTask, subs []store.Submission) error {
	for i := range tasks {
		t := &tasks[i]
		if !t.Planned() || t.Restored().Planned() {
			continue
		}
		if _, err := s.AskedNow(ctx); err != nil {
			return err
		}
		due, err := s.firstDue(t)
		if err != nil {
			return err
		}
		// The nominal time is stored beside the due time: jitter puts the due time off, and a run by hand moves it.
		subs[i].State = (&codec.State{Nominal: due}).First()
		subs[i].Due = moment.When{At: due.Add(spread.Jitter(t.Jitter, subs[i].Agent, subs[i].ID, due))}
	}
	return nil
}

// firstDue is when a new task with fixed times is due first, by the clock of the store.
func (s *Base) firstDue(t *model.NewTask) (moment.Millis, error) {
	if t.Cron == "" {
		return s.StoreNow().Add(t.Delay), nil
	}
	return s.Crons.Next(s.Profiles.LastOf(t.Agent).Zoned(codec.CronOf(t), s.Config.Zone), s.StoreNow())
}

// Prepare checks tasks and turns them into submissions, without asking the store.
func (s *Base) Prepare(tasks []model.NewTask, origin *model.Origin) ([]store.Submission, error) {
	subs := make([]store.Submission, len(tasks))
	for i := range tasks {
		sub, err := codec.Prepare(&tasks[i], s.Config.MaxPayload, origin)
		if tasks[i].Level == 0 {
			sub.Level = s.Kind(sub.Kind).Level
		}
		if err == nil && s.Kind(sub.Kind).Disabled {
			err = &model.DisabledError{Kind: sub.Kind}
		}
		if err == nil && tasks[i].Cron != "" {
			var none *plan.Profile
			_, err = s.Crons.Next(none.Zoned(codec.CronOf(&tasks[i]), s.Config.Zone), s.StoreNow())
		}
		if err == nil {
			err = s.checkCallback(&tasks[i], "callback", tasks[i].Callback)
		}
		if err == nil {
			err = checkLate(s, &tasks[i])
		}
		if err != nil {
			return nil, inBatch(tasks, i, err)
		}
		subs[i] = sub
	}
	return subs, distinct(subs)
}

// inBatch says which task of a call an error is about, if the call has several.
func inBatch(tasks []model.NewTask, i int, err error) error {
	if inv, ok := errors.AsType[*store.InvalidError](err); ok && len(tasks) > 1 {
		return check.Invalid(fmt.Sprintf("tasks[%d].%s", i, inv.Field), "%s", inv.Reason)
	}
	return err
}

// distinct refuses two tasks with the same name in one call, as it would be a guess which one is meant.
func distinct(subs []store.Submission) error {
	if len(subs) == 1 {
		return nil
	}
	seen := make(map[[2]string]int, len(subs))
	for i := range subs {
		name := [2]string{subs[i].Agent, subs[i].ID}
		if first, ok := seen[name]; ok {
			return check.Invalid(fmt.Sprintf("tasks[%d].id", i), "is the same as that of tasks[%d]", first)
		}
		seen[name] = i
	}
	return nil
}

// Kind returns the settings of a kind, which must not be changed.
func (s *Base) Kind(name string) *model.KindConfig {
	if own := s.OfKind[name]; own != nil {
		return own
	}
	return &s.Unnamed
}

// Filled returns tasks completed by presets and the default zone, with phrases and negative durations resolved. The caller's tasks are not changed. The
// store is asked for its time if a task has a phrase and the store has not answered anything yet.
func (s *Base) Filled(ctx context.Context, tasks []model.NewTask) ([]model.NewTask, error) {
	own := false
	for i := range tasks {
		t := &tasks[i]
		zone := t.Cron != "" && t.Zone == "" && s.Config.Zone != ""
		if t.Kind != "" && t.Preset == "" && t.When == "" && t.Jitter >= 0 && t.Backoff >= 0 && t.Timeout >= 0 && !zone {
			continue
		}
		if !own {
			tasks, own = slices.Clone(tasks), true
			t = &tasks[i]
		}
		if err := s.readWhen(ctx, t); err != nil {
			return nil, inBatch(tasks, i, err)
		}
		if err := t.Fill(); err != nil {
			return nil, inBatch(tasks, i, err)
		}
		if t.Cron != "" && t.Zone == "" { // also if a preset set Cron
			t.Zone = s.Config.Zone
		}
		t.ReadNegatives()
	}
	return tasks, nil
}
