package events

// What a process logs of its runs.

import (
	"context"
	"log/slog"

	"github.com/seed-6f6f2c11/duly/core"
	"github.com/seed-6f6f2c11/duly/core/inspect"
	"github.com/seed-6f6f2c11/duly/core/model"
	"github.com/seed-6f6f2c11/duly/internal/dulyfile"
)

// Logged are the settings of the file for a scheduler whose process logs.
// Commands that print an answer and end do not use it: what happens is their answer.
func Logged(ctx context.Context, c *dulyfile.File, logger *slog.Logger) core.Config {
	settings := c.Settings()
	settings.Logger, settings.OnEvent = logger, Log(ctx, c, logger)
	return settings
}

// Log logs the outcomes of runs: each end, except successes of handlers that log their runs themselves, and
// every failure as a warning.
// Each process logs its own runs; duly events shows those of the process whose API it follows.
func Log(ctx context.Context, c *dulyfile.File, logger *slog.Logger) func(core.Event) {
	// quiet are the kinds whose handler is a log: it has written the payload,
	// and a second line would say less.
	quiet := map[string]bool{}
	for _, h := range c.Handlers {
		quiet[h.Kind] = h.Log
	}
	return func(e core.Event) {
		switch {
		case e.Type == model.EventRelease:
			logger.LogAttrs(ctx, slog.LevelInfo, "released", append(attributes(e), slog.String("reason", e.Reason))...)
		case e.Type == model.EventLost:
			logger.LogAttrs(ctx, slog.LevelWarn, "lost its lease, another process may run the task", attributes(e)...)
		case e.Type == model.EventPause && e.Error != "":
			logger.LogAttrs(ctx, slog.LevelWarn, "paused", slog.String("kind", e.Kind), slog.String("agent", e.Agent),
				slog.String("task", e.ID), slog.String("reason", e.Error))
		// Core logs it before it applies the file again; this says how that went.
		case e.Type == model.EventReset && e.Error != "":
			logger.LogAttrs(ctx, slog.LevelError, "nothing starts, as what the store has lost cannot be stored again", slog.String("err", e.Error))
		case e.Type == model.EventReset:
			logger.LogAttrs(ctx, slog.LevelWarn, "what the store had lost is stored again", slog.String("reason", e.Reason))
		case e.Type == model.EventBreaker:
			logger.LogAttrs(ctx, slog.LevelWarn, "a run may not submit tasks", slog.String("agent", e.Agent), slog.String("task", e.ID),
				slog.Int("refused", e.Count), slog.String("err", e.Error))
		case e.Type == model.EventLate:
			logger.LogAttrs(ctx, slog.LevelError, "late: it has not succeeded within the time that it was to", slog.String("kind", e.Kind), slog.String("agent", e.Agent),
				slog.String("task", e.ID), slog.Time("since", e.Due), slog.String("because", string(e.Because)), slog.String("reason", e.Reason))
		case e.Type == model.EventOnTime:
			logger.LogAttrs(ctx, slog.LevelInfo, "on time again", slog.String("kind", e.Kind), slog.String("agent", e.Agent), slog.String("task", e.ID))
		case e.Type == model.EventSignal:
			logger.LogAttrs(ctx, slog.LevelInfo, "signalled", slog.String("agent", e.Agent), slog.String("signal", e.Key), slog.Int("tasks", e.Count))
		case commands[e.Type] != "":
			logger.LogAttrs(ctx, slog.LevelInfo, commands[e.Type], commandAttributes(e)...) //nolint:sloglint // one of a few constants
		// A fault is an error of the store or of a record, which core logs with more than an event has.
		case e.Type == model.EventFault: // the scheduler has logged it
		case e.Type == model.EventStuck:
			logger.LogAttrs(ctx, slog.LevelWarn, "ignores its cancelled context, abandoned", attributes(e)...)
		// Starts, submissions and the like are too many for a log; the stream of events has them.
		case e.Type != model.EventFinish, e.Outcome == model.OutcomeSuccess && quiet[e.Kind]:
		case e.Outcome == model.OutcomeSuccess:
			logger.LogAttrs(ctx, slog.LevelInfo, "done", attributes(e)...)
		case e.Outcome == model.OutcomeCancelled:
			logger.LogAttrs(ctx, slog.LevelWarn, "cancelled", attributes(e)...)
		case e.Outcome == model.OutcomeAwaiting:
			logger.LogAttrs(ctx, slog.LevelInfo, "waits for a signal", attributes(e)...)
		case e.Error == "" && e.Agent == inspect.LateAgent: // it looks whether a task is late, and says so by other events
		// No error and no success: the handler asked to be called again later.
		case e.Error == "":
			logger.LogAttrs(ctx, slog.LevelInfo, "postponed", attributes(e)...)
		case e.Because == model.BecauseResting:
			logger.LogAttrs(ctx, slog.LevelWarn, "failed, waits for activity", attributes(e)...)
		case e.Because == model.BecauseCooling:
			logger.LogAttrs(ctx, slog.LevelWarn, "failed too often, cooling down", attributes(e)...)
		case e.Status == core.StatusWaiting:
			logger.LogAttrs(ctx, slog.LevelWarn, "failed, will retry", attributes(e)...)
		default:
			logger.LogAttrs(ctx, slog.LevelError, "failed for good", attributes(e)...)
		}
	}
}

// commands are what operators do, as the log says it. Each is logged, as nothing else says later who it was.
var commands = map[model.EventType]string{
	model.EventPause: "paused", model.EventResume: "resumed", model.EventRunNow: "ordered to run now", model.EventCancel: "told to cancel",
	model.EventDelete: "deleted", model.EventReplay: "replayed",
}

// commandAttributes say what a command was about, who gave it and why.
func commandAttributes(e core.Event) []slog.Attr {
	var attrs []slog.Attr
	for _, a := range []struct{ key, value string }{
		{"kind", e.Kind}, {"agent", e.Agent}, {"task", e.ID}, {"limit_key", e.Key}, {"by", e.By}, {"note", e.Note}, {"reason", e.Reason},
	} {
		if a.value != "" {
			attrs = append(attrs, slog.String(a.key, a.value))
		}
	}
	return attrs
}

// attributes are those that every line about a run has, in this order, and
// then what is worth knowing of this one.
func attributes(e core.Event) []slog.Attr {
	attrs := []slog.Attr{slog.String("kind", e.Kind), slog.String("agent", e.Agent), slog.String("task", e.ID)}
	if e.Attempt > 1 {
		attrs = append(attrs, slog.Int("attempt", e.Attempt))
	}
	// Only an end has a duration.
	if e.Type == model.EventFinish {
		attrs = append(attrs, slog.Int64("ms", e.Duration.Milliseconds()))
	}
	// When the next run is: after a success that follows from the schedule and is not news.
	if !e.Next.IsZero() && e.Outcome != model.OutcomeSuccess {
		attrs = append(attrs, slog.String("in", max(e.Next.Sub(e.Time), 0).String())) // a run that was given back keeps its due time, which is past
	}
	if e.Error != "" {
		attrs = append(attrs, slog.String("err", e.Error))
	}
	return attrs
}
