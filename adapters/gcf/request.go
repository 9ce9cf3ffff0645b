package gcf

import (
	"bytes"
	"io"
	"log/slog"
	"mime"
	"net/http"
	"strings"

	cehttp "github.com/cloudevents/sdk-go/v2/protocol/http"

	"github.com/seed-6f6f2c11/duly/adapters/internal/problem"
	"github.com/seed-6f6f2c11/duly/adapters/internal/requestbody"
	"github.com/seed-6f6f2c11/duly/adapters/internal/strictjson"
	"github.com/seed-6f6f2c11/duly/adapters/internal/trigger"
)

// HTTP requests: who sent one, and which part of the function answers it.

// sender is who sent a request.
type sender int

const (
	others        sender = iota // whom Config.HTTP serves
	fromScheduler               // Cloud Scheduler, or Cloud Tasks
	fromPubSub                  // a push of the bare data, with the metadata in headers
	fromEventarc                // a CloudEvent
	fromRoot                    // a push that wraps a message, or a request for Config.HTTP: the body tells
)

// The headers that senders add.
// Google sets them on the way in, but any client that reaches the service can send them too.
const (
	schedulerHeader    = "X-Cloudscheduler"
	jobHeader          = "X-Cloudscheduler-Jobname"
	timeHeader         = "X-Cloudscheduler-Scheduletime"
	queueHeader        = "X-Cloudtasks-Queuename"
	messageHeader      = "X-Goog-Pubsub-Message-Id"
	subscriptionHeader = "X-Goog-Pubsub-Subscription-Name"
	eventHeader        = "Ce-Specversion"
)

// sniff finds out by the headers who sent a request. They prove nothing: Config.Verify does.
func sniff(r *http.Request) sender {
	media, _, _ := mime.ParseMediaType(r.Header.Get("Content-Type"))
	switch {
	case strings.EqualFold(r.Header.Get(schedulerHeader), "true"), r.Header.Get(jobHeader) != "", r.Header.Get(queueHeader) != "":
		return fromScheduler
	// Every push and every event is a POST, so anything else is for the API.
	case r.Method != http.MethodPost:
		return others
	case r.Header.Get(messageHeader) != "":
		return fromPubSub
	case r.Header.Get(eventHeader) != "", media == "application/cloudevents+json":
		return fromEventarc
	case media == "application/json" && (r.URL.Path == "/" || r.URL.Path == ""):
		return fromRoot
	default:
		return others
	}
}

// ServeHTTP answers a request: the HTTP function. What it claims it runs and settles, or releases, before its deadline.
func (f *Function) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	ctx, end, err := f.begin(r.Context())
	if err != nil {
		_ = problem.Of(err).Write(w)
		return
	}
	defer end()
	r = r.WithContext(ctx)
	from := sniff(r)
	// It has its own credentials, so it is not verified here.
	if from == others {
		f.forward(w, r)
		return
	}
	var push *pushed
	if from == fromRoot { // not routed yet: the handler that answers it verifies it
		body, err := f.body(w, r)
		if err != nil {
			if f.config.Verify(r) != nil { // too large to tell whose it is: for Config.HTTP then
				from = others
			}
			f.fail(w, r, from, err)
			return
		}
		// JSON to "/" that is no push belongs to the API, which reads the body from its beginning.
		if push = readPush(body); push == nil {
			r.Body = io.NopCloser(bytes.NewReader(body))
			f.forward(w, r)
			return
		}
	}
	// Before anything is done with the body, and before the client learns of its mistakes.
	if err := f.config.Verify(r); err != nil {
		f.config.Logger.LogAttrs(ctx, slog.LevelInfo, "a request was refused", slog.String("path", r.URL.Path), slog.Any("err", err))
		_ = errUnauthorized.Write(w)
		return
	}
	f.serve(w, r, from, push)
}

