package gcf

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"os"
	"strconv"
	"time"

	"github.com/seed-6f6f2c11/duly/adapters/internal/trigger"
	"github.com/seed-6f6f2c11/duly/core"
)

// What a function is: its settings, and what a request has before it is looked at.

// Defaults of Config.
// A margin that is too small loses the answer, one that is too large loses time to work.
const (
	DefaultTimeout = time.Minute
	DefaultMargin  = 250 * time.Millisecond
	DefaultMaxBody = 2 << 20
)

// Config says how a [Function] works. Every zero is a good default, except for Verify.
type Config struct {
	// Verify refuses a request by an error, which is logged and never sent to the client. It is required, as any client can send the headers of
	// Cloud Scheduler: use a check of an OIDC token (the audience and the account), or [Private] or [Invokers] if Google admits only
	// known callers. Requests for HTTP are not verified: it has tokens of its own. Nor is [Function.Event], which gets no request.
	Verify func(*http.Request) error
	// HTTP serves all other requests, usually httpadapter.New. Without it they are answered with 404.
	HTTP http.Handler
	// RunSubmitted runs, after the tasks of a message were submitted, what is due for their agents. Without it they run
	// with the next tick.
	RunSubmitted bool
	// Timeout is how long a request may take, if the environment does not say it in CLOUD_RUN_TIMEOUT_SECONDS:
	// DefaultTimeout if zero. It must not be longer than the service's own timeout.
	Timeout time.Duration
	// Margin is how long before its deadline a submit or a request for HTTP is cancelled, so that it can still be answered:
	// DefaultMargin if zero. Ticks keep core's Config.Margin.
	Margin time.Duration
	// MaxBody is the largest body of a request that is not for HTTP, in bytes: DefaultMaxBody if zero. In a push the message
	// is a third longer than by itself. A message above it makes no sense; at "/" all JSON above it from a caller that Verify
	// lets in counts as one, as only its body could tell.
	MaxBody int64
	// DeadLetter answers a message that makes no sense with 400, for subscriptions with a dead-letter topic. Without it such a
	// message is logged and acknowledged, as Pub/Sub would send it for a week. One of a kind that is disabled is sent again
	// in either case.
	DeadLetter bool
	// Logger gets a line for each tick, with the runs that failed, and for what is refused. Nothing is logged if nil.
	Logger *slog.Logger
}

// withDefaults takes the timeout from the environment first: it is what the service really has.
func (c Config) withDefaults() (Config, error) {
	if text := os.Getenv(timeoutVariable); text != "" {
		seconds, err := strconv.Atoi(text)
		if err != nil || seconds <= 0 {
			return c, fmt.Errorf("gcf: %s must be a number of seconds, not %q", timeoutVariable, trigger.Clip(text, trigger.MaxName))
		}
		c.Timeout = time.Duration(seconds) * time.Second
	}
	// Zero means the default here too: an environment without the variable is not Cloud Run.
	c.Timeout = cmp.Or(c.Timeout, DefaultTimeout)
	c.Margin = cmp.Or(c.Margin, DefaultMargin)
	c.MaxBody = cmp.Or(c.MaxBody, DefaultMaxBody)
	if c.HTTP == nil {
		c.HTTP = noHTTP
	}
	if c.Logger == nil {
		c.Logger = slog.New(slog.DiscardHandler)
	}
	return c, nil
}

// timeoutVariable is set by Cloud Run functions to the timeout of the function.
const timeoutVariable = "CLOUD_RUN_TIMEOUT_SECONDS"

// validate refuses an invalid configuration. Verify has no default, as any
// default would admit callers by accident.
func (c Config) validate() error {
	switch {
	case c.Verify == nil:
		return errors.New("gcf: Verify is required: check an OIDC token, or set gcf.Private if Google refuses unknown callers")
	case c.Timeout < 0:
		return fmt.Errorf("gcf: Timeout must not be negative, got %s", c.Timeout)
	case c.Margin < 0:
		return fmt.Errorf("gcf: Margin must not be negative, got %s", c.Margin)
	case c.MaxBody < 0:
		return fmt.Errorf("gcf: MaxBody must not be negative, got %d", c.MaxBody)
	}
	return nil
}

// Function answers the requests and events of a function or service. It is safe for concurrent use, has no goroutines of its
// own, and leaves none behind when a call returns, except for handlers that ignore their context.
type Function struct {
	scheduler *core.Scheduler
	config    Config
	runner    trigger.Runner
	// flights is what Drain waits for.
	flights flights
}

// New makes a function for a scheduler. It fails if a field of config makes no sense, naming it.
func New(s *core.Scheduler, config Config) (*Function, error) {
	if s == nil {
		return nil, errors.New("gcf: a scheduler is required")
	}
	config, err := config.withDefaults()
	if err == nil {
		err = config.validate()
	}
	if err != nil {
		return nil, err
	}
	return &Function{scheduler: s, config: config, runner: trigger.Runner{Scheduler: s, Logger: config.Logger}}, nil
}

// noHTTP answers requests to a function that serves none.
var noHTTP = http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
	_ = errNoRoute.Write(w)
})

// begin starts to answer a request, in which urgent tasks start that are submitted: its context ends with the time that it may take, or with a drain.
// The end function has to be called in any case, or a drain would wait for ever.
func (f *Function) begin(ctx context.Context) (context.Context, func(), error) {
	ctx, cancel := context.WithTimeout(ctx, f.config.Timeout)
	end, err := f.flights.begin(cancel)
	if err != nil {
		cancel()
		return nil, nil, err
	}
	starts := f.scheduler.AtOnce(ctx, core.AtOnce{})
	return ctx, func() { // without a request there may be no processor
		starts()
		f.scheduler.FlushEvents(ctx)
		end()
	}, nil
}
