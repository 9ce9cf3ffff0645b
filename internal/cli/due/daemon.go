// Package due is the commands that run tasks: daemon and serve, with the API, the telemetry and the alarm of their process, and run-due and work.
package due

// The commands daemon and serve.

import (
	"cmp"
	"context"
	"errors"
	"io"
	"log/slog"
	"sync"
	"time"

	"github.com/spf13/cobra"

	"github.com/seed-6f6f2c11/duly/adapters/daemon"
	"github.com/seed-6f6f2c11/duly/adapters/memosstream"
	"github.com/seed-6f6f2c11/duly/core"
	"github.com/seed-6f6f2c11/duly/core/model"
	"github.com/seed-6f6f2c11/duly/internal/cli/command"
	"github.com/seed-6f6f2c11/duly/internal/cli/events"
	"github.com/seed-6f6f2c11/duly/internal/cli/exit"
	"github.com/seed-6f6f2c11/duly/internal/cli/linelog"
	"github.com/seed-6f6f2c11/duly/internal/cli/storage"
	"github.com/seed-6f6f2c11/duly/internal/cli/table"
	"github.com/seed-6f6f2c11/duly/internal/dulyfile"
)

// daemonOptions are the flags of duly daemon.
// http and concurrency count only if their flags were given, as the file may set both.
type daemonOptions struct {
	*command.Options

	http        string
	console     string
	concurrency int
	grace       time.Duration
	log         string
	onRequest   bool // tasks run when a request asks for it, and not by themselves
}

// Daemon runs tasks until a signal arrives; see serving for
// what both commands have in common.
func Daemon(o *command.Options) *cobra.Command {
	d := &daemonOptions{Options: o}
	return serving(d, "daemon", "Run due tasks until stopped, optionally with an HTTP API",
		"  duly daemon -c duly.yaml\n  duly daemon -c duly.yaml --redis redis://127.0.0.1:6379/0 --http 127.0.0.1:8080")
}

// Serve is for hosts that scale to zero: nothing runs unless a request says
// so, so that it may be frozen in between.
func Serve(o *command.Options) *cobra.Command {
	d := &daemonOptions{Options: o, onRequest: true}
	return serving(d, "serve", "Serve the HTTP API; tasks run only on POST /v1/run-due or GET /v1/cron",
		"  duly serve -c duly.yaml --redis redis://127.0.0.1:6379/0 --http 127.0.0.1:8080")
}

// serving is a command that runs until it is stopped.
// A flag wins over the file only if it was given: each has a default that
// would otherwise hide what the file says.
func serving(d *daemonOptions, name, short, example string) *cobra.Command {
	o := d.Options
	cmd := command.New(name, short, example,
		func(cmd *cobra.Command, _ []string) error {
			c, err := command.LoadFile(cmd.Context(), o)
			if err != nil {
				return err
			}
			if err := d.over(cmd, c); err != nil {
				return err
			}
			logger, err := newLogger(o.Stderr, d.log)
			if err != nil {
				return err
			}
			return serve(cmd.Context(), c, d, logger)
		})
	flags := cmd.Flags()
	flags.StringVar(&d.http, "http", "", "address of the HTTP API, such as 127.0.0.1:8080")
	flags.StringVar(&d.console, "console", "", "pages for people at /ui: off, on or read-only (default: on if the API listens on loopback only)")
	flags.IntVar(&d.concurrency, "concurrency", model.DefaultConcurrency, "maximum number of runs at once")
	command.DurationVar(flags, &d.grace, "grace", daemon.DefaultGrace, "how long handlers may keep running after a signal to stop; 0s stops them at once")
	flags.StringVar(&d.log, "log", "text", "format of the log: text or json")
	command.ZeroMeans(cmd, "grace")
	if !d.onRequest {
		command.ZeroMeans(cmd, "http") // no API, in spite of the file
	}
	return command.OnlyHere(o.WithProcessName(cmd), "it runs tasks in this process, on a Redis", "name the Redis with --redis; duly run-due has a server run what is due")
}

// over puts the flags that were given over what the file says.
func (d *daemonOptions) over(cmd *cobra.Command, c *dulyfile.File) error {
	// An empty --http is meant: it turns off an API that the file asks for.
	if cmd.Flags().Changed("http") {
		c.HTTP = d.http
	}
	if cmd.Flags().Changed("concurrency") {
		c.Concurrency = d.concurrency
	}
	if d.onRequest && c.HTTP == "" {
		c.HTTP = command.DefaultAddress
	}
	if cmd.Flags().Changed("console") {
		if c.Console = dulyfile.Console(d.console); c.Console == "" || !c.Console.Valid() {
			return exit.Misuse("use off, on or read-only", "--console %q is unknown", d.console)
		}
	}
	return nil
}

