package inspect

// Findings: what is wrong, in words, each with what to do.

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"time"

	"github.com/seed-6f6f2c11/duly/core/model"
	"github.com/seed-6f6f2c11/duly/core/store"
	"github.com/seed-6f6f2c11/duly/core/store/server"
)

// Severity is how severe a finding is.
type Severity string

// The severities.
const (
	SeverityOK      Severity = "ok"
	SeverityWarning Severity = "warning" // worth knowing, and perhaps intended
	SeverityFailed  Severity = "failed"  // something does not run as it should
)

// Finding is the result of a check.
type Finding struct {
	Check    string
	Severity Severity
	Message  string // what was found
	Hint     string // what to do; empty if nothing needs to be done
}

// MarshalJSON writes the finding, and whether the check found all well.
func (f Finding) MarshalJSON() ([]byte, error) {
	return json.Marshal(struct {
		Check    string   `json:"check"`
		OK       bool     `json:"ok"`
		Severity Severity `json:"severity"`
		Message  string   `json:"message"`
		Hint     string   `json:"hint,omitempty"`
	}{f.Check, f.Severity == SeverityOK, f.Severity, f.Message, f.Hint})
}

// well is a finding that nothing is wrong.
func well(check, format string, args ...any) Finding {
	return Finding{Check: check, Severity: SeverityOK, Message: fmt.Sprintf(format, args...)}
}

// Diagnose makes all checks that a process can make of its store and of itself without reading tasks. A store that does not answer is a
// finding, too: the reason is in the log.
func (s *View) Diagnose(ctx context.Context) []Finding {
	all := []Finding{s.itself()}
	h, err := s.Health(ctx)
	if err != nil {
		s.base.Config.Logger.WarnContext(ctx, "the checks of the store have ended", slog.Any("err", err))
		return append(all, Finding{
			"store", SeverityFailed, "the store does not answer, or contains what cannot be read", "check Redis, and see the log of this process; duly doctor says more",
		})
	}
	all = append(all, well("store", "the store answers, and has %s", some(h.Stats.Partitions, "partition")))
	if s.base.Config.Servers != nil {
		if facts, err := s.base.Config.Servers.Facts(ctx); err == nil { // managed servers may refuse to say
			all = append(all, checkServers(facts)...)
		}
	}
	if recovered, err := s.Recovered(ctx); err == nil {
		all = append(all, recovered)
	}
	if quotas, err := s.QuotasLeft(ctx); err == nil && quotas.Check != "" {
		all = append(all, quotas)
	}
	if shared, err := shares(ctx, s, h); err == nil {
		all = append(all, shared)
	}
	return append(all, h.Work(), h.Late.Finding(), h.handlers(), h.ProcessesSeen(), h.Stats.Pauses(), h.Stats.Failures(), h.failing(), stuckLimits(ctx, s, h.Limits), h.BudgetsLeft(), h.Stats.History())
}

// Bounds of the search for agents that have nearly used their quotas up, and how many of them are named.
const (
	quotaPages  = 10
	quotaPage   = 100
	quotasNamed = 5
	nearlyUsed  = 0.9
)

// QuotasLeft says which agents have used nine tenths of a quota of live or recurring tasks, or of bytes. It looks at about a thousand profiles at most. It is the
// zero Finding if none of them has a quota.
func (s *View) QuotasLeft(ctx context.Context) (Finding, error) {
	var near []string
	quotas, q := 0, store.PageOf{Limit: quotaPage}
	for range quotaPages {
		page, err := s.base.Store.Profiles(ctx, q)
		if err != nil {
			return Finding{}, err
		}
		for i := range page.Profiles {
			p := &page.Profiles[i]
			if p.Use == nil {
				continue
			}
			quotas++
			b := s.base.Profiles.Of(p.Profile, s.base.Config.Zone).Bounds()
			if b == nil {
				continue
			}
			near = append(near, nearQuotas(p.Agent, b, p.Use)...)
		}
		if q.After = page.Next; q.After == "" {
			break
		}
	}
	switch {
	case quotas == 0:
		return Finding{}, nil
	case len(near) == 0:
		return well("quotas", "%s, none nearly used up", some(quotas, "quota")), nil
	}
	slices.Sort(near)
	text := strings.Join(near[:min(len(near), quotasNamed)], "; ")
	if n := len(near) - quotasNamed; n > 0 {
		text += fmt.Sprintf("; and %d more", n)
	}
	return Finding{"quotas", SeverityWarning, "nearly used up: " + text, "duly agent show says what an agent has used; cancel or delete tasks of it, or raise its quota with duly agent set"}, nil
}

