package console

// How values are shown: times, durations, numbers, states.

import (
	"bytes"
	"encoding/json"
	"fmt"
	"html/template"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/seed-6f6f2c11/duly/adapters/internal/localhost"
	"github.com/seed-6f6f2c11/duly/core"
	"github.com/seed-6f6f2c11/duly/core/inspect"
	"github.com/seed-6f6f2c11/duly/core/model"
)

// functions are what templates call.
func functions() template.FuncMap {
	return template.FuncMap{
		"when": when, "took": took, "count": counting, "counting": counting, "named": named, "state": func(t core.TaskInfo, now time.Time) badge { return stateOf(&t, now) }, "outcome": outcomeOf, "asset": func(name string) string { return assetPath + name + "?v=" + version(name) },
		"kindTo": func(kind string) string { return kindURL(kind, "") }, "task": taskURL, "edit": editURL, "again": func(agent, id string) string {
			return Path + "/again?" + url.Values{"agent": {agent}, "id": {id}}.Encode()
		}, "agent": agentURL, "act": act, "actOn": actOn, "short": short, "percent": percent, "schedule": func(t core.TaskInfo) string { return scheduleOf(&t) },
		"fine": func() badge { return badge{"good", "fine"} }, "everything": func() core.Target { return core.Target{} }, "len64": func(runs []runRow) int64 { return int64(len(runs)) },
		"mid": func(y int) int { return y + 10 }, "low": func(y int) int { return y + 5 },
		"inc": func(n int) int { return n + 1 },
	}
}

// shownTime is a time as a page shows it: relative, with the whole one beside it.
type shownTime struct{ Text, Full, Machine string }

// when is a time seen from now; empty for the zero time.
func when(now, t time.Time) shownTime {
	if t.IsZero() {
		return shownTime{Text: "–"}
	}
	m := shownTime{Full: t.UTC().Format("2006-01-02 15:04:05.000 MST"), Machine: t.UTC().Format(time.RFC3339Nano)}
	switch d := t.Sub(now); {
	case d.Abs() < time.Second:
		m.Text = "now"
	case d > 0:
		m.Text = "in " + rough(d)
	default:
		m.Text = rough(-d) + " ago"
	}
	return m
}

// rough is a duration to its two largest units at most.
func rough(d time.Duration) string {
	switch {
	case d < time.Minute:
		return fmt.Sprintf("%d s", int(d.Seconds()))
	case d < time.Hour:
		return fmt.Sprintf("%d min", int(d.Minutes()))
	case d < 24*time.Hour:
		h, m := int(d.Hours()), int(d.Minutes())%60
		if h < 6 && m > 0 {
			return fmt.Sprintf("%d h %d min", h, m)
		}
		return fmt.Sprintf("%d h", h)
	case d < 365*24*time.Hour:
		return fmt.Sprintf("%d d", int(d.Hours()/24))
	default:
		return fmt.Sprintf("%.1f years", d.Hours()/24/365)
	}
}

// took is how long something took.
func took(d time.Duration) string {
	switch {
	case d <= 0:
		return "0 ms"
	case d < time.Millisecond:
		return "<1 ms"
	case d < time.Second:
		return fmt.Sprintf("%d ms", d.Milliseconds())
	case d < 10*time.Second:
		return fmt.Sprintf("%.1f s", d.Seconds())
	default:
		return rough(d)
	}
}

// count is a whole number with commas.
func count[N int | int64](n N) string {
	text := strconv.FormatInt(int64(n), 10)
	for i := len(text) - 3; i > 0 && text[i-1] != '-'; i -= 3 {
		text = text[:i] + "," + text[i:]
	}
	return text
}

// counting is count for templates, which know no types.
func counting(n any) string {
	switch n := n.(type) {
	case int:
		return count(n)
	case int64:
		return count(n)
	default:
		return fmt.Sprint(n)
	}
}

// counted is a number of things: 1 task, 2 tasks.
func counted[N int | int64](n N, one string) string {
	if n == 1 {
		return "1 " + one
	}
	return count(n) + " " + one + "s"
}

