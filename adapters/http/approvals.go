package http

// Approvals: addresses that let a person answer a task that waits, without a credential.

import (
	"bytes"
	"cmp"
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/seed-6f6f2c11/duly/core"
	"github.com/seed-6f6f2c11/duly/core/model"
	"github.com/seed-6f6f2c11/duly/core/store"
)

// Approvals makes addresses for people: of a page with a question and two buttons, which sends the signal that a task waits for. Anyone with an
// address may answer, once, until it ends; so send it to that person alone. Every server that serves such pages needs the same secret.
type Approvals struct {
	secret []byte
	base   string
}

// Bounds of approvals.
const (
	leastSecret    = 16
	mostQuestion   = 1000
	mostApproval   = 365 * 24 * time.Hour
	mostForm       = 4 << 10
	approvalPath   = "/v1/signed/"
	decisionField  = "decision"
	approvalSender = "approvals" // among the senders of messages
)

// NewApprovals makes addresses below a URL, such as https://duly.example, with a secret of at least 16 bytes.
func NewApprovals(base string, secret []byte) (*Approvals, error) {
	u, err := url.Parse(base)
	if err != nil || u.Scheme != "https" && u.Scheme != "http" || u.Host == "" || u.RawQuery != "" || u.Fragment != "" {
		return nil, fmt.Errorf("the base of approvals must be a URL such as https://duly.example, not %q", base)
	}
	if len(secret) < leastSecret {
		return nil, fmt.Errorf("the secret of approvals must have at least %d bytes", leastSecret)
	}
	return &Approvals{secret: secret, base: strings.TrimSuffix(base, "/")}, nil
}

// Approval is a question to a person, and how long it may be answered, from now: up to a year. Its text, of at most 1,000 bytes, is what the page
// shows. It is open while its task waits as [core.Await] describes, and never again.
type Approval struct {
	core.Question

	For time.Duration
}

// approval is an Approval as an address contains it.
type approval struct {
	Agent string      `json:"a"`
	ID    string      `json:"i"`
	Key   string      `json:"k"`
	Fence store.Fence `json:"f"`
	Text  string      `json:"q,omitempty"`
	Until int64       `json:"e"` // seconds
	Nonce string      `json:"n"`
}

// question returns its question.
func (q *approval) question() core.Question {
	return core.Question{Agent: q.Agent, ID: q.ID, Key: q.Key, Fence: q.Fence, Text: q.Text}
}

// URL makes the address of a question. now is the time that For counts from.
func (a *Approvals) URL(q Approval, now time.Time) (string, error) {
	switch {
	case q.Fence <= 0 || slices.ContainsFunc([]string{q.Agent, q.ID, q.Key}, func(id string) bool { return id == "" || len(id) > core.MaxIDLen }):
		return "", fmt.Errorf("an approval needs an agent, the id of a task and the key that it waits for, of up to %d bytes each, and the fence of the run that asks", core.MaxIDLen)
	case len(q.Text) > mostQuestion:
		return "", fmt.Errorf("the question of an approval is %d bytes long: the limit is %d", len(q.Text), mostQuestion)
	case q.For <= 0 || q.For > mostApproval:
		return "", fmt.Errorf("an approval must be open for up to %s, not for %s", mostApproval, q.For)
	}
	data, err := json.Marshal(approval{q.Agent, q.ID, q.Key, q.Fence, q.Text, now.Add(q.For).Unix(), rand.Text()})
	if err != nil {
		return "", fmt.Errorf("write the approval: %w", err)
	}
	text := base64.RawURLEncoding.EncodeToString(data)
	return a.base + approvalPath + text + "." + base64.RawURLEncoding.EncodeToString(a.sign(text)), nil
}

// sign is the signature of a text.
func (a *Approvals) sign(text string) []byte {
	mac := hmac.New(sha256.New, a.secret)
	mac.Write([]byte("duly approval " + text)) // hash.Hash never fails
	return mac.Sum(nil)
}

// errForged reports an invalid address.
var errForged = errors.New("this address is not one of ours: check that it was copied whole")

// open reads the token of an address.
func (a *Approvals) open(token string, now time.Time) (approval, error) {
	var q approval
	text, signature, _ := strings.Cut(token, ".")
	given, err := base64.RawURLEncoding.DecodeString(signature)
	if err != nil || !hmac.Equal(given, a.sign(text)) {
		return q, errForged
	}
	data, err := base64.RawURLEncoding.DecodeString(text)
	if err != nil || json.Unmarshal(data, &q) != nil {
		return q, errForged
	}
	if now.Unix() >= q.Until {
		return q, model.ErrClosed
	}
	return q, nil
}