// nearQuotas are the parts of a quota that are nearly used up.
func nearQuotas(agent string, q *store.Quota, u *store.QuotaUse) (near []string) {
	for _, part := range []struct {
		name       string
		used, most int64
	}{{"live", int64(u.Live), int64(q.Live)}, {"recurring", int64(u.Recurring), int64(q.Recurring)}, {"bytes", u.Bytes, q.Bytes}} {
		if part.most > 0 && float64(part.used) >= nearlyUsed*float64(part.most) {
			near = append(near, fmt.Sprintf("%s of agent %q (%d of %d)", part.name, agent, part.used, part.most))
		}
	}
	return near
}

// itself checks whether something keeps this process from claiming.
func (s *View) itself() Finding {
	err := s.engine.Ready()
	if stuck, ok := errors.AsType[*model.AbandonedError](err); ok {
		return Finding{"process", SeverityFailed, stuck.Error(), "restart this process, and make its handlers return when ctx.Done() is closed"}
	}
	if away, ok := errors.AsType[*model.AwayError](err); ok {
		return Finding{"process", SeverityFailed, away.Error(), "check the nodes of Redis; duly doctor says more"}
	}
	st := s.engine.Slots()
	return well("process", "this process uses %d of %s", st.InUse, some(st.Total, "slot"))
}

// checkServers are the checks of what servers say about themselves.
func checkServers(servers []server.Facts) []Finding {
	evicts := well("eviction", "no server evicts tasks, as far as they say")
	keeps := well("persistence", "an append-only file: a crash loses a second of writes at most")
	room := well("memory", "every server has room left")
	const policy = "set maxmemory-policy to noeviction"
	for i := range servers {
		f := &servers[i]
		switch f.Evicts() {
		case server.LosesNothing, server.LosesUnknown:
		case server.LosesTasks:
			evicts = Finding{"eviction", SeverityFailed, fmt.Sprintf("%s has maxmemory-policy %s, which drops tasks silently when memory is short", f.Node, f.Eviction), policy}
		case server.LosesSome:
			evicts.graver(fmt.Sprintf("%s has maxmemory-policy %s: finished tasks may be forgotten early, live ones are safe", f.Node, f.Eviction), policy)
		}
		switch f.Forgets() {
		case server.LosesNothing:
		case server.LosesTasks:
			keeps.graver(f.Node+" has neither files nor a replica: a restart loses all tasks", "set appendonly yes")
		case server.LosesSome:
			keeps.graver(fmt.Sprintf("%s saves snapshots only (%s): a crash loses what was written since", f.Node, f.Save), "set appendonly yes")
		case server.LosesUnknown:
			keeps.graver(f.Node+" does not say whether tasks survive a restart", "see the provider's console")
		}
		if f.MaxMemory > 0 && float64(f.Memory) > fullMemory*float64(f.MaxMemory) {
			room = Finding{
				"memory", SeverityWarning, fmt.Sprintf("%s uses %d %% of its memory: once it is full every write fails", f.Node, f.Memory*100/f.MaxMemory),
				"raise maxmemory, or lower retention and kept",
			}
		}
	}
	return []Finding{evicts, keeps, room}
}

// graver makes a warning of a finding that is well.
func (f *Finding) graver(message, hint string) {
	if f.Severity == SeverityOK {
		f.Severity, f.Message, f.Hint = SeverityWarning, message, hint
	}
}

// Work checks whether due work is not claimed. Paused work counts too, since from outside the two look alike.
func (h *Health) Work() Finding {
	st := &h.Stats
	switch behind := h.Overdue().Round(time.Second); {
	case behind > 0 && len(h.Processes) > 0:
		inUse, total := h.slots()
		return Finding{
			"work", SeverityFailed, fmt.Sprintf("work has been due for %s, and of the %s of %s %d are in use", behind, some(total, "slot"), some(len(h.Processes), "process"), inUse),
			"duly explain says why a task has not run; if long runs fill the slots (some are kept for urgent tasks), start more processes or raise concurrency",
		}
	case behind > 0:
		return Finding{
			"work", SeverityFailed, fmt.Sprintf("work has been due for %s and no process has claimed it, or everything is paused", behind),
			"start duly daemon, or schedule duly run-due; duly explain says why a task has not run",
		}
	case st.NextDue.IsZero() && st.InProgress == 0:
		return well("work", "no task is scheduled")
	default:
		return well("work", "%d running, %d waiting, none overdue by more than a minute", st.InProgress, st.Waiting)
	}
}

// kindsNamed is how many kinds a finding names.
const kindsNamed = 5

