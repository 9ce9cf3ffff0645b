package console_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"
	"unicode"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/seed-6f6f2c11/duly/adapters/console"
	"github.com/seed-6f6f2c11/duly/core"
)

// attacks are texts that mean something where they are not escaped: in the text of a page, in attributes, in addresses, in scripts and in styles.
var attacks = []string{
	`<script>alert(1)</script>`, `<img src=x onerror=alert(1)>`, `"><script>alert(1)</script>`, `'><script>alert(1)</script>`, `</title><script>alert(1)</script>`,
	`</pre></code><svg onload=alert(1)>`, `" onmouseover="alert(1)`, `' onfocus='alert(1)' autofocus='`, `javascript:alert(1)`, `data:text/html,<script>alert(1)</script>`,
	`//evil.example/`, `https://evil.example/`, `\"><b>`, `<!--`, `--><script>alert(1)</script>`, `<![CDATA[<b>]]>`, `]]>`, `&lt;script&gt;`, `&#60;script&#62;`, `&`,
	`&amp;quot;><b>`, `{{.}}`, `{{template "body" .}}`, `${alert(1)}`, "`><b>", `<b>`, `</td></tr></table><form action=//evil.example>`, `<base href=//evil.example>`,
	`<meta http-equiv=refresh content=0>`, `<iframe src=//evil.example>`, `<a href="javascript:alert(1)">x</a>`, `<svg><script>alert(1)</script></svg>`,
	`<math><mi xlink:href="javascript:alert(1)">`, `<details open ontoggle=alert(1)>`, `<style>*{display:none}</style>`, `style="display:none"`, `hx-get="/ui/do"`,
	`<div hx-get=/ui/do hx-trigger=load>`, `<template><b></template>`, `%3Cscript%3E`, `?do=delete&id=x`, `#"><b>`, "\u202ealert(1)", "<\u0130script>", `x" hx-on:click="alert(1)`,
}

// poisoned is a console on which a text is everywhere where somebody else can write one.
func poisoned(t *testing.T, text, control string) *fixture {
	t.Helper()
	f := setup(t, console.Options{})
	core.Handle(f.scheduler, "k", func(_ context.Context, task *core.Task[any]) error {
		return errors.Join(task.SetProgress(text+control), task.SetResult(map[string]string{text: text + control}), core.SkipRetry(errors.New(text+control)))
	})
	payload, err := json.Marshal(map[string]string{text: text + control})
	require.NoError(t, err)
	whole := core.NewTask{
		Agent: text, ID: text, Kind: "k", Payload: json.RawMessage(payload), Group: text, LimitKey: text, UserID: text, SessionID: text, TraceID: text, Tags: []string{text},
		Labels: map[string]string{"label": text}, Info: json.RawMessage(payload),
	}
	later := whole
	later.ID, later.Every, later.Delay = text+"2", time.Hour, time.Hour
	question := whole
	question.ID, question.Kind, question.LimitKey = text+"3", "asks", ""
	core.Handle(f.scheduler, "asks", asks(core.Signal{Key: text, Question: text + control, Timeout: time.Hour, Answer: json.RawMessage(`{"type":"object","properties":{"x":{"type":"string"}}}`)}))
	f.submit(whole, later, question)
	f.run()
	ctx := t.Context()
	for _, target := range []core.Target{{Agent: text, ID: text + "2"}, {Agent: text}, {Kind: "k"}, {Key: text}} {
		require.NoError(t, f.scheduler.Pause(ctx, target, core.Pause{By: text, Reason: text, Ahead: target.ID == ""}))
	}
	key := strings.ReplaceAll(text, "*", "") // which limits take for any key
	require.NoError(t, f.scheduler.SetLimits(ctx, core.Limit{About: core.LimitTarget{Key: key}, Concurrency: 1}))
	_, err = f.scheduler.SetProfile(ctx, core.Profile{Agent: text, Labels: map[string]string{"label": text}})
	require.NoError(t, err)
	return f
}

