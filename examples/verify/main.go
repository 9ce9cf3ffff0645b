// Verify tries your function as a bad day does: each event comes twice, its process is killed at random moments, and it is started again, until
// all tasks have ended. It prints what ran once, more than once and never; the last line is "ran once: N of N", and the exit code 1 if it is not.
//
//	go run ./examples/verify --bootstrap sam/build/bootstrap --kind note
//	go run ./examples/verify --file duly.yaml --kind backup --marks effects --redis redis://127.0.0.1:6379/1
//
// A function of AWS Lambda (--bootstrap, built for this machine) is run under the Runtime API, and gets its tasks as SQS brings them. A file of
// handlers (--file) is run by duly run-due. Without --redis a redis-server of its own is started and thrown away; in yours, only tasks of
// the agent verify-SEED are made and run, and forgotten in the end.
//
// --marks names a hash in that Redis in which your function counts its effects by the id of their task, such as HINCRBY effects ID 1 in the
// transaction that has the effect, or HSETNX. Without it, what the tracker says counts: that each task has completed, under the fence of one claim.
package main

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"os/exec"
	"os/signal"
	"strconv"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/seed-6f6f2c11/duly/core"
	"github.com/seed-6f6f2c11/duly/core/redisstore"
	"github.com/seed-6f6f2c11/duly/internal/verify"
)

// options are what the command line says.
type options struct {
	bootstrap, file, duly, redis, kind, payload, marks string
	tasks, kills                                       int
	seed                                               uint64
	timeout                                            time.Duration
	asJSON, verbose                                    bool
}

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	passed, err := run(ctx, os.Args[1:], os.Stdout, os.Stderr)
	stop()
	switch {
	case err != nil:
		fmt.Fprintln(os.Stderr, "verify:", err)
		os.Exit(2)
	case !passed:
		os.Exit(1)
	}
}

// read reads the command line.
func read(args []string, stderr io.Writer) (options, error) {
	var o options
	f := flag.NewFlagSet("verify", flag.ContinueOnError)
	f.SetOutput(stderr)
	f.StringVar(&o.bootstrap, "bootstrap", "", "the program of a function of AWS Lambda, built for this machine")
	f.StringVar(&o.file, "file", "", "a duly.yaml with the handler, which duly run-due runs")
	f.StringVar(&o.duly, "duly", "duly", "the program duly, for --file")
	f.StringVar(&o.redis, "redis", "", "URL of a Redis (default: a redis-server of its own)")
	f.StringVar(&o.kind, "kind", "", "the kind whose handler is tried")
	f.StringVar(&o.payload, "payload", "", "JSON for each task")
	f.StringVar(&o.marks, "marks", "", "the hash in which the function counts its effects by task id (default: what the tracker says)")
	f.IntVar(&o.tasks, "tasks", 50, "how many tasks")
	f.IntVar(&o.kills, "kills", 5, "how many kills")
	f.Uint64Var(&o.seed, "seed", 0, "of the moments of the kills (default: another one each time)")
	f.DurationVar(&o.timeout, "timeout", 10*time.Minute, "what has not ended by then never ran")
	f.BoolVar(&o.asJSON, "json", false, "print JSON")
	f.BoolVar(&o.verbose, "verbose", false, "show what the function prints")
	if err := f.Parse(args); err != nil {
		return o, err
	}
	switch {
	case (o.bootstrap == "") == (o.file == ""):
		return o, errors.New("name either --bootstrap or --file; see verify --help")
	case o.kind == "":
		return o, errors.New("--kind is required: the kind whose handler is tried")
	case o.payload != "" && !json.Valid([]byte(o.payload)):
		return o, errors.New("--payload must be JSON")
	}
	if o.seed == 0 {
		o.seed = rand.Uint64() //nolint:gosec // of a trial
	}
	return o, nil
}

// run tries what the command line names, and reports whether each task ran once.
func run(ctx context.Context, args []string, stdout, stderr io.Writer) (bool, error) {
	o, err := read(args, stderr)
	if err != nil {
		return false, err
	}
	if o.redis == "" {
		end, err := ownRedis(ctx, &o)
		if err != nil {
			return false, err
		}
		defer end()
	}
	st, err := redisstore.Open(ctx, redisstore.Config{URL: o.redis})
	if err != nil {
		return false, err
	}
	defer func() { _ = st.Close() }()
	s, err := core.New(st, core.Config{})
	if err != nil {
		return false, err
	}
	c, end, err := o.config(context.WithoutCancel(ctx), s, stderr)
	if err != nil {
		return false, err
	}
	defer end()
	within, cancel := context.WithTimeout(ctx, o.timeout)
	defer cancel()
	report, failed := verify.Run(within, c)
	_, err = s.Forget(context.WithoutCancel(ctx), c.Agent, nil)
	if failed != nil && within.Err() == nil {
		return false, failed
	}
	if err != nil {
		return false, err
	}
	return report.Passed(), write(stdout, &o, &report)
}

