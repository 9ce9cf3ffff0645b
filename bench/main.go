// Command bench measures duly beside asynq on a Redis of its own, prints the figures, and says which of duly's targets
// are met.
package main

import (
	"cmp"
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"slices"
	"strconv"
	"strings"
	"syscall"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := command(ctx, os.Args[1:], os.Stdout, os.Stderr)
	stop()
	switch {
	case errors.Is(err, flag.ErrHelp):
	case errors.As(err, new(usageError)):
		os.Exit(2)
	case err != nil:
		_, _ = fmt.Fprintln(os.Stderr, "bench:", err)
		os.Exit(1)
	}
}

// usageError is a mistake in the flags that was already reported to the user.
type usageError struct{ error }

// command does what the flags say.
func command(ctx context.Context, args []string, out, progress io.Writer) error {
	if server := os.Getenv(pingVariable); server != "" {
		return ping(ctx, server, os.Stdin, out)
	}
	o, asJSON, err := parse(args, progress)
	if err != nil {
		return err
	}
	if o.instructions != "" {
		return countInstructions(ctx, &o, out, progress)
	}
	r, err := run(ctx, o, progress)
	if err != nil {
		return err
	}
	if asJSON {
		return r.writeJSON(out)
	}
	return r.writeTable(out)
}

// parse reads the flags.
func parse(args []string, usage io.Writer) (o options, asJSON bool, err error) {
	names := make([]string, len(measurements))
	for i, m := range measurements {
		names[i] = m.name
	}
	flags := flag.NewFlagSet("bench", flag.ContinueOnError)
	flags.SetOutput(usage)
	flags.BoolVar(&asJSON, "json", false, "print one JSON object instead of a table")
	flags.BoolVar(&o.quick, "quick", false, "small sizes, in a few seconds: to see that it works, not how fast")
	flags.BoolVar(&o.big, "big", false, "1,000,000 agents and overdue tasks where it is 100,000 else")
	flags.IntVar(&o.rounds, "rounds", 0, "rounds of each comparison (default 3)")
	flags.IntVar(&o.tasks, "tasks", 0, "tasks of a round (default 100000)")
	flags.IntVar(&o.concurrency, "concurrency", 400, "duly's Config.Concurrency")
	flags.StringVar(&o.network, "network", "tcp", "how to reach Redis: tcp or unix")
	flags.StringVar(&o.instructions, "instructions", "", "only count instructions of redis-server, and compare them with this file")
	flags.IntVar(&o.fleet, "fleet", 0, "agents of the scale measurement (default 1000000)")
	flags.StringVar(&o.keep, "keep", "", "with -only scale: write its figures to this file")
	flags.BoolVar(&o.update, "update", false, "with -instructions: write the file")
	agents := flags.String("agents", "", "numbers of agents (default 1,5000,100000)")
	only := flags.String("only", "", "measure only these: "+strings.Join(names, ", "))
	if err := flags.Parse(args); err != nil {
		return o, asJSON, usageError{err}
	}
	rounds, tasks, fleet, list := 3, 100_000, 1_000_000, "1,5000,100000"
	if o.quick {
		rounds, tasks, fleet, list = 1, 1000, 20_000, "1,50,1000"
	}
	o.rounds, o.tasks, o.fleet = cmp.Or(o.rounds, rounds), cmp.Or(o.tasks, tasks), cmp.Or(o.fleet, fleet)
	for text := range strings.SplitSeq(cmp.Or(*agents, list), ",") {
		n, _ := strconv.Atoi(text) // what is no number is 0
		o.agents = append(o.agents, n)
	}
	if *only != "" {
		o.only = strings.Split(*only, ",")
	}
	if err := o.validate(names, flags.NArg()); err != nil {
		_, _ = fmt.Fprintln(usage, "bench:", err)
		return o, asJSON, usageError{err}
	}
	return o, asJSON, nil
}

func (o *options) validate(names []string, extra int) error {
	switch {
	case extra > 0:
		return errors.New("takes flags only")
	case o.update && o.instructions == "":
		return errors.New("-update needs -instructions")
	case o.quick && o.instructions != "":
		return errors.New("-instructions are counted in full sizes: leave out -quick")
	case o.rounds < 1:
		return errors.New("-rounds must be at least 1")
	case o.tasks < 1:
		return errors.New("-tasks must be at least 1")
	case o.fleet < leastFleet:
		return fmt.Errorf("-fleet must be at least %d, so that each sort of agents has some", leastFleet)
	case o.keep != "" && !slices.Equal(o.only, []string{"scale"}):
		return errors.New("-keep needs -only scale")
	case o.network != "tcp" && o.network != "unix":
		return errors.New("-network must be tcp or unix")
	case slices.Min(o.agents) < 1:
		return errors.New("-agents must be numbers of at least 1, with commas between them")
	}
	for _, name := range o.only {
		if !slices.Contains(names, name) {
			return fmt.Errorf("-only %s: there are %s", name, strings.Join(names, ", "))
		}
	}
	return nil
}

// run measures what the options ask for.
func run(ctx context.Context, o options, progress io.Writer) (_ *report, err error) {
	server, err := startRedis(ctx, o.network)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, server.stop()) }()
	b := &bench{options: o, sizes: o.sizes(), redis: server, progress: progress}
	notes, err := b.notes(ctx)
	if err != nil {
		return nil, err
	}
	for _, m := range measurements {
		if named := slices.Contains(o.only, m.name); !named && (m.apart || len(o.only) > 0) {
			continue
		}
		_, _ = fmt.Fprintf(progress, "%s: %s\n", m.name, m.about)
		if err := m.run(ctx, b); err != nil {
			return nil, err
		}
	}
	if o.keep != "" {
		if err := b.scale.write(o.keep); err != nil {
			return nil, err
		}
	}
	return &report{notes: notes, figures: b.sheet.figures}, nil
}