// pagesOf are all pages, about a text.
func pagesOf(text string) []string {
	return []string{
		"/ui", "/ui/agents", address("/ui/agents", "prefix", text), address("/ui/agent", "agent", text), address("/ui/agent", "agent", text, "kind", text),
		address("/ui/task", "agent", text, "id", text), address("/ui/task", "agent", text, "id", text+"2"), address("/ui/task", "agent", text, "id", "none"), "/ui/dead",
		address("/ui/dead", "kind", text), address("/ui/dead", "text", text), "/ui/tasks", address("/ui/tasks", "agent", text), address("/ui/tasks", "text", text, "label", "a="+text, "key", text),
		address("/ui/tasks", "status", "failed", "cause", "none "+text), address("/ui/find", "q", text), "/ui/approvals", address("/ui/approvals", "agent", text), address("/ui/task", "agent", text, "id", text+"3"), "/ui/kinds", "/ui/pauses", "/ui/processes", address("/ui/events", "agent", text, "kind", text),
		address("/ui/next", "cron", text, "zone", text), address("/ui/confirm", "do", "delete", "agent", text, "id", text), address("/ui/confirm", "do", "forget", "agent", text),
		address("/ui/confirm", "do", text), address("/ui/task", text, text), address("/ui", "said", text),
	}
}

// Whatever somebody else has written, a page has the same elements with the same attributes, and its links lead to the same pages.
func TestNothingIsInjected(t *testing.T) {
	t.Parallel()
	require.GreaterOrEqual(t, len(attacks), 40)
	// One that may be the name of a kind, and one that may not: then some pages say so.
	var want [][2][]string
	clean, odd := poisoned(t, "plain", ""), poisoned(t, "plain (text)", "")
	shapes := func(i int) [2][]string {
		return [2][]string{shape(t, clean.get(pagesOf("plain")[i]).body), shape(t, odd.get(pagesOf("plain (text)")[i]).body)}
	}
	for i := range pagesOf("plain") {
		want = append(want, shapes(i))
	}
	for _, text := range attacks {
		t.Run(text, func(t *testing.T) {
			t.Parallel()
			f := poisoned(t, text, "")
			for i, page := range pagesOf(text) {
				a := f.get(page)
				assert.NotEqual(t, 500, a.status, page)
				if is := shape(t, a.body); !slices.ContainsFunc(want[i][:], func(one []string) bool { return slices.Equal(one, is) }) {
					assert.Contains(t, shapes(i), is, page) // a chart has begun another step since then
				}
			}
		})
	}
}

// Control bytes, and what turns the direction of a line, show as signs.
func TestWhatCannotBeSeenShows(t *testing.T) {
	t.Parallel()
	for _, control := range []string{"\x00", "\x01", "\x1b[31m", "\x7f", "\u009b", "\u202e", "\u2066", "\r", "\ufeff", "\xff"} {
		f := poisoned(t, "plain", control)
		for _, page := range pagesOf("plain") {
			body := f.get(page).body
			at := strings.IndexFunc(body, func(r rune) bool {
				return r != '\n' && r != '\t' && (unicode.IsControl(r) || unicode.Is(unicode.Bidi_Control, r))
			})
			assert.Equal(t, -1, at, "%q on %s", control, page)
		}
	}
	f := setup(t, console.Options{})
	f.submit(core.NewTask{Agent: "a\u202eb", ID: "x\u2066y", Kind: "ok"})
	assert.Equal(t, 400, f.post(address("/ui/do", "do", "delete", "agent", "a\u202eb", "id", "x\u2066y"), "name", "xy").status)
	assert.Equal(t, 303, f.post(address("/ui/do", "do", "delete", "agent", "a\u202eb", "id", "x\u2066y"), "name", "x\ufffdy").status, "typed as it is shown")
}

// Nothing that a request has leads to a panic, or to an error of this side.
func FuzzRequests(f *testing.F) {
	for _, page := range pagesOf("plain") {
		f.Add(page, "name=x")
	}
	f.Add("/ui/do?do=pause&agent=a", "for=1h&reason=x")
	f.Add("/ui/limit", "kind=ok&rate=1/1s")
	f.Add("/ui/budget", "unit=usd&per=day&amount=1")
	f.Add("/ui/edit?agent=a&id=x", "was_level=3&level=1&payload={}")
	f.Add("/ui/%2e%2e/x?%zz", "%zz")
	f.Fuzz(func(t *testing.T, path, form string) {
		if !strings.HasPrefix(path, "/") {
			return
		}
		v := setup(t, console.Options{})
		r, err := requestOf(path)
		if err != nil {
			return
		}
		a := v.do(r)
		assert.Less(t, a.status, 500, path)
		before := v.get("/ui/pauses")
		require.Equal(t, 200, before.status, fmt.Sprint(path))
		p, err := postOf(path, form+"&form_token="+v.token())
		if err != nil {
			return
		}
		assert.Less(t, v.do(p).status, 500, path)
	})
}
