// Package apicall sends one request to an outside API: within a bounded time, retried once where that may help, with
// errors that say what to do and show no secret.
package apicall

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptrace"
	"net/url"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/seed-6f6f2c11/duly/core"
)

const (
	// longest bounds a call with both of its attempts.
	longest = 5 * time.Second
	// pause is how long the second attempt waits, unless the API asks for more.
	pause = 200 * time.Millisecond
	// mostAnswer is how much of an answer is read, and mostQuoted how much of it an error has.
	mostAnswer = 64 << 10
	mostQuoted = 300
)

// API is what is called. Its zero value calls, and explains nothing. It is safe for concurrent use.
type API struct {
	Name   string       // in errors
	Client *http.Client // one of NewClient, for all calls, if nil
	Clock  core.Clock   // core.SystemClock if nil
	// Hidden are secrets. An API may repeat what it was sent: no error shows them.
	Hidden []string
	// Todo is what to do about an answer with this status.
	Todo map[int]string
	// Reason is what an answer that is no success says; its text if nil.
	Reason func(body []byte) string
}

// keepIdle is how long a connection waits for the next call: less than servers do.
const keepIdle = 20 * time.Second

// NewClient is a client that keeps a connection between calls, of which alarms make two for each pull, and follows no redirect, which would
// take the credentials along.
func NewClient() *http.Client {
	return &http.Client{
		Transport:     &http.Transport{Proxy: http.ProxyFromEnvironment, MaxIdleConnsPerHost: 2, IdleConnTimeout: keepIdle},
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
}

// StatusError is an answer that is no success.
type StatusError struct {
	Status int
	Reason string // of at most some hundred bytes, without secrets
	name   string
	todo   string
}

// Error says who refused, why, and what to do.
func (e *StatusError) Error() string {
	text := fmt.Sprintf("%s answered %d %s", e.name, e.Status, http.StatusText(e.Status))
	if e.Reason != "" {
		text += ": " + e.Reason
	}
	if e.todo != "" {
		text += "; " + e.todo
	}
	return text
}

// Do sends the request that build makes, and returns the body of a 2xx answer. It builds the request again for each attempt, as signatures contain a time.
// It retries once after an answer of 429 or 5xx, and after a kept connection turns out closed, as a host may have been frozen for longer than the
// connection lasted. It retries nothing else: the effect of a request whose answer was lost is unknown, but an alarm may be set twice.
// Its error is a *StatusError if there was an answer.
func (a *API) Do(ctx context.Context, build func(ctx context.Context) (*http.Request, error)) ([]byte, error) {
	ctx, cancel := context.WithTimeout(ctx, longest)
	defer cancel()
	body, wait, err := a.try(ctx, build)
	if wait == 0 || !a.waits(ctx, wait) {
		return body, err
	}
	body, _, err = a.try(ctx, build)
	return body, err
}

// try sends it once. wait is how long to wait before it makes sense to try again; zero if it does not.
func (a *API) try(ctx context.Context, build func(ctx context.Context) (*http.Request, error)) (body []byte, wait time.Duration, err error) {
	r, err := build(ctx)
	if err != nil {
		return nil, 0, fmt.Errorf("%s: %w", a.Name, a.bare(err))
	}
	kept := false
	trace := &httptrace.ClientTrace{GotConn: func(c httptrace.GotConnInfo) { kept = c.Reused }}
	res, err := a.client().Do(r.WithContext(httptrace.WithClientTrace(ctx, trace)))
	if err != nil {
		if kept && ctx.Err() == nil {
			a.client().CloseIdleConnections()
			wait = time.Millisecond
		}
		return nil, wait, fmt.Errorf("call %s: %w", a.Name, a.bare(err))
	}
	defer func() { _ = res.Body.Close() }()
	body, err = io.ReadAll(io.LimitReader(res.Body, mostAnswer))
	switch {
	case res.StatusCode >= http.StatusInternalServerError || res.StatusCode == http.StatusTooManyRequests:
		wait = pause
		if seconds, bad := strconv.ParseUint(res.Header.Get("Retry-After"), 10, 16); bad == nil {
			wait = max(wait, time.Duration(seconds)*time.Second)
		}
		return nil, wait, a.refusal(res.StatusCode, body)
	case res.StatusCode < 200 || res.StatusCode > 299:
		return nil, 0, a.refusal(res.StatusCode, body)
	case err != nil:
		return nil, 0, fmt.Errorf("read the answer of %s: %w", a.Name, err)
	}
	return body, 0, nil
}

// shared keeps the connections of all APIs that have no client of their own.
var shared = sync.OnceValue(NewClient)

// client is the one to use.
func (a *API) client() *http.Client {
	if a.Client == nil {
		return shared()
	}
	return a.Client
}

// waits waits, and reports whether there is time for another attempt.
func (a *API) waits(ctx context.Context, d time.Duration) bool {
	clock := a.Clock
	if clock == nil {
		clock = core.SystemClock{}
	}
	if end, ok := ctx.Deadline(); ok && end.Sub(core.SystemClock{}.Now()) <= d { // the deadline of a context is by the machine's clock
		return false
	}
	over := make(chan struct{})
	stop := clock.AfterFunc(d, func() { close(over) })
	defer stop()
	select {
	case <-over:
		return true
	case <-ctx.Done():
		return false
	}
}

// refusal is the error for an answer.
func (a *API) refusal(status int, body []byte) error {
	reason := string(body)
	if a.Reason != nil {
		reason = a.Reason(body)
	}
	reason = strings.Join(strings.Fields(strings.ToValidUTF8(a.hide(reason), "")), " ")
	if len(reason) > mostQuoted {
		reason = strings.ToValidUTF8(reason[:mostQuoted], "") + "..."
	}
	return &StatusError{Status: status, Reason: reason, name: a.Name, todo: cmp.Or(a.Todo[status], generalTodo(status))}
}

// generalTodo is what to do about a status of any API.
func generalTodo(status int) string {
	switch {
	case status == http.StatusTooManyRequests:
		return "it was tried twice: raise the limit of the account"
	case status >= http.StatusInternalServerError:
		return "it was tried twice: see the status page of the service"
	case status >= 300 && status < 400:
		return "redirects are not followed: set the URL that it leads to"
	default:
		return ""
	}
}

// hide takes the secrets out of a text.
func (a *API) hide(text string) string {
	for _, secret := range a.Hidden {
		if secret != "" {
			text = strings.ReplaceAll(text, secret, "***")
		}
	}
	return text
}

// bare is an error without the URL, which may have a secret.
func (*API) bare(err error) error {
	if failed, ok := errors.AsType[*url.Error](err); ok {
		return failed.Err
	}
	return err
}
