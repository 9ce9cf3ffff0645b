package memos

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"math"
	"net/http"
	"net/url"
	"os"
	"strconv"
	"time"

	"github.com/seed-6f6f2c11/duly/adapters/internal/problem"
	"github.com/seed-6f6f2c11/duly/adapters/internal/requestbody"
	"github.com/seed-6f6f2c11/duly/core"
	"github.com/seed-6f6f2c11/duly/core/inspect"
)

// Waits for a user to be idle, answered at the end or streamed. MemOS's clients hold them open for minutes: each
// costs a share of a look, and ends with its client or its server.

// Bounds of a wait for a user to be idle. The defaults are those of MemOS; the shortest poll and the longest wait are ours, as the
// client chooses both and each look costs the store something.
// A poll of 0 would be a loop over the store.
const (
	defaultWait  = 120 * time.Second
	defaultPoll  = 500 * time.Millisecond
	shortestPoll = 50 * time.Millisecond
	longestWait  = time.Hour

	sendTimeout = 10 * time.Second // for one event, or for the answer after a wait
)

// waiting is a wait for the tasks of a user to end.
// It lives for one request.
type waiting struct {
	a             *api
	agent         string
	timeout, poll time.Duration
	begun         time.Time
	seen          time.Time // when the look was begun that it knows of
	leave         func()    // ends it
}

// newWait reads what a request waits for. It reads and forgets its body, which may be anything: only then is it noticed that
// the client has gone away.
func (a *api) newWait(r *http.Request) (*waiting, error) {
	agent, err := a.user(r, "user_name")
	if err != nil {
		return nil, err
	}
	if _, err := io.Copy(io.Discard, r.Body); err != nil {
		return nil, requestbody.Problem(err)
	}
	w := &waiting{a: a, agent: agent, begun: a.config.Clock.Now()}
	if w.timeout, err = seconds(r.URL.Query(), "timeout_seconds", defaultWait, 0); err != nil {
		return nil, err
	}
	if w.poll, err = seconds(r.URL.Query(), "poll_interval", defaultPoll, shortestPoll); err != nil {
		return nil, err
	}
	// After everything that can be wrong with the request: a refused one takes no place.
	leave, err := a.waits.Enter(a.host.Caller(r), a.config.MaxWaits)
	if err != nil {
		return nil, err
	}
	forget := a.idle.use(agent, a.config.Clock)
	w.leave = func() {
		forget()
		leave()
	}
	return w, nil
}

// seconds is a parameter in seconds, with fractions. What is too large becomes the
// largest wait, as MemOS has no bound.
func seconds(q url.Values, name string, otherwise, least time.Duration) (time.Duration, error) {
	text := q.Get(name)
	if text == "" {
		return otherwise, nil
	}
	n, err := strconv.ParseFloat(text, 64)
	if err != nil || math.IsNaN(n) || n < 0 {
		return 0, refuse(http.StatusUnprocessableEntity, "%s: Input should be a number of seconds from 0 on", name)
	}
	return max(time.Duration(min(n, longestWait.Seconds())*float64(time.Second)), least), nil
}

// longestCount is how many pages of tasks are counted at most once one is active: the question is whether the user is idle, and
// that is answered by then.
// A page has up to a thousand tasks, of which recurring ones do not count.
const longestCount = 8

// count is how many tasks of the user have not ended. A recurring task counts while it runs, as it never ends. For a user with very
// many it counts the first thousand or so: the waiting client only needs to know that the user is not idle.
func (w *waiting) count(ctx context.Context) (int, error) {
	n := 0
	l := core.List{Agent: w.agent, Status: []core.Status{core.StatusWaiting, core.StatusInProgress}, Limit: inspect.MaxPage}
	for pages := 1; ; pages++ {
		tasks, next, err := w.a.scheduler.Tasks(ctx, l)
		// MemOS would answer that such a user is idle.
		if nowhere(err) { // an agent that cannot exist has none
			return 0, nil
		}
		if err != nil {
			return 0, err
		}
		for i := range tasks {
			if !tasks[i].Recurring() || tasks[i].Status == core.StatusInProgress {
				n++
			}
		}
		if l.Cursor = next; next == "" || n >= inspect.MaxPage || n > 0 && pages >= longestCount {
			return n, nil
		}
	}
}

// idleLook is how many tasks of a user had not ended. It is shared and must not be changed.
type idleLook struct{ active int }

// active is how many tasks of the user have not ended, as of a look that some request has taken since this one came, and that is
// not much older than its poll interval. over says that the wait has ended, and that n may be older.
// Two requests that poll the same user at the same pace see the same looks.
func (w *waiting) active(ctx context.Context) (n int, over bool, err error) {
	// The first look has to be new: what was seen before the request came
	// says nothing of what it waits for.
	since := w.begun
	if !w.seen.IsZero() {
		since = w.seen.Add(1)
		if recent := w.a.config.Clock.Now().Add(-w.poll / 2); recent.After(since) {
			since = recent
		}
	}
	seen, begun, ok, err := w.a.idle.see(ctx, w.agent, seeing[*idleLook]{
		clock: w.a.config.Clock, since: since,
		pause: func(d time.Duration) bool { return w.sleep(ctx, d) },
		look: func() (*idleLook, error) {
			n, err := w.count(ctx)
			return &idleLook{n}, err
		},
	})
	// begun is zero if nothing was seen.
	w.seen = begun
	if seen != nil { // nothing was seen yet if the wait was over before
		n = seen.active
	}
	return n, !ok, err
}