// forward leaves a request to Config.HTTP.
// It gets the margin too, so that an API call can still be answered when time is up.
func (f *Function) forward(w http.ResponseWriter, r *http.Request) {
	ctx, cancel := trigger.Soon(r.Context(), f.config.Margin)
	defer cancel()
	f.config.HTTP.ServeHTTP(w, r.WithContext(ctx))
}

// serve answers a request that was verified. Cloud Scheduler gets an error for an invalid body; the others would only
// send it again.
// A scheduler's job shows the status to a person, who can mend it.
func (f *Function) serve(w http.ResponseWriter, r *http.Request, from sender, push *pushed) {
	var body []byte
	var answer any
	var err error
	if push == nil { // else its body was read to know that it is one
		body, err = f.body(w, r)
	}
	switch {
	case err != nil:
	case from == fromScheduler:
		answer, err = f.schedule(r, body)
	case from == fromPubSub:
		answer, err = f.receive(r.Context(), newMessage(r.Header.Get(subscriptionHeader), r.Header.Get(messageHeader), body))
	case from == fromEventarc:
		answer, err = f.deliver(r, body)
	case push.err != nil:
		err = push.err
	default:
		answer, err = f.receive(r.Context(), push.message)
	}
	if err != nil {
		f.fail(w, r, from, err)
		return
	}
	writeJSON(w, http.StatusOK, answer)
}

// fail answers with an error. A message that can never be accepted is acknowledged, unless Config.DeadLetter is set.
// Acknowledging is the only way to be rid of a message without a dead-letter
// topic; the log has it at error level.
func (f *Function) fail(w http.ResponseWriter, r *http.Request, from sender, err error) {
	text := trigger.Clip(err.Error(), trigger.MaxError)
	if !final(err) || from == fromScheduler || from == others {
		f.config.Logger.LogAttrs(r.Context(), slog.LevelWarn, "a request failed", slog.String("err", text))
		_ = problem.Of(err).Write(w)
		return
	}
	f.config.Logger.LogAttrs(r.Context(), slog.LevelError, "a message was refused", slog.String("err", text))
	_, _ = io.Copy(io.Discard, io.LimitReader(r.Body, mostPushed)) // a sender that cannot send on might not see the answer
	if f.config.DeadLetter {
		_ = problem.Of(err).Write(w)
		return
	}
	writeJSON(w, http.StatusOK, map[string]string{"refused": text})
}

// mostPushed is more than any message of Pub/Sub, which are 10 MB at most, takes in base64.
const mostPushed = 16 << 20

// body reads a request's body, up to the limit of the configuration.
func (f *Function) body(w http.ResponseWriter, r *http.Request) ([]byte, error) {
	return requestbody.All(http.MaxBytesReader(w, r.Body, f.config.MaxBody))
}

// schedule is a tick of Cloud Scheduler: of all agents, or as the body says.
func (f *Function) schedule(r *http.Request, body []byte) (any, error) {
	what := strictjson.Object{}
	if len(bytes.TrimSpace(body)) > 0 {
		var err error
		if what, err = strictjson.Parse("body", body); err != nil {
			return nil, err
		}
	}
	// An empty body is an empty object: a tick of all agents.
	scope, err := trigger.ReadTick(what)
	if err != nil {
		return nil, err
	}
	job := r.Header.Get(jobHeader)
	key := trigger.OccasionOf(job, r.Header.Get(timeHeader))
	if key.Of != "" { // jobs of other projects and regions may have this name: what they ask for tells them apart
		key.Of = digest(job, r.URL.String(), string(body))
	}
	return f.run(r.Context(), scope, job, key)
}

// deliver does what the CloudEvent in a request says.
// The SDK reads both forms of a CloudEvent: in headers, and as a whole in the body.
func (f *Function) deliver(r *http.Request, body []byte) (any, error) {
	r.Body = io.NopCloser(bytes.NewReader(body))
	e, err := cehttp.NewEventFromHTTPRequest(r)
	if err != nil {
		return nil, unknown("event", "is not valid: "+err.Error())
	}
	return f.event(r.Context(), e)
}
