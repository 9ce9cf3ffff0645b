package lambda

import (
	"bytes"
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"runtime/debug"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/seed-6f6f2c11/duly/adapters/internal/problem"
	"github.com/seed-6f6f2c11/duly/adapters/internal/strictjson"
	"github.com/seed-6f6f2c11/duly/adapters/internal/trigger"
	"github.com/seed-6f6f2c11/duly/core"
)

// HTTP answers. Lambda takes one piece of JSON of a bounded size, so an answer is kept in memory until it is whole:
// what is too large becomes an error that the client can read, where Lambda itself would end the process.

// serve answers the HTTP request in an event.
// It always answers, so that AWS does not repeat the event.
func (f *Function) serve(ctx context.Context, from source, o strictjson.Object) (json.RawMessage, error) {
	ctx, cancel := trigger.Soon(ctx, f.config.Margin)
	defer cancel()
	w := &answer{header: http.Header{}}
	if r, err := readRequest(ctx, from, o); err != nil {
		_ = problem.New(core.CodeInvalid, "the request cannot be read").Write(w) // into memory
	} else {
		// AWS freezes the environment once it has answered: runs that a request starts have ended by then.
		end := f.scheduler.AtOnce(ctx, core.AtOnce{})
		f.handle(w, r)
		end()
	}
	// The body may fit, and its encoding not, so both are checked.
	if !w.tooLarge {
		data, err := encodeAnswer(from, o, w)
		if err != nil || len(data) <= MaxAnswer {
			return data, err
		}
	}
	f.config.Logger.LogAttrs(ctx, slog.LevelError, "an answer was too large", slog.Int("limit", MaxAnswer))
	// The second answer is small, so it fits.
	w.reset()
	_ = problem.AnswerTooLarge(fmt.Sprintf("the answer is larger than the %d bytes that Lambda takes: ask for less at a time", MaxAnswer)).Write(w)
	return encodeAnswer(from, o, w)
}

// handle calls the handler. A panic is answered, so that it does not end the process and what others do in it.
func (f *Function) handle(w *answer, r *http.Request) {
	defer f.caught(w, r)
	f.config.HTTP.ServeHTTP(w, r)
}

// caught is deferred: it turns a panic into an answer that hides what happened.
// One request must not end the process, and with it the environment's other work.
func (f *Function) caught(w *answer, r *http.Request) {
	v := recover() //nolint:revive // it is called by the deferred function itself
	if v == nil {
		return
	}
	f.config.Logger.LogAttrs(r.Context(), slog.LevelError, "a request panicked",
		slog.Any("panic", v), slog.String("stack", string(debug.Stack())))
	w.reset()
	_ = problem.ErrInternal.Write(w)
}

// answer is the http.ResponseWriter of a request: it keeps what is written, up to the limit.
// It does not flush: the answer leaves in one piece.
type answer struct {
	header   http.Header
	sent     http.Header // as it was when the status was written; nil before
	status   int
	body     bytes.Buffer
	tooLarge bool
}

// Header is what will be sent, until the status is written.
func (w *answer) Header() http.Header { return w.header }

// WriteHeader sets the status, once. Informational ones are not sent.
func (w *answer) WriteHeader(status int) {
	if w.sent == nil && status >= http.StatusOK {
		w.status, w.sent = status, w.header.Clone()
	}
}

// A handler sees it as an error of writing, as with a client that went away.
var errTooLarge = errors.New("lambda: the answer is too large")

// Write fails when the answer cannot be sent any more, so that a handler can stop.
func (w *answer) Write(data []byte) (int, error) {
	w.WriteHeader(http.StatusOK)
	if w.tooLarge = w.tooLarge || w.body.Len()+len(data) > MaxAnswer; w.tooLarge {
		return 0, errTooLarge
	}
	// As net/http does it.
	if _, set := w.sent["Content-Type"]; !set && w.body.Len() == 0 {
		w.sent.Set("Content-Type", http.DetectContentType(data))
	}
	return w.body.Write(data)
}

// reset forgets what was written, for another answer.
func (w *answer) reset() { *w = answer{header: http.Header{}} }

// answerJSON is an HTTP answer in the forms of all senders; what one does not know is left out for it.
type answerJSON struct {
	Status      int                 `json:"statusCode"`
	Description string              `json:"statusDescription,omitempty"` // ALB
	Header      map[string]string   `json:"headers,omitempty"`
	Headers     map[string][]string `json:"multiValueHeaders,omitempty"` // API Gateway's first version, ALB
	Cookies     []string            `json:"cookies,omitempty"`           // Function URL, API Gateway's second version
	Body        string              `json:"body"`
	Base64      bool                `json:"isBase64Encoded"`
}

// encodeAnswer writes an answer as the sender of the event reads it.
func encodeAnswer(from source, o strictjson.Object, w *answer) (json.RawMessage, error) {
	w.WriteHeader(http.StatusOK)
	h := w.sent
	for _, name := range []string{"Connection", "Transfer-Encoding", "Content-Length"} {
		h.Del(name) // they are set by the service that forwards the answer
	}
	// Bytes that are no text have to be encoded, as the answer is JSON.
	a := answerJSON{Status: w.status, Body: w.body.String()}
	if !utf8.ValidString(a.Body) || h.Get("Content-Encoding") != "" {
		a.Body, a.Base64 = base64.StdEncoding.EncodeToString(w.body.Bytes()), true
	}
	switch from {
	case fromALB:
		a.Description = strings.TrimSpace(strconv.Itoa(w.status) + " " + http.StatusText(w.status))
		if o.Has("multiValueHeaders") { // as the target group is set
			a.Headers = h
		} else {
			a.Header = single(h)
		}
	case fromGatewayV1:
		a.Headers = h
	default:
		// The second version has a place for cookies of its own.
		a.Cookies = slices.Clone(h.Values("Set-Cookie"))
		h.Del("Set-Cookie")
		a.Header = single(h)
	}
	// An encoder, and not Marshal, as only that can leave HTML alone.
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false) // the answer is JSON for a machine, and would only grow
	err := e.Encode(a)
	return bytes.TrimSuffix(b.Bytes(), []byte("\n")), err
}

// single joins the values of each header. Cookies cannot be joined: where there is no other place for them the last one
// counts.
func single(h http.Header) map[string]string {
	one := make(map[string]string, len(h))
	for name, values := range h {
		one[name] = strings.Join(values, ", ")
		if name == "Set-Cookie" && len(values) > 0 {
			one[name] = values[len(values)-1]
		}
	}
	return one
}
