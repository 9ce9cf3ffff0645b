package browser_test

import (
	"context"
	"flag"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"testing"

	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/cdproto/page"
	"github.com/chromedp/chromedp"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

var shots = flag.String("shots", "", "write pictures of the pages into this folder")

// walked is a page.
type walked struct{ name, path string }

// pages are all pages, by the names of their pictures.
var pages = []walked{
	{"now", "/ui"},
	{"tasks", "/ui/tasks"},
	{"filtered", "/ui/tasks?status=failed&kind=crm&since=1d"},
	{"none", "/ui/tasks?text=nothing-has-this"},
	{"approvals", "/ui/approvals"},
	{"asked", "/ui/task?agent=finn&id=refund-1042"},
	{"unasked", "/ui/approvals?agent=ada"},
	{"agents", "/ui/agents"},
	{"search", "/ui/agents?prefix=a"},
	{"agent", "/ui/agent?agent=ada"},
	{"task", "/ui/task?agent=bob&id=sync-crm"},
	{"finished", "/ui/task?agent=dora&id=import-1"},
	{"attack", "/ui/task?agent=dora&id=" + url.QueryEscape(`"><script>window.attacked=1</script>`)},
	{"attacked", "/ui/agent?agent=dora"},
	{"dead", "/ui/dead"},
	{"charts", "/ui/charts?over=7d"},
	{"hour", "/ui/charts"},
	{"kind", "/ui/charts?kind=sync&over=24h"},
	{"kinds", "/ui/kinds"},
	{"held", "/ui/held"},
	{"running", "/ui/task?agent=cleo&id=long-research"},
	{"sorted", "/ui/tasks?sort=due"},
	{"pauses", "/ui/pauses"},
	{"processes", "/ui/processes"},
	{"events", "/ui/events"},
	{"next", "/ui/next?cron=30+2+*+*+*&zone=Europe%2FBerlin"},
	{"empty", "/ui/next"},
	{"confirm", "/ui/confirm?do=delete&agent=dora&id=translate-1"},
	{"wrong", "/ui/task?agent=dora&id=nothing"},
}

// The pictures that the documents have; they are as wide as a page of text is on a screen.
var documented = []string{"now", "tasks", "approvals", "charts", "agent", "task", "dead", "next"}

// In a browser every page can be read by all, breaks no rule of its own policy, and fits a telephone; every control does what it says.
func TestTheConsoleInABrowser(t *testing.T) {
	chromium(t)
	program, redis := build(t), redisServer(t)
	at := daemon(t, program, redis)
	fill(t, at)
	b := open(t, at)
	b.goTo("/ui/tasks?status=failed")
	for range 100 { // until the five imports have failed
		if value[int](b, `document.querySelectorAll("input[name=task]").length`) >= 5 {
			break
		}
		b.goTo("/ui/tasks?status=failed")
	}
	b.becomesAt("/ui/approvals", `document.querySelectorAll("form.answer").length === 2`)
	public := approval(t, program, redis, "finn", "refund-1043")
	for _, p := range append(pages, walked{"public", public}) {
		b.goTo(p.path)
		b.quiet(p.name)
		b.accessible(p.name)
		assert.Equal(t, "undefined", value[string](b, "typeof window.attacked"), p.name)
		b.fits(p.name)
		b.quiet(p.name)
	}
	t.Run("controls", func(t *testing.T) { steer(b, public) })
	t.Run("scripts", func(t *testing.T) { live(b) })
	t.Run("keyboard", func(t *testing.T) { keyboard(b) })
	t.Run("without scripts", func(t *testing.T) { plain(b) })
	if *shots != "" {
		past(t, redis)
		picture(b)
	}
	t.Run("sign in", func(t *testing.T) { signIn(t, daemon(t, program, redis, "DULY_TOKEN=secret")) })
}

// becomesAt loads a page until an expression is true on it.
func (b *tab) becomesAt(path, expression string) {
	b.Helper()
	for range 100 {
		if b.goTo(path); value[bool](b, expression) {
			return
		}
	}
	b.Fatalf("%s: %s does not become true", path, expression)
}

// fits checks a page on a desk and on a telephone: nothing is wider than the window, no id is broken within, and all controls are in view.
func (b *tab) fits(about string) {
	b.Helper()
	for _, size := range [][2]int64{{390, 844}, {1440, 900}} {
		b.run(chromedp.EmulateViewport(size[0], size[1]))
		assert.LessOrEqual(b, value[int64](b, "document.documentElement.scrollWidth"), size[0], "%s, %d wide", about, size[0])
		assert.Empty(b, value[string](b, `Array.from(document.querySelectorAll("main button, main a.button")).filter(e => e.offsetParent !== null).filter(e => {
			const r = e.getBoundingClientRect();
			return r.width > 0 && (r.left < 0 || r.right > innerWidth + 1);
		}).map(e => e.outerHTML.slice(0, 100)).join("\n")`), "%s, %d wide: controls out of view", about, size[0])
		assert.Empty(b, value[string](b, `Array.from(document.querySelectorAll("a.id, td.id, tbody th a")).filter(e => e.offsetParent !== null && !/\s/.test(e.textContent.trim()) && e.getClientRects().length > 1)
			.map(e => e.outerHTML.slice(0, 100)).join("\n")`), "%s, %d wide: ids that are broken", about, size[0])
	}
	if *shots != "" && os.Getenv("DULY_SHOTS_ALL") != "" {
		b.everySize(about)
	}
}

// everySize writes pictures of a page in both sizes, light and dark: to look at, not for the documents.
func (b *tab) everySize(name string) {
	b.Helper()
	dir := filepath.Join(*shots, "all")
	require.NoError(b, os.MkdirAll(dir, 0o755))
	for _, scheme := range []string{"light", "dark"} {
		for _, size := range [][2]int64{{390, 844}, {1440, 900}} {
			b.run(emulation.SetEmulatedMedia().WithFeatures([]*emulation.MediaFeature{{Name: "prefers-color-scheme", Value: scheme}}), chromedp.EmulateViewport(size[0], size[1]))
			var png []byte
			b.run(chromedp.CaptureScreenshot(&png))
			require.NoError(b, os.WriteFile(filepath.Join(dir, fmt.Sprintf("%s-%d-%s.png", name, size[0], scheme)), png, 0o644))
		}
	}
	b.run(emulation.SetEmulatedMedia().WithFeatures([]*emulation.MediaFeature{{Name: "prefers-color-scheme", Value: "light"}}))
}

// press clicks what a selector finds, and waits for the page that says how it ended.
func (b *tab) press(selector string) {
	b.Helper()
	b.run(chromedp.Evaluate("window.before = true", nil), chromedp.Click(selector, chromedp.ByQuery))
	b.becomes(`!window.before && document.querySelector("p.said[role=status]") !== null`, selector)
	b.quiet(selector)
}

// steer tries every control.
func steer(b *tab, public string) {
	task := "/ui/task?agent=ada&id=noon-check"
	for _, do := range []string{"pause", "resume", "run"} {
		b.goTo(task)
		b.press(`form[action*="do=` + do + `"] button`)
	}
	b.goTo(task)
	b.run(chromedp.SetValue("select[name=for]", "1h", chromedp.ByQuery), chromedp.SetValue("input[name=reason]", "lunch", chromedp.ByQuery))
	b.press(`.bar[action*="do=pause"] button`)
	b.goTo("/ui/pauses")
	assert.Contains(b, b.text(), "lunch")
	b.press(`form[action*="noon-check"][action*="do=resume"] button`)
	b.goTo(task)
	b.run(chromedp.SetValue(`form[action*="/ui/edit"] input[name=level]`, "1", chromedp.ByQuery))
	b.press(`form[action*="/ui/edit"] button`)
	assert.Contains(b, b.text(), "Changed: all other fields")
	for _, do := range []string{"cancel", "delete"} {
		b.goTo(task)
		b.run(chromedp.Click(`a[href*="do=`+do+`"]`, chromedp.ByQuery), chromedp.WaitVisible("form.stack", chromedp.ByQuery),
			chromedp.SendKeys("input[name=name]", "noon-check", chromedp.ByQuery))
		b.press("form.stack button")
	}
	b.goTo("/ui/kinds")
	b.press(`form[action*="do=pause"][action*="kind=sync"] button`)
	b.press(`form[action*="do=resume"][action*="kind=sync"] button`)
	b.run(chromedp.SetValue(`.bar input[name=kind]`, "digest", chromedp.ByQuery), chromedp.SetValue(`.bar input[name=concurrency]`, "2", chromedp.ByQuery))
	b.press(".bar button")
	assert.Contains(b, b.text(), "2 runs at once")
	b.press(`td form[action="/ui/limit"] button`)
	b.run(chromedp.SetValue(`.bar[action="/ui/budget"] input[name=amount]`, "2.5", chromedp.ByQuery), chromedp.SetValue(`.bar[action="/ui/budget"] input[name=unit]`, "usd", chromedp.ByQuery))
	b.press(`.bar[action="/ui/budget"] button`)
	assert.Contains(b, b.text(), "2.5 usd a day")
	b.press(`td form[action="/ui/budget"] button`)
	b.goTo("/ui/pauses")
	b.run(chromedp.SetValue(`form[action*="do=pause"] input[name=reason]`, "all", chromedp.ByQuery))
	b.press(`form[action*="do=pause"] button`)
	b.press(`form[action="/ui/do?do=resume"] button`)
	b.run(chromedp.SetValue(`form[action="/ui/key"] input[name=key]`, "openai", chromedp.ByQuery))
	b.press(`form[action="/ui/key"] button`)
	b.goTo("/ui/tasks?status=failed")
	b.run(chromedp.Click(`input[name=task]`, chromedp.ByQuery))
	b.press(`form[action="/ui/replay"] button`)
	b.goTo("/ui/dead")
	b.run(chromedp.Click(`.group form[action*="do=replay"] button`, chromedp.ByQuery), chromedp.WaitVisible("form.stack button", chromedp.ByQuery))
	b.press(`form.stack button`) // the count is known now
	b.goTo("/ui/tasks?agent=dora&kind=translate&status=waiting")
	b.run(chromedp.Click(`form[action*="do=cancel"] button`, chromedp.ByQuery), chromedp.WaitVisible("input[name=typed]", chromedp.ByQuery))
	b.accessible("bulk")
	b.fits("bulk")
	b.run(chromedp.SendKeys("input[name=typed]", value[string](b, "document.querySelector('input[name=count]').value"), chromedp.ByQuery))
	b.press(`form.stack button`)
	b.goTo("/ui/task?agent=finn&id=refund-1042")
	b.run(chromedp.SendKeys(`form.answer input[name=comment]`, "he is right\r", chromedp.ByQuery)) // a comment that is ended approves nothing
	b.press(`form.answer button[value=approve]`)
	b.goTo("/ui/approvals")
	assert.Equal(b, 1, value[int](b, `document.querySelectorAll("form.answer").length`))
	b.goTo(public)
	b.run(chromedp.Click(`button[value=refuse]`, chromedp.ByQuery))
	b.sees("Your answer was taken.")
	b.quiet("public")
	b.goTo("/ui/approvals")
	b.sees("Nothing waits for a person.")
	b.goTo("/ui/agent?agent=cleo")
	b.press(`form[action*="do=pause"] button`)
	b.run(chromedp.Click(`a[href*="do=forget"]`, chromedp.ByQuery), chromedp.WaitVisible("form.stack", chromedp.ByQuery),
		chromedp.SendKeys("input[name=name]", "cleo", chromedp.ByQuery))
	b.press("form.stack button")
}

// live tries what scripts add: figures that stay fresh, events as they happen, and times while they are typed.
func live(b *tab) {
	b.goTo("/ui/events")
	b.sees("Listening.")
	call(b.T, b.url, "/v1/tasks", `{"agent_id":"gus","id":"seen-as-it-happens","kind":"sync"}`)
	b.sees("seen-as-it-happens")
	b.run(chromedp.Click("#stream-pause", chromedp.ByQuery))
	b.sees("Held")
	b.quiet("events")
	b.goTo("/ui")
	b.run(chromedp.Evaluate(`window.before = document.getElementById("live")`, nil))
	b.becomes(`document.getElementById("live") !== window.before`, "it stays fresh")
	b.quiet("fresh figures")
	b.goTo("/ui/next")
	b.run(chromedp.SendKeys("input[name=cron]", "0 9 * * *", chromedp.ByQuery))
	b.sees("09:00:00")
	b.run(chromedp.SendKeys("input[name=cron]", " x y z", chromedp.ByQuery))
	b.becomes(`document.querySelector("#times .wrong") !== null`, "it says what is wrong with it")
	b.quiet("typed times")
}

// keyboard sees that the first key leads past the menu, and that what has the focus shows.
func keyboard(b *tab) {
	b.goTo("/ui/agents")
	b.run(chromedp.KeyEvent("\t"))
	assert.Equal(b, "skip", value[string](b, "document.activeElement.className"))
	assert.NotEqual(b, "none", value[string](b, "getComputedStyle(document.activeElement).outlineStyle"))
	b.run(chromedp.KeyEvent("\r"))
	assert.Equal(b, "main", value[string](b, "document.activeElement.id"))
	b.run(chromedp.KeyEvent("/"))
	assert.Equal(b, "find", value[string](b, "document.activeElement.id"), "a slash leads to the search, from anywhere")
	b.run(chromedp.KeyEvent("ada/weekly-review"), chromedp.KeyEvent("\r"))
	b.sees("cron 0 17 * * FRI")
	b.becomes(`document.querySelector(".why time") !== null`, "scripts have been here")
	assert.Contains(b, value[string](b, `document.querySelector(".why time").textContent`), "GMT+9", "a time is that of the reader's zone")
	assert.Contains(b, value[string](b, `document.querySelector(".why time").title`), "UTC", "and has UTC behind it")
	assert.Regexp(b, "GMT\\+9, .* UTC", value[string](b, `document.querySelector(".facts time").title`))
}

// plain sees that pages can be read, and controls work, in a browser without scripts.
func plain(b *tab) {
	b.run(emulation.SetScriptExecutionDisabled(true))
	b.run(chromedp.Navigate(b.url+"/ui/task?agent=ada&id=weekly-review"), chromedp.WaitVisible(".why", chromedp.ByQuery))
	b.press(`form[action*="do=pause"] button`)
	b.goTo("/ui/task?agent=ada&id=weekly-review")
	b.press(`form[action*="do=resume"] button`)
	b.run(emulation.SetScriptExecutionDisabled(false))
}

// signIn sees that a token opens the console, and that it is closed again.
func signIn(t *testing.T, at string) {
	b := open(t, at)
	b.goTo("/ui")
	b.accessible("sign in")
	b.run(chromedp.SendKeys("input[name=token]", "wrong", chromedp.ByQuery), chromedp.Click("form.stack button", chromedp.ByQuery))
	b.sees("not known, or has expired")
	b.run(chromedp.SendKeys("input[name=token]", "secret", chromedp.ByQuery), chromedp.Click("form.stack button", chromedp.ByQuery))
	b.sees("What is wrong")
	assert.Empty(t, value[string](b, "document.cookie"), "no script sees the token")
	b.run(chromedp.Click(`form[action="/ui/signout"] button`, chromedp.ByQuery))
	b.sees("Sign in with a token")
	b.quiet("sign in")
}

// picture writes the pictures of the documents.
func picture(b *tab) {
	fill(b.T, b.url)
	require.NoError(b, os.MkdirAll(*shots, 0o755))
	for _, p := range pages {
		for _, name := range documented {
			if p.name != name {
				continue
			}
			b.goTo(p.path)
			height := min(value[int64](b, "document.documentElement.scrollHeight"), 1000)
			b.run(chromedp.EmulateViewport(1200, height))
			var png []byte
			b.run(chromedp.ActionFunc(func(ctx context.Context) (err error) {
				png, err = page.CaptureScreenshot().Do(ctx)
				return err
			}))
			assert.Less(b, len(png), 150<<10, p.name)
			require.NoError(b, os.WriteFile(filepath.Join(*shots, p.name+".png"), png, 0o644))
		}
	}
}