// config is the trial, and what ends what it needs.
func (o *options) config(ctx context.Context, s *core.Scheduler, stderr io.Writer) (verify.Config, func(), error) {
	c := verify.Config{
		Scheduler: s, Agent: "verify-" + strconv.FormatUint(o.seed, 36), Kind: o.kind, Tasks: o.tasks, Kills: o.kills, Seed: o.seed,
		Progress: progress(stderr),
	}
	if o.payload != "" {
		c.Payload = json.RawMessage(o.payload)
	}
	opened, err := redis.ParseURL(o.redis)
	if err != nil {
		return c, nil, fmt.Errorf("--redis: %w", err)
	}
	client := redis.NewClient(opened)
	end := func() { _ = client.Close() }
	if o.marks != "" {
		c.Marks = func(ctx context.Context) (map[string]int, error) { return marks(ctx, client, o.marks) }
	}
	if o.file != "" {
		c.Subject = &verify.Program{Scheduler: s, Command: func(agents ...string) *exec.Cmd {
			cmd := exec.CommandContext(ctx, o.duly, "run-due", "-c", o.file, "--agents", strings.Join(agents, ",")) //nolint:gosec // the caller's own program
			o.prepare(cmd, stderr)
			return cmd
		}}
		return c, end, nil
	}
	f, err := verify.NewFunction(time.Minute, func(address string) *exec.Cmd { //nolint:contextcheck // the Runtime API lives as long as the trial
		cmd := exec.CommandContext(ctx, o.bootstrap) //nolint:gosec // the caller's own program
		o.prepare(cmd, stderr, "AWS_LAMBDA_RUNTIME_API="+address)
		return cmd
	})
	if err != nil {
		end()
		return c, nil, err
	}
	c.Subject = f
	return c, func() { f.Close(); end() }, nil
}

// prepare gives a process the Redis, and more.
func (o *options) prepare(cmd *exec.Cmd, stderr io.Writer, env ...string) {
	cmd.Env = append(append(os.Environ(), "DULY_REDIS_URL="+o.redis), env...)
	if o.verbose {
		cmd.Stdout, cmd.Stderr = stderr, stderr
	}
}

// marks are the effects that the function has counted.
func marks(ctx context.Context, client *redis.Client, hash string) (map[string]int, error) {
	all, err := client.HGetAll(ctx, hash).Result()
	if err != nil {
		return nil, err
	}
	out := make(map[string]int, len(all))
	for id, n := range all {
		if out[id], err = strconv.Atoi(n); err != nil {
			return nil, fmt.Errorf("the mark of %s must be a whole number, not %q", id, n)
		}
	}
	return out, nil
}

// progress is a line that is written again and again, on a terminal.
func progress(w io.Writer) func(ended, tasks, kills int) {
	if f, ok := w.(*os.File); ok {
		if info, err := f.Stat(); err == nil && info.Mode()&os.ModeCharDevice != 0 {
			return func(ended, tasks, kills int) {
				_, _ = fmt.Fprintf(w, "\r%d of %d tasks have ended, %d kills ", ended, tasks, kills)
			}
		}
	}
	return nil
}

// write writes the report.
func write(w io.Writer, o *options, r *verify.Report) error {
	if o.asJSON {
		e := json.NewEncoder(w)
		e.SetIndent("", "  ")
		return e.Encode(r)
	}
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	row := func(cells ...any) {
		for i, cell := range cells {
			if i > 0 {
				_, _ = fmt.Fprint(t, "\t")
			}
			_, _ = fmt.Fprint(t, cell)
		}
		_, _ = fmt.Fprintln(t)
	}
	row("seed", r.Seed)
	row("counted by", map[bool]string{true: "the marks of the function", false: "the tracker"}[r.Marked])
	row("kills", len(r.Kills))
	row("ticks that failed without a kill", r.Exits)
	row("tasks started again after a kill", r.Again)
	row("tasks that ran more than once", len(r.More))
	row("tasks that never ran to their end", len(r.Never))
	for _, f := range r.More {
		row("", f.ID, fmt.Sprintf("ran %d times, the second after kill %d", f.Times, f.Kill))
	}
	for _, f := range r.Never {
		row("", f.ID, f.Why)
	}
	if err := t.Flush(); err != nil {
		return err
	}
	_, err := fmt.Fprintln(w, r.Last())
	return err
}
