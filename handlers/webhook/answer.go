package webhook

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
	"github.com/seed-6f6f2c11/duly/internal/contract"
)

// Bounds of an answer.
// A receiver may ask for a pause, and not for a year of it.
const (
	mostRetryAfter  = 24 * time.Hour
	mostErrorAnswer = 300 // bytes of an answer that go into the error
)

// answer is what a server has said.
type answer struct {
	status int
	header http.Header
	body   []byte // its beginning

	hidden []string // what no error may show of the body
}

// outcome turns an answer into the outcome of the run.
// 2xx is a success, and each other class has its own meaning: see the package comment.
func outcome(t *core.RunInfo, said answer, now time.Time) error {
	if said.status >= 200 && said.status < 300 {
		return succeeded(t, said.header, said.body)
	}
	err := refused(said, now)
	if used := said.header.Get(contract.Prefix + contract.Usage); used != "" { // it was spent with any answer
		err = errors.Join(err, contract.Use(t, []byte(used)))
	}
	return err
}

// err is an answer that is no success, as an error: its status and the beginning of its body.
func (said answer) err() error {
	err := fmt.Errorf("webhook: %d %s", said.status, http.StatusText(said.status))
	body := said.body
	for _, secret := range said.hidden { // before the body is cut: half a secret is still one
		body = bytes.ReplaceAll(body, []byte(secret), []byte("***"))
	}
	if text := strings.TrimSpace(contract.Text(body[:min(len(body), mostErrorAnswer)])); text != "" {
		err = fmt.Errorf("%w: %s", err, text)
	}
	return err
}

// refused is the error for an answer that is no success.
func refused(said answer, now time.Time) error {
	status, err := said.status, said.err()
	// In the order of the table in the package comment.
	switch {
	case status < 400:
		return core.SkipRetry(fmt.Errorf("%w: redirects are not followed; set the URL that it leads to", err))
	case status == http.StatusGone:
		return core.Cancel(err)
	case status >= 500 || status == http.StatusRequestTimeout || status == http.StatusTooEarly || status == http.StatusTooManyRequests:
		if at, ok := retryAfter(said.header.Get("Retry-After"), now); ok {
			return core.RetryAfter(at, err)
		}
		return err
	default:
		return core.SkipRetry(err)
	}
}

// succeeded is the outcome of a run whose answer is a success: what its headers say, or its result.
// Its mistakes are final: the receiver has done the work.
func succeeded(t *core.RunInfo, header http.Header, body []byte) error {
	steering := contract.NewSteering(t)
	keeps := false // the body is a checkpoint, and no result
	for _, name := range steers(header) {
		value := header.Get(contract.Prefix + name)
		if name == contract.Yield || name == contract.Await {
			value, keeps = value+" "+string(body), true
		}
		if err := steering.Say(name, value); err != nil {
			return core.SkipRetry(fmt.Errorf("webhook: %w", err)) // its work is done: doing it again would not mend that
		}
	}
	if keeps {
		return steering.Outcome()
	}
	if err := contract.Keep(t, body); err != nil {
		return core.SkipRetry(errors.Join(errors.New("webhook: the answer cannot be kept"), err))
	}
	return steering.Outcome()
}

// steers are the names of the headers that are about the run, without their prefix.
// Sorted, so that several of them give the same error each time.
func steers(header http.Header) []string {
	var names []string
	for name := range header {
		if rest, ok := strings.CutPrefix(strings.ToLower(name), contract.Prefix); ok {
			names = append(names, rest)
		}
	}
	slices.Sort(names)
	return names
}

// retryAfter reads a Retry-After header: seconds or a date.
func retryAfter(value string, now time.Time) (time.Time, bool) {
	at, err := http.ParseTime(value)
	if seconds, bad := strconv.ParseUint(value, 10, 32); bad == nil {
		at, err = now.Add(time.Duration(seconds)*time.Second), nil
	}
	if latest := now.Add(mostRetryAfter); at.After(latest) {
		at = latest
	}
	return at, err == nil
}
