package lambda

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"time"

	"github.com/seed-6f6f2c11/duly/adapters/internal/problem"
	"github.com/seed-6f6f2c11/duly/adapters/internal/trigger"
	"github.com/seed-6f6f2c11/duly/core"
)

// What a function is: its settings, and the way of an event through it.

// DefaultMargin is the default of Config.Margin.
// It covers encoding the answer and the way back through the runtime.
const DefaultMargin = 250 * time.Millisecond

// MaxAnswer is the largest answer of an invocation, in bytes. Lambda takes 6 MB; what is above it would end the process.
const MaxAnswer = 6_000_000

// Config says how a [Function] works. Every zero is a good default.
type Config struct {
	// HTTP serves the requests of Function URLs, API Gateway and load balancers, usually httpadapter.New. Without it they are
	// answered with 404. [Caller] returns who signed a request.
	HTTP http.Handler
	// RunSubmitted runs, after the tasks of an SQS event were submitted, what is due for their agents. Without it they
	// run with the next tick.
	RunSubmitted bool
	// AlarmQueue is the ARN of the SQS queue that adapters/alarm/sqs sends to: its messages are ticks, and no tasks. Alarm is that one, which a
	// message that comes early is handed back to. Both or neither.
	AlarmQueue string
	Alarm      core.Alarm
	// Margin is how long before the deadline of the invocation a submit or a request is cancelled, so that it can still be
	// answered: DefaultMargin if zero. Ticks keep core's Config.Margin.
	Margin time.Duration
	// Logger gets a line for each tick, with the runs that failed, and for each SQS record that failed. Nothing is logged
	// if nil.
	Logger *slog.Logger
	// Metrics is the name of the function if the line of each tick is to be read by CloudWatch, as its embedded metric format: then
	// it has [MetricOldestDue], under the dimension "function_name" in the namespace [MetricNamespace]. Logger has to write JSON.
	Metrics string
}

// Function answers the events of a Lambda function. It is safe for concurrent use, has no goroutines of its own, and leaves
// none behind when Invoke returns, except for handlers that ignore their context.
// An environment handles one event at a time, but a program may call it as it likes.
type Function struct {
	scheduler *core.Scheduler
	config    Config
	runner    trigger.Runner
}

// New makes a function for a scheduler. It fails if a field of config makes no sense, naming it.
func New(s *core.Scheduler, config Config) (*Function, error) {
	if s == nil {
		return nil, errors.New("lambda: a scheduler is required")
	}
	if config.Margin < 0 {
		return nil, fmt.Errorf("lambda: Margin must not be negative, got %s", config.Margin)
	}
	if (config.AlarmQueue == "") != (config.Alarm == nil) {
		return nil, errors.New("lambda: AlarmQueue and Alarm must be given together, or neither")
	}
	config.Margin = cmp.Or(config.Margin, DefaultMargin)
	if config.HTTP == nil {
		// A client may still call the function's URL, and gets an answer.
		config.HTTP = noHTTP
	}
	if config.Logger == nil {
		config.Logger = slog.New(slog.DiscardHandler)
	}
	f := &Function{scheduler: s, config: config, runner: trigger.Runner{Scheduler: s, Logger: config.Logger}}
	if config.Metrics != "" {
		f.runner.Also = f.figures
	}
	return f, nil
}

// noHTTP answers requests to a function that serves none.
var noHTTP = http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
	_ = problem.New(problem.CodeNoRoute, "this function serves no HTTP requests").Write(w)
})

// Invoke answers one event, given as JSON. What it claims it runs and settles, or releases, before the deadline of ctx
// less core's Config.Margin; then nothing is left under lease.
//
// Handlers of tasks that fail are part of the answer, not an error: their tasks are tried again by themselves. An error
// means that the event made no sense (*[UnknownEventError], *[core.InvalidError]) or that the store failed, and Lambda may
// send the event again.
func (f *Function) Invoke(ctx context.Context, event json.RawMessage) (json.RawMessage, error) {
	answer, err := f.answer(ctx, event)
	f.scheduler.FlushEvents(ctx) // without an event there may be no processor
	return answer, err
}

// answer is Invoke without the flush of events.
func (f *Function) answer(ctx context.Context, event json.RawMessage) (json.RawMessage, error) {
	o, err := parse(event)
	if err != nil {
		return nil, err
	}
	// Each answers in the form that its sender reads.
	switch source := sniff(o); source {
	case fromRule, fromScheduler:
		return f.scheduled(ctx, o)
	case fromTick:
		return f.tick(ctx, o)
	case fromSQS:
		if f.rings(o) {
			return f.wake(ctx, o)
		}
		return f.receive(ctx, o)
	case fromALB, fromURL, fromGatewayV1, fromGatewayV2:
		return f.serve(ctx, source, o)
	default:
		return nil, unknown(o)
	}
}
