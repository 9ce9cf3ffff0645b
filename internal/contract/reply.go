package contract

// Replies: the answer of a server or a function, by the words of HTTP, and the outcome of its run.

import (
	"bytes"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/seed-6f6f2c11/duly/core"
)

// Bounds of an answer.
// A receiver may ask for a pause, and not for a year of it.
const (
	mostRetryAfter  = 24 * time.Hour
	MostErrorAnswer = 300 // bytes of an answer that go into the error
)

// Reply is the answer of a server, or of a function that answers as one.
type Reply struct {
	From   string // begins its errors: webhook
	Status int
	Header http.Header
	Body   []byte // its beginning

	Hidden []string // no error may show these parts of the body
}

// OK reports whether it is a success.
func (r *Reply) OK() bool { return r.Status >= 200 && r.Status < 300 }

// Outcome turns a reply into the outcome of the run.
// 2xx is a success, and each other class has its own meaning: see the comment of package webhook.
func (r *Reply) Outcome(t *core.RunInfo, now time.Time) error {
	if r.OK() {
		return r.succeeded(t)
	}
	err := r.Refused(now)
	if used := r.Header.Get(Prefix + Usage); used != "" { // it was spent with any answer
		err = errors.Join(err, Use(t, []byte(used)))
	}
	return err
}

// Err is a reply that is no success, as an error: its status and the beginning of its body.
func (r *Reply) Err() error {
	err := fmt.Errorf("%s: %d %s", r.From, r.Status, http.StatusText(r.Status))
	body := r.Body
	for _, secret := range r.Hidden { // before the body is cut: half a secret is still one
		body = bytes.ReplaceAll(body, []byte(secret), []byte("***"))
	}
	if text := strings.TrimSpace(Text(body[:min(len(body), MostErrorAnswer)])); text != "" {
		err = fmt.Errorf("%w: %s", err, text)
	}
	return err
}

// throttledFor is how long a call waits that a vendor has refused as one too many, without a word for how long.
const throttledFor = time.Second

// Throttled is the error for a call that a vendor has refused as one too many: nothing has run, so no attempt is charged.
func (r *Reply) Throttled(now time.Time) error {
	at, ok := RetryAfter(r.Header.Get("Retry-After"), now)
	if !ok {
		at = now.Add(throttledFor)
	}
	return core.RetryAfter(at, r.Err())
}

// Refused is the error for a reply that is no success.
func (r *Reply) Refused(now time.Time) error {
	status, err := r.Status, r.Err()
	// In the order of the table in the comment of package webhook.
	switch {
	case status < 400:
		return core.SkipRetry(fmt.Errorf("%w: redirects are not followed; set the URL that it leads to", err))
	case status == http.StatusGone:
		return core.Cancel(err)
	case status >= 500 || status == http.StatusRequestTimeout || status == http.StatusTooEarly || status == http.StatusTooManyRequests:
		if at, ok := RetryAfter(r.Header.Get("Retry-After"), now); ok {
			return core.RetryAfter(at, err)
		}
		return err
	default:
		return core.SkipRetry(err)
	}
}

// succeeded is the outcome of a run whose answer is a success: what its headers say, or its result.
// Its mistakes are final: the receiver has done the work.
func (r *Reply) succeeded(t *core.RunInfo) error {
	steering := NewSteering(t)
	keeps := false // the body is a checkpoint, and no result
	for _, name := range r.Steers() {
		value := r.Header.Get(Prefix + name)
		if name == Yield || name == Await {
			value, keeps = value+" "+string(r.Body), true
		}
		if err := steering.Say(name, value); err != nil {
			return core.SkipRetry(fmt.Errorf("%s: %w", r.From, err)) // its work is done: doing it again would not mend that
		}
	}
	if keeps {
		return steering.Outcome()
	}
	if err := Keep(t, r.Body); err != nil {
		return core.SkipRetry(errors.Join(errors.New(r.From+": the answer cannot be kept"), err))
	}
	return steering.Outcome()
}

// Steers are the names of the headers that are about the run, without their prefix.
// Sorted, so that several of them give the same error each time.
func (r *Reply) Steers() []string {
	var names []string
	for name := range r.Header {
		if rest, ok := strings.CutPrefix(strings.ToLower(name), Prefix); ok {
			names = append(names, rest)
		}
	}
	slices.Sort(names)
	return names
}

// RetryAfter reads a Retry-After header: seconds or a date.
func RetryAfter(value string, now time.Time) (time.Time, bool) {
	at, err := http.ParseTime(value)
	if seconds, bad := strconv.ParseUint(value, 10, 32); bad == nil {
		at, err = now.Add(time.Duration(seconds)*time.Second), nil
	}
	if latest := now.Add(mostRetryAfter); at.After(latest) {
		at = latest
	}
	return at, err == nil
}
