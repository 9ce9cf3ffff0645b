package gcf

import (
	"context"

	"github.com/cloudevents/sdk-go/v2/event"
	cehttp "github.com/cloudevents/sdk-go/v2/protocol/http"

	"github.com/seed-6f6f2c11/duly/adapters/internal/strictjson"
	"github.com/seed-6f6f2c11/duly/adapters/internal/trigger"
)

// CloudEvents, as the events SDK hands them over and as Eventarc posts them.

// published is the type of the events that contain messages of Pub/Sub.
// It is what Eventarc and Pub/Sub triggers of functions send.
const published = "google.cloud.pubsub.topic.v1.messagePublished"

// Event does what an event says: the CloudEvent function. What it claims it runs and settles, or releases, before its
// deadline.
//
// Handlers of tasks that fail are no error: their tasks are tried again by themselves. An error means that the event makes no
// sense or that the store failed, and is a Result of the CloudEvents SDK with the status that makes the sender repeat the
// latter only: nonsense is acknowledged, unless Config.DeadLetter is set.
func (f *Function) Event(ctx context.Context, e event.Event) error {
	// The lifetime of the event is its own deadline.
	ctx, cancel := detached(ctx)
	defer cancel()
	ctx, end, err := f.begin(ctx)
	if err != nil {
		return f.result(err)
	}
	defer end()
	_, err = f.event(ctx, &e)
	return f.result(err)
}

// detached is a context with the deadline of ctx that does not end with it. The SDK hands out the context of any request
// that is under way, which may end before the one that brought the event.
func detached(ctx context.Context) (context.Context, context.CancelFunc) {
	own := context.WithoutCancel(ctx)
	if deadline, ok := ctx.Deadline(); ok {
		return context.WithDeadline(own, deadline)
	}
	return context.WithCancel(own)
}

// result is an error as the SDK answers it.
// The SDK turns it into the status of the answer.
func (f *Function) result(err error) error {
	if err == nil {
		return nil
	}
	return cehttp.NewResult(f.statusOf(err), "%w", err)
}

// event does what an event says.
// It is shared by Event, which the SDK calls, and by requests that contain an event.
func (f *Function) event(ctx context.Context, e *event.Event) (any, error) {
	m, err := readEvent(e)
	if err != nil {
		return nil, err
	}
	return f.receive(ctx, m)
}

// readEvent reads what an event brings: a message of Pub/Sub in its envelope, or tasks as JSON.
func readEvent(e *event.Event) (message, error) {
	if err := e.Validate(); err != nil {
		return message{}, unknown("event", "is not valid: "+err.Error())
	}
	// Its data is the envelope of the message, the same as in a push.
	if e.Type() == published {
		o, err := strictjson.Parse("event", e.Data())
		if err != nil {
			return message{}, &UnknownEventError{Why: err}
		}
		return readWrapped(o)
	}
	if media := e.DataMediaType(); media != "application/json" && media != "text/json" {
		return message{}, unknown("datacontenttype", "must be application/json in an event of the type "+trigger.Clip(e.Type(), trigger.MaxName))
	}
	// Source and id together are unique for an event, as the specification demands.
	return message{sender: e.Source(), id: e.ID(), prefix: "event-" + digest(e.Source(), e.ID()), data: e.Data()}, nil
}