// approve shows the question, and carries its answer out. Showing it changes nothing: programs that check mails follow links.
func (a *api) approve(w http.ResponseWriter, r *http.Request) {
	q, err := a.config.Approvals.open(r.PathValue("call"), a.config.Clock.Now())
	shown := approvalPage{Question: q.Text}
	status := http.StatusOK
	switch {
	case err != nil:
		status, shown.Said = a.unanswered(r, err)
		shown.Question = ""
	case r.Method == http.MethodPost:
		status, shown.Said = a.decide(w, r, &q)
	default:
		var t core.TaskInfo
		err := a.scheduler.Open(r.Context(), q.question())
		if err == nil {
			t, err = a.scheduler.Task(r.Context(), q.Agent, q.ID)
		}
		if err != nil {
			status, shown.Said = a.unanswered(r, err)
			break
		}
		shown = approvalPage{Question: q.Text, Agent: q.Agent, Key: q.Key, ID: t.ID, Kind: t.Kind, Payload: payloadText(t.Payload), Until: q.until(&t).UTC(), Open: true}
	}
	page(w, r, status, shown)
}

// until is until when the question can be answered: its task may wait for a shorter time than its address is good for.
func (q *approval) until(t *core.TaskInfo) time.Time {
	until := time.Unix(q.Until, 0)
	if w := t.Awaiting; w != nil && w.Fence == q.Fence && !w.Until.IsZero() && w.Until.Before(until) {
		return w.Until
	}
	return until
}

// mostPayload is how much of a payload the page shows, in bytes.
const mostPayload = 4 << 10

// payloadText is a payload as people read it, cut where it is long: who answers should know what for. It is empty if there is none.
func payloadText(payload []byte) string {
	if payload = bytes.TrimSpace(payload); bytes.Equal(payload, []byte("null")) {
		return ""
	}
	var b bytes.Buffer
	if len(payload) > mostPayload || json.Indent(&b, payload, "", "  ") != nil {
		b.Reset()
		b.Write(payload[:min(len(payload), mostPayload)])
	}
	text := strings.ToValidUTF8(b.String(), "\uFFFD")
	if len(payload) > mostPayload {
		text += "…"
	}
	return text
}

// unanswered is the answer about a question that cannot be answered.
func (a *api) unanswered(r *http.Request, err error) (status int, said string) {
	switch {
	case errors.Is(err, errForged):
		status = http.StatusNotFound
	case errors.Is(err, model.ErrClosed):
		status = http.StatusGone
	case errors.Is(err, model.ErrNotOpen):
		status = http.StatusConflict
	default:
		a.failed(r, err)
		return http.StatusServiceUnavailable, "The answer could not be taken. Try again in a moment."
	}
	return status, "Sorry, " + err.Error() + "."
}

// decide sends the answer to a question, once.
func (a *api) decide(w http.ResponseWriter, r *http.Request, q *approval) (status int, said string) {
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, mostForm))
	form, bad := url.ParseQuery(string(body))
	if err != nil || bad != nil {
		return http.StatusBadRequest, "This is no answer to the question."
	}
	decision := form.Get(decisionField)
	if len(form[decisionField]) != 1 || decision != "approve" && decision != "refuse" {
		return http.StatusBadRequest, "Choose one of the two answers."
	}
	what, receipt, err := a.scheduler.Receive(r.Context(), core.Message{
		Sender: approvalSender, ID: q.Nonce, Content: []byte(decision), Until: time.Unix(q.Until, 0), Within: time.Minute,
	})
	switch {
	case err != nil || what == core.ReceptionBusy:
		return http.StatusServiceUnavailable, "The answer could not be taken. Try again in a moment."
	case what == core.ReceptionDuplicate:
		return http.StatusOK, "Thank you: this was your answer before, too."
	case what == core.ReceptionDiffers:
		return http.StatusConflict, "The question was answered before, and otherwise. That answer stands."
	}
	err = a.scheduler.Answer(r.Context(), q.question(), json.RawMessage(fmt.Sprintf(`{"decision":%q}`, decision)), core.ByPage)
	if end := receipt.End(r.Context(), err == nil); end != nil && err == nil {
		a.failed(r, end)
	}
	if err != nil {
		return a.unanswered(r, err)
	}
	return http.StatusOK, "Thank you. Your answer was taken."
}

// approvalPage is the content of the page.
type approvalPage struct {
	Question, Agent, Key, Said string
	ID, Kind, Payload          string // of the task
	Until                      time.Time
	Open                       bool
}

// escaped is a text as HTML shows it. What turns the direction of a line shows as a sign.
var escaped = strings.NewReplacer("&", "&amp;", "<", "&lt;", ">", "&gt;", `"`, "&#34;", "'", "&#39;", "\x00", "\uFFFD",
	"\u202a", "\uFFFD", "\u202b", "\uFFFD", "\u202d", "\uFFFD", "\u202e", "\uFFFD", "\u2066", "\uFFFD", "\u2067", "\uFFFD", "\u2068", "\uFFFD")