// serve runs the daemon, unless tasks run on request, and the API until ctx is done.
// The order matters: mistakes in the file come first, then the port, then Redis, and tasks are applied
// before the first pull, so that nothing runs with a half-read configuration.
func serve(ctx context.Context, c *dulyfile.File, o *daemonOptions, logger *slog.Logger) error {
	if err := c.Check(); err != nil {
		return exit.Misuse("see duly daemon --help", "%w", err)
	}
	sends, err := newTelemetry(ctx, command.VersionOr(o.Version), logger)
	if err != nil {
		return err
	}
	settings, streams, err := connected(ctx, c, o.onRequest, logger)
	if err != nil {
		return err
	}
	defer closeIntake(streams)
	api, err := listen(ctx, c, command.VersionOr(o.Version), logger)
	if err != nil {
		return err
	}
	// In the opposite order at the end: the store closes after everything that uses it has ended.
	defer api.close()
	store, api, err := openBeside(ctx, c, api, command.VersionOr(o.Version), logger)
	if err != nil {
		return err
	}
	defer store.End(ctx)
	defer sends.end(ctx) // before the store, which the last metrics ask
	s, err := sends.scheduler(api, store, store.With(settings))
	if err != nil {
		return err
	}
	store.Flush = s.FlushEvents
	// The names of secret variables go along, so that programs which
	// handlers start do not inherit them.
	if err := c.Register(s, logger, &o.Children, secretVariables(c)...); err != nil {
		return err
	}
	// Zero would be the daemon's default: no grace is one that is over at once.
	d, err := daemon.New(s, daemon.Config{Grace: cmp.Or(o.grace, time.Nanosecond), Waker: store, Logger: logger})
	if err != nil {
		return exit.Misuse("see duly daemon --help", "%w", err)
	}
	done, err := c.Define(ctx, s, logger)
	if err != nil {
		return err
	}
	command.SayLimits(o.Options, store)
	logger.LogAttrs(ctx, slog.LevelInfo, "duly is running", slog.String("store", store.Name), slog.String("handlers", c.KindNames()),
		slog.Int("tasks", len(c.Tasks)), slog.Int("new", done.Created), slog.Int("changed", done.Changed))
	api.announce(ctx, c, logger)
	// Programs that handlers have started end with the process, never after it.
	defer o.Children.Wait()
	called := tellsGrace(ctx, o.grace, logger)
	defer called()
	services := servicesOf(ctx, s, store, d, api, sends, o, logger)
	return together(ctx, append(services, reading(streams, s)...)...)
}

// tellsGrace logs, once the context of a process is done, how long its supervisor must wait before it kills the process. off cancels that.
func tellsGrace(ctx context.Context, grace time.Duration, logger *slog.Logger) (off func() bool) {
	return context.AfterFunc(ctx, func() {
		logger.LogAttrs(context.WithoutCancel(ctx), slog.LevelInfo, "duly is stopping: running tasks have the grace to end, and are released then; "+
			"what stops this process has to wait longer than that: docker stop --timeout, stop_grace_period, terminationGracePeriodSeconds, TimeoutStopSec",
			slog.Duration("grace", grace))
	})
}

// servicesOf are what runs until the process ends: the daemon, or what a request starts in its place, and the API.
func servicesOf(ctx context.Context, s *core.Scheduler, store *storage.Store, d *daemon.Daemon, a *api, sends *telemetry, o *daemonOptions, logger *slog.Logger) []func(context.Context) error {
	services := []func(context.Context) error{d.Run}
	ready := func(context.Context) error { return d.Ready() }
	if o.onRequest {
		// Without a daemon nothing asks the store regularly, so readiness asks by itself.
		services = []func(context.Context) error{startsAtOnce(ctx, s, o.grace), keepsAlarm(s, store, logger)}
		ready = newReadiness(func(ctx context.Context) error { _, err := s.NextDue(ctx); return err }).ask
	}
	server := a.server(s, ready, o.grace, logger) // before anything runs: it makes the handlers' kinds known to the metrics
	sends.over(server)
	sends.begin(ctx, s)
	return append(services, func(ctx context.Context) error { return a.serve(ctx, server, o.grace) })
}

// connected returns the settings of the scheduler with its outside connections other than the store and the API: the streams that it
// reads, if any, and the alarm.
func connected(ctx context.Context, c *dulyfile.File, onRequest bool, logger *slog.Logger) (core.Config, *memosstream.Intake, error) {
	settings := events.Logged(ctx, c, logger)
	var err error
	if settings.Alarm, err = bookedBy(ctx, c, onRequest, logger); err != nil {
		return settings, nil, err
	}
	streams, err := intake(ctx, c, onRequest, &settings, logger)
	return settings, streams, err
}

// startsAtOnce lets urgent tasks start in the request that submits them, from now on, so that the first request is no exception, and until the
// context of the service is done; then it waits for their runs.
func startsAtOnce(ctx context.Context, s *core.Scheduler, grace time.Duration) func(context.Context) error {
	runs, stop := context.WithCancel(ctx)
	end := s.AtOnce(runs, core.AtOnce{Grace: grace})
	return func(ctx context.Context) error {
		<-ctx.Done()
		stop()
		end()
		return nil
	}
}

// newLogger logs for people ("text") or for programs ("json").
// It goes to stderr, as stdout belongs to answers.
func newLogger(w io.Writer, format string) (*slog.Logger, error) {
	switch format {
	case "text":
		return slog.New(linelog.New(w)), nil
	case "json":
		return slog.New(slog.NewJSONHandler(plainJSON{w}, nil)), nil
	default:
		return nil, exit.Misuse("use text or json", "--log %q is unknown", format)
	}
}

// plainJSON writes JSON with escapes for what a terminal could take for more than text.
type plainJSON struct{ out io.Writer }

// Write writes a record, as slog hands it over: whole.
func (w plainJSON) Write(record []byte) (int, error) {
	if _, err := io.WriteString(w.out, table.JSON(string(record))); err != nil {
		return 0, err
	}
	return len(record), nil
}

// together runs services until ctx is done or one of them fails, then waits for all.
// The first failure stops all of them: a daemon whose API has died must not continue unseen.
func together(ctx context.Context, services ...func(context.Context) error) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	errs := make([]error, len(services))
	var running sync.WaitGroup
	for i, service := range services {
		running.Go(func() {
			if errs[i] = service(ctx); errs[i] != nil {
				cancel()
			}
		})
	}
	running.Wait()
	return errors.Join(errs...)
}