// handlers checks for kinds that no process runs.
func (h *Health) handlers() Finding {
	var names []string
	kinds := h.Unhandled()
	for i := range kinds[:min(len(kinds), kindsNamed)] {
		names = append(names, fmt.Sprintf("%s (%d)", kinds[i].Kind, kinds[i].Counters.Live))
	}
	if more := len(kinds) - kindsNamed; more > 0 {
		names = append(names, fmt.Sprintf("and %d more", more))
	}
	parked := h.Stats.Parked - h.Stats.Held
	switch {
	case len(kinds) > 0:
		return Finding{
			"handlers", SeverityWarning, "no process that is known has a handler for these kinds of live tasks: " + strings.Join(names, ", "),
			"start one whose file has it; a function or a cron job may have it without being seen here",
		}
	case parked > 0:
		return Finding{"handlers", SeverityWarning, some(parked, "task") + " waiting for a process with the handler", "see duly kinds"}
	default:
		return well("handlers", "no task waits for a handler")
	}
}

// ProcessesSeen checks for handlers that ignore that their context is cancelled. They hold memory, and perhaps a connection, until their process
// ends.
func (h *Health) ProcessesSeen() Finding {
	switch n, worst := h.Abandoned(); {
	case n > 0:
		return Finding{
			"processes", SeverityWarning, fmt.Sprintf("%s ignoring a cancelled context, for example in process %s", some(n, "handler"), worst),
			"restart these processes (see duly processes), and make their handlers return when ctx.Done() is closed",
		}
	case len(h.Processes) == 0:
		return well("processes", "no process has reported in the last minute")
	default:
		return well("processes", "processes that run tasks: %d", len(h.Processes))
	}
}

// Pauses checks for pauses that hold tasks back: one that was forgotten looks like a scheduler that has stopped.
func (st *Stats) Pauses() Finding {
	if st.Held == 0 {
		return well("pauses", "no due task is paused")
	}
	return Finding{"pauses", SeverityWarning, some(st.Held, "due task") + " paused", "duly pauses lists them; duly resume resumes them"}
}

// Failures checks for tasks that failed for good, which need a person, and for records that could not be read.
func (st *Stats) Failures() Finding {
	switch {
	// The rarer and more severe of the two comes first, with the number of the other.
	case st.Malformed > 0:
		return Finding{
			"failures", SeverityWarning, fmt.Sprintf("%s skipped, %s failed for good", some(st.Malformed, "damaged record"), some(st.Failed, "task")),
			"see duly audit, and duly queue",
		}
	case st.Failed > 0:
		return Finding{
			"failures", SeverityWarning, some(st.Failed, "task") + " failed for good",
			"see duly queue KIND, or duly list --agent AGENT --status failed; duly replay runs one again",
		}
	default:
		return well("failures", "no task has failed for good")
	}
}

// failing checks for kinds that keep failing.
func (h *Health) failing() Finding {
	kinds := h.Failing()
	if len(kinds) == 0 {
		return well("failing", "no kind has failed in most of its runs of the last hour")
	}
	k := &kinds[0]
	return Finding{
		"failing", SeverityFailed, fmt.Sprintf("%d of the %d runs of kind %s in the last hour failed; such kinds: %d", k.Failures, k.Runs, k.Kind, len(kinds)),
		"duly queue " + k.Kind + " shows the last errors; duly pause --kind " + k.Kind + " stops it",
	}
}

// BudgetsLeft says which budgets hold tasks back now, and until when. That is their purpose, and still something that an operator needs to see.
func (h *Health) BudgetsLeft() Finding {
	used := UsedUp(h.Budgets)
	if len(used) == 0 {
		return well("budgets", "%s, none used up", some(len(h.Budgets), "budget"))
	}
	times, waiting, ends := 0, int64(0), used[0].Ends
	for i := range used {
		times, waiting, ends = times+used[i].UsedUp, waiting+used[i].Waiting, min(ends, used[i].Ends)
	}
	return Finding{
		"budgets", SeverityWarning, fmt.Sprintf("%s, used up %s; %s in line until %s or later", some(len(h.Budgets), "budget"), some(times, "time"), some(waiting, "task"),
			ClockTime(ends.Time().UTC())), "duly budget list shows which; duly budget set raises one",
	}
}

// History checks whether agents have more finished tasks than the store keeps.
func (st *Stats) History() Finding {
	if !st.TrimmedLately() {
		return well("history", "finished tasks are kept for the whole retention time")
	}
	return Finding{
		"history", SeverityWarning, fmt.Sprintf("%s dropped before the retention time ended, the last at %s: their agents finished more tasks than kept allows",
			some(st.Trimmed, "finished task"), ClockTime(st.LastTrimmed.UTC())),
		"raise kept in the file of every process, or lower retention; the ids are remembered for a day",
	}
}

// some is a number of things, in words.
func some[N int | int64](n N, one string) string {
	switch {
	case n != 1 && strings.HasSuffix(one, "s"):
		one += "es"
	case n != 1:
		one += "s"
	}
	return fmt.Sprintf("%d %s", n, one)
}
