package browser_test

// Four tours: people with a purpose walk the pages, and see on each what they need for the next step. None of them knows an address: they follow links.

import (
	"fmt"
	"net/url"
	"strings"
	"testing"

	"github.com/chromedp/chromedp"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// touring is the file of a team: kinds that fail by what they are given, take long, come back later, cost, or answer too late.
const touring = `
name: worker-1
http: 127.0.0.1:0
concurrency: 8
console: { trace_url: "https://traces.example/{trace_id}" }
handlers:
  note: { exec: ["sh", "-c", "echo '{\"noted\":true}'"] }
  weather: { exec: ["sh", "-c", "grep -q '\"city\"' && echo '{\"sun\":1}' || { echo 'Traceback (most recent call last):' >&2; echo \"KeyError: 'city'\" >&2; exit 65; }"] }
  crawl: { exec: ["sh", "-c", "echo 'reading page 3' >&2; echo 'duly-progress: {\"done\": 3, \"of\": 10}' >&3; exec sleep 600"], timeout: 15m }
  model: { exec: ["sh", "-c", "echo 'duly-snooze: 10m' >&3; exit 75"] }
  paid: { exec: ["true"] }
  deploy: { exec: ["sh", "-c", "echo 'no module named v2' >&2; exit 65"] }
  refund: { exec: ["sh", "-c", "grep -q heard || echo 'duly-await: {\"key\":\"approval\",\"from\":\"approval\",\"question\":\"Refund 40 EUR to Bob?\",\"timeout\":\"24h\"}' >&3"] }
  nightly: { exec: ["true"] }
limits:
  - { kind: crawl, concurrency: 1 }
budgets:
  - { kind: paid, unit: runs, amount: 1, per: day }
`

// follow clicks a link with this text, and waits for the page that it leads to.
func (b *tab) follow(text string) {
	b.Helper()
	b.run(chromedp.Evaluate("window.before = true", nil))
	require.True(b, value[bool](b, fmt.Sprintf(`(() => {
		const all = Array.from(document.querySelectorAll("a")).filter(a => a.offsetParent !== null);
		const a = all.find(a => a.textContent.trim() === %q) || all.find(a => a.textContent.includes(%q));
		if (a) { setTimeout(() => a.click()); } // the answer is not to be lost with the page
		return !!a;
	})()`, text, text)), "no link %q on %s", text, value[string](b, "location.pathname"))
	b.becomes(`!window.before && document.readyState === "complete" && document.querySelector("main") !== null`, text)
	b.quiet(text)
}

// has asserts that the page has texts.
func (b *tab) has(texts ...string) {
	b.Helper()
	all := b.text()
	for _, text := range texts {
		assert.True(b, strings.Contains(all, text), "%s lacks %q", value[string](b, "location.pathname + location.search"), text)
	}
}

// until loads the page that is shown until it has a text.
func (b *tab) until(text string) {
	b.Helper()
	at := value[string](b, "location.pathname + location.search")
	b.becomesAt(at, fmt.Sprintf("document.body.innerText.includes(%q)", text))
}

// submit submits a task.
func (b *tab) submit(agent, id, kind, rest string) {
	b.Helper()
	call(b.T, b.url, "/v1/tasks", fmt.Sprintf(`{"agent_id":%q,"id":%q,"kind":%q%s}`, agent, id, kind, rest))
}

// died waits until so many tasks are dead. A count of dead tasks is shown for some seconds, so it is not asked for before.
func (b *tab) died(n int) {
	b.Helper()
	b.becomesAt("/ui/tasks?status=failed", fmt.Sprintf(`document.querySelectorAll("input[name=task]").length >= %d`, n))
}

// Four people find their way.
func TestTours(t *testing.T) {
	chromium(t)
	program := build(t)
	for name, tour := range map[string]func(b *tab){"newcomer": newcomer, "Python team": team, "operator": operator, "phone": phone} {
		t.Run(name, func(t *testing.T) {
			tour(open(t, daemonOf(t, program, redisServer(t), touring)))
		})
	}
}

// newcomer has just started a daemon. The first page says what to do, shows what was submitted, and leads to how it went.
func newcomer(b *tab) {
	b.goTo("/ui")
	b.has("No task was ever submitted here", "duly submit --agent me --kind note", "Nothing is wrong")
	b.follow("Tasks")
	b.has("No live task.", "duly submit")
	b.follow("Approvals")
	b.has("Nothing waits for a person.")
	b.follow("Dead")
	b.has("No task is dead.")
	b.follow("Charts")
	b.has("Runs")
	b.submit("me", "first", "note", `,"every":"1m","payload":{"text":"hello"}`)
	b.follow("Now")
	b.until("note")
	b.follow("Tasks")
	b.has("first", "every 1m0s", "note")
	b.follow("first")
	b.until("success")
	b.has("It is not due until", "noted", `"text": "hello"`, "worker-1", "1 run, of which 0 failed")
	b.follow("me")
	b.has("The next 7 days", "first")
	b.accessible("newcomer")
}

// team writes a handler in Python. A member finds the task that failed by a word of its error, sees the end of the traceback, mends the payload, and sees it
// succeed; and how far a long run is.
func team(b *tab) {
	b.submit("ada", "forecast-bern", "weather", `,"payload":{"town":"Bern"},"labels":{"team":"weather"}`)
	b.submit("ada", "forecast-rome", "weather", `,"payload":{"city":"Rome"},"labels":{"team":"weather"}`)
	b.submit("ada", "crawl-all", "crawl", `,"trace_id":"4bf92f3577b34da6"`)
	b.died(1)
	b.follow("Dead")
	b.has("KeyError: 'city'")
	b.has("100.0 % of all", "weather", "1 agent")
	b.follow("forecast-bern")
	b.has("It failed at", "KeyError: 'city'", `"town": "Bern"`, "Change the payload and replay", "Output", "Traceback (most recent call last):")
	b.accessible("dead task")
	b.run(chromedp.SetValue(`textarea[name=payload]`, `{"city": "Bern"}`, chromedp.ByQuery))
	b.press(`form[action*="/ui/again"] button`)
	b.has("due again with the changed payload")
	b.until("It completed at")
	b.has(`"sun": 1`)
	b.follow("Tasks")
	b.follow("Running")
	b.until("crawl-all")
	b.follow("crawl-all")
	b.until("3 of 10, 30 %")
	b.until("reading page 3")
	b.has("as it comes", "Under way", "Attempt 1 has been running for", "one run is under way")
	b.has("Open the trace")
	assert.Equal(b, "https://traces.example/4bf92f3577b34da6", value[string](b, `document.querySelector("dd a[rel]").href`))
	assert.InDelta(b, 3, value[float64](b, `document.querySelector("progress").value`), 0)
	b.accessible("running")
	b.follow("Kinds")
	b.follow("weather")
	b.has("Failures ever", "Runs", "Lag", "Waiting")
}

// operator is called at night, eight times. Each time the first page says what is wrong, and leads to where it is put right.
func operator(b *tab) {
	// 1. A kind that no process runs.
	b.submit("ann", "letter", "translate", "")
	b.goTo("/ui")
	b.until("No process that is known has a handler for these kinds of live tasks: translate (1)")
	b.follow("Kinds")
	b.has("no process", "translate")
	// 2. A deploy after which a kind fails: what all these failures have in common, and all of them replayed.
	for i := range 12 {
		b.submit("ann", fmt.Sprint("deploy-", i), "deploy", "")
	}
	b.died(12)
	b.goTo("/ui/dead")
	b.has("12 in all.")
	b.has("no module named v2", "100.0 % of all")
	b.follow("Now")
	b.until("deploy")
	b.follow("Dead")
	b.run(chromedp.Click(`.group form[action*="do=replay"] button`, chromedp.ByQuery), chromedp.WaitVisible("form.stack button", chromedp.ByQuery))
	b.press("form.stack button")
	b.has("12 of 12 tasks are due again", "among the live ones")
	// 3. A budget that is used up: what waits for it, and until when.
	b.submit("ann", "paid-1", "paid", "")
	b.submit("ann", "paid-2", "paid", "")
	b.goTo("/ui/held")
	b.until("1 runs a day of kind \"paid\"")
	b.has("100 % used; the next period begins in")
	// 4. A forgotten pause: by whom, why, since when, and its end.
	call(b.T, b.url, "/v1/kinds/nightly/pause", `{"reason":"CRM maintenance","by":"ops"}`)
	b.submit("ann", "nightly-1", "nightly", "")
	b.goTo("/ui")
	b.until("1 due task held back by pauses")
	b.follow("See what is held")
	b.has("kind \"nightly\"", "ops: CRM maintenance", "resumed by hand")
	b.press(`form[action*="do=resume"][action*="nightly"] button`)
	// 5. A limit with a line behind it.
	for i := range 3 {
		b.submit("bob", fmt.Sprint("crawl-", i), "crawl", "")
	}
	b.goTo("/ui/held")
	b.until("limit on kind \"crawl\"")
	b.has("1 run at once; 1 run now")
	// 6. A run that goes on too long: what it does, and its end.
	b.goTo("/ui/tasks?status=in_progress")
	b.follow("crawl-")
	b.until("3 of 10")
	b.follow("Cancel")
	b.run(chromedp.SendKeys("input[name=name]", value[string](b, `document.querySelector("main code").textContent`), chromedp.ByQuery))
	b.press("form.stack button")
	b.has("Cancelled.")
	// 7. A provider that sends runs away: each comes back by itself, and its page says when.
	b.submit("cleo", "answer", "model", "")
	b.goTo("/ui/task?agent=cleo&id=answer")
	b.until("It is not due until")
	b.has("model")
	// 8. A person who was not asked in time: what is asked, since when, until when, and the answer.
	b.submit("finn", "refund-7", "refund", `,"payload":{"order":"A-7"}`)
	b.goTo("/ui/approvals")
	b.until("Refund 40 EUR to Bob?")
	b.has("refund-7", "closes in 23 h")
	b.press(`form.answer button[value=approve]`)
	b.goTo("/ui/task?agent=finn&id=refund-7")
	b.until("It completed at")
}

// phone does the same from a bus: what is wrong, the task, and the answer, by one thumb.
func phone(b *tab) {
	b.run(chromedp.EmulateViewport(390, 844))
	b.submit("finn", "refund-8", "refund", "")
	b.submit("ann", "letter", "translate", "")
	b.submit("ann", "deploy-1", "deploy", "")
	wide := func() {
		b.Helper()
		assert.LessOrEqual(b, value[int](b, "document.documentElement.scrollWidth"), 390, value[string](b, "location.pathname"))
	}
	b.goTo("/ui")
	b.until("translate (1)")
	wide()
	b.follow("Approvals")
	b.until("Refund 40 EUR to Bob?")
	wide()
	high := value[float64](b, `document.querySelector("button[value=approve]").getBoundingClientRect().bottom`)
	assert.Less(b, high, 844.0, "the answer is in view without scrolling")
	b.press(`form.answer button[value=approve]`)
	b.died(1)
	b.follow("Dead")
	b.has("no module named v2")
	wide()
	b.follow("See them")
	b.follow("deploy-1")
	b.has("It failed at")
	wide()
	b.follow("Charts")
	b.has("Runs", "−45 min")
	wide()
	b.follow("7 days")
	b.has("−6 d")
	wide()
	b.run(chromedp.Click("summary", chromedp.ByQuery))
	b.has("Since")
	wide()
	b.goTo("/ui/find?q=" + url.QueryEscape("finn/refund-8"))
	b.until("It completed at")
	wide()
}