// elapsed is how long the request has waited, in seconds, to the millisecond.
// MemOS shows it as a number of seconds, with three decimals.
func (w *waiting) elapsed() float64 {
	return math.Round(w.a.config.Clock.Now().Sub(w.begun).Seconds()*1000) / 1000
}

// next waits for the time of the next look; false if the wait is over.
func (w *waiting) next(ctx context.Context) bool { return w.sleep(ctx, w.poll) }

// sleep waits, at most until the wait is over: then it is false. It is false too once the server shuts down: another server
// answers the client's next request.
func (w *waiting) sleep(ctx context.Context, d time.Duration) bool {
	left := w.timeout - w.a.config.Clock.Now().Sub(w.begun)
	if left <= 0 {
		return false
	}
	done := make(chan struct{})
	// The earlier one of the next look and the timeout.
	stop := w.a.config.Clock.AfterFunc(min(d, left), func() { close(done) })
	defer stop()
	select {
	case <-done:
		return true
	case <-w.a.config.Stopping:
		return false
	case <-ctx.Done():
		return false
	}
}

// wait answers when a user has nothing left to run, or at the timeout, which may be later than the server's
// WriteTimeout.
func (a *api) wait(out http.ResponseWriter, r *http.Request) {
	w, err := a.newWait(r)
	if err != nil {
		a.host.Refuse(out, r, err)
		return
	}
	defer w.leave()
	// A server's own WriteTimeout would end the wait.
	_ = http.NewResponseController(out).SetWriteDeadline(w.begun.Add(w.timeout + sendTimeout)) // not every writer has one
	body, err := w.untilIdle(r)
	if err != nil {
		a.host.Refuse(out, r, a.inWords(r, err, http.StatusInternalServerError, "Failed while waiting for scheduler"))
		return
	}
	a.host.Answer(out, r, http.StatusOK, body)
}

// untilIdle waits, and is what is answered then.
func (w *waiting) untilIdle(r *http.Request) (any, error) {
	for {
		n, over, err := w.active(r.Context())
		if err != nil {
			return nil, err
		}
		// Active, and no time left: that is a timeout, as MemOS has it.
		over = over || n > 0 && !w.next(r.Context())
		if n > 0 && !over {
			continue
		}
		message := "idle"
		if over {
			message = "timeout"
		}
		return struct {
			Message string `json:"message"`
			Data    any    `json:"data"`
		}{message, struct {
			Running  int     `json:"running_tasks"`
			Waited   float64 `json:"waited_seconds"`
			TimedOut bool    `json:"timed_out"`
			UserName string  `json:"user_name"`
		}{n, w.elapsed(), over, w.agent}}, nil
	}
}

// frame is one event of a streamed wait.
// Its fields are MemOS's; timed_out is only in the last one.
type frame struct {
	UserName string  `json:"user_name"`
	Active   int     `json:"active_tasks"`
	Elapsed  float64 `json:"elapsed_seconds"`
	Status   string  `json:"status"`
	Instance string  `json:"instance_id"`
	TimedOut bool    `json:"timed_out,omitempty"`
}

// waitStream streams how many active tasks a user has, until none is left or until the timeout.
func (a *api) waitStream(out http.ResponseWriter, r *http.Request) {
	w, err := a.newWait(r)
	if err != nil {
		a.host.Refuse(out, r, err)
		return
	}
	defer w.leave()
	host, _ := os.Hostname() // it is for people
	out.Header().Set("Content-Type", "text/event-stream")
	for {
		n, over, err := w.active(r.Context())
		// The status is 200 by now, so the error is an event.
		if err != nil {
			a.host.Failed(r, err)
			_ = a.frame(out, map[string]string{ // the answer has begun
				"status": "error", "detail": "stream_failed", "exception": problem.Of(err).Detail, "user_name": w.agent,
			})
			return
		}
		f := frame{UserName: w.agent, Active: n, Elapsed: w.elapsed(), Status: "running", Instance: fmt.Sprintf("%s-%d", host, os.Getpid())}
		if n == 0 && !over {
			f.Status = "idle"
		}
		// Idle ends the stream, as does a client that has gone.
		if !over && (a.frame(out, f) != nil || n == 0) {
			return
		}
		if over || !w.next(r.Context()) {
			f.Status, f.TimedOut, f.Elapsed = "timeout", true, w.elapsed()
			_ = a.frame(out, f) // the last one
			return
		}
	}
}

// frame sends one event.
func (a *api) frame(out http.ResponseWriter, v any) error {
	data, err := json.Marshal(v)
	if err != nil {
		return err
	}
	// Each event gets a deadline of its own, as the stream as a whole has none.
	control := http.NewResponseController(out)
	_ = control.SetWriteDeadline(a.config.Clock.Now().Add(sendTimeout)) // not every writer has one
	if _, err := fmt.Fprintf(out, "data: %s\n\n", data); err != nil {
		return err
	}
	return control.Flush()
}