// pageStyle is the style of the page, and pagePolicy what a browser lets the page have: this style, by its hash, and nothing else.
const pageStyle = `:root{color-scheme:light dark;--bg:#fff;--panel:#f6f8fa;--line:#d5dbe1;--text:#1b1f24;--muted:#57606a;--accent:#0b57a4;--on:#fff;--no:#9b1616}
@media(prefers-color-scheme:dark){:root{--bg:#0f1317;--panel:#171c22;--line:#2d343c;--text:#e6e9ec;--muted:#9ea8b3;--accent:#84b9f5;--on:#0f1317;--no:#ffaca5}}
*{box-sizing:border-box}
body{margin:0;min-height:100vh;background:var(--panel);color:var(--text);font:17px/1.5 system-ui,-apple-system,"Segoe UI",Roboto,sans-serif}
main{max-width:36rem;margin:0 auto;padding:8vh 1rem 2rem}
.card{background:var(--bg);border:1px solid var(--line);border-radius:12px;padding:1.5rem}
h1{font-size:1.4rem;line-height:1.3;margin:0 0 1rem;overflow-wrap:break-word}
dl{display:grid;grid-template-columns:auto 1fr;gap:.2rem 1rem;margin:0 0 1rem}
dt,.note{color:var(--muted);font-size:.87rem}
dd{margin:0;overflow-wrap:anywhere}
pre{margin:0 0 1rem;padding:.7rem .9rem;max-height:40vh;overflow:auto;background:var(--panel);border:1px solid var(--line);border-radius:8px;font:.82rem/1.45 ui-monospace,Menlo,Consolas,monospace;white-space:pre-wrap;overflow-wrap:anywhere}
form{display:flex;gap:.7rem}
button{flex:1;font:inherit;font-weight:600;padding:.6rem 1rem;border:1px solid var(--no);border-radius:8px;background:none;color:var(--no);cursor:pointer}
button[value=approve]{border-color:var(--accent);background:var(--accent);color:var(--on)}
:focus-visible{outline:3px solid var(--accent);outline-offset:2px}
.note{margin:1rem 0 0}`

var pagePolicy = sync.OnceValue(func() string {
	sum := sha256.Sum256([]byte(pageStyle))
	return "default-src 'none'; style-src 'sha256-" + base64.StdEncoding.EncodeToString(sum[:]) + "'; form-action 'self'; frame-ancestors 'none'; base-uri 'none'"
})

// html is the page. It has no script and nothing from elsewhere, and all its content is escaped. It is written by hand: a template would
// keep the linker from leaving out code that a function on AWS never calls, which is a third of it.
func (p *approvalPage) html() string {
	title := p.Question
	if title == "" && p.Open {
		title = "Agent " + p.Agent + " asks: " + p.Key
	}
	var b strings.Builder
	b.WriteString(`<!doctype html>
<html lang="en">
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="robots" content="noindex">
<title>A question</title>
<style>` + pageStyle + `</style>
<main><div class="card">
<h1>` + escaped.Replace(cmp.Or(title, "A question")) + "</h1>\n")
	if p.Said != "" {
		b.WriteString(`<p role="status">` + escaped.Replace(p.Said) + "</p>\n")
	}
	if p.Open {
		b.WriteString("<dl>")
		for _, fact := range [][2]string{{"Agent", p.Agent}, {"Task", p.ID}, {"Kind", p.Kind}} {
			b.WriteString("<dt>" + fact[0] + "</dt><dd>" + escaped.Replace(fact[1]) + "</dd>\n")
		}
		b.WriteString("</dl>\n")
		if p.Payload != "" {
			b.WriteString(`<pre tabindex="0" aria-label="Payload">` + escaped.Replace(p.Payload) + "</pre>\n")
		}
		b.WriteString(`<form method="post">
<button name="decision" value="approve">Approve</button>
<button name="decision" value="refuse">Refuse</button>
</form>
<p class="note">Open until ` + p.Until.Format("2 January 2006, 15:04 MST") + ". The first answer counts.</p>\n")
	}
	b.WriteString("</div></main>\n</html>\n")
	return b.String()
}

// page writes the page. It is never cached or framed, and browsers send its address to no other site.
func page(w http.ResponseWriter, r *http.Request, status int, p approvalPage) {
	h := w.Header()
	h.Set("Content-Type", "text/html; charset=utf-8")
	h.Set("Content-Security-Policy", pagePolicy())
	h.Set("Cache-Control", "no-store")
	h.Set("Referrer-Policy", "same-origin")
	h.Set("X-Content-Type-Options", "nosniff")
	w.WriteHeader(status)
	if r.Method != http.MethodHead {
		_, _ = io.WriteString(w, p.html()) // the client may have gone
	}
}
