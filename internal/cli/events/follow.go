// Package events shows what happens to tasks: in the log of a process, and as duly events follows a server or a store.
package events

// The command events, as far as it follows a server.

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"mime"
	"net/http"
	"net/url"
	"strings"
	"sync/atomic"
	"time"

	"github.com/spf13/cobra"

	"github.com/seed-6f6f2c11/duly/core"
	"github.com/seed-6f6f2c11/duly/internal/cli/command"
	"github.com/seed-6f6f2c11/duly/internal/cli/exit"
	"github.com/seed-6f6f2c11/duly/internal/cli/folder"
)

// Command follows the events of all processes of a store: from now on, or after an event that the store still keeps.
func Command(o *command.Options) *cobra.Command {
	f := &follower{o: o}
	cmd := command.New("events", "Stream the task events of all processes, from the store or from a server",
		"  duly events --redis redis://127.0.0.1:6379/0\n  duly events --server https://duly.example --agent ada --json     # with its token in $DULY_TOKEN\n"+
			"  duly events --since-id 1767366245000-7     # go on behind an event\n  duly events --count 5 --for 10s --json     # five events, or those of ten seconds",
		func(cmd *cobra.Command, _ []string) error {
			ctx, cancel := f.bounded(cmd.Context())
			defer cancel()
			at, err := o.Place(ctx)
			if err != nil {
				return err
			}
			if at.Server.URL == "" {
				c, err := command.LoadFile(ctx, o)
				if err != nil {
					return err
				}
				if c.Redis.URL != "" {
					return f.listen(ctx, c)
				}
				if dir, in := strings.CutPrefix(c.Store, folder.Scheme); in { // a command that opens it keeps daemons out
					return exit.Misuse("start duly daemon, or name a server with --server", "no daemon has %s open, so that nothing happens there", dir)
				}
				at.Server.URL = command.DefaultServer // tasks in memory are those of a daemon
				at.UseToken(o)
			}
			f.at = at
			return f.follow(ctx)
		})
	flags := cmd.Flags()
	flags.StringVar(&f.agent, "agent", "", "only events of this agent")
	flags.StringVar(&f.kind, "kind", "", "only events of this kind")
	flags.StringVar(&f.since, "since-id", "", "begin behind this event, its event_id in --json; events are kept for an hour, while somebody listens")
	command.DurationVar(flags, &f.within, "for", 0, "end after this long (default: with Ctrl-C)")
	flags.BoolVar(&f.ce, "cloudevents", false, "each event as one of CloudEvents, a line of JSON")
	flags.IntVar(&f.count, "count", 0, "end after so many events")
	return o.WithJSON(cmd)
}

// errEnough ends the stream of a follower that has printed as many events as it is to.
var errEnough = errors.New("enough events")

// Ends calls ended with the agent of each run that ends, and with an empty one once the stream has begun, until ctx is done. It is false if there is
// nothing to follow: what is in a folder without a daemon does not run.
func Ends(ctx context.Context, o *command.Options, at command.Place, ended func(agent string)) bool {
	f := &follower{o: o, at: at, ended: ended}
	if at.Server.URL != "" {
		go func() { _ = f.follow(ctx) }()
		return true
	}
	c, err := command.LoadFile(ctx, o)
	if err != nil || c.Redis.URL == "" {
		return false
	}
	go func() { _ = f.listen(ctx, c) }()
	return true
}

// bounded is the context of a follower, which ends after its time if it has one.
func (f *follower) bounded(ctx context.Context) (context.Context, context.CancelFunc) {
	if f.within > 0 {
		return context.WithTimeout(ctx, f.within)
	}
	return context.WithCancel(ctx)
}

// How long a server may take to begin its answer, and may be silent after that: it sends something every 15 s.
// Three heartbeats may be lost before the connection counts as dead.
const (
	answerWithin = 10 * time.Second
	silentFor    = 45 * time.Second
)

// mostLine is how long a line of the stream may be: more than any event.
const mostLine = 1 << 20

// errSilent is why a stream is given up that brings nothing more.
var errSilent = errors.New("the server has sent nothing for " + silentFor.String() + ", not even a heartbeat")

// follower reads the stream of events of a server.
// It lives for one command, and is used by one goroutine but for the timer of read.
type follower struct {
	o           *command.Options
	at          command.Place
	agent, kind string
	since, last string // the event id to begin after, and the id of the last event received
	// within is after how long it ends, and count after how many events, printed of which are; zero for never.
	within         time.Duration
	count, printed int
	ce             bool // each event is printed as one of CloudEvents
	// If ended is set no event is printed: it is called with the agent of each run that ends, and with an empty one once the stream has begun.
	ended func(agent string)
}

// begun says whose events are followed.
func (f *follower) begun(of string) {
	if f.ended != nil {
		f.ended("")
		return
	}
	f.o.Say("following " + of)
}

