package clients_test

// The worker of the story in Go. It is this program again, started as the others are: what duly work does, with handlers in place of a program.

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"math"
	"net/url"
	"os"
	"os/signal"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/seed-6f6f2c11/duly/core"
	"github.com/seed-6f6f2c11/duly/internal/cli/remote"
	puller "github.com/seed-6f6f2c11/duly/internal/cli/worker"
	"github.com/seed-6f6f2c11/duly/steps"
)

// task is a task as the handlers of the story get it.
type task = core.Task[json.RawMessage]

// storyteller has the handlers of the story.
type storyteller struct {
	name, file string
	freeze     time.Duration
	client     *remote.Client
}

// tell works until a signal arrives, as story.py and story.js do.
func tell() error {
	client, err := remote.New(remote.Config{URL: os.Getenv("DULY_SERVER"), Token: os.Getenv("DULY_TOKEN")})
	if err != nil {
		return err
	}
	defer client.Close()
	seconds, _ := strconv.Atoi(os.Getenv("STORY_FREEZE"))
	s := &storyteller{name: os.Getenv("STORY_NAME"), file: os.Getenv("STORY_FILE"), freeze: time.Duration(seconds) * time.Second, client: client}
	handlers := map[string]func(ctx context.Context, t *task) error{
		"echo": echo, "dies": s.dies, "steps": s.steps, "slow": slow, "async": untilItEnds, "frozen": s.frozen, "outcomes": outcomes, "spends": spends,
		"breeds": s.breeds, "nonsense": nonsense, "odd": odd, "large": large, "prints": s.prints,
	}
	var kinds []string
	for kind := range handlers {
		kinds = append(kinds, kind)
	}
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM)
	defer stop()
	err = puller.Run(ctx, puller.Config{
		Server: remote.Lending{Client: client}, Kinds: kinds, Concurrency: 5, Lease: 2 * time.Second, Grace: 500 * time.Millisecond, Name: s.name,
		Handler: func(ctx context.Context, t *task) error { return handlers[t.Kind](ctx, t) },
		Logger:  slog.New(slog.NewTextHandler(os.Stderr, nil)), OnEvent: func(core.Event) {},
	})
	if err == nil {
		err = s.write("stopped")
	}
	return err
}

// write adds a line to the file of the story.
func (s *storyteller) write(line string) error {
	f, err := os.OpenFile(s.file, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	_, err = f.WriteString(line + "\n")
	return errors.Join(err, f.Close())
}

func echo(_ context.Context, t *task) error { return t.SetResult(t.Payload) }

func (s *storyteller) dies(ctx context.Context, t *task) error {
	if err := s.write(fmt.Sprint("dies ", t.Fence)); err != nil {
		return err
	}
	if t.Crashes == 0 {
		if err := t.Save(ctx, map[string]bool{"half": true}); err != nil {
			return err
		}
		os.Exit(9)
	}
	var checkpoint json.RawMessage
	if _, err := t.Checkpoint(&checkpoint); err != nil {
		return err
	}
	return t.SetResult(checkpoint)
}

func (s *storyteller) steps(ctx context.Context, t *task) error {
	r := steps.Begin(nil, t.RunInfo)
	plan, err := steps.Do(ctx, r, "plan", func(context.Context) ([]string, error) { return []string{"plan", r.Key("plan")}, s.write("plan") })
	if err == nil {
		err = r.Sleep("nap", 200*time.Millisecond)
	}
	if err != nil {
		return err
	}
	answer, err := steps.Wait[string](r, "approval", 30*time.Second)
	if err != nil {
		return err
	}
	if _, err = steps.Do(ctx, r, "end", func(context.Context) (bool, error) { return true, s.write("end") }); err != nil {
		return err
	}
	return t.SetResult(map[string]any{"plan": plan, "answer": answer})
}

func slow(ctx context.Context, t *task) error {
	if err := t.Use(core.Usage{"tokens": 3}); err != nil {
		return err
	}
	for n := 0; ; n++ {
		if err := t.SetProgress(map[string]int{"n": n}); err != nil {
			return err
		}
		select {
		case <-time.After(50 * time.Millisecond):
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

func untilItEnds(ctx context.Context, _ *task) error {
	<-ctx.Done()
	return ctx.Err()
}

func (s *storyteller) frozen(_ context.Context, t *task) error {
	if err := s.write(fmt.Sprint("frozen ", t.Fence, " ", s.name)); err != nil {
		return err
	}
	<-time.After(s.freeze)
	return t.SetResult(s.name)
}

func (s *storyteller) prints(_ context.Context, t *task) error {
	fmt.Fprint(t.Output(), "begun ", strings.Repeat("é", 10), " \x01\r\n")
	for _, err := os.Stat(s.file + ".go"); err != nil; _, err = os.Stat(s.file + ".go") {
		time.Sleep(50 * time.Millisecond)
	}
	var lines int
	err := json.Unmarshal(t.Payload, &lines)
	for n := range lines {
		fmt.Fprintln(t.Output(), "line", n, "€")
	}
	fmt.Fprintln(t.Output(), "\xff is no character")
	return err
}

func outcomes(_ context.Context, t *task) error {
	switch {
	case t.Call() == 1:
		return core.Snooze(100 * time.Millisecond)
	case t.Call() == 2:
		return core.Yield(map[string]int{"call": 2}, 0)
	case t.Call() == 3:
		return core.RetryAfter(time.Now().Add(100*time.Millisecond), errors.New("busy"))
	case t.Attempt == 1:
		return errors.New("the first attempt")
	}
	var checkpoint json.RawMessage
	if _, err := t.Checkpoint(&checkpoint); err != nil {
		return err
	}
	return core.SkipRetry(fmt.Errorf("for good, after %s", checkpoint))
}

func spends(ctx context.Context, t *task) error {
	for n := range 20 {
		if err := errors.Join(t.Use(core.Usage{"tokens": 60}), t.Save(ctx, n), ctx.Err()); err != nil {
			return err
		}
	}
	return nil
}

func (s *storyteller) breeds(ctx context.Context, t *task) error {
	var n int
	if err := json.Unmarshal(t.Payload, &n); err != nil {
		return err
	}
	ctx, err := s.client.WithParent(ctx, url.PathEscape(t.Agent)+"/"+url.PathEscape(t.ID))
	if err != nil {
		return err
	}
	_, err = s.client.Submit(ctx, core.NewTask{Agent: "ada", ID: fmt.Sprintf("%d é/%s", n+1, t.ID[:1]), Kind: "breeds", Payload: n + 1})
	return err
}

func nonsense(context.Context, *task) error {
	return core.Snooze(-time.Hour)
}

func odd(_ context.Context, t *task) error { return t.SetProgress(math.NaN()) }

func large(ctx context.Context, t *task) error { return t.Save(ctx, strings.Repeat("x", 300<<10)) }