// percent is a share; empty if there is none.
func percent(part, of int64) string {
	switch {
	case of == 0 || part == 0:
		return ""
	case part*1000 < of:
		return "<0.1 %"
	default:
		return fmt.Sprintf("%.1f %%", 100*float64(part)/float64(of))
	}
}

// badge is a state, by a colour and a word.
type badge struct{ Class, Word string }

// stateOf is the state of a task.
func stateOf(t *core.TaskInfo, now time.Time) badge {
	switch {
	case t.Ending:
		return badge{"warn", "ending"}
	case t.Status == core.StatusCompleted:
		return badge{"good", "completed"}
	case t.Status == core.StatusFailed:
		return badge{"bad", "dead"}
	case t.Status == core.StatusCancelled:
		return badge{"idle", "cancelled"}
	case t.Status == core.StatusInProgress:
		return badge{"busy", "running"}
	case len(t.Pauses) > 0:
		return badge{"warn", "paused"}
	case t.Parked:
		return badge{"bad", "no handler"}
	case t.Resting:
		return badge{"idle", "resting"}
	case inspect.Asks(t):
		return badge{"warn", "asks"}
	case t.Awaiting != nil:
		return badge{"idle", "awaits a signal"}
	case t.Manual && t.NextRun.IsZero():
		return badge{"idle", "manual"}
	case !t.NextRun.IsZero() && !t.NextRun.After(now):
		return badge{"busy", "due"}
	case t.Attempt > 1:
		return badge{"warn", "will retry"}
	default:
		return badge{"idle", "waiting"}
	}
}

// outcomeOf is how a run ended.
func outcomeOf(o model.Outcome) badge {
	switch o {
	case model.OutcomeSuccess:
		return badge{"good", string(o)}
	case model.OutcomeFailed, model.OutcomeCrashed:
		return badge{"bad", string(o)}
	case model.OutcomeCancelled:
		return badge{"warn", string(o)}
	default:
		return badge{"idle", string(o)}
	}
}

// taskURL is the address of a task's page.
func taskURL(agent, id string) string {
	return Path + "/task?" + url.Values{"agent": {agent}, "id": {id}}.Encode()
}

// editURL is where the form that changes a task goes.
func editURL(agent, id string) string {
	return Path + "/edit?" + url.Values{"agent": {agent}, "id": {id}}.Encode()
}

// agentURL is the address of an agent's page.
func agentURL(agent string) string { return Path + "/agent?" + url.Values{"agent": {agent}}.Encode() }

// mostShown is how much of a value a page shows, in bytes.
const mostShown = 12 << 10

// jsonText is JSON as people read it, and whether there is more of it.
func jsonText(data json.RawMessage) (text string, cut bool) {
	if len(data) == 0 {
		return "", false
	}
	if len(data) > mostShown {
		return strings.ToValidUTF8(string(data[:mostShown]), ""), true
	}
	var b bytes.Buffer
	if json.Indent(&b, data, "", "  ") != nil || b.Len() > 2*mostShown {
		return strings.ToValidUTF8(string(data), "\uFFFD"), false
	}
	return b.String(), false
}

// short is the beginning of a text, on one line.
func short(text string) string {
	const most = 200
	text = strings.Join(strings.Fields(text), " ")
	if len(text) <= most {
		return text
	}
	return strings.ToValidUTF8(text[:most], "") + "…"
}

// sentence is a text with a capital at its beginning and a full stop at its end.
func sentence(text string) string {
	text = strings.TrimSpace(text)
	if text == "" {
		return ""
	}
	if first := text[0]; first >= 'a' && first <= 'z' {
		text = string(first-'a'+'A') + text[1:]
	}
	if !strings.HasSuffix(text, ".") && !strings.HasSuffix(text, "?") {
		text += "."
	}
	return text
}

// loopback reports whether a request does not leave this machine.
func loopback(r *http.Request) bool { return localhost.Loopback(r.Host) }