// follow prints events until ctx is done; the end of the stream is a failure.
// It fails when the stream ends by itself, so that a script which depends on it notices.
func (f *follower) follow(ctx context.Context) error {
	r, err := f.request(ctx)
	if err != nil {
		return err
	}
	reading, giveUp := context.WithCancel(ctx)
	defer giveUp()
	// No timeout for the answer as a whole: a stream has no end. What may not take long is to begin it.
	transport := f.at.Server.Transport(answerWithin)
	transport.ResponseHeaderTimeout = answerWithin
	defer transport.CloseIdleConnections()
	res, err := (&http.Client{Transport: transport}).Do(r.WithContext(reading))
	// A signal during the connection is how a user changes their mind, and no error.
	if ctx.Err() != nil {
		return nil
	}
	if err != nil {
		return &exit.Failure{
			Why: fmt.Errorf("%s does not answer", r.URL.Host), Code: exit.Away,
			Todo: "start duly daemon --http there, or name another with --server",
		}
	}
	defer func() { _ = res.Body.Close() }()
	if err := isStream(res); err != nil {
		return err
	}
	at := r.URL.Host
	if f.at.Server.Socket != "" {
		at = f.at.Address()
	}
	f.begun(at)
	err = f.read(res.Body, giveUp)
	if ctx.Err() != nil || errors.Is(err, errEnough) { // the user has asked for the end
		return nil
	}
	return err
}

// isStream refuses an answer that is no stream of events.
// A proxy or another program at that address answers too, and would
// otherwise be read as an empty stream.
func isStream(res *http.Response) error {
	if res.StatusCode != http.StatusOK {
		return refusal(res)
	}
	if media, _, _ := mime.ParseMediaType(res.Header.Get("Content-Type")); media != "text/event-stream" {
		return &exit.Failure{
			Why:  fmt.Errorf("%s does not send events, but %q", res.Request.URL.Host, media),
			Todo: "name a duly daemon --http or a duly serve with --server", Code: exit.Failed,
		}
	}
	return nil
}

// read prints events until the stream ends, which giveUp makes it do when it has been silent for too long. It says why it
// ended.
func (f *follower) read(stream io.Reader, giveUp func()) error {
	// giveUp closes the connection; silent remembers why, as the error of
	// the reader is the same in any case.
	var silent atomic.Bool
	watch := time.AfterFunc(silentFor, func() {
		silent.Store(true)
		giveUp()
	})
	defer watch.Stop()
	// Each piece of data, also a heartbeat, starts the silence from the beginning.
	err := f.print(&heard{from: stream, heard: func() { watch.Reset(silentFor) }})
	known, isFailure := errors.AsType[*exit.Failure](err)
	switch {
	case isFailure:
		return known
	case errors.Is(err, errEnough):
		return err
	case silent.Load():
		return &exit.Failure{Why: errSilent, Todo: f.again("check the server, then try again"), Code: exit.Away}
	case errors.Is(err, bufio.ErrTooLong):
		return &exit.Failure{Why: errors.New("the server sent a line that is longer than any event"), Todo: "check that it is duly, of the same version", Code: exit.Failed}
	default:
		return &exit.Failure{Why: errors.New("the server ended the stream"), Todo: f.again("try again once it is back"), Code: exit.Away}
	}
}

// heard is a reader that reports each successful read.
type heard struct {
	from  io.Reader
	heard func()
}

// Read reads from the stream beneath, and reports each time that something came.
func (h *heard) Read(data []byte) (int, error) {
	n, err := h.from.Read(data)
	if n > 0 {
		h.heard()
	}
	return n, err
}

// request makes the request for the stream, with the token of the place.
func (f *follower) request(ctx context.Context) (*http.Request, error) {
	u, err := command.AddressOf(&f.at)
	if err != nil {
		return nil, err
	}
	// JoinPath keeps a path in --server, for an API that is mounted below one.
	u = u.JoinPath("v1", "events")
	query := url.Values{}
	for name, value := range map[string]string{"agent_id": f.agent, "kind": f.kind} {
		if value != "" {
			query.Set(name, value)
		}
	}
	u.RawQuery = query.Encode()
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, u.String(), nil)
	if err != nil {
		return nil, err
	}
	if f.since != "" {
		r.Header.Set("Last-Event-ID", f.since)
	}
	if token := f.at.Server.Token; token != "" {
		r.Header.Set("Authorization", "Bearer "+token)
	}
	return r, nil
}

// refusal is the failure of a request that was not answered with a stream.
// The body is read only in part: it may be a page of a proxy.
func refusal(res *http.Response) error {
	const most = 4096
	var problem struct {
		Code   core.Code
		Detail string
	}
	_ = json.NewDecoder(io.LimitReader(res.Body, most)).Decode(&problem) // if it is none, the status says enough
	f := &exit.Failure{Why: fmt.Errorf("the server says %s %s", res.Status, problem.Detail), Code: exit.OfStatus(res.StatusCode), Kind: problem.Code}
	switch {
	case res.StatusCode == http.StatusUnauthorized:
		f.Todo = "set $" + command.TokenEnv + " to one of its tokens"
	case problem.Code == "no_route" || res.StatusCode == http.StatusNotFound:
		f.Todo = "it has no event stream: name a duly daemon --http or duly serve with --server"
	}
	return f
}
