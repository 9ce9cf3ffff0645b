// A story in five steps, which survives kill -9: stop this program anywhere, start it again, and it goes on behind its last step.
//
//	go run . redis://127.0.0.1:6379
//
// Without a URL it keeps everything in memory. It approves its own story, so that it runs to its end.
package main

import (
	"context"
	"errors"
	"fmt"
	"log"
	"os"
	"strings"
	"time"

	"github.com/seed-6f6f2c11/duly/core"
	"github.com/seed-6f6f2c11/duly/core/memstore"
	"github.com/seed-6f6f2c11/duly/core/redisstore"
	"github.com/seed-6f6f2c11/duly/steps"
)

func main() {
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	store, err := open(ctx, os.Args[1:])
	if err == nil {
		err = tell(ctx, store)
	}
	if err != nil {
		log.Fatal(err)
	}
}

// open is the Redis of a URL, or memory.
func open(ctx context.Context, args []string) (core.Store, error) {
	if len(args) == 0 {
		return memstore.New(memstore.Config{}), nil
	}
	return redisstore.Open(ctx, redisstore.Config{URL: args[0]})
}

// tell submits the story, runs what is due until it has ended, and prints it.
func tell(ctx context.Context, store core.Store) error {
	s, err := core.New(store, core.Config{Concurrency: 4})
	if err != nil {
		return err
	}
	core.Handle(s, "part", part)
	core.Handle(s, "story", func(ctx context.Context, t *core.Task[string]) error { return story(ctx, s, t) })
	if _, err := s.Submit(ctx, core.NewTask{Agent: "ada", ID: "story", Kind: "story", Payload: "a fox"}); err != nil {
		return err
	}
	for {
		if _, err := s.RunDue(ctx, core.Scope{}); err != nil {
			return err
		}
		t, err := s.Task(ctx, "ada", "story")
		switch {
		case err != nil:
			return err
		case t.Status.Finished():
			done, _ := steps.ReadLog(t.Checkpoint)
			fmt.Printf("%s after %d runs, %d steps\n%s\n", t.Status, t.RunCount, len(done.Done), t.Result)
			return nil
		case t.Awaiting != nil && strings.HasSuffix(t.Awaiting.Key, "/approval"):
			// In your product a person does this, on a page of duly or of yours.
			if _, err := s.Signal(ctx, t.Agent, t.Awaiting.Key, []byte(`"approved"`)); err != nil {
				return err
			}
		}
		time.Sleep(50 * time.Millisecond) // a daemon has a better clock: package adapters/daemon
	}
}

// story plans, has three parts written at once, sleeps, asks, and sums up.
func story(ctx context.Context, s *core.Scheduler, t *core.Task[string]) error {
	run := steps.Begin(s, t.RunInfo)
	plan, err := steps.Do(ctx, run, "plan", func(context.Context) ([]string, error) {
		// A call of a model, with run.Key("plan") as its idempotency key.
		return []string{"the start of " + t.Payload, "the middle", "the end"}, nil
	})
	if err != nil {
		return err
	}
	parts, err := steps.Each[string](ctx, run, "parts", "part", 3, plan)
	if err != nil {
		return err
	}
	if err := run.Sleep("rest", 200*time.Millisecond); err != nil {
		return err
	}
	answer, err := steps.Wait[string](run, "approval", 48*time.Hour)
	switch {
	case errors.Is(err, steps.ErrTimeout):
		return core.Cancel(errors.New("nobody has read it"))
	case err != nil:
		return err
	}
	text, err := steps.Do(ctx, run, "summary", func(context.Context) (string, error) { return strings.Join(parts, "; ") + ": " + answer, nil })
	if err != nil {
		return err
	}
	return t.SetResult(text)
}

// part writes one part.
func part(_ context.Context, t *core.Task[string]) error { return t.SetResult("written " + t.Payload) }
